/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Soze at a host (Wang and Ng, Soze, section 3): a congestion control whose window or pacing rate follows the
 * largest delay of the path. Both are stored as the logarithm of a rate; for a window it is the window divided by
 * the last RTT.
 *
 * Every segment has an option of 8 bytes. It holds the largest delay on the path so far, which switches raise, and
 * the echoed delay of the reverse path. If a connection's segments arrive without the option for some time, the
 * connection uses the kernel's own congestion control until the option returns. */
#include "connections.h"
#include "option.h"

#include <stddef.h>

#define ERANGE 34
#define SK_PACING_NEEDED 1
#define TCP_CA_LOSS 4
#define TCP_FIN_WAIT2 5
#define TCP_CLOSE 7
#define NSEC_PER_SEC 1000000000ULL

/* Bytes of headers on the wire: Ethernet, IPv4, TCP, and the option. */
#define HEADER_BYTES (14 + 20 + 20 + OPTION_BYTES)

/* State of a connection at its host. */
struct flow {
	s64 log2_rate;
	s64 log2_weight;
	u64 updated_ns;
	/* The RTT by which the window is converted to a rate. */
	u64 rtt_ns;
	/* Time at which the option last arrived. */
	u64 heard_ns;
	/* Time of the first segment without the option since then; 0 if all had it. */
	u64 missing_ns;
	/* Delay of the forward path as echoed, and of the reverse path as measured, in the option field's unit. */
	u32 there;
	u32 back;
	u32 fresh;
	u32 started;
	/* Whether the kernel's own congestion control is in use. */
	u32 given_up;
	u32 updates;
	/* Whether its program or its control group has set a weight. */
	u32 weighted;
	/* Accumulated remainder from rounding the window to whole packets; a packet is 2^16. */
	u32 left_out;
	/* Number of the connection; 0 if it is no connection of a host. */
	u64 connection;
	struct ends ends;
	/* Whether the last event told a weight, and whether the connection sends no more. */
	u32 logged;
	u32 over;
};

/* A weight of a connection, for the log. */
struct weight_set {
	/* Time by the monotonic clock. */
	u64 time_ns;
	u64 connection;
	s64 log2_weight;
	struct ends ends;
	/* Whether the weight applies no more. */
	u32 over;
	u32 unused;
};

/* Settings of all connections of a host. */
struct host {
	struct law law;
};

/* Time without the option after which a connection uses the kernel's own congestion control, ns. */
const volatile u64 patience_ns = 500000000;
/* Names of congestion controls: this one, and the kernel's own. */
const volatile char own[16] = "soze";
const volatile char other[16] = "cubic";
/* Whether every connection of the hosts uses Soze; otherwise only those that select it by name. */
const volatile u32 all = 0;
/* Bounds of the weights that programs may set, with 16 fractional bits. */
const volatile u32 least_weight = 1;
const volatile u32 most_weight = 0xffffffffU;
/* Whether weights are logged. */
const volatile u32 logs = 0;
/* Lets user space read the layout of an event from the program's type information. */
const volatile struct weight_set no_weight = {};

u64 connections = 0;
/* Number of events that found no room. */
u64 lost_weights = 0;

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	/* A connection inherits the state of its listening socket, and with it the weight. */
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct flow);
} flows SEC(".maps");

/* Settings by the cookie of a network namespace. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, struct host);
} subak_hosts SEC(".maps");

/* Settings of the namespace in which a socket was created. Congestion controls cannot look them up, so that the socket's first
 * callback stores them. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct law);
} laws SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} weights_set SEC(".maps");

static __always_inline struct weight_set weight_now(const struct flow *flow)
{
	struct weight_set set = {
		.time_ns = bpf_ktime_get_ns(),
		.connection = flow->connection,
		.log2_weight = flow->log2_weight,
		.ends = flow->ends,
		.over = !flow->logged,
	};

	return set;
}

/* Tells user space the weight of a connection, or that it applies no more. A connection that has sent no data has
 * told none. */
static __always_inline void tell_weight(struct flow *flow, bool over)
{
	struct weight_set set;

	if (!logs || !flow->connection || flow->over || (over && !flow->logged))
		return;
	flow->logged = !over;
	set = weight_now(flow);
	if (bpf_ringbuf_output(&weights_set, &set, sizeof(set), 0))
		__sync_fetch_and_add(&lost_weights, 1);
}

