"""Keeps what experiments came to at paper scale, for their pages.

``python docs/record.py out/repro/NAME-paper ...`` keeps what is there. ``python docs/record.py --budget 20`` says what
it will run and what that costs, and does it: what is oldest and least certain, for so many core-minutes. A record whose
sample of one run comes out the same is renewed, not run anew. The same command goes on where it stopped. Each call
counts the verdicts anew in README.md.
"""

from __future__ import annotations

import argparse
import bisect
import hashlib
import json
import re
import shutil
import sys
import tempfile
import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from pyarrow import parquet
from subak.build import build
from subak.errors import InputError
from subak.repro import (
    Measured,
    RawResults,
    Value,
    Verdict,
    catalogue,
    find,
    founded,
    kinds,
    measures,
    records,
    reproduce,
    samples,
)
from subak.repro.experiment import Experiment
from subak.repro.reproduce import measured, plan_of, variant_plan
from subak.repro.results import Listener, RunPlan
from subak.repro.values import Sample as Numbers
from subak.repro.values import as_json

FIGURES = Path(__file__).parent / "records"
README = Path(__file__).parents[1] / "README.md"
WORK = Path("out/records")


class SpentError(RuntimeError):
    """Raised if the budget of core-minutes is used up."""


def keep(folder: Path) -> str:
    """Stores the values, samples and figure in ``folder``, which ``subak repro`` wrote at paper scale.

    Fewer runs than those of the record do not replace it: they are stored beside it.
    """
    told = json.loads((folder / "verdict.json").read_text())
    experiment = find(told["name"])
    if not (folder / "figure.png").is_file():
        raise InputError(str(folder), "figure.png", "it is missing", "install matplotlib, and run the command again")
    founded.refuse_others(experiment, folder)
    if not records.keep(experiment, folder):
        record = records.of(experiment)
        assert record is not None
        return f"{experiment.name}: the record keeps its {record.runs}; these {told['runs']} are noted beside it"
    figure = FIGURES / f"{told['name']}.png"
    shutil.copy(folder / "figure.png", figure)
    return f"{told['name']}: {records.verdict(experiment)} (runs: {told['runs']}); look at {figure}"


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


def urgency(experiment: Experiment) -> tuple[int, str, int, float]:
    """Sort key of experiments to run again, most urgent first: never recorded, changed since, undecided, the rest.

    Among equally urgent ones the order is: oldest record, most undecided claims, lowest cost.
    """
    record, whole = records.of(experiment), _seconds(experiment, experiment.sizes["paper"].runs)
    if record is None:
        return 0, "", 0, whole
    old = 1 if record.changed_since() else 2 if record.uncertain() else 3
    return old, record.date, -record.uncertain(), whole


def costs(experiment: Experiment, runs: int) -> dict[str, float]:
    """Estimated time on one core of ``runs`` runs and of the variants, s, by set of trials.

    Equal sets of trials run once, also those of other experiments. The time per run is that of the record; without one
    it is that of the experiment's declaration, the same for each variant.
    """
    size, record = experiment.sizes["paper"], records.of(experiment)
    held = record.held if record else {}
    parts = {"": held} | {one["name"]: one for one in held.get("variants", [])}
    alone = _seconds_each(experiment, held) or size.seconds / size.runs
    plan = plan_of(size, "paper", runs, records.HELD_OUT)
    plans = {"": plan} | {v.name: variant_plan(v, plan, own_runs=False) for v in experiment.variants_at("paper")}
    return {
        kinds.trials(experiment, one) or f"{experiment.name} {name}": one.runs
        * (_seconds_each(experiment, parts.get(name, {})) or alone)
        for name, one in reversed(plans.items())
    }


def _seconds_each(experiment: Experiment, part: Mapping[str, Any]) -> float:
    """Time of a run of the experiment or of a variant, s; 0 if the record does not have it."""
    # Hosts wait more than they compute.
    seconds = (
        part.get("seconds", 0) if kinds.is_of_hosts(experiment) else part.get("cpu_seconds", part.get("seconds", 0))
    )
    return float(seconds / part["runs"]) if seconds > 0.1 else 0.0


