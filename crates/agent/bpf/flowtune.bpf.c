/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Flowtune at a host (Perry et al., NSDI 2017, section 6): a congestion control that sends at the rate granted by an allocator
 * while its lease is valid, and otherwise as the kernel's CUBIC.
 *
 * It reports flowlets. One starts when more than a short message has been written, and ends when all data is ACKed. Rates and
 * leases are in maps. If the process that writes them has failed, the lease still expires by the clock, at the next ACK. */
#include "connections.h"

#define SO_MAX_PACING_RATE 47
/* Bytes of headers: Ethernet, IPv4, and TCP with timestamps. */
#define ETHERNET_BYTES 14
#define HEADER_BYTES (ETHERNET_BYTES + 20 + 32)
/* Bytes by which a header of IPv6 is larger than one of IPv4. */
#define IPV6_MORE_BYTES 20
#define ERANGE 34
#define NO_PACE 0xffffffffU
#define TCP_CA_LOSS 4
#define TCP_CLOSE 7

enum kind { BEGINS, ENDS, LOSES, LEAVES };

/* Weights set for a connection, as binary logarithms with 32 fractional bits: by its program, for its control group,
 * and for its destination. */
struct asked {
	s64 log2_program;
	s64 log2_group;
	s64 log2_to;
	/* Number of the control group; 0 if it has no weight. */
	u64 group;
	/* Whether the program has set a weight. */
	u64 by_program;
};

/* An event for user space. */
struct event {
	u64 time_ns;
	u64 connection;
	struct asked asked;
	u32 kind;
	u32 host;
	__be32 to;
	/* Hash of both ports, which selects one of several paths. */
	u32 path;
	/* Number of packets recently sent at the granted rate, and number of packets lost among them. */
	u32 sent;
	u32 lost;
	struct ends ends;
};

/* State of a connection at its host. */
struct flow {
	u64 connection;
	struct asked asked;
	u32 host;
	/* Address of the other host: for IPv6 the IPv4 address under which the allocator knows it. */
	__be32 to;
	u32 path;
	/* Bytes by which headers are larger than those of IPv4. */
	u32 more_bytes;
	/* Largest rate that its program requested, payload bytes per second; 0 for no bound. */
	u32 own;
	/* Bytes written when all data was last ACKed; 0 if that never happened. */
	u32 from_seq;
	u32 seen;
	/* Whether the start of a flowlet was reported, but not yet its end. */
	u32 active;
	/* Whether RTOs have ended the flowlet: the next one begins after an ACK. */
	u32 stalled;
	/* Pacing rate set in the kernel, payload bytes per second; 0 without a granted rate. */
	u32 pace;
	/* Start of the present window in which losses are counted: its time, and the connection's counters at that time. */
	u64 counted_ns;
	u32 sent;
	u32 lost;
	struct ends ends;
};

/* State that remains in a socket when the agent ends, so that the next agent continues from it. It is in the private
 * memory of the congestion control, after the state of CUBIC. The kernel clears it when the socket gets another
 * congestion control. */
struct kept {
	u32 magic;
	u32 pace;
	u32 own;
	u32 by_program;
	s64 log2_program;
};

#define KEPT_MAGIC 0x5ba40002U
/* Offset of that state in the private memory, 8-byte words: CUBIC uses 60 bytes. */
#define KEPT_AT 10

/* Bytes that the paced connections of a host carried in one direction. */
struct carried {
	u64 bytes;
	/* Bytes of additional headers: one packet of the kernel may be several segments on the wire. */
	u64 more_bytes;
	u64 segments;
};

/* A granted rate on the wire, bytes per second, and the time after which it is void even if the host's lease
 * continues. */
struct grant {
	u64 rate;
	u64 until_ns;
};

/* Name of this congestion control. */
const volatile char own[16] = "flowtune";
/* Bytes after which a flowlet is reported. */
const volatile u32 shortest_bytes = 15000;
/* Smallest pacing rate, bytes per second: a packet's transmission time at it is a fraction of the lease. */
const volatile u32 least_pace = 30000;
/* Bounds of the weights that programs may set, with 16 fractional bits; an upper bound of 0 forbids it. */
const volatile u32 least_weight = 1;
const volatile u32 most_weight = 0xffffffffU;

/* Whether connections of unknown network namespaces, such as containers', are those of host 0. */
const volatile u32 containers = 0;

/* Time over which losses are counted before they are reported, ns. */
const volatile u64 window_ns = 100000000;

/* Lets user space read the layout of an event from the program's type information. */
const volatile struct event no_event = {};

/* Number of the host whose connections are iterated. */
u32 looked_at = 0;

