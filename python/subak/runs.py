"""Running specs from Python, and their results."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subak import _subak, inputs
from subak.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

Listener = Callable[[int, int, float], None]
"""Hears the cells that are done, the cells there are, and the share of the work that is done."""

Weigher = Callable[[dict[str, Any]], Sequence[float]]
"""Sets the weights of a job: see :doc:`the page on applications <applications>`."""

KINDS = ("flow", "rate", "pace", "queue", "link", "wait", "convergence", "summary", "job", "weight")
"""The kinds of row of a results table."""


class Results:
    """The results of a run: a folder with ``results.parquet``, ``manifest.json`` and ``spec.toml``."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.manifest: dict[str, Any] = read_manifest(self.folder)

    @property
    def complete(self) -> bool:
        """Whether every cell ran and the results are merged."""
        return (self.folder / "results.parquet").is_file()

    @property
    def failed(self) -> dict[int, str]:
        """The cells that failed, and why."""
        return {c["cell"]: c["error"] for c in self.manifest["cells"] if c["status"] == "failed"}

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """What to know before believing the results: each a ``kind``, ``scheme``, ``axes``, ``cells`` and ``text``.

        Kinds are ``nothing-finished``, ``unfinished``, ``never-started``, ``load-not-reached``, ``still-ramping``,
        ``deadlock``, ``few-flows``, ``wide-interval``, ``graze``, ``slow-link`` and ``fault-in-warmup``.
        """
        return list(self.manifest.get("warnings", []))

    def table(
        self, kind: str | None = None, columns: Sequence[str] | None = None, *, partial: bool = False
    ) -> pa.Table:
        """The rows of a ``kind`` (``flow``, ``rate``, ``queue``, ...), or all, as an Arrow table.

        ``partial`` takes the cells that are complete, where not all are.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        if kind is not None and kind not in KINDS:
            raise InputError(None, "kind", f'there is no kind of row "{kind}"', f"choose one of: {', '.join(KINDS)}")
        path = self.folder / "results.parquet"
        paths = self._cells_so_far() if partial and not self.complete else []
        filters = None if kind is None else [("kind", "==", kind)]
        try:
            return pq.read_table(paths or path, columns=None if columns is None else list(columns), filters=filters)
        except FileNotFoundError:
            mend = "resume it with subak.run and the same folder"
            raise InputError(str(self.folder), "", "the run is not complete", mend) from None
        except (OSError, pa.ArrowException) as error:
            raise InputError(str(path), "", f"it cannot be read: {error}", "run the spec again") from None

    def _cells_so_far(self) -> list[Path]:
        done = [c["cell"] for c in self.manifest["cells"] if c["status"] == "complete"]
        return [self.folder / "cells" / f"{cell}.parquet" for cell in done]

    def summary(self) -> dict[str, Any]:
        """The comparison of the schemes: for each, its metrics over the seeds with their confidence intervals."""
        summary: dict[str, Any] = json.loads(_subak.summary(self.folder))
        return summary

    def plot(self, metric: str = "slowdown_mean", ax: Axes | None = None) -> Axes:
        """Draws a metric of ``summary`` with matplotlib and gives back the axes.

        It stands against the number that the spec sweeps; without a sweep slowdown stands against the size of the
        flow, and any other metric is a bar for each scheme.
        """
        from subak.plots import plot

        return plot(self, metric, ax)

    def _repr_html_(self) -> str:
        from subak import notebook

        return notebook.results(self)

    def __repr__(self) -> str:
        state = "complete" if self.complete else "not complete"
        return f"<subak.Results: {self.folder}, {len(self.manifest['cells'])} cells, {state}>"


def run(
    spec: Mapping[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    cell: int | None = None,
    progress: Listener | None = None,
    policies: Mapping[str, Weigher] | None = None,
    driver: str | None = None,
) -> Results:
    """Simulates every cell of ``spec``, a file or a dict, that ``out`` does not hold yet.

    The network of a dict may be a ``Network``. A spec that has grown by seeds, by values of a sweep
    or by schemes keeps the cells that ``out`` holds.

    ``jobs`` is the number of threads (``None``: one for each processor); ``cell`` runs that one only. Ctrl-C raises
    ``KeyboardInterrupt`` and leaves what is complete, so that the same call resumes. A cell that fails leaves the
    others alone and stands in ``Results.failed``. Raises ``InputError`` for a spec that cannot be used.

    ``driver`` runs every scheme in place of what the spec asks for: ``packet``, ``fluid``, or ``testbed`` for real TCP
    between namespaces of this machine, as root.

    ``policies`` are functions that set the weights of jobs whose policy is ``{callable = "NAME"}``. Such a spec is run
    anew each time, because its results depend on more than the spec.
    """
    if jobs is not None and jobs < 1:
        raise InputError(None, "jobs", f"it is {jobs}", "give 1 or more")
    from subak.testbed.driver import carry

    checked = load(spec, driver)
    checked.run(Path(out), jobs or 0, cell, progress, dict(policies or {}), carry)
    return Results(out)


Run = Results | str | os.PathLike[str]
"""Results, or the folder that holds them."""


def report(*results: Run, output: str | os.PathLike[str] = "report.html") -> Path:
    """Writes one HTML file of a run, or of several in the same charts, and gives back its path."""
    from subak.reporting import build

    path = Path(output)
    page = build([_folder(one) for one in results])
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(str(path), "", f"it cannot be written: {error.strerror}", "name another file") from None
    return path


class Difference:
    """How two runs differ, metric by metric; each metric is compared seed by seed where both runs have the seed."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    @property
    def identical(self) -> bool:
        """Whether the results are the same, byte for byte."""
        return bool(self._document["identical"])

    def to_dict(self) -> dict[str, Any]:
        """All of it, as ``subak diff --json`` prints it."""
        return self._document

    def to_pylist(self) -> list[dict[str, Any]]:
        """One row for each scheme, setting and metric that both runs have.

        ``first`` and ``second`` are means over seeds. ``difference`` is the mean of second minus first over the
        seeds that both have, ``difference_ci95`` half its 95% confidence interval, ``p_value`` that of the paired
        t-test; null where there are too few equal seeds.
        """
        from subak.metrics import setting_of

        rows = []
        for pair in self._document["rows"]:
            for one in pair["metrics"]:
                paired = one["difference"] or {"mean": None, "ci95": None, "seeds": 0}
                rows.append(
                    {
                        "scheme": pair["scheme"],
                        "setting": setting_of(pair["axes"], list(pair["axes"])),
                        "metric": one["name"],
                        "first": one["first"]["mean"],
                        "second": one["second"]["mean"],
                        "ratio": one["ratio"],
                        "difference": paired["mean"],
                        "difference_ci95": paired["ci95"],
                        "equal_seeds": paired["seeds"],
                        "p_value": one["p_value"],
                    }
                )
        return rows

    def table(self) -> pa.Table:
        """The rows of ``to_pylist`` as an Arrow table."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.to_pylist())

    def __repr__(self) -> str:
        return f"<subak.Difference: {'identical' if self.identical else f'{len(self.to_pylist())} metrics'}>"

    def _repr_html_(self) -> str:
        from subak import notebook

        return notebook.difference(self)


def diff(first: Run, second: Run) -> Difference:
    """Compares a run with another: scheme by scheme, setting by setting, seed by seed."""
    return Difference(json.loads(_subak.diff(_folder(first), _folder(second))))


def _folder(run: Run) -> Path:
    return run.folder if isinstance(run, Results) else Path(run)


def load(spec: Mapping[str, Any] | str | os.PathLike[str], driver: str | None = None) -> _subak.Spec:
    """The checked spec in a file or a dict, every scheme under ``driver`` if one is given."""
    if isinstance(spec, Mapping):
        if isinstance(network := spec.get("network"), _subak.Network):
            from subak.api import network_of

            spec = {**spec, "network": network_of(network)}
        return _subak.Spec.parse(inputs.to_json(spec), Path(), driver)
    return _subak.Spec.load(Path(spec), driver)


def read_manifest(folder: Path) -> dict[str, Any]:
    """What ``subak run`` wrote of a run into its folder."""
    path = folder / "manifest.json"
    mend = "name a folder that `subak run --out` has filled"
    try:
        manifest = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(str(folder), "", "there is no manifest.json: this is not the result of a run", mend) from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(str(path), "", f"it cannot be read: {error}", mend) from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("cells"), list):
        raise InputError(str(path), "", "it is not the manifest of a run", mend)
    return manifest
