/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The TCP option that carries delays: kind (experimental), length, magic, largest delay on this segment's path so
 * far, and echoed delay of the reverse path. */
#pragma once

#include "fixed.h"

#include <bpf/bpf_endian.h>

#define OPTION_KIND 253
#define OPTION_BYTES 8
#define MAGIC_FIRST 0x53
#define MAGIC_SECOND 0x7a
/* No switch has written a delay. */
#define UNTOLD 0xffff

struct option {
	u8 kind;
	u8 bytes;
	u8 magic[2];
	/* Largest delay of this path so far, and the echoed delay of the reverse path, in the option field's unit. */
	__be16 there;
	__be16 back;
};
