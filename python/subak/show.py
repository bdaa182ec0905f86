"""Text output of the commands."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich import box
from rich.console import Console
from rich.table import Table

from subak import units
from subak.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from subak._subak import Answer
    from subak.doctor import Check
    from subak.metrics import Metric
    from subak.structures import Structure

MOST_ROWS = 40
MOST_WAITS = 6
MOST_WARNINGS = 12


def console() -> Console:
    """Standard output; tables keep their full width in a pipe."""
    out = Console(highlight=False, markup=False, emoji=False)
    if not out.is_terminal:
        out.width = 200
    return out


def table(title: str | None, *columns: str, justify: Literal["left", "right"] = "right") -> Table:
    """An empty table whose first column is a name; ``justify`` is the alignment of the other columns."""
    made = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for i, column in enumerate(columns):
        made.add_column(column, justify="left" if i == 0 else justify, no_wrap=i == 0)
    return made


def answer(solved: Answer) -> None:
    """Prints a table of the flows, one of the saturated links, and the certificate."""
    import pyarrow as pa
    import pyarrow.compute as pc

    out = console()
    flows = pa.table(solved.flows)
    rows = table(None, "Flow", "Rate", "Paths", "Bottlenecks")
    for row in flows.slice(0, MOST_ROWS).to_pylist():
        paths = row["path_rates_bps"]
        split = " + ".join(units.rate(r) for r in paths) if len(paths) > 1 else ""
        rows.add_row(row["id"], units.rate(row["rate_bps"]), split, row["status"] or ", ".join(row["bottlenecks"]))
    out.print(rows)
    _more(out, flows.num_rows, "flows")

    links = pa.table(solved.links)
    busy = links.filter(pc.greater(links["price"], 0)) if links.num_rows else links
    priced = solved.policy not in ("max-min", "bandwidth-function")
    if busy.num_rows:
        # Max-min prices are gains of a water level, which do not add up: a column of them would mislead.
        rows = table(None, "Bottleneck", "Load", "Capacity", *(["Price"] if priced else []))
        for row in busy.slice(0, MOST_ROWS).to_pylist():
            load, capacity = units.rate(row["load_bps"]), units.rate(row["capacity_bps"])
            rows.add_row(row["id"], load, capacity, *([f"{row['price']:.4g}"] if priced else []))
        out.print(rows)
        _more(out, busy.num_rows, "links")
    said = ", ".join(f"{name.replace('_', ' ')} {value:.2g}" for name, value in solved.certificate.items())
    out.print(f"{solved.status}: {said} ({solved.solver}, {units.seconds(solved.seconds)})")


def beside(found: Answer, exact: Answer, off_by: float) -> None:
    """Prints a table of the flows with the rates of an iteration, the exact rates, and the differences."""
    import pyarrow as pa

    out = console()
    flows, wanted = pa.table(found.flows), pa.table(exact.flows)["rate_bps"].to_pylist()
    rows = table(None, "Flow", "Rate", "Exact", "Off by")
    for row, want in zip(flows.slice(0, MOST_ROWS).to_pylist(), wanted, strict=False):
        off = f"{100 * (row['rate_bps'] / want - 1):+.3g}%" if want else ""
        rows.add_row(row["id"], units.rate(row["rate_bps"]), units.rate(want), off)
    out.print(rows)
    _more(out, flows.num_rows, "flows")
    said = ", ".join(f"{name.replace('_', ' ')} {value:.2g}" for name, value in found.certificate.items())
    took = units.seconds(found.seconds)
    out.print(f"{found.solver}, {found.iterations} iterations: worst rate off by {off_by:.2g}; {said} ({took})")
    out.print(f"beside it {exact.solver}: {exact.status} ({units.seconds(exact.seconds)})")


def structure(found: Structure) -> None:
    """Prints a table of the bottlenecks in the order of their removal, with their precedents."""
    out = console()
    rows = table(None, "Removed in", "Bottleneck", "Rate", "Rate final in", "Waits for", justify="left")
    listed = sorted(found.bottlenecks(), key=lambda row: int(row["removed_in"]))
    before: dict[str, list[str]] = {}
    for (precedent, link), edge in found.edges([row["id"] for row in listed[:MOST_ROWS]]).items():
        via = f" via {', '.join(edge['via'])}" if edge["via"] and "direct" not in edge["kinds"] else ""
        before.setdefault(link, []).append(f"{precedent} ({edge['kinds'][0]}{via})")
    for row in listed[:MOST_ROWS]:
        figures = (units.rate(row["level_bps"]), str(row["freeze_iteration"]))
        waits = before.get(row["id"], [])
        more = f", and {len(waits) - MOST_WAITS} more" if len(waits) > MOST_WAITS else ""
        rows.add_row(str(row["removed_in"]), row["id"], *figures, ", ".join(waits[:MOST_WAITS]) + more)
    out.print(rows)
    _more(out, len(listed), "bottlenecks")
    chain = found.longest_chain
    shown = chain if len(chain) <= 2 * MOST_WAITS else [*chain[:MOST_WAITS], "...", *chain[-MOST_WAITS:]]
    out.print(
        f"WF^{found.k} takes {found.depth} iterations; a longest chain has {len(chain)} links: {', '.join(shown)}"
    )


def convergence(answer: Mapping[str, Any]) -> None:
    """Prints a table of the flows with the rounds until each rate was exact, and the verdict."""
    out = console()
    rows = table(None, "Flow", "Rate", "Exact", "Right after", "Bottleneck")
    for flow in answer["flows"][:MOST_ROWS]:
        rate, ideal = units.rate(flow["rate"]), units.rate(flow["ideal"])
        if flow["status"]:
            rows.add_row(flow["id"], rate, ideal, "-", flow["status"])
            continue
        rows.add_row(flow["id"], rate, ideal, f"{flow['rounds_from_start']:.1f} rounds", flow["bottleneck"])
    out.print(rows)
    _more(out, len(answer["flows"]), "flows")
    if answer.get("trace"):
        out.print(f"{len(answer['trace'])} updates: --json shows them")
    levels, bound = len(answer["levels"]), answer["bound_rounds"]
    said = f"did not converge; {levels} levels, {answer['updates']} updates at links"
    if answer["converged"]:
        said = (
            f"converged in {answer['rounds_from_start']:.1f} rounds from the first flow's start; "
            f"{levels} levels, {answer['updates']} updates at links"
        )
    out.print(f"{answer['scheme']} {said}")
    bounded = "no bound is known" if bound is None else f"theory allows {bound:g}"
    out.print(
        f"Counted as theory does, from one round after the last start: {answer['rounds']:.1f} rounds; {bounded}. "
        f"A round is {units.seconds(answer['round'])}, the longest round trip."
    )


def outcome(ended: Mapping[str, Any]) -> None:
    """Prints the outcome of a run, and the comparison of its schemes."""
    out = console()
    for trial, error in ended["failed"].items():
        out.print(f"trial {trial} failed: {error}")
    if ended["summary"]:
        from subak.metrics import shown_labels
        from subak.results import read_manifest

        manifest = read_manifest(Path(ended["out"]))
        comparison(ended["summary"], shown_labels(manifest))
        if not ended["summary"]["axes"]:
            # The tables of a folder whose name is not UTF-8 cannot be opened by name.
            with contextlib.suppress(InputError):
                _rates(out, ended["out"], manifest)
    warnings(ended["warnings"])
    out.print(f"{ended['complete']} of {ended['trials']} trials are complete; the results are in {ended['out']}")


MOST_FLOWS = 6
"""Largest number of flows for which rates are listed."""


def _rates(out: Console, folder: str, manifest: Mapping[str, Any]) -> None:
    """Prints mean rates after the warm-up, if there are few endless flows and rates were measured."""
    from subak import Results
    from subak._subak import nanoseconds
    from subak.metrics import shown_labels

    workload = manifest["spec"]["workload"]
    if not isinstance(workload, Mapping) or workload.get("kind") != "steps" or len(workload["flows"]) > MOST_FLOWS:
        return
    results, labels = Results(folder), shown_labels(manifest)
    warmup = manifest["spec"]["run"].get("warmup", 0)
    warmup_ns = nanoseconds(warmup) if isinstance(warmup, str) else 1e9 * warmup
    flows = {
        row["flow"]: f"{row['src']} to {row['dst']}\nweight {row['weight']:g}"
        for row in results.table("flow", ["flow", "src", "dst", "weight", "size_bytes"]).to_pylist()
        if row["size_bytes"] is None and row["weight"] is not None
    }
    if not 2 <= len(flows) <= MOST_FLOWS:
        return
    found: dict[str, dict[int, list[float]]] = {}
    for row in results.table("rate", ["scheme", "flow", "time_ns", "rate_bps"]).to_pylist():
        if row["flow"] in flows and row["time_ns"] > warmup_ns:
            found.setdefault(row["scheme"], {}).setdefault(row["flow"], []).append(row["rate_bps"])
    if not found:
        return
    listed = table("Rates, means after the warm-up", "Scheme", *(flows[flow] for flow in sorted(flows)))
    for scheme, rates in found.items():
        means = [sum(rates[flow]) / len(rates[flow]) if flow in rates else None for flow in sorted(flows)]
        listed.add_row(labels.get(scheme, scheme), *("-" if mean is None else units.rate(mean) for mean in means))
    out.print(listed)


def comparison(summary: Mapping[str, Any], labels: Mapping[str, str]) -> None:
    """Prints schemes and sweep points by metrics, with intervals over the seeds; transposed if it is too wide."""
    from subak.metrics import compared, sweep_point_of

    out = console()
    rows = summary["rows"]
    shown = compared(rows)
    names = [[labels.get(row["scheme"], row["scheme"]), sweep_point_of(row["axes"], summary["axes"])] for row in rows]
    values = [[metric.in_row(row) for metric in shown] for row in rows]
    listed = table(None, "Scheme", *(["Sweep point"] if summary["axes"] else []), *(m.title for m in shown))
    for name, mine in zip(names, values, strict=True):
        listed.add_row(*filter(None, name), *mine)
    for part in [listed] if _width(listed) <= out.width else _transposed(out, shown, names, values):
        out.print(part)
    _classes(out, summary, labels)
    _jobs(out, summary, labels)
    _criteria(out, summary)
    if any(row["metrics"].get(m.bounded, {"mean": 0})["mean"] > 0 for row in rows for m in shown if m.bounded):
        out.print("≥: flows or jobs did not finish; they count with the time that they had taken when the run ended.")
    if any(row["seeds"] > 1 for row in rows):
        out.print("± is half the 95% confidence interval over the seeds.")


def _transposed(
    out: Console, shown: Sequence[Metric], names: Sequence[Sequence[str]], values: Sequence[Sequence[str]]
) -> Iterator[Table]:
    """Tables of metrics by rows of the comparison, as many rows in each as the console is wide."""

    def part(start: int, end: int) -> Table:
        made = table(None, "", *("\n".join(filter(None, name)) for name in names[start:end]))
        for i, metric in enumerate(shown):
            made.add_row(metric.title, *(mine[i] for mine in values[start:end]))
        return made

    start = 0
    while start < len(names):
        end = start + 1
        while end < len(names) and _width(part(start, end + 1)) <= out.width:
            end += 1
        yield part(start, end)
        start = end


def _classes(out: Console, summary: Mapping[str, Any], labels: Mapping[str, str]) -> None:
    """Prints the metrics of each class of flows."""
    from subak.metrics import CLASSES, classes_of, of_class, sweep_point_of

    names = classes_of(summary["rows"])
    if not names:
        return
    listed = table(None, "Class", "Scheme", *(["Sweep point"] if summary["axes"] else []), *(m.title for m in CLASSES))
    for name in names:
        for row in summary["rows"]:
            if mine := of_class(row, name):
                label = labels.get(mine["scheme"], mine["scheme"])
                where = [label, sweep_point_of(row["axes"], summary["axes"])]
                listed.add_row(name, *filter(None, where), *(m.in_row(mine) for m in CLASSES))
    out.print(listed)


def _jobs(out: Console, summary: Mapping[str, Any], labels: Mapping[str, str]) -> None:
    """Prints each job's time, if there are several jobs, and few enough to list."""
    from subak.metrics import JOBS, sweep_point_of

    if not any(len(row["jobs"]) > 1 for row in summary["rows"]):
        return
    listed = table(None, "Job", "Scheme", *(["Sweep point"] if summary["axes"] else []), *(m.title[5:] for m in JOBS))
    for job in dict.fromkeys(job["id"] for row in summary["rows"] for job in row["jobs"]):
        for row in summary["rows"]:
            name = [labels.get(row["scheme"], row["scheme"]), sweep_point_of(row["axes"], summary["axes"])]
            for one in (one for one in row["jobs"] if one["id"] == job):
                listed.add_row(job, *filter(None, name), *(m.in_row(one) for m in JOBS))
    out.print(listed)


