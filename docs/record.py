"""Keeps what experiments came to at paper scale, for their pages.

``python docs/record.py out/repro/NAME-paper ...`` keeps what is there. ``python docs/record.py --budget 20`` runs anew
what is oldest and least certain, for so many core-minutes, and keeps it; the same command goes on where it stopped.
Each call counts the verdicts anew in README.md.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import textwrap
import time
from pathlib import Path

from subak.errors import InputError
from subak.repro import catalogue, find, records, reproduce
from subak.repro.experiment import Experiment

FIGURES = Path(__file__).parent / "records"
README = Path(__file__).parents[1] / "README.md"
WORK = Path("out/records")


class SpentError(RuntimeError):
    """The budget is used up."""


def keep(folder: Path) -> str:
    """Keeps the verdict and the figure in ``folder``, which ``subak repro`` has filled at paper scale."""
    told = json.loads((folder / "verdict.json").read_text())
    if told["scale"] != "paper":
        sys.exit(f"{folder}: this ran at {told['scale']} scale; pages show paper scale")
    records.keep(find(told["name"]), told)
    figure = FIGURES / f"{told['name']}.png"
    shutil.copy(folder / "figure.png", figure)
    return f"{told['name']}: {told['verdict']} (runs: {told['runs']}); look at {figure}"


def urgency(experiment: Experiment) -> tuple[int, str, int, float]:
    """The smaller, the sooner it is run anew: never recorded, in the old form, changed since, undecided, the rest.

    Among those as urgent the one recorded first comes first, then the least certain, then the cheapest.
    """
    record, whole = records.of(experiment), _seconds(experiment) * experiment.sizes["paper"].runs
    if record is None:
        return 0, "", 0, whole
    old = 1 if record.old_form else 2 if record.changed_since(experiment) else 3 if record.uncertain() else 4
    return old, record.held.get("date", ""), -record.uncertain(), whole


def _seconds(experiment: Experiment) -> float:
    """Of a run with its variants, on one core; what the record took tells better than an estimate."""
    size, record = experiment.sizes["paper"], records.of(experiment)
    took = record.held["seconds"] / record.held["runs"] if record and not record.old_form else size.seconds / size.runs
    return float(took) * (1 + len(experiment.variants_at("paper")))


def runs_for(experiment: Experiment, seconds: float) -> int:
    """How many runs ``seconds`` allow: at most the scale's own number, or twice those that left it undecided."""
    record = records.of(experiment)
    wanted = experiment.sizes["paper"].runs
    if record and not record.old_form and record.uncertain():
        wanted = max(wanted, 2 * record.held["runs"])
    return min(wanted, int(seconds / _seconds(experiment)))


def redo(budget_s: float, jobs: int) -> None:
    """Runs what is most urgent until ``budget_s`` core-seconds are spent."""
    end = time.monotonic() + budget_s / jobs

    def listen(done: int, cells: int, share: float) -> None:
        if time.monotonic() > end:
            raise SpentError

    for experiment in sorted(catalogue().values(), key=urgency):
        if urgency(experiment)[0] > 3:
            break
        runs = _begun(experiment) or runs_for(experiment, (end - time.monotonic()) * jobs)
        if runs < 1:
            minutes = _seconds(experiment) / 60
            print(f"{experiment.name}: a run takes about {minutes:.1f} core-minutes, more than are left")
            continue
        folder = WORK / f"{experiment.name}-{runs}"
        try:
            reproduce(experiment.name, scale="paper", runs=runs, out=folder, jobs=jobs, progress=listen)
        except SpentError:
            print(f"{experiment.name}: the budget is spent; the same command goes on with its {runs} runs")
            return
        except InputError as error:
            print(f"{experiment.name}: {error}")
            continue
        print(keep(folder), flush=True)


def _begun(experiment: Experiment) -> int | None:
    """The runs of a folder that was begun and not finished."""
    begun = [p for p in WORK.glob(f"{experiment.name}-*") if not (p / "verdict.json").exists()]
    return next((int(p.name.rsplit("-", 1)[1]) for p in begun), None)


def counted(readme: str) -> str:
    """The text of ``README.md`` with its sentences on the experiments as their folders have them today."""
    experiments = list(catalogue().values())
    old = sum(record.old_form for record in map(records.of, experiments) if record)
    item = (
        f"- Not every result of the papers shows here. {records.tally(experiments)} {old} of these verdicts are from "
        "before we asked for confidence intervals, and many are from few runs. The site's front page shows each.\n"
    )
    lines = textwrap.fill(item, 120, subsequent_indent="  ", break_on_hyphens=False) + "\n"
    begins = re.compile(r"^- Not every result of the papers shows here\..*?(?=^(?!  ))", re.MULTILINE | re.DOTALL)
    told, found = begins.subn(lambda _: lines, readme)
    if found != 1:
        sys.exit(f"{README}: one item has to begin with: Not every result of the papers shows here.")
    return told


def main() -> None:
    """The command."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folders", nargs="*", type=Path)
    asked.add_argument("--budget", type=float, metavar="CORE_MINUTES")
    asked.add_argument("--jobs", type=int, default=1)
    told = asked.parse_args()
    for folder in told.folders:
        print(keep(folder))
    if told.budget is not None:
        redo(60 * told.budget, told.jobs)
    README.write_text(counted(README.read_text()))


if __name__ == "__main__":
    main()
