"""A researcher's second hour, from the documentation alone: data frames of other tools, faults, packet spraying,
figures."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import subak
from browser import asked, browser
from conftest import Subak

TRANSPORT = {"kind": "leaf-spine", "leaves": 3, "spines": 3, "hosts_per_leaf": 2, "host_rate": "10Gbps"}
ODD = r"<b>&\"x'_$1% #~^{} \\"
FLOWS = pd.DataFrame({"src": ["h0", "h1", "h2"], "dst": ["h5", "h5", "h4"], "weight": [1, 3, 2]})


@pytest.fixture(name="cli")
def _cli(request: pytest.FixtureRequest) -> Subak:
    """The command, under a name that differs from the package's."""
    return request.getfixturevalue("subak")


@pytest.fixture(scope="module")
def network() -> subak.Network:
    return subak.Network.generate("leaf-spine", leaves=3, spines=3, hosts_per_leaf=2, host_rate="10Gbps")


# Tables.


@pytest.mark.parametrize("order", [[2, 0, 1], [0, 2], [1, 1]])
def test_a_frame_that_was_sorted_filtered_or_joined_is_a_table_still(network: subak.Network, order: list[int]) -> None:
    there = FLOWS.iloc[order]
    plain = subak.solve(network, flows=there.reset_index(drop=True)).to_numpy()["rate_bps"]
    assert subak.solve(network, flows=there).to_numpy()["rate_bps"] == pytest.approx(plain)


def test_so_are_links_that_were_sorted() -> None:
    links = pd.DataFrame({"from": list("abc"), "to": list("bcd"), "capacity": [1e9, 2e9, 3e9]})
    found = subak.Network.from_links(links.sort_values("capacity", ascending=False))
    assert subak.solve(found, flows={"src": ["a"], "dst": ["d"]}).to_numpy()["rate_bps"] == pytest.approx([1e9])


@pytest.mark.parametrize("kind", ["category", "string", "object"])
def test_text_of_any_kind_names_nodes(network: subak.Network, kind: str) -> None:
    flows = FLOWS.astype({"src": kind, "dst": kind})
    assert subak.solve(network, flows=flows).to_numpy()["rate_bps"] == pytest.approx([2.5e9, 7.5e9, 1e10])


def test_two_columns_of_one_name_are_refused(network: subak.Network) -> None:
    twice = pa.table([pa.array(["h0"]), pa.array(["h5"]), pa.array(["h4"])], names=["src", "dst", "dst"])
    with pytest.raises(subak.InputError, match="dst"):
        subak.solve(network, flows=twice)


def test_a_size_given_twice_is_refused(tmp_path: Path) -> None:
    flows = {"src": ["h0"], "dst": ["h1"], "size": ["10kB"], "size_bytes": [1]}
    spec = {"network": {"kind": "star", "hosts": 2}, "workload": {"kind": "steps", "flows": flows}}
    with pytest.raises(subak.InputError, match="size"):
        subak.run(spec | {"scheme": [{"name": "ideal"}], "run": {"duration": "1ms"}}, tmp_path / "out", progress=False)


@pytest.mark.parametrize("way", ["to_pandas", "to_polars", "to_numpy"])
def test_every_table_goes_every_way(network: subak.Network, way: str) -> None:
    answer = subak.solve(network, flows=FLOWS)
    for table in (answer, answer.flows, answer.links):
        assert len(getattr(table, way)()) > 0


def filled(capacity: dict[str, float], paths: list[list[str]], weight: list[float]) -> np.ndarray:
    """Weighted max-min by the textbook's water filling."""
    rates = np.zeros(len(paths))
    left, running = dict(capacity), set(range(len(paths)))
    while running:
        share = {k: left[k] / sum(weight[i] for i in on) for k in left if (on := [i for i in running if k in paths[i]])}
        level = min(share.values())
        full = {k for k in share if share[k] <= level * (1 + 1e-12)}
        done = {i for i in running if full & set(paths[i])}
        for i in done:
            rates[i] = level * weight[i]
            for k in paths[i]:
                left[k] -= rates[i]
        running -= done
    return rates


