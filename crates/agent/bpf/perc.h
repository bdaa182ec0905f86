/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* A link of s-PERC and s-PERC* in integer arithmetic. The reference is crates/schemes/src/perc/fixed.rs, which documents the
 * functions under the same names. */
#pragma once

#include "fixed.h"

#define MOST_HOPS 8
#define NO_LIMIT 0x7fffffffU
#define MOST_WEIGHT 0xffffffffLL
#define ROUND_NUMBERS 255ULL
#define MOST_DOUBLINGS 40
#define MOST_ROUND_NS (1ULL << 62)
#define LOG_BITS 26
#define POWER_BITS 30
#define MOST_INDEX_BITS 16
#define TABLE (1U << MOST_INDEX_BITS)

/* Tables of logarithms and powers of two. The settings have their sizes. They are filled when the program is loaded. */
u32 logs[TABLE];
u32 powers[TABLE];

struct entry {
	u32 a;
	u32 b;
	u8 bottlenecked;
	u8 ignored;
	u8 round_number;
	u8 reserved;
};

struct packet {
	u32 weight;
	u32 was;
	u32 tx_us;
	u32 period_us;
	u32 round_us;
	u32 own;
	u8 first;
	u8 fin;
	u8 hops;
	u8 reserved;
	struct entry links[MOST_HOPS];
};

struct link_settings {
	u64 capacity;
	u64 packet_ns;
	u64 patience_ns;
	u64 wait_ns;
	u32 tie;
	u8 robust;
	u8 log_index_bits;
	u8 power_index_bits;
	u8 reserved;
};

struct link {
	s64 sum_e;
	s64 shadow_sum_e;
	s64 num_b;
	s64 shadow_num_b;
	u32 max_e;
	u32 max_e_next;
	u32 round_number;
	u32 flows;
	u32 seen;
	u32 reserved;
	u64 round_ns;
	u64 began_ns;
	u64 longest_ns;
	u64 since_ns;
};

static __always_inline u32 us(u64 ns)
{
	return (u32)least((ns + 999) / 1000, 0xffffffffULL);
}

static __always_inline s64 share(u32 a, u32 weight)
{
	return (s64)((u64)a * weight);
}

static __always_inline u64 part(u64 x, u32 fraction)
{
	return (x >> 32) * fraction + ((x & 0xffffffffULL) * fraction >> 32);
}

/* Position of the leading one of a positive integer. It has no branches, since the verifier would follow each. */
static __always_inline u32 leading_one(u64 x)
{
	x |= x >> 1;
	x |= x >> 2;
	x |= x >> 4;
	x |= x >> 8;
	x |= x >> 16;
	x |= x >> 32;
	/* All bits below the leading one are set now: count them. */
	x >>= 1;
	x -= (x >> 1) & 0x5555555555555555ULL;
	x = (x & 0x3333333333333333ULL) + ((x >> 2) & 0x3333333333333333ULL);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return (u32)(x * 0x0101010101010101ULL >> 56) & 63;
}

/* log2 of a positive integer, by the table. */
static __always_inline s64 table_log2(const struct link_settings *set, u64 x)
{
	u32 exponent = leading_one(x), index;

	index = (u32)(((x ^ (1ULL << exponent)) << (set->log_index_bits & 31)) >> exponent);
	return ((s64)exponent << LOG_BITS) + logs[index & (TABLE - 1)];
}

static __always_inline u64 quotient(const struct link_settings *set, u64 x, u64 y)
{
	s64 log = table_log2(set, x) - table_log2(set, y);
	u32 fraction = (u32)log & ((1U << LOG_BITS) - 1);
	u64 power = powers[(fraction >> ((LOG_BITS - set->power_index_bits) & 31)) & (TABLE - 1)];
	s64 shift = clamp(POWER_BITS - (log >> LOG_BITS), -32, 40);

	if (shift <= 0)
		return power << ((u64)-shift & 63);
	return (power + (1ULL << ((u64)(shift - 1) & 63))) >> ((u64)shift & 63);
}

static __always_inline u32 divide(const struct link_settings *set, u64 x, u64 y)
{
	return (u32)least(set->log_index_bits ? quotient(set, x, y) : (x + y / 2) / y, NO_LIMIT);
}

static __always_inline void turn(struct link *link, const struct link_settings *set, u64 now_ns)
{
	u64 passed_ns = now_ns > link->began_ns ? now_ns - link->began_ns : 0, rounds;

	if (passed_ns < link->round_ns)
		return;
	rounds = passed_ns / link->round_ns;
	link->began_ns += rounds * link->round_ns;
	link->max_e = rounds > 1 ? 0 : link->max_e_next;
	link->max_e_next = 0;
	if (set->robust) {
		link->sum_e = rounds > 1 ? 0 : link->shadow_sum_e;
		link->num_b = rounds > 1 ? 0 : link->shadow_num_b;
		link->flows = rounds > 1 ? 0 : link->seen;
		link->shadow_sum_e = 0;
		link->shadow_num_b = 0;
		link->seen = 0;
	}
	link->round_number = (u32)((link->round_number + rounds - 1) % ROUND_NUMBERS) + 1;
}

