"""Records: what an experiment came to at paper scale, kept beside it as ``record.json``; its figure lies in the docs.

A record names its build, its runs, the seconds of the run, and hashes of what it measured, part by part: the
experiment's own files, and the crates that its kind runs. A part that has another hash today has changed since.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from subak.errors import InputError
from subak.repro import kinds, rules
from subak.repro.experiment import Experiment
from subak.repro.results import write

PACKAGE = Path(__file__).parents[1]
CRATES = Path(__file__).parents[3] / "crates"
"""In a checkout; an installed package has none."""
OLD_FORM = "recorded before intervals were asked; not run anew yet"
NOT_RECORDED = "not recorded"
VERDICTS = ("met", "met with a changed setup", "not met", "contradicted", "undecided", NOT_RECORDED)
MOST_SAID = 3
"""Checks that a sentence names."""


@dataclass(frozen=True)
class Record:
    """What an experiment came to."""

    held: dict[str, Any]

    @property
    def old_form(self) -> bool:
        """Whether its checks were judged by their values alone."""
        return bool(self.held["schema"] < 2)

    @property
    def verdict(self) -> str:
        """``met`` and so on, as it was judged then."""
        return str(self.held["verdict"])

    @property
    def runs(self) -> str:
        """``6 runs``."""
        return "1 run" if self.held["runs"] == 1 else f"{self.held['runs']} runs"

    def changed_since(self, experiment: Experiment) -> list[str]:
        """The parts that have changed since; those that cannot be seen from here are left out."""
        if self.old_form:
            return ["its form"]
        then, now = self.held["measures"], measures(experiment)
        return [part for part, told in now.items() if then.get(part) != told]

    def uncertain(self) -> int:
        """How many of its checks are undecided."""
        return sum(check.get("outcome") == rules.UNDECIDED for check in self.held["checks"])


def short(experiment: Experiment) -> str:
    """The recorded verdict for a table: ``met, 3 runs``; a star where it is in the old form."""
    record = of(experiment)
    return f"{record.verdict}{'*' if record.old_form else ''}, {record.runs}" if record else NOT_RECORDED


def verdict(experiment: Experiment) -> str:
    """The recorded verdict in a word or two."""
    record = of(experiment)
    return record.verdict if record else NOT_RECORDED


def tally(experiments: Iterable[Experiment]) -> str:
    """How many experiments came to which verdict, in a sentence."""
    verdicts = [verdict(e) for e in experiments]
    counts = [f"{verdicts.count(one)} {one}" for one in VERDICTS if one in verdicts]
    return f"{len(verdicts)} experiments at the papers' size: {', '.join(counts)}."


def found(record: Record | None) -> str:
    """What was found, in a sentence: the verdict and the values that it rests on."""
    if record is None:
        return "nothing yet; it has not been recorded at paper scale."
    scope = f"at paper scale, in {record.runs}"
    if record.old_form:
        failed = [c for c in record.held["checks"] if c["pass"] is False]
        held = failed or [c for c in record.held["checks"] if c["pass"]]
        return f"{record.verdict} {scope}, by the values alone ({OLD_FORM}): {_say(held, '')}."
    checks = record.held["checks"]
    decisive = [c for c in checks if c["outcome"] == record.verdict] or [c for c in checks if c["outcome"] == rules.MET]
    return f"{record.verdict} {scope}: {_say(decisive, record.verdict)}."


def _say(checks: list[dict[str, Any]], verdict: str) -> str:
    shown = [_one(c, verdict) for c in checks[:MOST_SAID]]
    more = len(checks) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _one(check: dict[str, Any], verdict: str) -> str:
    said = f"{check['what']}: {check['text']}"
    if verdict == rules.UNDECIDED:
        return f"{said}, {check['needs']}"
    return f"{said} (to show: {check['must_show']})" if check["must_show"] else said


def of(experiment: Experiment) -> Record | None:
    """The experiment's record; ``None`` where there is none."""
    path = experiment.folder / "record.json"
    mend = f"record it anew: subak repro {experiment.name} --scale paper, then python docs/record.py FOLDER"
    try:
        held = json.loads(path.read_bytes())
        if (
            not all(key in held for key in ("schema", "name", "runs", "verdict", "checks"))
            or held["name"] != experiment.name
        ):
            raise ValueError("it is no record of this experiment")
        return Record(held)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise InputError(str(path), "", f"it cannot be read: {error}", mend) from None


def keep(experiment: Experiment, verdict: dict[str, Any]) -> None:
    """Keeps what ``verdict.json`` says as the experiment's record."""
    held = {**verdict, "date": date.today().isoformat()}
    write(experiment.folder / "record.json", json.dumps(held, indent=1, ensure_ascii=False) + "\n")


def measures(experiment: Experiment) -> dict[str, str]:
    """A hash of each part that decides what the experiment measures."""
    own = [p for p in sorted(experiment.folder.glob("*")) if p.suffix in (".py", ".toml")]
    parts = {"the experiment": _hash(own, experiment.folder)}
    shared = sorted(experiment.folder.parent.glob("*.py"))
    parts["what the paper's experiments share"] = _hash(shared, experiment.folder.parent)
    return parts | sources(experiment)


def sources(experiment: Experiment) -> dict[str, str]:
    """Hashes of the crates that run it or that it names, with all below, in a checkout; and of its packages."""
    packages = {f"subak/{name}": _package(name) for name in experiment.packages}
    named = (*kinds.KINDS[experiment.kind].crates, *experiment.crates)
    crates = {f"crates/{name}": _crate(name) for name in sorted({below for name in named for below in _below(name)})}
    return packages | {name: told for name, told in crates.items() if told}


@cache
def _below(name: str) -> frozenset[str]:
    """The crate, and those of the workspace that it depends on."""
    manifest = CRATES / name / "Cargo.toml"
    if not manifest.is_file():
        return frozenset()
    with manifest.open("rb") as file:
        needs = tomllib.load(file).get("dependencies", {})
    ours = [need.removeprefix("subak-") for need in needs if need.startswith("subak-")]
    return frozenset({name}).union(*map(_below, ours))


@cache
def _package(name: str) -> str:
    folder = PACKAGE / name
    return _hash(sorted(folder.glob("**/*.py")), folder)


@cache
def _crate(name: str) -> str:
    folder = CRATES / name
    # Programs for the kernel lie beside the rest.
    paths = [*folder.glob("src/**/*"), *folder.glob("bpf/*")]
    return _hash(sorted(p for p in paths if p.is_file()), folder) if folder.is_dir() else ""


def _hash(paths: list[Path], folder: Path) -> str:
    told = hashlib.sha256()
    for path in paths:
        told.update(f"{path.relative_to(folder).as_posix()}\n".encode() + path.read_bytes() + b"\0")
    return told.hexdigest()[:16]
