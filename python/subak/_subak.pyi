"""The Rust core of Subak."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from typing import Any, Self

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from subak.hooks import Listener, Weigher

__version__: str
__build__: str
__built_from__: str

class Table:
    """A read-only table of Arrow columns, which polars, pandas and pyarrow read without copying."""

    column_names: list[str]
    num_rows: int
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> object: ...
    def to_arrow(self) -> pa.Table: ...
    def to_pandas(self) -> pd.DataFrame: ...
    def to_polars(self) -> pl.DataFrame: ...
    def to_numpy(self) -> dict[str, np.ndarray]: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __len__(self) -> int: ...

class Answer:
    """Rates, bottlenecks and prices of one allocation problem, with their certificate."""

    status: str
    policy: str
    solver: str
    iterations: int
    seconds: float
    ln_price_unit: float
    certificate: dict[str, float]
    flows: Table
    links: Table
    warnings: list[str]
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_pandas(self) -> pd.DataFrame: ...
    def to_polars(self) -> pl.DataFrame: ...
    def to_numpy(self) -> dict[str, np.ndarray]: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def off_by(self, other: Answer) -> float: ...
    def to_json(self) -> str: ...

class Structure:
    """Order in which links become bottlenecks, and their precedence graph."""

    k: str
    depth: int
    partition: list[list[str]]
    longest_chain: list[str]
    links: Table
    flows: Table
    shares: Table
    precedence: Table
    def __new__(cls, case: Case, k: str) -> Self: ...

class Case:
    """An allocation problem that passed all checks."""

    policy: str
    @staticmethod
    def parse(text: bytes, format: str, file: str | None, folder: str | PathLike[str]) -> Case: ...
    @staticmethod
    def over(network: Network, rest: bytes) -> Case: ...
    @staticmethod
    def of_rows(network: Network, rows: tuple[Any, Any, Any, Any], policy: bytes) -> Case: ...
    @staticmethod
    def of_columns(network: Network, columns: Any, unit: str | None, policy: bytes) -> Case: ...
    def solve(
        self,
        solver: str,
        iterations: int | None = None,
        gamma: float | None = None,
        tolerance: float | None = None,
        prices: Any = None,
    ) -> Answer: ...

class Incremental:
    """An allocation problem that is solved again after changes, with its last answer."""

    def __new__(cls, case: Case) -> Self: ...
    def add_flows(self, text: bytes) -> None: ...
    def remove_flows(self, ids: list[str]) -> None: ...
    def set_weight(self, id: str, weight: float) -> None: ...
    def set_demand_json(self, id: str, demand: bytes) -> None: ...
    def set_capacity_json(self, link: str, capacity: bytes) -> None: ...
    def solve(self, solver: str = "auto") -> Answer: ...
    def repair_within(self, tolerance: float) -> tuple[int, int, bool]: ...
    def answer(self) -> Answer: ...
    def rate_bps(self, id: str) -> float: ...
    def __len__(self) -> int: ...
    def __contains__(self, id: str) -> bool: ...

class Ned:
    """An iterative optimizer (NED or a baseline): its prices and its flows."""

    iterations: int
    def __new__(
        cls,
        network: Network,
        policy: bytes,
        method: str,
        gamma: float | None,
        precision: str,
        most_lines: float,
        bounded: bool,
        threads: int,
    ) -> Self: ...
    def add_flows(self, flows: tuple[Any, Any, Any, Any, Any, Any]) -> Table: ...
    def remove_flows(self, numbers: Any) -> None: ...
    def set_weight(self, number: int, weight: float) -> None: ...
    def set_capacity_json(self, link: str, capacity: bytes) -> None: ...
    def set_prices(self, prices: Any) -> None: ...
    def steps(self, n: int) -> None: ...
    def rates_table(self, normalizer: str) -> Table: ...
    def rates_of_table(self, numbers: Any, normalizer: str, passes: int) -> Table: ...
    def errors_table(self, n: int, numbers: Any, want: Any, normalizer: str) -> Table: ...
    def serve_flows(
        self, flows: tuple[Any, Any, Any, Any, Any], times: tuple[float, int], counts: tuple[int, int, int, int]
    ) -> Table: ...
    def prices_table(self) -> Table: ...
    def loads_table(self) -> Table: ...
    def __len__(self) -> int: ...
    def __contains__(self, number: int) -> bool: ...

class Network:
    """Directed links between named nodes."""

    hosts: list[str]
    nodes: list[str]
    links: Table
    warnings: list[str]
    def __new__(cls, json: bytes, folder: str | PathLike[str]) -> Self: ...
    def add(self, json: bytes) -> None: ...
    def link_numbers(self, ids: list[str]) -> list[int]: ...

class Rounds:
    """The messages behind ``subak.Rounds``."""

    now_ns: int
    updates: int
    drops: int
    last_drop_ns: int | None
    last_wrong_ns: int | None
    bound_rounds: float | None
    def __new__(
        cls,
        network: Network,
        scheme: str,
        params: bytes,
        seed: int,
        times_ns: tuple[int, int, int],
        drop: float,
        tolerance: float,
        recorded: tuple[bool, bool],
    ) -> Self: ...
    def add_flows(self, flows: tuple[Any, Any, Any, Any]) -> int: ...
    def change_weight(self, flow: int, weight: float) -> None: ...
    def stop_flow(self, flow: int) -> None: ...
    def advance(self, until_ns: int) -> None: ...
    def flows_table(self) -> Table: ...
    def take_rates(self) -> Table: ...
    def take_updates(self) -> Table: ...
    def __len__(self) -> int: ...

class Xwi:
    """The iteration behind ``subak.Xwi``."""

    iterations: int
    def __new__(cls, case: Case, beta: float, eta: float, diminish_after: float) -> Self: ...
    def steps(self, n: int) -> None: ...
    def rates_table(self) -> Table: ...
    def prices_table(self) -> Table: ...
    def __len__(self) -> int: ...

class Stream:
    """A stream of random numbers for a seed and a name, the same on every machine."""

    def __new__(cls, seed: int, name: str) -> Self: ...
    def unit(self) -> float: ...
    def below(self, n: int) -> int: ...
    def exponential(self, mean: float) -> float: ...
    def shuffle(self, items: list[Any]) -> None: ...

class Sizes:
    """A published distribution of flow sizes, by the name that a spec's workload has for it."""

    mean_bytes: float
    def __new__(cls, name: str) -> Self: ...
    @staticmethod
    def names() -> list[str]: ...
    def quantile(self, share: float) -> float: ...
    def draw(self, stream: Stream) -> int: ...

