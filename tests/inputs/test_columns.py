"""Flows in columns (files and frames) have the same answers, and the same errors at the same places, as a list of
flows."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import subak as sb
from conftest import Subak

NETWORK = {"kind": "leaf-spine", "leaves": 3, "spines": 2, "hosts_per_leaf": 4}
HOSTS = [f"h{i}" for i in range(12)]
PATHS = [
    ["h0->leaf0", "leaf0->spine1", "spine1->leaf2", "leaf2->h8"],
    ["h4->leaf1", "leaf1->h5"],
    ["h1->leaf0", "leaf0->h2"],
]


def flows(rng: random.Random, keys: list[str]) -> list[dict[str, Any]]:
    """Random flows; `keys` are the keys that flows may have besides their ends."""
    listed = []
    for i in range(rng.randrange(1, 60)):
        if "path" in keys:
            flow: dict[str, Any] = {"path": rng.choice(PATHS)}
        else:
            flow = dict(zip(("src", "dst"), rng.sample(HOSTS, 2), strict=True))
        some = {
            "id": f"flow {i}",
            "weight": rng.choice([0.5, 1, 3, 1e-3]),
            "demand": rng.choice([1e9, 250e6, 12345.678, 7]),
            "size": rng.randrange(1, 10**7),
            "deadline": rng.random() + 0.001,
            "subflows": rng.randrange(1, 4),
        }
        for key in keys:
            if key in some and (key in ("id", "size", "deadline") or rng.random() < 0.7):
                flow[key] = some[key]
        listed.append(flow)
    return listed


def told(answer: sb.Answer) -> Any:
    """The whole answer, without the time that the solver took."""
    document = json.loads(answer.to_json())
    del document["seconds"]
    return document


def columns(listed: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = list(dict.fromkeys(key for flow in listed for key in flow))
    return {name: [flow.get(name) for flow in listed] for name in names}


def forms(folder: Path, table: pa.Table) -> list[Any]:
    """The flows of a table in each form that is accepted as columns: files beside the network, and frames."""
    parquet, arrow = folder / "flows.parquet", folder / "flows.arrow"
    pa.parquet.write_table(table, parquet, compression="zstd", row_group_size=7)
    pa.feather.write_feather(table, str(arrow))
    case = {"network": NETWORK, "flows": {"file": str(parquet)}}
    return [
        {"flows": table},
        {"flows": table.to_pandas()},
        {"flows": pl.DataFrame(table)},
        {"flows": pa.concat_tables([table.slice(0, 1), table.slice(1)])},
        {"flows": {"file": parquet}},
        {"flows": {"file": str(arrow)}},
        {"case": case},
    ]


KEYS = [
    [],
    ["id"],
    ["weight", "demand"],
    ["id", "weight", "demand"],
    ["path", "id", "demand"],
    ["path"],
    ["subflows", "weight"],
    ["size", "id"],
    ["deadline"],
]


@pytest.mark.parametrize("keys", KEYS, ids="+".join)
def test_columns_are_the_flows_of_a_list(tmp_path: Path, keys: list[str]) -> None:
    rng = random.Random(str(keys))
    network = network_of(tmp_path)
    kind = "fct" if "size" in keys else "edf" if "deadline" in keys else rng.choice(["max-min", "alpha-fair"])
    policy = {"kind": kind, **({"alpha": 2} if kind == "alpha-fair" else {})}
    for _ in range(3):
        listed = flows(rng, keys)
        wanted = told(sb.solve(network, flows=listed, policy=policy))
        for form in forms(tmp_path, pa.table(columns(listed))):
            if "case" in form:
                found = sb.solve({**form["case"], "policy": policy})
            else:
                found = sb.solve(network, flows=form["flows"], policy=policy)
            assert told(found) == wanted, form


def network_of(folder: Path) -> sb.Network:
    (folder / "network.json").write_text(json.dumps(NETWORK))
    return sb.Network.from_file(folder / "network.json")


def test_words_for_numbers_units_and_names_of_columns_of_results(tmp_path: Path) -> None:
    network = network_of(tmp_path)
    ends = {"src": ["h0", "h1", "h0"], "dst": ["h5", "h6", "h7"]}
    wanted = [{"src": s, "dst": d, "demand": x} for s, d, x in zip(*ends.values(), ["2Mbps", 3e6, None], strict=True)]
    wanted[2].pop("demand")
    exact = told(sb.solve(network, flows=wanted))
    assert told(sb.solve(network, flows=pa.table({**ends, "demand": ["2Mbps", "3Mbps", None]}))) == exact
    path = tmp_path / "flows.parquet"
    pa.parquet.write_table(pa.table({**ends, "demand": [2, 3, None]}), path)
    assert told(sb.solve(network, flows={"file": path, "unit": "Mbps"})) == exact
    assert told(sb.solve({"network": NETWORK, "flows": {"file": str(path), "unit": "Mbps"}})) == exact
    coded = pa.table({name: pa.array(column).dictionary_encode() for name, column in ends.items()})
    assert told(sb.solve(network, flows=coded)) == told(sb.solve(network, flows=pa.table(ends)))

    listed = [{"src": "h0", "dst": "h5", "size": 7000, "deadline": "20us"}]
    named = pa.table({"src": ["h0"], "dst": ["h5"], "size_bytes": [7000], "deadline_ns": [20_000]})
    for kind in ("fct", "edf"):
        assert told(sb.solve(network, flows=named, policy=kind)) == told(sb.solve(network, flows=listed, policy=kind))

    links = [{"id": "a", "from": "1", "to": "2", "capacity": 5e9}]
    numbered = pd.DataFrame({"src": [1], "dst": [2]})
    assert sb.solve(sb.Network.from_links(links), flows=numbered).status == "optimal"


GOOD = {"id": ["f", "g", "h"], "src": ["h0", "h1", "h2"], "dst": ["h5", "h6", "h7"]}


@pytest.mark.parametrize(
    ("change", "place", "what"),
    [
        ({"src": ["h0", "h77", "h2"]}, "flows[1].src", 'there is no node "h77"'),
        ({"src": ["h0", None, "h2"]}, "flows[1].src", '"src" is missing'),
        ({"dst": ["h5", "h6", "h2"]}, "flows[2].dst", None),
        ({"id": ["f", "g", "f"]}, "flows[2].id", 'flows[0] has the id "f" already'),
        ({"weight": [1.0, 0.0, 1.0]}, "flows[1].weight", "the weight is zero"),
        ({"weight": [1.0, -2.0, 1.0]}, "flows[1].weight", None),
        ({"demand": [1e9, float("inf"), 1e9]}, "flows[1].demand", None),
        ({"demand": ["1Gbps", "much", "1"]}, "flows[1].demand", None),
        ({"subflows": [1, 2.5, 1]}, "flows[1].subflows", None),
        ({"wait": [1, 2, 3]}, "flows", "unknown column"),
        ({"path": [["h0->leaf0"]] * 3}, "flows[0].path", None),
    ],
)
def test_faults_have_the_places_of_a_list(tmp_path: Path, change: dict[str, Any], place: str, what: str | None) -> None:
    table = pa.table({**GOOD, **change})
    with pytest.raises(sb.InputError) as frame:
        sb.solve(network_of(tmp_path), flows=table)
    assert frame.value.place.startswith(place), frame.value
    assert what is None or what in frame.value.what, frame.value
    pa.parquet.write_table(table, tmp_path / "flows.parquet")
    (tmp_path / "case.json").write_text(json.dumps({"network": NETWORK, "flows": {"file": "flows.parquet"}}))
    with pytest.raises(sb.InputError) as file:
        sb.solve(tmp_path / "case.json")
    assert file.value.place.startswith("flows"), file.value


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ([["h0->leaf0", "leaf0->h0"], PATHS[1]], None),
        ([PATHS[0], []], "the path has no link"),
        ([PATHS[0], None], "the flow has no path"),
        ([PATHS[0], ["h4->leaf1", "leaf9->h5"]], 'there is no link "leaf9->h5"'),
        ([PATHS[0], ["h4->leaf1", "h4->leaf1"]], None),
        ([PATHS[0], ["h4->leaf1", "leaf2->h8"]], "leaves"),
    ],
)
def test_paths_in_lists_are_held_against_the_network(tmp_path: Path, path: Any, what: str | None) -> None:
    network = network_of(tmp_path)
    said = []
    for given in (
        pa.table({"path": pa.array(path, pa.list_(pa.string()))}),
        [{"path": links} if links is not None else {} for links in path],
    ):
        try:
            said.append(told(sb.solve(network, flows=given)))
        except sb.InputError as error:
            said.append(str(error))
    assert said[0] == said[1]
    assert what is None or what in said[0]


def test_files_that_cannot_be_read_are_named(subak: Subak, tmp_path: Path) -> None:
    good = tmp_path / "good.parquet"
    pa.parquet.write_table(pa.table(GOOD), good)
    data = good.read_bytes()
    bad = {
        "missing.parquet": None,
        "empty.parquet": b"",
        "text.parquet": b"src,dst\nh0,h1\n",
        "cut.parquet": data[: len(data) // 2],
        "turned.parquet": data[:40] + bytes(255 - byte for byte in data[40:80]) + data[80:],
        "text.arrow": b"src,dst\nh0,h1\n",
    }
    (tmp_path / "folder.parquet").mkdir()
    for name, content in {**bad, "folder.parquet": None}.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        (tmp_path / "case.json").write_text(json.dumps({"network": NETWORK, "flows": {"file": name}}))
        done = subak("solve", "case.json", cwd=tmp_path)
        assert done.code == 2, (name, done)
        assert done.err.startswith("subak: case.json: flows"), done.err
        assert name in done.err
        assert len(done.err.splitlines()) < 4, done.err
    strange = pa.table({"src": ["h0"], "dst": ["h1"], "weight": [[1.0]]})
    pa.parquet.write_table(strange, good)
    (tmp_path / "case.json").write_text(json.dumps({"network": NETWORK, "flows": {"file": "good.parquet"}}))
    done = subak("solve", "case.json", cwd=tmp_path)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert 'the column "weight" holds list' in done.err


def test_an_answer_is_written_in_columns(subak: Subak, tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table(GOOD), tmp_path / "flows.parquet")
    (tmp_path / "case.json").write_text(json.dumps({"network": NETWORK, "flows": {"file": "flows.parquet"}}))
    answer = sb.solve(tmp_path / "case.json")
    for name, read in (("rates.parquet", pa.parquet.read_table), ("rates.arrow", pa.feather.read_table)):
        done = subak("solve", "case.json", "--output", name, cwd=tmp_path)
        assert done.code == 0, done.err
        table = read(tmp_path / name)
        assert table.to_pylist() == pa.table(answer.flows).to_pylist()
        meta = json.loads(table.schema.metadata[b"subak"])
        assert (meta["status"], meta["certificate"]) == ("optimal", answer.certificate)
    assert subak("solve", "case.json", "--output", "rates.csv", cwd=tmp_path).code == 0
    with (tmp_path / "rates.csv").open() as file:
        rows = list(csv.DictReader(file))
    flows = pa.table(answer.flows).to_pylist()
    assert [(row["id"], float(row["rate_bps"])) for row in rows] == [(flow["id"], flow["rate_bps"]) for flow in flows]
    assert [json.loads(row["paths"]) for row in rows] == [flow["paths"] for flow in flows]
    done = subak("solve", "case.json", "--output", "none/rates.parquet", cwd=tmp_path)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "cannot be written" in done.err


@pytest.mark.parametrize(
    ("command", "endings"),
    [
        (("solve", "case.json", "--output", "a.toml"), ".json or .csv or .parquet or .arrow or .feather"),
        (("solve", "case.json", "--structure", "1", "--picture", "a.png"), ".svg"),
        (("fit", "l2l3-simple", "--output", "a.csv"), ".json"),
        (("fit", "l2l3-simple", "--graph", "a.pdf"), ".svg"),
        (("fit", "l2l3-simple", "--report", "a.json"), ".html or .htm"),
        (("report", "out", "--output", "a.pdf"), ".html or .htm"),
        (("export", "out", "--output", "a.parquet"), ".csv"),
        (("export", "out", "--pcapng", "--output", "a.pcap"), ".pcapng"),
        (("plot", "out", "--format", "png", "--output", "a.svg"), ".png"),
        (("schema", "spec", "--output", "a.toml"), ".json"),
    ],
)
def test_a_file_of_another_ending_is_refused(
    subak: Subak, tmp_path: Path, command: tuple[str, ...], endings: str
) -> None:
    (tmp_path / "case.json").write_text(json.dumps({"network": NETWORK, "flows": [{"src": "h0", "dst": "h1"}]}))
    done = subak(*command, cwd=tmp_path)
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert f"would not hold what its ending says; name a file that ends with {endings}" in re.sub(
        ' "[.a-z]+"', "", done.err
    )
    assert not list(tmp_path.glob("a.*"))


def test_a_hundred_thousand_flows_with_ids_in_columns(tmp_path: Path) -> None:
    rng = random.Random(5)
    count = 100_000
    ends = [rng.sample(HOSTS, 2) for _ in range(count)]
    table = pa.table(
        {
            "id": [f"f{i}" for i in range(count)],
            "src": [src for src, _ in ends],
            "dst": [dst for _, dst in ends],
            "demand": [rng.choice([1e5, 1e6, None]) for _ in range(count)],
        }
    )
    answer = sb.solve(network_of(tmp_path), flows=table)
    assert (answer.status, len(answer.flows)) == ("optimal", count)
    assert pa.table(answer.flows)["id"].to_pylist() == table["id"].to_pylist()


def test_a_flow_may_name_its_ends_where_others_have_a_path(tmp_path: Path) -> None:
    listed: list[dict[str, Any]] = [{"path": PATHS[1]}, {"src": "h2", "dst": "h9"}]
    table = pa.table({"path": [PATHS[1], None], "src": [None, "h2"], "dst": [None, "h9"]})
    network = network_of(tmp_path)
    assert told(sb.solve(network, flows=table)) == told(sb.solve(network, flows=listed))


def test_categories_and_counts_beside_empty_cells(tmp_path: Path) -> None:
    network = network_of(tmp_path)
    wanted = told(sb.solve(network, flows=pa.table(GOOD)))
    frame = pl.DataFrame(GOOD)
    ends = pl.Enum(HOSTS)
    for form in (
        frame.cast(pl.Categorical),
        frame.with_columns(pl.col("src").cast(ends), pl.col("dst").cast(ends)),
        pd.DataFrame(GOOD).astype("category"),
    ):
        assert told(sb.solve(network, flows=form)) == wanted
    frame.cast(pl.Categorical).write_ipc(tmp_path / "flows.arrow")
    assert told(sb.solve(network, flows={"file": tmp_path / "flows.arrow"})) == wanted
    counted = pd.DataFrame({**GOOD, "subflows": [2, None, 1], "bandwidth_function": [[[0, 0], [1, 1e9]]] * 3})
    assert sb.solve(network, flows=counted, policy="bandwidth-function").status == "optimal"


def test_arrow_streams_and_names_like_addresses(tmp_path: Path) -> None:
    table = pa.table(GOOD)
    with pa.ipc.new_stream(str(tmp_path / "flows.arrow"), table.schema) as stream:
        stream.write_table(table)
    pa.parquet.write_table(table, pa.OSFile(str(tmp_path / "file:x.parquet"), "wb"))
    network = network_of(tmp_path)
    wanted = told(sb.solve(network, flows=table))
    for name in ("flows.arrow", "file:x.parquet"):
        (tmp_path / "case.json").write_text(json.dumps({"network": NETWORK, "flows": {"file": name}}))
        assert told(sb.solve(tmp_path / "case.json")) == wanted


def refused(subak: Subak, folder: Path, name: str) -> str:
    (folder / "case.json").write_text(json.dumps({"network": NETWORK, "flows": {"file": name}}))
    done = subak("solve", "case.json", cwd=folder)
    assert (done.code, done.err.count("\n")) == (2, 1), done
    assert done.err.startswith("subak: case.json: flows.file: "), done.err
    return done.err


def test_files_that_claim_what_they_do_not_hold(subak: Subak, tmp_path: Path) -> None:
    """Files whose headers claim more data than they have. The first one once ended the process by a signal."""
    pa.feather.write_feather(pa.table(GOOD), str(tmp_path / "flows.arrow"), compression="uncompressed")
    data = (tmp_path / "flows.arrow").read_bytes()
    offsets = b"".join(n.to_bytes(4, "little") for n in (0, 2, 4, 6))
    assert data.count(offsets) >= 2
    (tmp_path / "flows.arrow").write_bytes(data.replace(offsets, offsets[:8] + b"\xff\xff\xff\x7f" + offsets[12:]))
    assert "cannot be read as a table" in refused(subak, tmp_path, "flows.arrow")
    pa.feather.write_feather(pa.table({"weight": pa.nulls(20_000_001)}), str(tmp_path / "many.arrow"))
    assert "give at most 20000000 flows" in refused(subak, tmp_path, "many.arrow")
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000_001, pa.int8()), pa.array(["h0"]))
    pa.parquet.write_table(pa.table({"src": repeated}), tmp_path / "many.parquet")
    assert "give at most 20000000 flows" in refused(subak, tmp_path, "many.parquet")
    twice = pa.Table.from_arrays([pa.array(["h0"])] * 2, names=["src", "src"])
    pa.feather.write_feather(twice, str(tmp_path / "twice.arrow"))
    assert 'the column "src" is there twice' in refused(subak, tmp_path, "twice.arrow")
    for name in ("pipe.arrow", "pipe.parquet"):
        os.mkfifo(tmp_path / name)
        assert "is not a regular file" in refused(subak, tmp_path, name)


def test_damaged_files_end_in_a_fault(tmp_path: Path) -> None:
    script = """
import random, sys
import subak as sb
from subak import columns
network = sb.Network.from_file(sys.argv[1])
for name in sys.argv[2:]:
    data, rng = open(name, "rb").read(), random.Random(name[-8:])
    for turn in range(150):
        spoilt = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            spoilt[rng.randrange(len(data))] = rng.randrange(256)
        open(name, "wb").write(spoilt if turn % 3 else spoilt[: rng.randrange(len(data))])
        try:
            sb.solve(network, flows={"file": name})
        except sb.InputError:
            pass
print("done")
"""
    network_of(tmp_path)
    table = pa.table({**GOOD, "demand": [1e9, None, 2e9]})
    paths = pa.table({"path": [PATHS[0], PATHS[1]]})
    names = []
    for kind, given in (("flows", table), ("paths", paths)):
        names += [f"{kind}.parquet", f"{kind}.arrow", f"{kind}.feather"]
        pa.parquet.write_table(given, tmp_path / names[-3])
        pa.feather.write_feather(given, str(tmp_path / names[-2]), compression="uncompressed")
        pa.feather.write_feather(given, str(tmp_path / names[-1]), compression="lz4")
    words = [sys.executable, "-c", script, "network.json", *names]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout == "done\n", (done.returncode, done.stderr)
