"""Description of an experiment: a claim of a paper, how to run the experiment, and the rules for its results."""

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
"""Kind of a check: a claim of the paper, a bound of this project, or an input or fitted value. Only claims are
judged."""


@dataclass(frozen=True)
class Size:
    """Size of an experiment at one scale (smoke or paper)."""

    runs: int
    """Number of repetitions, unless ``--runs`` is given: seeds of a spec, or repetitions by the experiment's own
    code."""
    seconds: float
    """Approximate duration on one core of a present-day machine, s."""
    runs_of: dict[str, int] = field(default_factory=dict)
    """By name of a spec: its number of repetitions, if it differs from ``runs``."""
    spec: dict[str, Any] = field(default_factory=dict)
    """Changes to the experiment's specs at this scale."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Parameters for an experiment that its own code computes, without specs."""


@dataclass(frozen=True)
class Check:
    """A published value, with the rule for the measured one."""

    key: str
    what: str
    published: str
    """The paper's text or a value read from its figure; empty if the paper has no such value."""
    at: str
    """Section or figure of the paper that has the value."""
    must_show: str
    """The rule as text for readers, such as "at least 1.2"; empty if there is no rule."""
    rule: Rule | None
    claim: Rule | None
    """The paper's claim as a rule: a value that violates it contradicts the paper."""
    ours: bool
    """Whether the bound is this project's: declared so, or its numbers are neither in ``published`` nor in
    ``quote``."""
    exact: bool
    """Whether the value needs no confidence interval, since nothing in the run is random."""
    unit: str = ""
    scales: tuple[str, ...] = SCALES
    part: str = CLAIM
    """Kind of the check: one of ``PARTS``."""
    quote: str = ""
    """The paper's words from which the bound follows, if its numbers were not published."""


@dataclass(frozen=True)
class Changed:
    """A departure from the paper's setup."""

    what: str
    why: str
    without: str = ""
    """The variant without this departure; empty if there is none."""
    mended: bool = False
    """Whether only existing records have the departure: the setup was corrected later, and the experiment not run
    again."""


@dataclass(frozen=True)
class Reading:
    """One value of a parameter that the paper leaves open."""

    what: str
    variant: str
    """The variant with this value; empty for the experiment itself."""
    usual: bool
    """Whether this was the usual value in the field at the time of the paper."""


@dataclass(frozen=True)
class Open:
    """A parameter that the paper leaves open and that may change the outcome."""

    parameter: str
    readings: tuple[Reading, ...]


@dataclass(frozen=True)
class Cause:
    """Why a claim is not met."""

    what: str
    shown_by: tuple[str, ...]
    """Variants and checks of the experiment that show it; empty if the cause is open."""
    excluded: str
    """What was excluded, if the cause is open."""


@dataclass(frozen=True)
class Variant:
    """The experiment with one change."""

    name: str
    changed: str
    runs: int | None
    """Number of runs of the variant; ``None`` for that of the experiment."""
    schemes: tuple[str, ...]
    """Schemes of the specs to run; all if empty."""
    specs: tuple[str, ...]
    """Specs to run; all if empty."""
    spec: dict[str, Any]
    settings: dict[str, Any]
    scales: tuple[str, ...]
    departs: str = ""
    """The paper's statement from which the variant departs; empty if the paper makes none."""

    @property
    def folder(self) -> str:
        """Name of the folder of the variant's results, below ``variants``."""
        return re.sub(r"[^a-z0-9.]+", "-", self.name.lower()).strip("-")


@dataclass(frozen=True)
class Experiment:
    """An experiment: one figure or table of a paper."""

    name: str
    title: str
    figure: str
    """Figure, table or section of the paper."""
    claim: str
    """The paper's claim, in a sentence."""
    kind: str
    """Kind of the experiment: a key of ``kinds.KINDS``."""
    schemes: tuple[str, ...]
    """Schemes in the experiment."""
    paper: str
    """Name of the paper's folder below ``subak/papers``."""
    folder: Path
    sizes: dict[str, Size]
    checks: tuple[Check, ...]
    changed: tuple[Changed, ...]
    variants: tuple[Variant, ...]
    packages: tuple[str, ...] = ()
    """Packages of ``subak`` that compute the values, if the kind does not determine them."""
    crates: tuple[str, ...] = ()
    """Crates that compute the values, if the kind does not determine them."""
    open: tuple[Open, ...] = ()
    instead: str = ""
    """System that is run in place of the one that the paper names, such as exact fluid rates; empty if that system is
    run."""
    unasked: tuple[str, ...] = ()
    """Parts of the paper's claim that no check covers."""
    causes: tuple[Cause, ...] = ()
    """Causes of claims that are not met or contradicted."""
    specs_of: str = ""
    """Folder of the paper's experiment whose specs this one runs; empty if it has its own."""

    @property
    def module(self) -> ModuleType:
        """The experiment's Python module: ``draw``; ``measure`` for simulated specs.

        ``run`` for the kind ``python``.
        """
        return import_module(f"subak.papers.{self.paper}.{self.folder.name}")

    @property
    def specs(self) -> dict[str, Path]:
        """The experiment's specs by name: ``spec.toml`` has the empty name, ``spec-NAME.toml`` the name NAME."""
        folder = self.folder.parent / (self.specs_of or self.folder.name)
        return {p.stem.removeprefix("spec").removeprefix("-"): p for p in sorted(folder.glob("spec*.toml"))}

    @property
    def not_asked(self) -> tuple[str, ...]:
        """Parts of the claim, and published values, without a rule."""
        judged = {c.key for c in self.checks if c.rule or c.claim}
        silent = [c for c in self.checks if c.part == CLAIM and c.published and c.key not in judged]
        told = [
            f"{c.what}: the paper has {c.published}{f' {c.unit}' if c.unit not in c.published else ''}" for c in silent
        ]
        return (*self.unasked, *dict.fromkeys(told))

    def checks_at(self, scale: str) -> list[Check]:
        """Checks of the experiment that apply at ``scale`` (smoke or paper)."""
        return [c for c in self.checks if scale in c.scales]

    def variants_at(self, scale: str) -> list[Variant]:
        """Variants of the experiment that are run at ``scale`` (smoke or paper)."""
        return [v for v in self.variants if scale in v.scales]
