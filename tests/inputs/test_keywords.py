"""Keywords of Python functions: a flag that is neither true nor false, or an unknown keyword, is refused by name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import subak

SPEC: dict[str, Any] = {
    "name": "small",
    "network": {"kind": "star", "hosts": 3},
    "workload": {"kind": "incast", "senders": 2, "size": "10KB"},
    "scheme": [{"name": "ideal"}],
    "run": {"duration": "1ms"},
}
CASE: dict[str, Any] = {
    "network": {"links": [{"id": "l", "capacity": "1Gbps"}]},
    "flows": [{"path": ["l"]}],
}
NETWORK = subak.Network.from_links([{"id": "l", "capacity": "1Gbps"}])


@pytest.mark.parametrize("given", ["no", "False", "", 0, 1, None, [], np.int64(1)])
def test_a_flag_is_true_or_false(tmp_path: Path, given: Any) -> None:
    out = tmp_path / "out"
    results = subak.run(SPEC, out)
    held = (out / "results.parquet").read_bytes()
    calls: dict[str, Callable[[], object]] = {
        "overwrite": lambda: subak.run({**SPEC, "name": "other"}, out, overwrite=given),
        "measured": lambda: results.table("flow", measured=given),
        "partial": lambda: results.table("flow", partial=given),
        "symmetric": lambda: subak.Incremental(CASE).add([], symmetric=given),
        "trace": lambda: subak.converge(CASE, "s-perc", trace=given),
    }
    if given is not None:
        calls["progress"] = lambda: subak.run(SPEC, out, progress=given)
    for name, call in calls.items():
        with pytest.raises(subak.InputError, match=f"^{name}: .* is neither True nor False; "):
            call()
    assert (out / "results.parquet").read_bytes() == held


def test_flags_of_numpy_are_flags(tmp_path: Path) -> None:
    subak.run(SPEC, tmp_path / "out")
    other = subak.run({**SPEC, "name": "other"}, tmp_path / "out", overwrite=np.bool_(True))  # type: ignore[arg-type]
    assert other.manifest["name"] == "other"


@pytest.mark.parametrize(
    ("call", "name", "near"),
    [
        (lambda **more: subak.run(SPEC, "out", **more), "overwite", "overwrite"),
        (lambda **more: subak.run(SPEC, "out", **more), "Jobs", "jobs"),
        (lambda **more: subak.solve(CASE, **more), "polcy", "policy"),
        (lambda **more: subak.converge(CASE, "s-perc", **more), "sede", "seed"),
        (lambda **more: subak.structure(CASE, **more), "flow", "flows"),
        (lambda **more: subak.report("out", **more), "outptu", "output"),
        (lambda **more: subak.diff("out", **more), "secnd", "second"),
    ],
)
def test_an_unknown_keyword_is_named_with_the_nearest(call: Callable[..., object], name: str, near: str) -> None:
    with pytest.raises(TypeError, match=f'unknown keyword "{name}"; did you mean "{near}"'):
        call(**{name: 1})


def ran(folder: Path) -> subak.Results:
    return subak.run(SPEC, folder / "out")


@pytest.mark.parametrize(
    ("call", "called", "name", "near"),
    [
        (lambda _, **more: subak.Network.from_file("n.json", **more), "Network.from_file", "Capacity", "capacity"),
        (lambda _, **more: subak.Network.from_networkx(None, **more), "Network.from_networkx", "host", "hosts"),
        (lambda _, **more: NETWORK.add_link("l", 1e9, **more), "Network.add_link", "dellay", "delay"),
        (lambda _, **more: NETWORK.add_link("l", 1e9, **more), "Network.add_link", "from", "from_"),
        (lambda _, **more: subak.Incremental(CASE, **more), "Incremental", "polciy", "policy"),
        (lambda _, **more: subak.Incremental(CASE).add([], **more), "Incremental.add", "symetric", "symmetric"),
        (lambda _, **more: subak.Incremental(CASE).repair(**more), "Incremental.repair", "tolerence", "tolerance"),
        (lambda _, **more: subak.Ned(NETWORK, **more), "Ned", "normaliser", "normalizer"),
        (lambda _, **more: subak.Ned(NETWORK).add([["l"]], **more), "Ned.add", "weights", "weight"),
        (lambda out, **more: ran(out).table(**more), "Results.table", "column", "columns"),
        (lambda out, **more: ran(out).plot(**more), "Results.plot", "metrics", "metric"),
        (lambda out, **more: ran(out).to_pandas(**more), "Results.to_pandas", "Kind", "kind"),
    ],
)
def test_an_unknown_keyword_of_a_method_is_named(
    tmp_path: Path, call: Callable[..., object], called: str, name: str, near: str
) -> None:
    with pytest.raises(TypeError, match=f'^{called}: unknown keyword "{name}"; did you mean "{near}"'):
        call(tmp_path, **{name: 1})


def test_warnings_name_the_line_of_the_caller(tmp_path: Path) -> None:
    file = tmp_path / "n.json"
    edge = {"source": "a", "target": "b", "capacity": 1e9, "colour": "red"}
    file.write_text(json.dumps({"nodes": [{"id": "a"}, {"id": "b"}], "links": [edge]}))
    with pytest.warns(subak.InputWarning) as given:
        subak.Network.from_file(file, hosts="all")
    assert {w.filename for w in given} == {__file__}