def _seconds(experiment: Experiment, runs: int = 1) -> float:
    return sum(costs(experiment, runs).values())


def runs_for(experiment: Experiment, seconds: float) -> int:
    """Number of runs that fit into ``seconds``; 0 if it would be smaller than that of the record.

    It is at most that of the scale or of the record, or twice that of an undecided record.
    """
    record = records.of(experiment)
    held = record.held["runs"] if record else 0
    wanted = max(experiment.sizes["paper"].runs, held * (2 if record and record.uncertain() else 1))
    fitting = range(1, wanted + 1)
    runs = bisect.bisect_right(fitting, seconds, key=lambda runs: _seconds(experiment, runs))
    return 0 if runs < held else runs


Sample = dict[str, dict[str, Any]]
"""Values of one run, by variant (empty for the experiment itself) and key."""


def sample_of(record: records.Record) -> Sample | None:
    """Values of one run of the record; ``None`` if those of a variant are not stored.

    Times are not compared, nor are values of a variant that nothing judges.
    """
    names = {"", *(v.name for v in record.experiment.variants_at("paper"))}
    held = record.held.get("sample")
    parts = {"": record.held} | {one["name"]: one for one in record.held.get("variants", [])}
    if held is None:
        if any(part["runs"] > 1 for part in parts.values()):
            return None
        held = {name: {c["key"]: c["measured"] for c in part["checks"]} for name, part in parts.items()}
    if not names <= held.keys() or not all(isinstance(one, dict) for one in held.values()):
        return None
    if not all({c["key"] for c in parts[name]["checks"]} <= held[name].keys() for name in names & parts.keys()):
        return None
    compared = {c.key for c in record.experiment.checks if c.key and (c.unit != "s" or c.published)}
    of_variants = compared & {c.key for c in record.experiment.checks if c.rule or c.claim}
    return {name: {k: v for k, v in held[name].items() if k in (of_variants if name else compared)} for name in names}


def steps(seconds: float) -> list[Step]:
    """The most urgent steps that fit into ``seconds`` of one core, in order."""
    chosen: list[Step] = []
    planned: set[str] = set()
    for experiment in sorted(catalogue().values(), key=urgency):
        record = records.of(experiment)
        if urgency(experiment)[0] > 2:
            break
        stale = record is not None and bool(record.changed_since())
        begun = _begun(experiment) or _differs(experiment)
        if record is not None and stale and not begun and _to_compare(record):
            runs, cost = 0, costs(experiment, 1)
        else:
            runs = _begun(experiment) or runs_for(experiment, seconds)
            cost = costs(experiment, runs) if runs else {}
        needed = sum(value for trials, value in cost.items() if trials not in planned)
        if cost and needed <= seconds:
            chosen.append(Step(experiment, runs, needed))
            planned |= cost.keys()
            seconds -= needed
    return chosen


def redo(budget_s: float, jobs: int) -> None:
    """Prints the plan with its cost, then runs it until ``budget_s`` core-seconds are used."""
    end = time.monotonic() + budget_s / jobs
    planned = steps(budget_s)
    print(
        f"{len(planned)} of {len(catalogue())} records, about {sum(s.seconds for s in planned) / 60:.1f} core-minutes:"
    )
    for step in planned:
        print(f"  {step.words}")

    def listen(done: int, trials: int, share: float) -> None:
        if time.monotonic() > end:
            raise SpentError

    for step in planned:
        name = step.experiment.name
        try:
            if step.runs == 0 and renew(step.experiment, jobs, listen):
                print(f"{name}: one run gives the same numbers; the record is renewed", flush=True)
                continue
            if step.runs == 0:
                print(f"{name}: one run gives other numbers; the next call runs it anew", flush=True)
                continue
            folder = WORK / f"{name}-{step.runs}"
            kept = reproduce(name, scale="paper", runs=step.runs, out=folder, jobs=jobs, progress=listen)
            write_sample(step.experiment, kept, jobs, listen)
            print(keep(folder), flush=True)
        except SpentError:
            print(f"{name}: the budget is spent; the same command goes on where it stopped")
            return
        except InputError as error:
            print(f"{name}: {error}")


