"""Results of a run, for Python."""

from __future__ import annotations

import difflib
import json
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subak import _subak, inputs, renamed, tables
from subak.errors import InputError, InputWarning

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.axes import Axes

KINDS = ("flow", "rate", "pace", "queue", "link", "wait", "convergence", "summary", "job", "weight", "note")
"""Kinds of rows in a table of results."""

MOST_LISTED = 12
"""Largest number of unread trials that a message lists one by one."""

MEASURED = ("flow", "job", "queue", "note")
"""Kinds of rows that have the column ``measured``."""


class Results:
    """The results of a run: a folder with ``results.parquet``, ``manifest.json`` and ``spec.toml``."""

    @inputs.keywords
    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.manifest: dict[str, Any] = read_manifest(self.folder)

    @property
    def complete(self) -> bool:
        """Whether every trial ran and the results are merged."""
        return (self.folder / "results.parquet").is_file()

    @property
    def failed(self) -> dict[int, str]:
        """Errors of failed trials, by trial number."""
        return {c["trial"]: c["error"] for c in self.manifest["trials"] if c["status"] == "failed"}

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """Warnings about limits of the results, each with ``kind``, ``scheme``, ``axes``, ``trials`` and ``text``.

        Kinds are ``nothing-finished``, ``unfinished``, ``held``, ``never-started``, ``load-not-reached``,
        ``still-ramping``, ``overloaded``, ``deadlock``, ``daemon-ended``, ``few-flows``, ``wide-interval``, ``graze``,
        ``slow-link`` and ``fault-in-warmup``.
        """
        return list(self.manifest.get("warnings", []))

    @inputs.keywords
    def table(
        self,
        kind: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        measured: bool = False,
        partial: bool = False,
    ) -> pa.Table:
        """The rows of a ``kind`` (``flow``, ``rate``, ``queue``, ...), or all rows, as an Arrow table.

        ``measured`` selects the rows that the comparison uses: flows and jobs that started after the warm-up, and
        samples of queues and notes taken after it. If some trials are incomplete, only the complete ones are read, with
        a warning (``InputWarning``) that names the others; ``partial=True`` suppresses the warning.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        inputs.check_flag("measured", measured)
        inputs.check_flag("partial", partial)
        if kind is not None and kind not in KINDS:
            raise InputError(None, "kind", f'there is no kind of row "{kind}"', f"choose one of: {', '.join(KINDS)}")
        if measured and kind not in MEASURED:
            what = f"rows of the kind {json.dumps(kind)} do not say whether they count"
            raise InputError(None, "measured", what, f"choose one of: {', '.join(MEASURED)}")
        path = self.folder / "results.parquet"
        paths = [path] if self.complete else self._trials_so_far()
        if not paths:
            raise self._nothing()
        if not partial:
            self.warn_of_lacking(stacklevel=4)
        filters: list[tuple[str, str, Any]] = [] if kind is None else [("kind", "==", kind)]
        filters += [("measured", "==", True)] if measured else []
        try:
            known = pq.read_schema(paths[0]).names
            read = renamed.columns(columns, known)
            _check_columns(list(read), known)
            table = pq.read_table(paths, columns=list(read), filters=filters or None)
            return table.rename_columns([read[name] for name in table.column_names])
        except (OSError, pa.ArrowException) as error:
            raise InputError(str(path), "", f"it cannot be read: {error}", "run the spec again") from None

    def lacking(self) -> str:
        """Numbers of the trials that are not read, with the reason, as sentences; empty if all are read."""
        if self.complete:
            return ""
        trials = self.manifest["trials"]
        missing = [trial["trial"] for trial in trials if trial["status"] != "complete"]
        gone = [
            trial["trial"]
            for trial in trials
            if trial["status"] == "complete" and not self._trial_file(trial).is_file()
        ]
        said = []
        if missing:
            said.append(f"{len(missing)} of {len(trials)} trials are not complete and left out: {_listed(missing)}")
        if gone:
            what = f"{len(gone)} of {len(trials)} trials are complete by the manifest, but their files are gone"
            said.append(f"{what}, and they are left out: {_listed(gone)}; run the spec again into this folder")
        return "; ".join([*said, *(f"trial {trial} failed: {why}" for trial, why in list(self.failed.items())[:1])])

    def trials_read(self) -> int:
        """Number of trials that are read."""
        return len(self.manifest["trials"] if self.complete else self._trials_so_far())

    def warn_of_lacking(self, stacklevel: int = 2) -> None:
        """Warns (``InputWarning``) about trials that are not read."""
        if said := self.lacking():
            warnings.warn(f"{self.folder}: {said}", InputWarning, stacklevel=stacklevel)

    def _nothing(self) -> InputError:
        """The error for a run without complete trials."""
        if self.failed:
            trial, why = next(iter(self.failed.items()))
            failed = f"{len(self.failed)} of {len(self.manifest['trials'])} failed"
            what = f"no trial is complete, {failed}, trial {trial}: {why}"
            return InputError(str(self.folder), "", what, "correct the spec, and run it again")
        hint = "resume it with subak.run and the same folder"
        what = "the run is not complete: no trial of it is"
        if any(trial["status"] == "complete" for trial in self.manifest["trials"]):
            what = "the run is complete by its manifest, but the files of all its trials are gone"
        return InputError(str(self.folder), "", what, hint)

    def _trials_so_far(self) -> list[Path]:
        done = [self._trial_file(trial) for trial in self.manifest["trials"] if trial["status"] == "complete"]
        return [path for path in done if path.is_file()]

    def _trial_file(self, trial: dict[str, Any]) -> Path:
        names = [self.folder / name / f"{trial['trial']}.parquet" for name in ("trials", *renamed.FOLDERS)]
        return next((path for path in names if path.is_file()), names[0])

    @inputs.keywords
    def to_pandas(self, kind: str = "flow") -> pd.DataFrame:
        """The rows of a ``kind`` as a pandas frame."""
        return tables.to_pandas(self.table(kind))

    @inputs.keywords
    def to_polars(self, kind: str = "flow") -> pl.DataFrame:
        """The rows of a ``kind`` as a polars frame."""
        return tables.to_polars(self.table(kind))

    @inputs.keywords
    def to_numpy(self, kind: str = "flow") -> dict[str, np.ndarray]:
        """The rows of a ``kind`` as a dict of numpy arrays, one per column."""
        return tables.to_numpy(self.table(kind))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The flow rows as an Arrow C stream, for ``polars.DataFrame(results)``."""
        return self.table("flow").__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The flow rows as dicts, for ``pandas.DataFrame(results)``."""
        return tables.to_rows(self)

    def summary(self) -> dict[str, Any]:
        """The comparison of the schemes: for each, its metrics over the seeds with their confidence intervals.

        A warning (``InputWarning``) names missing trials.
        """
        self.warn_of_lacking(stacklevel=3)
        summary: dict[str, Any] = json.loads(_subak.summary(self.folder))
        return summary

    @inputs.keywords
    def plot(
        self,
        metric: str = "slowdown_mean",
        ax: Axes | None = None,
        *,
        against: str | None = None,
        class_: str | None = None,
    ) -> Axes:
        """Plots a metric of ``summary`` with matplotlib and returns the axes.

        The x axis is the swept number, or, of several, the one named by ``against`` (``"buffer"``, ``"params.k"``); the
        others are separate curves. Without a sweep, slowdown is plotted by flow size, and any other metric as a bar for
        each scheme. ``class_`` names the workload whose flows alone count.
        """
        from subak.plots import plot

        return plot(self.folder, self.manifest, self.summary(), metric, ax, against, class_)

    def _repr_html_(self) -> str:
        from subak import notebook

        done = self.complete or bool(self._trials_so_far())
        return notebook.results(repr(self), self.manifest, self.summary() if done else None)

    def __repr__(self) -> str:
        state = "complete" if self.complete else "not complete"
        return f"<subak.Results: {self.folder}, {len(self.manifest['trials'])} trials, {state}>"


def _listed(trials: Sequence[int]) -> str:
    return ", ".join(map(str, trials[:MOST_LISTED])) + ", ..." * (len(trials) > MOST_LISTED)


def _check_columns(wanted: Sequence[str] | None, known: Sequence[str]) -> None:
    """Raises ``InputError`` for columns that the results lack, with the nearest existing name."""
    for name in wanted or ():
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f'did you mean "{near[0]}"?' if near else f"choose from: {', '.join(known)}"
            raise InputError(None, "columns", f'the results have no column "{name}"', hint)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Reads the manifest that ``subak run`` wrote into the folder."""
    path = folder / "manifest.json"
    hint = "name a folder that `subak run --out` has filled"
    try:
        manifest = renamed.manifest(json.loads(path.read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(str(folder), "", "there is no manifest.json: this is not the result of a run", hint) from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(str(path), "", f"it cannot be read: {error}", hint) from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("trials"), list):
        raise InputError(str(path), "", "it is not the manifest of a run", hint)
    return manifest
