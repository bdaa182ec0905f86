"""From an experiment's name to its verdict: run what is missing, analyse, draw, compare."""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from subak.build import build
from subak.errors import InputError
from subak.repro import kinds, records, rules
from subak.repro.catalogue import find
from subak.repro.experiment import SCALES, Changed, Check, Experiment, Size, Variant
from subak.repro.kinds import CellFailedError
from subak.repro.results import Listener, RawResults, RunPlan, write
from subak.repro.values import Value, as_json, text

__all__ = ["CellFailedError", "Finding", "Outcome", "Verdict", "reproduce"]


@dataclass(frozen=True)
class Finding:
    """One row of the table: published against measured."""

    check: Check
    value: Value
    judged: rules.Judged

    @property
    def text(self) -> str:
        """What was measured, for people."""
        return text(self.value, self.check.unit)

    def to_dict(self) -> dict[str, Any]:
        """The row as ``verdict.json`` holds it."""
        return {
            "key": self.check.key,
            "what": self.check.what,
            "published": self.check.published,
            "at": self.check.at,
            "measured": as_json(self.value),
            "text": self.text,
            "must_show": self.check.must_show,
            "exact": self.check.exact,
            "outcome": self.judged.outcome,
            "leans": self.judged.leans,
            "needs": self.judged.needs,
        }


@dataclass(frozen=True)
class Outcome:
    """What came of an experiment, or of a variant of it."""

    runs: int
    ran: bool
    """Whether anything was run; otherwise all results were there already."""
    seconds: float
    """Of running, all attempts together."""
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    variant: Variant | None = None

    def verdict(self, *, changed: bool = False) -> str:
        """The worst of the checks."""
        return rules.verdict([f.judged.outcome for f in self.findings], changed=changed)

    def to_dict(self) -> dict[str, Any]:
        """As ``verdict.json`` holds a variant."""
        assert self.variant is not None
        return {
            "name": self.variant.name,
            "changed": self.variant.changed,
            "runs": self.runs,
            "seconds": round(self.seconds, 3),
            "verdict": self.verdict(),
            "checks": [f.to_dict() for f in self.findings],
        }


