/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Calls the function of perc.h on one packet at one link, for tests against the reference. */
#include "perc.h"

struct link_settings set;
struct link link;
struct packet packet;
u64 now_ns;
u32 hop;
u32 forward;

SEC("syscall")
int pass_one(void *ctx)
{
	u32 at = hop;

	if (at < MOST_HOPS && at < packet.hops && packet.hops <= MOST_HOPS)
		pass(&link, &set, &packet, &packet.links[at], at, forward, now_ns);
	return 0;
}

char _license[] SEC("license") = "GPL";
