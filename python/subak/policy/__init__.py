"""Finds applications that set weights against the policy, from the logs of their hosts (Soze, section 3.4).

A log is a CSV file with the columns of ``COLUMNS``: each row sets the weight of a flow (5-tuple) at a time. Weight 0
ends the flow. Rows of several machines may be in any order. A policy is a TOML file::

    # time for which a sum may exceed its budget, ns: weights move between hosts, and clocks differ
    grace_ns = 1000000

    [[application]]
    name = "shuffle"
    # limit of the sum of the weights of its flows
    budget = 8
    # source addresses of its flows, optionally with source ports
    sources = ["10.0.0.1", "10.0.0.2:5000-5099"]
"""

from __future__ import annotations

import csv
import math
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from subak.errors import InputError
from subak.repro.reading import Section

COLUMNS = ("time_ns", "src", "dst", "sport", "dport", "protocol", "weight")
ROUNDING = 1e-9
"""Relative tolerance of a budget, for rounding errors of decimal weights."""
PORTS = range(65536)

FiveTuple = tuple[str, str, int, int, str]
"""Source, destination, source port, destination port, protocol."""


@dataclass(frozen=True)
class Setting:
    """A row of a log: the weight of a flow from ``time_ns`` on."""

    time_ns: int
    flow: FiveTuple
    weight: float


@dataclass(frozen=True)
class Application:
    """An application: its weight budget, and the source addresses of its flows."""

    name: str
    budget: float
    sources: tuple[tuple[str, range], ...]


@dataclass(frozen=True)
class Policy:
    """The applications, and the time for which a sum of weights may exceed its budget, ns."""

    applications: tuple[Application, ...]
    grace_ns: int = 0


@dataclass(frozen=True)
class Offence:
    """An application's weights exceeded its budget from ``from_ns`` to ``until_ns``; the largest sum is ``most``.

    If ``budget`` is None, the flows' source belongs to no application.
    """

    application: str
    from_ns: int
    until_ns: int
    most: float
    budget: float | None


@dataclass
class _Sum:
    """Present weights of an application's flows, and the time since which their sum exceeds the budget."""

    weights: dict[FiveTuple, float] = field(default_factory=dict)
    since_ns: int | None = None
    most: float = 0.0

    def total(self) -> float:
        return math.fsum(self.weights.values())


def check(policy: Policy, settings: Iterable[Setting]) -> list[Offence]:
    """All offences, by application and time."""
    owners = _owners(policy)
    mine: dict[str, list[Setting]] = {}
    budgets: dict[str, float | None] = {}
    end_ns = 0
    for setting in settings:
        source, port = setting.flow[0], setting.flow[2]
        owner = next((one for one, ports in owners.get(source, ()) if port in ports), None)
        name = owner.name if owner else source
        budgets[name] = owner.budget if owner else None
        mine.setdefault(name, []).append(setting)
        end_ns = max(end_ns, setting.time_ns)
    offences: list[Offence] = []
    for name in sorted(mine):
        budget = budgets[name]
        grace_ns = 0 if budget is None else policy.grace_ns
        offences += [
            one for one in _excesses(name, budget, mine[name], end_ns) if one.until_ns - one.from_ns >= grace_ns
        ]
    return offences


def _excesses(name: str, budget: float | None, settings: list[Setting], end_ns: int) -> Iterator[Offence]:
    """Times in which the sum exceeds the budget; changes at the same time count together."""
    bound = 0.0 if budget is None else budget * (1 + ROUNDING)
    now = _Sum()
    ordered = sorted(settings, key=lambda one: one.time_ns)
    for at, setting in enumerate(ordered):
        if setting.weight > 0:
            now.weights[setting.flow] = setting.weight
        else:
            now.weights.pop(setting.flow, None)
        if at + 1 < len(ordered) and ordered[at + 1].time_ns == setting.time_ns:
            continue
        total = now.total()
        if total > bound:
            now.since_ns = setting.time_ns if now.since_ns is None else now.since_ns
            now.most = max(now.most, total)
        elif now.since_ns is not None:
            yield Offence(name, now.since_ns, setting.time_ns, now.most, budget)
            now.since_ns, now.most = None, 0.0
    if now.since_ns is not None:
        yield Offence(name, now.since_ns, end_ns, now.most, budget)


def _owners(policy: Policy) -> dict[str, list[tuple[Application, range]]]:
    owners: dict[str, list[tuple[Application, range]]] = {}
    for application in policy.applications:
        for address, ports in application.sources:
            owners.setdefault(address, []).append((application, ports))
    return owners


def read_policy(path: Path) -> Policy:
    """Reads the policy in a TOML file."""
    section = Section(path, "", _toml(path))
    grace_ns = section.get("grace_ns", int, 0)
    if grace_ns < 0:
        raise section.error("grace_ns", f"it is {grace_ns}", "give 0 or more")
    held = section.get("application", list)
    section.done()
    applications: list[Application] = []
    taken: list[tuple[str, range, str]] = []
    for k, one in enumerate(held):
        place = f"application[{k}]"
        if not isinstance(one, dict):
            raise section.error(place, "it is no table", "write [[application]]")
        applications.append(_application(Section(path, place, one), taken))
    names = [one.name for one in applications]
    for k, name in enumerate(names):
        if name in names[:k]:
            raise section.error(f"application[{k}].name", f'"{name}" is there twice', "give each its own name")
    return Policy(tuple(applications), grace_ns)


