"""Base classes and queues for a scheme of your own; :doc:`the page on writing one <writing>` has an example.

The simulator calls only the hooks that a class defines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from subak._subak import Ack, Flow, Io, Loss, Message, Packet, Path, Port, Visit

Unit = Literal["", "packets", "bytes", "s", "bit/s", "flag"] | tuple[str, ...]
"""Unit of a parameter; or, for a parameter with words as values, the valid words."""


class Fifo:
    """Drop-tail FIFO. A data packet that arrives at a queue of ``mark`` or more gets an ECN mark.

    :param mark: A number of full packets at 10 Gb/s, or the name of a parameter in packets or bytes. A number of
        packets is scaled by the link's capacity, to at least two; bytes are the same at every link.
    """

    def __init__(self, *, mark: float | str | None = None) -> None:
        self.mark = mark


class Priority:
    """Strict priority queueing: packets of class ``control`` before ``high`` before ``low``."""


class Rank:
    """Queue that sends the packet of the smallest rank first and, if full, drops that of the largest.

    The rank is ``packet[0]``.
    """


class Stfq:
    """Start-time fair queueing (STFQ). ``packet[0]`` is the packet's length divided by its flow's weight."""


class FairCodel:
    """Fair queues, each under CoDel (RFC 8290).

    :param target: Queueing delay that CoDel accepts, such as ``"1ms"``; 0: a twentieth of the interval.
    :param interval: Time above the target after which CoDel drops packets; 0: the network's longest RTT.
    :param bins: Number of queues; a hash of the flow selects its queue.
    :param quantum: Bytes that a queue may send in each round; 0: one packet.
    """

    def __init__(
        self, *, target: str | float = "5ms", interval: str | float = "100ms", bins: int = 1024, quantum: int = 1514
    ) -> None:
        self.target, self.interval, self.bins, self.quantum = target, interval, bins, quantum


class Recovery:
    """Detection of lost segments.

    :param reorder: A segment is marked lost once a segment sent so many transmissions later is ACKed; ``None``: only
        the RTO marks segments lost.
    :param rto_min: Minimum RTO, such as ``"1ms"``; 0: the RTT when all buffers of the path are full.
    :param rto_max: Maximum RTO.
    :param probe: Whether a tail loss probe retransmits the last segment after two RTTs without an ACK (RFC 8985).
    :param go_back: Whether receivers drop out-of-order segments (go-back-N).
    """

    def __init__(
        self,
        *,
        reorder: int | None = 3,
        rto_min: str | float = "200us",
        rto_max: str | float = "100ms",
        probe: bool = True,
        go_back: bool = False,
    ) -> None:
        self.reorder, self.rto_min, self.rto_max = reorder, rto_min, rto_max
        self.probe, self.go_back = probe, go_back


class Source:
    """The sender's side of a flow."""

    def on_start(self, io: Io) -> None:
        """The flow starts. The source sends nothing before the first ``io.pace``."""

    def stamp(self, now_ns: int, packet: Packet, remaining_bytes: int | None) -> None:
        """Called before a data packet leaves, to fill its header and to choose its class."""

    def on_ack(self, io: Io, ack: Ack) -> None:
        """An ACK arrived."""

    def on_loss(self, io: Io, loss: Loss) -> None:
        """Segments were marked lost. The simulator retransmits them in any case."""

    def on_timer(self, io: Io, timer: int) -> None:
        """A timer that the machine set by ``io.timer`` expired."""

    def on_message(self, io: Io, message: Message, subflow: int) -> None:
        """A message of this source returned, or a message of the sink arrived."""

    def on_weight(self, io: Io, weight: float) -> None:
        """The flow's weight changed."""

    def on_reroute(self, io: Io, subflow: int, path: Path) -> None:
        """The subflow's path changed."""

    def on_finish(self, io: Io) -> None:
        """The flow completed or was stopped."""


class Hop:
    """State of a scheme at one directed link."""

    def on_start(self, io: Io) -> None:
        """The network starts, or the hop starts again after a fault."""

    def on_enqueue(self, io: Io, packet: Packet, port: Port) -> None:
        """A data packet or an ACK is about to enter the queue."""

    def on_dequeue(self, io: Io, packet: Packet, port: Port) -> None:
        """A data packet or an ACK leaves the queue."""

    def on_message(self, io: Io, message: Message, visit: Visit, port: Port) -> None:
        """A message passes, in either direction. The hop may change its numbers."""

    def on_timer(self, io: Io, timer: int, port: Port) -> None:
        """A timer that the machine set by ``io.timer`` expired."""

    def on_capacity(self, port: Port) -> None:
        """The link's capacity changed."""


class Sink:
    """The receiver's side of a flow."""

    def on_data(self, io: Io, packet: Packet) -> bool | None:
        """A data packet arrived. The ACK returns its header numbers; ``False`` withholds the ACK."""

    def on_message(self, io: Io, message: Message, subflow: int) -> None:
        """A message arrived. If the class does not define this hook, the message returns to the source."""

    def on_timer(self, io: Io, timer: int) -> None:
        """A timer that the machine set by ``io.timer`` expired."""


class Scheme:
    """A congestion control scheme of your own. Only ``source`` is required."""

    params: ClassVar[Mapping[str, tuple[Any, Unit]]] = {}
    """Parameters by name: default and unit. A spec sets and sweeps them; their values are attributes of the scheme."""
    paper: str = ""
    """Reference to the publication."""
    goal: str = "own"
    """Allocation to which rates converge: ``own``, ``max-min``, ``equal-max-min``, ``utility`` or ``alpha-fair``."""
    settles: tuple[float, float] | None = None
    """Relative tolerance of rates to the goal, and the number of RTTs after which rates are within that tolerance."""
    data_share: float = 1.0
    """Fraction of a link that the scheme lets data use."""
    recovers: bool = True
    """Whether rates converge again after control messages were lost."""
    path_dependent: bool = False
    """Whether all packets of a flow must use the same path."""
    queue: Fifo | Priority | Rank | Stfq | FairCodel = Fifo()
    """Output queue of every link."""
    header_bytes: int = 0
    """Bytes that the scheme's header adds to a data packet on the wire."""
    ack_header_bytes: int = 0
    """Bytes that the scheme's header adds to an ACK."""
    ack_class: str | None = None
    """Class of ACKs: ``control``, ``high`` or ``low``; by default the class of the data."""
    recovery: Recovery = Recovery()
    """Detection of lost segments."""
    nic: str | None = None
    """NIC scheduling of hosts, ``queue`` or ``round-robin``; by default that of the network."""

    def check(self) -> None:
        """Raises ``ValueError`` for invalid parameters."""

    def source(self, flow: Flow) -> Source:
        """The sender of ``flow``."""
        raise NotImplementedError

    def hop(self, port: Port) -> Hop | None:
        """The state of the scheme at a link; ``None`` if the scheme has none."""

    def sink(self, flow: Flow) -> Sink | None:
        """The receiver of ``flow``."""
