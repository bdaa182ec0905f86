"""The supported part of P4-16: dependencies, execution, and refusals with their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Subak
from subak import InputError
from subak.pipeline import fit, program_file, switch_file
from subak.pipeline.p4 import sperc
from subak.pipeline.p4.compile import Machine
from subak.pipeline.p4.lower import lower, read

HEAD = """
#include <v1model.p4>
typedef bit<8> small_t;
const small_t FIVE = 5;
header h_t { bit<8> a; bit<8> b; bit<32> dst; bit<8> size; }
struct headers_t { h_t h; }
struct metadata_t { bit<8> m; bit<16> wide; bit<9> port; }
parser P(packet_in p, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start { p.extract(hdr.h); transition accept; }
}
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.h); } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
"""
TAIL = "\n}\nV1Switch(P(), C(), I(), E(), C(), D()) main;\n"


def source(inside: str) -> bytes:
    return (HEAD + inside + TAIL).encode()


ONE = "action a() { } table t { key = { meta.m: exact; } actions = { a; } } "


def machine(inside: str) -> Machine:
    return Machine(read(source(inside), "test.p4"))


def packet_of(made: Machine, **fields: int) -> list[int]:
    return made.packet({f"hdr.h.{name}": value for name, value in fields.items()})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("hdr.h.a + 8w250", 1),
        ("hdr.h.a - 8w8", 255),
        ("hdr.h.a * 8w100", 188),
        ("hdr.h.a |+| 8w250", 255),
        ("hdr.h.a |-| 8w8", 0),
        ("hdr.h.a << 6", 192),
        ("hdr.h.a << 200", 0),
        ("hdr.h.a >> 1", 3),
        ("hdr.h.a & 8w6 | 8w1 ^ 8w3", 6 | 1 ^ 3),
        ("~hdr.h.a", 248),
        ("-hdr.h.a", 249),
        ("hdr.h.a[2:1] ++ 6w1", 3 << 6 | 1),
        ("(hdr.h.a < hdr.h.b) ? hdr.h.b : FIVE", 9),
        ("(hdr.h.a >= hdr.h.b || !hdr.h.isValid()) ? 8w1 : 8w2", 1),
        ("(small_t)(16w0x1234 >> 8)", 0x12),
        ("(bit<8>)(bit<3>)hdr.h.b", 1),
        ("0x0f + 0b1 + 8w1", 17),
    ],
)
def test_expressions_are_computed_in_their_width(expression: str, value: int) -> None:
    made = machine(f"apply {{ meta.m = {expression}; }}")
    packet = packet_of(made, a=7, b=9)
    made.process(packet)
    assert packet[made.fields["meta.m"]] == value


def test_tables_registers_and_branches_run() -> None:
    made = machine(
        """
        register<bit<16>>(4) seen;
        action count(bit<8> by) {
            bit<16> now;
            seen.read(now, (bit<32>)hdr.h.a);
            now = now + (bit<16>)by;
            seen.write((bit<32>)hdr.h.a, now);
            meta.wide = now;
        }
        action drop() { mark_to_drop(std); }
        table exact_one { key = { hdr.h.b: exact; } actions = { count; drop; } default_action = count(1); }
        action to(bit<9> port) { std.egress_spec = port; }
        table routes { key = { hdr.h.dst: lpm; } actions = { to; NoAction; } size = 16; }
        action mark() { meta.m = FIVE; }
        table ranges {
            key = { hdr.h.size: range; hdr.h.b: ternary; }
            actions = { mark; NoAction; }
            const entries = { (10..20, 8w0 &&& 8w1): mark(); (_, 3): mark(); }
        }
        apply {
            exact_one.apply();
            if (routes.apply().hit) { meta.port = std.egress_spec; } else { meta.port = 1; }
            switch (ranges.apply().action_run) { mark: { meta.port = 2; } default: { } }
            if (hdr.h.a == 99) { exit; }
            hdr.h.setValid();
        }
        """
    )
    made.add("exact_one", [7], "drop")
    made.add("exact_one", [8], "count", [10])
    made.add("routes", [(0x0A000000, 8)], "to", [3])
    made.add("routes", [(0x0A010000, 16)], "to", [4])
    slots = made.fields

    def after(**fields: int) -> list[int]:
        packet = packet_of(made, **fields)
        made.process(packet)
        return [packet[slots[n]] for n in ("meta.wide", "standard_metadata.egress_spec", "meta.port", "meta.m")]

    assert after(a=1, b=8, dst=0x0A010203) == [10, 4, 4, 0]
    assert after(a=1, b=8, dst=0x0A020203) == [20, 3, 3, 0]
    assert after(a=2, b=3, dst=1, size=15) == [1, 0, 2, 5]
    assert after(a=2, b=4, dst=1, size=15) == [2, 0, 2, 5]
    assert after(a=2, b=5, dst=1, size=15) == [3, 0, 1, 0]
    assert after(a=2, b=7, dst=1)[1] == 511
    assert made.registers["seen"] == [0, 20, 3, 0]
    assert after(a=9, b=8, dst=1)[0] == 10
    packet = packet_of(made, a=99)
    made.process(packet)
    assert packet[slots["hdr.h.$valid$"]] == 0


def test_what_depends_on_what() -> None:
    program = lower(
        source(
            """
            register<bit<8>>(8) r;
            action set() { meta.m = hdr.h.a; }
            table first { key = { hdr.h.dst: lpm; } actions = { set; NoAction; } size = 10; }
            action bump() { hdr.h.a = meta.m + 1; r.write(0, meta.m); }
            action use(bit<8> x, bit<8> y) { bit<8> t = x; t = t + y; hdr.h.b = t; }
            table second { key = { meta.m: ternary; } actions = { use; } size = 20; }
            apply {
                if (hdr.h.isValid() && hdr.h.size > 3) { first.apply(); }
                bump();
                second.apply();
            }
            """
        ),
        "test.p4",
    )
    assert [(t.name, t.kind, t.entries, t.action_width) for t in program.tables] == [
        ("if_23", "ternary", 1, 0),
        ("first", "prefix", 10, 0),
        ("bump", "exact", 1, 0),
        ("second", "ternary", 20, 16),
    ]
    assert {(d.before, d.after, d.kind) for d in program.dependencies} == {
        ("if_23", "first", "successor"),
        ("first", "bump", "action"),
        ("first", "second", "match"),
    }
    assert [r.name for r in program.by_name["bump"].registers] == ["r"]
    assert program.by_name["second"].reads == frozenset()


@pytest.mark.parametrize(
    ("inside", "place", "said"),
    [
        ("apply { meta.x = 1; }", "line 15, column 14", 'there is no field "meta.x"'),
        ("apply { meta.m = meta.wide; }", "line 15, column 18", "bit<16> goes into bit<8>"),
        ("apply { t.apply(); }", "line 15, column 9", 'there is no table "t"'),
        ("table t { actions = { nobody; } } apply { }", "line 15, column 23", 'there is no action "nobody"'),
        ("table t { key = { hdr.h.a: fuzzy; } } apply { }", "line 15, column 28", '"fuzzy" is no match kind'),
        ("apply { for (;;) { } }", "line 15, column 9", '"for": a loop is not read in control I'),
        ("apply { tuple<bit<8>> x = {1}; meta.m = x[1]; }", "line 15", "there is no part 1 in tuple<bit<8>>"),
        ("apply { hash(meta.m); }", "line 15, column 9", "hash() takes 5 operands, and 1 are given"),
        ("apply { nothing(meta.m); }", "line 15, column 9", 'no action or function "nothing"'),
        (
            "apply { verify_checksum(true, {meta.m}, meta.wide, HashAlgorithm.csum16); }",
            "line 15",
            "outside the pipeline",
        ),
        ("apply { meta.m = 1 + ; }", "line 15, column 22", '";" cannot stand here in control I'),
        ("action a() { meta.m = ; } apply { }", "line 15, column 23", '";" cannot stand here in action a'),
        ("table t { key = { hdr.h.a exact; } } apply { }", "line 15, column 27", "cannot stand here in table t"),
        ("apply { meta.m = 1 $ 2; }", "line 15, column 20", '"$" is no P4'),
        ("apply {", "line 17, column 1", '"V1Switch" cannot stand here'),
        ("#if X\napply { }", "line 15", "Unterminated #if"),
        ("#include <tna.p4>\napply { }", "line 15", "<tna.p4> is not among what is known"),
        ('#include "nobody.p4"\napply { }', "line 15", "the include nobody.p4 is not found"),
        ("#error no\napply { }", "line 15", "#error no"),
        ("#include_next <core.p4>\napply { }", "line 15", "no directive #include_next"),
        ("#if 0\n#else\n#else\n#endif\napply { }", "line 17", "#else stands after the #else"),
        ("#if 0\n#else\n#elif 1\n#endif\napply { }", "line 17", "#elif stands after the #else"),
        ("#define NONE\n#if NONE\n#endif\napply { }", "line 16", "#if has no value"),
        (ONE + ONE + "apply { t.apply(); }", "line 15, column 77", 'two of the name "a"'),
        ("action a() { } " + ONE.split("}", 1)[1] * 2 + "apply { t.apply(); }", "line 15", 'two of the name "t"'),
        ("apply { if (meta.m) { } }", "line 15, column 13", "bit<8> stands where a condition should"),
        ("apply { if (meta.m == 1 && meta.wide) { } }", "line 15", "bit<16> stands where a condition should"),
        ("apply { meta.m = !meta.m; }", "line 15, column 19", "bit<8> stands where a condition should"),
        ("action a(bit<8> x) { x = 1; } apply { a(3); }", "line 15, column 22", '"x" cannot be written to'),
        ("apply { FIVE = 6; }", "line 15, column 9", '"FIVE" cannot be written to'),
        (ONE.replace("a; }", "a; } default_action = b();") + "apply { t.apply(); }", "line 15", 'no action "b"'),
        ("action b() { } " + ONE.replace("a; }", "a; } default_action = b();") + "apply { }", "line 15", "not among"),
        (ONE.replace("a()", "a(bit<8> x)") + "apply { a(); }", "line 15", "a takes 1 operands, and 0 are given"),
        (
            ONE.replace("a; }", "a; } default_action = a(3);") + "apply { }",
            "line 15",
            "a takes 0 values, and 1 are given",
        ),
        ("counter(4, CounterType.packets) c; apply { c.read(1); }", "line 15", 'a counter has no "read"'),
        (
            "direct_counter(CounterType.packets) c; action a() { c.count(); } apply { a(); }",
            "line 15",
            "counts entries",
        ),
        ("register<bit<8>>(2) r; apply { r.write(0, meta.wide); }", "line 15", "cells of 8 bits"),
        ("apply { hdr.h.a = hdr.h.a / hdr.h.b; }", "line 15", "divides constants only"),
        ("apply { meta.m = meta.m[3:0]; }", "line 15", "bit<4> goes into bit<8>"),
        ("apply { meta.m = HashAlgorithm.crc33; }", "line 15", 'has no member "crc33"'),
        ("apply { hdr.h = meta; }", "line 15", "metadata_t goes into h_t"),
        ("bit<8> x; bit<8> x; apply { }", "line 15, column 18", 'two of the name "x" in I'),
        ("table t { actions = { NoAction; } } apply { t.apply(); t.apply(); }", "line 15, column 45", "applied twice"),
        ("apply { meta.m = hdr.h.a[9:0]; }", "line 15, column 18", "bits 9 to 0 are not all there"),
    ],
)
def test_what_is_outside_is_refused_with_its_place(inside: str, place: str, said: str) -> None:
    text = HEAD.removesuffix("\n") + "\n" + inside + TAIL
    with pytest.raises(InputError) as raised:
        program_file.read(text.encode(), "test.p4")
    assert said in raised.value.what
    assert raised.value.place.startswith(place), raised.value


EGRESS = "control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) "


@pytest.mark.parametrize(("looked", "kind"), [("std.egress_port", "match"), ("hdr.h.b", None)])
def test_an_exit_in_ingress_goes_on_to_egress_which_has_the_port_from_there(looked: str, kind: str | None) -> None:
    inside = """
        action to(bit<9> port) { std.egress_spec = port; exit; }
        table route { key = { hdr.h.dst: lpm; } actions = { to; NoAction; } }
        action mark() { meta.m = 1; }
        table late { key = { hdr.h.a: exact; } actions = { mark; NoAction; } }
        apply { route.apply(); late.apply(); }
    """
    sending = f"table sending {{ key = {{ {looked}: exact; }} actions = {{ NoAction; }} }} apply {{ sending.apply(); }}"
    text = (HEAD + inside + TAIL).replace(EGRESS + "{ apply { } }", EGRESS + f"{{ {sending} }}")
    program = lower(text.encode(), "exit.p4")
    found = {(d.before, d.after): d.kind for d in program.dependencies}
    assert found.get(("route", "sending")) == kind
    assert found["route", "late"] == "successor"
    assert dict(program.by_name["route"].next or ())["exit"] == "sending"
    answer = fit(program, switch_file.load("rmt"), workers=1)
    assert answer.placement
    apart = answer.placement.stages_of["route"] != answer.placement.stages_of["sending"]
    assert apart == (kind == "match")


def test_depth_and_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(InputError, match="nest deeper"):
        lower(source("apply { meta.m = " + "(" * 5000 + "1" + ")" * 5000 + "; }"), "deep.p4")
    with pytest.raises(InputError, match="not UTF-8"):
        lower(b"\xff\xfe", "binary.p4")
    with pytest.raises(InputError, match="ends too early"):
        lower(source("apply { }").split(b"apply")[0], "short.p4")
    with pytest.raises(InputError, match="it has no main"):
        lower(b"const bit<8> X = 1;", "empty.p4")


def test_a_p4_program_that_cannot_be_read_ends_the_command_with_2(subak: Subak, tmp_path: Path) -> None:
    path = tmp_path / "bad.p4"
    path.write_bytes(source("apply { meta.m = meta.wide; }"))
    ended = subak("fit", path)
    assert ended.code == 2
    assert ended.err.startswith(f"subak: {path}: line ")


def test_figure_6_4_as_far_as_the_text_tells() -> None:
    """Dependencies of the L2/L3 program, edge by edge, as far as section 6.2.1 of the PERC thesis states them."""
    found = {(d.before, d.after): d.kind for d in program_file.load("l2l3").dependencies}
    assert found["unicast_routing", "switching"] == "match"
    assert found["source_mac", "unicast_routing"] == "reverse-match"
    assert found["routable", "multicast_routing"] == "successor"
    assert found["routable", "igmp"] == "successor"
    assert ("multicast_routing", "igmp") not in found
    assert ("igmp", "multicast_routing") not in found


def test_s_perc_fits_rmt_and_its_division_is_as_small_as_the_papers() -> None:
    answer = fit(program_file.load("s-perc"), switch_file.load("rmt"), "stages", workers=2)
    assert (answer.status, answer.value) == ("optimal", 12)
    memory = sperc.division_memory(sperc.machine())
    assert memory["ternary_entries"] < 2048
    assert memory["exact_bits"] <= 32 * 1024


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_p4_program_and_the_rust_scheme_agree_in_every_field(seed: int) -> None:
    found = sperc.compare(15_000, seed)
    assert found["first"] is None
    assert set(found["differ"].values()) == {0}
    for counted in ("leaves", "rounds", "losses", "joins", "elsewhere", "ignored"):
        assert found["counted"][counted] > 10, counted


def test_a_difference_would_be_seen() -> None:
    made = sperc.setup(1)
    switches = sperc.Switches(sperc.machine(), made)
    switches.machine.tables["power"]._exact[7] = (True, (0, (1 << 30,)))
    honest = sperc.Switches(sperc.machine(), made)
    events = list(sperc.events(made, 3000, 2))
    assert any(switches.step(*e) != honest.step(*e) for e in events)


BMV2: dict[str, Any] = {
    "header_types": [
        {"name": "ip_t", "fields": [["dst", 32, False], ["ttl", 8, False]]},
        {"name": "standard_metadata", "fields": [["egress_spec", 9, False]]},
    ],
    "headers": [
        {"name": "ip", "header_type": "ip_t"},
        {"name": "standard_metadata", "header_type": "standard_metadata"},
    ],
    "register_arrays": [{"name": "I.r", "bitwidth": 32, "size": 10}],
    "actions": [
        {
            "name": "I.to",
            "id": 0,
            "runtime_data": [{"name": "port", "bitwidth": 9}],
            "primitives": [
                {
                    "op": "assign",
                    "parameters": [
                        {"type": "field", "value": ["standard_metadata", "egress_spec"]},
                        {"type": "runtime_data", "value": 0},
                    ],
                },
                {
                    "op": "register_write",
                    "parameters": [
                        {"type": "register_array", "value": "I.r"},
                        {"type": "hexstr", "value": "0x0"},
                        {"type": "field", "value": ["ip", "ttl"]},
                    ],
                },
            ],
        },
        {"name": "NoAction", "id": 1, "runtime_data": [], "primitives": []},
    ],
    "pipelines": [
        {
            "name": "ingress",
            "init_table": "if_valid",
            "tables": [
                {
                    "name": "I.route",
                    "key": [{"match_type": "lpm", "target": ["ip", "dst"]}],
                    "max_size": 512,
                    "with_counters": True,
                    "action_ids": [0, 1],
                    "next_tables": {"I.to": "I.last", "NoAction": None},
                },
                {
                    "name": "I.last",
                    "key": [{"match_type": "exact", "target": ["standard_metadata", "egress_spec"]}],
                    "max_size": 64,
                    "action_ids": [1],
                    "next_tables": {"NoAction": None},
                },
            ],
            "conditionals": [
                {
                    "name": "if_valid",
                    "expression": {
                        "type": "expression",
                        "value": {
                            "op": "d2b",
                            "left": None,
                            "right": {"type": "field", "value": ["ip", "$valid$"]},
                        },
                    },
                    "true_next": "I.route",
                    "false_next": None,
                }
            ],
        }
    ],
}


@pytest.mark.parametrize(
    ("kind", "attached", "hint"),
    [
        ("counter", "counters = c;", "declare another direct_counter for u, and an action that uses it"),
        ("meter", "meters = c;", "declare another direct_meter for u, and an action that uses it"),
        ("counter", "", "write counters = c; in u"),
        ("meter", "", "write meters = c; in u"),
    ],
)
def test_a_direct_counter_of_another_table_is_named_with_its_table(kind: str, attached: str, hint: str) -> None:
    made = {
        "counter": "direct_counter(CounterType.packets) c; action a() { c.count(); } ",
        "meter": "direct_meter<bit<8>>(MeterType.bytes) c; action a() { c.read(meta.m); } ",
    }
    keyed = "{ key = { meta.m: exact; } actions = { a; }"
    inside = f"{made[kind]} table t {keyed} {attached} }} table u {keyed} }} apply {{ t.apply(); u.apply(); }}"
    with pytest.raises(InputError) as raised:
        program_file.read(source(inside), "test.p4")
    assert raised.value.hint == hint
    where = '"c" belongs to t, and an action of u uses it' if attached else '"c" is used by an action of'
    assert where in raised.value.what


def test_bmv2_json_is_read() -> None:
    program = program_file.read(json.dumps(BMV2).encode(), "route.json")
    assert [(t.name, t.kind, t.entries, t.action_width, t.statistics_width) for t in program.tables] == [
        ("if_valid", "exact", 1, 0, 0),
        ("I.route", "prefix", 512, 9, 64),
        ("I.last", "exact", 64, 0, 0),
    ]
    assert {(d.before, d.after, d.kind) for d in program.dependencies} == {
        ("if_valid", "I.route", "successor"),
        ("I.route", "I.last", "match"),
    }
    assert program.by_name["I.route"].registers[0].cells == 10
    assert fit(program, switch_file.load("rmt"), workers=1).value == 2


@pytest.mark.parametrize(("size", "held", "want"), [(1024, 3, 3), (1024, 0, 1024), (1024, None, 1024), (64, 3, 64)])
def test_constant_entries_of_bmv2_json_are_the_size_of_their_table(size: int, held: int | None, want: int) -> None:
    """A table without a size, for which p4c writes 1024, has the size of its constant entries, as in P4."""
    document = json.loads(json.dumps(BMV2))
    table = document["pipelines"][0]["tables"][0]
    entry = {"match_key": [], "action_entry": {"action_id": table["action_ids"][0], "action_data": []}}
    table |= {"max_size": size, "entries": None if held is None else [entry] * held}
    program = program_file.read(json.dumps(document).encode(), "route.json")
    assert program.by_name[table["name"]].entries == want


def test_bmv2_json_that_names_what_is_not_there_is_refused() -> None:
    broken = json.loads(json.dumps(BMV2))
    broken["pipelines"][0]["tables"][0]["key"][0]["target"] = ["ip", "src"]
    with pytest.raises(InputError, match=r'key\[0\].target: there is no field "ip.src"'):
        program_file.read(json.dumps(broken).encode(), "broken.json")
    broken = json.loads(json.dumps(BMV2))
    broken["pipelines"][0]["tables"][1]["next_tables"]["NoAction"] = "if_valid"
    with pytest.raises(InputError, match="in a circle"):
        program_file.read(json.dumps(broken).encode(), "broken.json")
