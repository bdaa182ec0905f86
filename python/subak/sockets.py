"""Weights of connections, for applications on hosts that run Soze or Flowtune."""

from __future__ import annotations

import errno
import math
import socket
import struct

TCP_WEIGHT = 0x5A01
"""The socket option (level ``IPPROTO_TCP``) that sets a weight: an unsigned 32-bit number with 16 fractional bits."""
ONE = 1 << 16


def set_weight(connection: socket.socket, weight: float) -> None:
    """Sets the weight of a TCP connection, above 0 and up to 65535: now, or from its start if not connected.

    Connections that a listening socket accepts inherit its weight. Raises ``ValueError`` for an invalid weight, and
    ``OSError`` on a host whose connections do not run Soze (``subak-agent soze``, ``subak testbed up --scheme``).
    """
    if not (math.isfinite(weight) and 1 / ONE <= weight <= 65535):
        raise ValueError(f"the weight is {weight}; give one above 0, up to 65535")
    value = struct.pack("=I", round(weight * ONE))
    try:
        connection.setsockopt(socket.IPPROTO_TCP, TCP_WEIGHT, value)
    except OSError as error:
        if error.errno != errno.ENOPROTOOPT:
            raise
        raise OSError(error.errno, "this host does not share by Soze: start `subak-agent soze` first") from None
