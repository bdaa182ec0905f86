"""The Rust core of Subak."""

from os import PathLike
from typing import Any, Self

from subak.runs import Listener

__version__: str

class Table:
    """A read-only table of Arrow columns, for polars, pandas and pyarrow to take without copying."""

    column_names: list[str]
    num_rows: int
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...

class Answer:
    """Rates, bottlenecks and prices of one allocation problem, with their certificate."""

    status: str
    solver: str
    iterations: int
    seconds: float
    certificate: dict[str, float]
    flows: Table
    links: Table
    def to_json(self) -> str: ...

class Structure:
    """In which order links become bottlenecks, and which precede which."""

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
    """One allocation problem, checked."""

    @staticmethod
    def parse(text: bytes, format: str, file: str | None, folder: str | PathLike[str]) -> Case: ...
    @staticmethod
    def over(network: Network, rest: bytes) -> Case: ...
    @staticmethod
    def of_rows(network: Network, rows: tuple[Any, Any, Any, Any], policy: bytes) -> Case: ...
    def solve(self, solver: str) -> Answer: ...

class Network:
    """Directed links between named nodes."""

    hosts: list[str]
    nodes: list[str]
    links: Table
    def __new__(cls, json: bytes, folder: str | PathLike[str]) -> Self: ...
    def add(self, json: bytes) -> None: ...
    def link_numbers(self, ids: list[str]) -> list[int]: ...

class Spec:
    """A spec that was checked."""

    name: str
    @staticmethod
    def load(path: str | PathLike[str]) -> Spec: ...
    @staticmethod
    def parse(json: bytes, folder: str | PathLike[str]) -> Spec: ...
    def cells(self) -> str: ...
    def run(self, out: str | PathLike[str], jobs: int, only: int | None, progress: Listener | None) -> str: ...

def converge(
    text: bytes, format: str, file: str | None, folder: str | PathLike[str], scheme: str, options: bytes
) -> str: ...
def rounds_experiments() -> list[str]: ...
def rounds_experiment(
    name: str, scale: str, runs: int | None, seed: int, jobs: int, progress: Listener | None
) -> str: ...
def summary(dir: str | PathLike[str]) -> str: ...
def diff(first: str | PathLike[str], second: str | PathLike[str]) -> str: ...
def export(dir: str | PathLike[str], kind: str | None, out: str | PathLike[str] | None) -> int: ...
def columns() -> str: ...
def schemes() -> str: ...
def generators() -> str: ...
