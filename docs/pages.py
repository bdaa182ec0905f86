"""Generates pages from the registry, the experiments' folders, the commands and the tables beside this file."""

from __future__ import annotations

import re
import shutil
import struct
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from subak import _subak, units
from subak.cli import app
from subak.commands.repro import mark, side_by_side
from subak.repro import Experiment, Measured, catalogue, records, rules, verdicts
from subak.repro.catalogue import heading, paper
from subak.repro.verdicts import Finding
from subak.show import needs
from typer.testing import CliRunner

GLOSSARY = Path(__file__).parent / "glossary.toml"

MECHANISMS = Path(__file__).parent / "mechanisms"
"""Folder of the tables of the papers' mechanisms."""

CLAIMS = Path(__file__).parent / "claims"
"""Folder of the tables of the papers' numbers."""

PAPERS = {
    "numfabric": "NUMFabric",
    "flowtune": "Flowtune",
    "perc": "PERC",
    "s-perc-abstract": "s-PERC abstract",
    "soze": "Soze",
}
"""Heading of each table of mechanisms, and of each table of numbers."""

STATUSES = {
    "as written": "the code does what the paper says",
    "variant": "the code differs; the note says how",
    "in part": "a part is absent; the note says which",
    "missing": "absent; the note says why",
    "hardware": "needs hardware that is not at hand",
}

FIGURES = Path(__file__).parent / "records"
"""Folder of each experiment's figure at paper scale, which ``record.py`` stores there."""

PLACE = FIGURES.parent / "generated" / "schemes"
"""A folder as deep as every page with figures: relative paths of figures start here."""

ONE_PLOT = 900
"""Width of a figure, pixels, below which it has one plot, which a telephone shows whole."""

LEGIBLE = 0.5
"""Smallest scale of a figure at which its letters are legible; figures are drawn at 130 dots per inch."""

NOTEBOOKS = Path(__file__).parents[1] / "examples/notebooks"
"""Folder of the notebooks, which run while the site is built."""

WIDTH = 86
"""Width of the commands' help, columns, which a page shows without scrolling."""


def write(docs: Path) -> None:
    """Writes all pages into ``generated``, and removes everything else there."""
    made = docs / "generated"
    shutil.rmtree(made, ignore_errors=True)
    for folder in ("schemes", "optimizers", "transports", "experiments"):
        (made / folder).mkdir(parents=True)
    schemes, parts = _subak.schemes(), _subak.parts()
    for one in parts:
        folder = f"{one['role']}s"
        (made / folder / f"{one['name']}.md").write_text(part_page(one, docs / folder))
    for one in schemes:
        (made / "schemes" / f"{one['name']}.md").write_text(scheme_page(one, docs / "schemes"))
    for one in catalogue().values():
        (made / "experiments" / f"{one.name}.md").write_text(experiment_page(one))
    (made / "schemes.md").write_text(schemes_page(schemes, parts))
    (made / "experiments.md").write_text(experiments_page(list(catalogue().values())))
    (made / "mechanisms.md").write_text(mechanisms_page())
    (made / "claims.md").write_text(claims_page())
    (made / "commands.md").write_text(commands_page())
    shutil.copytree(NOTEBOOKS, made / "notebooks")
    (made / "gallery.md").write_text(gallery(list(catalogue().values())))
    (made / "glossary.md").write_text(glossary())


