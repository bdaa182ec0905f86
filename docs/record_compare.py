"""Whether one run with the present code has the values of a record's first run, so that the record still holds."""

from __future__ import annotations

import json
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

from pyarrow import parquet
from subak.build import build
from subak.errors import InputError
from subak.repro import Measured, RawResults, Value, Verdict, kinds, measures, records, reproduce, samples
from subak.repro.experiment import Experiment
from subak.repro.reproduce import measured, plan_of, variant_plan
from subak.repro.results import Listener, RunPlan, write
from subak.repro.values import Sample as Numbers
from subak.repro.values import as_json
from subak.repro.verdicts import Finding

Sample = dict[str, dict[str, Any]]
"""Values of one run, by variant (empty for the experiment itself) and key."""
Values = dict[str, dict[str, Value]]
"""Values by variant and key, with their samples."""
Kept = dict[samples.Key, dict[int, Numbers]]
"""Samples by variant, key and part of the value."""


def renew(experiment: Experiment, folder: Path, jobs: int = 1, progress: Listener | None = None) -> bool:
    """Whether one run with the present code, and one of each variant, has the values of the record's first run.

    Their results are in ``folder``. If they agree, the record's hashes become those of the present code, and its
    intervals are recomputed. A record without values of its first run is compared by its samples, which begin with
    those of that run. A record with seeds by which setups are chosen is not renewed. Raises ``InputError`` without a
    record, and if the extension is older than its sources or the code changes meanwhile.
    """
    record = records.of(experiment)
    if record is None:
        raise InputError(experiment.name, "", "it has no record", "run it: subak repro NAME --scale paper")
    code = measures.of(experiment)
    if measures.EXTENSION in code:
        hint = "build the package anew: make setup"
        raise InputError(experiment.name, "", "the extension is older than the sources beside it", hint)
    compared = _to_compare(record)
    if compared is None:
        return False
    wanted, kept, held = compared
    values = _first_values(experiment, record.held, folder, jobs, progress)
    if measures.of(experiment) != code:
        raise InputError(experiment.name, "", "the code changed while it ran", "run it anew")
    sample = _as_json(values)
    if not (_same(wanted, sample) if wanted else begins_with(kept, values)):
        return False
    if not wanted:
        held = {**held, "sample": sample}
    renewed = {"date": date.today().isoformat(), "build": build(), "by": "one run"}
    records.hold(experiment, {**held, "measures": code, "renewed": renewed})
    return True


def comparable(record: records.Record) -> bool:
    """Whether the record has values or samples with which one run can be compared."""
    return _to_compare(record) is not None


def _same(wanted: Sample, sample: Sample) -> bool:
    return all(sample[name].get(key) == value for name, one in wanted.items() for key, value in one.items())


def _to_compare(record: records.Record) -> tuple[Sample | None, Kept, dict[str, Any]] | None:
    """The values of the record's first run, its samples, and the record by today's statistics.

    ``None`` without any, or if the setup has been corrected since: its results cannot be the same.
    """
    if not record.on_held_out_seeds or any(one.mended for one in record.departures):
        return None
    try:
        wanted, kept = sample_of(record), samples.read(record.experiment.folder / samples.NAME)
        held: dict[str, Any] | None = record.held
        if set(measures.JUDGED_WITH) & set(record.changed_since()):
            held = records.by_todays_statistics(record)
    except InputError:
        return None
    return (wanted, kept, held) if held is not None and (wanted or kept) else None


def sample_of(record: records.Record) -> Sample | None:
    """Values of one run of the record; ``None`` if those of a variant are not stored, or none can be compared.

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
    found = {name: {k: v for k, v in held[name].items() if k in (of_variants if name else compared)} for name in names}
    return found if all(found.values()) else None


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


def _first_values(
    experiment: Experiment, told: dict[str, Any], folder: Path, jobs: int, progress: Listener | None
) -> Values:
    """The values of one run with the present code, and of one of each variant."""
    runs = None if told["runs"] == experiment.sizes["paper"].runs == 1 else 1
    options: dict[str, Any] = {"seed": told["seed"], "jobs": jobs, "progress": progress, "variants": True}
    verdict = reproduce(experiment.name, scale="paper", runs=runs, out=folder, **options)
    return {name: {f.check.key: f.value for f in found} for name, found in _findings(verdict).items()}


def _findings(verdict: Verdict) -> dict[str, tuple[Finding, ...]]:
    """Findings of the experiment (under the empty name) and of each variant."""
    return {"": verdict.main.findings} | {o.variant.name: o.findings for o in verdict.variants if o.variant}


def _as_json(values: Values) -> Sample:
    return {
        name: {key: json.loads(json.dumps(as_json(value))) for key, value in one.items()}
        for name, one in values.items()
    }


def write_sample(experiment: Experiment, verdict: Verdict, folder: Path, jobs: int, progress: Listener | None) -> None:
    """Adds the values of the first run to ``verdict.json``, with which the record can be renewed later.

    An experiment without specs repeats its first run for that, with results in ``folder``.
    """
    if all(o.runs == 1 for o in (verdict.main, *verdict.variants)):
        return
    path = verdict.folder / "verdict.json"
    told = json.loads(path.read_text())
    if experiment.kind == "specs":
        sample = _first_run(experiment, verdict, told["seed"])
    else:
        sample = _as_json(_first_values(experiment, told, folder, jobs, progress))
    write(path, json.dumps({**told, "sample": sample}, ensure_ascii=False) + "\n")


def _first_run(experiment: Experiment, verdict: Verdict, seed: int) -> Sample:
    """Values of the first run, from the rows of its seed among the results of all runs."""
    first, folder = plan_of(experiment.sizes["paper"], "paper", 1, seed), verdict.folder
    found = {"": _measured_of(experiment, first, folder)}
    for variant in experiment.variants_at("paper"):
        own = variant_plan(variant, first, own_runs=False)
        found[variant.name] = _measured_of(experiment, own, folder / "variants" / variant.folder)
    keys = {name: [f.check.key for f in findings] for name, findings in _findings(verdict).items()}
    return _as_json({name: {k: found[name][k] for k in keys[name] if k in found[name]} for name in keys})


def _measured_of(experiment: Experiment, first: RunPlan, folder: Path) -> dict[str, Value]:
    """Values of the trials of the plan's seed alone, among all those in ``folder``."""
    with tempfile.TemporaryDirectory() as work:
        for name in kinds.specs_in(experiment, first):
            source, target = folder / (name or "run"), Path(work) / (name or "run")
            target.mkdir()
            rows = parquet.read_table(source / "results.parquet", filters=[("seed", "==", first.seed)])
            parquet.write_table(rows, target / "results.parquet")
            told = json.loads((source / "manifest.json").read_text())
            trials = [trial for trial in told["trials"] if trial["seed"] == first.seed]
            (target / "manifest.json").write_text(json.dumps({**told, "seeds": [first.seed], "trials": trials}))
        return measured(experiment, RawResults(Path(work), first))
