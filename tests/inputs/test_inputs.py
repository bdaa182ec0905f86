"""Content of third-party files, and keywords, are used, refused by name, or cause a warning."""

import re
import warnings
from pathlib import Path
from typing import Any

import networkx
import pandas
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
import subak
from subak import InputError

HEAD = "start,src,dst,size\n"
ROW = "0,h0,h1,1000\n"
TOPOLOGY = "4 1 3\n0\n0 1 100Gbps 0.001ms 0\n0 2 100Gbps 1us 0\n0 3 100Gbps 1000ns 0\n"
STAR = {"kind": "star", "hosts": 4}
PLAIN = ("h0", "h1", 1000, 0, 1.0)
Flow = tuple[str, str, int, int, float]


def spec_of(network: dict[str, Any], workload: dict[str, Any]) -> dict[str, Any]:
    return {"network": network, "workload": workload, "scheme": [{"name": "ideal"}], "run": {"duration": "2ms"}}


def traced(tmp_path: Path, file: Path, network: dict[str, Any] | None = None, **keys: Any) -> subak.Results:
    workload = {"kind": "trace", "file": str(file), **keys}
    return subak.run(spec_of(network or STAR, workload), tmp_path / "out", progress=False)


def flows_of(results: subak.Results) -> list[Flow]:
    columns = ["src", "dst", "size_bytes", "start_ns", "weight"]
    return [tuple(row.values()) for row in pyarrow.table(results.table("flow", columns)).to_pylist()]


@pytest.mark.parametrize(
    ("text", "flow"),
    [
        (HEAD + ROW, PLAIN),
        ("\ufeff" + HEAD + ROW, PLAIN),
        ((HEAD + ROW).replace("\n", "\r\n"), PLAIN),
        ((HEAD + ROW).replace("\n", "\r"), PLAIN),
        ("start, src, dst, size\n0, h0, h1, 1000\n", PLAIN),
        (HEAD + '"0","h0","h1","1000"\n', PLAIN),
        (HEAD + "\n" + ROW + "\n", PLAIN),
        (HEAD + "1us,h0,h1,1KB\n", ("h0", "h1", 1000, 1000, 1.0)),
        (HEAD + "0,h0,h1,1e3\n", PLAIN),
        (HEAD + "0,0,3,1000\n", ("h0", "h3", 1000, 0, 1.0)),
        ("start_ns,src,dst,size\n2000.0,h0,h1,1000\n", ("h0", "h1", 1000, 2000, 1.0)),
        ("start,src,dst,size,weight\n0,h0,h1,1000,3\n", ("h0", "h1", 1000, 0, 3.0)),
    ],
)
def test_csv_is_used(tmp_path: Path, text: str, flow: Flow) -> None:
    file = tmp_path / "flows.csv"
    file.write_bytes(text.encode())
    assert flows_of(traced(tmp_path, file)) == [flow]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("start,src,dst,size,weigth\n0,h0,h1,1000,3\n", 'line 1: unknown column "weigth"; did you mean "weight"?'),
        ("start,src,dst,size,Deadline\n0,h0,h1,1000,3\n", 'line 1: unknown column "Deadline"'),
        (HEAD.replace(",", ";"), "separated by a semicolon"),
        (HEAD.replace(",", "\t"), "separated by a tab"),
        (HEAD.replace(",", "|"), "separated by a bar"),
        ("start,src,dst,size,id\n0,h0,h1,1000,a\n0,h0,h2,1000,a \n", 'line 3: line 2 has the id "a" already'),
        ("start,src,dst,size,size\n0,h0,h1,1000,2000\n", 'the columns "size" and "size" say the same'),
        ("start,start_ns,src,dst,size\n0,5,h0,h1,1000\n", 'the columns "start" and "start_ns" say the same'),
        ("start_ns,src,dst,size\n2000.5,h0,h1,1000\n", "line 2: start_ns is no whole number"),
        (HEAD + "0,h0,h1,1000.5\n", "line 2: 1000.5 bytes is not a whole number"),
        (HEAD + "0,h0,h1,nan\n", 'line 2: "nan" is not a size'),
        (HEAD + "inf,h0,h1,1000\n", 'line 2: "inf" is not a time'),
        (HEAD + '0,h0,h1,"1,000"\n', "line 2"),
        (HEAD + "0,h0,h1,0\n", "line 2: the size is 0"),
        (HEAD + "0,h0,h0,1000\n", "line 2: source and destination are the same host"),
        (HEAD + "0,h0,switch0,1000\n", 'line 2: node "switch0" is no host'),
        (HEAD + "0,0,4,1000\n", "line 2: there is no host number 4"),
        (HEAD + "0,h0,h1\n", "line 2: is no row of the table"),
        ("start,src,dst,size,weight\n0,h0,h1,1000,nan\n", "line 2: the weight is NaN"),
        ("", 'there is no column "src"'),
        ((HEAD + ROW).encode("utf-16"), "is not UTF-8 text"),
    ],
)
def test_csv_is_refused_by_name(tmp_path: Path, text: str | bytes, words: str) -> None:
    file = tmp_path / "flows.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(subak.InputError) as fault:
        traced(tmp_path, file)
    assert words in str(fault.value)