def _criteria(out: Console, summary: Mapping[str, Any]) -> None:
    """Prints convergence by each criterion, if there are several; a single one is in the table of all metrics."""
    from subak.metrics import CONVERGED, sweep_point_of

    if not any(len(row["convergence"]) > 1 for row in summary["rows"]):
        return
    rows = table(None, "Scheme", "Criterion", *(m.title for m in CONVERGED))
    for row in summary["rows"]:
        name = " ".join(filter(None, (row["scheme"], sweep_point_of(row["axes"], summary["axes"]))))
        for one in row["convergence"]:
            rows.add_row(name, str(one["criterion"]), *(m.text(one["metrics"].get(m.name)) for m in CONVERGED))
    out.print(rows)


def warnings(found: Sequence[Mapping[str, Any]]) -> None:
    """Prints one line for each warning of a run."""
    from subak.metrics import warning_texts

    out = console()
    told = warning_texts(found)
    for text in told[:MOST_WARNINGS]:
        out.print(f"warning: {text}")
    if len(told) > MOST_WARNINGS:
        out.print(f"... and {len(told) - MOST_WARNINGS} more warnings: manifest.json has them all")


def trials(name: str, listed: Sequence[Mapping[str, Any]]) -> None:
    """Prints one line for each trial, with an estimate of its cost."""
    out = console()
    rows = table(name, "Trial", "Sweep point", "Scheme", "Seed", "Flows", "Packet-hops", "Time on one core")
    from subak.metrics import sweep_point_of

    for trial in listed:
        cost, axes = trial["cost"], trial["axes"]
        sweep_point = sweep_point_of(axes, list(axes))
        figures = (f"{cost['flows']:.0f}", f"{cost['packet_hops']:.2g}", units.seconds(cost["seconds"]))
        rows.add_row(str(trial["trial"]), sweep_point, trial["scheme"]["label"], str(trial["seed"]), *figures)
    out.print(rows)
    total = sum(trial["cost"]["seconds"] for trial in listed)
    out.print(f"{len(listed)} trials, about {units.seconds(total)} on one core")


