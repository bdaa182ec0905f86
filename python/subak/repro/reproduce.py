"""Reproduces an experiment: runs what has no results yet, analyses, draws, and compares with the paper."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subak.build import build
from subak.errors import InputError
from subak.repro import kinds, measures, records, rules, samples, verdicts
from subak.repro.catalogue import catalogue, find
from subak.repro.experiment import SCALES, Changed, Check, Experiment, Size, Variant
from subak.repro.kinds import TrialFailedError
from subak.repro.results import Listener, RawResults, RunPlan, write
from subak.repro.values import Value
from subak.repro.verdicts import Finding

if TYPE_CHECKING:
    from subak.cluster import Cluster

__all__ = ["Finding", "Outcome", "TrialFailedError", "Verdict", "reproduce"]

WORKS, FAILS = "works", "fails"


@dataclass(frozen=True)
class Outcome:
    """Outcome of an experiment or of a variant."""

    runs: int
    ran: bool
    """Whether anything was run; otherwise all results existed."""
    seconds: float
    """Running time over all attempts, s."""
    cpu_seconds: float
    """Processor time of this process, its children and a cluster's workers, over all attempts, s."""
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    variant: Variant | None = None

    @property
    def verdict(self) -> str:
        """The worst outcome among the judged claims."""
        return verdicts.of_claims(self.findings)

    def to_dict(self) -> dict[str, Any]:
        """The variant's entry in ``verdict.json``."""
        assert self.variant is not None
        return {
            "name": self.variant.name,
            "changed": self.variant.changed,
            "runs": self.runs,
            "seconds": round(self.seconds, 3),
            "cpu_seconds": round(self.cpu_seconds, 3),
            "verdict": self.verdict,
            "checks": [f.to_dict() for f in self.findings],
        }


