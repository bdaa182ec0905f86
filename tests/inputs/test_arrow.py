"""Answers reach polars, pandas and pyarrow without a copy, and other Python threads run while the solver works."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import subak as sb


def random_flows(count: int, link_count: int = 500, hops: int = 4) -> tuple[sb.Network, sb.Rows]:
    """Flows over distinct links of equal capacity: link ``i`` of a path is in the ``i``-th part of the links."""
    network = sb.Network.from_links([{"id": f"l{i}", "capacity": 1e9} for i in range(link_count)])
    share = link_count // hops
    rng = np.random.default_rng(1)
    links = rng.integers(0, share, (count, hops)) + np.arange(hops) * share
    return network, sb.Rows(np.arange(count + 1) * hops, links.ravel())


@pytest.fixture(scope="module")
def answer() -> Any:
    return sb.solve(*_case())


def _case() -> tuple[dict[str, Any]]:
    links = [{"id": "a", "capacity": 4e9}, {"id": "b", "capacity": 1e9}]
    flows = [{"id": "f", "path": ["a"]}, {"id": "g", "path": ["a", "b"]}]
    return ({"network": {"links": links}, "flows": flows},)


def address(array: pa.ChunkedArray) -> int:
    return array.chunk(0).buffers()[1].address


def test_pyarrow(answer: Any) -> None:
    flows = answer.flows
    table = pa.table(flows)
    assert table.to_pylist() == [
        {"id": "f", "rate_bps": 3e9, "path_rates_bps": [3e9], "paths": [["a"]], "bottlenecks": ["a"], "status": None},
        {
            "id": "g",
            "rate_bps": 1e9,
            "path_rates_bps": [1e9],
            "paths": [["a", "b"]],
            "bottlenecks": ["b"],
            "status": None,
        },
    ]
    assert address(pa.table(flows)["rate_bps"]) == address(table["rate_bps"])
    assert flows.column_names == table.column_names
    assert len(flows) == flows.num_rows == 2


def test_polars(answer: Any) -> None:
    flows = answer.flows
    frame = pl.DataFrame(flows)
    assert frame["rate_bps"].to_list() == [3e9, 1e9]
    assert frame["rate_bps"].to_numpy(allow_copy=False).ctypes.data == address(pa.table(flows)["rate_bps"])


def test_pandas(answer: Any) -> None:
    links = answer.links
    assert pd.DataFrame.from_arrow(links)["load_bps"].tolist() == [4e9, 1e9]
    frame = pa.table(links).to_pandas(split_blocks=True)
    assert frame["price"].to_numpy().ctypes.data == address(pa.table(links)["price"])


def test_memory_outlives_the_answer() -> None:
    answer = sb.solve(*_case())
    table = pa.table(answer.flows)
    del answer
    assert table["rate_bps"].to_pylist() == [3e9, 1e9]


def test_unread_stream_is_freed(answer: Any) -> None:
    for _ in range(100):
        answer.flows.__arrow_c_stream__()


def test_rows_agree_with_named_flows() -> None:
    network, rows = random_flows(50)
    names = pa.table(network.links)["id"].to_pylist()
    starts = np.asarray(rows.link_ptr)
    paths = [[names[i] for i in np.asarray(rows.links)[a:b]] for a, b in pairwise(starts)]
    named = sb.solve(network, flows=[{"id": str(i), "path": path} for i, path in enumerate(paths)])
    assert pa.table(sb.solve(network, flows=rows).flows).equals(pa.table(named.flows))


def test_many_flows() -> None:
    network, rows = random_flows(200_000)
    answer = sb.solve(network, flows=rows)
    assert answer.status == "optimal"
    assert max(answer.certificate.values()) < 1e-9
    assert answer.flows.num_rows == 200_000


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"link_ptr": [0, 9]}, "link_ptr"),
        ({"link_ptr": []}, "link_ptr"),
        ({"link_ptr": [0.5, 1]}, "link_ptr"),
        ({"links": [-1]}, "links"),
        ({"links": [2**32]}, "links"),
        ({"links": [7]}, "flows[0].path[0]"),
        ({"weight": [0]}, "flows[0].weight"),
        ({"weight": [1, 1]}, "weight"),
        ({"weight": ["heavy"]}, "weight"),
        ({"demand_bps": [float("nan")]}, "flows[0].demand"),
    ],
)
def test_bad_rows(change: dict[str, Any], place: str) -> None:
    network = sb.Network.from_links([{"id": "a", "capacity": 1e9}])
    rows = sb.Rows(**({"link_ptr": [0, 1], "links": [0]} | change))
    with pytest.raises(sb.InputError) as caught:
        sb.solve(network, flows=rows)
    assert caught.value.place == place


def _solve_into(solved: list[tuple[Any, float]], network: sb.Network, rows: sb.Rows) -> None:
    solved.append((sb.solve(network, flows=rows), time.perf_counter()))


def test_other_threads_run_while_solving() -> None:
    network, rows = random_flows(100_000, hops=8)
    for _ in range(10):
        solved: list[tuple[Any, float]] = []
        thread = threading.Thread(target=_solve_into, args=(solved, network, rows))
        thread.start()
        ticks = []
        while thread.is_alive():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)
        thread.join()
        answer, end = solved[0]
        # The solve ends at ``end`` at the latest and takes ``answer.seconds``, in which other threads can run.
        if sum(end - 0.8 * answer.seconds < tick < end - 0.2 * answer.seconds for tick in ticks) >= 3:
            return
    pytest.fail("no other thread ran while the solver did")