def paths(name: str, listed: Sequence[Mapping[str, Any]]) -> None:
    """Prints one line for each flow of a trial, with the links of its path."""
    out = console()
    rows = table(name, "Flow", "From", "To", "Starts", "Path", justify="left")
    for flow in listed[:MOST_ROWS]:
        starts = "after others" if flow["start_ns"] is None else units.seconds(flow["start_ns"] / 1e9)
        rows.add_row(flow["id"] or str(flow["flow"]), flow["src"] or "", flow["dst"] or "", starts, flow["path"])
    out.print(rows)
    _more(out, len(listed), "flows", "--json for all of them")


def upgrades(ranked: pa.Table) -> None:
    """Prints one line for each link whose upgrade gains something."""
    out = console()
    by_price = "worth" in ranked.column_names
    if not ranked.num_rows:
        out.print("No link holds a flow back: more capacity brings nothing.")
        return
    if by_price:
        rows = table("What twice the capacity is worth, by the prices", "Link", "Capacity", "Worth")
    else:
        rows = table("What twice the capacity brings", "Link", "Capacity", "All rates", "Least rate", "Flows up, down")
    for row in ranked.slice(0, MOST_ROWS).to_pylist():
        name = (row["id"], units.rate(row["capacity_bps"]))
        if by_price:
            rows.add_row(*name, f"{row['worth']:.4g}")
            continue
        gain, least = _signed(row["gain_bps"]), _signed(row["least_rate_gain_bps"])
        rows.add_row(*name, gain, least, f"{row['flows_up']}, {row['flows_down']}")
    out.print(rows)
    _more(out, ranked.num_rows, "links")