def test_flows_that_start_too_late_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "flows.csv"
    file.write_text(HEAD + ROW + "0.002,h0,h1,1000\n0.0019999,h0,h1,1000\n1,h0,h1,1000\n")
    results = traced(tmp_path, file)
    assert [start for _, _, _, start, _ in flows_of(results)] == [0, 1_999_900]
    assert any(w["text"].startswith("2 of 4 flows start at run.duration or later") for w in results.warnings)


COLUMNS: dict[str, Any] = {"start": [0.0], "src": ["h0"], "dst": ["h1"], "size": [1000]}


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, PLAIN),
        ({"__index_level_0__": [0]}, PLAIN),
        ({"size": [1000.0]}, PLAIN),
        ({"size": ["1KB"]}, PLAIN),
        ({"weight": pyarrow.array([None], pyarrow.float64())}, PLAIN),
        ({"src": pyarrow.array(["h0"]).dictionary_encode()}, PLAIN),
        ({"start": pyarrow.array([5], pyarrow.duration("us"))}, ("h0", "h1", 1000, 5000, 1.0)),
        ({"start": pyarrow.array([5], pyarrow.duration("ns"))}, ("h0", "h1", 1000, 5, 1.0)),
        *(
            ({"start": pyarrow.array([3 * n], pyarrow.timestamp(unit))}, ("h0", "h1", 1000, 3 * n * ns, 1.0))
            for unit, n, ns in (("ns", 7, 1), ("us", 7, 1000), ("ms", 0, 10**6), ("s", 0, 10**9))
        ),
        ({"start": pyarrow.array([1], pyarrow.timestamp("ms", "UTC"))}, ("h0", "h1", 1000, 10**6, 1.0)),
        ({"weigth": [3]}, 'unknown column "weigth"; did you mean "weight"?'),
        ({"weight": [float("nan")]}, "row 1: the weight is NaN"),
        ({"size": [1000.5]}, "row 1: 1000.5 bytes is not a whole number"),
        ({"start_ns": [5]}, 'the columns "start" and "start_ns" say the same'),
        ({"size": pyarrow.array([2**63], pyarrow.uint64())}, "row 1"),
    ],
)
def test_parquet(tmp_path: Path, columns: dict[str, Any], expected: Flow | str) -> None:
    file = tmp_path / "flows.parquet"
    pyarrow.parquet.write_table(pyarrow.table(COLUMNS | columns), file)
    if not isinstance(expected, str):
        assert flows_of(traced(tmp_path, file)) == [expected]
        return
    with pytest.raises(subak.InputError) as fault:
        traced(tmp_path, file)
    assert expected in str(fault.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1\n3 1 3 100 1000 2\n", ("3", "1", 1000, 0, 1.0)),
        ("1\n3 1 3 1000 2\n", ("3", "1", 1000, 0, 1.0)),
        ("1\n# a note\n3 1 3 100 1e3 2e0\n", ("3", "1", 1000, 0, 1.0)),
        ("1\r\n3 1 3 100 1000 2\r\n", ("3", "1", 1000, 0, 1.0)),
        ("1\n3 1 3 100 1000 2\n3 2 3 100 1000 2\n", ("3", "1", 1000, 0, 1.0)),
        ("1\n0 1 3 100 1000 2\n", 'line 2: node "0" is no host'),
        ("1\n3 1 3 100 1000 2 7\n", "line 2: has 7 words"),
        ("1\n3 1 3 10000 2.0 9.5\n", "line 2: a flow of 10000 packets"),
        ("3\n3 1 3 100 1000 2\n", "line 1: 3 flows are announced, 1 follow"),
        ("-1\n3 1 3 100 1000 2\n", "line 1: is no number of flows"),
    ],
)
def test_flows_of_hpcc(tmp_path: Path, text: str, expected: Flow | str) -> None:
    (tmp_path / "topology.txt").write_text(TOPOLOGY)
    file = tmp_path / "flow.txt"
    file.write_bytes(text.encode())
    network = {"file": str(tmp_path / "topology.txt")}
    if not isinstance(expected, str):
        assert flows_of(traced(tmp_path, file, network, format="hpcc")) == [expected]
        return
    with pytest.raises(subak.InputError) as fault:
        traced(tmp_path, file, network, format="hpcc")
    assert expected in str(fault.value)


