"""Base classes and queues for a scheme of your own; :doc:`the page on writing one <writing>` has an example.

The simulator calls only the hooks that a class defines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from subak._subak import (
        Ack,
        ControllerPlace,
        Flow,
        Io,
        Loss,
        Message,
        NetworkInfo,
        NodeInfo,
        Packet,
        Path,
        Port,
        Visit,
    )

Unit = Literal["", "packets", "bytes", "s", "bit/s", "flag"] | tuple[str, ...]
"""Unit of a parameter; or, for a parameter with words as values, the valid words."""


class Red:
    """Random early detection (RED): ECN marks with a probability that rises with the queue.

    The probability is 0 at a queue of up to ``low``, rises linearly to ``most`` at ``high``, and is 1 from there on.

    :param low: Queue length: a number of full packets at 10 Gb/s, or the name of a parameter, as ``mark`` of
        :class:`Fifo`.
    :param high: Queue length.
    :param most: Probability, or the name of a parameter of the unit ``""``.
    """

    def __init__(self, *, low: float | str, high: float | str, most: float | str = 1.0) -> None:
        self.low, self.high, self.most = low, high, most


class Fifo:
    """Drop-tail FIFO. A data packet that arrives at a queue of ``mark`` or more gets an ECN mark.

    :param mark: A number of full packets at 10 Gb/s, the name of a parameter in packets or bytes, or :class:`Red`. A
        number of packets is scaled by the link's capacity, to at least two; bytes are the same at every link.
    """

    def __init__(self, *, mark: float | str | Red | None = None) -> None:
        self.mark = mark


class Priority:
    """Strict priority queueing: packets of class ``control`` before ``high`` before ``low``.

    :param mark: Threshold of ECN marks, as for :class:`Fifo`.
    """

    def __init__(self, *, mark: float | str | Red | None = None) -> None:
        self.mark = mark


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
        rto_max: str | float = "60s",
        probe: bool = True,
        go_back: bool = False,
    ) -> None:
        self.reorder, self.rto_min, self.rto_max = reorder, rto_min, rto_max
        self.probe, self.go_back = probe, go_back


class Pfc:
    """Priority flow control (IEEE 802.1Qbb): switches pause the links into them, and do not drop.

    A switch pauses a class of data of a link once it buffers more than a threshold of it. The ports of a switch share
    its buffer.

    :param threshold: Threshold in bytes; ``None``: ``alpha`` times the free buffer.
    :param alpha: The factor. It is doubled, up to 1, for each time that the link's rate has to be halved to be at most
        that of the slowest host.
    :param resume: Bytes below the threshold at which the link resumes.
    :param reserve: Bytes of each link that do not count against the threshold.
    :param buffer: Bytes of a switch, headroom included; ``None``: the sum of its ports' buffers, and headroom on top.
    :param headroom: Bytes for what arrives after a pause was sent; ``None``: the largest possible amount.
    """

    def __init__(
        self,
        *,
        threshold: int | None = None,
        alpha: float = 0.125,
        resume: int = 3000,
        reserve: int = 0,
        buffer: int | None = None,
        headroom: int | None = None,
    ) -> None:
        self.threshold, self.alpha, self.resume = threshold, alpha, resume
        self.reserve, self.buffer, self.headroom = reserve, buffer, headroom


class Telemetry:
    """In-band network telemetry (INT), as a scheme's ``hop``: each link after the first adds a record to data packets.

    A source reads the records in ``ack.telemetry``. Packets have no numbers then.
    """


class LargestWait:
    """A scheme's ``hop``: ``packet[number]`` becomes the largest wait of a data packet at one link so far, ns."""

    def __init__(self, *, number: int = 0) -> None:
        self.number = number


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


class Node:
    """State of a scheme at a node. At a host its messages to and from the flows of the host take no time."""

    def on_start(self, io: Io) -> None:
        """The network starts, or the node starts again after a fault."""

    def admits(self, io: Io, packet: Packet, port: Port) -> bool | None:
        """A packet is about to enter the queue of ``port``; ``False`` drops it."""

    def on_leave(self, io: Io, packet: Packet, port: Port) -> None:
        """An admitted packet leaves by ``port``, or was dropped by its queue."""

    def on_controller(self, io: Io, place: ControllerPlace) -> None:
        """The controller has its place, or this node started again after that."""

    def on_flow(self, io: Io, flow: int, message: Message) -> None:
        """The source or sink of ``flow`` at this host sent a message."""

    def on_message(self, io: Io, message: Message) -> None:
        """The controller sent a message."""

    def on_timer(self, io: Io, timer: int) -> None:
        """A timer that the machine set by ``io.timer`` expired."""


class Controller:
    """The central state of a scheme. Its messages cross the network, and may be lost."""

    def on_start(self, io: Io) -> None:
        """The network starts, or the controller starts again after a fault."""

    def on_place(self, io: Io, place: ControllerPlace) -> None:
        """The controller has its place in the network, or started again after that."""

    def on_flow(self, io: Io, flow: int, message: Message) -> None:
        """The source of ``flow`` sent a message."""

    def on_node(self, io: Io, node: int, message: Message) -> None:
        """The state at ``node`` sent a message."""

    def on_link(self, io: Io, link: int, capacity_bps: float) -> None:
        """The capacity of ``link`` changed; it is 0 while the link is down."""

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
    lossless: Pfc | None = None
    """Priority flow control of switches, with ``queue = subak.Priority()``; ``None``: switches drop."""
    nic: str | None = None
    """NIC scheduling of hosts, ``queue`` or ``round-robin``; by default that of the network."""

    def check(self) -> None:
        """Raises ``ValueError`` for invalid parameters."""

    def source(self, flow: Flow) -> Source:
        """The sender of ``flow``."""
        raise NotImplementedError

    def hop(self, port: Port) -> Hop | None:
        """The state of the scheme at a link; ``None`` if the scheme has none.

        In place of a method, ``hop = subak.Telemetry()`` or ``hop = subak.LargestWait()``: state that Subak has.
        """

    def sink(self, flow: Flow) -> Sink | None:
        """The receiver of ``flow``."""

    def node(self, node: NodeInfo) -> Node | None:
        """The state of the scheme at a node; ``None`` if the scheme has none there."""

    def controller(self, network: NetworkInfo) -> Controller:
        """The central controller. A spec says where it is: ``[controller] at = "h0"``."""
        raise NotImplementedError
