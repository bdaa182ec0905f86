"""The catalogue of experiments: one folder each below ``subak/papers``.

``experiment.toml`` has the paper's claim, the kind of experiment, its size at each scale, departures from the paper's
setup, and the variants. ``published.toml`` has every published value, with the rule that the measured value must meet.
"""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path

from subak.errors import InputError
from subak.repro import kinds
from subak.repro.experiment import (
    CLAIM,
    OURS,
    PARTS,
    SCALES,
    Cause,
    Changed,
    Check,
    Experiment,
    Open,
    Reading,
    Size,
    Variant,
)
from subak.repro.reading import Section
from subak.repro.rules import OPERATORS, Rule

PACKAGE = Path(__file__).parent.parent
_PLACE = re.compile(r"(?i)\b(figure|section|table|equation)s? [\d.]+")
_FEWER, _MORE = (re.compile(rf"(?i){word} (\d[\d,]*)") for word in ("fewer than", "more than"))
_COMPARED = r"more|less|fewer|least|than|ahead|against|negatively|reduces|rises|fits|\w+er|best|highest|equal"
_IN_WORDS: dict[float, re.Pattern[str]] = {
    0: re.compile(rf"(?i)\b(no|none|never|not|nothing|without|{_COMPARED})\b"),
    1: re.compile(rf"(?i)\b({_COMPARED})\b"),
    100: re.compile(r"(?i)\b(all|every|each|always|any|across|no|never)\b"),
}
"""Words of a paper that imply a bound of 0, of 1 (a ratio) or of 100 (percent)."""
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
PAPERS = PACKAGE / "papers"


@cache
def catalogue() -> dict[str, Experiment]:
    """All experiments by name, in the order of the papers and of their figures."""
    found = [read(path.parent) for path in PAPERS.glob("*/*/experiment.toml")]
    refuse_one_name(found)
    return {e.name: e for e in sorted(found, key=lambda e: (e.paper, _natural(e.folder.name)))}


def find(name: str) -> Experiment:
    """The experiment called ``name``."""
    known = catalogue()
    if name not in known:
        near = [n for n in known if n.split("-")[0] == name.split("-")[0]] or list(known)
        raise InputError(None, "NAME", f'there is no experiment "{name}"', f"choose one of: {', '.join(near)}")
    return known[name]


def paper(folder: str) -> dict[str, str]:
    """Title, authors and venue of the paper whose experiments are in ``folder``."""
    told = Section.of_file(PAPERS / folder / "paper.toml")
    return {key: told.text(key) for key in ("title", "authors", "place")}


def heading(experiment: Experiment) -> str:
    """Heading under which the front page lists the experiment, from ``paper.toml`` by the first word of its name."""
    told, word = Section.of_file(PAPERS / experiment.paper / "paper.toml"), experiment.name.split("-")[0]
    headings = told.get("front", dict)
    if word not in headings:
        raise told.error(f"front.{word}", f"nothing says where {experiment.name} stands", "give the heading")
    return str(headings[word])


def read(folder: Path) -> Experiment:
    """The experiment in ``folder``; raises ``InputError`` with file, place and hint for invalid files."""
    told = Section.of_file(folder / "experiment.toml")
    variants = tuple(_variant(one) for one in told.sections("variant"))
    experiment = Experiment(
        name=told.text("name"),
        title=told.text("title"),
        figure=told.text("figure"),
        claim=told.text("claim"),
        kind=told.among("kind", list(kinds.KINDS)),
        schemes=told.texts("schemes", []),
        paper=folder.parent.name,
        folder=folder,
        sizes={scale: _size(told.section(scale)) for scale in SCALES},
        checks=_checks(folder / "published.toml"),
        changed=tuple(_changed(one, [v.name for v in variants]) for one in told.sections("changed")),
        variants=variants,
        packages=told.texts("packages", []),
        crates=told.texts("crates", []),
        open=tuple(_open(one, [v.name for v in variants]) for one in told.sections("open")),
        instead=told.text("instead", ""),
        unasked=told.texts("unasked", []),
        causes=tuple(_cause(one) for one in told.sections("cause")),
        specs_of=told.text("specs_of", ""),
    )
    told.done()
    for name in experiment.packages:
        if not (PACKAGE / name).is_dir():
            raise told.error("packages", f"there is no subak/{name}", "name packages of subak, such as pipeline")
    _refuse_twice(told, "variant", [v.folder for v in variants])
    known = {v.name for v in variants} | {c.key for c in experiment.checks}
    for shown_by in (name for cause in experiment.causes for name in cause.shown_by):
        if shown_by not in known:
            raise told.error("cause.shown_by", f'there is no "{shown_by}"', "name a variant or the key of a check")
    kinds.KINDS[experiment.kind].check(experiment, told)
    return experiment