GRAPHML = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="c" for="edge" attr.name="capacity" '
    'attr.type="string"><default>7Gbps</default></key><graph edgedefault="undirected"><node id="a"/><node id="b"/>'
    '<edge source="a" target="b"><data key="c">10Gbps</data></edge></graph></graphml>'
)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("t.txt", TOPOLOGY, ("0->1", 1e11, 1000)),
        ("t.txt", TOPOLOGY.replace("100Gbps", "25000000000.0"), ("0->1", 2.5e10, 1000)),
        ("t.txt", "# a note\n" + TOPOLOGY, ("0->1", 1e11, 1000)),
        ("t.txt", TOPOLOGY.replace("1us 0", "1us 0.01"), "line 4: the link loses packets"),
        ("t.txt", TOPOLOGY.rsplit("0 3", 1)[0], "line 1: the file has 2 links, 3 announced"),
        ("t.txt", TOPOLOGY.replace("0 3", "0 9"), 'line 5: there is no node "9"'),
        ("t.txt", TOPOLOGY.replace("4 1 3\n", "4 1 1 3 1 1\n"), "line 1: the first line has 6 numbers"),
        ("g.graphml", GRAPHML, ("a->b", 1e10, 0)),
        ("g.graphml", GRAPHML.replace('<data key="c">10Gbps</data>', ""), ("a->b", 7e9, 0)),
        ("g.graphml", GRAPHML.replace('<data key="c">', '<data key="d">'), 'the key "d" is not declared'),
        ("g.graphml", GRAPHML.replace(">10Gbps<", ">NaN<"), 'edges[0].capacity: "NaN" is not a rate'),
        (
            "g.graphml",
            GRAPHML.replace("</data></edge>", '</data><data key="c">1Gbps</data></edge>'),
            'the data "capacity" is given twice',
        ),
        ("g.graphml", GRAPHML.replace('target="b"', 'target="z"'), 'edges[0].target: there is no node "z"'),
    ],
)
def test_files_of_networks(tmp_path: Path, name: str, text: str, expected: tuple[str, float, int] | str) -> None:
    file = tmp_path / name
    file.write_text(text)
    keys = {"hosts": "all"} if name.endswith("graphml") else {}
    if not isinstance(expected, str):
        link = pyarrow.table(subak.Network.from_file(file, **keys).links).to_pylist()[0]
        assert (link["id"], link["capacity_bps"], link["delay_ns"]) == expected
        return
    with pytest.raises(subak.InputError) as fault:
        subak.Network.from_file(file, **keys)
    assert expected in str(fault.value)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        *(({name: "1Gbps"}, f'links[0].{name}: unknown attribute "{name}"; did you mean "capacity"?')
          for name in ("Capacity", "bw", "bandwidth", "rate", "cap", "speed", "capacity_bps")),
        *(({"capacity": "1Gbps", name: "1us"}, f'"{name}"; did you mean "delay"?') for name in ("latency", "Delay")),
        *(({"capacity": "1Gbps", name: 1}, f'"{name}"; did you mean "buffer"?') for name in ("queue", "Buffer")),
        ({"capacity": "10-20Gbps"}, "is not a unit of rate"),
        ({"capacity": float("nan")}, "links[0].capacity: the value is nan"),
        ({"capacity": 0}, "every edge has the capacity 0"),
        ({"capacity": True}, "true is not a rate"),
    ],
)  # fmt: skip
def test_edges_of_networkx_are_refused_by_name(attributes: dict[str, Any], words: str) -> None:
    graph = networkx.path_graph(["a", "b", "c"])
    networkx.set_edge_attributes(graph, dict.fromkeys(graph.edges, attributes))
    with pytest.raises(subak.InputError) as fault:
        subak.Network.from_networkx(graph, capacity="5Gbps", hosts="all")
    assert words in str(fault.value)


@pytest.mark.parametrize(
    ("attributes", "warned"),
    [
        ({"capacity": "1Gbps", "weight": 3}, 'attributes of edges that are not read: "weight"'),
        ({}, "1 of 2 edges tell no speed and have the capacity beside the file"),
    ],
)
def test_edges_of_networkx_are_warned_of(attributes: dict[str, Any], warned: str) -> None:
    graph = networkx.path_graph(["a", "b", "c"])
    graph.edges["a", "b"]["capacity"] = "1Gbps"
    graph.edges["b", "c"].update(attributes)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        subak.Network.from_networkx(graph, capacity="5Gbps", hosts="all")
    assert any(warned in str(w.message) for w in given)


