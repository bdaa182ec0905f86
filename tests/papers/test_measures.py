"""Hashes of an experiment: they depend on each file that affects its values, and on the extension that runs it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import ROOT
from rows import ROW, copy_of
from subak import InputError
from subak.repro import Experiment, catalogue, measures, records, reproduce


def changed_by(path: Path, row: Experiment, monkeypatch: pytest.MonkeyPatch, folder: Path) -> bool:
    """Whether the experiment's hashes change if the file gets one more line."""
    package, crates = folder / "python/subak", folder / "crates"
    name = path.relative_to(ROOT)
    if not package.exists():
        skip = shutil.ignore_patterns(
            "__pycache__", "*.so", "record.json", "target", "tests", "benches", "node_modules"
        )
        shutil.copytree(ROOT / "python/subak", package, ignore=skip)
        shutil.copytree(ROOT / "crates", crates, ignore=skip)
        shutil.copy(ROOT / "Cargo.lock", folder)
    monkeypatch.setattr(measures, "PACKAGE", package)
    monkeypatch.setattr(measures, "CRATES", crates)
    moved = replace(row, folder=package / row.folder.relative_to(ROOT / "python/subak"))

    def hashes() -> dict[str, str]:
        for kept in (measures._package, measures._crate, measures._below, measures._locked, measures._all_imports):
            kept.cache_clear()
        return measures.of(moved)

    before, copied = hashes(), folder / name
    held = copied.read_bytes() if copied.exists() else None
    copied.parent.mkdir(exist_ok=True)
    copied.write_bytes((held or b"") + (b"\n# one more\n" if path.suffix in (".py", ".toml") else b"\n// one more\n"))
    after = hashes()
    copied.write_bytes(held) if held is not None else copied.unlink()
    return before != after


@pytest.fixture
def row(tmp_path: Path) -> Experiment:
    return copy_of(catalogue()[ROW], tmp_path / "papers")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkout")


DECIDE = [
    ("fit-table6.4", "python/subak/papers/perc/fit_table6_4/__init__.py"),
    ("fit-table6.4", "python/subak/papers/perc/fitting.py"),
    ("fit-table6.4", "python/subak/pipeline/greedy.py"),
    ("fit-table6.4", "python/subak/pipeline/programs/l2l3-complex.json"),
    ("soze-policy", "python/subak/policy/__init__.py"),
    ("perc-fig2.12", "python/subak/papers/perc/fig2_12/spec.toml"),
    ("perc-fig2.12", "crates/packet/src/lib.rs"),
    ("perc-fig2.12", "python/subak/repro/settle.py"),
    ("perc-rounds", "crates/rounds/src/lib.rs"),
    ("perc-rounds", "crates/solve/src/lib.rs"),
    ("soze-fig6", "python/subak/repro/jobs.py"),
    ("soze-fig11", "crates/lab/src/spec/workload/jobs/tpch.toml"),
    ("flowtune-fig7", "crates/agent/src/lib.rs"),
]
FORGOTTEN = [
    ("hpcc-fct", "python/subak/sizes.py", "the bins of its sizes"),
    ("perc-fig2.12", "python/subak/results.py", "reads what was simulated"),
    ("perc-fig2.12", "python/subak/runs.py", "makes the trials of a spec"),
    ("perc-fig2.12", "python/subak/repro/kinds.py", "puts seeds and changes into a spec"),
    ("perc-fig2.12", "python/subak/repro/reproduce.py", "plans the variants"),
    ("perc-rounds", "crates/lab/src/results/stats.rs", "Student's quantile, by which every interval is made"),
    ("perc-rounds", "crates/py/src/quantities.rs", "how Python calls Student's quantile"),
    ("perc-fig2.12", "crates/packet/Cargo.toml", "the features of what the simulator is built from"),
    ("perc-rounds", "python/subak/rounds.py", "runs its messages, by a name of the API"),
    ("soze-settles", "python/subak/simulation.py", "steps its simulations"),
    ("flowtune-gamma", "python/subak/papers/flowtune/web.py", "what the paper's experiments share"),
    ("flowtune-gamma", "python/subak/ned.py", "iterates"),
    ("fit-table6.4", "python/subak/papers/perc/fit_table6_4/parts/more.py", "a module in a folder of the row's own"),
]


