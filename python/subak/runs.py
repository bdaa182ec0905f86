"""Running of specs from Python, and comparison of their results."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subak import _subak, inputs, renamed, schemas, tables
from subak.errors import InputError
from subak.hooks import Listener, Weigher
from subak.progress import listening
from subak.results import Results, read_manifest

if TYPE_CHECKING:
    import pyarrow as pa
    from distributed import Client

    from subak.cluster import Cluster
    from subak.scheme import Scheme


WRITTEN = ("results.parquet", "spec.toml")
"""Files that a run writes in addition to those of its trials and the manifest."""

MOST_THREADS = 255
"""Largest number of threads that share one trial."""


@renamed.keywords(cell="trial", driver="backend")
@inputs.keywords
def run(
    spec: Mapping[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    threads: int | None = None,
    trial: int | None = None,
    progress: Listener | bool | None = None,
    policies: Mapping[str, Weigher] | None = None,
    backend: str | None = None,
    schemes: Mapping[str, type[Scheme]] | None = None,
    client: Client | Cluster | None = None,
    overwrite: bool = False,
) -> Results:
    """Simulates every trial of ``spec`` whose results ``out`` does not contain yet.

    If the spec has new seeds, values of a sweep or schemes, the trials in ``out`` are kept. Ctrl-C raises
    ``KeyboardInterrupt``, with a note on the number of complete trials. They are kept, so that the same call resumes;
    trials in progress start again then. If a trial fails, the others continue, and ``Results.failed`` has its error.

    :param spec: The path of a file, or a dict. The network of a dict may be a ``Network``, and the ``flows`` of its
        workload ``steps`` a table: a frame of pandas or polars, an Arrow table, a dict of columns.
    :param out: The folder of the results.
    :param jobs: Number of parallel trials; by default the number of processors. Trials of a spec with schemes in Python
        run on that many processes.
    :param threads: Threads of one trial at packet level; results are the same for any number. If neither ``jobs`` nor
        ``threads`` is given, trials with 64 hosts or more share the idle processors.
    :param trial: Number of the only trial to run.
    :param progress: By default a bar shows progress and time left in terminals and notebooks. ``False``: no bar;
        ``True``: a bar everywhere; a function: called with the number of finished trials, of all trials, and the
        fraction of the work done.
    :param policies: Functions that set the weights of jobs whose policy is ``{callable = "NAME"}``. Such a spec runs
        again each time, since its results depend on more than the spec.
    :param backend: Backend of every scheme, in place of the spec's: ``packet``, ``fluid``, or ``testbed`` (real TCP
        between namespaces of this machine, as root).
    :param schemes: Your own classes by name, ``class Mine(subak.Scheme)``: a ``[[scheme]]`` of that name uses the
        class.
    :param client: A Dask client (``distributed.Client``), whose workers run the trials instead of this machine. They
        require only this build of Subak, and results are the same byte for byte. If a worker dies, another one runs
        its trials.
    :param overwrite: Removes the results in ``out``, of whatever spec, and starts over. Other files stay.
    :raises InputError: for an invalid spec.
    """
    inputs.check_flag("overwrite", overwrite)
    if progress is not None and not callable(progress):
        inputs.check_flag("progress", progress)
    _check_count("jobs", jobs, None)
    _check_count("threads", threads, MOST_THREADS)
    checked = load(spec, backend, schemes)
    cluster = None
    if client is not None:
        from subak.cluster import Cluster

        not_with_cluster({"jobs": jobs, "threads": threads, "trial": trial is not None, "policies": policies}, "client")
        not_with_cluster({"schemes": schemes}, "client")
        cluster = client if isinstance(client, Cluster) else Cluster(client)
    if overwrite:
        remove_results(Path(out), checked.name)
    with listening(progress, checked.name, lambda: cluster.workers if cluster else None) as listener:
        try:
            named = dict(policies or {})
            carry_out(checked, Path(out), jobs, threads, trial, listener, named, cluster=cluster, classes=bool(schemes))
        except KeyboardInterrupt as stopped:
            stopped.add_note(_left(Path(out)))
            raise
    return Results(out)


def remove_results(folder: Path, name: str) -> None:
    """Removes the files of a run from ``folder``, so that a run called ``name`` can start; other files stay."""
    if not (folder / "manifest.json").exists():
        return
    read_manifest(folder)
    # A manifest without trials remains, so that the folder is still recognized as that of a run.
    empty = {"schema": 2, "name": name, "version": _subak.__version__, "build": _subak.__build__, "trials": []}
    try:
        for written in WRITTEN:
            (folder / written).unlink(missing_ok=True)
        for written in ("trials", *renamed.FOLDERS):
            if (folder / written).is_dir():
                shutil.rmtree(folder / written)
        (folder / "manifest.json").write_text(json.dumps(empty), encoding="utf-8")
    except OSError as error:
        raise InputError(str(folder), "", f"it cannot be overwritten: {error}", "choose another directory") from None


def _check_count(place: str, given: object, most: int | None) -> None:
    if given is None:
        return
    count = given.__index__() if hasattr(given, "__index__") and not isinstance(given, bool) else 0
    if not 1 <= count <= (most or count):
        hint = f"give a whole number from 1 to {most}" if most else "give a whole number, 1 or more"
        raise InputError(None, place, f"it is {given!r}", hint)


def not_with_cluster(given: Mapping[str, Any], where: str) -> None:
    """Raises ``InputError`` for options that exclude a cluster; ``where`` is the option that selects the cluster."""
    why = {
        "jobs": "the workers have threads of their own",
        "threads": "each worker runs its trials on one thread",
        "trial": "a cluster runs all that are missing",
        "policies": "functions of this program are not sent to others",
        "schemes": 'classes of this program are not sent to others: name a file in the spec, python = "mine.py:Mine"',
        "watch": "the live page shows runs of this machine alone",
    }
    for name, value in given.items():
        if value:
            place = f"--{name}" if where.startswith("--") else name
            raise InputError(None, place, f"it does not go with {where}: {why[name]}", "leave one of them away")


def carry_out(
    spec: _subak.Spec,
    out: Path,
    jobs: int | None,
    threads: int | None,
    trial: int | None,
    progress: Listener | None,
    policies: dict[str, Weigher] | None = None,
    watched: _subak.Watched | None = None,
    cluster: Cluster | None = None,
    classes: bool = False,
) -> dict[str, Any]:
    """Runs the missing trials here or on the workers of ``cluster``, and returns the outcome.

    Trials of a spec with schemes in Python run on processes, since an interpreter runs one at a time. They do not if
    ``classes`` of the caller are among the schemes.
    """
    from subak import processes
    from subak.testbed.backend import carry

    elsewhere = cluster.runs(spec) if cluster else None
    stays = classes or policies or watched or threads or trial is not None
    count = jobs or len(os.sched_getaffinity(0))
    if not elsewhere and not stays and count > 1 and processes.suits(spec):
        elsewhere = processes.runs(spec, count)
    ended: dict[str, Any] = json.loads(
        spec.run(out, jobs or 0, trial, progress, policies or {}, carry, watched, elsewhere, threads or 0)
    )
    return ended


def _left(out: Path) -> str:
    """Note on an interrupted run: how many trials are complete, and how to resume."""
    trials = read_manifest(out)["trials"] if (out / "manifest.json").is_file() else []
    done = sum((out / "trials" / f"{trial['trial']}.parquet").is_file() for trial in trials)
    return f"{done} of {len(trials)} trials are complete in {out}: the same call goes on from there"


Run = Results | str | os.PathLike[str]
"""Results, or the folder of a run."""


@inputs.keywords
def report(*results: Run, output: str | os.PathLike[str] = "report.html") -> Path:
    """Writes an HTML report and returns its path.

    :param results: One run, or several in the same charts, as results or folders.
    :param output: The file.
    """
    from subak.reporting import build

    inputs.check_ending("output", Path(output), ".html", ".htm")
    return _written(Path(output), build([_folder(one) for one in results]))


@renamed.keywords(setting="sweep_point")
@inputs.keywords
def movie(result: Run, *, output: str | os.PathLike[str] = "movie.html", sweep_point: str | None = None) -> Path:
    """Writes an HTML file that animates the network of a run over time, and returns its path.

    It shows the first seed of every scheme. Queues must be sampled: ``queues = "100us"`` in ``[measure]``.

    :param result: Results, or the folder that holds them.
    :param output: The file.
    :param sweep_point: Sweep point of a sweep, such as ``load 0.6``; the last by default.
    """
    from subak.reporting.movie import build

    return _written(Path(output), build(_folder(result), sweep_point))


def _written(path: Path, page: str) -> Path:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(str(path), "", f"it cannot be written: {error.strerror}", "name another file") from None
    return path


class Difference:
    """Differences between two runs by metric; values are compared seed by seed where both runs have the seed."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    @property
    def identical(self) -> bool:
        """Whether the results are the same, byte for byte."""
        return bool(self._document["identical"])

    def to_dict(self) -> dict[str, Any]:
        """The comparison as a dict, as ``subak diff --json`` prints it."""
        return self._document

    def to_pylist(self) -> list[dict[str, Any]]:
        """One row for each scheme, sweep point and metric that both runs have.

        ``first`` and ``second`` are means over seeds. ``difference`` is the mean of second minus first over the
        seeds that both have, ``difference_ci95`` half its 95% confidence interval, ``p_value`` that of the paired
        t-test; null where there are too few equal seeds.
        """
        from subak.metrics import sweep_point_of

        rows = []
        for pair in self._document["rows"]:
            for one in pair["metrics"]:
                paired = one["difference"] or {"mean": None, "ci95": None, "seeds": 0}
                rows.append(
                    {
                        "scheme": pair["scheme"],
                        "sweep_point": sweep_point_of(pair["axes"], list(pair["axes"])),
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


@inputs.keywords
def diff(first: Run, second: Run) -> Difference:
    """Compares two runs: scheme by scheme, sweep point by sweep point, seed by seed.

    :param first: Results, or the folder that holds them.
    :param second: The run to compare with.
    """
    compared = Difference(json.loads(_subak.diff(_folder(first), _folder(second))))
    for run in (first, second):
        (run if isinstance(run, Results) else Results(run)).warn_of_lacking(stacklevel=3)
    return compared


def _folder(run: Run) -> Path:
    return run.folder if isinstance(run, Results) else Path(run)


def load(
    spec: Mapping[str, Any] | str | os.PathLike[str],
    backend: str | None = None,
    schemes: Mapping[str, type[Scheme]] | None = None,
) -> _subak.Spec:
    """Reads and checks the spec in a file or dict; every scheme gets the backend ``backend``, if given."""
    given = dict(schemes or {})
    if isinstance(spec, Mapping):
        spec = _with_rows(spec)
        if isinstance(network := spec.get("network"), _subak.Network):
            from subak.api import network_of

            spec = {**spec, "network": network_of(network)}
        return _subak.Spec.parse(inputs.to_json(spec), Path(), backend, given)
    return _subak.Spec.load(Path(spec), backend, given)


def _with_rows(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """The spec with the flows of its workloads as dicts, where they were given as a table."""

    def in_rows(workload: Any, place: str) -> Any:
        if not isinstance(workload, Mapping) or not tables.is_frame(workload.get("flows")):
            return workload
        return {**workload, "flows": tables.rows_of(workload["flows"], f"{place}.flows", schemas.steps())}

    workload = spec.get("workload")
    if isinstance(workload, list):
        return {**spec, "workload": [in_rows(one, f"workload[{i}]") for i, one in enumerate(workload)]}
    return spec if workload is None else {**spec, "workload": in_rows(workload, "workload")}
