"""Checks for every scheme: each byte arrives once under every fault, rates reach the goal, and runs repeat."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from subak._subak import schemes
from subak.errors import InputError
from subak.results import Results


class Check(NamedTuple):
    """Result of a check: name, whether the scheme passed, and the observed values."""

    name: str
    passed: bool
    seen: str


STAR = {"kind": "star", "hosts": 8, "rate": "10Gbps"}
TWO_PATHS = {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4}
TRAFFIC = {"kind": "poisson", "load": 0.5, "sizes": [[2000, 0.0], [20_000, 0.7], [200_000, 1.0]]}
LOSS = {"kind": "loss", "probability": 0.01}

SCENES: dict[str, dict[str, Any]] = {
    "no fault": {},
    "1% of data lost": {"fault": [{**LOSS, "kinds": ["data"]}]},
    "1% of ACKs lost": {"fault": [{**LOSS, "kinds": ["ack"]}]},
    "1% of messages lost": {"fault": [{**LOSS, "kinds": ["ctl"]}]},
    "1% of packets twice": {"fault": [{**LOSS, "kind": "duplicate"}]},
    "1% of packets late": {"fault": [{**LOSS, "kind": "delay", "by": "30us"}]},
    "incast of 100": {
        "network": {**STAR, "hosts": 101},
        "workload": {"kind": "incast", "senders": 100, "size": "20kB"},
    },
    "a link down and up": {"fault": [{"kind": "down", "link": "h1->*", "down": "300us", "up": "700us"}]},
    "a reroute with packets under way": {
        "network": TWO_PATHS,
        "routing": {"reroute": "50us"},
        "fault": [{"kind": "down", "link": "leaf0->spine0", "down": "300us", "up": "900us"}],
    },
    "a restart of a switch": {"fault": [{"kind": "restart", "node": "switch0", "at": "500us"}]},
    "a stopped flow": {
        "workload": {
            "kind": "steps",
            "flows": [
                {"src": "h0", "dst": "h2", "stop": "500us"},
                {"src": "h1", "dst": "h2", "size": "300kB", "start": "100us"},
            ],
        }
    },
}
"""Checks by name, each with its changes to the spec."""
NAME_WIDTH = max(map(len, SCENES))
"""Largest length of a check's name."""
SUITING: dict[str, dict[str, Any]] = {
    "policy.kind": {"policy": {"kind": "alpha-fair", "alpha": 1}},
    "controller": {"controller": {"at": "h0"}},
}
"""Changes to the specs of a scheme that refuses them, by the place that it names."""
LEAST_WITHIN = 0.05
"""Smallest tolerance of received rates, which oscillate by their packets."""
BASE_RTT_S, SLACK_S = 12e-6, 1e-3
SHARING = [
    {"src": "h0", "dst": "h2"},
    {"src": "h1", "dst": "h2"},
    {"src": "h1", "dst": "h3"},
    {"src": "h4", "dst": "h3"},
    {"src": "h5", "dst": "h6"},
]
"""Flows that share links, some of them two links."""


def check(target: str) -> Iterator[Check]:
    """Runs each check of a scheme: ``FILE.py:CLASS``, a shared object, or the name of a built-in scheme.

    A hook that was stopped by ``hook_time`` ends the checks: each of the others would wait for it again.
    """
    table = _table(target)
    settles = _stated(target)
    with tempfile.TemporaryDirectory() as folder:
        suited = _suited(table, Path(folder))
        for number, (name, changes) in enumerate(SCENES.items()):
            found = _delivers(name, _spec(table, {**suited, **changes}), Path(folder) / str(number))
            yield found
            if not found.passed and "(hook_time)" in found.seen:
                return
        if settles:
            yield _reaches(table, suited, settles, Path(folder) / "goal")
        yield _repeats(_spec(table, {**suited, **SCENES["1% of data lost"]}), Path(folder))


def _stated(target: str) -> tuple[float, float] | None:
    """The tolerance to its goal, and the RTTs until then, that the scheme states; ``None`` if it states none."""
    if ".py:" in target:
        from subak.outside.loading import define, read

        stated = define(read(target))
        return stated["settles"] if stated["goal"] != "own" else None
    found = next((one for one in schemes() if one["name"] == target), None)
    if found is None or found["settles_within"] is None:
        return None
    return found["settles_within"], found["settles_rtts"]


