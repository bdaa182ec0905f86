"""Finds applications that set weights against the policy, from the logs of their hosts (Soze, section 3.4).

A log is a CSV file with the columns of ``COLUMNS``: each row sets the weight of a flow (5-tuple) at a time. Weight 0
ends the flow. Rows of several machines may be in any order. A line ``# missing N`` counts weights that the host could
not log. A policy is a TOML file::

    # time for which a sum may exceed its budget, ns: weights move between hosts, and clocks differ
    grace_ns = 1000000
    # price of a weight of 1 above the budget for 1 s, and the time over which payments are summed, ns
    price = 2
    span_ns = 10000000000

    [[application]]
    name = "shuffle"
    # limit of the sum of the weights of its flows
    budget = 8
    # the most that it pays in any span
    pays = 10
    # source addresses of its flows, optionally with source ports
    sources = ["10.0.0.1", "10.0.0.2:5000-5099"]
"""

from __future__ import annotations

import csv
import ipaddress
import math
import tomllib
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from subak.errors import InputError, InputWarning
from subak.policy.paying import unpaid
from subak.policy.sums import FiveTuple, Setting, Step, steps
from subak.repro.reading import Section

COLUMNS = ("time_ns", "src", "dst", "sport", "dport", "protocol", "weight")
PORTS = range(65536)
CLOCKS_NS = 10_000_000
"""Default of ``grace_ns``: hosts that synchronize by NTP within a site differ by a few milliseconds."""
SPAN_NS = 60_000_000_000
"""Default of ``span_ns``."""
MISSING = "# missing "
LARGEST = 1e15
"""Limit of weights, budgets, prices and payments: sums and products of them stay finite and exact enough."""

__all__ = [
    "COLUMNS",
    "Application",
    "FiveTuple",
    "Offence",
    "Policy",
    "Setting",
    "check",
    "read_log",
    "read_logs",
    "read_policy",
]


@dataclass(frozen=True)
class Application:
    """An application: its weight budget, and the source addresses of its flows."""

    name: str
    budget: float
    sources: tuple[tuple[str, range], ...]
    pays: float = 0.0
    """The most that it pays in any span for weight above its budget."""


@dataclass(frozen=True)
class Policy:
    """The applications, the time for which a sum of weights may exceed its budget, ns, and the price of weight."""

    applications: tuple[Application, ...]
    grace_ns: int = 0
    price: float = 0.0
    """Price of a weight of 1 above the budget for 1 s."""
    span_ns: int = SPAN_NS
    """Time over which payments are summed."""


@dataclass(frozen=True)
class Offence:
    """An application's weights exceeded its budget from ``from_ns`` to ``until_ns``; the largest sum is ``most``.

    If ``budget`` is None, the flows' source belongs to no application. If the application may pay for weight,
    ``paid`` is the largest payment in a span, and ``pays`` its limit.
    """

    application: str
    from_ns: int
    until_ns: int
    most: float
    budget: float | None
    paid: float | None = None
    pays: float | None = None


def check(policy: Policy, settings: Iterable[Setting]) -> list[Offence]:
    """All offences, by application and time."""
    owners = _owners(policy)
    mine: dict[str, list[Setting]] = {}
    owned: dict[str, Application | None] = {}
    end_ns = 0
    for setting in settings:
        source, port = setting.flow[0], setting.flow[2]
        owner = next((one for one, ports in owners.get(source, ()) if port in ports), None)
        name = owner.name if owner else source
        owned[name] = owner
        mine.setdefault(name, []).append(setting)
        end_ns = max(end_ns, setting.time_ns)
    offences: list[Offence] = []
    for name in sorted(mine):
        owner = owned[name]
        budget = owner.budget if owner else None
        grace_ns = policy.grace_ns if owner else 0
        excesses = _excesses(budget or 0.0, steps(mine[name], end_ns))
        counted = [one for one in excesses if one[-1].until_ns - one[0].from_ns >= grace_ns]
        if owner and owner.pays > 0:
            offences += _unpaid(policy, owner, [step for excess in counted for step in excess])
            continue
        for excess in counted:
            most = max(step.total for step in excess)
            offences.append(Offence(name, excess[0].from_ns, excess[-1].until_ns, most, budget))
    return offences


def _excesses(budget: float, all_steps: Iterable[Step]) -> Iterator[list[Step]]:
    """Steps of each time in which the sum exceeds the budget."""
    excess: list[Step] = []
    for step in all_steps:
        if step.exceeds(budget):
            excess.append(step)
        elif excess:
            yield excess
            excess = []
    if excess:
        yield excess


