/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The TCP option that carries delays: kind (for experiments), length, magic, delay there and delay back. */
#pragma once

#include "fixed.h"

#include <bpf/bpf_endian.h>

#define OPTION_KIND 253
#define OPTION_BYTES 8
#define MAGIC_FIRST 0x53
#define MAGIC_SECOND 0x7a
/* Nobody has told a delay. */
#define UNTOLD 0xffff

struct option {
	u8 kind;
	u8 bytes;
	u8 magic[2];
	/* The largest that the path has told so far, and what the path back had told, in units of the law. */
	__be16 there;
	__be16 back;
};