@pytest.mark.parametrize(
    ("section", "key", "value", "words"),
    [
        ("run", "seed", 1, 'run.seed: unknown key "seed"; did you mean "seeds"?'),
        ("run", "warm_up", "1us", 'did you mean "warmup"?'),
        ("run", "seeds", [1, 1], "run.seeds: seed 1 is listed twice"),
        ("network", "rates", "1Gbps", 'did you mean "rate"?'),
        ("network", "buffer", [], "network.buffer: the list is empty"),
        ("workload", "load", 0.5, 'workload.load: unknown key "load"'),
        ("workload", "format", "tsv", 'workload.format: unknown value "tsv"; did you mean "csv"?'),
        ("routing", "max_paths", 4, "routing.max_paths: it counts the paths of each flow"),
        ("routing", "sede", 1, 'did you mean "seed"?'),
        ("measure", "queue", "10us", 'did you mean "queues"?'),
        ("measure", "convergence", {"every": "50ns"}, "measure.convergence.every"),
        ("packets", "header", 2000, "packets.header: headers leave no room for payload"),
        ("polcy", "kind", "max-min", 'did you mean "policy"?'),
    ],
)
def test_keys_of_a_spec(tmp_path: Path, section: str, key: str, value: Any, words: str) -> None:
    file = tmp_path / "flows.csv"
    file.write_text(HEAD + ROW)
    spec = spec_of(dict(STAR), {"kind": "trace", "file": str(file)})
    spec.setdefault(section, {})[key] = value
    with pytest.raises(subak.InputError) as fault:
        subak.run(spec, tmp_path / "out", progress=False)
    assert words in str(fault.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Type", "host"),
        ("type", "Host"),
        ("role", "switch"),
        ("node_type", "HOST"),
        ("is_host", True),
        ("isSwitch", False),
    ],
)
def test_other_names_of_a_nodes_kind_are_refused_by_name(name: str, value: Any) -> None:
    graph = networkx.path_graph(["a", "b", "c"])
    graph.nodes["b"][name] = value
    for call in (
        lambda: subak.Network.from_networkx(graph, capacity="5Gbps"),
        lambda: subak.solve({"network": networkx.node_link_data(graph), "flows": []}),
    ):
        with pytest.raises(subak.InputError, match=f'{name}: unknown attribute "{name}"; did you mean "kind"'):
            call()


@pytest.mark.parametrize(
    ("attributes", "warned"),
    [
        ({"type": "router"}, 'attributes of nodes that are not read: "type"'),
        ({"role": "spine"}, 'attributes of nodes that are not read: "role"'),
        ({"type": "router", "kind": "switch"}, None),
        ({"type": "switch"}, None),
        ({"Latitude": 1.0, "label": "x"}, None),
    ],
)
def test_attributes_of_nodes_that_may_tell_hosts_are_warned_of(attributes: dict[str, Any], warned: str | None) -> None:
    graph = networkx.path_graph(["a", "b", "c"])
    graph.nodes["b"].update(attributes)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        network = subak.Network.from_networkx(graph, capacity="5Gbps")
    assert network.hosts == ["a", "c"]
    said = [str(w.message) for w in given if "attributes of nodes" in str(w.message)]
    assert (warned is None and said == []) or (warned is not None and any(warned in text for text in said))


@pytest.mark.parametrize(
    ("attributes", "warned"),
    [
        ({"LinkSpeedRaw": 1e9}, True),
        ({"LinkLabel": "1-4 Gbps"}, True),
        ({"LinkSpeed": "10", "LinkSpeedUnits": "M"}, True),
        ({"LinkSpeedRaw": 1e10}, False),
        ({"LinkLabel": "OC-192"}, False),
        ({"LinkLabel": "1-20Gbps"}, False),
        ({"LinkLabel": "Fibre"}, False),
    ],
)
def test_a_label_that_contradicts_the_capacity_is_warned_of(attributes: dict[str, Any], warned: bool) -> None:
    graph = networkx.path_graph(["a", "b"])
    graph.edges["a", "b"].update({"capacity": "10Gbps", **attributes})
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        network = subak.Network.from_networkx(graph, hosts="all")
    assert pyarrow.table(network.links)["capacity_bps"].to_pylist() == [1e10, 1e10]
    said = "1 edges have labels that tell another speed than their capacity, which counts"
    assert any(said in str(w.message) for w in given) == warned