@dataclass(frozen=True)
class Verdict:
    """Outcome of an experiment and of its variants."""

    experiment: Experiment
    scale: str
    seed: int
    main: Outcome
    variants: tuple[Outcome, ...]
    folder: Path
    figures: tuple[str, ...]
    jobs: int

    @property
    def word(self) -> str:
        """The verdict: at paper scale one of ``records.VERDICTS``, for a smoke run only ``works`` or ``fails``."""
        if self.scale == "smoke":
            return FAILS if self.broken else WORKS
        return verdicts.word(self.findings, changed=any(not one.mended for one in self.experiment.changed))

    @property
    def broken(self) -> list[Finding]:
        """Checks whose value is outside the range that is expected at this scale."""
        return [f for f in self.findings if f.judged.leans is False]

    @property
    def fine(self) -> bool:
        """Whether the run succeeded: a smoke run works, or all claims are met."""
        return self.word == WORKS if self.scale == "smoke" else self.word.startswith(rules.MET)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings of the experiment; ``depends`` where a variant changes the outcome."""
        others = {o.variant.name: o.findings for o in self.variants if o.variant}
        return verdicts.settle(self.experiment, self.main.findings, others)

    def to_dict(self) -> dict[str, Any]:
        """The document that ``subak repro --json`` prints and ``verdict.json`` contains."""
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
            "measures": measures.of(self.experiment),
            "verdict": self.word,
            "recorded": records.short(self.experiment),
            "record": records.state(self.experiment),
            "seconds": round(self.main.seconds, 3),
            "cpu_seconds": round(self.main.cpu_seconds, 3),
            "jobs": self.jobs,
            "machine": machine(),
            "changed": [self._changed(one) for one in self.experiment.changed if not one.mended],
            "checks": [f.to_dict() for f in self.findings],
            "variants": [one.to_dict() for one in self.variants],
            "notes": list(self.main.notes),
            "unasked": list(self.experiment.not_asked),
            "figures": list(self.figures),
        }

    def _changed(self, changed: Changed) -> dict[str, str]:
        without = next((o.verdict for o in self.variants if o.variant and o.variant.name == changed.without), "not run")
        return {"what": changed.what, "why": changed.why, "without": changed.without, "comes_out": without}


def reproduce(
    name: str,
    *,
    scale: str = "smoke",
    runs: int | None = None,
    seed: int | None = None,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    progress: Listener | None = None,
    variants: bool | None = None,
    on: str | None = None,
    cluster: Cluster | None = None,
) -> Verdict:
    """Runs the experiment ``name``, unless ``out`` has its results already, and compares them with the paper.

    ``seed`` is the seed of the first run. It is 1 at smoke scale, and ``records.HELD_OUT`` at paper scale, since setups
    are chosen by results of smaller seeds. ``variants`` runs the variants too; ``None`` runs them at paper scale only.
    The workers of ``cluster`` run the trials of specs instead of this machine. Raw results, samples, ``verdict.json``
    and, if matplotlib is installed, the figure (PNG) are written to ``out`` (``out/repro/NAME-SCALE``). Raises
    ``InputError`` for an unknown name or scale, and for a folder with other content.
    """
    experiment = find(name)
    if seed is None:
        seed = records.HELD_OUT if scale == "paper" else 1
    _possible(experiment, scale, runs, seed, on)
    if cluster and experiment.kind != "specs":
        what = f"{experiment.name} has no trials to send: it is of the kind {experiment.kind}"
        raise InputError(None, "--cluster", what, "run it here, without a cluster")
    size = experiment.sizes[scale]
    plan = replace(plan_of(size, scale, runs, seed, jobs, progress), cluster=cluster)
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
    threads = (cluster.threads if cluster else jobs) or os.cpu_count() or 1
    verdict = Verdict(experiment, scale, seed, main, tuple(others), folder, figure, threads)
    values = {("", f.check.key): f.value for f in main.findings}
    values |= {(o.variant.name, f.check.key): f.value for o in others if o.variant for f in o.findings}
    samples.write(folder / samples.NAME, values)
    write(folder / "verdict.json", json.dumps(verdict.to_dict(), indent=1, ensure_ascii=False) + "\n")
    return verdict


def _possible(experiment: Experiment, scale: str, runs: int | None, seed: int, on: str | None) -> None:
    if scale not in SCALES:
        raise InputError(None, "--scale", f'there is no scale "{scale}"', f"choose {' or '.join(SCALES)}")
    if runs is not None and runs < 1:
        raise InputError(None, "--runs", f"it is {runs}", "give 1 or more")
    if not 0 <= seed < 2**63:
        raise InputError(None, "--seed", f"it is {seed}", "give 0 to 2^63 - 1")
    if on not in (None, "sim", "testbed"):
        raise InputError(None, "--on", f'there is no "{on}"', "choose sim or testbed")
    side = "testbed" if kinds.is_of_hosts(experiment) else "sim"
    if on not in (None, side):
        raise InputError(None, "--on", f"{experiment.name} has no {on} side", _mend_side(side))


def _mend_side(side: str) -> str:
    if side == "testbed":
        return "it runs on: testbed; where it has a simulated variant, --variants runs that too"
    named = ", ".join(one.name for one in catalogue().values() if kinds.is_of_hosts(one))
    return f"it runs on: sim; experiments of hosts are: {named}"


def plan_of(
    size: Size, scale: str, runs: int | None, seed: int, jobs: int | None = None, progress: Listener | None = None
) -> RunPlan:
    """Plan of an experiment of this size."""
    runs_of = size.runs_of if runs is None else {}
    return RunPlan(scale, runs or size.runs, seed, runs_of, size.spec, size.settings, (), (), jobs, progress)


def variant_plan(variant: Variant, plan: RunPlan, *, own_runs: bool) -> RunPlan:
    """Plan of a variant: that of the experiment with one change; without ``own_runs``, with no more runs."""
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
    ran = not kind.there(experiment, plan, folder) and not _linked(experiment, plan, folder)
    if ran:
        with _clock(folder, plan.cluster):
            kind.run(experiment, plan, folder)
    raw = RawResults(folder, plan)
    values = measured(experiment, raw)
    checks = [
        c for c in experiment.checks_at(plan.scale) if variant is None or (c.key in values and (c.rule or c.claim))
    ]
    family = verdicts.family(experiment.checks_at(plan.scale))
    findings = tuple(_judge(experiment, check, values, plan.runs, family) for check in checks)
    notes = tuple(raw.report["notes"]) if raw.has_report else ()
    return Outcome(plan.runs, ran, *took(folder), findings, notes, variant)


def measured(experiment: Experiment, raw: RawResults) -> dict[str, Value]:
    """Values computed from the results in a folder, by key."""
    computed = raw.values() if raw.has_report else {}
    measure = getattr(experiment.module, "measure", None)
    return {**computed, **(measure(raw) if measure else {})}


def _judge(experiment: Experiment, check: Check, values: dict[str, Value], runs: int, family: int) -> Finding:
    if check.key not in values:
        file = str(experiment.folder / "published.toml")
        raise InputError(file, "check.key", f'nothing is measured as "{check.key}"', f"there is: {', '.join(values)}")
    return verdicts.find(check, values[check.key], runs, family)


def machine() -> dict[str, Any]:
    """Description of this machine: processor type, number of processors, and operating system."""
    return {"processor": _processor(), "processors": os.cpu_count() or 1, "system": platform.platform()}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


class _clock:  # noqa: N801
    """Adds the wall-clock and processor time of a ``with`` block to the folder's totals, even on an exception."""

    def __init__(self, folder: Path, cluster: Cluster | None) -> None:
        self._folder, self._cluster = folder, cluster

    def __enter__(self) -> None:
        self._begun = time.monotonic(), self._cpu_seconds()

    def __exit__(self, *_: object) -> None:
        seconds, cpu_seconds = took(self._folder)
        seconds += time.monotonic() - self._begun[0]
        cpu_seconds += self._cpu_seconds() - self._begun[1]
        told = {"seconds": round(seconds, 3), "cpu_seconds": round(cpu_seconds, 3)}
        write(self._folder / "took.json", json.dumps(told) + "\n")

    def _cpu_seconds(self) -> float:
        told = os.times()
        own = told.user + told.system + told.children_user + told.children_system
        return own + (self._cluster.cpu_s if self._cluster else 0.0)


