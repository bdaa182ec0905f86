"""Hashes of the parts on which an experiment's values depend: its code, the code that runs it, and the crates.

A record is up to date if every part still has the recorded hash. The parts follow from imports and from the crates'
manifests. Code that only judges, writes or shows values is not included.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import json
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from subak import _HOMES, _subak
from subak.repro import kinds
from subak.repro.experiment import Experiment

PACKAGE = Path(__file__).parents[1]
CRATES = Path(__file__).parents[3] / "crates"
"""Folder of the crates; missing in an installed package."""
STATISTICS = ("stats.py", "settle.py", "jobs.py", "values.py")
"""Modules of this package that compute values from results."""
IN_RUST = "lab/src/results/stats.rs"
"""Rust source of the quantile of Student's t-distribution, for confidence intervals."""
RUN = ("kinds.py", "results.py", "reproduce.py")
"""Modules of this package that plan and run an experiment."""
JUDGE = ("catalogue", "experiment", "figures", "measures", "reading", "records", "rules", "samples", "verdicts")
"""Modules of this package that read, judge, store or draw."""
SHOWING = {"matplotlib", "rich", "typer", "tqdm"}
"""Third-party packages that do not affect values."""
FRAMEWORK = ("commands", "page", "papers", "reporting", "repro", "testbed")
"""Packages that run and show experiments but do not affect values; experiments on hosts list the testbed themselves."""
SHOW = ("cluster", "errors", "notebook", "plots", "progress", "schemas")
"""Modules of subak that show, send or describe values, but do not affect them."""
NOT_MEASURED = ("experiment.toml", "published.toml", "page.md", "record.json", "samples.parquet")
"""Files of an experiment that are hashed key by key, or that do not affect values."""
OWN, SHARED, OF_STATISTICS = "the experiment", "what the paper's experiments share", "the statistics"
PACKAGES, LOCKED = "Python packages", "locked crates"
RUNNING, RUST_STATISTICS, BINDINGS = "what runs experiments", "the statistics in Rust", "crates/py"
EXTENSION = "the extension"
"""Name of a part that exists only while the compiled extension is older than the sources beside it."""
JUDGED_WITH = (OF_STATISTICS, RUST_STATISTICS)
"""Parts that compute values from samples. If they change, values are recomputed from the samples, without new runs."""


def of(experiment: Experiment) -> dict[str, str]:
    """Hashes of the parts on which an experiment's values depend; its rules and texts are not among them."""
    files = [p for p in sorted(experiment.folder.rglob("*")) if p.is_file() and "__pycache__" not in p.parts]
    own = [p for p in files if p.name not in NOT_MEASURED]
    size = experiment.sizes["paper"]
    told: list[Any] = [experiment.kind, size.runs_of, size.spec, size.settings, experiment.packages, experiment.crates]
    told += [[v.name, v.spec, v.settings, v.schemes, v.specs] for v in experiment.variants_at("paper")]
    told += [rows] if (rows := _rows(experiment)) else []
    told += [path.read_text() for path in experiment.specs.values()] if experiment.specs_of else []
    shared = sorted(experiment.folder.parent.glob("*.py"))
    repro = PACKAGE / "repro"
    parts = {
        OWN: _hash(own, experiment.folder, json.dumps(told, sort_keys=True, default=str).encode()),
        SHARED: _hash(shared, experiment.folder.parent),
        OF_STATISTICS: _hash([repro / name for name in STATISTICS], repro),
        RUNNING: _hash(_running(experiment), PACKAGE),
    }
    return parts | sources(experiment) | ({EXTENSION: "older than its sources"} if _is_older(CRATES) else {})


@cache
def _is_older(crates: Path) -> bool:
    """Whether the extension was built from other sources than those in ``crates``."""
    return built_from() not in ("", _subak.__built_from__)


def _rows(experiment: Experiment) -> Any:
    """A published table that the experiment's code reads: ``[rows]`` of ``published.toml``."""
    with (experiment.folder / "published.toml").open("rb") as file:
        return tomllib.load(file).get("rows", {})


def _running(experiment: Experiment) -> list[Path]:
    """The modules that plan and run the experiment and read its results, with modules that these import.

    No packages.
    """
    repro = PACKAGE / "repro"
    ahead, seen = [*_modules(experiment), *(repro / name for name in (*RUN, *STATISTICS))], set()
    while ahead:
        path = ahead.pop()
        if path not in seen:
            seen.add(path)
            ahead += [found for name in _imports(path) for found in _module_of(name)]
    return sorted(p for p in seen if p.parent == PACKAGE or (p.parent == repro and p.name not in STATISTICS))


def _module_of(name: str) -> list[Path]:
    """File of a module of ``subak`` or ``subak.repro`` that computes values; empty for other modules."""
    match name.split(".")[1:]:
        case [module] if module not in SHOW:
            path = PACKAGE / f"{module}.py"
        case ["repro", module, *_] if module not in JUDGE:
            path = PACKAGE / "repro" / f"{module}.py"
        case _:
            return []
    return [path] if path.is_file() else []


def sources(experiment: Experiment) -> dict[str, str]:
    """Hashes of subak's packages, versions of third-party ones, and in a checkout hashes of crates."""
    names = sorted({*experiment.packages, *_imported(experiment)})
    packages = {f"subak/{name}": _package(name) for name in names}
    named = (*kinds.KINDS[experiment.kind].crates, *experiment.crates)
    below = sorted({below for name in named for below in _below(name)})
    crates = {f"crates/{name}": _crate(name) for name in below} | {BINDINGS: _crate("py")}
    crates[RUST_STATISTICS] = _hash([CRATES / IN_RUST], CRATES) if (CRATES / IN_RUST).is_file() else ""
    told = {PACKAGES: _versions(experiment, names), LOCKED: _locked(frozenset(below))}
    return packages | {name: one for name, one in (crates | told).items() if one}