@pytest.mark.parametrize(
    ("attributes", "bps", "said"),
    [
        ({"LinkSpeedRaw": 0, "LinkLabel": "10 Gbps"}, 1e10, "1 edges have a LinkSpeedRaw that is no speed"),
        ({"LinkSpeedRaw": 0}, 5e9, "1 edges have a LinkSpeedRaw that is no speed"),
        (
            {"LinkSpeedRaw": 1e9, "LinkLabel": "10 Gbps"},
            1e9,
            "1 edges have a LinkSpeedRaw or LinkSpeed that contradicts",
        ),
        ({"LinkSpeedRaw": 1e9, "LinkLabel": "GigE"}, 1e9, None),
        ({"LinkLabel": "up to 10 Gbps"}, 5e9, '1 of 2 edges tell no speed (labels such as "up to 10 Gbps")'),
        ({"LinkLabel": "several 2.5G"}, 5e9, '1 of 2 edges tell no speed (labels such as "several 2.5G")'),
        ({"LinkLabel": "~ 155 Mbps"}, 5e9, '1 of 2 edges tell no speed (labels such as "~ 155 Mbps")'),
    ],
)
def test_doubtful_speeds_are_counted(tmp_path: Path, attributes: dict[str, Any], bps: float, said: str | None) -> None:
    graph = networkx.path_graph(["a", "b", "c"])
    graph.edges["a", "b"].update(attributes)
    graph.edges["b", "c"]["LinkLabel"] = "1 Gbps"
    networkx.write_graphml(graph, tmp_path / "g.graphml")
    networkx.write_gml(graph, tmp_path / "g.gml")
    for name in ("g.graphml", "g.gml"):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            network = subak.Network.from_file(tmp_path / name, capacity="5Gbps", hosts="all")
        assert pyarrow.table(network.links)["capacity_bps"].to_pylist() == [bps, bps, 1e9, 1e9]
        told = [str(w.message) for w in given]
        assert any(said in text for text in told) if said else told == []


GML = """Creator "a person"
# A note.
graph [
  directed 0
  node [ id 0 label "Town" graphics [ x 1.5E+1 y -2 Line [ point [ x 1 ] point [ x 2 ] ] ] ]
  node [
    id 2
    label "Town"
  ]
  node [ id 10 label "A &amp; B" kind "switch" ]
  edge [ source 0 target 10 LinkSpeedRaw 10000000000.0 LinkLabel "10 Gbps" ]
  edge [ source 0 target 10 capacity "1Gbps" delay "2us" ]
  edge [ source 10 target 2 ]
]
"""


def test_gml_is_read_by_ids(tmp_path: Path) -> None:
    file = tmp_path / "zoo.GML"
    file.write_text(GML)
    with pytest.warns(subak.InputWarning, match="1 of 3 edges tell no speed"):
        network = subak.Network.from_file(file, capacity="5Gbps", delay="1ms")
    assert network.hosts == ["0", "2"]
    links = [(link["id"], link["capacity_bps"], link["delay_ns"]) for link in pyarrow.table(network.links).to_pylist()]
    ms = 1_000_000
    assert links[::2] == [("0->10", 1e10, ms), ("0->10#1", 1e9, 2000), ("10->2", 5e9, ms)]
    assert [link[0] for link in links[1::2]] == ["10->0", "10->0#1", "2->10"]
    flows = [{"src": "0", "dst": "2"}]
    rates = subak.solve({"network": {"file": str(file), "capacity": "5Gbps"}, "flows": flows})
    assert [flow["rate_bps"] for flow in rates] in ([5e9], [1e9])
    file.write_text(GML.replace("directed 0", "directed 1"))
    assert [
        link["id"] for link in pyarrow.table(subak.Network.from_file(file, capacity="5Gbps").links).to_pylist()
    ] == [
        "0->10",
        "0->10#1",
        "10->2",
    ]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("id 2", "id 0", 'nodes[1].id: a second node has the id "0"'),
        ("id 2", "", 'nodes[1].id: "id" is missing'),
        ("target 2", "target 3", 'edges[2].target: there is no node "3"'),
        ("target 2", "target 2 target 2", 'line 13: the key "target" is given twice'),
        ("capacity", "bandwidth", 'unknown attribute "bandwidth"; did you mean "capacity"?'),
        ("capacity", "Capacity", 'unknown attribute "Capacity"; did you mean "capacity"?'),
        ("directed 0", "capacity 3", 'graph.capacity: "capacity" is an attribute of edges'),
        ("directed 0", "directed 2", "directed: 2 is neither true nor false"),
        ('"1Gbps"', '"1 furlong"', "edges[1].capacity"),
        ('"1Gbps"', "1Gbps", 'line 12: "1Gbps" is no value'),
        ('"1Gbps"', '"1Gbps', "line 12"),
        ("edge [ source 10", "edge 7 node [ source 10", "line 13: edge is no list"),
        ("graph [", "", "line 14: no key begins here"),
        ("graph", "garph", "the file has no graph"),
        ("  edge [ source 10 target 2 ]\n]\n", "", "the file ends inside a list"),
        ('Creator "a person"', "graph [ ]", "line 3: the file has a second graph"),
    ],
)
def test_gml_is_refused_by_place(tmp_path: Path, before: str, after: str, words: str) -> None:
    file = tmp_path / "zoo.gml"
    file.write_text(GML.replace(before, after, 1))
    with pytest.raises(InputError) as fault:
        subak.Network.from_file(file, capacity="5Gbps")
    assert words in str(fault.value)