def took(folder: Path) -> tuple[float, float]:
    """Running time of the results in ``folder`` over all attempts, s: wall-clock and processor time."""
    try:
        told = json.loads((folder / "took.json").read_bytes())
        return float(told["seconds"]), float(told["cpu_seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0, 0.0


def _open(folder: Path, experiment: Experiment, plan: RunPlan) -> None:
    """Creates the folder, or checks that its results are from this experiment, this plan and this build."""
    told = [plan.runs_of, plan.spec, plan.settings, plan.schemes, plan.specs]
    content = json.dumps(told).encode() + b"".join(p.read_bytes() for p in experiment.specs.values())
    ours = {
        "schema": 2,
        "experiment": experiment.name,
        "scale": plan.scale,
        "runs": plan.runs,
        "seed": plan.seed,
        "build": build(),
        "measures": {k: v for k, v in measures.of(experiment).items() if k not in measures.JUDGED_WITH},
        "trials": kinds.trials(experiment, plan),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    path = folder / "manifest.json"
    hint = "choose another --out, or remove this one to start anew"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            held = json.loads(path.read_bytes())
            different = [k for k in ours if not isinstance(held, dict) or held.get(k) != ours[k]]
            if different:
                raise InputError(str(folder), "", f"it holds results of another {', '.join(different)}", hint)
        elif any(folder.iterdir()):
            raise InputError(str(folder), "", "it holds other files", "choose an empty or a new directory")
        else:
            write(path, json.dumps(ours, indent=1) + "\n")
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(str(folder), "", f"it cannot be used: {error}", hint) from None


def _linked(experiment: Experiment, plan: RunPlan, folder: Path) -> bool:
    """Links the results of the same trials from a folder of the experiment, or of another beside it; false without any.

    Several figures of a paper may show one simulation, and variants may differ in the analysis alone.
    """
    ours = json.loads((folder / "manifest.json").read_bytes())
    root = folder.parents[1] if folder.parent.name == "variants" else folder
    for pattern in ("*/manifest.json", "*/variants/*/manifest.json") if ours["trials"] else ():
        for path in sorted(root.parent.glob(pattern)):
            source = path.parent
            if (
                source == folder
                or not _has_trials(path, ours)
                or not kinds.KINDS["specs"].there(experiment, plan, source)
            ):
                continue
            for name in kinds.specs_in(experiment, plan):
                _link(source / (name or "run"), folder / (name or "run"))
            shutil.copy2(source / "took.json", folder / "took.json")
            return True
    return False


def _has_trials(path: Path, ours: dict[str, Any]) -> bool:
    """Whether the manifest at ``path`` is of the trials of ``ours``, by the same build."""
    try:
        held = json.loads(path.read_bytes())
        return all(held[key] == ours[key] for key in ("schema", "trials", "build"))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _link(source: Path, target: Path) -> None:
    part = target.with_name(target.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(source, part, copy_function=_link_file)
    part.replace(target)


def _link_file(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _draw(folder: Path, experiment: Experiment, raw: RawResults) -> tuple[str, ...]:
    """Draws the figures and returns their file names; empty if matplotlib is missing."""
    from subak.repro import figures

    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        return ()
    path = folder / "figure.png"
    with figures.style():
        figure = experiment.module.draw(raw)
        try:
            figures.save(figure, path)
        except OSError as error:
            raise InputError(str(path), "", f"it cannot be written: {error.strerror}", "choose another --out") from None
    return ("figure.png",)
