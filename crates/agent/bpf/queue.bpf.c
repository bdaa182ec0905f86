/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* A switch's output queue, which writes telemetry into packets.
 *
 * A queue is a pair of veths in one namespace. `enter` handles a packet before the shaper of the first veth. `leave`
 * handles it after the shaper, at the second veth, and sends it by the real device. In between, the packet's mark
 * holds the number of bytes that had arrived. The bytes queued behind a leaving packet are therefore known even if
 * packets were dropped. */
#include "option.h"

#define ETH_HLEN 14
#define ETH_P_IP 0x0800
#define IPPROTO_TCP 6
#define TC_ACT_OK 0
#define TC_ACT_SHOT 2
#define MOST_OPTIONS 20

struct port {
	struct bpf_spin_lock lock;
	/* Device by which packets leave. */
	u32 device;
	/* Whether it is a host's queue: packets that leave it are then no longer charged to their sockets. */
	u32 at_host;
	u32 unit_shift;
	/* Packets with more queued bytes behind them get an ECN mark; 0: none. */
	u64 ecn_bytes;
	u64 entered_bytes;
	/* Bytes that have left, or were dropped before a packet that left. */
	u64 left_bytes;
	/* Time until which delay options are removed from packets, as some middleboxes do, ns; 0: never. */
	u64 strips_until_ns;
	/* Counters for display. */
	u64 packets;
	u64 raised;
	u64 marked;
	struct counts counts;
};

/* Number of the port by the number of either veth; device numbers are unique across all nodes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, u32);
} devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, struct port);
} ports SEC(".maps");

static __always_inline struct port *port_of(struct __sk_buff *skb)
{
	u32 device = skb->ifindex, *number = bpf_map_lookup_elem(&devices, &device);

	return number ? bpf_map_lookup_elem(&ports, number) : NULL;
}

struct tcp_head {
	__be16 ports[2];
	__be32 sequence;
	__be32 acknowledged;
	u8 words;
	u8 flags;
	__be16 window;
	__be16 checksum;
	__be16 urgent;
};

struct segment {
	/* Offsets of the TCP header, and of the end of its options. */
	u32 head;
	u32 options_end;
	u32 payload;
};

/* Finds the TCP header of an IPv4 packet. */
static __always_inline bool read_segment(struct __sk_buff *skb, struct segment *segment)
{
	u8 ip[20], words;
	u32 length;

	if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, ETH_HLEN, ip, sizeof(ip)))
		return false;
	/* Only the first fragment has a header. */
	if (ip[9] != IPPROTO_TCP || (ip[6] & 0x1f) || ip[7])
		return false;
	segment->head = ETH_HLEN + (ip[0] & 15) * 4;
	if (bpf_skb_load_bytes(skb, segment->head + 12, &words, 1))
		return false;
	segment->options_end = segment->head + (words >> 4) * 4;
	length = ETH_HLEN + ((u32)ip[2] << 8 | ip[3]);
	segment->payload = length > segment->options_end ? length - segment->options_end : 0;
	return true;
}

struct search {
	struct __sk_buff *skb;
	u32 at;
	u32 end;
	u32 found;
};

static long next_option(u32 number, struct search *search)
{
	u8 option[4] = {};

	if (search->at + 2 > search->end || bpf_skb_load_bytes(search->skb, search->at, option, 2))
		return 1;
	if (option[0] == 0)
		return 1;
	if (option[0] == 1) {
		search->at += 1;
		return 0;
	}
	if (option[1] < 2)
		return 1;
	if (option[0] == OPTION_KIND && option[1] == OPTION_BYTES && search->at + OPTION_BYTES <= search->end &&
	    !bpf_skb_load_bytes(search->skb, search->at, option, 4) && option[2] == MAGIC_FIRST &&
	    option[3] == MAGIC_SECOND) {
		search->found = search->at;
		return 1;
	}
	search->at += option[1];
	return 0;
}

/* Offset of the delay option in the packet; 0 if there is none. */
static __always_inline u32 find_option(struct __sk_buff *skb, const struct segment *segment)
{
	struct search search = { .skb = skb, .at = segment->head + 20, .end = segment->options_end };

	bpf_loop(MOST_OPTIONS, next_option, &search, 0);
	return search.found;
}

