"""Checks that the values of a verdict follow from the results in its folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from subak.errors import InputError
from subak.repro import records, samples
from subak.repro.experiment import Experiment
from subak.repro.reproduce import measured, plan_of, variant_plan
from subak.repro.results import RawResults
from subak.repro.values import Value, as_json


def refuse_others(experiment: Experiment, folder: Path) -> None:
    """Raises ``InputError`` if a value in ``verdict.json`` differs from that of the results in the same folder."""
    path = folder / "verdict.json"
    told = json.loads(path.read_bytes())
    found = _values_in(experiment, folder, told)
    for place, value in records.values_of(told).items():
        if place not in found or json.dumps(as_json(found[place])) != json.dumps(as_json(value)):
            variant, key = place
            what = f"{key}{f' ({variant})' if variant else ''} is another than the results in the folder give"
            raise InputError(str(path), "checks", what, "run it anew: values are not written by hand")


def _values_in(experiment: Experiment, folder: Path, told: dict[str, Any]) -> dict[samples.Key, Value]:
    """Values computed from the existing results of the experiment and of each variant that was run."""
    plan = plan_of(experiment.sizes[told["scale"]], told["scale"], told["runs"], told["seed"])
    runs = {one["name"]: one["runs"] for one in told["variants"]}
    parts = {"": RawResults(folder, plan)}
    for variant in experiment.variants:
        if variant.name in runs:
            own = replace(variant_plan(variant, plan, own_runs=True), runs=runs[variant.name])
            parts[variant.name] = RawResults(folder / "variants" / variant.folder, own)
    return {(name, key): one for name, raw in parts.items() for key, one in measured(experiment, raw).items()}