@pytest.mark.parametrize(("name", "file"), DECIDE)
def test_a_file_that_decides_what_a_row_measures_is_hashed(
    name: str, file: str, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert changed_by(ROOT / file, catalogue()[name], monkeypatch, checkout)


@pytest.mark.parametrize(("name", "file", "what"), FORGOTTEN)
def test_a_file_that_is_forgotten_is_hashed(
    name: str, file: str, what: str, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert changed_by(ROOT / file, catalogue()[name], monkeypatch, checkout), what


def test_a_run_of_an_extension_that_is_older_than_its_source_is_refused(
    row: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crates = tmp_path / "checkout/crates"
    shutil.copytree(ROOT / "crates", crates, ignore=shutil.ignore_patterns("tests", "target"))
    shutil.copy(ROOT / "Cargo.lock", crates.parent)
    source = crates / "rounds/src/lib.rs"
    source.write_text(source.read_text() + "\n// not compiled\n")
    monkeypatch.setattr(measures, "CRATES", crates)
    for kept in (measures._crate, measures._below, measures._locked):
        kept.cache_clear()
    try:
        reproduce(ROW, scale="paper", runs=1, out=tmp_path / "out", jobs=1)
        with pytest.raises(InputError):
            records.keep(row, tmp_path / "out")
    finally:
        for kept in (measures._crate, measures._below, measures._locked):
            kept.cache_clear()


def test_a_run_during_which_the_code_changed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = copy_of(catalogue()["soze-policy"], tmp_path / "papers")
    monkeypatch.setitem(catalogue(), "soze-policy", own)
    code = own.folder / "__init__.py"
    text = code.read_text()

    def edit(done: int, trials: int, share: float) -> None:
        code.write_text(text + "\n# one more\n")

    reproduce("soze-policy", scale="paper", runs=3, out=tmp_path / "out", progress=edit)
    assert code.read_text() != text
    with pytest.raises(InputError):
        records.keep(own, tmp_path / "out")


@pytest.mark.parametrize("name", ["perc-drops", "soze-policy", "perc-fig2.3", "perc-fig2.12"])
def test_a_rerun_after_the_code_changed_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For every kind of experiment: its own code, a spec, and the crate that computes it."""
    own = copy_of(catalogue()[name], tmp_path / "papers")
    monkeypatch.setitem(catalogue(), name, own)
    reproduce(name, runs=1, out=tmp_path / "out", jobs=1)
    changed = [*own.folder.glob("*.py"), *own.folder.glob("spec*.toml"), *own.folder.parent.glob("*.py")]
    for path in changed:
        text = path.read_text()
        path.write_text(text + "\n# one more\n")
        measures._all_imports.cache_clear()
        with pytest.raises(InputError, match="holds results of another"):
            reproduce(name, runs=1, out=tmp_path / "out", jobs=1)
        path.write_text(text)
    if own.kind != "python":
        monkeypatch.setattr(measures, "_crate", lambda crate: "another")
        with pytest.raises(InputError, match="holds results of another"):
            reproduce(name, runs=1, out=tmp_path / "out", jobs=1)


def test_an_installed_package_does_not_say_that_crates_which_it_cannot_see_are_todays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(measures, "CRATES", tmp_path / "none")
    for kept in (measures._crate, measures._below, measures._locked):
        kept.cache_clear()
    try:
        row = catalogue()["perc-fig2.12"]
        held = {"runs": 1, "checks": [], "measures": {**measures.of(row), "crates/packet": "long ago"}}
        assert records.Record(held, row).age != "of today's code"
        measured = {**measures.of(row), "crates/packet": "long ago"}
        monkeypatch.setattr(records, "of", lambda row: records.Record({**held, "measures": measured}, row))
        assert "1 of code that is not here to compare" in records.ages([row])
    finally:
        for kept in (measures._crate, measures._below, measures._locked):
            kept.cache_clear()