def renew(experiment: Experiment, jobs: int = 1, progress: Listener | None = None) -> bool:
    """Whether one run with the present code, and one of each variant, has the values of the record's first run.

    If so, the record's hashes become those of the present code, and its intervals are recomputed. A record without
    values of its first run is compared by its samples, which begin with those of that run. A record with seeds by
    which setups are chosen is not renewed.
    """
    record = records.of(experiment)
    assert record is not None
    compared = _to_compare(record)
    if compared is None:
        return False
    wanted, kept, held = compared
    values = _first_values(experiment, record.held, jobs, progress)
    sample = _as_json(values)
    if not wanted and not begins_with(kept, values):
        return False
    if any(sample[name].get(key) != value for name, one in (wanted or {}).items() for key, value in one.items()):
        return False
    if not wanted:
        held = {**held, "sample": sample}
    renewed = {"date": date.today().isoformat(), "build": build(), "by": "one run"}
    records.hold(experiment, {**held, "measures": measures.of(experiment), "renewed": renewed})
    return True


Kept = dict[samples.Key, dict[int, Numbers]]
"""Samples by variant, key and part of the value."""


def _to_compare(record: records.Record) -> tuple[Sample | None, Kept, dict[str, Any]] | None:
    """The values of the record's first run, its samples, and the record by today's statistics.

    ``None`` without any, or if the setup has been corrected since: its results cannot be the same.
    """
    wanted, kept = sample_of(record), samples.read(record.experiment.folder / samples.NAME)
    if not (wanted or kept) or not record.on_held_out_seeds or any(one.mended for one in record.departures):
        return None
    held: dict[str, Any] | None = record.held
    if set(measures.JUDGED_WITH) & set(record.changed_since()):
        held = records.by_todays_statistics(record)
    return None if held is None else (wanted, kept, held)


Values = dict[str, dict[str, Value]]
"""Values by variant and key, with their samples."""


def begins_with(kept: Kept, values: Values) -> bool:
    """Whether the samples ``kept`` of several runs begin with those of ``values``, the first run.

    Each variant must have samples that can be compared. Numbers of hits and of trials, which are sums over runs, and
    bootstrap samples are not compared.
    """
    compared = set()
    for name, found in values.items():
        for key, value in found.items():
            for part, one in enumerate(value if isinstance(value, list) else [value]):
                if not isinstance(one, Measured) or one.sample is None:
                    continue
                held = kept.get((name, key), {}).get(part)
                for side, numbers in one.sample.sides.items():
                    if side in ("hits", "count", "draws") or not numbers:
                        continue
                    if held is None or held.sides.get(side, [])[: len(numbers)] != list(numbers):
                        return False
                    compared.add(name)
    return compared == set(values)


def _first_values(experiment: Experiment, told: dict[str, Any], jobs: int, progress: Listener | None) -> Values:
    """The values of one run with the present code, and of one of each variant."""
    runs = None if told["runs"] == experiment.sizes["paper"].runs == 1 else 1
    options: dict[str, Any] = {"seed": told["seed"], "jobs": jobs, "progress": progress, "variants": True}
    verdict = reproduce(experiment.name, scale="paper", runs=runs, out=_sample_folder(experiment), **options)
    parts = {"": verdict.main.findings} | {o.variant.name: o.findings for o in verdict.variants if o.variant}
    return {name: {f.check.key: f.value for f in found} for name, found in parts.items()}


def _sample_folder(experiment: Experiment) -> Path:
    code = hashlib.sha256(json.dumps(measures.of(experiment), sort_keys=True).encode()).hexdigest()
    return WORK / f"{experiment.name}-sample-{code[:12]}"


def _differs(experiment: Experiment) -> bool:
    """Whether a run of today's code, of a record that is still of older code, was compared with it."""
    return (_sample_folder(experiment) / "verdict.json").exists()


def _as_json(values: Values) -> Sample:
    return {
        name: {key: json.loads(json.dumps(as_json(value))) for key, value in one.items()}
        for name, one in values.items()
    }