static __always_inline u64 rtt_ns_of(struct tcp_sock *tp)
{
	u64 rtt_us = tp->srtt_us >> 3;

	return rtt_us ? rtt_us * 1000 : 1000000;
}

/* Handles a segment without a delay. Returns whether the connection must now use the kernel's own congestion
 * control. */
static __always_inline bool misses(struct flow *flow, u64 now_ns)
{
	if (!flow->missing_ns)
		flow->missing_ns = now_ns;
	if (flow->given_up || now_ns - flow->missing_ns <= patience_ns)
		return false;
	flow->given_up = 1;
	return true;
}

/* Sets the window in packets, without pacing. The remainder of rounding is added at a later ACK. If the queueing
 * delay is below k, the window is larger by the rate times k. Otherwise a single flow would have one or two packets
 * in flight, and wait for delayed ACKs. */
static __always_inline void allow(struct sock *sk, struct tcp_sock *tp, const struct law *law, struct flow *flow, u64 payload)
{
	u64 mss = tp->mss_cache ? tp->mss_cache : 1448, rtt_ns = flow->rtt_ns, packets, whole;

	if (flow->there << (law->unit_shift & 31) < law->k_ns)
		rtt_ns += law->k_ns;
	packets = ((payload * (rtt_ns >> 10) / (NSEC_PER_SEC >> 10)) << 16) / mss + flow->left_out;
	whole = packets >> 16;
	flow->left_out = packets & 0xffff;
	tp->snd_cwnd = whole > 0xffff ? 0xffff : whole ? (u32)whole : 1;
	/* The kernel derives the size of segment bursts from this rate. */
	sk->sk_pacing_rate = 2 * payload + 1;
}

/* Sets the window, or the pacing rate in the kernel's unit: payload bytes per second. */
static __always_inline void pace(struct sock *sk, struct tcp_sock *tp, const struct law *law, struct flow *flow)
{
	u64 wire = exp2_of(flow->log2_rate) >> 19, rtt_ns = rtt_ns_of(tp), window;
	u64 mss = tp->mss_cache ? tp->mss_cache : 1448;
	u64 payload = wire * mss / (mss + HEADER_BYTES - OPTION_BYTES);

	if (law->window) {
		allow(sk, tp, law, flow, payload);
		return;
	}
	window = wire * ((rtt_ns + law->longest_ns) >> 10) / (NSEC_PER_SEC >> 10) * 2 / mss + 2;

	sk->sk_pacing_status = SK_PACING_NEEDED;
	sk->sk_pacing_rate = payload ? payload : 1;
	/* Bytes in flight are limited to twice the BDP at the longest delay, for paths that no longer respond. */
	tp->snd_cwnd = window > 0xffff ? 0xffff : (u32)window;
}

SEC("struct_ops")
void BPF_PROG(soze_init, struct sock *sk)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	struct law *law = bpf_sk_storage_get(&laws, sk, NULL, 0);

	if (flow && law) {
		flow->log2_rate = clamp(law->log2_start + flow->log2_weight, 0, law->log2_most);
		flow->updated_ns = bpf_ktime_get_ns();
		flow->rtt_ns = rtt_ns_of((struct tcp_sock *)sk);
		flow->started = 1;
		pace(sk, (struct tcp_sock *)sk, law, flow);
	}
}

