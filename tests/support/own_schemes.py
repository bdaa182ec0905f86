"""Common code of the tests of schemes that users write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import subak
from conftest import ROOT

TEMPLATES = ROOT / "python/subak/outside/templates"


def spec(schemes: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "network": {"kind": "star", "hosts": 16},
        "workload": {"kind": "poisson", "load": 0.8, "sizes": "web-search"},
        "run": {"duration": "3ms"},
        "measure": {"rates": "100us", "queues": "100us", "paces": "100us"},
        "scheme": schemes,
        **more,
    }


def run(folder: Path, schemes: list[dict[str, Any]], **more: Any) -> subak.Results:
    (folder / "spec.json").write_text(json.dumps(spec(schemes, **more)))
    return subak.run(folder / "spec.json", folder / "out", jobs=1, progress=False, overwrite=True)


def rows_of(results: subak.Results, scheme: str) -> Any:
    """All rows measured under a scheme, without the columns of the scheme's name and of the trial."""
    whole = results.table()
    return whole.filter(pc.equal(whole["scheme"], scheme)).drop_columns(["scheme", "trial"])


WHERE = [
    {},
    {"workload": {"kind": "incast", "senders": 7, "size": "100kB", "interval": "2us"}},
    {
        "fault": [
            {"kind": "loss", "probability": 0.01},
            {"kind": "capacity", "link": "h3->*", "capacity": "2Gbps", "at": "1ms"},
        ]
    },
    {
        "network": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4},
        "routing": {"reroute": "50us"},
        "fault": [{"kind": "down", "link": "leaf0->spine0", "down": "300us", "up": "800us"}],
        "run": {"duration": "2ms", "seeds": 2},
    },
]


MINE = '''
import subak

class Mine(subak.Scheme):
    """A window that does not change."""
    params = {"window": (20, "packets"), "word": ("a", ("a", "b"))}
    def source(self, flow):
        return Sender(self, flow)

class Sender(subak.Source):
    def __init__(self, scheme, flow):
        self.bytes = scheme.window * flow.mss_bytes
    def on_start(self, io):
        io.pace(window=self.bytes)
'''


HOP = (
    MINE
    + """
class Hop(subak.Hop):
    def on_enqueue(self, io, packet, port):
        BODY

Mine.hop = lambda self, port: Hop()
"""
)


def written(folder: Path, text: str = MINE, **more: Any) -> subak.Results:
    (folder / "mine.py").write_text(text)
    return run(folder, [{"python": "mine.py:Mine"} | more, {"name": "reno"}])


def failed(folder: Path, text: str, **more: Any) -> str:
    """Error of the failed trial; the trial of the built-in scheme is kept."""
    results = written(folder, text, **more)
    assert list(results.failed) == [0]
    assert rows_of(results, "reno").num_rows == 0 or not results.failed.get(1)
    assert (folder / "out/trials/1.parquet").exists()
    said = str(results.failed[0])
    assert "defect" not in said
    assert "panic" not in said
    return said


def hooked(body: str, hook: str = "on_start(self, io)") -> str:
    return MINE.replace("    def on_start(self, io):\n        io.pace(window=self.bytes)\n", "") + (
        f"    def {hook}:\n        {body}\n" + ("" if "on_start" in hook else "    def on_start(self, io): io.pace()\n")
    )