def write_sample(experiment: Experiment, verdict: Verdict, jobs: int, progress: Listener | None) -> None:
    """Adds the values of the first run to ``verdict.json``, with which the record can be renewed later."""
    if all(o.runs == 1 for o in (verdict.main, *verdict.variants)):
        return
    path = verdict.folder / "verdict.json"
    told = json.loads(path.read_text())
    if experiment.kind == "specs":
        sample = _first_run(experiment, verdict.folder, told["seed"])
    else:
        sample = _as_json(_first_values(experiment, told, jobs, progress))
    path.write_text(json.dumps({**told, "sample": sample}, ensure_ascii=False) + "\n")


def _first_run(experiment: Experiment, folder: Path, seed: int) -> Sample:
    """Values of the first run, from the rows of its seed among the results in ``folder``."""
    plan = plan_of(experiment.sizes["paper"], "paper", 1, seed)
    found = {"": _measured_of(experiment, plan, folder)}
    for variant in experiment.variants_at("paper"):
        own = variant_plan(variant, plan, own_runs=False)
        found[variant.name] = _measured_of(experiment, own, folder / "variants" / variant.folder)
    keys = [check.key for check in experiment.checks_at("paper")]
    return _as_json({name: {k: values[k] for k in keys if k in values} for name, values in found.items()})


def _measured_of(experiment: Experiment, plan: RunPlan, folder: Path) -> dict[str, Value]:
    """Values of the trials of the plan's seed alone, among all those in ``folder``."""
    with tempfile.TemporaryDirectory() as work:
        for name in kinds.specs_in(experiment, plan):
            source, target = folder / (name or "run"), Path(work) / (name or "run")
            target.mkdir()
            rows = parquet.read_table(source / "results.parquet", filters=[("seed", "==", plan.seed)])
            parquet.write_table(rows, target / "results.parquet")
            told = json.loads((source / "manifest.json").read_text())
            trials = [trial for trial in told["trials"] if trial["seed"] == plan.seed]
            (target / "manifest.json").write_text(json.dumps({**told, "seeds": [plan.seed], "trials": trials}))
        return measured(experiment, RawResults(Path(work), plan))


def _begun(experiment: Experiment) -> int | None:
    """Number of runs of an unfinished folder of the experiment; ``None`` if there is no such folder."""
    begun = [p for p in WORK.glob(f"{experiment.name}-*") if not (p / "verdict.json").exists()]
    return next((int(p.name.rsplit("-", 1)[1]) for p in begun if p.name.rsplit("-", 1)[1].isdigit()), None)


def counted(readme: str) -> str:
    """The text of ``README.md`` with its sentences on the experiments updated from the present records and rules."""
    experiments = list(catalogue().values())
    dates = sorted(record.date for record in map(records.of, experiments) if record)
    item = (
        "- Not every published result could be reproduced. For claims without a number we chose the value that a "
        'result must reach; their verdicts say "by our bound". '
        f"{records.tally(experiments)} The runs are of "
        f"{dates[0]} to {dates[-1]}; many experiments ran with few seeds. {records.ages(experiments)} `subak repro "
        "--list` gives the date and code of each record. [Reproducing](docs/reproducing.md) "
        "defines each verdict.\n"
    )
    lines = textwrap.fill(item, 120, subsequent_indent="  ", break_on_hyphens=False) + "\n"
    begins = re.compile(r"^- Not every published result could be reproduced\..*?(?=^(?!  ))", re.MULTILINE | re.DOTALL)
    told, found = begins.subn(lambda _: lines, readme)
    if found != 1:
        sys.exit(f"{README}: one item has to begin with: Not every published result could be reproduced.")
    return told


def main() -> None:
    """Runs the command."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folders", nargs="*", type=Path)
    asked.add_argument("--budget", type=float, metavar="CORE_MINUTES")
    asked.add_argument("--renew", nargs="+", metavar="NAME", help="these records by a sample of one run each")
    asked.add_argument("--jobs", type=int, default=1)
    told = asked.parse_args()
    for folder in told.folders:
        print(keep(folder))
    for name in told.renew or []:
        same = renew(find(name), told.jobs)
        print(f"{name}: {'the same numbers; renewed' if same else 'other numbers, or no sample was kept: run it anew'}")
    if told.budget is not None:
        redo(60 * told.budget, told.jobs)
    README.write_text(counted(README.read_text()))


if __name__ == "__main__":
    main()
