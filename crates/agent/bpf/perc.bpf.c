/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* A link of s-PERC or s-PERC*. The program receives a control packet before the queue of the link's output device,
 * updates the packet, and gives it priority over data. A packet on the reverse path is updated at the device of the
 * reverse link, with the state of the forward link, which is in the same map. The packet format is in
 * crates/schemes/src/perc/wire.rs. */
#include "perc.h"

#include <bpf/bpf_endian.h>

#define ETH_HLEN 14
#define IP_BYTES 20
#define UDP_BYTES 8
#define ETH_P_IP 0x0800
#define IPPROTO_UDP 17
#define PORT 5002
#define MAGIC 0x50455243
#define VERSION 1
#define FIRST 1
#define FIN 2
#define BACK 4
#define LINK_BYTES 9
#define TCX_NEXT (-1)
#define TC_ACT_SHOT 2
/* Priority that the kernel's queueing disciplines serve first. */
#define TC_PRIO_CONTROL 7

struct port {
	struct bpf_spin_lock lock;
	/* Number plus 1 of the reverse link, whose control packets return here; 0 if they are not updated. */
	u32 twin;
	struct link_settings set;
	struct link link;
	/* For tests of losses: a packet is dropped if a random number below 2^32 is less than this. */
	u64 loses;
	u64 random;
	/* Counters for display. */
	u64 passed;
	u64 lost;
};

/* Number of the port by device number; device numbers are unique across all nodes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, u32);
} perc_devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, struct port);
} perc_ports SEC(".maps");

/* log2 of the unit of rates in bit/s. */
const volatile s32 unit;

struct headers {
	u8 ip[IP_BYTES];
	__be16 ports[2];
	__be16 bytes;
	__be16 checksum;
};

struct head {
	__be32 magic;
	u8 version;
	u8 flags;
	u8 hop;
	u8 hops;
	__s8 unit;
	u8 zeros[3];
	__be32 flow;
	__be32 serial;
	__be32 weight;
	__be32 was;
	__be32 tx_us;
	__be32 period_us;
	__be32 round_us;
	__be32 own;
};

struct row {
	__be32 a;
	__be32 b;
	u8 round_number;
} __attribute__((packed));

static __always_inline void read_entry(struct entry *entry, const struct row *row)
{
	u32 a = bpf_ntohl(row->a), b = bpf_ntohl(row->b);

	entry->a = a & NO_LIMIT;
	entry->b = b & NO_LIMIT;
	entry->bottlenecked = a >> 31;
	entry->ignored = b >> 31;
	entry->round_number = row->round_number;
}

/* The port's next random number (xorshift). */
static __always_inline u32 next_random(struct port *port)
{
	u64 x = port->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	port->random = x;
	return (u32)(x >> 32);
}

SEC("tc")
int perc_pass(struct __sk_buff *skb)
{
	u32 device = skb->ifindex, at, k, *number, other, begin = ETH_HLEN + sizeof(struct headers), rows_bytes;
	struct row rows[MOST_HOPS] = {}, row;
	struct port *port, *own;
	struct packet packet = {};
	struct headers headers;
	struct entry entry = {};
	struct head head;
	bool forward, lost = false;
	u64 now_ns;

	if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, ETH_HLEN, &headers, sizeof(headers)))
		return TCX_NEXT;
	/* Other packets, such as fragments and those with IP options, pass unchanged. */
	if (headers.ip[0] != 0x45 || headers.ip[9] != IPPROTO_UDP || (headers.ip[6] & 0x3f) || headers.ip[7] ||
	    headers.ports[1] != bpf_htons(PORT))
		return TCX_NEXT;
	if (bpf_skb_load_bytes(skb, begin, &head, sizeof(head)) || head.magic != bpf_htonl(MAGIC) ||
	    head.version != VERSION || head.unit != unit || !head.hops || head.hops > MOST_HOPS)
		return TCX_NEXT;
	rows_bytes = head.hops * LINK_BYTES;
	/* Without this, the compiler may check a copy in another register, which the verifier does not accept. */
	barrier_var(rows_bytes);
	if (!rows_bytes || rows_bytes > sizeof(rows) ||
	    bpf_ntohs(headers.bytes) != UDP_BYTES + sizeof(head) + rows_bytes ||
	    bpf_skb_load_bytes(skb, begin + sizeof(head), rows, rows_bytes))
		return TCX_NEXT;
	forward = !(head.flags & BACK);
	at = forward ? head.hop : head.hop - 1U;
	number = bpf_map_lookup_elem(&perc_devices, &device);
	own = number ? bpf_map_lookup_elem(&perc_ports, number) : NULL;
	if (!own || at >= head.hops || at >= MOST_HOPS)
		return TCX_NEXT;
	skb->priority = TC_PRIO_CONTROL;
	port = own;
	if (!forward) {
		other = own->twin - 1;
		port = own->twin ? bpf_map_lookup_elem(&perc_ports, &other) : NULL;
	}
	if (port) {
		packet.weight = bpf_ntohl(head.weight);
		packet.was = bpf_ntohl(head.was);
		packet.tx_us = bpf_ntohl(head.tx_us);
		packet.period_us = bpf_ntohl(head.period_us);
		packet.round_us = bpf_ntohl(head.round_us);
		packet.own = bpf_ntohl(head.own);
		packet.first = !!(head.flags & FIRST);
		packet.fin = !!(head.flags & FIN);
		packet.hops = head.hops;
		for (k = 0; k < MOST_HOPS; k++)
			read_entry(&packet.links[k], &rows[k]);
		bpf_skb_load_bytes(skb, begin + sizeof(head) + at * LINK_BYTES, &row, sizeof(row));
		read_entry(&entry, &row);
		now_ns = bpf_ktime_get_ns();
		bpf_spin_lock(&port->lock);
		pass(&port->link, &port->set, &packet, &entry, at, forward, now_ns);
		port->passed++;
		bpf_spin_unlock(&port->lock);
		head.tx_us = bpf_htonl(packet.tx_us);
		head.round_us = bpf_htonl(packet.round_us);
		row.a = bpf_htonl(entry.a | (u32)entry.bottlenecked << 31);
		row.b = bpf_htonl(entry.b | (u32)entry.ignored << 31);
		row.round_number = entry.round_number;
		bpf_skb_store_bytes(skb, begin + sizeof(head) + at * LINK_BYTES, &row, sizeof(row), 0);
	}
	head.hop = forward ? head.hop + 1 : head.hop - 1;
	bpf_skb_store_bytes(skb, begin, &head, sizeof(head), 0);
	if (own->loses) {
		bpf_spin_lock(&own->lock);
		lost = next_random(own) < own->loses;
		own->lost += lost;
		bpf_spin_unlock(&own->lock);
	}
	return lost ? TC_ACT_SHOT : TCX_NEXT;
}

char _license[] SEC("license") = "GPL";
