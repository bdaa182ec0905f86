/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Calls the telemetry functions of fixed.h on a batch of packets and stores the delays, for tests against the
 * reference. */
#include "fixed.h"

#define BATCH 256

struct passing {
	u64 now_ns;
	u64 queued_bytes;
	u32 bytes;
	/* Output: delay, ns. */
	u32 told_ns;
};

struct passings {
	struct counts counts;
	struct passing each[BATCH];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct passings);
} passings SEC(".maps");

static long pass_one(u32 number, void *unused)
{
	u32 zero = 0;
	struct passings *held = bpf_map_lookup_elem(&passings, &zero);
	struct passing *passing;
	u64 passed_ns;

	if (!held || number >= BATCH)
		return 1;
	passing = &held->each[number];
	passed_ns = advance(&held->counts, passing->now_ns);
	if (held->counts.is_virtual) {
		drain(&held->counts, passed_ns, passing->queued_bytes);
		fill(&held->counts, passing->bytes);
		passing->told_ns = virtual_ns(&held->counts, passing->queued_bytes);
	} else {
		passing->told_ns = rounded_ns(filtered(&held->counts, passed_ns, passing->bytes, passing->queued_bytes));
	}
	return 0;
}

SEC("syscall")
int pass_all(void *ctx)
{
	bpf_loop(BATCH, pass_one, NULL, 0);
	return 0;
}

char _license[] SEC("license") = "GPL";
