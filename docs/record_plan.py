"""Which records ``make records`` runs anew within a budget, in which order, and what each costs."""

from __future__ import annotations

import bisect
import hashlib
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import record_compare as compare
from subak.build import build
from subak.errors import InputError
from subak.repro import catalogue, kinds, measures, records
from subak.repro.experiment import Experiment
from subak.repro.reproduce import plan_of, variant_plan
from subak.repro.results import RunPlan

WORK = Path(__file__).parents[1] / "out/records"
KEPT, DIFFERS = "kept", "differs"
"""Files that mark a folder whose results are stored, and one whose values differ from those of the record."""


@dataclass(frozen=True)
class Step:
    """A planned run of an experiment."""

    experiment: Experiment
    runs: int
    """Number of runs; 0 to renew the record by comparing a sample of one run."""
    seconds: float
    """Estimated time on one core, s."""

    @property
    def words(self) -> str:
        """The step as text, for the plan that is printed first."""
        what = (
            f"{self.runs} run{'s' * (self.runs > 1)}" if self.runs else "one run, to see whether the record still holds"
        )
        return f"{self.experiment.name}: {what}, about {self.seconds / 60:.1f} core-minutes"


def steps(seconds: float) -> list[Step]:
    """The most urgent steps that fit into ``seconds`` of one core, in order."""
    chosen: list[Step] = []
    planned: set[str] = set()
    ranked = [(rank, e) for e in catalogue().values() if (rank := urgency(e))[0] <= 2]
    for _, experiment in sorted(ranked, key=itemgetter(0)):
        record = record_of(experiment)
        begun = begun_runs(experiment) or marked(folder_of(experiment, "sample"), DIFFERS)
        if record is not None and record.changed_since() and not begun and compare.comparable(record):
            runs, cost = 0, costs(experiment, 1)
        else:
            runs = begun_runs(experiment) or runs_for(experiment, seconds)
            cost = costs(experiment, runs) if runs else {}
        needed = sum(value for trials, value in cost.items() if trials not in planned)
        if cost and needed <= seconds:
            chosen.append(Step(experiment, runs, needed))
            planned |= cost.keys()
            seconds -= needed
    return chosen


def urgency(experiment: Experiment) -> tuple[int, str, int, float]:
    """Sort key of experiments to run again, most urgent first: never recorded, changed since, undecided, the rest.

    Among equally urgent ones the order is: oldest record, most undecided claims, lowest cost.
    """
    record, whole = record_of(experiment), seconds_of(experiment, experiment.sizes["paper"].runs)
    if record is None:
        return 0, "", 0, whole
    old = 1 if record.changed_since() else 2 if record.uncertain() else 3
    return old, record.date, -record.uncertain(), whole


def record_of(experiment: Experiment) -> records.Record | None:
    """The experiment's record; ``None`` without one. One that cannot be read counts as none, with a warning."""
    try:
        return records.of(experiment)
    except InputError as error:
        print(error, file=sys.stderr)
        return None


def runs_for(experiment: Experiment, seconds: float) -> int:
    """Number of runs that fit into ``seconds``; 0 if they would not replace the record, or tell no more than it.

    It is at most that of the scale or of the record, or twice that of an undecided record. Of an experiment that
    declares runs of single specs it is the declared one.
    """
    record, size = record_of(experiment), experiment.sizes["paper"]
    held = record.held["runs"] if record else 0
    wanted = max(size.runs, held * (2 if record and record.uncertain() else 1))
    fitting = [size.runs] if size.runs_of else range(1, wanted + 1)
    count = bisect.bisect_right(fitting, seconds, key=lambda runs: seconds_of(experiment, runs))
    runs = fitting[count - 1] if count else 0
    # The same seeds and code give the same values.
    known = held if record is None or record.changed_since() else held + 1
    return 0 if runs < known else runs


def costs(experiment: Experiment, runs: int) -> dict[str, float]:
    """Estimated time on one core of ``runs`` runs and of the variants, s, by set of trials.

    Equal sets of trials run once, also those of other experiments. The time per run is that of the record; without one
    it is that of the experiment's declaration, the same for each variant.
    """
    size, record = experiment.sizes["paper"], record_of(experiment)
    held = record.held if record else {}
    parts = {"": held} | {one["name"]: one for one in held.get("variants", [])}
    alone = _seconds_each(experiment, held) or size.seconds / size.runs
    return {
        kinds.trials(experiment, plan) or f"{experiment.name} {name}": _runs_in(plan)
        * (_seconds_each(experiment, parts.get(name, {})) or alone)
        for name, plan in reversed(_plans(experiment, runs).items())
    }


def _plans(experiment: Experiment, runs: int) -> dict[str, RunPlan]:
    size, asked = experiment.sizes["paper"], runs_asked(experiment, runs)
    plan = plan_of(size, "paper", asked, seed_of(experiment))
    return {"": plan} | {v.name: variant_plan(v, plan, own_runs=asked is None) for v in experiment.variants_at("paper")}


def _runs_in(plan: RunPlan) -> float:
    """Number of runs; where specs have their own, the mean over these, since a record has no times of single specs."""
    return sum(plan.runs_of.values()) / len(plan.runs_of) if plan.runs_of else plan.runs


def runs_asked(experiment: Experiment, runs: int) -> int | None:
    """``runs`` as ``reproduce`` takes it: ``None`` for the declared number, with the runs of single specs."""
    return None if runs == experiment.sizes["paper"].runs else runs


def seed_of(experiment: Experiment) -> int:
    """Seed of the first run: that of the record, whose seeds may be new ones on purpose."""
    record = record_of(experiment)
    return max(records.HELD_OUT, record.held.get("seed", 0) if record else 0)


def _seconds_each(experiment: Experiment, part: Mapping[str, Any]) -> float:
    """Time of a run of the experiment or of a variant, s; 0 if the record does not have it."""
    # Hosts wait more than they compute.
    seconds = (
        part.get("seconds", 0) if kinds.is_of_hosts(experiment) else part.get("cpu_seconds", part.get("seconds", 0))
    )
    return float(seconds / part["runs"]) if seconds > 0.1 else 0.0


def seconds_of(experiment: Experiment, runs: int = 1) -> float:
    """Estimated time on one core of ``runs`` runs and of the variants, s."""
    return sum(costs(experiment, runs).values())


def folder_of(experiment: Experiment, what: int | str) -> Path:
    """Folder of so many runs, or of the ``sample``, with the present code: results of other code are never mixed in."""
    code = {part: one for part, one in measures.of(experiment).items() if part not in measures.JUDGED_WITH}
    told = json.dumps([code, build()], sort_keys=True)
    return WORK / f"{experiment.name}-{what}-{hashlib.sha256(told.encode()).hexdigest()[:12]}"


def marked(folder: Path, mark: str) -> bool:
    """Whether the folder has this mark."""
    return (folder / mark).exists()


def begun_runs(experiment: Experiment) -> int:
    """Number of runs of a folder whose results are not stored yet, the largest; 0 without one."""
    pattern = re.escape(folder_of(experiment, "RUNS").name).replace("RUNS", r"(\d+)")
    record = record_of(experiment)
    begun = (
        int(found[1])
        for path in WORK.glob(f"{experiment.name}-*")
        if (found := re.fullmatch(pattern, path.name)) and not marked(path, KEPT)
    )
    return max((runs for runs in begun if record is None or runs >= record.held["runs"]), default=0)
