"""Running specs from Python, and comparing what they came to."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subak import _subak, inputs
from subak.errors import InputError
from subak.hooks import Listener, Weigher
from subak.results import Results

if TYPE_CHECKING:
    import pyarrow as pa


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

        return notebook.difference(self.identical, self.to_pylist())


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