SIZES = "size_bytes,probability\n1000,0.5\n2000,1\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SIZES, None),
        (
            SIZES.replace("probability", "probability,weight").replace("0.5", "0.5,1").replace(",1\n", ",1,1\n"),
            "unknown",
        ),
        (SIZES.replace(",", ";"), "line 1: the columns are separated by a semicolon"),
        (SIZES.replace("\n", ",1\n").replace("probability,1", "probability,probability"), "is there twice"),
        ("# sizes\n" + SIZES, "line 1: the first line is a comment"),
    ],
)
def test_files_of_sizes(tmp_path: Path, text: str, words: str | None) -> None:
    (tmp_path / "sizes.csv").write_text(text)
    sizes = {"file": str(tmp_path / "sizes.csv")}
    spec = spec_of(dict(STAR), {"kind": "poisson", "load": 0.1, "sizes": sizes})
    if words is None:
        assert subak.run(spec, tmp_path / "out", progress=False).manifest["trials"]
        return
    with pytest.raises(InputError) as fault:
        subak.run(spec, tmp_path / "out", progress=False)
    assert words in str(fault.value)


def test_a_matrix_with_a_row_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "demands.csv"
    network = {"kind": "star", "hosts": 3, "rate": "10Gbps"}
    file.write_text(",h0,h1\nh0,,1\nh1,2,\n")
    assert len(subak.solve({"network": network, "flows": {"file": str(file), "unit": "Gbps"}}).flows) == 2
    file.write_text(",h0,h1\nh0,,1\nh1,2,\nh0,,3\n")
    with pytest.raises(InputError, match='line 4: the row of "h0" is there twice, first in line 2'):
        subak.solve({"network": network, "flows": {"file": str(file), "unit": "Gbps"}})


@pytest.mark.parametrize(
    ("scheme", "fault", "words"),
    [
        ({"name": "dctcp", "params": {"k": "97KB"}}, {}, "it counts packets: write a number without a unit"),
        ({"name": "wrr", "params": {"step": "1us"}}, {}, "it counts packets: write a number without a unit"),
        ({}, {"kind": "loss", "probability": 0.1, "at": "1us"}, 'no "at"; its times are from and until'),
        ({}, {"kind": "down", "link": "h0->switch0", "at": "1us"}, 'no "at"; its times are down and up'),
        ({}, {"kind": "restart", "node": "h0", "at": "1us", "from": "1us"}, 'no "from"; its times are at'),
    ],
)
def test_hints_name_the_unit_and_the_time(
    tmp_path: Path, scheme: dict[str, Any], fault: dict[str, Any], words: str
) -> None:
    spec = spec_of(dict(STAR), {"kind": "permutation", "size": "10kB"})
    spec |= {"scheme": [scheme or {"name": "dctcp"}], "fault": [fault] if fault else []}
    with pytest.raises(InputError) as raised:
        subak.run(spec, tmp_path / "out", progress=False)
    assert words in str(raised.value)
    assert len(raised.value.each()) == 1


def test_an_empty_list_of_hosts_is_refused() -> None:
    graph = networkx.path_graph(["a", "b"])
    with pytest.raises(subak.InputError, match="hosts: the list of hosts is empty"):
        subak.Network.from_networkx(graph, capacity="5Gbps", hosts=[])


@pytest.mark.parametrize(
    ("section", "key", "right"),
    [
        (None, "nic", "[network]"),
        ("run", "nic", "[network]"),
        (None, "seeds", "[run]"),
        ("network", "duration", "[run]"),
        (None, "transport", "[[scheme]]"),
        ("workload", "max_paths", "[routing]"),
        ("routing", "convergence", "[measure]"),
        (None, "sizes", "[workload]"),
    ],
)
def test_a_key_in_the_wrong_section_names_the_right_one(
    section: str | None, key: str, right: str, tmp_path: Path
) -> None:
    spec: dict[str, Any] = {
        "network": {"kind": "star", "hosts": 3},
        "workload": {"kind": "permutation", "size": "10kB"},
        "routing": {"seed": 1},
        "scheme": [{"name": "dctcp"}],
        "run": {"duration": "1ms"},
    }
    (spec if section is None else spec[section])[key] = "1ms"
    with pytest.raises(InputError, match=rf'"{key}" is a key of {re.escape(right)}'):
        subak.run(spec, tmp_path)


