"""Verdicts: judges each claim of the paper, and combines them for the experiment.

No verdict is stored. A record has measured values, from which the present rules compute the verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from subak.repro import rules
from subak.repro.experiment import CLAIM, Check, Experiment, Open, Reading
from subak.repro.values import Measured, Value, as_json, text

NO_CLAIM, NOT_RUN = "no claim", "not run"
BY_OUR_BOUND, CHANGED = " by our bound", " with a changed setup"


@dataclass(frozen=True)
class Finding:
    """A check with its measured value and outcome: a row of the experiment's table."""

    check: Check
    value: Value
    judged: rules.Judged

    @property
    def text(self) -> str:
        """The measured value as text."""
        return text(self.value, self.check.unit)

    @property
    def counts(self) -> bool:
        """Whether the experiment's verdict depends on this finding."""
        return self.check.part == CLAIM and self.judged.outcome is not None

    def to_dict(self) -> dict[str, Any]:
        """The finding as a row of ``verdict.json``."""
        return {
            "key": self.check.key,
            "what": self.check.what,
            "part": self.check.part,
            "published": self.check.published,
            "at": self.check.at,
            "measured": as_json(self.value),
            "text": self.text,
            "must_show": self.check.must_show,
            "exact": self.check.exact,
            "outcome": self.judged.outcome,
            "leans": self.judged.leans,
            "needs": self.judged.needs,
        }


def find(check: Check, value: Value, runs: int, family: int = 1) -> Finding:
    """Judges ``value``, measured in ``runs`` runs, by the check's rules, as one of ``family`` claims."""
    # A fraction of random draws estimates that of the population, but a bound of this project concerns this run only.
    drawn = check.part == CLAIM and isinstance(value, Measured) and value.share
    exact = check.exact and not drawn
    judged = rules.judge(value, check.rule, exact=exact, claim=check.claim, runs=runs, family=family)
    return Finding(check, value, judged)


def family(checks: Sequence[Check]) -> int:
    """Number of claims of an experiment, which are judged together."""
    return sum(check.part == CLAIM and (check.rule or check.claim) is not None for check in checks)


def of_claims(findings: Sequence[Finding]) -> str:
    """The worst outcome among the claims."""
    outcomes = [f.judged.outcome for f in findings if f.counts]
    return rules.verdict(outcomes) if outcomes else NO_CLAIM


Findings = Sequence[Finding]


def readings(one: Open, main: Findings, variants: Mapping[str, Findings]) -> list[tuple[Reading, str, str]]:
    """For each value of an open parameter: outcome, and number of claims that measured values alone satisfy."""
    told = []
    for reading in one.readings:
        found = variants.get(reading.variant) if reading.variant else main
        claims = [f for f in found or () if f.counts]
        obey = f"{sum(bool(f.judged.leans) for f in claims)} of {len(claims)}" if found is not None else ""
        told.append((reading, NOT_RUN if found is None else of_claims(found), obey))
    return told


def settle(experiment: Experiment, main: Findings, variants: Mapping[str, Findings]) -> tuple[Finding, ...]:
    """The findings.

    A claim is ``depends`` if another value of a parameter that the paper leaves open changes its outcome.
    """
    turned = {key for one in open_parameters(experiment) for key in _turned(one, main, variants)}
    return tuple(
        replace(f, judged=replace(f.judged, outcome=rules.DEPENDS)) if f.check.key in turned and f.counts else f
        for f in main
    )


def turning(experiment: Experiment, main: Findings, variants: Mapping[str, Findings]) -> list[str]:
    """Open parameters, declared or by a variant, whose value changes the outcome of a claim."""
    turns = [one for one in open_parameters(experiment) if _turned(one, main, variants)]
    return [one.parameter if one in experiment.open else f'the variant "{one.readings[-1].variant}"' for one in turns]


def open_parameters(experiment: Experiment) -> list[Open]:
    """Parameters that the paper leaves open: the declared ones, and variants that contradict no statement of it."""
    told = {r.variant for one in experiment.open for r in one.readings} | {c.without for c in experiment.changed}
    silent = [v for v in experiment.variants if v.name not in told and not v.departs]
    as_is = Reading("as it is set up", "", False)
    found = [Open(v.changed, (as_is, Reading(v.name, v.name, False))) for v in silent]
    return [*experiment.open, *found]


def _turned(one: Open, main: Findings, variants: Mapping[str, Findings]) -> set[str]:
    """Keys of claims whose outcome another value of an open parameter changes, by a run that measured it."""
    set_up = {f.check.key: f for f in main if f.counts}
    turned: set[str] = set()
    for reading in one.readings:
        other = {f.check.key: f for f in variants.get(reading.variant, ()) if f.counts}
        turned |= {key for key in set_up.keys() & other.keys() if _leaning(set_up[key]) != _leaning(other[key])}
    return turned


def _leaning(finding: Finding) -> str | None:
    """Outcome of a finding for comparison: undecided and contradicted ones count as met or not by the value alone."""
    if finding.judged.outcome in (rules.UNDECIDED, rules.CONTRADICTED):
        return rules.MET if finding.judged.leans else rules.NOT_MET
    return finding.judged.outcome


def word(settled: Findings, *, changed: bool) -> str:
    """Verdict in words: worst outcome, whether this project's bounds alone decide it, whether the setup departs."""
    found = of_claims(settled)
    decide = [f for f in settled if f.counts and f.judged.outcome == found]
    ours = found in (rules.MET, rules.NOT_MET) and all(f.check.ours for f in decide)
    told = changed and found in (rules.MET, rules.CONTRADICTED)
    return f"{found}{BY_OUR_BOUND if ours else ''}{CHANGED if told else ''}"