SEC("struct_ops")
void BPF_PROG(soze_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *flow = bpf_sk_storage_get(&flows, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	struct law *law = bpf_sk_storage_get(&laws, sk, NULL, 0);
	u64 now_ns = bpf_ktime_get_ns(), rtt_ns;

	if (!flow || !law)
		return;
	/* It is one that was given this congestion control during a transfer. */
	if (!flow->logged)
		tell_weight(flow, false);
	rtt_ns = rtt_ns_of(tp);
	if (law->window) {
		if (rs->rtt_us > 0)
			rtt_ns = (u64)rs->rtt_us * 1000;
		if (flow->started)
			flow->log2_rate = keep_window(flow->log2_rate, flow->rtt_ns, rtt_ns);
		flow->rtt_ns = rtt_ns;
	}
	if (!flow->started) {
		flow->log2_rate = law->log2_start + flow->log2_weight;
		flow->updated_ns = now_ns;
		flow->started = 1;
	} else if (flow->fresh) {
		u64 rtts = rtts_of(now_ns - flow->updated_ns, rtt_ns);

		flow->log2_rate = next_rate(law, flow->log2_rate, flow->log2_weight, flow->there << (law->unit_shift & 31), rtts);
		flow->updated_ns = now_ns;
		flow->updates++;
		flow->fresh = 0;
	} else if (misses(flow, now_ns)) {
		/* Segments without any option do not call read_option. */
		CHOOSE(sk, other);
		return;
	}
	flow->log2_rate = bound_rate(law, flow->log2_rate, flow->log2_weight, rtt_ns);
	pace(sk, tp, law, flow);
}

/* A loss changes neither window nor pacing rate, since delays already show congestion. An RTO does (soze_state). */
SEC("struct_ops")
u32 BPF_PROG(soze_ssthresh, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

SEC("struct_ops")
u32 BPF_PROG(soze_undo, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

SEC("struct_ops")
void BPF_PROG(soze_state, struct sock *sk, u8 state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *flow = bpf_sk_storage_get(&flows, sk, NULL, 0);
	struct law *law = bpf_sk_storage_get(&laws, sk, NULL, 0);

	if (state == TCP_CA_LOSS && flow && law) {
		flow->log2_rate = bound_rate(law, flow->log2_rate - ONE, flow->log2_weight, law->window ? flow->rtt_ns : rtt_ns_of(tp));
		pace(sk, tp, law, flow);
	}
}

SEC("struct_ops")
void BPF_PROG(soze_event, struct sock *sk, enum tcp_ca_event event)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, NULL, 0);

	if (flow && event == CA_EVENT_TX_START && !flow->logged)
		tell_weight(flow, false);
}

/* The connection has ended, or was given another congestion control. */
SEC("struct_ops")
void BPF_PROG(soze_release, struct sock *sk)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, NULL, 0);

	if (flow)
		tell_weight(flow, true);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops soze = {
	.init = (void *)soze_init,
	.cong_control = (void *)soze_control,
	.ssthresh = (void *)soze_ssthresh,
	.undo_cwnd = (void *)soze_undo,
	.set_state = (void *)soze_state,
	.cwnd_event = (void *)soze_event,
	.release = (void *)soze_release,
	/* Other network namespaces may choose this congestion control too. */
	.flags = 1,
	.name = "soze",
};

