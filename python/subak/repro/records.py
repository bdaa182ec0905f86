"""Records: an experiment's values at paper scale, in its ``record.json``. The figure is in the docs.

A record has the build, the runs, their cost, and hashes of the parts on which its values depend. If a part has another
hash now, it has changed since. The record has values but no verdict, which is computed by the present rules.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

from subak.errors import InputError
from subak.repro import measures, rules, samples, stats, verdicts
from subak.repro.experiment import Changed, Experiment
from subak.repro.results import write
from subak.repro.stats import from_json
from subak.repro.values import Measured, Sample, Value, as_json
from subak.repro.verdicts import Finding

HELD_OUT = 1001
"""Seed of the first run of a record. Setups are chosen by results of smaller seeds only."""
NOT_RECORDED = "not recorded"
UNREADABLE = "not readable"
TODAYS, OLDER, NO_HASH = "of today's code", "of older code", "of unknown code"
UNSEEN = "of code that is not here to compare"
VERDICTS = (
    rules.MET,
    f"{rules.MET}{verdicts.CHANGED}",
    f"{rules.MET}{verdicts.BY_OUR_BOUND}",
    f"{rules.MET}{verdicts.BY_OUR_BOUND}{verdicts.CHANGED}",
    rules.DEPENDS,
    rules.NOT_MET,
    f"{rules.NOT_MET}{verdicts.BY_OUR_BOUND}",
    rules.CONTRADICTED,
    f"{rules.CONTRADICTED}{verdicts.CHANGED}",
    rules.UNDECIDED,
    verdicts.NO_CLAIM,
    NOT_RECORDED,
    UNREADABLE,
)
MISSING = "not measured then"
MOST_SAID = 3
"""Largest number of checks that a sentence names."""
UNJUDGED = ("outcome", "leans", "needs", "comes_out", "verdict")
"""Keys that follow from the values and the present rules; records omit them."""


@dataclass(frozen=True)
class Record:
    """The recorded values of an experiment, with the experiment's present rules."""

    held: dict[str, Any]
    experiment: Experiment

    @cached_property
    def as_set_up(self) -> tuple[Finding, ...]:
        """Measured values, judged by the present checks; a check without a value is undecided."""
        return self._judge(self.held["checks"], self.held["runs"], whole=True)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The findings; a claim that an open parameter decides is ``depends``, by the variants."""
        return verdicts.settle(self.experiment, self.as_set_up, self.variants)

    @cached_property
    def variants(self) -> dict[str, tuple[Finding, ...]]:
        """Findings of each variant that was run."""
        told = self.held.get("variants", [])
        return {one["name"]: self._judge(one["checks"], one["runs"], whole=False) for one in told}

    def _judge(self, checks: list[dict[str, Any]], runs: int, *, whole: bool) -> tuple[Finding, ...]:
        values = {one["key"]: value_of(one["measured"]) for one in checks}
        found, asked = [], self.experiment.checks_at("paper")
        family = verdicts.family(asked)
        for check in asked:
            if check.key in values:
                found.append(verdicts.find(check, values[check.key], runs, family))
            elif whole:
                outcome = rules.UNDECIDED if check.rule or check.claim else None
                found.append(Finding(check, MISSING, rules.Judged(outcome, None, f"it was {MISSING}")))
        return tuple(found)

    @property
    def departures(self) -> list[Changed]:
        """Departures of the recorded setup from the paper's."""
        own = measures.OWN in self.changed_since()
        return [one for one in self.experiment.changed if own or not one.mended]

    @property
    def verdict(self) -> str:
        """Verdict such as ``met``, by the present rules."""
        return verdicts.word(self.findings, changed=bool(self.departures))

    @property
    def runs(self) -> str:
        """Number of runs as text, such as ``6 runs``."""
        return "1 run" if self.held["runs"] == 1 else f"{self.held['runs']} runs"

    @property
    def date(self) -> str:
        """Date of the recorded run; empty if there is none."""
        return str(self.held.get("date", ""))

    @property
    def short(self) -> str:
        """Verdict and runs, such as ``met, 3 runs``, and what was run in place of the system that the paper names."""
        instead = f", of {self.experiment.instead}" if self.experiment.instead else ""
        return f"{self.verdict}, {self.runs}{instead}"

    def told(self) -> dict[str, Any]:
        """The record with verdicts by the present rules, in the form of ``verdict.json``."""
        variants = [
            {
                **one,
                "verdict": verdicts.of_claims(self.variants[one["name"]]),
                "checks": [f.to_dict() for f in self.variants[one["name"]]],
            }
            for one in self.held.get("variants", [])
        ]
        comes_out = {one["name"]: one["verdict"] for one in variants}
        changed = [
            {
                "what": c.what,
                "why": c.why,
                "without": c.without,
                "comes_out": comes_out.get(c.without, verdicts.NOT_RUN),
            }
            for c in self.departures
        ]
        checks = [f.to_dict() for f in self.findings]
        return {**self.held, "verdict": self.verdict, "checks": checks, "variants": variants, "changed": changed}

    def changed_since(self) -> list[str]:
        """Parts that changed after the record was made, without parts that cannot be compared here."""
        then, now = self.held["measures"], measures.of(self.experiment)
        return [part for part, told in now.items() if then.get(part) != told and part != measures.EXTENSION]

    def unseen(self) -> list[str]:
        """Parts of the code whose recorded hash has no counterpart here: a package has no sources of crates."""
        now = measures.of(self.experiment)
        return [part for part in self.held["measures"] if part not in now]

    @cached_property
    def age(self) -> str:
        """Which code made the record, as text: the present, older, or unknown code."""
        if not self.held["measures"]:
            return NO_HASH
        if self.changed_since():
            return OLDER
        return UNSEEN if self.unseen() else TODAYS

    @cached_property
    def samples(self) -> str:
        """Whether the values follow from stored samples: ``kept``, ``none``, or a list of the values that do not."""
        kept = samples.read(self.experiment.folder / samples.NAME)
        if not kept:
            return "none"
        differ = samples.differing(values_of(self.held), kept)
        return f"not of {', '.join(differ)}" if differ else "kept"

    @property
    def lacks_samples(self) -> bool:
        """Whether confidence intervals, or other values with samples, do not follow from stored samples."""
        if self.samples == "none":
            return bool(samples.differing(values_of(self.held), {}))
        return self.samples != "kept"

    @property
    def on_held_out_seeds(self) -> bool:
        """Whether the record's seeds differ from those by whose results the setup was chosen."""
        return bool(self.held.get("seed", 1) >= HELD_OUT)

    def uncertain(self) -> int:
        """Number of undecided claims."""
        return sum(f.counts and f.judged.outcome == rules.UNDECIDED for f in self.findings)