def _toml(path: Path) -> dict[str, Any]:
    """Parses a TOML file; an error names the place."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).removesuffix(")").partition(" (at ")
        hint = "write keys such as grace_ns = 0, and an [[application]] with name, budget and sources for each"
        raise InputError(str(path), place, f"it is not TOML: {what[:1].lower()}{what[1:]}", hint) from None
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error, "name a TOML file with the applications, their budgets and sources") from None


def _unreadable(path: Path, error: OSError | UnicodeDecodeError, hint: str) -> InputError:
    """The input error for a file that cannot be read."""
    if isinstance(error, UnicodeDecodeError):
        return InputError(str(path), f"byte {error.start}", "it is not text in UTF-8", "save it as UTF-8")
    if isinstance(error, FileNotFoundError):
        return InputError(str(path), "", "there is no such file", hint)
    if isinstance(error, IsADirectoryError):
        return InputError(str(path), "", "it is a folder", hint)
    return InputError(str(path), "", f"it cannot be read: {error.strerror}", hint)


def _application(section: Section, taken: list[tuple[str, range, str]]) -> Application:
    name, budget = section.get("name", str), section.get("budget", float)
    if not 0 <= budget < math.inf:
        raise section.error("budget", f"it is {budget}", "give a finite number of zero or more")
    sources = []
    for k, text in enumerate(section.get("sources", list)):
        place = f"sources[{k}]"
        source = _source(section, place, text)
        for address, ports, owner in taken:
            if address == source[0] and ports.start < source[1].stop and source[1].start < ports.stop:
                raise section.error(place, f"{text} belongs to {owner} already", "give each source to one application")
        taken.append((*source, name))
        sources.append(source)
    section.done()
    return Application(name, budget, tuple(sources))


def _source(section: Section, place: str, text: Any) -> tuple[str, range]:
    wanted = 'write "ADDRESS", "ADDRESS:PORT" or "ADDRESS:FIRST-LAST"; an address with colons in brackets'
    if not isinstance(text, str) or not text:
        raise section.error(place, f"it is {text!r}", wanted)
    bare = text.startswith("[") and text.endswith("]")
    address, colon, ports = (text, "", "") if bare or ":" not in text else text.rpartition(":")
    address = address.removeprefix("[").removesuffix("]")
    if not colon:
        return address, PORTS
    first, dash, last = ports.partition("-")
    last = last if dash else first
    if not (address and _is_port(first) and _is_port(last) and int(first) <= int(last)):
        raise section.error(place, f'"{text}" has no ports from 0 to 65535 after its colon', wanted)
    return address, range(int(first), int(last) + 1)


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and int(text) in PORTS


def read_logs(paths: Sequence[Path]) -> Iterator[Setting]:
    """Reads the rows of several logs."""
    for path in paths:
        yield from read_log(path)


def read_log(path: Path) -> Iterator[Setting]:
    """Reads the rows of a log."""
    line = 0
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, strict=True)
            missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
            if missing:
                wanted = f"begin the file with the line {','.join(COLUMNS)}"
                raise InputError(str(path), "line 1", f"there is no column {', '.join(missing)}", wanted)
            names = list(rows.fieldnames or ())
            if strange := [name for k, name in enumerate(names) if name not in COLUMNS or name in names[:k]]:
                hint = f"remove what is not read; the columns are {', '.join(COLUMNS)}, each once"
                raise InputError(str(path), "line 1", f"unknown column {', '.join(map(repr, strange))}", hint)
            for row in rows:
                line = rows.line_num
                yield _setting(path, line, row)
    except csv.Error as error:
        hint = "write one row a line, with a comma between two values and quotes closed"
        raise InputError(str(path), f"after line {line}", f"it is not CSV: {error}", hint) from None
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error, f"name a CSV file with the columns {', '.join(COLUMNS)}") from None


def _setting(path: Path, line: int, row: dict[str, str | None]) -> Setting:
    def fault(column: str, wanted: str) -> InputError:
        return InputError(str(path), f"line {line}, {column}", f"it is {row[column]!r}", wanted)

    if None in row:
        hint = f"give each row the {len(COLUMNS)} columns of the first line"
        raise InputError(str(path), f"line {line}", "the row has more cells than columns", hint)
    texts = {name: (row[name] or "").strip() for name in COLUMNS}
    if not (texts["time_ns"].isascii() and texts["time_ns"].isdigit() and len(texts["time_ns"]) <= 19):
        raise fault("time_ns", "give a whole number of nanoseconds")
    for column in ("sport", "dport"):
        if not _is_port(texts[column]):
            raise fault(column, "give a port from 0 to 65535")
    for column in ("src", "dst", "protocol"):
        if not texts[column]:
            raise fault(column, "name it")
    try:
        weight = float(texts["weight"])
    except ValueError:
        weight = math.nan
    if not 0 <= weight < math.inf:
        raise fault("weight", "give a finite number of zero or more")
    flow = (texts["src"], texts["dst"], int(texts["sport"]), int(texts["dport"]), texts["protocol"])
    return Setting(int(texts["time_ns"]), flow, weight)
