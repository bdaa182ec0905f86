/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of connections, for applications on hosts that share by Soze (`subak-agent soze`, `subak testbed up --scheme`). */
#ifndef SUBAK_H
#define SUBAK_H

#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

/* The option of level IPPROTO_TCP that a program in the kernel hears: an unsigned number of 32 bits, of which 16 stand after
 * the point. */
#define SUBAK_TCP_WEIGHT 0x5a01

/* Gives a TCP connection a weight above 0, up to 65535: at once if it is connected, and otherwise from its begin on. What a
 * listening socket has, the connections that it accepts begin with.
 *
 * Returns 0, or -1 with errno: EINVAL for a weight that is none, ENOPROTOOPT on a host that does not share by Soze. */
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