def test_upgrades_are_what_solving_again_says() -> None:
    draw = np.random.default_rng(5)
    names = [f"l{i}" for i in range(5)]
    for _ in range(25):
        capacity = {name: float(draw.choice([1e9, 2e9, 3e9, 5e9])) for name in names}
        paths = [[str(k) for k in draw.choice(names, size=draw.integers(1, 4), replace=False)] for _ in range(6)]
        weight = [float(draw.integers(1, 4)) for _ in paths]
        links = subak.Network.from_links([{"id": k, "capacity": c} for k, c in capacity.items()])
        flows = [{"path": path, "weight": w} for path, w in zip(paths, weight, strict=True)]
        ranked = subak.upgrades(links, flows=flows).to_pylist()
        assert [row["gain_bps"] for row in ranked] == sorted((row["gain_bps"] for row in ranked), reverse=True)
        before, found = filled(capacity, paths, weight), {row["id"]: row for row in ranked}
        for name in names:
            after = filled(capacity | {name: 2 * capacity[name]}, paths, weight)
            row = found.get(name, {"gain_bps": 0, "least_rate_gain_bps": 0, "flows_up": 0, "flows_down": 0})
            assert row["gain_bps"] == pytest.approx((after - before).sum(), rel=1e-6, abs=10)
            assert row["least_rate_gain_bps"] == pytest.approx(after.min() - before.min(), rel=1e-6, abs=10)
            assert row["flows_up"] == (after > before * (1 + 1e-9)).sum()
            assert row["flows_down"] == (after < before * (1 - 1e-9)).sum()


# Faults.