def value_of(measured: Any) -> Value:
    """A value of a record, as the statistics use it: lists and samples are converted from JSON."""
    if isinstance(measured, list):
        return [from_json(one) if isinstance(one, dict) else one for one in measured]
    if isinstance(measured, str) and measured in ("inf", "-inf", "nan"):
        return float(measured)
    return from_json(measured) if isinstance(measured, dict) else measured


def by_todays_statistics(record: Record) -> dict[str, Any] | None:
    """The record with each interval recomputed from its sample by the present code; ``None`` if a sample is missing."""
    kept = samples.read(record.experiment.folder / samples.NAME)
    parts = {"": record.held["checks"]} | {one["name"]: one["checks"] for one in record.held.get("variants", [])}
    anew = {name: [_anew(check, kept.get((name, check["key"]), {})) for check in of] for name, of in parts.items()}
    if any(check is None for found in anew.values() for check in found):
        return None
    variants = [{**one, "checks": anew[one["name"]]} for one in record.held.get("variants", [])]
    return {**record.held, "checks": anew[""], "variants": variants}


def _anew(check: dict[str, Any], kept: Mapping[int, Sample]) -> dict[str, Any] | None:
    value = value_of(check["measured"])
    several = isinstance(value, list)
    parts: list[Any] = value if isinstance(value, list) else [value]
    if any(isinstance(one, Measured) and one.interval and k not in kept for k, one in enumerate(parts)):
        return None
    found = [as_json(replace(stats.again(kept[k]), note=one.note) if k in kept else one) for k, one in enumerate(parts)]
    return {**check, "measured": found if several else found[0]}