u64 connections = 0;
u64 lost_events = 0;

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct flow);
} flows SEC(".maps");

/* Numbers of hosts, by the cookie of their network namespace. Other agents find the map by its name. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u32);
} subak_hosts SEC(".maps");

/* Cookies of the network namespaces that belong to hosts of other agents: not taken for containers. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, u32);
} others SEC(".maps");

/* Granted rates by connection. If there are too many, those used least recently are removed: these connections are
 * then no longer paced. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct grant);
} grants SEC(".maps");

/* Time at which the grants of a host expire, by its number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u64);
} leases SEC(".maps");

/* Bytes carried, by twice the host's number, plus 1 for incoming data. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, struct carried);
} carried SEC(".maps");

/* Address prefixes of hosts with agents: data from them is paced, and therefore not unscheduled. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct destination);
	__type(value, u32);
} partners SEC(".maps");

/* IPv6 prefix of a host. */
struct prefix {
	u32 bits;
	__be32 words[4];
};

/* IPv4 addresses under which the allocator knows the hosts of these prefixes. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix);
	__type(value, __be32);
} ipv6_hosts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 21);
} events SEC(".maps");

extern void cubictcp_init(struct sock *sk) __ksym;
extern u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern void cubictcp_state(struct sock *sk, u8 state) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

static __always_inline void tell_counted(const struct flow *flow, enum kind kind, u32 sent, u32 lost)
{
	struct event event = {
		.time_ns = bpf_ktime_get_ns(),
		.connection = flow->connection,
		.asked = flow->asked,
		.kind = kind,
		.host = flow->host,
		.to = flow->to,
		.path = flow->path,
		.sent = sent,
		.lost = lost,
		.ends = flow->ends,
	};

	if (bpf_ringbuf_output(&events, &event, sizeof(event), 0))
		__sync_fetch_and_add(&lost_events, 1);
}

static __always_inline void tell(const struct flow *flow, enum kind kind)
{
	tell_counted(flow, kind, 0, 0);
}

/* Counts the losses of a connection that sends at its granted rate. */
static __always_inline void count(struct tcp_sock *tp, struct flow *flow)
{
	u64 now_ns = bpf_ktime_get_ns();
	u32 sent = tp->data_segs_out, lost = tp->lost;

	if (now_ns < flow->counted_ns + window_ns)
		return;
	if (flow->pace && flow->active && flow->counted_ns && lost != flow->lost)
		tell_counted(flow, LOSES, sent - flow->sent, lost - flow->lost);
	flow->counted_ns = now_ns;
	flow->sent = sent;
	flow->lost = lost;
}

/* Reports the start or end of a flowlet. */
static __always_inline void look(struct tcp_sock *tp, struct flow *flow)
{
	u32 held = tp->write_seq - tp->snd_una;

	if (!held || !flow->seen) {
		flow->from_seq = tp->snd_una;
		flow->seen = 1;
	}
	if (!flow->active && !flow->stalled && tp->write_seq - flow->from_seq >= shortest_bytes) {
		flow->active = 1;
		tell(flow, BEGINS);
	} else if (flow->active && !held) {
		flow->active = 0;
		tell(flow, ENDS);
	}
}

/* Paces the connection at its granted rate; without a valid rate CUBIC takes control. */
static __always_inline void obey(struct sock *sk, struct tcp_sock *tp, struct flow *flow)
{
	u64 now_ns = bpf_ktime_get_ns(), mss = tp->mss_cache ? tp->mss_cache : 1448;
	u64 rtt_us = tp->srtt_us >> 3, packets;
	struct grant *grant = bpf_map_lookup_elem(&grants, &flow->connection);
	u64 *lease = bpf_map_lookup_elem(&leases, &flow->host);
	u64 most = sk->sk_max_pacing_rate;
	u32 pace;

	/* A different value was set by the program that owns the socket. */
	if (most != flow->pace)
		flow->own = most < NO_PACE ? most : 0;
	if (grant && lease && grant->rate && now_ns < *lease && now_ns < grant->until_ns) {
		u64 payload = grant->rate * mss / (mss + HEADER_BYTES + flow->more_bytes);

		pace = payload < least_pace ? least_pace : payload >= NO_PACE ? NO_PACE - 1 : (u32)payload;
		if (flow->own && pace > flow->own)
			pace = flow->own;
		if (pace != flow->pace && !bpf_setsockopt(sk, SOL_SOCKET, SO_MAX_PACING_RATE, &pace, sizeof(pace)))
			flow->pace = pace;
		/* The pacing rate limits sending, not the window: the window is twice the bytes of an RTT plus a host's response time. */
		packets = (u64)pace * (rtt_us + 4000) / 1000000 * 2 / mss + 10;
		tp->snd_cwnd = packets > 0xffff ? 0xffff : (u32)packets;
		return;
	}
	if (!flow->pace)
		return;
	/* The lease has expired: CUBIC continues from the last rate. */
	packets = (u64)flow->pace * rtt_us / 1000000 / mss;
	pace = flow->own ? flow->own : NO_PACE;
	if (bpf_setsockopt(sk, SOL_SOCKET, SO_MAX_PACING_RATE, &pace, sizeof(pace)))
		return;
	flow->pace = 0;
	cubictcp_init(sk);
	tp->snd_cwnd = packets < 4 ? 4 : packets > 0xffff ? 0xffff : (u32)packets;
	tp->snd_ssthresh = tp->snd_cwnd;
}