def test_a_value_at_fault_is_not_an_unknown_key_as_well(tmp_path: Path) -> None:
    spec = {
        "network": {"kind": "star", "hosts": 3, "nic": "fifo"},
        "workload": {"kind": "permutation", "size": "10kB"},
        "scheme": [{"name": "dctcp"}],
        "run": {"duration": "1ms"},
    }
    with pytest.raises(InputError) as raised:
        subak.run(spec, tmp_path)
    assert [fault.place for fault in raised.value.each()] == ["network.nic"]


@pytest.mark.parametrize(("announced", "said"), [(4, False), (64, True)])
def test_hosts_that_a_file_announces(tmp_path: Path, announced: int, said: bool) -> None:
    file = tmp_path / "a.cm"
    file.write_text(f"Nodes {announced}\nConnections 1\n0->1 id 1 start 0 size 1000\n")
    told = [w["text"] for w in traced(tmp_path, file).warnings]
    assert (f"the file announces {announced} hosts, and the network has 4" in told) == said


GRAPH = '<graphml><graph edgedefault="undirected">{nodes}<edge source="a" target="b"/>{more}</graph></graphml>'


@pytest.mark.parametrize(
    ("hosts", "senders"), [(["a", "b", "c"], 3), (["a", "c"], 2), ([["a", "b"], ["a", "b", "c"]], None), ("leaves", 2)]
)
def test_hosts_named_beside_a_file(tmp_path: Path, hosts: Any, senders: int | None) -> None:
    nodes = "".join(f'<node id="{n}"/>' for n in "abc")
    (tmp_path / "w.graphml").write_text(GRAPH.format(nodes=nodes, more='<edge source="b" target="c"/>'))
    network = {"file": str(tmp_path / "w.graphml"), "capacity": "1Gbps", "delay": "1us", "hosts": hosts}
    workload = {"kind": "poisson", "load": 0.2, "sizes": "web-search"}
    out = subak.run(spec_of(network, workload), tmp_path / "out", progress=False)
    trials = out.manifest["trials"]
    assert len(trials) == (2 if senders is None else 1)
    if senders is not None:
        flows = pyarrow.table(out.table("flow", ["src", "dst"])).to_pylist()
        assert len({end for flow in flows for end in flow.values()}) <= senders


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        ({}, "3 of 3 nodes send and receive, for all have neighbours"),
        ({"a": "host"}, None),
        ({"a": "host", "b": "host", "c": "host"}, None),
    ],
)
def test_a_ring_without_kinds_says_who_sends(tmp_path: Path, kinds: dict[str, str], said: str | None) -> None:
    graph = networkx.cycle_graph(["a", "b", "c"])
    networkx.set_node_attributes(graph, {n: {"kind": kinds.get(n, "switch")} for n in graph if kinds})
    networkx.write_graphml(graph, tmp_path / "w.graphml")
    network = {"file": str(tmp_path / "w.graphml"), "capacity": "1Gbps", "delay": "1us"}
    workload = {"kind": "steps", "flows": [{"src": "a", "dst": "b"}]}
    if kinds == {"a": "host"}:
        with pytest.raises(InputError, match="host"):
            subak.run(spec_of(network, workload), tmp_path / "out", progress=False)
        return
    told = [w["text"] for w in subak.run(spec_of(network, workload), tmp_path / "out", progress=False).warnings]
    assert any(text.startswith(said) for text in told) if said else not any("send and receive" in text for text in told)


def test_an_index_of_pandas_counts_as_a_column(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"src": ["1", "2"], "dst": ["3", "3"], "weight": [1, 3]}).set_index("weight")
    network = subak.Network.from_networkx(networkx.star_graph(3), capacity="10Gbps")
    want = pytest.approx([2.5e9, 7.5e9])
    assert [flow["rate_bps"] for flow in subak.solve(network, flows=frame)] == want
    file = tmp_path / "flows.parquet"
    frame.to_parquet(file)
    assert [flow["rate_bps"] for flow in subak.solve(network, flows={"file": str(file)})] == want
    traced_frame = frame.assign(src=["h0", "h1"], dst="h3", start=0, size=1000)
    traced_frame.to_parquet(file)
    if '"kind": "range"' in str(pyarrow.parquet.read_schema(file).metadata[b"pandas"]):
        with pytest.raises(InputError, match='index "weight" is a range of pandas'):
            traced(tmp_path, file)
    else:
        assert [flow[4] for flow in flows_of(traced(tmp_path, file))] == [1.0, 3.0]


