"""Names that changed before 0.1.0: old names are accepted, and a warning has the new name."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import subak
from conftest import ROOT, Subak
from subak import InputError
from subak.errors import InputWarning

KEPT = ROOT / "tests/data/kept"
SPEC: dict[str, Any] = {
    "network": {"kind": "star", "hosts": 3, "rate": "1Gbps", "nic": "turns"},
    "workload": {"kind": "incast", "senders": 2, "size": "30KB"},
    "routing": {"kind": "spray", "ways": 2},
    "scheme": [
        {"name": "dctcp", "driver": "packet", "label": "dctcp"},
        {"optimizer": "xwi", "fabric": "swift", "params": {"slowdown": 2}},
    ],
    "policy": {"kind": "alpha-fair", "alpha": 1},
    "run": {"duration": "1ms"},
}
NEW: dict[str, Any] = {
    **SPEC,
    "network": {**SPEC["network"], "nic": "round-robin"},
    "routing": {"kind": "spray", "max_paths": 2},
    "scheme": [
        {"name": "dctcp", "backend": "packet", "label": "dctcp"},
        {"optimizer": "xwi", "transport": "swift", "params": {"time_scale": 2}},
    ],
}
NAMES = ("transport", "backend", "time_scale", "max_paths", "round-robin")


def test_a_spec_of_old_names_runs_as_one_of_new_names(tmp_path: Path) -> None:
    old, new = subak.run(copy.deepcopy(SPEC), tmp_path / "old"), subak.run(NEW, tmp_path / "new")
    assert old.table().equals(new.table())
    notes = [one["text"] for one in old.warnings if one["kind"] == "renamed"]
    assert len(notes) == len(NAMES)
    assert all(any(f'"{name}"' in note for note in notes) for name in NAMES)
    assert not any(one["kind"] == "renamed" for one in new.warnings)


def test_both_names_of_a_key_are_refused(tmp_path: Path) -> None:
    spec = {**NEW, "routing": {"kind": "spray", "max_paths": 2, "ways": 3}}
    with pytest.raises(InputError, match=r'routing\.ways: "ways" is the old name of "max_paths"'):
        subak.run(spec, tmp_path)


def test_old_options_of_commands(subak: Subak, tmp_path: Path) -> None:
    spec, out = KEPT / "spec.toml", tmp_path / "out"
    ended = subak("run", spec, "--driver", "fluid", "--cell=1", "--out", out, "--json")
    assert "--driver is now called --backend" in ended.err
    assert "--cell is now called --trial" in ended.err
    assert "--print-trials" in subak("run", spec, "--print-cells").err


def test_old_keywords_of_python(tmp_path: Path) -> None:
    with pytest.warns(InputWarning, match="cell is now called trial"):
        results = subak.run(NEW, tmp_path, cell=0)  # type: ignore[call-arg]
    with pytest.raises(InputError, match="both are given"):
        subak.run(NEW, tmp_path, trial=0, cell=0)  # type: ignore[call-arg]
    with pytest.warns(InputWarning, match="column cell is now called trial"):
        table = results.table("flow", ["cell", "flow"], partial=True)
    assert table.column_names == ["cell", "flow"]
    assert set(table["cell"].to_pylist()) == {0}


def test_the_old_attribute_of_an_error() -> None:
    error = InputError(None, "x", "it is wrong", "correct it")
    with pytest.warns(InputWarning, match="mend is now called hint"):
        assert error.mend == error.hint


def test_words_behind_two_dashes_are_not_ours(subak: Subak) -> None:
    ended = subak("testbed", "exec", "h0", "--name", "none", "--", "true", "--cell")
    assert "is now called" not in ended.err