class Router:
    """Equal-cost multipath routing over shortest paths, as flows without a path have it in simulations."""

    def __new__(cls, network: Network, *, seed: int = 1, symmetric: bool = False) -> Self: ...
    def path(self, src: str, dst: str, key: int = 0) -> list[int]: ...
    def poisson(self, stream: Stream, sizes: Sizes, gap_s: float, until_s: float) -> Table: ...

class SozeFluid:
    """The recurrence behind ``subak.SozeFluid``."""

    iterations: int
    step_ns: float
    peak_ns: float
    def __new__(cls, network: Network, flows: tuple[Any, Any, Any, Any]) -> Self: ...
    def steps(self, n: int) -> None: ...
    def share_near(self, want: Any, within: float) -> float: ...
    def rates_table(self) -> Table: ...
    def __len__(self) -> int: ...

class SPercLinks:
    """Links that update control messages by s-PERC's rule, in the order of the events that ``run`` gets."""

    def __new__(cls, capacities_bps: list[float], paths: list[list[int]], division_kb: float, tie: float) -> Self: ...
    def run(self, events: bytes) -> bytes: ...

class SPercStarLinks:
    """Links of s-PERC*, with their rounds, in the order of the events that ``run`` gets; ``params`` is JSON."""

    def __new__(cls, capacities_bps: list[float], paths: list[list[int]], params: str, rtt_ns: int) -> Self: ...
    def run(self, events: bytes) -> bytes: ...

class SozeLinks:
    """Links of Soze that stamp packets with filtered queueing delays, in the order of the events that ``run`` gets."""

    unit: int
    def __new__(cls, capacities_bps: list[float], filter_ns: float, full_ns: float) -> Self: ...
    def run(self, events: bytes) -> bytes: ...

_Came = tuple[int, bytes | None, bytes | None, str | None, float, float]