def _versions(experiment: Experiment, packages: list[str]) -> str:
    """Versions of third-party packages that the experiment and the statistics import: ``numpy 2.1, ...``."""
    paths = [*_modules(experiment), *(PACKAGE / "repro" / name for name in STATISTICS)]
    paths += [path for name in packages for path in sorted((PACKAGE / name).glob("**/*.py"))]
    found = {name.split(".")[0] for path in paths for name in _all_imports(path)}
    others = sorted(found - {"subak"} - set(sys.stdlib_module_names) - SHOWING)
    return ", ".join(f"{name} {_version(name)}" for name in others if _version(name))


@cache
def _version(module: str) -> str:
    names = _distributions().get(module, [])
    return importlib.metadata.version(names[0]) if names else ""


@cache
def _distributions() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()


@cache
def _locked(crates: frozenset[str]) -> str:
    """Hash of the entries of these crates and their dependencies in ``Cargo.lock``, and of the build settings."""
    path = CRATES.parent / "Cargo.lock"
    if not crates or not path.is_file():
        return ""
    with path.open("rb") as file:
        held: dict[str, list[dict[str, Any]]] = {}
        for one in tomllib.load(file)["package"]:
            held.setdefault(one["name"], []).append(one)
    ahead, seen = [f"subak-{name}" for name in crates], set()
    while ahead:
        # A dependency is "name", or "name version" if there are several versions.
        name, *version = ahead.pop().split(" ")
        for one in held.get(name, []):
            key = (name, one["version"], one.get("checksum", ""))
            if key not in seen and version[:1] in ([], [one["version"]]):
                seen.add(key)
                ahead += one.get("dependencies", [])
    how = [p for p in (path.with_name("Cargo.toml"), path.with_name("rust-toolchain.toml")) if p.is_file()]
    return _hash(how, path.parent, json.dumps(sorted(key for key in seen if key[2])).encode())


def _imported(experiment: Experiment) -> set[str]:
    """Packages of subak that the experiment's code imports, directly or through modules that papers share."""
    parts = [name.split(".")[1:] for path in _modules(experiment) for name in _imports(path)]
    return {one[0] for one in parts if one and one[0] not in FRAMEWORK and (PACKAGE / one[0]).is_dir()}


def _modules(experiment: Experiment) -> list[Path]:
    """The experiment's own modules, and the modules of papers that these import, directly or indirectly."""
    ahead, seen = sorted(experiment.folder.rglob("*.py")), set()
    while ahead:
        path = ahead.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in _imports(path):
            parts = name.split(".")[1:]
            if parts[:1] == ["papers"]:
                module = PACKAGE.joinpath(*parts)
                ahead += [p for p in (module.with_suffix(".py"), module / "__init__.py") if p.is_file()]
    return sorted(seen)


def _imports(path: Path) -> set[str]:
    """Dotted names under ``subak`` that a file imports; a name imported from a package may be a module."""
    return {name for name in _all_imports(path) if name.split(".")[0] == "subak"}


@cache
def _all_imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "subak":
            # The module behind a name of the API, such as subak.rounds behind subak.Rounds.
            found |= {f"subak.{_HOMES[node.attr]}"} if node.attr in _HOMES else set()
    return found


@cache
def _below(name: str) -> frozenset[str]:
    """The crate, and the workspace crates on which it depends."""
    manifest = CRATES / name / "Cargo.toml"
    if not manifest.is_file():
        return frozenset()
    with manifest.open("rb") as file:
        needs = tomllib.load(file).get("dependencies", {})
    ours = [need.removeprefix("subak-") for need in needs if need.startswith("subak-")]
    return frozenset({name}).union(*map(_below, ours))


@cache
def _package(name: str) -> str:
    folder = PACKAGE / name
    kept = (p for p in folder.glob("**/*") if p.is_file() and p.suffix not in (".pyc", ".so"))
    return _hash(sorted(kept), folder)


@cache
def _crate(name: str) -> str:
    folder = CRATES / name
    # Kernel programs are in a folder of their own.
    paths = [*folder.glob("Cargo.toml"), *folder.glob("src/**/*"), *folder.glob("bpf/*")]
    return _hash(sorted(p for p in paths if p.is_file()), folder) if folder.is_dir() else ""


def _hash(paths: list[Path], folder: Path, more: bytes = b"") -> str:
    told = hashlib.sha256(more)
    for path in paths:
        told.update(f"{path.relative_to(folder).as_posix()}\n".encode() + path.read_bytes() + b"\0")
    return told.hexdigest()[:16]


def built_from() -> str:
    """Hash of the sources beside this package, to compare with that of the extension's sources.

    Empty if there are no sources; see crates/lab/sources.rs.
    """
    if not CRATES.is_dir():
        return ""
    files = {"Cargo.lock": CRATES.parent / "Cargo.lock"}
    for name in _below("py"):
        paths = [CRATES / name / "Cargo.toml", *(CRATES / name / "src").rglob("*")]
        files |= {path.relative_to(CRATES).as_posix(): path for path in paths if path.is_file()}
    told = hashlib.sha256()
    for name in sorted(files):
        text = files[name].read_bytes()
        told.update(name.encode() + b"\0" + len(text).to_bytes(8, "little") + text)
    return told.hexdigest()[:16]