def values_of(told: dict[str, Any]) -> dict[samples.Key, Value]:
    """Values of a record or of ``verdict.json``, of the experiment and of each variant."""
    parts = {"": told["checks"]} | {one["name"]: one["checks"] for one in told.get("variants", [])}
    return {(name, c["key"]): value_of(c["measured"]) for name, checks in parts.items() for c in checks}


def short(experiment: Experiment) -> str:
    """The recorded verdict for a table: ``met, 3 runs``."""
    record = _record_or_why(experiment)
    return record if isinstance(record, str) else record.short


def dated(experiment: Experiment) -> str:
    """The recorded verdict with runs, date and age: ``not met (3 runs, 2026-11-23, of older code)``."""
    record = _record_or_why(experiment)
    if isinstance(record, str):
        return record
    return f"{record.verdict} ({', '.join(filter(None, (record.runs, record.date, record.age)))})"


def state(experiment: Experiment) -> dict[str, Any]:
    """State of the record for JSON: its verdict, and whether the present code has made the record."""
    record = _record_or_why(experiment)
    if isinstance(record, str):
        return {
            "verdict": record,
            "runs": 0,
            "date": "",
            "age": "",
            "changed_since": [],
            "samples": "none",
            "held_out_seeds": False,
        }
    return {
        "verdict": record.verdict,
        "runs": record.held["runs"],
        "date": record.date,
        "age": record.age,
        "changed_since": record.changed_since(),
        "samples": record.samples,
        "held_out_seeds": record.on_held_out_seeds,
    }


def verdict(experiment: Experiment) -> str:
    """The recorded verdict in a word or two."""
    record = _record_or_why(experiment)
    return record if isinstance(record, str) else record.verdict


def _record_or_why(experiment: Experiment) -> Record | str:
    """The record; without one that can be read, the words that tables have in its place."""
    try:
        return of(experiment) or NOT_RECORDED
    except InputError:
        return UNREADABLE


def tally(experiments: Iterable[Experiment]) -> str:
    """Number of experiments by verdict, as a sentence."""
    found = [verdict(e) for e in experiments]
    words = {rules.DEPENDS: "depend on an interpretation"}
    counts = [f"{found.count(one)} {words.get(one, one)}" for one in VERDICTS if one in found]
    return f"{len(found)} experiments at the papers' size have these verdicts: {', '.join(counts)}."


def readable(experiments: Iterable[Experiment]) -> list[Record]:
    """The records that can be read."""
    return [record for record in map(_record_or_why, experiments) if not isinstance(record, str)]


def ages(experiments: Iterable[Experiment]) -> str:
    """Number of records made by the present code and by other code, as a sentence."""
    held = readable(experiments)
    found = [record.age for record in held]
    others = "".join(f", {found.count(age)} {age}" for age in (OLDER, NO_HASH, UNSEEN) if age in found)
    without = sum(record.lacks_samples for record in held)
    kept = (
        "each confidence interval is stored with its samples"
        if without == 0
        else f"{without} do not contain the samples from which their confidence intervals were computed"
    )
    return f"{found.count(TODAYS)} of {len(held)} stored results are {TODAYS}{others}; {kept}."