class Spec:
    """A spec (description of the simulations to run) that passed all checks."""

    name: str
    @staticmethod
    def load(path: str | PathLike[str], backend: str | None = None, schemes: Mapping[str, type] = ...) -> Spec: ...
    @staticmethod
    def parse(
        json: bytes, folder: str | PathLike[str], backend: str | None = None, schemes: Mapping[str, type] = ...
    ) -> Spec: ...
    @staticmethod
    def brought(json: bytes, files: dict[str, bytes]) -> Spec: ...
    def parts(self) -> tuple[str, dict[str, bytes]]: ...
    def is_interpreted(self) -> bool: ...
    def is_on_hosts(self) -> bool: ...
    def trials(self) -> str: ...
    def paths(self, trial: int) -> str: ...
    def run(
        self,
        out: str | PathLike[str],
        jobs: int,
        only: int | None,
        progress: Listener | None,
        policies: dict[str, Weigher] = ...,
        testbed: Callable[[str, Callable[[float], bool]], str] | None = None,
        watched: Watched | None = None,
        elsewhere: Callable[[list[int]], Iterator[_Came | None]] | None = None,
        threads: int = 0,
    ) -> str: ...
    def run_trial(self, trial: int, folder: str | PathLike[str], goes_on: Callable[[], bool]) -> _Came | None: ...

class Io:
    """Calls of a scheme's state machine to the simulator. Windows are bytes of payload, rates are bit/s on the wire."""

    now_ns: int
    def pace(self, *, rate: float | None = None, window: float | None = None, subflow: int = 0) -> None: ...
    def timer(self, number: int, at_ns: float) -> None: ...
    def send(
        self,
        message: Iterable[float] | Message,
        bytes: int = 64,
        subflow: int = 0,
        class_: str = "control",
        *,
        to: str | None = None,
        flow: int | None = None,
        node: int | None = None,
    ) -> None: ...
    def pause(self, class_: str, on: bool) -> None: ...
    def random(self) -> float: ...
    def note(self, *, subflow: int | None = None, **values: float) -> None: ...

class Message:
    """A control message of a scheme: eight numbers, whose meaning the scheme defines."""

    def __len__(self) -> int: ...
    def __getitem__(self, place: int) -> float: ...
    def __setitem__(self, place: int, number: float) -> None: ...

class Packet:
    """A packet at a state machine of a scheme. Its header has eight numbers, whose meaning the scheme defines."""

    flow: int
    subflow: int
    is_data: bool
    bytes: int
    payload_bytes: int
    ecn: bool
    class_: str
    segment: int
    sent_ns: int
    waited_ns: int
    hop: int
    def __len__(self) -> int: ...
    def __getitem__(self, place: int) -> float: ...
    def __setitem__(self, place: int, number: float) -> None: ...

class Ack:
    """An ACK at the flow's source, with the eight header numbers that the sink returned."""

    subflow: int
    acked_bytes: int
    rtt_ns: int
    ecn: bool
    in_flight_bytes: int
    remaining_bytes: int | None
    segment: int
    next_segment: int
    data: tuple[float, ...]
    path_id: int
    telemetry: tuple[LinkRecord, ...] | None
    def __len__(self) -> int: ...
    def __getitem__(self, place: int) -> float: ...

class LinkRecord:
    """Telemetry of a link as a packet left it. Times in ns and bytes sent wrap around at 2^32."""

    at_ns: int
    sent_bytes: int
    queued_bytes: int
    bytes_per_ns: float
    def since(self, before: LinkRecord) -> tuple[float, float] | None:
        """Time (ns) and bytes sent since an earlier record of the link, if the two can be compared."""

class Loss:
    """Segments that were marked lost: ``kind`` is ``reordered``, ``timeout`` or ``out-of-order``."""

    subflow: int
    kind: str
    segment: int
    next_segment: int
    in_flight_bytes: int

class Path:
    """A path of a subflow: links by their numbers, rates in bit/s."""

    hops: int
    line_rate_bps: float
    min_capacity_bps: float
    base_rtt_ns: int
    links: list[int]
    id: int

