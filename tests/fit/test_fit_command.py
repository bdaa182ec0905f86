"""The command `subak fit`: answers, pictures, exit statuses, and invalid input."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from conftest import Subak
from subak import InputError
from subak.pipeline import program_file, switch_file


def table(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "match": [{"field": "ip.dst", "width": 32, "kind": "exact"}], "entries": 100} | more


def written(folder: Path, told: Any, name: str = "program.json") -> Path:
    path = folder / name
    path.write_text(told if isinstance(told, str) else json.dumps(told))
    return path


def test_an_answer_its_pictures_and_its_check(subak: Subak, tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("map.svg", "graph.svg", "report.html", "answer.json")}
    ended = subak(
        *("fit", "l3dc", "--why", "--compare", "--picture", files["map.svg"], "--graph", files["graph.svg"]),
        *("--report", files["report.html"], "--output", files["answer.json"], "--json"),
    )
    assert ended.code == 0, ended.err
    answer = ended.json
    assert answer == json.loads(files["answer.json"].read_text())
    assert (answer["schema"], answer["status"], answer["stages"], answer["bound"]) == (1, "optimal", 7, 7)
    assert answer["gap"] == 0
    assert {"table", "stage", "memory", "blocks", "entries"} <= answer["placement"][0].keys()
    assert len(answer["others"]) == 12
    assert answer["blocking"]["chain"][0] == "port"
    for name in ("map.svg", "graph.svg"):
        drawn = ElementTree.fromstring(files[name].read_text())
        assert "lag_select" in "".join(drawn.itertext())
    report = files["report.html"].read_text()
    assert "proven optimal" in report
    assert 'data-table="lag_select"' in report
    assert "waits for ecmp_select (match)" in report
    checked = subak("fit", "l3dc", "--check", files["answer.json"])
    assert checked.code == 0, checked.out
    answer["placement"][0]["stage"] = 32
    assert subak("fit", "l3dc", "--check", written(tmp_path, answer)).code == 1


def test_what_cannot_fit_ends_with_1_and_says_why(subak: Subak) -> None:
    ended = subak("fit", "l2l3-mtag", "--switch", "flexpipe-release")
    assert ended.code == 1
    assert "does not fit, proven" in ended.out
    assert "Routable -> Ipv6_Prefix" in ended.out
    greedy = subak("fit", "l2l3-mtag", "--switch", "flexpipe", "--time-limit", "2", "--solver", "mcf", "--json")
    assert greedy.code == 1
    assert greedy.json["status"] == "failed"
    assert greedy.json["blocking"]["chain"]


def test_the_references_own_room_is_not_passed_off_as_valid(subak: Subak) -> None:
    ended = subak("fit", "l2l3-simple", "--solver", "ffl-exact16", "--ties", "reference", "--json")
    assert ended.code == 1
    assert ended.json["stages"] == 19
    assert "109 blocks of sram" in ended.json["violations"][0]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"match": [{"width": 641, "kind": "exact"}]}, "a matches 641 bits, and the crossbar of a stage carries 640"),
        ({"action_width": 1281}, "a has 1281 bits of action data, and a stage carries 1280"),
        ({"modifies": list("fghijklmn"), "action_width": 0}, "a modifies 9 fields, and a stage can modify 8"),
    ],
)
def test_a_table_that_no_stage_can_serve_does_not_fit(
    more: dict[str, Any], said: str, subak: Subak, tmp_path: Path
) -> None:
    path = written(tmp_path, {"tables": [table("a", **more)], "dependencies": {}})
    for solver in ("cp-sat", "ffl"):
        ended = subak("fit", path, "--solver", solver)
        assert ended.code == 1
        assert said in ended.out
        assert "does not fit, proven" in ended.out
    assert subak("fit", path, "--json").json["status"] == "infeasible"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nobody",), 'there is no program "nobody"'),
        (("l3dc", "--switch", "nobody"), 'there is no switch "nobody"'),
        (("l3dc", "--solver", "cplex"), '"cplex" is none'),
        (("l3dc", "--objective", "beauty"), '"beauty" is none'),
        (("l3dc", "--ties", "coin"), '"coin" is none'),
        (("l3dc", "--power-model", "none"), '"none" is none'),
        (("l3dc", "--check", "nothing.json"), "there is no such file"),
        (("l3dc", "--solver", "ffl", "--workers", "2"), "--workers: it has no effect: ffl has one thread"),
        (("l3dc", "--check", "nothing.json", "--workers", "2"), "--workers: it has no effect: a placement is checked"),
        (("l3dc", "--check", "nothing.json", "--objective", "power"), "--objective: it has no effect"),
        (("l3dc", "-D", "A=1", "-D", "A=2"), '"A" is defined as 1 and as 2'),
    ],
)
def test_unusable_arguments_end_with_2(subak: Subak, arguments: tuple[str, ...], said: str) -> None:
    ended = subak("fit", *arguments)
    assert ended.code == 2
    assert said in ended.err


CYCLE = {"tables": [table("a", next={"default": "b"}), table("b", next={"hit": "end", "miss": "a"})]}
GIVEN_CYCLE = {"tables": [table("a"), table("b")], "dependencies": {"match": [["a", "b"], ["b", "a"]]}}
UNKNOWN = {"fields": {"ip.src": 32}, "tables": [table("a", next={"default": "end"})]}


@pytest.mark.parametrize(
    ("told", "place", "said"),
    [
        (CYCLE, "tables[0].next", "a circle: a -> b -> a"),
        (GIVEN_CYCLE, "dependencies", "in a circle"),
        (UNKNOWN, "tables[0].match[0].field", 'there is no field "ip.dst"'),
        ({"tables": [table("a")], "dependencies": {"macth": []}}, "dependencies.macth", 'did you mean "match"?'),
        ({"tables": [table("a", entries=0)], "dependencies": {}}, "tables[0].entries", "0 is out of range"),
        ({"tables": [table("a"), table("a")], "dependencies": {}}, "tables[1]", 'two tables "a"'),
        ({"tables": [table("a", next={"default": "z"})]}, "tables[0].next.default", 'there is no table "z"'),
        ({"tables": [table("a")]}, "tables[0]", "nothing says what depends on what"),
        ({"tables": [table("a", modifies=["x"])], "dependencies": {}}, "tables[0].modifies", "not known"),
        ({"tables": []}, "tables", "0 tables"),
        ("{", "", "it is not JSON"),
        ("[" * 100_000, "", "it is not JSON"),
        ({"pipelines": []}, "", '"header_types" is missing'),
    ],
)
def test_unusable_programs_name_the_place(told: Any, place: str, said: str, subak: Subak, tmp_path: Path) -> None:
    path = written(tmp_path, told)
    ended = subak("fit", path)
    assert ended.code == 2, ended.out
    assert said in ended.err
    assert ended.err.startswith(f"subak: {path}: {place}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("schema = 2", '"name" is missing'),
        ('schema = 1\nname = "x"\n[memory]', "the stages are given twice or not at all"),
        ('schema = 1\nname = "x"\n[memory.m]\nwidth = 8', '"depth" is missing'),
        ('schema = 1\nname = "x"\n[pipeline]\nstages = 1000\n[memory]', "1000 stages are too many"),
        ('schema = 1\nname = "x"\n[memory]\n[[stage]]\nname = "a"\nblocks = {}\nafter = ["a"]', "go in a circle"),
        ("= 3", "it is not TOML"),
    ],
)
def test_unusable_switches_say_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said.replace("?", r"\?")):
        switch_file.read(text.encode(), "switch.toml")


def test_any_pipeline_can_be_described(tmp_path: Path, subak: Subak) -> None:
    """A pipeline with two branches of different length, which depths alone cannot describe."""
    text = """
        schema = 1
        name = "branches"
        [[stage]]
        name = "in"
        blocks = {m = 1}
        [[stage]]
        name = "left1"
        blocks = {m = 1}
        after = ["in"]
        [[stage]]
        name = "left2"
        blocks = {m = 1}
        after = ["left1"]
        [[stage]]
        name = "right"
        blocks = {m = 4}
        after = ["in"]
        [[stage]]
        name = "out"
        blocks = {m = 1}
        after = ["left2", "right"]
        [memory.m]
        width = 40
        depth = 100
        kinds = ["exact"]
        packing = "packed"
        formats = 2
    """
    switch = switch_file.read(text.encode(), None)
    assert not switch.layered
    rows = [table(n, entries=100) for n in "abcde"]
    chain = {"match": [["a", "b"], ["b", "c"], ["c", "d"]]}
    path = written(tmp_path, {"tables": rows[:4], "dependencies": chain})
    target = written(tmp_path, text, "switch.toml")
    ended = subak("fit", path, "--switch", target, "--json")
    assert ended.code == 0, ended.err
    assert [(r["table"], r["stage"]) for r in sorted(ended.json["placement"], key=lambda r: r["table"])] == [
        ("a", 1),
        ("b", 2),
        ("c", 3),
        ("d", 5),
    ]
    chain["match"].append(["d", "e"])
    longer = written(tmp_path, {"tables": rows, "dependencies": chain})
    assert subak("fit", longer, "--switch", target).code == 1


def test_dependencies_are_derived_from_fields_and_flow() -> None:
    def one(name: str, match: str, modifies: list[str], after: dict[str, str]) -> dict[str, Any]:
        key = {"field": match, "kind": "exact"}
        return {"name": name, "match": [key], "entries": 1, "modifies": modifies, "next": after}

    told = {
        "fields": {"x": 8, "y": 8, "z": 8, "w": 8},
        "tables": [
            one("start", "x", ["y"], {"hit": "left", "miss": "right"}),
            one("left", "y", ["z"], {"default": "join"}),
            one("right", "w", ["z"], {"default": "join"}),
            one("join", "w", ["z", "x"], {"default": "end"}),
        ],
    }
    program = program_file.from_json(told, None)
    assert {(d.before, d.after, d.kind) for d in program.dependencies} == {
        ("start", "left", "match"),
        ("start", "right", "successor"),
        ("left", "join", "action"),
        ("right", "join", "action"),
        ("start", "join", "reverse-match"),
    }
    assert program.exclusive == {frozenset(("left", "right"))}


def test_what_is_wrong_with_the_input_is_json_for_tools(subak: Subak, tmp_path: Path) -> None:
    path = written(tmp_path, "header h_t { bit<8> a; }\ncontrol C() { apply { for } }", "bad.p4")
    ended = subak("fit", path, "--json")
    assert ended.code == 2
    error = ended.json["error"]
    assert (error["file"], error["line"], error["column"]) == (str(path), 2, 23)
    assert "a loop is not read" in error["what"]
    assert json.loads(ended.err)["event"] == "error"


def test_the_time_limit_holds_for_all_of_it(subak: Subak, tmp_path: Path) -> None:
    """400 tables that do not fit into RMT, with the explanation why; the limit has a large margin for slow machines."""
    tables = [table(f"t{k}", match=[{"width": 20 + k % 60, "kind": "exact"}], entries=1000 + 7 * k) for k in range(400)]
    pairs = [[f"t{k}", f"t{k + 3 + k % 7}"] for k in range(0, 380, 2)]
    path = written(tmp_path, {"tables": tables, "dependencies": {"match": pairs}})
    begun = time.monotonic()
    ended = subak("fit", path, "--time-limit", "3", "--json")
    assert time.monotonic() - begun < 20
    assert ended.code == 1
    assert ended.json["status"] == "infeasible"