@dataclass(frozen=True)
class Verdict:
    """What came of an experiment and of its variants."""

    experiment: Experiment
    scale: str
    seed: int
    main: Outcome
    variants: tuple[Outcome, ...]
    folder: Path
    figures: tuple[str, ...]

    @property
    def word(self) -> str:
        """``met``, ``met with a changed setup``, ``not met``, ``contradicted`` or ``undecided``."""
        return self.main.verdict(changed=bool(self.experiment.changed))

    @property
    def met(self) -> bool:
        """Whether every check is met."""
        return self.word.startswith(rules.MET)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Of the experiment as it is set up."""
        return self.main.findings

    def to_dict(self) -> dict[str, Any]:
        """The document that ``subak repro --json`` prints and ``verdict.json`` holds."""
        return {
            "schema": 2,
            "name": self.experiment.name,
            "figure": self.experiment.figure,
            "claim": self.experiment.claim,
            "kind": self.experiment.kind,
            "scale": self.scale,
            "runs": self.main.runs,
            "seed": self.seed,
            "build": build(),
            "measures": records.measures(self.experiment),
            "verdict": self.word,
            "seconds": round(self.main.seconds, 3),
            "changed": [self._changed(one) for one in self.experiment.changed],
            "checks": [f.to_dict() for f in self.findings],
            "variants": [one.to_dict() for one in self.variants],
            "notes": list(self.main.notes),
            "figures": list(self.figures),
        }

    def _changed(self, changed: Changed) -> dict[str, str]:
        without = next(
            (o.verdict() for o in self.variants if o.variant and o.variant.name == changed.without), "not run"
        )
        return {"what": changed.what, "why": changed.why, "without": changed.without, "comes_out": without}


def reproduce(
    name: str,
    *,
    scale: str = "smoke",
    runs: int | None = None,
    seed: int = 1,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    progress: Listener | None = None,
    variants: bool | None = None,
    on: str = "sim",
) -> Verdict:
    """Runs the experiment ``name``, unless ``out`` holds its results already, and compares them with the paper.

    ``variants`` runs these too; ``None`` does so at paper scale. Writes raw results, the figure (PNG) and
    ``verdict.json`` to ``out`` (``out/repro/NAME-SCALE``). Raises ``InputError`` for a name or size that there is not,
    and for a folder that holds something else.
    """
    experiment = find(name)
    _possible(experiment, scale, runs, seed, on)
    size = experiment.sizes[scale]
    plan = plan_of(size, scale, runs, seed, jobs, progress)
    folder = Path(out) if out is not None else Path("out/repro") / f"{name}-{scale}"
    main = _outcome(experiment, plan, folder, None)
    chosen = experiment.variants_at(scale) if variants or (variants is None and scale == "paper") else []
    others = []
    raws = {}
    for variant in chosen:
        there = folder / "variants" / variant.folder
        own = variant_plan(variant, plan, own_runs=runs is None and scale == "paper")
        others.append(_outcome(experiment, own, there, variant))
        raws[variant.name] = RawResults(there, own)
    figure = _draw(folder, experiment, RawResults(folder, plan, raws))
    verdict = Verdict(experiment, scale, seed, main, tuple(others), folder, figure)
    write(folder / "verdict.json", json.dumps(verdict.to_dict(), indent=1, ensure_ascii=False) + "\n")
    return verdict


def _possible(experiment: Experiment, scale: str, runs: int | None, seed: int, on: str) -> None:
    if scale not in SCALES:
        raise InputError(None, "--scale", f'there is no scale "{scale}"', f"choose {' or '.join(SCALES)}")
    if runs is not None and runs < 1:
        raise InputError(None, "--runs", f"it is {runs}", "give 1 or more")
    if not 0 <= seed < 2**63:
        raise InputError(None, "--seed", f"it is {seed}", "give 0 to 2^63 - 1")
    places = kinds.KINDS[experiment.kind].on
    if on not in ("sim", "testbed"):
        raise InputError(None, "--on", f'there is no "{on}"', "choose sim or testbed")
    if on not in places:
        raise InputError(None, "--on", f"{experiment.name} has no {on} side", f"it runs on: {', '.join(places)}")


def plan_of(
    size: Size, scale: str, runs: int | None, seed: int, jobs: int | None = None, progress: Listener | None = None
) -> RunPlan:
    """How an experiment of that size is run."""
    runs_of = size.runs_of if runs is None else {}
    return RunPlan(scale, runs or size.runs, seed, runs_of, size.spec, size.settings, (), (), jobs, progress)


def variant_plan(variant: Variant, plan: RunPlan, *, own_runs: bool) -> RunPlan:
    """How a variant is run: as the experiment, with one thing changed; without ``own_runs``, no more often than it."""
    spec: dict[str, Any] = {}
    for changes in (plan.spec, variant.spec):
        kinds.merge(spec, json.loads(json.dumps(changes)))
    runs = variant.runs or plan.runs
    runs = runs if own_runs else min(runs, plan.runs)
    settings = {**plan.settings, **variant.settings}
    runs_of = {} if variant.runs else plan.runs_of
    return replace(
        plan, runs=runs, runs_of=runs_of, spec=spec, settings=settings, schemes=variant.schemes, specs=variant.specs
    )


def _outcome(experiment: Experiment, plan: RunPlan, folder: Path, variant: Variant | None) -> Outcome:
    _open(folder, experiment, plan)
    kind = kinds.KINDS[experiment.kind]
    ran = not kind.there(experiment, plan, folder)
    if ran:
        with _clock(folder):
            kind.run(experiment, plan, folder)
    raw = RawResults(folder, plan)
    measured = _measure(experiment, raw)
    checks = [
        c for c in experiment.checks_at(plan.scale) if variant is None or (c.key in measured and (c.rule or c.claim))
    ]
    findings = tuple(_judge(experiment, check, measured, plan.runs) for check in checks)
    notes = tuple(raw.report["notes"]) if raw.has_report else ()
    return Outcome(plan.runs, ran, took(folder), findings, notes, variant)


def _measure(experiment: Experiment, raw: RawResults) -> dict[str, Value]:
    computed = raw.values() if raw.has_report else {}
    measure = getattr(experiment.module, "measure", None)
    return {**computed, **(measure(raw) if measure else {})}


def _judge(experiment: Experiment, check: Check, measured: dict[str, Value], runs: int) -> Finding:
    if check.key not in measured:
        file = str(experiment.folder / "published.toml")
        raise InputError(file, "check.key", f'nothing is measured as "{check.key}"', f"there is: {', '.join(measured)}")
    value = measured[check.key]
    return Finding(check, value, rules.judge(value, check.rule, exact=check.exact, claim=check.claim, runs=runs))


class _clock:  # noqa: N801
    """Adds what runs inside to the folder's seconds, whether or not it comes to its end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        self._begun = time.monotonic()

    def __exit__(self, *_: object) -> None:
        seconds = took(self._folder) + time.monotonic() - self._begun
        write(self._folder / "took.json", json.dumps({"seconds": round(seconds, 3)}) + "\n")


def took(folder: Path) -> float:
    """The seconds of running that the results in ``folder`` took, all attempts together."""
    try:
        return float(json.loads((folder / "took.json").read_bytes())["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0


def _open(folder: Path, experiment: Experiment, plan: RunPlan) -> None:
    """Makes the folder, or sees that it holds results of this very experiment and build."""
    told = [plan.runs_of, plan.spec, plan.settings, plan.schemes, plan.specs]
    content = json.dumps(told).encode() + b"".join(p.read_bytes() for p in experiment.specs.values())
    ours = {
        "schema": 2,
        "experiment": experiment.name,
        "scale": plan.scale,
        "runs": plan.runs,
        "seed": plan.seed,
        "build": build(),
        "sources": records.sources(experiment),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    path = folder / "manifest.json"
    mend = "choose another --out, or remove this one to start anew"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            held = json.loads(path.read_bytes())
            different = [k for k in ours if not isinstance(held, dict) or held.get(k) != ours[k]]
            if different:
                raise InputError(str(folder), "", f"it holds results of another {', '.join(different)}", mend)
        elif any(folder.iterdir()):
            raise InputError(str(folder), "", "it holds other files", "choose an empty or a new directory")
        else:
            write(path, json.dumps(ours, indent=1) + "\n")
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(str(folder), "", f"it cannot be used: {error}", mend) from None


def _draw(folder: Path, experiment: Experiment, raw: RawResults) -> tuple[str, ...]:
    from subak.repro import figures

    path = folder / "figure.png"
    with figures.style():
        figure = experiment.module.draw(raw)
        try:
            figures.save(figure, path)
        except OSError as error:
            raise InputError(str(path), "", f"it cannot be written: {error.strerror}", "choose another --out") from None
    return ("figure.png",)
