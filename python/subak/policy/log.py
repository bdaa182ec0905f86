"""Writes the weights of a run as logs, and the budgets of its jobs as policies."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from subak.errors import InputError
from subak.policy import COLUMNS
from subak.results import Results

FIRST_PORT, COUNT = 49152, 16384
"""Port range as in captures of the same run: a flow's source port is derived from its number."""


def write(results: Results, folder: Path) -> list[Path]:
    """Writes ``log-TRIAL.csv`` for each trial and ``policy-TRIAL.toml`` for its jobs; returns the files.

    A job is an application, whose sources are its flows. A job without a budget has its number of flows as budget.
    """
    sets = results.table("weight", ["trial", "time_ns", "flow", "flow_id", "src", "dst", "weight"]).to_pylist()
    jobs = results.table("job", ["trial", "flow_id", "weight", "flows"]).to_pylist()
    if not jobs:
        hint = 'run a spec with the workload "jobs"'
        raise InputError(str(results.folder), "", "the run has no jobs whose weights could be logged", hint)
    if any(row["flow"] >= COUNT for row in sets):
        hint = f"log a run of at most {COUNT} flows"
        raise InputError(str(results.folder), "", "its flows are more than there are ports", hint)
    addresses = _addresses(results.manifest)
    files = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for trial in sorted({row["trial"] for row in jobs}):
            mine = [row for row in sets if row["trial"] == trial]
            files += [folder / f"log-{trial}.csv", folder / f"policy-{trial}.toml"]
            _write_log(files[-2], mine, addresses)
            text = _policy([row for row in jobs if row["trial"] == trial], mine, addresses)
            files[-1].write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(str(folder), "", f"it cannot be written: {error.strerror}", "name another folder") from None
    return files


def _addresses(manifest: dict[str, Any]) -> dict[str, str]:
    """Addresses of nodes as in captures; nodes of large networks have no address and keep their names."""
    found = {}
    for network in manifest.get("networks", []):
        for number, node in enumerate((network.get("graph") or {}).get("nodes", [])):
            at = number + 1
            found[node["id"]] = f"10.{at >> 16 & 255}.{at >> 8 & 255}.{at & 255}"
    return found


def _write_log(path: Path, sets: list[dict[str, Any]], addresses: dict[str, str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for row in sets:
            ends = [addresses.get(row[key], row[key]) for key in ("src", "dst")]
            ports = [FIRST_PORT + row["flow"], FIRST_PORT]
            rows.writerow([row["time_ns"], *ends, *ports, "tcp", repr(row["weight"])])


def _policy(jobs: list[dict[str, Any]], sets: list[dict[str, Any]], addresses: dict[str, str]) -> str:
    text = ["# An application for each job of the run.", "grace_ns = 0"]
    for job in jobs:
        mine = {(row["src"], row["flow"]) for row in sets if row["flow_id"].rpartition("/")[0] == job["flow_id"]}
        sources = [f'"{addresses.get(src, src)}:{FIRST_PORT + flow}"' for src, flow in sorted(mine, key=str)]
        budget = job["flows"] if job["weight"] is None else job["weight"]
        name = job["flow_id"].replace("\\", "\\\\").replace('"', '\\"')
        text += ["", "[[application]]", f'name = "{name}"', f"budget = {budget}", f"sources = [{', '.join(sources)}]"]
    return "\n".join(text) + "\n"
