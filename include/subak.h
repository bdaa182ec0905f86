/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of TCP connections, for programs on hosts that run Soze (`subak-agent soze`, `subak testbed up --scheme`)
 * or Flowtune (`subak-agent flowtune`). */
#ifndef SUBAK_H
#define SUBAK_H

#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

/* Socket option of level IPPROTO_TCP, handled by an eBPF program. Value: the weight, unsigned 32 bits, 16 of them
 * fractional. */
#define SUBAK_TCP_WEIGHT 0x5a01

/* Sets the weight of a TCP connection, from 1/65536 to 65535. It applies at once to an established connection,
 * otherwise once the connection is established. Connections accepted by a listening socket start with its weight.
 *
 * Returns 0, or -1 with errno: EINVAL for an invalid weight; ENOPROTOOPT on a host without Soze and Flowtune. Under
 * Flowtune also ERANGE for a weight outside the operator's bounds, and EPERM if programs may not set weights. */
static inline int subak_set_weight(int connection, double weight)
{
	uint32_t value;

	if (!(weight >= 1.0 / 65536 && weight <= 65535)) {
		errno = EINVAL;
		return -1;
	}
	value = (uint32_t)(weight * 65536 + 0.5);
	return setsockopt(connection, IPPROTO_TCP, SUBAK_TCP_WEIGHT, &value, sizeof(value));
}

#endif
