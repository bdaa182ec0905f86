/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Common parts of the programs that handle a host's connections: weights, addresses, and selection of a congestion
 * control. */
#pragma once

#include "fixed.h"

#include <bpf/bpf_endian.h>

#define SOL_SOCKET 1
#define SOL_TCP 6
#define TCP_CONGESTION 13
#define AF_INET 2
#define AF_INET6 10

/* Private socket option that sets a weight with 16 fractional bits. */
#define SUBAK_WEIGHT 0x5a01

/* Key of a weight by destination: an IPv4 prefix. */
struct destination {
	u32 bits;
	__be32 address;
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct destination);
	__type(value, s64);
} destinations SEC(".maps");

/* Weights by control group, as binary logarithms with 32 fractional bits. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, s64);
} groups SEC(".maps");

/* Both ends of a connection. IPv4 addresses are IPv4-mapped IPv6 ones, ports are in the host's byte order. */
struct ends {
	__be32 local[4];
	__be32 remote[4];
	u16 local_port;
	u16 remote_port;
	u32 unused;
};

/* Switches a connection to this congestion control. It is a macro, since each kind of program has its own type of socket. */
#define CHOOSE(of, name)                                                                           \
	({                                                                                         \
		char chosen[16];                                                                   \
		for (int i = 0; i < 16; i++)                                                       \
			chosen[i] = (name)[i];                                                     \
		bpf_setsockopt(of, SOL_TCP, TCP_CONGESTION, chosen, sizeof(chosen));               \
	})

/* Whether an IPv6 address is an IPv4-mapped one. */
#define IS_MAPPED(words) (!(words)[0] && !(words)[1] && (words)[2] == bpf_htonl(0xffff))

/* Whether the connection uses IPv4, with an IPv4 or an IPv6 socket. */
static __always_inline bool is_ipv4(const struct bpf_sock_ops *ops)
{
	if (ops->family == AF_INET)
		return true;
	return ops->family == AF_INET6 && IS_MAPPED(ops->remote_ip6);
}

/* Remote address of an IPv4 connection. Both words are read: the verifier refuses a context offset that depends on
 * the family. */
static __always_inline __be32 remote_ipv4(const struct bpf_sock_ops *ops)
{
	__be32 one = *(const volatile __u32 *)&ops->remote_ip4, other = *(const volatile __u32 *)&ops->remote_ip6[3];

	return ops->family == AF_INET ? one : other;
}

/* A word of an IPv6 address, read at a constant offset of the context, as the verifier requires. */
#define LOCAL_WORD(ops, k) (*(const volatile __u32 *)&(ops)->local_ip6[k])
#define REMOTE_WORD(ops, k) (*(const volatile __u32 *)&(ops)->remote_ip6[k])

/* Stores an IPv4 address as an IPv4-mapped IPv6 one. */
static __always_inline void map_ipv4(__be32 *words, __be32 address)
{
	words[0] = 0;
	words[1] = 0;
	words[2] = bpf_htonl(0xffff);
	words[3] = address;
}

/* Stores both ends of an established connection. */
static __always_inline void find_ends(struct ends *ends, const struct bpf_sock_ops *ops)
{
	__be32 local = *(const volatile __u32 *)&ops->local_ip4, remote = *(const volatile __u32 *)&ops->remote_ip4;

	if (ops->family == AF_INET) {
		map_ipv4(ends->local, local);
		map_ipv4(ends->remote, remote);
	} else {
		ends->local[0] = LOCAL_WORD(ops, 0);
		ends->local[1] = LOCAL_WORD(ops, 1);
		ends->local[2] = LOCAL_WORD(ops, 2);
		ends->local[3] = LOCAL_WORD(ops, 3);
		ends->remote[0] = REMOTE_WORD(ops, 0);
		ends->remote[1] = REMOTE_WORD(ops, 1);
		ends->remote[2] = REMOTE_WORD(ops, 2);
		ends->remote[3] = REMOTE_WORD(ops, 3);
	}
	ends->local_port = ops->local_port;
	ends->remote_port = bpf_ntohl(ops->remote_port);
}