def _size(told: Section) -> Size:
    size = Size(
        runs=told.get("runs", int, 1),
        seconds=told.get("seconds", float),
        runs_of=told.get("runs_of", dict, {}),
        spec=told.get("spec", dict, {}),
        settings=told.get("settings", dict, {}),
    )
    told.done()
    if size.runs < 1:
        raise told.error("runs", f"it is {size.runs}", "give 1 or more")
    return size


def _variant(told: Section) -> Variant:
    variant = Variant(
        name=told.text("name"),
        changed=told.text("changed"),
        runs=told.get("runs", int, None),
        schemes=told.texts("schemes", []),
        specs=told.texts("specs", []),
        spec=told.get("spec", dict, {}),
        settings=told.get("settings", dict, {}),
        scales=_scales(told),
        departs=told.text("departs", ""),
    )
    told.done()
    if not variant.spec and not variant.settings:
        raise told.error("", "it changes nothing", "give what is different in `spec` or in `settings`")
    return variant


def _changed(told: Section, variants: list[str]) -> Changed:
    without = told.among("without", variants) if "without" in told else ""
    changed = Changed(told.text("what"), told.text("why"), without, told.get("mended", bool, False))
    told.done()
    return changed


def _open(told: Section, variants: list[str]) -> Open:
    readings = []
    for one in told.sections("reading"):
        variant = one.among("variant", variants) if "variant" in one else ""
        readings.append(Reading(one.text("what"), variant, one.get("usual", bool, False)))
        one.done()
    found = Open(told.text("parameter"), tuple(readings))
    told.done()
    if not any(r.variant for r in readings) or all(r.variant for r in readings):
        hint = "give one [[open.reading]] without a variant, for the setup as it is, and one for each variant"
        raise told.error("reading", "there is nothing to hold side by side", hint)
    return found


def _cause(told: Section) -> Cause:
    cause = Cause(told.text("what"), told.texts("shown_by", []), told.text("excluded", ""))
    told.done()
    if bool(cause.shown_by) == bool(cause.excluded):
        raise told.error("shown_by", "a cause is shown or open", "name variants or checks, or what was `excluded`")
    return cause


def _checks(path: Path) -> tuple[Check, ...]:
    told = Section.of_file(path)
    sections = told.sections("check")
    checks = tuple(_check(one) for one in sections)
    told.get("rows", dict, {})  # Columns of a published table that the experiment's own code reads.
    told.done()
    if not any(c.rule or c.claim for c in checks):
        raise told.error("check", "nothing has to hold of what is measured", "give at least one [[check]] a rule")
    for scale in SCALES:
        _refuse_twice(told, "check", [f"{c.key} at {scale} scale" for c in checks if scale in c.scales])
    return checks


def _check(told: Section) -> Check:
    unit = told.text("unit", "")
    rule = _rule(told, told.get("tolerance", float, 1e-9))
    claim = told.section("claim") if "claim" in told else None
    claim_rule = _rule(claim, 1e-9) if claim else None
    published, quote = told.text("published", ""), told.text("quote", "")
    ours = told.get("ours", bool, False) or not _printed(rule or claim_rule, published, quote)
    words = told.text("must_show", rule.words(unit) if rule else "")
    check = Check(
        key=told.text("key"),
        what=told.text("what"),
        published=published,
        at=told.text("at", ""),
        must_show=f"{words} (ours)" if ours and words else words,
        rule=rule,
        claim=claim_rule,
        ours=ours,
        exact=told.get("exact", bool, False),
        unit=unit,
        scales=_scales(told),
        part=told.among("part", list(PARTS)) if "part" in told else CLAIM if published else OURS,
        quote=quote,
    )
    told.done()
    if claim is not None:
        claim.done()
    _sound(told, check)
    return check


