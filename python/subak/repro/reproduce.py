"""From an experiment's name to its verdict: run what is missing, analyse, draw, compare."""

from __future__ import annotations

import hashlib
import json
import os
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subak import _subak
from subak.errors import InputError
from subak.repro.catalogue import SCALES, Check, Experiment, find
from subak.repro.results import Listener, RawResults, RunPlan, Value, as_json, passes, told, told_json


class CellFailedError(RuntimeError):
    """A simulation did not come to its end."""


@dataclass(frozen=True)
class Finding:
    """One row of the table: published against measured."""

    what: str
    published: str
    measured: Any
    """As JSON has it."""
    text: str
    """What was measured, for people."""
    must_show: str
    met: bool | None
    """``None`` where nothing has to hold."""

    def to_dict(self) -> dict[str, Any]:
        """The row as ``verdict.json`` holds it."""
        return {
            "what": self.what,
            "published": self.published,
            "measured": self.measured,
            "text": self.text,
            "must_show": self.must_show,
            "pass": self.met,
        }


@dataclass(frozen=True)
class Verdict:
    """What came of an experiment."""

    experiment: Experiment
    scale: str
    runs: int
    seed: int
    ran: bool
    """Whether anything was run; otherwise all results were there already."""
    seconds: float
    """Of running."""
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    folder: Path
    figures: tuple[str, ...]

    @property
    def met(self) -> bool:
        """Whether everything holds that must."""
        return all(f.met is not False for f in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """The document that ``subak repro --json`` prints and ``verdict.json`` holds."""
        from subak import __version__

        return {
            "schema": 1,
            "name": self.experiment.name,
            "figure": self.experiment.figure,
            "scale": self.scale,
            "runs": self.runs,
            "seed": self.seed,
            "version": __version__,
            "verdict": "met" if self.met else "not met",
            "seconds": round(self.seconds, 3),
            "checks": [f.to_dict() for f in self.findings],
            "notes": list(self.notes),
            "figures": list(self.figures),
        }


def reproduce(
    name: str,
    *,
    scale: str = "smoke",
    runs: int | None = None,
    seed: int = 1,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    progress: Listener | None = None,
) -> Verdict:
    """Runs the experiment ``name``, unless ``out`` holds its results already, and holds them against the paper.

    Writes raw results, figures (PNG) and ``verdict.json`` to ``out`` (``out/repro/NAME-SCALE``). Raises ``InputError``
    for a name or size that there is not, and for a folder that holds something else.
    """
    experiment = find(name)
    if scale not in SCALES:
        raise InputError(None, "--scale", f'there is no scale "{scale}"', f"choose {' or '.join(SCALES)}")
    size = experiment.sizes[scale]
    if runs is not None and runs < 1:
        raise InputError(None, "--runs", f"it is {runs}", "give 1 or more")
    if not 0 <= seed < 2**63:
        raise InputError(None, "--seed", f"it is {seed}", "give 0 to 2^63 - 1")
    settings = {key: value for key, value in size.settings.items() if runs is None or key != "runs_of"}
    plan = RunPlan(scale, runs or size.runs, seed, settings, jobs, progress)
    folder = Path(out) if out is not None else Path("out/repro") / f"{name}-{scale}"
    _open(folder, experiment, plan)
    begun = time.monotonic()
    ran = _run(folder, experiment, plan)
    seconds = time.monotonic() - begun if ran else _took(folder)
    raw = RawResults(folder, scale, settings)
    if experiment.specs:
        measured: dict[str, Value] = experiment.module.measure(raw)
        findings = tuple(_judge(c, measured) for c in experiment.checks_at(scale))
        fewer = plan.settings.get("runs_of", {})
        count, notes = plan.runs or 1, tuple(f"runs of {name}: {few}" for name, few in fewer.items())
    else:
        findings = tuple(_reported(c) for c in raw.report["checks"])
        count, notes = raw.report["runs"], tuple(raw.report["notes"])
    figure = _draw(folder, experiment, raw)
    verdict = Verdict(experiment, scale, count, seed, ran, seconds, findings, notes, folder, figure)
    _write(folder / "verdict.json", json.dumps(verdict.to_dict(), indent=1, ensure_ascii=False) + "\n")
    return verdict


def spec_of(experiment: Experiment, path: Path, name: str, plan: RunPlan) -> dict[str, Any]:
    """The spec as simulated: the file's, with the scale's changes and the number of runs."""
    with path.open("rb") as file:
        spec = tomllib.load(file)
    changes = plan.settings.get("spec", {})
    _merge(spec, changes.get(name, {}) if name else changes)
    runs = plan.settings.get("runs_of", {}).get(name, plan.runs or 1)
    spec.setdefault("run", {})["seeds"] = [plan.seed + k for k in range(runs)]
    return spec


def _merge(base: dict[str, Any], changes: dict[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = value


def _open(folder: Path, experiment: Experiment, plan: RunPlan) -> None:
    """Makes the folder, or sees that it holds results of this very experiment."""
    from subak import __version__

    content = json.dumps(plan.settings).encode() + b"".join(p.read_bytes() for p in experiment.specs.values())
    ours = {
        "schema": 1,
        "experiment": experiment.name,
        "scale": plan.scale,
        "runs": plan.runs,
        "seed": plan.seed,
        "version": __version__,
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
            _write(path, json.dumps(ours, indent=1) + "\n")
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(str(folder), "", f"it cannot be used: {error}", mend) from None


def _run(folder: Path, experiment: Experiment, plan: RunPlan) -> bool:
    """Runs what is not there, and says whether there was anything; a spec resumes cell by cell."""
    from subak.runs import run

    raw = folder / "raw.json"
    wanted = [folder / (name or "run") / "results.parquet" for name in experiment.specs] or [raw]
    if all(path.exists() for path in wanted):
        return False
    for name, path in experiment.specs.items():
        spec = spec_of(experiment, path, name, plan)
        results = run(spec, folder / (name or "run"), jobs=plan.jobs, progress=plan.progress)
        if results.failed:
            cell, why = next(iter(results.failed.items()))
            raise CellFailedError(f"{experiment.name}: cell {cell} failed: {why}")
    if not experiment.specs:
        jobs = plan.jobs or 0
        _write(raw, _subak.rounds_experiment(experiment.name, plan.scale, plan.runs, plan.seed, jobs, plan.progress))
    return True


def _took(folder: Path) -> float:
    """What the run took whose results are here, where its verdict tells."""
    try:
        return float(json.loads((folder / "verdict.json").read_bytes())["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0


def _judge(check: Check, measured: dict[str, Value]) -> Finding:
    value = measured.get(check.key)
    met = None if check.rule is None else value is not None and passes(check.rule, check.tolerance, value)
    text = "none" if value is None else told(value, check.unit)
    plain = None if value is None else as_json(value)
    return Finding(check.what, check.published, plain, text, check.must_show, met)


def _reported(check: dict[str, Any]) -> Finding:
    """A check that the round driver made itself."""
    published, measured = told_json(check["published"]), check["measured"]
    return Finding(check["name"], published, measured, told_json(measured), check["must_show"], check["pass"])


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


def _write(path: Path, text: str) -> None:
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise InputError(str(path), "", f"it cannot be written: {error.strerror}", "choose another --out") from None