def _suited(table: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Changes to the specs that the scheme needs: a policy that it serves, and a place for its controller."""
    from subak.runs import carry_out, load

    changes: dict[str, Any] = {}
    for number in range(len(SUITING) + 1):
        try:
            carry_out(load(_spec(table, changes)), folder / f"suited{number}", 1, 1, None, None)
        except InputError as error:
            if error.place not in SUITING or SUITING[error.place].items() <= changes.items():
                raise
            changes |= SUITING[error.place]
        else:
            break
    return changes


def _reaches(table: dict[str, Any], suited: dict[str, Any], settles: tuple[float, float], folder: Path) -> Check:
    """Compares the rates of flows that share links, before and after one more comes, with the scheme's own goal."""
    from subak.runs import carry_out, load

    name = "its goal"
    tolerance, rtts = settles
    phase_s = rtts * BASE_RTT_S + SLACK_S
    within = max(tolerance, LEAST_WITHIN)
    criterion = {"within": within, "share": 1.0, "lasting": False, "against": "scheme", "acks": True}
    changes = {
        "network": {**STAR, "link_delay": "2us"},
        "workload": {"kind": "steps", "flows": [*SHARING, {"src": "h7", "dst": "h2", "start": f"{phase_s:.9f}s"}]},
        "measure": {"fct": False, "convergence": criterion},
        "run": {"duration": f"{2 * phase_s:.9f}s"},
    }
    outcome = carry_out(load(_spec(table, {**suited, **changes})), folder, 1, 1, None, None)
    if outcome["failed"]:
        return Check(name, False, next(iter(outcome["failed"].values())))
    rows = Results(folder).table("convergence", ["converged", "end_error"]).to_pylist()
    if all(row["converged"] for row in rows):
        return Check(name, True, f"within {100 * within:g}% after {rtts:g} RTTs, twice")
    off = 100 * max(row["end_error"] for row in rows if not row["converged"])
    return Check(name, False, f"rates are {off:.3g}% off after {rtts:g} RTTs, more than {100 * within:g}%")


def _table(target: str) -> dict[str, Any]:
    if ".py:" in target:
        return {"python": target, "name": "checked"}
    if target.endswith(".py"):
        raise InputError(None, "SCHEME", f'"{target}" names no class', f"write {target}:CLASS")
    if target.endswith(".c"):
        library = f"{target.removesuffix('.c')}.so"
        hint = f"compile it: cc -O2 -shared -fPIC -o {library} {target}; then check {library}"
        raise InputError(None, "SCHEME", f'"{target}" is source code', hint)
    if target.endswith(".so"):
        return {"library": target, "name": "checked"}
    return {"name": target}


def _spec(table: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    run = {"duration": "1ms", "drain": "1s"}
    return {"network": STAR, "workload": TRAFFIC, "run": run, "scheme": [table], **changes}


def _delivers(name: str, spec: dict[str, Any], folder: Path) -> Check:
    from subak.runs import carry_out, load

    outcome = carry_out(load(spec), folder, 1, 1, None, None)
    if outcome["failed"]:
        return Check(name, False, next(iter(outcome["failed"].values())))
    flows = Results(folder).table("flow", ["size_bytes", "received_bytes", "fct_ns", "stop_ns"]).to_pylist()
    sized = [flow for flow in flows if flow["stop_ns"] is None]
    lacking = sum(flow["fct_ns"] is None for flow in sized)
    if lacking:
        nothing = not any(flow["received_bytes"] for flow in flows)
        hint = "; no byte arrived: on_start has to set a rate or a window above 0" if nothing else ""
        return Check(name, False, f"{lacking} of {len(sized)} flows are not complete after 1 s{hint}")
    wrong = sum(flow["received_bytes"] != flow["size_bytes"] for flow in sized)
    count = f"{len(sized)} flow{'s' if len(sized) != 1 else ''}"
    return Check(name, not wrong, f"{wrong} flows have other bytes" if wrong else f"every byte of {count}")


def _repeats(spec: dict[str, Any], folder: Path) -> Check:
    """Compares two runs of the spec with different hash seeds, which change the order of Python's sets."""
    name = "the same bytes twice"
    results = []
    for seed in ("1", "2"):
        out = folder / f"hash-{seed}"
        program = f"import subak, sys; subak.run({spec!r}, {str(out)!r}, jobs=1, progress=False)"
        env = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
        table = out / "results.parquet"
        if not table.exists():
            said = done.stderr.strip().splitlines()
            return Check(name, False, said[-1] if said else "a trial failed")
        results.append(table.read_bytes())
    same = results[0] == results[1]
    return Check(name, same, "two hash seeds" if same else "they differ under two hash seeds: sort what comes of a set")


HEADER = "subak_scheme.h"


def write_template(file: Path, like: str) -> list[Path]:
    """Writes the template ``like`` to ``file``, for a user's own scheme. Returns the written files.

    A file whose name ends in ``.c`` is written in C, with its header beside it; all others in Python.
    """
    folder = Path(__file__).parent / "outside/templates"
    ending = ".c" if file.suffix == ".c" else ".py"
    known = sorted(one.stem for one in folder.glob(f"*{ending}"))
    if like not in known:
        raise InputError(None, "--like", f'there is no template "{like}"', f"choose one of: {', '.join(known)}")
    copies = {file: folder / f"{like}{ending}"} | ({file.with_name(HEADER): folder / HEADER} if ending == ".c" else {})
    for path, template in copies.items():
        if path.exists() and (path == file or path.read_bytes() != template.read_bytes()):
            raise InputError(str(path), "", "the file exists", "name another one")
    for path, template in copies.items():
        try:
            path.write_bytes(template.read_bytes())
        except OSError as error:
            raise InputError(str(path), "", f"cannot be written: {error.strerror}", "name another file") from None
    return list(copies)
