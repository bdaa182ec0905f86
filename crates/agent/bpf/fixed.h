/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Soze in integer arithmetic. The reference is crates/schemes/src/soze/fixed.rs, which documents the functions under the same
 * names. */
#pragma once

#include "kernel.h"

#define ONE (1LL << 32)
#define LOG2_E 3098164009U
#define SQRT_2 3037000500ULL
#define MOST_RTTS 64ULL
#define MOST_RISE_RTTS 2LL
#define SILENT_RTTS_LOG2 5LL

/* Constants of a flow, as in FixedUpdate and FixedRate. */
struct law {
	s64 log2_alpha;
	s64 log2_start;
	s64 log2_least;
	s64 log2_packet;
	s64 log2_most;
	u64 slope;
	u64 most_above_ns;
	/* k + p. */
	u64 longest_ns;
	u32 k_ns;
	u32 m;
	u32 exact;
	/* Whether the minimum rate is half of beta; otherwise it is one packet per RTT. */
	u32 floor_beta;
	/* log2 of the option field's unit in ns. */
	u32 unit_shift;
	/* Whether the sender has a congestion window rather than a pacing rate. */
	u32 window;
};

static __always_inline s64 clamp(s64 value, s64 least, s64 most)
{
	return value < least ? least : value > most ? most : value;
}

static __always_inline u64 least(u64 a, u64 b)
{
	return a < b ? a : b;
}

static __always_inline s64 times(s64 a, u32 b)
{
	s64 high = a >> 32;
	u64 low = a & (ONE - 1);

	return high * (s64)(u64)b * 2 + (s64)((low * b + (1ULL << 30)) >> 31);
}

static __always_inline u32 zeros(u64 value)
{
	u32 count = 0;

	/* Counts leading zeros by bisection, since BPF has no instruction for it. */
	if (!(value >> 32)) {
		count += 32;
		value <<= 32;
	}
	if (!(value >> 48)) {
		count += 16;
		value <<= 16;
	}
	if (!(value >> 56)) {
		count += 8;
		value <<= 8;
	}
	if (!(value >> 60)) {
		count += 4;
		value <<= 4;
	}
	if (!(value >> 62)) {
		count += 2;
		value <<= 2;
	}
	return count + !(value >> 63);
}

static __always_inline s64 series(s64 size)
{
	s64 square = (size * size) >> 32;
	s64 sum = ONE / 13;

	sum = ONE / 11 + ((square * sum) >> 32);
	sum = ONE / 9 + ((square * sum) >> 32);
	sum = ONE / 7 + ((square * sum) >> 32);
	sum = ONE / 5 + ((square * sum) >> 32);
	sum = ONE / 3 + ((square * sum) >> 32);
	sum = ONE + ((square * sum) >> 32);
	return 2 * times((size * sum) >> 32, LOG2_E);
}

static __always_inline s64 log2_of(u64 value)
{
	u64 mantissa, one, off;
	u32 count, above;
	s64 whole, part;

	if (!value)
		value = 1;
	count = zeros(value);
	mantissa = (value << (count & 63)) >> 32;
	above = mantissa >= SQRT_2;
	one = 1ULL << (31 + above);
	off = mantissa >= one ? mantissa - one : one - mantissa;
	part = series((s64)((off << 32) / (mantissa + one)));
	whole = (s64)(63 - count + above) * ONE;
	return mantissa >= one ? whole + part : whole - part;
}

static __always_inline s64 power(s64 part)
{
	s64 sum = 437;

	sum = 5676 + ((sum * part + (1LL << 31)) >> 32);
	sum = 65510 + ((sum * part + (1LL << 31)) >> 32);
	sum = 661577 + ((sum * part + (1LL << 31)) >> 32);
	sum = 5726720 + ((sum * part + (1LL << 31)) >> 32);
	sum = 41309550 + ((sum * part + (1LL << 31)) >> 32);
	sum = 238388332 + ((sum * part + (1LL << 31)) >> 32);
	sum = 1031764991 + ((sum * part + (1LL << 31)) >> 32);
	sum = 2977044472 + ((sum * part + (1LL << 31)) >> 32);
	return ONE + ((sum * part + (1LL << 31)) >> 32);
}

static __always_inline u64 exp2_of(s64 exponent)
{
	s64 whole, part, shift;
	u64 value;

	if (exponent > 46 * ONE)
		exponent = 46 * ONE;
	whole = (exponent + ONE / 2) >> 32;
	part = exponent - whole * ONE;
	value = (u64)power(part);
	if (whole >= 16)
		return value << ((whole - 16) & 63);
	shift = 16 - whole;
	if (shift > 60)
		shift = 60;
	return (value + (1ULL << ((shift - 1) & 63))) >> (shift & 63);
}

static __always_inline u32 lost(s64 exponent)
{
	s64 whole, part, shift, kept;

	if (exponent > 60 * ONE)
		exponent = 60 * ONE;
	exponent = -exponent;
	whole = (exponent + ONE / 2) >> 32;
	part = exponent - whole * ONE;
	shift = 1 - whole;
	kept = (power(part) + (s64)(1ULL << ((shift - 1) & 63))) >> (shift & 63);
	return (u32)((1LL << 31) - kept);
}

static __always_inline u64 rtts_of(u64 dt_ns, u64 rtt_ns)
{
	dt_ns = least(dt_ns, 0xffffffffULL);
	if (!rtt_ns)
		rtt_ns = 1;
	return least((dt_ns << 32) / rtt_ns, MOST_RTTS << 32);
}