static __always_inline void count(struct link *link, const struct link_settings *set, struct packet *packet)
{
	u32 tx_us;

	if (packet->first && !set->robust && link->flows < 0xffffffffU)
		link->flows++;
	tx_us = us((u64)(link->flows ? link->flows : 1) * set->packet_ns);
	if (packet->tx_us < tx_us)
		packet->tx_us = tx_us;
	if (packet->fin && !set->robust && link->flows)
		link->flows--;
}

static __always_inline u64 enough_for(const struct link_settings *set, u64 period_ns)
{
	u64 enough_ns = period_ns + set->wait_ns;

	return enough_ns < period_ns ? MOST_ROUND_NS : least(enough_ns, MOST_ROUND_NS);
}

static __always_inline void saw(struct link *link, const struct link_settings *set, u64 period_ns, u64 now_ns)
{
	u64 enough_ns = enough_for(set, period_ns);
	u64 passed_ns = now_ns > link->since_ns ? now_ns - link->since_ns : 0;
	int i;

	if (!set->patience_ns)
		return;
	if (link->longest_ns < period_ns)
		link->longest_ns = period_ns;
	for (i = 0; i < MOST_DOUBLINGS && link->round_ns < enough_ns; i++)
		link->round_ns *= 2;
	if (passed_ns >= set->patience_ns) {
		if (link->round_ns / 2 >= enough_for(set, link->longest_ns))
			link->round_ns /= 2;
		link->longest_ns = period_ns;
		link->since_ns = now_ns;
	}
}

static __always_inline void reweigh(struct link *link, const struct entry *old, u32 was, u32 weight)
{
	if (old->bottlenecked)
		link->num_b += (s64)weight - (s64)was;
	else
		link->sum_e += share(old->a, weight) - share(old->a, was);
}

/* All ones if a < b, for numbers below 2^31. */
static __always_inline u32 if_below(u32 a, u32 b)
{
	u32 mask = (u32)((s32)(a - b) >> 31);

	/* Prevents the compiler from making a branch, of which the verifier would follow both sides. */
	barrier_var(mask);
	return mask;
}

static __always_inline u32 limit_rate(const struct packet *packet, u32 hop, bool robust)
{
	u32 found = robust && packet->own < NO_LIMIT ? packet->own : NO_LIMIT, k, other, b;

	for (k = 0; k < MOST_HOPS; k++) {
		other = if_below(k, packet->hops) & if_below(0, k ^ hop) & if_below(packet->links[k].ignored, 1);
		b = packet->links[k].b | (~other & NO_LIMIT);
		found += (b - found) & if_below(b, found);
	}
	return found;
}

static __always_inline void update(struct link *link, const struct link_settings *set, struct packet *packet,
				   struct entry *entry, u32 hop)
{
	u32 e = limit_rate(packet, hop, set->robust);
	s64 weight = packet->weight, held = share(entry->a, packet->weight), left, num_b, given;
	u64 limited, largest;

	if (!entry->bottlenecked) {
		link->sum_e -= held;
		link->num_b += weight;
	}
	if (set->robust) {
		if (entry->round_number != link->round_number) {
			link->shadow_num_b += weight;
			link->seen++;
			link->flows += !entry->round_number;
		} else if (!entry->bottlenecked) {
			link->shadow_sum_e -= held;
			link->shadow_num_b += weight;
		}
		entry->round_number = (u8)link->round_number;
	}
	left = clamp((s64)set->capacity - link->sum_e, 0, (s64)set->capacity);
	num_b = link->num_b < MOST_WEIGHT ? link->num_b : MOST_WEIGHT;
	num_b = num_b > weight ? num_b : weight;
	num_b = num_b > 1 ? num_b : 1;
	entry->b = divide(set, left ? left : 1, num_b);
	limited = (u64)e * (u64)num_b;
	largest = (u64)link->max_e * (u64)num_b;
	entry->bottlenecked = e == NO_LIMIT || (u64)left <= limited + part(limited, set->tie) + (u64)num_b;
	entry->ignored = (u64)left + (u64)num_b < largest - part(largest, set->tie);
	entry->a = !entry->bottlenecked || e < entry->b ? e : entry->b;
	if (packet->fin) {
		link->num_b -= weight;
		if (set->robust) {
			link->shadow_num_b -= weight;
			link->seen -= link->seen > 0;
			link->flows -= link->flows > 0;
		}
	} else if (!entry->bottlenecked) {
		given = share(entry->a, packet->weight);
		link->num_b -= weight;
		link->sum_e += given;
		if (set->robust) {
			link->shadow_num_b -= weight;
			link->shadow_sum_e += given;
		}
		if (link->max_e < entry->a)
			link->max_e = entry->a;
		if (link->max_e_next < entry->a)
			link->max_e_next = entry->a;
	}
}

/* Handles a packet whose entry for this link, its `hop`-th, is `entry`. */
static __always_inline void pass(struct link *link, const struct link_settings *set, struct packet *packet,
				 struct entry *entry, u32 hop, bool forward, u64 now_ns)
{
	turn(link, set, now_ns);
	if (forward)
		count(link, set, packet);
	saw(link, set, 1000ULL * (packet->period_us > packet->tx_us ? packet->period_us : packet->tx_us), now_ns);
	if (packet->round_us < us(link->round_ns))
		packet->round_us = us(link->round_ns);
	if (forward && !set->robust && packet->was != packet->weight)
		reweigh(link, entry, packet->was, packet->weight);
	update(link, set, packet, entry, hop);
}