def _unpaid(policy: Policy, owner: Application, excess: list[Step]) -> Iterator[Offence]:
    """Times in which the application has more weight than it pays for."""
    starts, ends = [step.from_ns for step in excess], [step.until_ns for step in excess]
    for one in unpaid(excess, owner.budget, policy.price, owner.pays, policy.span_ns):
        during = excess[bisect_right(ends, one.from_ns) : bisect_left(starts, one.until_ns)]
        most = max(step.total for step in during)
        yield Offence(owner.name, one.from_ns, one.until_ns, most, owner.budget, one.paid, owner.pays)


def _owners(policy: Policy) -> dict[str, list[tuple[Application, range]]]:
    owners: dict[str, list[tuple[Application, range]]] = {}
    for application in policy.applications:
        for address, ports in application.sources:
            owners.setdefault(address, []).append((application, ports))
    return owners


def read_policy(path: Path) -> Policy:
    """Reads the policy in a TOML file."""
    section = Section(path, "", _toml(path))
    grace_ns = section.get("grace_ns", int, CLOCKS_NS)
    if grace_ns < 0:
        raise section.error("grace_ns", f"it is {grace_ns}", "give 0 or more")
    price = section.get("price", float, 0.0)
    if not 0 <= price <= LARGEST:
        raise section.error("price", f"it is {price}", f"give a number from 0 to {LARGEST:g}")
    span_ns = section.get("span_ns", int, SPAN_NS)
    if span_ns <= 0:
        raise section.error("span_ns", f"it is {span_ns}", "give 1 or more")
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
    for k, one in enumerate(applications):
        if one.pays > 0 and price == 0:
            place = f"application[{k}].pays"
            raise section.error(place, "weight has no price", "give the price of a weight of 1 for 1 s: price = 2")
    paying = [one.name for one in applications if one.pays > 0]
    for key in ("price", "span_ns"):
        if key in section and not paying:
            _warn(path, f"{key}: it is not used, as no application has pays")
    if paying and span_ns < grace_ns:
        _warn(path, f"span_ns: {span_ns} ns is less than grace_ns ({grace_ns} ns); a span of 60 s is 60000000000")
    return Policy(tuple(applications), grace_ns, price, span_ns)


def _warn(path: Path, what: str) -> None:
    warnings.warn(f"{path}: {what}", InputWarning, stacklevel=3)


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
        return InputError(str(path), _undecodable(path, error), "it is not text in UTF-8", "save it as UTF-8")
    if isinstance(error, FileNotFoundError):
        return InputError(str(path), "", "there is no such file", hint)
    if isinstance(error, IsADirectoryError):
        return InputError(str(path), "", "it is a folder", hint)
    return InputError(str(path), "", f"it cannot be read: {error.strerror}", hint)


def _undecodable(path: Path, error: UnicodeDecodeError) -> str:
    """Place of the first byte that is not UTF-8. The decoder of a file counts from the start of a part of it."""
    if not path.is_file():
        return ""
    try:
        path.read_bytes().decode()
    except UnicodeDecodeError as found:
        return f"byte {found.start}"
    return f"byte {error.start}"


def _application(section: Section, taken: list[tuple[str, range, str]]) -> Application:
    name, budget = section.get("name", str), section.get("budget", float)
    if not 0 <= budget <= LARGEST:
        raise section.error("budget", f"it is {budget}", f"give a number from 0 to {LARGEST:g}")
    pays = section.get("pays", float, 0.0)
    if not 0 <= pays <= LARGEST:
        raise section.error("pays", f"it is {pays}", f"give a number from 0 to {LARGEST:g}")
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
    return Application(name, budget, tuple(sources), pays)


def _source(section: Section, place: str, text: Any) -> tuple[str, range]:
    wanted = 'write "ADDRESS", "ADDRESS:PORT" or "ADDRESS:FIRST-LAST"; an address with colons in brackets'
    if not isinstance(text, str) or not text:
        raise section.error(place, f"it is {text!r}", wanted)
    bare = text.startswith("[") and text.endswith("]")
    address, colon, ports = (text, "", "") if bare or ":" not in text else text.rpartition(":")
    in_brackets = address.startswith("[") and address.endswith("]")
    address = address[1:-1] if in_brackets else address
    if (
        text != text.strip()
        or any(mark in address for mark in "[]")
        or (":" in address and not in_brackets)
        or not address
    ):
        raise section.error(place, f"it is {text!r}", wanted)
    if _is_network(address):
        raise section.error(place, f'"{text}" is a network', "name each address of it")
    address = _canonical(address)
    if not colon:
        return address, PORTS
    first, dash, last = ports.partition("-")
    last = last if dash else first
    if not (address and _is_port(first) and _is_port(last) and int(first) <= int(last)):
        raise section.error(place, f'"{text}" has no ports from 0 to 65535 after its colon', wanted)
    return address, range(int(first), int(last) + 1)


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