class Flow:
    """A flow as its source and sink see it.

    With several paths, the attributes ``hops`` to ``links`` describe the first.
    """

    flow: int
    weight: float
    size_bytes: int | None
    demand_bps: float
    mss_bytes: int
    mtu_bytes: int
    subflows: int
    rtt_ns: int
    src: int | None
    dst: int | None
    seed: int
    hops: int
    line_rate_bps: float
    min_capacity_bps: float
    base_rtt_ns: int
    links: list[int]
    paths: list[Path]

class Port:
    """State of an output port now, as a scheme's hop at this port sees it."""

    link: int
    from_: int | None
    to: int | None
    capacity_bps: float
    delay_ns: int
    buffer_bytes: int
    queued_bytes: int
    queued_packets: int
    mtu_bytes: int
    rtt_ns: int
    seed: int

class Visit:
    """Place of a control message on its path; ``hop`` counts data links from the source."""

    flow: int
    subflow: int
    hop: int
    forward: bool

class NodeInfo:
    """A node as a scheme's state there sees it: links that leave and enter it, by their numbers."""

    node: int
    is_host: bool
    out: list[int]
    into: list[int]
    seed: int

class ControllerPlace:
    """Place of a scheme's controller: the host that it is at, and the links that messages take."""

    host: int | None
    hosts: int
    into_bps: float
    out_bps: float

class LinkInfo:
    """A directed link, as a scheme's controller sees it."""

    id: str
    from_: int | None
    to: int | None
    capacity_bps: float
    delay_ns: int

class NetworkInfo:
    """The network, as a scheme's controller sees it. Nodes and links are numbers, in the order of these lists."""

    nodes: list[str]
    hosts: list[int]
    links: list[LinkInfo]

class Watched:
    """Progress of the runs of this process, for the live page."""

    def __init__(self) -> None: ...
    def state(self, whole: bool) -> str: ...

def page_files() -> list[tuple[str, str, str]]: ...
def converge(
    text: bytes, format: str, file: str | None, folder: str | PathLike[str], scheme: str, options: bytes
) -> str: ...
def allocate(
    network: Network,
    flows: tuple[Any, Any, Any, Any],
    seed: int,
    tick_ns: int,
    ticks: int,
    gamma: float | None,
    counts: tuple[int, int, int],
) -> Table: ...
def ned_times(
    network: Network, rows: tuple[Any, Any], threads: int, groups: int, seconds: float, is_compared: bool
) -> dict[str, Any]: ...
def student(df: int, tails: float) -> float: ...
def summary(dir: str | PathLike[str]) -> str: ...
def diff(first: str | PathLike[str], second: str | PathLike[str]) -> str: ...
def capture(dir: str | PathLike[str], trial: int | None, links: list[str], out: str | PathLike[str]) -> str: ...
def export(dir: str | PathLike[str], kind: str | None, out: str | PathLike[str] | None) -> int: ...
def columns() -> str: ...

class Simulation:
    """The simulation behind ``subak.Simulation``."""

    now_ns: int
    events: int
    def __new__(cls, spec: Spec) -> Self: ...
    @staticmethod
    def warnings(spec: Spec, is_open: bool) -> list[str]: ...
    def add_flows(self, list: bytes) -> int: ...
    def change_weight(self, flow: int, weight: float) -> None: ...
    def stop_flow(self, flow: int) -> None: ...
    def change_paths(self, flow: int, paths: list[list[str]]) -> None: ...
    def set_up(self, link: str, up: bool, both: bool) -> None: ...
    def change_capacity(self, link: str, capacity: bytes, both: bool) -> None: ...
    def advance(self, until_ns: int, end: str) -> list[int]: ...
    def sample_rates(self, times_ns: list[int]) -> Table: ...
    def restart_peaks(self) -> None: ...
    def flows_table(self) -> Table: ...
    def links_table(self) -> Table: ...
    def paces_table(self, flow: int) -> Table: ...
    def notes_table(self) -> Table: ...

def weight_policies() -> str: ...
def nanoseconds(text: str) -> int: ...
def bytes_of(text: str) -> int: ...
def schemes() -> list[dict[str, Any]]: ...
def pairs() -> list[dict[str, Any]]: ...
def parts() -> list[dict[str, Any]]: ...
def generators() -> str: ...
def case_sections() -> str: ...
def sections() -> str: ...