static __always_inline u32 exponent_of(const struct law *law, u64 rtts)
{
	if (law->exact)
		return lost(times(times((s64)rtts, law->m), LOG2_E));
	return (u32)(((u64)law->m * least(rtts, ONE) + (1ULL << 31)) >> 32);
}

static __always_inline s64 log2_share(const struct law *law, u32 delay_ns)
{
	u64 above_ns = delay_ns > law->k_ns ? delay_ns - law->k_ns : 0;

	above_ns = least(above_ns, law->most_above_ns);
	return law->log2_alpha - (s64)((above_ns * law->slope + (1ULL << 15)) >> 16);
}

static __always_inline s64 next_rate(const struct law *law, s64 log2_rate, s64 log2_weight, u32 delay_ns, u64 rtts)
{
	s64 off = log2_share(law, delay_ns) + log2_weight - log2_rate;
	s64 fall = (s64)rtts, rise = fall;

	if (law->exact && rise > MOST_RISE_RTTS * ONE)
		rise = MOST_RISE_RTTS * ONE;
	return log2_rate + clamp(times(off, exponent_of(law, rtts)), -fall, rise);
}

/* The rate at which the window stays the same when the RTT changes. */
static __always_inline s64 keep_window(s64 log2_rate, u64 from_ns, u64 to_ns)
{
	return log2_rate + log2_of(from_ns) - log2_of(to_ns);
}

static __always_inline s64 bound_rate(const struct law *law, s64 log2_rate, s64 log2_weight, u64 rtt_ns)
{
	s64 packet = law->log2_packet - log2_of(rtt_ns), floor = packet;

	if (law->floor_beta) {
		s64 silent = packet - SILENT_RTTS_LOG2 * ONE;

		floor = law->log2_least + log2_weight;
		if (floor < silent)
			floor = silent;
	}
	if (floor > law->log2_most)
		floor = law->log2_most;
	return clamp(log2_rate, floor, law->log2_most);
}

/* State of a link. The filter is that of filter.rs, the virtual queue that of fixed_link.rs. Times have 32 fractional bits where
 * the reference has them. */
struct counts {
	/* State value of the filter or of the virtual queue. */
	s64 held_ns;
	u64 at_ns;
	/* Time of the last data packet; 0 if there was none. */
	u64 data_ns;
	/* Parameters of both. */
	u64 ns_per_byte;
	u64 most_bytes;
	/* Parameters of the filter. */
	u64 decay;
	u64 longest_ns;
	u64 told_per_byte;
	u32 is_utilization;
	/* Parameters of the virtual queue. */
	u32 is_virtual;
	s64 eta;
	u64 queue;
	u64 k_ns;
	u64 per_empties;
	u64 most_excess_ns;
	s64 most_ns;
	s64 start_ns;
	u64 anew_ns;
};

#define MOST_NS ((s64)0x7fffffffLL << 32)

/* Advances the state's time to `now_ns` and returns the time passed. A processor reads its clock before it takes the lock, so that
 * another may have stored a later time: no time has passed then. */
static __always_inline u64 advance(struct counts *c, u64 now_ns)
{
	u64 passed_ns = now_ns > c->at_ns ? now_ns - c->at_ns : 0;

	c->at_ns += passed_ns;
	return passed_ns;
}

static __always_inline s64 filtered(struct counts *c, u64 passed_ns, u32 bytes, u64 queued_bytes)
{
	u32 gain = c->decay ? lost((s64)((least(passed_ns, c->longest_ns) * c->decay) >> 16)) : 1U << 31;
	s64 change;

	if (c->is_utilization)
		change = (s64)((u64)bytes * c->told_per_byte) - times(c->held_ns, gain);
	else
		change = times((s64)(least(queued_bytes, c->most_bytes) * c->ns_per_byte) - c->held_ns, gain);
	c->held_ns = clamp(c->held_ns + change, 0, MOST_NS);
	return c->held_ns;
}

static __always_inline u64 excess_ns(const struct counts *c, u64 queued_bytes)
{
	u64 time_ns = least(queued_bytes, c->most_bytes) * c->ns_per_byte;

	return time_ns > c->k_ns ? time_ns - c->k_ns : 0;
}

static __always_inline void drain(struct counts *c, u64 passed_ns, u64 queued_bytes)
{
	u64 excess = least(excess_ns(c, queued_bytes), c->most_excess_ns);
	s64 rate = c->eta - (s64)(((excess >> 16) * c->per_empties) >> 17);
	s64 passed = (s64)(least(passed_ns, 0x7fffffffULL) << 32), sunk;

	if (rate < -(1LL << 31))
		rate = -(1LL << 31);
	sunk = times(passed, rate < 0 ? (u32)-rate : (u32)rate);
	/* The sum of the two may overflow. */
	if (rate < 0 && sunk > c->most_ns)
		sunk = c->most_ns;
	c->held_ns = clamp(rate < 0 ? c->held_ns + sunk : c->held_ns - sunk, 0, c->most_ns);
}

static __always_inline void fill(struct counts *c, u32 bytes)
{
	s64 next = c->held_ns + (s64)(least(bytes, c->most_bytes) * c->ns_per_byte);

	c->held_ns = next > c->most_ns ? c->most_ns : next;
}

static __always_inline u64 rounded_ns(s64 held_ns)
{
	return ((u64)held_ns + (1ULL << 31)) >> 32;
}

static __always_inline u64 virtual_ns(const struct counts *c, u64 queued_bytes)
{
	u64 queue_ns = ((excess_ns(c, queued_bytes) >> 24) * c->queue) >> 24;

	return least(rounded_ns(c->held_ns) + queue_ns, 0xffffffffULL);
}
