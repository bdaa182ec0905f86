"""Keeps what experiments came to at paper scale, for their pages.

``python docs/record.py out/repro/NAME-paper ...`` keeps what is there. ``python docs/record.py --budget 20`` says what
it will run and what that costs, and does it: what is oldest and least certain, for so many core-minutes. A record whose
sample of one run comes out the same is renewed, not run anew. The same command goes on where it stopped. Each call
counts the verdicts anew in README.md.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import record_compare as compare
import record_plan as plan
from subak.errors import InputError
from subak.repro import catalogue, find, founded, records, reproduce
from subak.repro.reproduce import TrialFailedError
from subak.repro.results import Listener

FIGURES = Path(__file__).parent / "records"
README = Path(__file__).parents[1] / "README.md"


class SpentError(RuntimeError):
    """Raised if the budget of core-minutes is used up."""


def keep(folder: Path) -> str:
    """Stores the values, samples and figure in ``folder``, which ``subak repro`` wrote at paper scale.

    Fewer runs than those of the record do not replace it: they are stored beside it.
    """
    try:
        told = json.loads((folder / "verdict.json").read_bytes())
        experiment = find(told["name"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = "give a folder that subak repro NAME --scale paper wrote"
        raise InputError(str(folder), "verdict.json", f"it cannot be read: {error}", hint) from None
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


def redo(budget_s: float, jobs: int) -> None:
    """Prints the plan with its cost, then runs it until ``budget_s`` seconds on each of ``jobs`` cores are used."""
    with _alone():
        planned = plan.steps(budget_s)
        minutes = sum(step.seconds for step in planned) / 60
        print(f"{len(planned)} of {len(catalogue())} records, about {minutes:.1f} core-minutes:")
        for step in planned:
            print(f"  {step.words}")
        end = time.monotonic() + budget_s / jobs
        for step in planned:
            if time.monotonic() > end:
                print("the budget is spent; the same command goes on with the rest")
                return
            try:
                print(_redo(step, jobs, _until(end, step)), flush=True)
            except SpentError:
                print(f"{step.experiment.name}: the budget is spent; the same command goes on where it stopped")
                return
            except (InputError, TrialFailedError) as error:
                print(f"{step.experiment.name}: {error}", file=sys.stderr, flush=True)


@contextmanager
def _alone() -> Iterator[None]:
    """Refuses a second call at the same time, which would run the same trials."""
    plan.WORK.mkdir(parents=True, exist_ok=True)
    with (plan.WORK / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(str(plan.WORK), "", "another call runs experiments there", "wait for its end") from None
        yield


def _until(end: float, step: plan.Step) -> Listener | None:
    """Ends the step when the budget is spent; ``None`` for an experiment without trials, which would begin anew."""

    def listen(done: int, trials: int, share: float) -> None:
        if time.monotonic() > end:
            raise SpentError

    return listen if step.experiment.kind == "specs" else None


def _redo(step: plan.Step, jobs: int, progress: Listener | None) -> str:
    """Runs the step, stores its results, and returns what came of it."""
    experiment, sample = step.experiment, plan.folder_of(step.experiment, "sample")
    if step.runs == 0:
        if compare.renew(experiment, sample, jobs, progress):
            return f"{experiment.name}: one run gives the same numbers; the record is renewed"
        (sample / plan.DIFFERS).touch()
        return f"{experiment.name}: one run gives other numbers; the next call runs it anew"
    runs, folder = plan.runs_asked(experiment, step.runs), plan.folder_of(experiment, step.runs)
    seed = plan.seed_of(experiment)
    verdict = reproduce(experiment.name, scale="paper", runs=runs, seed=seed, out=folder, jobs=jobs, progress=progress)
    compare.write_sample(experiment, verdict, sample, jobs, progress)
    said = keep(folder)
    (folder / plan.KEPT).touch()
    return said


def counted(readme: str) -> str:
    """The text of ``README.md`` with its sentences on the experiments updated from the present records and rules."""
    experiments = list(catalogue().values())
    dates = sorted(record.date for record in records.readable(experiments))
    runs = f"The runs are of {dates[0]} to {dates[-1]}; many experiments ran with few seeds. " if dates else ""
    item = (
        "- Not every published result could be reproduced. For claims without a number we chose the value that a "
        'result must reach; their verdicts say "by our bound". '
        f"{records.tally(experiments)} {runs}{records.ages(experiments)} `subak repro "
        "--list` gives the date and code of each record. [Reproducing](docs/reproducing.md) "
        "defines each verdict.\n"
    )
    lines = textwrap.fill(item, 120, subsequent_indent="  ", break_on_hyphens=False) + "\n"
    begins = re.compile(r"^- Not every published result could be reproduced\..*?(?=^(?!  ))", re.MULTILINE | re.DOTALL)
    told, found = begins.subn(lambda _: lines, readme)
    if found != 1:
        sys.exit(f"{README}: one item has to begin with: Not every published result could be reproduced.")
    return told


def _jobs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"it is {text}; give 1 or more")
    return int(text)


def _minutes(text: str) -> float:
    minutes = float(text)
    if not 0 <= minutes < math.inf:
        raise argparse.ArgumentTypeError(f"it is {text}; give 0 or more core-minutes")
    return minutes


def main() -> None:
    """Runs the command."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folders", nargs="*", type=Path)
    asked.add_argument("--budget", type=_minutes, metavar="CORE_MINUTES")
    asked.add_argument("--renew", nargs="+", metavar="NAME", help="these records by a sample of one run each")
    asked.add_argument("--jobs", type=_jobs, default=1)
    told = asked.parse_args()
    counted(README.read_text())
    try:
        for folder in told.folders:
            print(keep(folder))
        for name in told.renew or []:
            experiment = find(name)
            same = compare.renew(experiment, plan.folder_of(experiment, "sample"), told.jobs)
            what = "the same numbers; renewed" if same else "other numbers, or no sample was kept: run it anew"
            print(f"{name}: {what}")
        if told.budget is not None:
            redo(60 * told.budget, told.jobs)
    except InputError as error:
        sys.exit(str(error))
    finally:
        README.write_text(counted(README.read_text()))


if __name__ == "__main__":
    main()
