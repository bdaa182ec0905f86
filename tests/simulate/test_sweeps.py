"""Swept quantities and parameters of schemes, as numeric columns and as axes of figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import subak as package
from browser import asked, browser
from conftest import Subak
from subak.errors import InputError
from subak.plots import _bars
from subak.reporting import build, figures

SPEC: dict[str, Any] = {
    "name": "swept",
    "network": {"kind": "star", "hosts": 5, "buffer": ["30KB", "100KB", 300000], "link_delay": ["1us", "2us"]},
    "workload": {"kind": "incast", "senders": 4, "size": "50KB", "interval": "2ms"},
    "scheme": [{"name": "dctcp", "params": {"k": [5, 20, 65]}}, {"name": "ideal"}],
    "run": {"duration": "3ms"},
}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return package.run(SPEC, tmp_path_factory.mktemp("swept") / "out").folder


def test_columns_have_the_values_as_written_and_as_numbers(out: Path) -> None:
    table = pq.read_table(out / "results.parquet")
    pairs = set(zip(table["network.buffer"].to_pylist(), table["network.buffer_bytes"].to_pylist(), strict=True))
    assert pairs == {("30KB", 30_000.0), ("100KB", 100_000.0), ("300000", 300_000.0)}
    pairs = set(zip(table["network.link_delay"].to_pylist(), table["network.link_delay_ns"].to_pylist(), strict=True))
    assert pairs == {("1us", 1000.0), ("2us", 2000.0)}
    pairs = set(zip(table["scheme"].to_pylist(), table["params.k_packets"].to_pylist(), strict=True))
    assert pairs == {("dctcp k=5", 5.0), ("dctcp k=20", 20.0), ("dctcp k=65", 65.0), ("ideal", None)}


def test_the_manifest_says_what_is_swept(out: Path) -> None:
    manifest = package.Results(out).manifest
    first, last = manifest["schemes"][0], manifest["schemes"][-1]
    assert first["base"] == "dctcp"
    assert first["swept"] == {"params.k": {"value": 5, "number": 5.0, "unit": "packets"}}
    assert "swept" not in last
    assert manifest["swept"]["network.buffer"][1] == {"value": "100KB", "number": 100_000.0, "unit": "bytes"}


@pytest.mark.parametrize(
    ("key", "label", "xs", "names"),
    [
        ("buffer", "buffer, bytes", [30e3, 100e3, 300e3], {"dctcp k=5", "dctcp k=20", "dctcp k=65", "ideal (max-min)"}),
        (
            "network.link_delay",
            "link_delay, us",
            [1.0, 2.0],
            {"dctcp k=5", "dctcp k=20", "dctcp k=65", "ideal (max-min)"},
        ),
        ("k", "k, packets", [5.0, 20.0, 65.0], {"dctcp", "ideal (max-min)"}),
    ],
)
def test_each_swept_key_is_an_axis(out: Path, key: str, label: str, xs: list[float], names: set[str]) -> None:
    for chart in figures.charts([out], "sweep", chart="mean slowdown against", against=key):
        assert chart.x.label == label
        assert {series.name for series in chart.series} == names
        first = next(series for series in chart.series if series.name.startswith("dctcp"))
        assert list(first.x) == xs
    level = next(series for series in chart.series if series.name.startswith("ideal"))
    if key == "k":
        # A scheme without the parameter is a horizontal line over the whole axis.
        assert list(level.x) == [xs[0], xs[-1]]
        assert level.y[0] == level.y[1]


def test_another_key_is_the_curves_of_one_chart(out: Path) -> None:
    (chart,) = figures.charts([out], "sweep", chart="mean slowdown against", against="buffer", curves="link_delay")
    assert {"ideal (max-min), link_delay 1us", "dctcp, k 5, link_delay 2us"} < {one.name for one in chart.series}
    assert len(chart.series) == 8
    charts = figures.charts([out], "sweep", chart="mean slowdown against", against="buffer", curves="k")
    assert [len(chart.series) for chart in charts] == [4, 4]
    assert {one.name for one in charts[0].series} >= {"dctcp, k 5", "dctcp, k 65"}
    assert len({one.slot for one in charts[0].series}) == 4


def test_the_command_and_the_report_draw_them(subak: Subak, out: Path, tmp_path: Path) -> None:
    words = ("--what", "sweep", "--against", "params.k", "--chart", "mean slowdown", "--output", tmp_path / "k.png")
    assert subak("plot", out, *words).code == 0
    for name, said in (("bufer", "choose one of: network.buffer"), ("hosts", "is not a swept number")):
        ended = subak("plot", out, "--what", "sweep", "--against", name)
        assert ended.code == 2
        assert said in ended.err
    assert subak("plot", out, "--what", "cdf", "--against", "buffer").code == 2
    assert subak("plot", out, "--what", "sweep", "--against", "buffer", "--curves", "buffer").code == 2
    page = build([out])
    for title in ("against buffer", "against k", "against link_delay"):
        assert title in page


def test_results_plot_takes_any_axis(out: Path) -> None:
    results = package.Results(out)
    assert results.plot("slowdown_mean").get_xlabel() == "buffer, bytes"
    axes = results.plot("slowdown_mean", against="k")
    assert axes.get_xlabel() == "k, packets"
    with pytest.raises(InputError, match="choose one of"):
        results.plot("slowdown_mean", against="depth")


def test_bars_end_at_the_least_that_there_is() -> None:
    stats = [{"mean": 1.2, "ci95": 2.0}, {"mean": 5.0, "ci95": 0.5}, {"mean": 3.0, "ci95": None}]
    assert _bars(stats, "slowdown_mean") == [[pytest.approx(0.2), 0.5, 0.0], [2.0, 0.5, 0.0]]
    assert _bars(stats, "utilization")[0] == [pytest.approx(1.2), 0.5, 0.0]


@pytest.mark.skipif(browser() is None, reason="no chromium on this machine; as root, `make chromium` installs it")
def test_no_head_of_a_column_breaks_inside_a_word(out: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(build([out]))
    assert asked(page, tmp_path, "report_words.js", 1280) == []


@pytest.mark.parametrize(
    ("section", "key", "values"),
    [
        ("network", "hosts", [4, 5, 4]),
        ("network", "hosts", [4, 4.0]),
        ("network", "buffer", ["50KB", "50000"]),
        ("network", "buffer", ["50KB", 50000]),
        ("network", "rate", ["1Gbps", "1000 Mbps"]),
        ("run", "duration", ["1ms", "1000us"]),
        ("scheme", "k", ["10KB", 10000]),
    ],
)
def test_equal_values_of_a_sweep_are_refused(tmp_path: Path, section: str, key: str, values: list[Any]) -> None:
    spec: dict[str, Any] = {
        "network": {"kind": "star", "hosts": 4},
        "workload": {"kind": "incast", "senders": 2, "size": "10KB"},
        "scheme": [{"name": "dctcp"}],
        "run": {"duration": "1ms"},
    }
    if section == "scheme":
        spec["scheme"][0]["params"] = {key: values}
    else:
        spec[section][key] = values
    with pytest.raises(InputError, match=rf"{key}: the values .* of the sweep are equal; "):
        package.run(spec, tmp_path / "out", progress=False)


def test_values_of_a_sweep_that_differ_run(tmp_path: Path) -> None:
    spec = {
        "network": {"kind": "star", "hosts": 4, "buffer": ["50KB", "50KiB"]},
        "workload": {"kind": "incast", "senders": 2, "size": "10KB"},
        "scheme": [{"name": "ideal"}],
        "run": {"duration": "1ms"},
    }
    assert len(package.run(spec, tmp_path / "out", progress=False).manifest["trials"]) == 2