def _signed(bps: float) -> str:
    return f"{'-' if bps < 0 else '+'}{units.rate(abs(bps))}"


def difference(found: Mapping[str, Any]) -> None:
    """Prints one line for each scheme, sweep point and metric that differs."""
    from subak.metrics import sweep_point_of

    out = console()
    if found["identical"]:
        out.print("The results are the same, byte for byte.")
        return
    rows = table(None, "Scheme", "Metric", "First", "Second", "Second/first", "Difference", "p")
    for pair in found["rows"]:
        who = " ".join(filter(None, (pair["scheme"], sweep_point_of(pair["axes"], list(pair["axes"])))))
        for one in pair["metrics"]:
            if one["first"]["mean"] != one["second"]["mean"]:
                ratio = "" if one["ratio"] is None else f"{one['ratio']:.4g}"
                paired, p = one["difference"], one["p_value"]
                apart = "" if paired is None else f"{paired['mean']:.3g}"
                if paired and paired["ci95"] is not None:
                    apart += f" ± {paired['ci95']:.2g}"
                first, second = (f"{one[side]['mean']:.5g}" for side in ("first", "second"))
                rows.add_row(who, one["name"], first, second, ratio, apart, "" if p is None else f"{p:.2g}")
    out.print(rows if rows.row_count else _why_nothing_differs(found))
    for side in ("first", "second"):
        for only in found[f"only_{side}"]:
            out.print(f"only the {side} has {only['scheme']} {sweep_point_of(only['axes'], list(only['axes']))}")
    if rows.row_count:
        out.print(
            "Difference: second minus first over the seeds that both have, with half its 95% confidence interval. "
            "p: the paired t-test, how probable so large a difference is by chance; with many metrics some are small."
        )


