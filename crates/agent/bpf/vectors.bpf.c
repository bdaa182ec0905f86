/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Calls the functions of fixed.h on a batch of inputs and stores the outputs, for tests against the reference. */
#include <stddef.h>

#include "fixed.h"

#define BATCH 256

struct trial {
	s64 log2_rate;
	s64 log2_weight;
	u64 dt_ns;
	u64 rtt_ns;
	/* The RTT before, from which a window is kept. */
	u64 from_ns;
	u32 delay_ns;
	u32 number;
	/* Outputs. */
	s64 next;
	s64 bounded;
	u64 bps;
	s64 log2_rtt;
};

struct trials {
	struct law law;
	struct trial each[BATCH];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct trials);
} trials SEC(".maps");

static long try_one(u32 number, void *unused)
{
	u32 zero = 0;
	struct trials *held = bpf_map_lookup_elem(&trials, &zero);
	struct trial *trial;
	s64 rate;
	u64 rtts;

	if (!held || number >= BATCH)
		return 1;
	trial = &held->each[number];
	rtts = rtts_of(trial->dt_ns, trial->rtt_ns);
	rate = trial->log2_rate;
	if (held->law.window)
		rate = keep_window(rate, trial->from_ns, trial->rtt_ns);
	trial->next = next_rate(&held->law, rate, trial->log2_weight, trial->delay_ns, rtts);
	trial->bounded = bound_rate(&held->law, trial->next, trial->log2_weight, trial->rtt_ns);
	trial->bps = exp2_of(trial->bounded);
	trial->log2_rtt = log2_of(trial->rtt_ns);
	return 0;
}

SEC("syscall")
int try_all(void *ctx)
{
	bpf_loop(BATCH, try_one, NULL, 0);
	return 0;
}

char _license[] SEC("license") = "GPL";
