"""Kinds of experiments: content of their folder, and how they are run.

A kind is an entry of ``KINDS``. Its ``run`` writes raw results into a folder; it neither analyses nor draws.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subak import extras
from subak.errors import InputError
from subak.repro import computed
from subak.repro.experiment import Experiment
from subak.repro.reading import Section
from subak.repro.results import RunPlan, write
from subak.repro.values import as_json


class TrialFailedError(RuntimeError):
    """Raised if a simulation fails."""


@dataclass(frozen=True)
class Kind:
    """How experiments of one kind are checked and run."""

    name: str
    crates: tuple[str, ...]
    """Crates that run the kind: measured values depend on their sources and on those of their dependencies."""
    check: Callable[[Experiment, Section], None]
    """Raises an error for an experiment whose folder lacks a file, or has an unused one."""
    there: Callable[[Experiment, RunPlan, Path], bool]
    """Whether the folder has all results of the plan."""
    run: Callable[[Experiment, RunPlan, Path], None]
    """Runs the simulations or computations whose results the folder lacks."""


def is_of_hosts(experiment: Experiment) -> bool:
    """Whether the experiment's specs run on real hosts: each has a scheme with the backend ``testbed``."""
    if experiment.kind != "specs":
        return False
    schemes = [tomllib.loads(path.read_text(encoding="utf-8")).get("scheme", []) for path in experiment.specs.values()]
    return bool(schemes) and all(any(one.get("backend") == "testbed" for one in some) for some in schemes)


def spec_of(path: Path, name: str, plan: RunPlan) -> dict[str, Any]:
    """The spec to simulate: that of the file, with the plan's changes, schemes and number of runs."""
    with path.open("rb") as file:
        spec = tomllib.load(file)
    merge(spec, plan.spec.get(name, {}) if name else plan.spec, name or "spec")
    if plan.schemes:
        spec["scheme"] = [one for one in spec["scheme"] if _called(one) in plan.schemes]
    runs = plan.runs_of.get(name, plan.runs)
    spec.setdefault("run", {})["seeds"] = [plan.seed + k for k in range(runs)]
    return spec


def merge(base: dict[str, Any], changes: dict[str, Any], place: str = "spec") -> None:
    """Merges ``changes`` into ``base``, key by key; an element of a list of tables is selected by name or index."""
    for key, value in changes.items():
        held = base.get(key)
        if isinstance(value, dict) and isinstance(held, dict):
            merge(held, value, f"{place}.{key}")
        elif isinstance(value, dict) and isinstance(held, list):
            _merge_list(held, value, f"{place}.{key}")
        else:
            base[key] = value


def _merge_list(held: list[Any], changes: dict[str, Any], place: str) -> None:
    names = [_called(one) if isinstance(one, dict) else str(k) for k, one in enumerate(held)]
    for name, change in changes.items():
        places = [k for k, known in enumerate(names) if name in (known, str(k))]
        if not places:
            raise InputError(
                None, f"{place}.{name}", "there is none of that name", f"choose one of: {', '.join(names)}"
            )
        for k in places:
            merge(held[k], change, f"{place}.{name}")


def _called(table: dict[str, Any]) -> str:
    return str(table.get("label") or table.get("name") or table.get("id"))


def specs_in(experiment: Experiment, plan: RunPlan) -> dict[str, Path]:
    """The specs that the plan simulates, by name."""
    return {name: path for name, path in experiment.specs.items() if not plan.specs or name in plan.specs}


def _specs_check(experiment: Experiment, told: Section) -> None:
    if experiment.specs_of and list(experiment.folder.glob("spec*.toml")):
        raise told.error("specs_of", f"{experiment.folder.name} has specs too", "remove them, or this key")
    if not experiment.specs:
        where = experiment.specs_of or experiment.folder.name
        raise told.error("kind", f"{where} holds no spec.toml", "add one, or name another kind")
    for scale, size in experiment.sizes.items():
        _known_specs(experiment, told, f"{scale}.runs_of", list(size.runs_of))
        if size.settings:
            raise told.error(f"{scale}.settings", "a spec has no settings", "write what is different under `spec`")
    for k, variant in enumerate(experiment.variants):
        _known_specs(experiment, told, f"variant[{k}].specs", list(variant.specs))


def _known_specs(experiment: Experiment, told: Section, place: str, names: list[str]) -> None:
    for name in names:
        if name not in experiment.specs:
            raise told.error(place, f'there is no spec "{name}"', f"choose among: {', '.join(experiment.specs)}")


def trials(experiment: Experiment, plan: RunPlan) -> str:
    """Hash of the specs that the plan simulates: equal hashes have equal results. Empty for experiments without."""
    if experiment.kind != "specs":
        return ""
    told = {name: spec_of(path, name, plan) for name, path in specs_in(experiment, plan).items()}
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()


def _specs_there(experiment: Experiment, plan: RunPlan, folder: Path) -> bool:
    return all((folder / (name or "run") / "results.parquet").exists() for name in specs_in(experiment, plan))


def _specs_run(experiment: Experiment, plan: RunPlan, folder: Path) -> None:
    from subak.runs import run

    for name, path in specs_in(experiment, plan).items():
        spec = spec_of(path, name, plan)
        results = run(spec, folder / (name or "run"), jobs=plan.jobs, progress=plan.progress, client=plan.cluster)
        if results.failed:
            trial, why = next(iter(results.failed.items()))
            raise TrialFailedError(f"{experiment.name}: trial {trial} failed: {why}")


def _no_specs(experiment: Experiment, told: Section) -> None:
    if experiment.specs or experiment.specs_of:
        raise told.error("kind", f"{experiment.folder.name} holds specs, which nobody reads", 'say kind = "specs"')


def _raw_there(experiment: Experiment, plan: RunPlan, folder: Path) -> bool:
    return (folder / "raw.json").exists()


def _python_check(experiment: Experiment, told: Section) -> None:
    _no_specs(experiment, told)
    try:
        run = getattr(experiment.module, "run", None)
    except ModuleNotFoundError as error:
        if not extras.missing(error):
            raise
        # Such an experiment can be listed, but not run.
        return
    wanted = ["settings", "runs", "seed", "progress"]
    if run is None or list(inspect.signature(run).parameters) != wanted:
        raise told.error(
            "kind", f"{experiment.folder.name}/__init__.py has no such run", f"define run({', '.join(wanted)})"
        )


def _python_run(experiment: Experiment, plan: RunPlan, folder: Path) -> None:
    computed.THREADS.set(plan.jobs)
    report = experiment.module.run(plan.settings, plan.runs, plan.seed, plan.progress or (lambda done, of, share: None))
    raw = {"schema": 2, "setup": {}, "tables": {}, "series": {}, "values": {}, "notes": []}
    unknown = set(report) - set(raw)
    if unknown:
        raise ValueError(f"{experiment.name}: run gave {', '.join(sorted(unknown))} beside {', '.join(raw)}")
    write(folder / "raw.json", json.dumps(raw | report, default=as_json) + "\n")


# Dependencies of these crates count too: `measures.sources` follows the crates' manifests.
_SIMULATED = ("lab",)

KINDS = {
    kind.name: kind
    for kind in (
        Kind("specs", _SIMULATED, _specs_check, _specs_there, _specs_run),
        Kind("python", (), _python_check, _raw_there, _python_run),
    )
}