def under(fault: dict[str, Any], out: Path, seeds: int = 1, **how: Any) -> subak.Results:
    pairs = [(a, b) for a in range(6) for b in range(6) if a // 2 != b // 2]
    flows = [{"id": f"{a}.{b}.{k}", "src": f"h{a}", "dst": f"h{b}"} for a, b in pairs for k in range(6)]
    spec = {"network": TRANSPORT, "workload": {"kind": "steps", "flows": flows}, "scheme": [{"name": "dctcp"}]}
    spec |= {"fault": [{"kind": "down"} | fault], "measure": {"queues": "50us"}}
    return subak.run(spec | {"run": {"duration": "6ms", "seeds": seeds}}, out, progress=False, **how)


def silent(results: subak.Results, begin_us: int, end_us: int, seed: int = 1) -> set[str]:
    """Links between switches that sent nothing in the period."""
    rows = results.to_pandas("queue")
    rows = rows[(rows.seed == seed) & (rows.time_ns > begin_us * 1000) & (rows.time_ns <= end_us * 1000)]
    sent = rows.groupby("link").data_bytes.sum()
    return {link for link in sent.index[sent == 0] if "h" not in link}


def both(*links: str) -> set[str]:
    return {*links, *("->".join(reversed(link.split("->"))) for link in links)}


def test_a_node_is_silent_in_both_directions_and_comes_back(tmp_path: Path) -> None:
    results = under({"node": "spine0", "down": "2ms", "up": "4ms"}, tmp_path / "out")
    assert silent(results, 2_100, 4_000) == both(*(f"leaf{i}->spine0" for i in range(3)))
    assert silent(results, 1_000, 2_000) == set()
    assert silent(results, 4_000, 6_000) == set()


def test_a_link_that_flaps_is_silent_when_it_says(tmp_path: Path) -> None:
    fault = {"link": "leaf0->spine1", "down": "2ms", "up": "4.2ms", "period": "1ms", "lasts": "400us"}
    results = under(fault, tmp_path / "out")
    for begin in (2_000, 3_000):
        assert silent(results, begin + 50, begin + 400) == both("leaf0->spine1")
        assert silent(results, begin + 400, begin + 1_000) == set()
    assert silent(results, 4_050, 4_200) >= both("leaf0->spine1")
    assert silent(results, 4_200, 6_000) == set()


def test_a_share_is_of_the_seed_and_of_nothing_else(tmp_path: Path) -> None:
    fault = {"share": 0.1, "down": "2ms", "up": "4ms"}
    whole = under(fault, tmp_path / "whole", seeds=4)
    drawn = {seed: silent(whole, 2_100, 4_000, seed) for seed in range(1, 5)}
    assert all(len(links) == 2 and links == both(*links) for links in drawn.values())
    assert len({frozenset(links) for links in drawn.values()}) > 1
    under(fault, tmp_path / "grown", seeds=2)
    under(fault, tmp_path / "grown", seeds=4, jobs=2)
    under(fault, tmp_path / "one", seeds=4, trial=3)
    table, trial = "results.parquet", "trials/3.parquet"
    assert (tmp_path / "grown" / table).read_bytes() == (tmp_path / "whole" / table).read_bytes()
    assert (tmp_path / "one" / trial).read_bytes() == (tmp_path / "whole" / trial).read_bytes()


# Packet spraying.


def spread(tmp_path: Path, scheme: dict[str, Any], kind: str, spines: list[tuple[str, str]]) -> subak.Results:
    """Eight flows between two leaf switches, over spine switches with these capacities and delays."""
    ends = [(f"h{i}", f"leaf{i // 4}", "10Gbps", "1us") for i in range(8)]
    ends += [(f"leaf{i}", f"spine{k}", *spine) for i in range(2) for k, spine in enumerate(spines)]
    ways = [end for a, b, *of in ends for end in ((a, b, *of), (b, a, *of))]
    links = [dict(zip(("from", "to", "capacity", "delay"), way, strict=True)) for way in ways]
    there = [{"src": f"h{i}", "dst": f"h{4 + (i + 1) % 4}", "size": 300_000, "start": i * 1e-5} for i in range(4)]
    back = [{"src": f"h{4 + i}", "dst": f"h{i}", "size": 50_000, "start": 5e-5} for i in range(4)]
    spec = {"network": {"links": links}, "workload": {"kind": "steps", "flows": there + back}, "scheme": [scheme]}
    spec |= {"routing": {"kind": kind}, "run": {"duration": "40ms"}}
    results = subak.run(spec, tmp_path / "out", progress=False)
    rows = results.to_pandas("flow")
    assert rows.fct_ns.notna().all()
    assert (rows.received_bytes == rows.size_bytes).all()
    return results


@pytest.mark.parametrize("scheme", ["dctcp", "reno", "soze", "wrr", "xcp", "pfabric", "google-swift", "s-perc-star"])
@pytest.mark.parametrize("kind", ["spray", "flowlet"])
def test_on_equal_spines_no_order_is_a_loss(tmp_path: Path, scheme: str, kind: str) -> None:
    rows = spread(tmp_path, {"name": scheme}, kind, [("40Gbps", "1us")] * 3).to_pandas("flow")
    assert (rows.retransmissions.sum(), rows.drops.sum()) == (0, 0)


UNEQUAL = {"slow": [("10Gbps", "1us")] * 2 + [("5Gbps", "1us")], "far": [("40Gbps", "1us")] * 2 + [("40Gbps", "20us")]}


@pytest.mark.parametrize("scheme", ["dctcp", "wrr", "soze", "s-perc-star"])
@pytest.mark.parametrize("spines", UNEQUAL.values(), ids=UNEQUAL)
def test_on_unequal_spines_no_order_is_a_loss(tmp_path: Path, scheme: str, spines: list[tuple[str, str]]) -> None:
    rows = spread(tmp_path, {"name": scheme}, "spray", spines).to_pandas("flow")
    assert rows.drops.sum() == 0
    # Of 970 packets; Soze's window fills the slow spine's queue for longer than an RTO.
    assert rows.retransmissions.sum() <= (10 if scheme == "soze" else 2)


@pytest.mark.parametrize("scheme", ["hpcc", "timely", "dcqcn"])
def test_a_scheme_that_spraying_ruins_is_told_of(tmp_path: Path, scheme: str) -> None:
    chosen = {"name": scheme, "params": {"recovery": "selective"}}
    if scheme == "hpcc":
        with pytest.raises(subak.InputError, match=r"routing\.kind.*several paths"):
            spread(tmp_path, chosen, "spray", [("40Gbps", "1us")] * 3)
        return
    results = spread(tmp_path, chosen, "spray", [("40Gbps", "1us")] * 3)
    slow = results.to_pandas("flow").slowdown.max() > 20
    assert not slow or any(warning["kind"] == "spread" for warning in results.warnings)


# Messages.


SPEC = """network = {kind = "leaf-spine", leaves = 2, spines = 2, hosts_per_leaf = 2}
workload = {kind = "steps", flows = [{src = "h0", dst = "h2", size = "1MB"SUB}, {src = "h1", dst = "h3"}]}
scheme = [{name = "dctcp", label = "LABEL"}, {name = "ideal"}]
routing = {kind = ROUTING}
measure = {rates = "100us", queues = "100us"}
run = {duration = "3ms"}
"""


def written(folder: Path, sub: str = "", label: str = "dctcp", routing: str = '"ecmp"', size: str = "") -> Path:
    text = SPEC.replace("SUB", sub).replace("LABEL", label).replace("ROUTING", routing)
    (folder / "spec.toml").write_text(text.replace(', size = "1MB"', "") if size == "none" else text)
    return folder / "spec.toml"


def test_two_tables_scheme_are_told_of_the_list(cli: Subak, tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text('[network]\nkind = "star"\nhosts = 2\n[scheme]\nname = "dctcp"\n[scheme]\nname = "ideal"\n')
    done = cli("run", str(spec), "--out", str(tmp_path / "out"))
    assert done.code == 2
    assert "[[scheme]]" in done.err


def test_all_that_a_scheme_lacks_is_asked_for_at_once(cli: Subak, tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(written(tmp_path).read_text().replace('{name = "ideal"}', '{name = "flowtune"}'))
    done = cli("run", str(spec), "--out", str(tmp_path / "out"))
    assert done.code == 2
    assert "policy" in done.err
    assert "controller" in done.err


def test_hundreds_of_lines_about_one_cause_are_counted(cli: Subak, tmp_path: Path) -> None:
    rows = "".join(f"0,h0,host{i},10\n" for i in range(300))
    (tmp_path / "flows.csv").write_text("start,src,dst,size\n" + rows)
    spec = tmp_path / "spec.toml"
    trace = 'network = {kind = "star", hosts = 2}\nworkload = {kind = "trace", file = "flows.csv"}\n'
    spec.write_text(trace + 'scheme = [{name = "ideal"}]\nrun = {duration = "1ms"}\n')
    done = cli("run", str(spec), "--out", str(tmp_path / "out"))
    assert done.code == 2
    assert len(done.err.splitlines()) < 20 or re.search(r"\b(250|299|300) (more|others|lines|rows)", done.err)


def test_in_python_a_trial_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(subak.InputError, match="subflows"):
        subak.run(written(tmp_path, sub=", subflows = 2", routing='["ecmp", "spray"]'), tmp_path / "out")
    results = subak.run(written(tmp_path), tmp_path / "out", progress=False)
    (results.folder / "results.parquet").unlink()
    for trial in results.manifest["trials"]:
        trial |= {"status": "failed", "error": "the moon was in the way"}
    with pytest.raises(subak.InputError, match="2 of 2 failed, trial 0: the moon was in the way"):
        results.to_pandas("flow")


def test_without_a_size_nobody_is_told_to_measure_completion_times(cli: Subak, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    cli("run", str(written(tmp_path, size="none")), "--out", out)
    done = cli("plot", out, "--what", "slowdown", "--output", str(tmp_path / "a.svg"))
    assert done.code == 2
    assert "fct = true" not in done.err


# Figures.


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("odd")
    subak.run(written(folder, label=ODD), folder / "out", progress=False)
    return folder / "out"


def test_a_table_of_latex_escapes_names(cli: Subak, odd: Path, tmp_path: Path) -> None:
    cli("plot", str(odd), "--what", "table", "--output", str(tmp_path / "a.tex"))
    text = (tmp_path / "a.tex").read_text()
    row = next(line for line in text.splitlines() if "x'" in line)
    name = row.split(" & ")[0]
    assert not re.search(r"(?<!\\)[&%$#_]", name)
    assert not re.search("[<>]", name), "these are question and exclamation marks in LaTeX's first font"


def test_a_table_is_latex_and_no_picture(cli: Subak, odd: Path, tmp_path: Path) -> None:
    done = cli("plot", str(odd), "--what", "table", "--output", str(tmp_path / "a.pdf"))
    assert done.code == 2
    assert not (tmp_path / "a.pdf").exists()


def test_a_long_name_stays_in_the_figure(cli: Subak, tmp_path: Path) -> None:
    label = "a name of a scheme that goes on and on and says all of its parameters one by one, and then some more"
    out = tmp_path / "out"
    subak.run(written(tmp_path, label=label), out, progress=False)
    cli("plot", str(out), "--what", "slowdown", "--output", str(tmp_path / "a.svg"))
    drawing = (tmp_path / "a.svg").read_text()
    starts = [float(x) for x in re.findall(r'<text[^>]* x="(-?[\d.]+)"', drawing)]
    assert len(starts) > 5
    assert min(starts) >= 0
    assert max(starts) <= 241


@pytest.mark.skipif(browser() is None, reason="no chromium on this machine; as root, `make chromium` installs it")
@pytest.mark.parametrize("width", [400, 1280])
def test_odd_and_long_names_keep_the_report_in_shape(odd: Path, tmp_path: Path, width: int) -> None:
    page = tmp_path / "report.html"
    subak.report(odd, output=page)
    assert "<b>&" not in page.read_text()
    assert asked(page, tmp_path, "report_overlaps.js", width) == []


@pytest.mark.skipif(browser() is None, reason="no chromium on this machine; as root, `make chromium` installs it")
def test_a_long_name_leaves_the_other_columns_on_the_screen(tmp_path: Path) -> None:
    label = "a very long name of a scheme that goes on and on, with 50% and under_score and {x} and more still"
    subak.run(written(tmp_path, label=label), tmp_path / "out", progress=False)
    subak.report(tmp_path / "out", output=tmp_path / "report.html")
    assert asked(tmp_path / "report.html", tmp_path, "report_overlaps.js", 1280) == []


def test_one_seed_has_no_whisker_where_a_queue_is_empty(tmp_path: Path) -> None:
    spec = {"network": TRANSPORT, "scheme": [{"name": "ideal"}, {"name": "hpcc"}, {"name": "dctcp"}]}
    spec |= {"workload": {"kind": "poisson", "sizes": "web-search", "load": [0.1, 0.7]}, "measure": {"queues": "100us"}}
    subak.run(spec | {"run": {"duration": "4ms"}}, tmp_path / "out", progress=False)
    subak.report(tmp_path / "out", output=tmp_path / "report.html")
    whiskers = re.findall(r'class="whisker[^>]*y1="([\d.]+)"[^>]*y2="([\d.]+)"', (tmp_path / "report.html").read_text())
    assert all(high == low for high, low in whiskers)


# Ctrl-C.


SCRIPT = """import subak, sys
spec = {"network": {"kind": "fat-tree", "k": 4}, "scheme": [{"name": "dctcp"}], "run": {"duration": "30ms", "seeds": 6}}
spec |= {"workload": {"kind": "poisson", "sizes": "web-search", "load": 0.5}}
subak.run(spec, sys.argv[1], jobs=1)
"""


def test_a_script_that_is_interrupted_goes_on_where_it_stopped(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SCRIPT)
    cut, whole = tmp_path / "cut", tmp_path / "whole"
    command = [sys.executable, str(tmp_path / "mine.py")]
    process = subprocess.Popen([*command, str(cut)], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not list(cut.glob("trials/*.parquet")) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    if process.returncode:  # A fast machine may have finished already.
        assert "KeyboardInterrupt" in said
        assert "goes on from there" in said
    for folder in (cut, whole):
        subprocess.run([*command, str(folder)], check=True, timeout=120)
    assert (cut / "results.parquet").read_bytes() == (whole / "results.parquet").read_bytes()