/* Saves the state for the next agent. */
static __always_inline void keep(struct sock *sk, const struct flow *flow)
{
	u64 *words = ((struct inet_connection_sock *)sk)->icsk_ca_priv;

	words[KEPT_AT] = KEPT_MAGIC | (u64)flow->pace << 32;
	words[KEPT_AT + 1] = flow->own | flow->asked.by_program << 32;
	words[KEPT_AT + 2] = flow->asked.log2_program;
}

SEC("struct_ops")
void BPF_PROG(flowtune_init, struct sock *sk)
{
	cubictcp_init(sk);
}

SEC("struct_ops")
void BPF_PROG(flowtune_event, struct sock *sk, enum tcp_ca_event event)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, NULL, 0);

	cubictcp_cwnd_event(sk, event);
	if (flow && event == CA_EVENT_TX_START) {
		look((struct tcp_sock *)sk, flow);
		obey(sk, (struct tcp_sock *)sk, flow);
		keep(sk, flow);
	}
}

SEC("struct_ops")
void BPF_PROG(flowtune_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, NULL, 0);

	cubictcp_acked(sk, sample);
	if (flow) {
		flow->stalled = 0;
		look((struct tcp_sock *)sk, flow);
		obey(sk, (struct tcp_sock *)sk, flow);
		keep(sk, flow);
		count((struct tcp_sock *)sk, flow);
	}
}

SEC("struct_ops")
void BPF_PROG(flowtune_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, NULL, 0);

	if (!flow || !flow->pace)
		cubictcp_cong_avoid(sk, ack, acked);
}

/* A connection with a granted rate keeps it after a loss, which other traffic causes. */
SEC("struct_ops")
u32 BPF_PROG(flowtune_ssthresh, struct sock *sk)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, NULL, 0);

	if (flow && flow->pace)
		return ((struct tcp_sock *)sk)->snd_cwnd;
	return cubictcp_recalc_ssthresh(sk);
}

SEC("struct_ops")
void BPF_PROG(flowtune_state, struct sock *sk, u8 state)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, NULL, 0);

	cubictcp_state(sk, state);
	/* Two RTOs without an ACK: the other host or the connection's own namespace is gone. Others get the share. */
	if (flow && flow->active && state == TCP_CA_LOSS && ((struct inet_connection_sock *)sk)->icsk_retransmits) {
		flow->active = 0;
		flow->stalled = 1;
		tell(flow, ENDS);
	}
}

SEC("struct_ops")
u32 BPF_PROG(flowtune_undo, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC("struct_ops")
void BPF_PROG(flowtune_release, struct sock *sk)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, NULL, 0);

	if (!flow)
		return;
	/* An open socket that releases it was given another congestion control. */
	if (flow->pace && sk->__sk_common.skc_state != TCP_CLOSE)
		tell(flow, LEAVES);
	else if (flow->active)
		tell(flow, ENDS);
	flow->active = 0;
	/* What it sends from now on is unscheduled. */
	flow->pace = 0;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops flowtune = {
	.init = (void *)flowtune_init,
	.cwnd_event = (void *)flowtune_event,
	.pkts_acked = (void *)flowtune_acked,
	.cong_avoid = (void *)flowtune_avoid,
	.ssthresh = (void *)flowtune_ssthresh,
	.set_state = (void *)flowtune_state,
	.undo_cwnd = (void *)flowtune_undo,
	.release = (void *)flowtune_release,
	/* Other network namespaces may choose this congestion control too. */
	.flags = 1,
	.name = "flowtune",
};