/* An established connection gets the settings of its namespace, its weight, and the option from now on. */
static __always_inline void begin(struct bpf_sock_ops *ops)
{
	u64 cookie = bpf_get_netns_cookie(ops);
	struct host *host = bpf_map_lookup_elem(&subak_hosts, &cookie);
	struct bpf_sock *sk = ops->sk;
	struct destination to = { .bits = 32 };
	struct law *law;
	struct flow *flow;
	s64 *weight;

	if (!host || !sk || !is_ipv4(ops))
		return;
	law = bpf_sk_storage_get(&laws, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	flow = bpf_sk_storage_get(&flows, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!law || !flow)
		return;
	*law = host->law;
	flow->heard_ns = bpf_ktime_get_ns();
	flow->back = UNTOLD;
	flow->connection = __sync_fetch_and_add(&connections, 1) + 1;
	find_ends(&flow->ends, ops);
	flow->logged = 0;
	flow->over = 0;
	to.address = remote_ipv4(ops);
	weight = bpf_map_lookup_elem(&destinations, &to);
	if (weight && !flow->weighted)
		flow->log2_weight = *weight;
	bpf_sock_ops_cb_flags_set(ops, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_PARSE_ALL_HDR_OPT_CB_FLAG |
					       (logs ? BPF_SOCK_OPS_STATE_CB_FLAG : 0));
	if (all)
		CHOOSE(ops, own);
}

static __always_inline void read_option(struct bpf_sock_ops *ops, struct flow *flow)
{
	struct option option = { .kind = OPTION_KIND, .bytes = 4, .magic = { MAGIC_FIRST, MAGIC_SECOND } };
	u64 now_ns = bpf_ktime_get_ns();

	if (bpf_load_hdr_opt(ops, &option, sizeof(option), 0) == OPTION_BYTES) {
		flow->back = bpf_ntohs(option.there);
		if (option.back != UNTOLD) {
			flow->there = bpf_ntohs(option.back);
			flow->fresh = 1;
			flow->heard_ns = now_ns;
			flow->missing_ns = 0;
			if (flow->given_up) {
				flow->given_up = 0;
				flow->started = 0;
				CHOOSE(ops, own);
			}
			return;
		}
	}
	/* The path removes the option, or has no switch that writes delays. */
	if (misses(flow, now_ns))
		CHOOSE(ops, other);
}

static __always_inline void write_option(struct bpf_sock_ops *ops, const struct flow *flow)
{
	struct option option = {
		.kind = OPTION_KIND,
		.bytes = OPTION_BYTES,
		.magic = { MAGIC_FIRST, MAGIC_SECOND },
		.there = UNTOLD,
		.back = UNTOLD,
	};

	option.back = bpf_htons((u16)flow->back);
	bpf_store_hdr_opt(ops, &option, sizeof(option), 0);
}

/* State of a connection of one of these hosts; NULL for other connections, for which the program may be called too. */
static __always_inline struct flow *own_flow(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;

	return sk && bpf_sk_storage_get(&laws, sk, NULL, 0) ? bpf_sk_storage_get(&flows, sk, NULL, 0) : NULL;
}

SEC("sockops")
int soze_sockets(struct bpf_sock_ops *ops)
{
	struct flow *flow;

	switch (ops->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		begin(ops);
		return 1;
	case BPF_SOCK_OPS_STATE_CB:
		/* All its data is ACKed. The kernel may release the socket much later. */
		flow = ops->args[1] == TCP_CLOSE || ops->args[1] == TCP_FIN_WAIT2 ? own_flow(ops) : NULL;
		if (flow) {
			tell_weight(flow, true);
			flow->over = 1;
		}
		return 1;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		break;
	default:
		return 1;
	}
	flow = own_flow(ops);
	if (!flow)
		return 1;
	if (ops->op == BPF_SOCK_OPS_HDR_OPT_LEN_CB)
		bpf_reserve_hdr_opt(ops, OPTION_BYTES, 0);
	else if (ops->op == BPF_SOCK_OPS_PARSE_HDR_OPT_CB)
		read_option(ops, flow);
	else
		write_option(ops, flow);
	return 1;
}

/* A new socket gets the weight of the control group that creates it. */
SEC("cgroup/sock_create")
int soze_created(struct bpf_sock *sk)
{
	u64 group = bpf_get_current_cgroup_id();
	s64 *weight = bpf_map_lookup_elem(&groups, &group);
	struct flow *flow = weight ? bpf_sk_storage_get(&flows, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE) : NULL;

	if (flow) {
		flow->log2_weight = *weight;
		flow->weighted = 1;
	}
	return 1;
}

/* A weight set by the program that owns the socket. It applies at once. */
SEC("cgroup/setsockopt")
int soze_weight(struct bpf_sockopt *asked)
{
	u32 *weight = asked->optval;
	struct law *law;
	struct flow *flow;
	u64 cookie;
	s64 before;

	if (asked->level != SOL_TCP || asked->optname != SUBAK_WEIGHT)
		return 1;
	cookie = bpf_get_netns_cookie(asked);
	/* A namespace of no host of this agent has rules of its own. */
	if (!bpf_map_lookup_elem(&subak_hosts, &cookie))
		return 1;
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
	law = bpf_sk_storage_get(&laws, asked->sk, NULL, 0);
	if (!flow)
		return 0;
	before = flow->log2_weight;
	flow->log2_weight = log2_of(*weight) - 16 * ONE;
	flow->weighted = 1;
	if (flow->logged)
		tell_weight(flow, false);
	if (law && law->exact && flow->started)
		flow->log2_rate += flow->log2_weight - before;
	/* The option is handled here, and not passed to the kernel. */
	asked->optlen = -1;
	return 1;
}

/* Writes the weights that apply, for a log that lacks events. */
SEC("iter/tcp")
int soze_present(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct weight_set set;
	struct tcp_sock *tp;
	struct flow *flow;

	if (!common)
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp)
		return 0;
	flow = bpf_sk_storage_get(&flows, tp, NULL, 0);
	if (!flow || !flow->logged)
		return 0;
	set = weight_now(flow);
	bpf_seq_write(ctx->meta->seq, &set, sizeof(set));
	return 0;
}

char _license[] SEC("license") = "GPL";