def found(record: Record | None) -> str:
    """The verdict and the values on which it rests, as a sentence."""
    if record is None:
        return "nothing yet; it has not been recorded at paper scale."
    word = record.verdict
    instead = f", of {record.experiment.instead}" if record.experiment.instead else ""
    scope = f"{word} at paper scale, in {record.runs}{instead}"
    if word == verdicts.NO_CLAIM:
        return f"{scope}: the paper claims nothing that could be judged."
    claims = [f for f in record.findings if f.counts]
    worst = verdicts.of_claims(record.findings)
    decisive = [f for f in claims if f.judged.outcome == worst]
    turning = verdicts.turning(record.experiment, record.as_set_up, record.variants)
    on = f", by {'; '.join(turning)}" if word == rules.DEPENDS else ""
    return f"{scope}{on}: {_say(decisive, worst)}."


def _say(checks: list[Finding], verdict: str) -> str:
    shown = [_one(f, verdict) for f in checks[:MOST_SAID]]
    more = len(checks) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _one(finding: Finding, verdict: str) -> str:
    said = f"{finding.check.what}: {finding.text}"
    if verdict == rules.UNDECIDED:
        return f"{said}, {finding.judged.needs}"
    return f"{said} (to show: {finding.check.must_show})" if finding.check.must_show else said


def of(experiment: Experiment) -> Record | None:
    """The experiment's record; ``None`` if there is none."""
    path = experiment.folder / "record.json"
    hint = f"record it anew: subak repro {experiment.name} --scale paper, then python docs/record.py FOLDER"
    try:
        held = json.loads(path.read_bytes())
        wanted = ("schema", "name", "runs", "measures", "checks")
        if not all(key in held for key in wanted) or held["name"] != experiment.name:
            raise ValueError("it is no record of this experiment")
        return Record(held, experiment)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise InputError(str(path), "", f"it cannot be read: {error}", hint) from None


def keep(experiment: Experiment, folder: Path) -> bool:
    """Stores ``verdict.json`` and the samples of ``folder`` as the experiment's record, without verdicts.

    A record is not replaced by one with fewer runs: that one is stored beside it, and the result is False. A record
    that cannot be read is replaced. Raises ``InputError`` for seeds other than those of records, for values that do not
    follow from their samples, and if the code has changed since.
    """
    told = json.loads((folder / "verdict.json").read_bytes())
    _refuse_incomplete(experiment, folder, told)
    _refuse_unsound(experiment, folder, told)
    new = _values({**told, "date": date.today().isoformat()})
    try:
        old = of(experiment)
    except InputError:
        old = None
    replaces = old is None or _as_many(told, old.held)
    if replaces:
        shutil.copy(folder / samples.NAME, experiment.folder / samples.NAME)
    else:
        assert old is not None
        kept = ("runs", "seed", "date", "build", "measures", "seconds", "checks", "variants")
        beside = {key: new[key] for key in kept}
        others = [one for one in old.held.get("beside", []) if {**one, "date": ""} != {**beside, "date": ""}]
        new = {**old.held, "beside": [*others, beside]}
    hold(experiment, new)
    return replaces


def _as_many(told: dict[str, Any], held: dict[str, Any]) -> bool:
    """Whether ``told`` has at least as many runs as ``held``: in all, of each variant and of each value."""
    now, then = _runs_of(told), _runs_of(held)
    return all(now.get(key, runs) >= runs for key, runs in then.items())


def _runs_of(told: dict[str, Any]) -> dict[Any, int]:
    """Numbers of runs: of the experiment, of each variant, and of each value."""
    found: dict[Any, int] = {"": told["runs"]} | {one["name"]: one["runs"] for one in told.get("variants", [])}
    for key, value in values_of({"variants": [], **told}).items():
        parts: list[Any] = value if isinstance(value, list) else [value]
        counts = [one.count for one in parts if isinstance(one, Measured) and one.of == "runs"]
        found |= {key: min(counts)} if counts else {}
    return found