def _why_nothing_differs(found: Mapping[str, Any]) -> str:
    if not found["rows"]:
        return "The runs have no scheme and sweep point in common: nothing to hold against each other."
    if not any(pair["metrics"] for pair in found["rows"]):
        return "The runs have schemes in common, but no metric: they measured different things."
    return "Every metric is the same, though the bytes differ."


def schemes(listed: Sequence[Mapping[str, Any]], parts: Sequence[Mapping[str, Any]]) -> None:
    """Prints one line for each scheme, optimizer and transport."""
    out = console()
    rows = table(None, "Scheme", "Kind", "Policies", "Needs", "About", justify="left")
    for one in listed:
        policies = "any (ignored)" if one["goal"] == "its own" else one["policies"]
        rows.add_row(one["name"], one["kind"], policies, needs(one), one["about"])
    out.print(rows)
    out.print("\nAn optimizer over a transport makes another scheme; --pairs lists the policies that each pair serves:")
    rows = table(None, "Part", "Role", "Output or input", "Parameters", "About", justify="left")
    for one in parts:
        rows.add_row(one["name"], one["role"], one["wish"], _names(one), one["about"])
    out.print(rows)
    out.print("subak schemes NAME, or OPTIMIZER/TRANSPORT, shows parameters, units and paper.")