def test_senders_of_an_incast_beyond_the_duration_are_counted(tmp_path: Path) -> None:
    spec = {
        "network": {"kind": "star", "hosts": 4},
        "workload": {"kind": "incast", "senders": 9, "size": "1KB", "interval": "1ms"},
        "scheme": [{"name": "ideal"}],
        "run": {"duration": "2ms"},
    }
    warnings = subak.run(spec, tmp_path / "out", progress=False).warnings
    assert any("7 of 9 flows start at run.duration or later" in one["text"] for one in warnings)


def test_queues_of_wrr_are_whole() -> None:
    for queues in (2.5, 1e-4):
        with pytest.raises(subak.InputError, match="whole number"):
            subak.Simulation({"kind": "star", "hosts": 4}, "wrr", params={"queues": queues})


def _indexed(index: Any) -> pandas.DataFrame:
    return pandas.DataFrame({"src": ["h0", "h1", "h1"], "dst": "h2", "weight": [1, 2, 5]}, index=index)


@pytest.mark.parametrize(
    ("index", "ids"),
    [
        (["a", "b", "c"], ["a", "b", "c"]),
        (pandas.Index(["a", "b", "c"], dtype="category"), ["a", "b", "c"]),
        ([7, 3, 10**12], ["7", "3", str(10**12)]),
        (pandas.RangeIndex(4, 10, 2), ["4", "6", "8"]),
        (pandas.RangeIndex(3), ["0", "1", "2"]),
    ],
)
def test_an_index_without_a_name_gives_the_ids_of_flows(tmp_path: Path, index: Any, ids: list[str]) -> None:
    network, frame, file = subak.Network.generate("star", hosts=3), _indexed(index), tmp_path / "flows.parquet"
    assert list(subak.solve(network, flows=frame).to_pandas()["id"]) == ids
    for name, write in (("flows.parquet", frame.to_parquet), ("flows.arrow", _feather(frame))):
        write(tmp_path / name)
        assert list(subak.solve(network, flows={"file": str(tmp_path / name)}).to_pandas()["id"]) == ids
    steps = {"kind": "steps", "flows": frame.assign(size=1000)}
    out = subak.run(spec_of({"kind": "star", "hosts": 3}, steps), tmp_path / "steps", progress=False)
    own = ids if ids != ["0", "1", "2"] else [None] * 3
    assert pyarrow.table(out.table("flow", ["flow_id"]))["flow_id"].to_pylist() == own
    simulation = subak.Simulation(network, "ideal")
    simulation.add_all(frame)
    assert pyarrow.table(simulation.flows)["flow_id"].to_pylist() == own
    frame.assign(start=0, size=1000).to_parquet(file)
    spec = spec_of({"kind": "star", "hosts": 3}, {"kind": "trace", "file": str(file)})
    out = subak.run(spec, tmp_path / "trace", progress=False)
    assert pyarrow.table(out.table("flow", ["flow_id"]))["flow_id"].to_pylist() == own


def _feather(frame: pandas.DataFrame) -> Any:
    return lambda path: pyarrow.feather.write_feather(pyarrow.Table.from_pandas(frame), str(path))


def test_an_index_without_a_name_that_names_nothing_is_refused(tmp_path: Path) -> None:
    network, file = subak.Network.generate("star", hosts=3), tmp_path / "flows.parquet"
    refused = [
        (_indexed(["a", "b", "a"]), "'a' is there twice"),
        (_indexed([["a", "a", "b"], [1, 2, 1]]), "index of 2 levels without names"),
        (_indexed([0.5, 1.5, 2.5]), "index of double without a name"),
        (_indexed(["a", "b", "c"]).assign(id=["x", "y", "z"]), "index without a name"),
        (_indexed(pandas.to_datetime(["2024", "2025", "2026"])), "without a name"),
    ]
    for frame, said in refused:
        with pytest.raises(subak.InputError, match=said):
            subak.solve(network, flows=frame)
        frame.to_parquet(file)
        with pytest.raises(subak.InputError, match=said):
            subak.solve(network, flows={"file": str(file)})
    for frame in (refused[1][0], refused[3][0]):
        frame.assign(start=0, size=1000).to_parquet(file)
        with pytest.raises(subak.InputError, match="index"):
            subak.run(
                spec_of({"kind": "star", "hosts": 3}, {"kind": "trace", "file": str(file)}),
                tmp_path / "o",
                progress=False,
            )
    # Selected rows that have ids keep their numbers beside them.
    kept = _indexed([4, 2, 9]).assign(id=["x", "y", "z"])
    assert list(subak.solve(network, flows=kept).to_pandas()["id"]) == ["x", "y", "z"]
    # The numbers of rows of links are no names.
    links = pandas.DataFrame({"from": ["a", "b", "a"], "to": ["b", "c", "c"], "capacity": 1e9})[lambda f: f.to == "c"]
    assert pyarrow.table(subak.Network.from_links(links).links)["id"].to_pylist() == ["b->c", "a->c"]