@lru_cache(maxsize=1 << 16)
def _canonical(address: str) -> str:
    """An address as agents log it: an IPv6 address in its short form, and IPv4-mapped ones as IPv4."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        # Nodes of large networks have names.
        return address
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and int(text) in PORTS


def read_logs(paths: Sequence[Path], lost: dict[Path, int] | None = None) -> Iterator[Setting]:
    """Reads the rows of several logs, and counts in ``lost`` the weights that each host could not log."""
    for path in paths:
        yield from read_log(path, lost)


def read_log(path: Path, lost: dict[Path, int] | None = None) -> Iterator[Setting]:
    """Reads the rows of a log; ``lost`` as in ``read_logs``. A log is read once: it may be a pipe."""
    line = 0
    lines, clock = _Lines(), _Clock()
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(lines.rows(file), strict=True)
            missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
            if missing:
                wanted = f"begin the file with the line {','.join(COLUMNS)}"
                place = f"line {max(rows.line_num, 1) + lines.skipped}"
                raise InputError(str(path), place, f"there is no column {', '.join(missing)}", wanted)
            names = list(rows.fieldnames or ())
            if strange := [name for k, name in enumerate(names) if name not in COLUMNS or name in names[:k]]:
                hint = f"remove what is not read; the columns are {', '.join(COLUMNS)}, each once"
                place = f"line {rows.line_num + lines.skipped}"
                raise InputError(str(path), place, f"unknown column {', '.join(map(repr, strange))}", hint)
            for row in rows:
                line = rows.line_num + lines.skipped
                try:
                    setting = _setting(path, line, row)
                except InputError:
                    if not lines.is_cut:
                        raise
                    # A host that stops within a row leaves it cut; its agent removes it when it starts again.
                    _warn(path, f"line {line}: the last row is cut, and is not used")
                    line = 0
                    break
                clock.note(setting)
                yield setting
    except csv.Error as error:
        hint = "write one row a line, with a comma between two values and quotes closed"
        raise InputError(str(path), f"after line {line}", f"it is not CSV: {error}", hint) from None
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error, f"name a CSV file with the columns {', '.join(COLUMNS)}") from None
    if lines.is_cut and line:
        _warn(path, f"line {line}: the line does not end, so that the weight may be cut")
    if backwards := clock.backwards():
        what = f"{backwards} flows end at a time before their last weight, as if the host's clock had been set back"
        _warn(path, f"{what}; they count up to the end of the logs")
    if lost is not None:
        lost[path] = lines.lost


class _Clock:
    """Flows of a log whose last row ends them, at a time before that of another row."""

    def __init__(self) -> None:
        self._open: dict[FiveTuple, tuple[int, bool]] = {}

    def note(self, setting: Setting) -> None:
        """Takes the next row."""
        latest_ns, _ = self._open.get(setting.flow, (-1, False))
        ends = setting.weight == 0
        if ends and setting.time_ns >= latest_ns:
            self._open.pop(setting.flow, None)
        else:
            self._open[setting.flow] = (max(setting.time_ns, latest_ns), ends)

    def backwards(self) -> int:
        """Number of these flows."""
        return sum(ends for _, ends in self._open.values())


class _Lines:
    """Lines of a log without comments, which count missing weights."""

    def __init__(self) -> None:
        self.lost, self.skipped, self.is_cut = 0, 0, False

    def rows(self, file: Iterable[str]) -> Iterator[str]:
        """The lines. Those of comments become empty ones, so that lines keep their numbers."""
        is_first = True
        for text in file:
            if text.startswith("#"):
                self.lost += _count(text)
                if is_first:
                    self.skipped += 1
                else:
                    yield "\n"
                continue
            is_first = False
            self.is_cut = not text.endswith(("\n", "\r"))
            yield text


def _count(text: str) -> int:
    """Missing weights of a line of comment."""
    count = text[len(MISSING) :].strip() if text.startswith(MISSING) else ""
    return int(count) if count.isascii() and count.isdigit() else 0


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
        weight = float(texts["weight"]) if texts["weight"].isascii() and "_" not in texts["weight"] else math.nan
    except ValueError:
        weight = math.nan
    if not 0 <= weight <= LARGEST:
        raise fault("weight", f"give a number from 0 to {LARGEST:g}")
    ends = _canonical(texts["src"]), _canonical(texts["dst"])
    flow = (*ends, int(texts["sport"]), int(texts["dport"]), texts["protocol"])
    return Setting(int(texts["time_ns"]), flow, weight)