def table(columns: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join("| " + " | ".join(_cell(cell) for cell in line) + " |\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("*", "\\*")


def _contents(names: list[str]) -> str:
    return "```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"


def figure(text: str, source: str) -> str:
    """A figure in a box that scrolls on a narrow page, since letters of a shrunk figure would be illegible."""
    width = _width(PLACE / source)
    least = 20 if width < ONE_PLOT else min(80, 5 * round(width * LEGIBLE / 80))
    return (
        f":::{{container}} figure\n```{{image}} {source}\n:alt: {text}\n:width: 100%\n:class: least-{least}\n```\n:::\n"
    )


def _width(path: Path) -> int:
    """Width of a PNG file, pixels, from its header."""
    return int(struct.unpack(">I", path.read_bytes()[16:20])[0])


def _with_figures(text: str) -> str:
    """A note in which each figure that is alone on its line is put into its box."""
    return re.sub(r"^!\[([^\]]*)\]\(([^)]+\.png)\)$", lambda m: figure(m[1], m[2]), text, flags=re.MULTILINE)


def gallery(experiments: list[Experiment]) -> str:
    """Every experiment as a figure with its verdict, for the front page, from which paths are relative."""
    groups: dict[str, list[Experiment]] = {}
    for experiment in experiments:
        groups.setdefault(heading(experiment), []).append(experiment)
    parts = [f"{records.tally(experiments)}\n"]
    for title, members in groups.items():
        parts += [f"### {title}\n", "::::{container} gallery", *map(_card, members), "::::\n"]
    return "\n".join(parts)


def glossary() -> str:
    """A table of terms for each group of ``glossary.toml``."""
    groups: dict[str, list[list[str]]] = {}
    for one in sorted(tomllib.loads(GLOSSARY.read_text())["term"], key=lambda one: one["say"].strip("`").lower()):
        groups.setdefault(one["group"], []).append([one["say"], one["meaning"], ", ".join(one["not"])])
    parts = [f"## {name}\n\n{table(['term', 'meaning', 'not'], rows)}" for name, rows in sorted(groups.items())]
    return "\n".join(parts)


def mechanisms_page() -> str:
    """Counts by status, a list of missing mechanisms, and a table for each paper."""
    papers = {name: tomllib.loads((MECHANISMS / f"{name}.toml").read_text())["mechanism"] for name in PAPERS}
    every = [one for found in papers.values() for one in found]
    counts = [[f"[{PAPERS[name]}](#{_anchor(PAPERS[name])})", *_counts(found)] for name, found in papers.items()]
    missing = [
        [PAPERS[name], one["section"], one["name"], one["note"]]
        for name, found in papers.items()
        for one in found
        if one["status"] == "missing"
    ]
    parts = [
        "# Mechanisms of the papers\n",
        "What the papers describe, section by section: equations, steps, parameters, packet fields, workloads, "
        "baselines and figures. A test checks that each place exists in the repository.\n",
        "".join(f"- *{status}*: {meaning}.\n" for status, meaning in STATUSES.items()),
        table(["paper", *STATUSES, "all"], [*counts, ["all", *_counts(every)]]),
        "## Missing\n",
        table(["paper", "section", "mechanism", "why"], missing),
    ]
    pages = {
        Path("python/subak/papers", e.paper, e.folder.name): f"experiments/{e.name}.md" for e in catalogue().values()
    }
    for name, found in papers.items():
        places = ["<br>".join(_place(place, pages) for place in one["where"]) for one in found]
        rows = [
            [one["section"], one["name"], where, one["status"], one["note"]]
            for one, where in zip(found, places, strict=True)
        ]
        made = table(["section", "mechanism", "where", "status", "note"], rows)
        parts += [f"## {PAPERS[name]}\n", f"::::{{container}} mechanisms\n{made}::::\n"]
    return "\n".join(parts)


def _counts(mechanisms: list[dict[str, Any]]) -> list[str]:
    statuses = [one["status"] for one in mechanisms]
    return [*(str(statuses.count(status)) for status in STATUSES), str(len(statuses))]


def claims_page() -> str:
    """Counts of judged numbers, and a table for each paper: the check that judges a number, or the reason for none."""
    papers = {name: tomllib.loads((CLAIMS / f"{name}.toml").read_text())["claim"] for name in PAPERS}
    found = {(e.name, f.check.key): f for e in catalogue().values() for f in _findings(e)}
    every = [one for claims in papers.values() for one in claims]
    counts = [
        [f"[{PAPERS[name]}](#{_anchor(PAPERS[name])})", *_judged(claims, found)] for name, claims in papers.items()
    ]
    parts = [
        "# Numbers in the papers\n",
        "The tables list the sentences of the papers' evaluations that state a result with a number. A judged "
        "number has a check with a bound at paper scale. Each other number has the reason why it is not judged. The "
        "outcomes follow from the records, as on the pages of the [experiments](experiments.md). A bound of ours is "
        "marked: the paper does not print it. A test checks that each experiment and key exists.\n",
        table(
            ["paper", "judged", "with a bound of ours", "not judged", "all"], [*counts, ["all", *_judged(every, found)]]
        ),
    ]
    for name, claims in papers.items():
        rows = [[one["section"], one["number"], *_answer(one, found)] for one in claims]
        made = table(["section", "number", "judged by, or why not", "must show", "outcome"], rows)
        parts += [f"## {PAPERS[name]}\n", f"::::{{container}} mechanisms\n{made}::::\n"]
    return "\n".join(parts)


def _findings(experiment: Experiment) -> tuple[Finding, ...]:
    record = records.of(experiment)
    return record.findings if record else ()


def _judges(claim: dict[str, str]) -> list[tuple[str, str]]:
    """Experiment and key of each check that judges a number."""
    names = (one.partition(": ") for one in claim["judged"].split("; ")) if "judged" in claim else ()
    return [(experiment, key) for experiment, _, key in names]


def _judged(claims: list[dict[str, str]], found: dict[tuple[str, str], Finding]) -> list[str]:
    judged = sum("judged" in one for one in claims)
    ours = sum(any(name in found and found[name].check.ours for name in _judges(one)) for one in claims)
    return [str(judged), str(ours), str(len(claims) - judged), str(len(claims))]


def _answer(claim: dict[str, str], found: dict[tuple[str, str], Finding]) -> list[str]:
    """The checks that judge a number, their rules and their outcomes; or the reason why none does."""
    if "reason" in claim:
        return [claim["reason"], "", ""]
    names = _judges(claim)
    links = [f"[{experiment}](experiments/{experiment}.md): `{key}`" for experiment, key in names]
    findings = [found.get(name) for name in names]
    rule = [one.check.must_show if one else "" for one in findings]
    outcome = [mark(one.to_dict()) if one else records.NOT_RECORDED for one in findings]
    return ["<br>".join(column) for column in (links, rule, outcome)]


def _anchor(heading: str) -> str:
    return heading.lower().replace(" ", "-")


def _place(place: str, pages: dict[Path, str]) -> str:
    """A place in the repository, with a link if the site has a page of the experiment or of the document."""
    path = Path(place.partition(":")[0])
    page = next((pages[folder] for folder in path.parents if folder in pages), None)
    if path.suffix == ".md" and path.parts[0] == "docs":
        page = str(path.relative_to("docs")) if len(path.parts) > 2 else f"../{path.name}"
    return f"[`{place}`]({page})" if page else f"`{place}`"


def _card(experiment: Experiment) -> str:
    page = f"generated/experiments/{experiment.name}.md"
    verdict = records.verdict(experiment)
    look = "met" if verdict.startswith("met") else verdict.replace(" ", "-")
    lines = [f":::{{container}} card is-{look}"]
    if (FIGURES / f"{experiment.name}.png").exists():
        lines.append(f"[![{experiment.title}](records/{experiment.name}.png)]({page})\n")
    lines.append(f"[{experiment.name}]({page}): {experiment.title}\n")
    lines.append(f"[{_cell(records.short(experiment))}]{{.verdict}}\n:::")
    return "\n".join(lines)


def schemes_page(schemes: list[dict[str, Any]], parts: list[dict[str, Any]]) -> str:
    """A table of schemes, one of optimizers and transports, and one of the pairs that are valid."""
    rows = [
        [f"[{s['name']}](schemes/{s['name']}.md)", s["kind"], s["policies"], needs(s), _backends(s), s["about"]]
        for s in schemes
    ]
    halves = [[f"[{p['name']}]({p['role']}s/{p['name']}.md)", p["role"], p["wish"], p["about"]] for p in parts]
    optimizers, transports = ([p for p in parts if p["role"] == role] for role in ("optimizer", "transport"))
    named = {tuple(s["made_of"]): s["name"] for s in schemes if s["made_of"]}
    pairs = [[o["name"], *(_pair(o, f, named) for f in transports)] for o in optimizers]
    return "\n".join(
        [
            "# Schemes\n",
            "A scheme is one file of state machines, and the same file runs under every backend: see "
            "[how schemes fit](../fitting.md). A *proactive* scheme sends sources their rates in control packets. "
            "A *reactive* one adjusts to the congestion of its data packets.\n",
            table(["scheme", "kind", "policies", "needs", "runs under", "about"], rows),
            "## Optimizers over transports\n",
            "An optimizer computes the target weight or rate of each subflow. A transport makes the rates follow it. A "
            'spec names both: `optimizer = "xwi"`, `transport = "s-perc"`. Compatible pairs:\n',
            table(["", *(f["name"] for f in transports)], pairs),
            table(["part", "role", "output or input", "about"], halves),
            _contents([f"schemes/{s['name']}" for s in schemes] + [f"{p['role']}s/{p['name']}" for p in parts]),
        ]
    )


def _pair(optimizer: dict[str, Any], transport: dict[str, Any], named: dict[tuple[str, ...], str]) -> str:
    name = named.get((optimizer["name"], transport["name"]))
    if name:
        return f"[{name}](schemes/{name}.md)"
    if f"{optimizer['name']}/{transport['name']}" in {one["name"] for one in _subak.pairs()}:
        return "yes"
    if (optimizer["wish"], transport["wish"]) == ("weights", "rates"):
        return "no: outputs weights, accepts rates"
    return "no: rates do not converge"


def scheme_page(scheme: dict[str, Any], notes: Path) -> str:
    """Page of a scheme: its declarations in the registry, and its text in ``schemes``."""
    name = scheme["name"]
    facts = {"kind": scheme["kind"], "converges to": scheme["goal"], "policies": scheme["policies"]}
    facts |= {"needs": needs(scheme)} if needs(scheme) else {}
    facts["runs under"] = _backends(scheme)
    if scheme["made_of"]:
        optimizer, transport = scheme["made_of"]
        over = f"[{transport}](../transports/{transport}.md)"
        made_of = f"[{optimizer}](../optimizers/{optimizer}.md) over the transport {over}"
        facts["made of"] = f"the optimizer {made_of}"
    if scheme["settles_within"] is not None and scheme["settles_rtts"] > 0:
        facts["convergence"] = (
            f"{scheme['settles_rtts']:.3g} RTTs after the last change of the flows, each rate is within "
            f"{100 * scheme['settles_within']:.3g}% of the goal; the tests check this"
        )
    if scheme["nic"]:
        facts["NIC"] = f'`nic = "{scheme["nic"]}"`, in place of the network\'s'
    facts["paper"] = scheme["paper"]
    parts = [f"# {name}\n", f"{_capital(scheme['about'])}.\n", table(["", ""], [[*fact] for fact in facts.items()])]
    parts += _notes_and_params(scheme, notes)
    shown = [e for e in catalogue().values() if name in e.schemes]
    if shown:
        rows = [[f"[{e.name}](../experiments/{e.name}.md)", e.claim, records.short(e)] for e in shown]
        parts += ["## Experiments\n", table(["experiment", "claim", "at paper scale"], rows)]
    return "\n".join(parts)


def part_page(part: dict[str, Any], notes: Path) -> str:
    """Page of an optimizer or a transport: its declarations in the registry, and its text in the folder of its role."""
    does = "output" if part["role"] == "optimizer" else "input"
    facts = table(["", ""], [["role", part["role"]], [does, part["wish"]], ["paper", part["paper"]]])
    head = f"{_capital(part['about'])}.\n"
    return "\n".join([f"# {part['name']} ({part['role']})\n", head, facts, *_notes_and_params(part, notes)])


def _notes_and_params(one: dict[str, Any], notes: Path) -> list[str]:
    note = notes / f"{one['name']}.md"
    parts = [_with_figures(note.read_text())] if note.exists() else []
    if one["params"]:
        held = {p["name"]: " or ".join(p.get("choices", [p["unit"]])) for p in one["params"]}
        rows = [
            [f"`{p['name']}`", _default(p["default"], p["unit"]), held[p["name"]], p["about"]] for p in one["params"]
        ]
        presets = [f"- `{p['name']}` = {preset}" for p in one["params"] for preset in p.get("presets", [])]
        parts += ["## Parameters\n", table(["key of `params`", "default", "type", "meaning"], rows)]
        parts += ["Values of presets:\n", "\n".join(presets) + "\n"] if presets else []
    return parts


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _backends(scheme: dict[str, Any]) -> str:
    backends = [f"`subak {command}`" for command in ("run", "converge") if scheme[command]]
    return ", ".join(backends) or "none"


def _default(value: Any, unit: str) -> str:
    if isinstance(value, bool | str):
        return str(value).lower()
    return units.seconds(value) if unit == "s" and value > 0 else f"{value:.6g}"


def experiments_page(experiments: list[Experiment]) -> str:
    """A table of all experiments, with the verdict at paper scale and its basis."""
    intro = (
        "Each experiment is one command, `subak repro NAME`. It takes seconds (`--scale smoke`) or runs at the "
        "paper's size (`--scale paper`). The verdicts are computed when this page is made, from the recorded values "
        "and today's rules: see [how verdicts are made](../reproducing.md), and [what moved](../verdicts.md) when the "
        "rules last did. A claim is met only if its whole confidence interval obeys.\n\n"
        "- *claims*: how many of the paper's are met, of all; those of them with a confidence interval.\n"
        "- *setup*: how many departures from the paper's are declared, and what runs in place of the system it names.\n"
        "- *age*: whether it is of today's code; of unknown code, it has no hash to compare.\n\n"
    )
    names = [f"experiments/{e.name}" for e in experiments]
    columns = ["experiment", "figure", "verdict", "runs", "claims", "setup", "date", "age"]
    made = table(columns, [_row(e) for e in experiments])
    return f"# The papers' experiments\n\n{records.tally(experiments)}\n\n{intro}{made}\n" + _contents(names)


def _row(experiment: Experiment) -> list[str]:
    record = records.of(experiment)
    head = [f"[{experiment.name}](experiments/{experiment.name}.md)", experiment.figure]
    if record is None:
        return [*head, records.NOT_RECORDED, *[""] * 5]
    claims = [f for f in record.findings if f.counts]
    met = sum(f.judged.outcome == "met" for f in claims)
    drawn = sum(isinstance(f.value, Measured) and f.value.interval is not None and not f.check.exact for f in claims)
    setup = [f"{len(record.departures)} changed"] if record.departures else []
    setup += [experiment.instead] if experiment.instead else []
    counted = f"{met} of {len(claims)}; {drawn} by interval" if claims else ""
    return [*head, record.verdict, str(record.held["runs"]), counted, "; ".join(setup), record.date, record.age]


def experiment_page(experiment: Experiment) -> str:
    """Page of an experiment: the claim, the findings, the setup, and the record of the run at paper scale."""
    of = paper(experiment.paper)
    where = f"{experiment.figure[:1].upper()}{experiment.figure[1:]}"
    source = f"{of['authors']}, {of['title']}, {of['place']}"
    record = records.of(experiment)
    parts = [
        f"# {experiment.name}\n",
        f"**Claimed:** {_cell(experiment.claim)}. **Found:** {_cell(records.found(record))}\n",
        *[f"**Not asked:** {_cell(one)}.\n" for one in experiment.not_asked],
        *_causes(experiment, record),
    ]
    parts.append(f"*{experiment.title}.* {where} of: {source}.\n")
    parts.append(f"```sh\nsubak repro {experiment.name} --scale paper\n```\n")
    if record:
        parts.append(figure(experiment.title, f"../../records/{experiment.name}.png"))
    setup = (experiment.folder / "page.md").read_text()
    parts += ["## Setup\n", setup.replace("{runs}", record.runs if record else "none")]
    if record:
        parts += [_changed_line(one) for one in record.told()["changed"]]
        parts += _open(experiment, record)
        parts += _recorded(experiment, record)
    return "\n".join(parts) + "\n"


def _causes(experiment: Experiment, record: records.Record | None) -> list[str]:
    """Causes of claims that are not met, with the variants and checks that show them or what was excluded."""
    if record is None or not record.verdict.startswith(rules.FAILED):
        return []
    shown = {c.key: c.what for c in experiment.checks}
    parts = []
    for one in experiment.causes:
        by = "; ".join(_cell(shown.get(name, name)) for name in one.shown_by)
        head = f"**Cause:** {_cell(one.what)}. Shown by: {by}" if by else f"**Cause open:** {_cell(one.what)}"
        parts.append(f"{head}.\n" if by else f"{head}. Excluded: {_cell(one.excluded)}.\n")
    return parts


def _recorded(experiment: Experiment, record: records.Record) -> list[str]:
    told = record.told()
    took = f"{record.runs} from seed {told['seed']}, {_took(told['seconds'])}, {record.date}, version {_build(told)}"
    rows = [[c["what"], _published(c), c["text"], c["must_show"], mark(c)] for c in told["checks"]]
    parts = [
        "## Published and measured\n",
        f"At paper scale ({took}): **{record.short}**.\n",
        *_older(record),
        table(["", "published", "measured", "must show", "verdict"], rows),
    ]
    if told.get("variants"):
        parts += ["## Variants\n", "The same with one thing changed at a time, to show what the verdict depends on.\n"]
        parts += [
            f"- *{_cell(one['name'])}*: {_cell(one['changed'])} (runs: {one['runs']}){_says(experiment, one)}.\n"
            for one in told["variants"]
        ]
        parts.append(table(*side_by_side(told)))
    return parts + [f"- {_cell(note)}" for note in told["notes"]]


def _says(experiment: Experiment, one: dict[str, Any]) -> str:
    """The paper's statement from which a variant departs, or a note that the paper makes none."""
    variant = next((v for v in experiment.variants if v.name == one["name"]), None)
    if variant is None or any(c.without == variant.name for c in experiment.changed):
        return ""
    return f"; the paper: {_cell(variant.departs)}" if variant.departs else "; the paper does not say"


def _older(record: records.Record) -> list[str]:
    """Notes on a record: code that has changed since, missing or contradicting samples, and the seeds."""
    changed = record.changed_since()
    said = [f"This record is older than changes of {', '.join(changed)}.\n"] if changed else []
    if record.lacks_samples and record.samples == "none":
        said.append("It has no samples: its intervals cannot be recomputed.\n")
    elif record.lacks_samples:
        said.append(f"Values do not follow from its samples: {record.samples.removeprefix('not of ')}.\n")
    said += [] if record.on_held_out_seeds else ["It ran on seeds on which the setup may have been chosen.\n"]
    for one in record.held.get("beside", []):
        said.append(f"Beside it, on {one['date']}: {one['runs']} runs, fewer than the record has.\n")
    return said


def _open(experiment: Experiment, record: records.Record) -> list[str]:
    """Outcomes for each value of the parameters that the paper leaves open, side by side."""
    parts = []
    for one in experiment.open:
        rows = [
            [r.what, "the field's default" if r.usual else "", r.variant or "as set up", comes_out, obey]
            for r, comes_out, obey in verdicts.readings(one, record.as_set_up, record.variants)
        ]
        parts.append(f"The paper leaves open: {one.parameter}.\n")
        parts.append(table(["reading", "", "variant", "the claims measured there", "values that obey"], rows))
    return parts


def _changed_line(one: dict[str, str]) -> str:
    told = {key: _cell(value) for key, value in one.items()}
    without = f" Without ({told['without']}): {told['comes_out']}." if told["without"] else ""
    return f"- Changed: {told['what']}, because {told['why']}.{without}"


def _published(check: dict[str, Any]) -> str:
    """The published value, and its place in the paper."""
    return f"{check['published']} ({check['at']})" if check["at"] else str(check["published"])


def _took(seconds: float) -> str:
    return f"{units.seconds(seconds)} of running" if seconds > 0.1 else "seconds not kept"


def _build(told: dict[str, Any]) -> str:
    if "build" not in told:
        return str(told["version"])
    sources = told["build"]["sources"]
    return f"{told['build']['version']}{f', sources {sources[:12]}' if sources else ''}"


def _commands() -> Iterator[list[str]]:
    """Names of all commands, in order; for a group, its own commands too."""
    for name, command in sorted(typer.main.get_command(app).commands.items()):
        yield [name]
        yield from ([name, inner] for inner in sorted(getattr(command, "commands", ())))


def commands_page() -> str:
    """The page with the help of every command."""
    parts = [
        "# Commands\n",
        "The exit status is 0 on success, 1 if the work ran and the answer is a failure, and 2 for invalid input. "
        "`--json` prints one JSON document; logs and progress go to standard error.\n",
    ]
    for words in _commands():
        plain = {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}
        said = CliRunner().invoke(app, [*words, "--help"], prog_name="subak", env=plain).output
        told = "\n".join(line.rstrip() for line in said.strip().splitlines())
        parts += [f"## subak {' '.join(words)}\n", f"```text\n{told}\n```\n"]
    return "\n".join(parts)