def pairs(parts: Sequence[Mapping[str, Any]], made: Sequence[Mapping[str, Any]]) -> None:
    """Prints the policies that each optimizer supports over each transport, or why a pair is invalid."""
    served = {one["name"]: one for one in made}
    optimizers, transports = ([p for p in parts if p["role"] == role] for role in ("optimizer", "transport"))
    rows = table(None, "Optimizer", *(one["name"] for one in transports), justify="left")
    for one in optimizers:
        rows.add_row(one["name"], *(_served(one, other, served) for other in transports))
    out = console()
    out.print(rows)
    out.print("Policies that each pair serves. A pair whose goal is its own runs under any policy, and serves none.")


def _served(optimizer: Mapping[str, Any], transport: Mapping[str, Any], served: Mapping[str, Mapping[str, Any]]) -> str:
    pair = served.get(f"{optimizer['name']}/{transport['name']}")
    if pair is not None:
        return "own goal" if pair["goal"] == "its own" else str(pair["policies"])
    if (optimizer["wish"], transport["wish"]) == ("weights", "rates"):
        return "no: weights are no rates"
    return "no: rates do not converge"


def scheme(schemes: Sequence[Mapping[str, Any]], parts: Sequence[Mapping[str, Any]]) -> None:
    """Prints the schemes and parts of this name, with paper and parameters."""
    out = console()
    for one in schemes:
        made_of = f" = {' over '.join(one['made_of'])}" if one["made_of"] else ""
        out.print(f"{one['name']}{made_of} ({one['kind']}, converges to {one['goal']}): {one['about']}")
        if one["settles_within"] is not None:
            near = f"{100 * one['settles_within']:.3g}% of that goal after {one['settles_rtts']:.3g} RTTs"
            out.print(f"  is within {near}, while the flows stay the same")
        if one["nic"]:
            out.print(f'  hosts have nic = "{one["nic"]}" under it, whatever the network says')
        out.print(f"  policies: {one['policies']}" + (f"; needs {needs(one)}" if needs(one) else ""))
        _paper_and_params(out, one)
    for one in parts:
        says = "outputs" if one["role"] == "optimizer" else "accepts"
        out.print(f"{one['name']} ({one['role']}, {says} {one['wish']}): {one['about']}")
        _paper_and_params(out, one)


def needs(one: Mapping[str, Any]) -> str:
    """Requirements of a scheme on a spec, as text: a controller, lossless switches, no loss."""
    wants = {"controller": "a controller", "lossless": "lossless switches"}
    told = [words for key, words in wants.items() if one[key]]
    return ", ".join(told if one["recovers"] is not False else [*told, "no loss, no link down"])


def _names(one: Mapping[str, Any]) -> str:
    return ", ".join(param["name"] for param in one["params"])


def _paper_and_params(out: Console, one: Mapping[str, Any]) -> None:
    out.print(f"  from {one['paper']}")
    rows = table(None, "params.", "Default", "Unit", "About", justify="left")
    for param in one["params"]:
        default = param["default"]
        text = str(default).lower() if isinstance(default, bool | str) else f"{default:.6g}"
        rows.add_row(param["name"], text, " or ".join(param.get("choices", [param["unit"]])), param["about"])
    if one["params"]:
        out.print(rows)
    for param in one["params"]:
        for preset in param.get("presets", []):
            out.print(f"  {param['name']} = {preset}")


def checks(made: Sequence[Check]) -> None:
    """Prints one line for each check; a missing requirement comes with a hint."""
    out = console()
    rows = table(None, "", "", "For", "Hint", justify="left")
    for check in made:
        rows.add_row(check.name, check.found or "missing", check.needed_for, "" if check.found else check.hint)
    out.print(rows)


def _width(listed: Table) -> int:
    return Console(width=10_000).measure(listed).maximum


def _more(out: Console, count: int, what: str, how: str = "--json or --output for all of them") -> None:
    if count > MOST_ROWS:
        out.print(f"... and {count - MOST_ROWS} more {what}: {how}")