/* Assigns a number to a connection and initializes its state. */
static __always_inline void enter(struct flow *flow, u32 host, __be32 to, u32 ports)
{
	flow->connection = __sync_fetch_and_add(&connections, 1) + 1;
	flow->host = host;
	flow->to = to;
	/* Fibonacci hashing. */
	flow->path = ports * 2654435769U;
	flow->active = 0;
	flow->stalled = 0;
	flow->seen = 0;
	flow->pace = 0;
}

/* IPv4 address under which the allocator knows the host of an IPv6 address; 0 if it has none. */
static __always_inline __be32 known_as(__be32 a, __be32 b, __be32 c, __be32 d)
{
	struct prefix prefix = { .bits = 128, .words = { a, b, c, d } };
	__be32 *address = bpf_map_lookup_elem(&ipv6_hosts, &prefix);

	return address ? *address : 0;
}

/* Whether the connections of a namespace are those of one of this agent's hosts. */
static __always_inline bool is_own(u64 cookie)
{
	if (bpf_map_lookup_elem(&subak_hosts, &cookie))
		return true;
	return containers && !bpf_map_lookup_elem(&others, &cookie);
}

/* Handles an established connection of one of the hosts. */
SEC("sockops")
int flowtune_sockets(struct bpf_sock_ops *ops)
{
	struct destination to = { .bits = 32 };
	struct bpf_sock *sk;
	struct flow *flow;
	u32 *host, ports;
	u64 cookie;
	s64 *weight;
	bool four;

	if (ops->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && ops->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	cookie = bpf_get_netns_cookie(ops);
	host = bpf_map_lookup_elem(&subak_hosts, &cookie);
	sk = ops->sk;
	if (!is_own(cookie) || !sk)
		return 1;
	four = is_ipv4(ops);
	to.address = four ? remote_ipv4(ops)
			  : known_as(REMOTE_WORD(ops, 0), REMOTE_WORD(ops, 1), REMOTE_WORD(ops, 2), REMOTE_WORD(ops, 3));
	if (!to.address)
		return 1;
	flow = bpf_sk_storage_get(&flows, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!flow)
		return 1;
	flow->more_bytes = four ? 0 : IPV6_MORE_BYTES;
	find_ends(&flow->ends, ops);
	ports = ops->local_port << 16 ^ bpf_ntohl(ops->remote_port);
	enter(flow, host ? *host : 0, to.address, ports);
	weight = bpf_map_lookup_elem(&destinations, &to);
	if (weight)
		flow->asked.log2_to = *weight;
	CHOOSE(ops, own);
	return 1;
}

#define TCP_ESTABLISHED 1
#define TCP_FIN_WAIT1 4
#define TCP_CLOSE_WAIT 8

/* Selects this congestion control for a connection that existed before the agent, and restores the connection's
 * state. */
SEC("iter/tcp")
int flowtune_present(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct destination to = { .bits = 32 };
	struct tcp_sock *tp;
	struct sock *sk;
	struct kept kept = {};
	struct flow *flow;
	s64 *weight, *by_group;
	u32 more_bytes = 0;
	__be32 *words;
	u64 group;

	if (!common)
		return 0;
	if (common->skc_state != TCP_ESTABLISHED && common->skc_state != TCP_CLOSE_WAIT &&
	    common->skc_state != TCP_FIN_WAIT1)
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp)
		return 0;
	words = common->skc_v6_daddr.in6_u.u6_addr32;
	if (common->skc_family == AF_INET) {
		to.address = common->skc_daddr;
	} else if (common->skc_family == AF_INET6 && IS_MAPPED(words)) {
		to.address = words[3];
	} else if (common->skc_family == AF_INET6) {
		to.address = known_as(words[0], words[1], words[2], words[3]);
		more_bytes = IPV6_MORE_BYTES;
	}
	if (!to.address)
		return 0;
	flow = bpf_sk_storage_get(&flows, tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	/* The connection is newer than the agent. */
	if (!flow || flow->connection)
		return 0;
	flow->more_bytes = more_bytes;
	if (common->skc_family == AF_INET) {
		map_ipv4(flow->ends.local, common->skc_rcv_saddr);
		map_ipv4(flow->ends.remote, common->skc_daddr);
	} else {
		for (int i = 0; i < 4; i++) {
			flow->ends.local[i] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
			flow->ends.remote[i] = words[i];
		}
	}
	flow->ends.local_port = common->skc_num;
	flow->ends.remote_port = bpf_ntohs(common->skc_dport);
	enter(flow, looked_at, to.address, common->skc_num << 16 ^ bpf_ntohs(common->skc_dport));
	sk = &tp->inet_conn.icsk_inet.sk;
	group = sk->sk_cgrp_data.cgroup->kn->id;
	by_group = bpf_map_lookup_elem(&groups, &group);
	if (by_group) {
		flow->asked.group = group;
		flow->asked.log2_group = *by_group;
	}
	weight = bpf_map_lookup_elem(&destinations, &to);
	if (weight)
		flow->asked.log2_to = *weight;
	bpf_core_read(&kept, sizeof(kept), &tp->inet_conn.icsk_ca_priv[KEPT_AT]);
	if (kept.magic == KEPT_MAGIC) {
		flow->own = kept.own;
		/* If the values differ, the connection's program has changed the pacing rate since. */
		if (sk->sk_max_pacing_rate == kept.pace)
			flow->pace = kept.pace;
		flow->asked.by_program = kept.by_program;
		flow->asked.log2_program = kept.log2_program;
	}
	CHOOSE(tp, own);
	return 0;
}

/* Counts one packet of the kernel, which may be several segments on the wire. */
static __always_inline void carry(struct __sk_buff *skb, const struct flow *flow, u32 place)
{
	struct carried *sum = bpf_map_lookup_elem(&carried, &place);
	u32 segments = skb->gso_segs > 1 ? skb->gso_segs : 1;

	if (!sum)
		return;
	__sync_fetch_and_add(&sum->bytes, skb->len + ETHERNET_BYTES);
	__sync_fetch_and_add(&sum->more_bytes, (u64)(segments - 1) * (HEADER_BYTES + flow->more_bytes));
	__sync_fetch_and_add(&sum->segments, segments);
}

static __always_inline struct flow *flow_of(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;

	sk = sk ? bpf_sk_fullsock(sk) : NULL;
	return sk ? bpf_sk_storage_get(&flows, sk, NULL, 0) : NULL;
}

/* Counts data of flowlets that the allocator knows: the rest of the device's traffic is unscheduled. */
SEC("cgroup_skb/egress")
int flowtune_out(struct __sk_buff *skb)
{
	struct flow *flow = flow_of(skb);

	if (flow && (flow->active || flow->pace))
		carry(skb, flow, 2 * flow->host);
	return 1;
}

/* Counts incoming data of connections to hosts with agents. */
SEC("cgroup_skb/ingress")
int flowtune_into(struct __sk_buff *skb)
{
	struct destination from = { .bits = 32 };
	struct flow *flow = flow_of(skb);

	if (!flow || !flow->connection)
		return 1;
	from.address = flow->to;
	if (bpf_map_lookup_elem(&partners, &from))
		carry(skb, flow, 2 * flow->host + 1);
	return 1;
}

/* A new socket gets the weight of the control group that creates it. */
SEC("cgroup/sock_create")
int flowtune_created(struct bpf_sock *sk)
{
	u64 group = bpf_get_current_cgroup_id();
	s64 *weight = bpf_map_lookup_elem(&groups, &group);
	struct flow *flow = weight ? bpf_sk_storage_get(&flows, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE) : NULL;

	if (flow) {
		flow->asked.log2_group = *weight;
		flow->asked.group = group;
	}
	return 1;
}

/* Handles two options of the program that owns the socket. A weight has 16 fractional bits; an active flowlet is
 * reported again, with the new weight. Another congestion control is refused for a connection of this one. */
SEC("cgroup/setsockopt")
int flowtune_weight(struct bpf_sockopt *asked)
{
	u32 *weight = asked->optval;
	struct flow *flow;
	u64 cookie;

	if (asked->level != SOL_TCP || (asked->optname != SUBAK_WEIGHT && asked->optname != TCP_CONGESTION))
		return 1;
	cookie = bpf_get_netns_cookie(asked);
	/* A namespace of no host of this agent has rules of its own. */
	if (!is_own(cookie))
		return 1;
	if (asked->optname == TCP_CONGESTION) {
		flow = asked->sk ? bpf_sk_storage_get(&flows, asked->sk, NULL, 0) : NULL;
		return !flow || !flow->connection;
	}
	if ((void *)(weight + 1) > asked->optval_end || !*weight || !asked->sk)
		return 0;
	/* 0 forbids weights set by programs. */
	if (!most_weight)
		return 0;
	if (*weight < least_weight || *weight > most_weight) {
		bpf_set_retval(-ERANGE);
		return 0;
	}
	flow = bpf_sk_storage_get(&flows, asked->sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!flow)
		return 0;
	flow->asked.log2_program = log2_of(*weight) - 16 * ONE;
	flow->asked.by_program = 1;
	if (flow->active)
		tell(flow, BEGINS);
	/* The option is handled here, and not passed to the kernel. */
	asked->optlen = -1;
	return 1;
}

char _license[] SEC("license") = "GPL";
