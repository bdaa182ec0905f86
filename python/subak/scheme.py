"""What a scheme of your own is made of: :doc:`the page on writing one <writing>` has an example.

A hook that a class does not define is never called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from subak._subak import Ack, Flow, Io, Loss, Message, Packet, Path, Port, Visit

Unit = Literal["", "packets", "bytes", "s", "bit/s", "flag"] | tuple[str, ...]
"""The unit of a parameter, or the words that it may be."""


class Fifo:
    """First in, first out. Data packets that come to a queue of ``mark`` or more are marked.

    :param mark: A number of full packets at 10 Gb/s, or the name of a parameter in packets or bytes. Packets scale with
        the link's capacity and are at least two; bytes hold at every link.
    """

    def __init__(self, *, mark: float | str | None = None) -> None:
        self.mark = mark


class Priority:
    """Strict priority: ``control`` before ``high`` before ``low``."""


class Rank:
    """The packet of the least rank goes first, a full queue drops that of the largest. The rank is ``packet[0]``."""


class Stfq:
    """Start-time fair queueing: ``packet[0]`` is the packet's length over its flow's weight."""


class FairCodel:
    """Fair queues, each under CoDel (RFC 8290).

    :param target: Delay that CoDel aims at, such as ``"1ms"``; 0: a twentieth of the interval.
    :param interval: Time above the target after which it drops; 0: the network's longest RTT.
    :param bins: Queues that flows are hashed to.
    :param quantum: Bytes of a turn; 0: one packet.
    """

    def __init__(
        self, *, target: str | float = "5ms", interval: str | float = "100ms", bins: int = 1024, quantum: int = 1514
    ) -> None:
        self.target, self.interval, self.bins, self.quantum = target, interval, bins, quantum


class Recovery:
    """How lost segments are found.

    :param reorder: A segment is lost once one sent so many transmissions later is acknowledged; ``None``: timeouts
        alone tell.
    :param rto_min: Smallest retransmission timeout, such as ``"1ms"``; 0: the RTT when all buffers of the path are
        full.
    :param rto_max: Largest retransmission timeout.
    :param probe: Whether the last segment is sent once more after two RTTs of silence (RFC 8985).
    :param go_back: Whether receivers drop what comes out of order (go-back-N).
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
        """The flow starts. Until the first ``io.pace`` nothing is sent."""

    def stamp(self, now_ns: int, packet: Packet, remaining_bytes: int | None) -> None:
        """A data packet is about to leave: fill its header, choose its class."""

    def on_ack(self, io: Io, ack: Ack) -> None:
        """An ACK arrived."""

    def on_loss(self, io: Io, loss: Loss) -> None:
        """Segments were marked lost. They are sent again in any case."""

    def on_timer(self, io: Io, timer: int) -> None:
        """A timer is due."""

    def on_message(self, io: Io, message: Message, subflow: int) -> None:
        """A message came back, or one of the sink arrived."""

    def on_weight(self, io: Io, weight: float) -> None:
        """The flow has another weight from now on."""

    def on_reroute(self, io: Io, subflow: int, path: Path) -> None:
        """The subflow takes another path from now on."""

    def on_finish(self, io: Io) -> None:
        """The flow is complete, or was stopped."""


class Hop:
    """State at one directed link."""

    def on_start(self, io: Io) -> None:
        """The network starts, or the hop starts again after a fault."""

    def on_enqueue(self, io: Io, packet: Packet, port: Port) -> None:
        """A data packet or an ACK is about to enter the queue."""

    def on_dequeue(self, io: Io, packet: Packet, port: Port) -> None:
        """A data packet or an ACK leaves the queue."""

    def on_message(self, io: Io, message: Message, visit: Visit, port: Port) -> None:
        """A message passes, on its way out or back: its numbers may be changed."""

    def on_timer(self, io: Io, timer: int, port: Port) -> None:
        """A timer is due."""

    def on_capacity(self, port: Port) -> None:
        """The link has another capacity from now on."""


class Sink:
    """The receiver's side of a flow."""

    def on_data(self, io: Io, packet: Packet) -> bool | None:
        """A data packet arrived. Its numbers go back in the ACK; ``False`` withholds the ACK."""

    def on_message(self, io: Io, message: Message, subflow: int) -> None:
        """A message arrived. Where this is not defined it turns back."""

    def on_timer(self, io: Io, timer: int) -> None:
        """A timer is due."""


class Scheme:
    """A congestion control scheme of your own. ``source`` is all that it has to define."""

    params: ClassVar[Mapping[str, tuple[Any, Unit]]] = {}
    """Parameters by name: default and unit. They become attributes, and a spec sets and sweeps them."""
    paper: str = ""
    """Where it was published."""
    goal: str = "own"
    """``own``, ``max-min``, ``equal-max-min``, ``utility`` or ``alpha-fair``."""
    settles: tuple[float, float] | None = None
    """How near its goal it comes, as a relative difference, and after how many RTTs."""
    data_share: float = 1.0
    """Share of a link that it means to give to data."""
    recovers: bool = True
    """Whether rates come right again after messages were lost."""
    path_dependent: bool = False
    """Whether all packets of a flow have to take one path."""
    queue: Fifo | Priority | Rank | Stfq | FairCodel = Fifo()
    """Output queue of every link."""
    header_bytes: int = 0
    """Bytes that its header adds to a data packet on the wire."""
    ack_header_bytes: int = 0
    """Bytes that its header adds to an ACK."""
    ack_class: str | None = None
    """Class of ACKs: ``control``, ``high`` or ``low``; that of the data where it is not given."""
    recovery: Recovery = Recovery()
    """How lost segments are found."""
    nic: str | None = None
    """Scheduling of NICs, ``queue`` or ``round-robin``; the network's where it is not given."""

    def check(self) -> None:
        """Raises ``ValueError`` for parameters that make no sense."""

    def source(self, flow: Flow) -> Source:
        """The sender of ``flow``."""
        raise NotImplementedError

    def hop(self, port: Port) -> Hop | None:
        """The state at a link."""

    def sink(self, flow: Flow) -> Sink | None:
        """The receiver of ``flow``."""
