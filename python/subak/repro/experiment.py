"""What an experiment is: a claim of a paper, how to run it, and what its results must show."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from subak.repro.rules import Rule

SCALES = ("smoke", "paper")
CLAIM, OURS, INPUT = "claim", "ours", "input"
PARTS = (CLAIM, OURS, INPUT)
"""What a check is of: a claim of the paper, a bound of our own, or what was put in or fitted. The first is judged."""


@dataclass(frozen=True)
class Size:
    """An experiment at one scale."""

    runs: int
    """Repetitions unless ``--runs`` says otherwise: seeds of a spec; what else they are of, the experiment says."""
    seconds: float
    """What it takes on one core of a present-day machine, about."""
    runs_of: dict[str, int] = field(default_factory=dict)
    """Of specs that have a number of their own."""
    spec: dict[str, Any] = field(default_factory=dict)
    """What is different from the specs."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What an experiment without specs is told."""


@dataclass(frozen=True)
class Check:
    """A published value, and the rule for the measured one."""

    key: str
    what: str
    published: str
    """What the text says or the figure shows; empty for a value that is only reported."""
    at: str
    """Where."""
    must_show: str
    """In words; empty where nothing has to hold."""
    rule: Rule | None
    claim: Rule | None
    """What the paper claims: a value that breaks it contradicts the paper."""
    ours: bool
    """The bound is ours, not the paper's: said so, or its numbers are neither in ``published`` nor in ``quote``."""
    exact: bool
    """The value needs no interval: nothing was drawn for it."""
    unit: str = ""
    scales: tuple[str, ...] = SCALES
    part: str = CLAIM
    """One of ``PARTS``."""
    quote: str = ""
    """The paper's words from which the bound follows, where its numbers are not those that were published."""


@dataclass(frozen=True)
class Changed:
    """Where the setup is not the paper's."""

    what: str
    why: str
    without: str = ""
    """The variant that has it as the paper has it; empty where there is none."""
    mended: bool = False
    """Records alone still have it: the setup has been put right since, and not been run."""


@dataclass(frozen=True)
class Reading:
    """One value of a parameter that the paper leaves open."""

    what: str
    variant: str
    """The variant that has it; empty for the experiment as it is set up."""
    usual: bool
    """It is what the field took by default at that time."""


@dataclass(frozen=True)
class Open:
    """A parameter that the paper leaves open and on which the outcome may turn."""

    parameter: str
    readings: tuple[Reading, ...]


@dataclass(frozen=True)
class Variant:
    """The experiment with one thing changed."""

    name: str
    changed: str
    runs: int | None
    """In place of the experiment's own."""
    schemes: tuple[str, ...]
    """Only these schemes of the specs run; all if empty."""
    specs: tuple[str, ...]
    """Only these specs; all if empty."""
    spec: dict[str, Any]
    settings: dict[str, Any]
    scales: tuple[str, ...]
    departs: str = ""
    """What the paper says where the variant does otherwise; empty where the paper does not say."""

    @property
    def folder(self) -> str:
        """Where its results lie, below ``variants``."""
        return re.sub(r"[^a-z0-9.]+", "-", self.name.lower()).strip("-")


@dataclass(frozen=True)
class Experiment:
    """One figure or table of a paper."""

    name: str
    title: str
    figure: str
    """Where it stands in the paper."""
    claim: str
    """What the paper claims, in a sentence."""
    kind: str
    """How it is run: see ``kinds``."""
    schemes: tuple[str, ...]
    """The schemes that it is about."""
    paper: str
    """Folder of the paper."""
    folder: Path
    sizes: dict[str, Size]
    checks: tuple[Check, ...]
    changed: tuple[Changed, ...]
    variants: tuple[Variant, ...]
    packages: tuple[str, ...] = ()
    """The packages of ``subak`` that compute it, where its kind does not say."""
    crates: tuple[str, ...] = ()
    """The crates that compute it, where its kind does not say."""
    open: tuple[Open, ...] = ()
    instead: str = ""
    """What runs in place of the system that the paper names, such as exact fluid rates."""
    unasked: tuple[str, ...] = ()
    """Parts of the claim that no check measures."""

    @property
    def module(self) -> ModuleType:
        """The analysis: ``draw``; ``measure`` of what specs simulated; ``run`` of kind ``python``."""
        return import_module(f"subak.papers.{self.paper}.{self.folder.name}")

    @property
    def specs(self) -> dict[str, Path]:
        """The specs that it simulates, by name: ``spec.toml`` has none, ``spec-NAME.toml`` its own."""
        return {p.stem.removeprefix("spec").removeprefix("-"): p for p in sorted(self.folder.glob("spec*.toml"))}

    @property
    def not_asked(self) -> tuple[str, ...]:
        """Parts of the claim, and published values, that no rule judges."""
        judged = {c.key for c in self.checks if c.rule or c.claim}
        silent = [c for c in self.checks if c.part == CLAIM and c.published and c.key not in judged]
        told = [
            f"{c.what}: the paper has {c.published}{f' {c.unit}' if c.unit not in c.published else ''}" for c in silent
        ]
        return (*self.unasked, *dict.fromkeys(told))

    def checks_at(self, scale: str) -> list[Check]:
        """The checks that mean something at ``scale``."""
        return [c for c in self.checks if scale in c.scales]

    def variants_at(self, scale: str) -> list[Variant]:
        """The variants that mean something at ``scale``."""
        return [v for v in self.variants if scale in v.scales]