def _refuse_incomplete(experiment: Experiment, folder: Path, told: dict[str, Any]) -> None:
    path = str(folder / "verdict.json")
    for key in ("scale", "seed", "runs", "build", "machine", "measures", "checks", "variants"):
        if not told.get(key) and told.get(key) != []:
            raise InputError(path, key, "it is missing", "run it anew")
    if told["scale"] != "paper":
        raise InputError(str(folder), "scale", f"it ran at {told['scale']} scale", "pages show paper scale")
    measured = {one["name"]: one["checks"] for one in told["variants"]}
    missing = [v.name for v in experiment.variants_at("paper") if not measured.get(v.name)]
    if missing:
        hint = "run it with --variants: a record has all of them"
        raise InputError(path, "variants", f"it did not run {', '.join(missing)}", hint)
    keys = {check["key"] for check in told["checks"]}
    lost = [check.key for check in experiment.checks_at("paper") if check.key not in keys]
    if lost:
        raise InputError(path, "checks", f"it has no value of {', '.join(lost)}", "run it anew")


def _refuse_unsound(experiment: Experiment, folder: Path, told: dict[str, Any]) -> None:
    if told["seed"] < HELD_OUT:
        hint = f"run it with --seed {HELD_OUT} or more: the seeds below are those on which setups are chosen"
        raise InputError(str(folder), "seed", f"it is {told['seed']}, and at least {HELD_OUT} in a record", hint)
    if measures.EXTENSION in told["measures"]:
        hint = "build the package anew, make setup, and run it anew in another folder"
        raise InputError(str(folder), "build", "the extension is older than the sources beside it", hint)
    if told["measures"] != json.loads(json.dumps(measures.of(experiment))):
        raise InputError(str(folder), "measures", "the code has changed since it ran", "run it anew")
    _refuse_begun_otherwise(folder, told, told["runs"], "")
    for one in told["variants"]:
        variant = next((v for v in experiment.variants if v.name == one["name"]), None)
        if variant is None:
            what = f"there is no variant {one['name']}"
            raise InputError(str(folder / "verdict.json"), "variants", what, "run it anew")
        _refuse_begun_otherwise(folder / "variants" / variant.folder, told, one["runs"], one["name"])
    differ = _otherwise_written(told) or samples.differing(values_of(told), samples.read(folder / samples.NAME))
    if differ:
        what = f"{', '.join(differ)} do not follow from {samples.NAME}"
        raise InputError(str(folder / "verdict.json"), "checks", what, "run it anew: values are not written by hand")


def _refuse_begun_otherwise(folder: Path, told: dict[str, Any], runs: int, variant: str) -> None:
    """Raises an error if seed, scale, build, code or runs in the manifest differ from the verdict's."""
    path = folder / "manifest.json"
    begun = json.loads(path.read_bytes())
    code = {part: one for part, one in told["measures"].items() if part not in measures.JUDGED_WITH}
    wanted = {"seed": told["seed"], "scale": told["scale"], "build": told["build"], "runs": runs, "measures": code}
    differ = [key for key, one in wanted.items() if begun.get(key) != one]
    if differ:
        what = f"it has another {', '.join(differ)} than verdict.json{f' has of {variant}' if variant else ''}"
        raise InputError(str(path), "", what, "run it anew, with code that does not change meanwhile")


def _otherwise_written(told: dict[str, Any]) -> list[str]:
    """Keys of values whose JSON differs from what this code would write, such as a fraction without its interval."""
    parts = [told["checks"], *(one["checks"] for one in told["variants"])]
    return [c["key"] for checks in parts for c in checks if as_json(value_of(c["measured"])) != c["measured"]]


def hold(experiment: Experiment, held: dict[str, Any]) -> None:
    """Writes ``record.json``."""
    write(experiment.folder / "record.json", json.dumps(held, indent=1, ensure_ascii=False) + "\n")


def _values(told: Any) -> Any:
    if isinstance(told, list):
        return [_values(one) for one in told]
    return {k: _values(v) for k, v in told.items() if k not in UNJUDGED} if isinstance(told, dict) else told