/* Replaces the delay option by padding. */
static __always_inline void strip(struct __sk_buff *skb, const struct segment *segment)
{
	u32 at = find_option(skb, segment), before[2], after[2] = { 0x01010101, 0x01010101 };

	/* The agent writes the option at a multiple of four bytes. */
	if (!at || (at - segment->head) & 3 || bpf_skb_load_bytes(skb, at, before, sizeof(before)))
		return;
	bpf_l4_csum_replace(skb, segment->head + 16, 0, bpf_csum_diff(before, 8, after, 8, 0), 0);
	bpf_skb_store_bytes(skb, at, after, sizeof(after), 0);
}

/* Raises the delay in the segment's option to at least `told`. */
static __always_inline bool raise(struct __sk_buff *skb, const struct segment *segment, u16 told)
{
	u32 at = find_option(skb, segment);
	__be16 before, after = bpf_htons(told);

	if (!at || bpf_skb_load_bytes(skb, at + 4, &before, 2))
		return false;
	if (before != UNTOLD && bpf_ntohs(before) >= told)
		return false;
	/* The checksum covers 16-bit words from the start of the header. */
	if ((at - segment->head) & 1)
		bpf_l4_csum_replace(skb, segment->head + 16, bpf_htons(before), bpf_htons(after), 2);
	else
		bpf_l4_csum_replace(skb, segment->head + 16, before, after, 2);
	bpf_skb_store_bytes(skb, at + 4, &after, 2, 0);
	return true;
}

SEC("tc")
int enter(struct __sk_buff *skb)
{
	struct port *port = port_of(skb);
	struct segment segment;
	u64 now_ns = bpf_ktime_get_ns(), queued;
	bool data;

	if (!port)
		return TC_ACT_OK;
	data = read_segment(skb, &segment) && segment.payload;
	bpf_spin_lock(&port->lock);
	queued = port->entered_bytes - port->left_bytes;
	port->entered_bytes += skb->len;
	if (port->counts.is_virtual && data) {
		struct counts *c = &port->counts;

		drain(c, advance(c, now_ns), queued);
		if (c->anew_ns && (!c->data_ns || c->at_ns - c->data_ns > c->anew_ns))
			c->held_ns = c->start_ns;
		c->data_ns = c->at_ns;
		fill(c, skb->len);
	}
	skb->mark = (u32)port->entered_bytes;
	bpf_spin_unlock(&port->lock);
	return TC_ACT_OK;
}

SEC("tc")
int leave(struct __sk_buff *skb)
{
	struct port *port = port_of(skb);
	u64 now_ns = bpf_ktime_get_ns(), told_ns, passed_ns, queued, told;
	struct segment segment;
	u32 device;

	if (!port)
		return TC_ACT_SHOT;
	bpf_spin_lock(&port->lock);
	queued = (u32)((u32)port->entered_bytes - skb->mark);
	port->left_bytes = port->entered_bytes - queued;
	passed_ns = advance(&port->counts, now_ns);
	if (port->counts.is_virtual) {
		drain(&port->counts, passed_ns, queued);
		told_ns = virtual_ns(&port->counts, queued);
	} else {
		told_ns = rounded_ns(filtered(&port->counts, passed_ns, skb->len, queued));
	}
	port->packets++;
	bpf_spin_unlock(&port->lock);
	told = (told_ns + ((1ULL << (port->unit_shift & 31)) >> 1)) >> (port->unit_shift & 31);
	if (told >= UNTOLD)
		told = UNTOLD - 1;
	if (read_segment(skb, &segment)) {
		if (now_ns < port->strips_until_ns)
			strip(skb, &segment);
		else if (raise(skb, &segment, (u16)told))
			__sync_fetch_and_add(&port->raised, 1);
	}
	if (port->ecn_bytes && queued > port->ecn_bytes && bpf_skb_ecn_set_ce(skb))
		__sync_fetch_and_add(&port->marked, 1);
	device = port->device;
	if (!port->at_host)
		return bpf_redirect(device, 0);
	/* A redirected packet would remain charged to its socket, and TCP small queues would limit the sender. */
	bpf_clone_redirect(skb, device, 0);
	return TC_ACT_SHOT;
}

char _license[] SEC("license") = "GPL";
