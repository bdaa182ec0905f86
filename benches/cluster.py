"""Overhead of a trial on a cluster: tiny trials on workers in this process, or in as many other processes.

Usage: .venv/bin/python benches/cluster.py TRIALS WORKERS [--processes]
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from pathlib import Path

import dask
import subak as sb
from distributed import Client, LocalCluster

SPEC = {
    "network": {"kind": "star", "hosts": 3},
    "workload": {"kind": "incast", "senders": 2, "size": "1kB"},
    "scheme": [{"name": "dctcp"}],
}


def main(trials: int, workers: int, processes: bool) -> None:
    """Prints the time of ``trials`` tiny trials on the cluster, and on one thread of this process."""
    dask.config.set({"distributed.comm.timeouts.connect": "60s", "distributed.worker.daemon": True})
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    begun = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=processes,
            protocol="tcp://",
            host="127.0.0.1",
            dashboard_address=None,
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(workers)
        where = "processes" if processes else "workers in one process"
        print(f"{workers} {where} were there after {time.monotonic() - begun:.0f} s", flush=True)
        seconds = {}
        for name, seeds, more in (
            ("first", workers, {"client": client}),
            ("cluster", trials, {"client": client}),
            ("here", trials, {"jobs": 1}),
        ):
            begun = time.monotonic()
            out = Path(folder) / name
            run = sb.run(SPEC | {"name": name, "run": {"duration": "1ms", "seeds": seeds}}, out, progress=False, **more)
            seconds[name] = time.monotonic() - begun
            assert run.failed == {}
        each = 1e3 / trials
        print(
            f"{trials} tiny trials: {seconds['cluster'] * each:.1f} ms each there, {seconds['here'] * each:.1f} ms here"
        )
        over = (seconds["cluster"] - seconds["here"]) * each
        print(f"overhead a trial: {over:.1f} ms; all of them: {seconds['cluster']:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), "--processes" in sys.argv)