def _sound(told: Section, check: Check) -> None:
    if bool(check.published) != bool(check.at):
        missing = "at" if check.published else "published"
        raise told.error(missing, "it is missing", "say what the text or the figure says, and where: both or neither")
    if check.part == CLAIM and not check.published:
        raise told.error(
            "part", "nothing was published that could be a claim", "say in `published` what the paper claims"
        )
    if check.claim and not check.published:
        raise told.error(
            "claim", "nothing was published", "say in `published` what the paper claims, and where in `at`"
        )
    if check.rule and check.rule.op == "equals" and not check.exact:
        raise told.error(
            "equals", "no interval lies on a point", "add exact = true, or give a range with within = [low, high]"
        )


def _printed(rule: Rule | None, published: str, quote: str) -> bool:
    """Whether the paper itself states the rule's bound: as a number, or by words of comparison.

    A non-numeric value that must be equal, such as the steps of an example, counts as stated by the paper.
    """
    if rule is None or (
        rule.op == "equals" and (isinstance(rule.bound, bool) or not isinstance(rule.bound, int | float))
    ):
        return True
    bounds = rule.bound if isinstance(rule.bound, list) else [rule.bound]
    return bool(published) and any(_says(text, rule.op, bounds) for text in (published, quote) if text)


def _says(text: str, op: str, bounds: list[float]) -> bool:
    """Whether the text contains these bounds: as numbers, or as words for a comparison with 0, 1 or 100%."""
    text = _PLACE.sub("", text)
    found = [float(one.replace(",", "")) for one in _NUMBER.findall(text)]
    found += [float(one.replace(",", "")) - 1 for one in _FEWER.findall(text)]
    found += [float(one.replace(",", "")) + 1 for one in _MORE.findall(text)]
    if not found or (bounds[0] == 100 and 100 not in found):
        return op != "within" and bounds[0] in _IN_WORDS and bool(_IN_WORDS[bounds[0]].search(text))
    return all(any(math.isclose(b, n) for n in found) for b in bounds)


def _rule(told: Section, tolerance: float) -> Rule | None:
    given = [op for op in OPERATORS if op in told]
    if len(given) > 1:
        raise told.error(given[1], f"there is {given[0]} too", "give one rule a check")
    if not given:
        return None
    op, bound = given[0], told.raw(given[0])
    numbers = bound if op == "within" and isinstance(bound, list) else [bound]
    if op != "equals" and not all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers):
        raise told.error(op, f"it is {bound!r}", "give a number")
    if op == "within" and (len(numbers) != 2 or numbers[0] > numbers[1]):
        raise told.error(op, f"it is {bound!r}", "give [low, high]")
    return Rule(op, bound, tolerance)


def _scales(told: Section) -> tuple[str, ...]:
    scales = told.texts("scales", list(SCALES))
    for scale in scales:
        if scale not in SCALES:
            raise told.error("scales", f'there is no scale "{scale}"', f"choose among: {', '.join(SCALES)}")
    return scales


def _refuse_twice(told: Section, place: str, names: list[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise told.error(place, f'there are two called "{twice}"', "rename one, or leave it out")


def refuse_one_name(found: list[Experiment]) -> None:
    """Raises an error for two experiments of one name."""
    folders: dict[str, Path] = {}
    for experiment in found:
        other = folders.setdefault(experiment.name, experiment.folder)
        if other != experiment.folder:
            what = f'the experiment in {other} is called "{experiment.name}" too'
            raise InputError(str(experiment.folder / "experiment.toml"), "name", what, "rename one")


def _natural(name: str) -> list[int | str]:
    # Words and numbers alternate, so that names compare part by part.
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
