"""The experiments that there are: one folder each below ``subak/papers``.

An experiment is a lab run, with specs of its own (``spec*.toml``) and the values published (``published.toml``), or it
is computed by the round driver, in Rust, which then brings its checks along.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from subak.errors import InputError

PAPERS = Path(__file__).parent.parent / "papers"
SCALES = ("smoke", "paper")


@dataclass(frozen=True)
class Size:
    """An experiment at one scale."""

    runs: int | None
    """Repetitions unless ``--runs`` says otherwise; ``None`` where the round driver knows."""
    seconds: float
    """What it takes on one core of a present-day machine, about."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What else the experiment reads of its scale."""


@dataclass(frozen=True)
class Check:
    """A published value and what must hold of the measured one."""

    key: str
    what: str
    published: str
    must_show: str
    """In words; empty for a value that is only reported."""
    rule: tuple[str, Any] | None
    """``at_most``, ``at_least``, ``within`` or ``equals`` with its operand."""
    tolerance: float = 1e-9
    """Relative, for ``equals``."""
    unit: str = ""
    scales: tuple[str, ...] = SCALES


@dataclass(frozen=True)
class Experiment:
    """One figure or table of a paper."""

    name: str
    title: str
    figure: str
    """Where it stands in the paper."""
    shows: str
    schemes: tuple[str, ...]
    """The schemes that it is about."""
    paper: str
    """Folder of the paper."""
    folder: Path
    sizes: dict[str, Size]
    checks: tuple[Check, ...]

    @property
    def module(self) -> ModuleType:
        """The analysis: ``draw`` and, where specs are simulated, ``measure``."""
        return import_module(f"subak.papers.{self.paper}.{self.folder.name}")

    @property
    def specs(self) -> dict[str, Path]:
        """The specs that it simulates, by name: ``spec.toml`` has none, ``spec-NAME.toml`` its own."""
        return {p.stem.removeprefix("spec").removeprefix("-"): p for p in sorted(self.folder.glob("spec*.toml"))}

    def checks_at(self, scale: str) -> list[Check]:
        """The checks that mean something at ``scale``."""
        return [c for c in self.checks if scale in c.scales]


@cache
def catalogue() -> dict[str, Experiment]:
    """Every experiment by name, in the order of the papers and of their figures."""
    found = [_read(path.parent) for path in PAPERS.glob("*/*/experiment.toml")]
    return {e.name: e for e in sorted(found, key=lambda e: (e.paper, _natural(e.folder.name)))}


def find(name: str) -> Experiment:
    """The experiment called ``name``."""
    known = catalogue()
    if name not in known:
        near = [n for n in known if n.split("-")[0] == name.split("-")[0]] or list(known)
        raise InputError(None, "NAME", f'there is no experiment "{name}"', f"choose one of: {', '.join(near)}")
    return known[name]


def paper(folder: str) -> dict[str, str]:
    """Title, authors and place of the paper whose experiments lie in ``folder``."""
    return dict(_toml(PAPERS / folder / "paper.toml"))


def _read(folder: Path) -> Experiment:
    told = _toml(folder / "experiment.toml")
    published = _toml(folder / "published.toml") if (folder / "published.toml").exists() else {}
    return Experiment(
        name=told["name"],
        title=told["title"],
        figure=told["figure"],
        shows=told["shows"],
        schemes=tuple(told["schemes"]),
        paper=folder.parent.name,
        folder=folder,
        sizes={scale: _size(told[scale]) for scale in SCALES},
        checks=tuple(_check(c) for c in published.get("check", [])),
    )


def _size(told: dict[str, Any]) -> Size:
    rest = {key: value for key, value in told.items() if key not in ("runs", "seconds")}
    return Size(told.get("runs"), told["seconds"], rest)


def _check(told: dict[str, Any]) -> Check:
    rules = [(op, told[op]) for op in ("at_most", "at_least", "within", "equals") if op in told]
    return Check(
        key=told["key"],
        what=told["what"],
        published=told["published"],
        must_show=told.get("must_show", ""),
        rule=rules[0] if rules else None,
        tolerance=told.get("tolerance", 1e-9),
        unit=told.get("unit", ""),
        scales=tuple(told.get("scales", SCALES)),
    )


def _toml(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return tomllib.load(file)


def _natural(name: str) -> list[int | str]:
    # Words and numbers in turn, so that two names compare place by place.
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
