"""`subak fit` on P4 programs in the style of users, and on invalid ones: what it reads, derives and refuses."""

import json
import os
import subprocess
import sys
import time

import pytest
from fit_cases import ETH, demand, dependencies, fit, program, table

# --- Tests that passed when they were written ---


def test_slices_concatenation_choices(tmp_path):
    """A slice, a concatenation and a conditional expression depend on all fields that they read."""
    found = dependencies(
        tmp_path,
        program(
            table("t1", ETH, "meta.w[15:8] = 8w3; meta.t = true;")
            + table("t2", "meta.w[11:4]: exact", "meta.a = 1;")
            + table("t3", "", "meta.b = meta.t ? meta.a : 16w7;")
            + table("t4", "meta.c ++ meta.b: exact", "meta.d = 1;"),
            "t1.apply(); t2.apply(); t3.apply(); t4.apply();",
        ),
    )
    demand(found, ("t1", "t2", "match"), ("t1", "t3", "action"), ("t2", "t3", "action"), ("t3", "t4", "match"))


def test_validity_and_whole_headers(tmp_path):
    """Setting a header's validity precedes tests of validity; assignment of a header writes its fields and validity."""
    found = dependencies(
        tmp_path,
        program(
            table("t1", ETH, "hdr.ip = hdr.inner;")
            + table("t2", "hdr.ip.dst: exact", "hdr.inner.setInvalid();")
            + table("t3", "hdr.inner.isValid(): exact", "meta.a = 1;")
            + table("t4", "hdr.ip.isValid(): exact", "meta.b = 1;"),
            "t1.apply(); t2.apply(); t3.apply(); t4.apply();",
        ),
    )
    demand(found, ("t1", "t2", "match"), ("t2", "t3", "match"), ("t1", "t4", "match"))


def test_port_drop_and_exit_reach_egress(tmp_path):
    """Ingress writes for the traffic manager precede a table that matches the egress port, even after an exit."""
    found = dependencies(
        tmp_path,
        program(
            table("t1", ETH, "std.egress_spec = 4; exit;") + table("t2", "hdr.eth.src: exact", "mark_to_drop(std);"),
            "t1.apply(); t2.apply();",
            table("e1", "std.egress_port: exact", "meta.a = 1;"),
            "e1.apply();",
        ),
    )
    demand(found, ("t1", "e1", "match"), ("t2", "e1", "match"), ("t1", "t2", "successor"))


def test_registers_hashes_meters_random(tmp_path):
    """Registers, hashes, meters and random numbers read their index and inputs, and write their result."""
    found = dependencies(
        tmp_path,
        program(
            "register<bit<16>>(64) r; meter(64, MeterType.packets) m;"
            + table("t0", ETH, "meta.w = 1; meta.c = 2;")
            + table("t1", ETH, "r.read(meta.a, meta.w);")
            + table("t2", "hdr.ip.tos: exact", "hash(meta.b, HashAlgorithm.crc16, 16w0, { meta.a, meta.c }, 32w9);")
            + table("t3", "hdr.ip.ttl: exact", "m.execute_meter((bit<32>)meta.b, meta.colour);")
            + table("t4", "meta.colour: exact", "random(meta.d, 16w0, meta.b);"),
            "t0.apply(); t1.apply(); t2.apply(); t3.apply(); t4.apply();",
        ),
    )
    demand(
        found,
        ("t0", "t1", "action"),
        ("t0", "t2", "action"),
        ("t1", "t2", "action"),
        ("t2", "t3", "action"),
        ("t3", "t4", "match"),
        ("t2", "t4", "action"),
    )


def test_stack_by_an_index_that_the_packet_tells(tmp_path):
    """A write to a header of a stack with an index from the packet counts as a write to every header."""
    found = dependencies(
        tmp_path,
        program(
            table("t0", ETH, "meta.e = 1;")
            + table("t1", ETH, "hdr.tags[meta.e].label = 2;")
            + table("t2", "hdr.tags[2].label: exact", "meta.a = 1;"),
            "t0.apply(); t1.apply(); t2.apply();",
        ),
    )
    demand(found, ("t0", "t1", "action"), ("t1", "t2", "match"))


def test_switch_sub_control_and_inout(tmp_path):
    """The branch of a switch depends on its table; output operands of a sub-control and of an action are written
    back."""
    found = dependencies(
        tmp_path,
        program(
            "action inc(inout bit<16> x, in bit<16> y) { x = x + y; } S() s;"
            + table("t1", ETH, "inc(meta.a, meta.b);")
            + table("t2", "meta.a: exact", "meta.d = 1;")
            + table("t3", "meta.c: exact", "meta.e = 1;"),
            "switch (t1.apply().action_run) { t1_x: { t2.apply(); } default: { s.apply(meta.c); } } t3.apply();",
            controls="control S(out bit<16> x) { " + table("u", "", "x = 1;") + " apply { u.apply(); } }",
        ),
    )
    demand(found, ("t1", "t2", "match"), ("t1", "u", "successor"), ("u", "t3", "match"))


def test_macros_and_nested_conditions(tmp_path):
    """Macros that contain tables, and nested branches of the preprocessor, are expanded first."""
    found = dependencies(
        tmp_path,
        program(
            "SETTER(t0, meta.a, 5) SETTER(t1, meta.b, TWICE(2))"
            + table("t2", "meta.b: exact", "meta.c = MORE(meta.a, meta.d);"),
            "t0.apply(); t1.apply(); t2.apply(); meta.a = KEPT;",
            top="""#define SETTER(n, f, v) action n##_x() { f = v; } \\
  table n { key = { hdr.eth.dst: exact; } actions = { n##_x; NoAction; } size = 16; }
#define TWICE(x) ((x) + (x))
#define MORE(x, y) ((x) > (y) ? (x) : (y))
#if defined(NO) && NO > 3
junk
#elif !defined(NO)
# if 1 + 1 == 2
# elifdef TWICE
junk
# else
junk
# endif
#endif
#if 0
# elifdef NO
junk
# elifndef TWICE
junk
# elifdef TWICE
const bit<16> KEPT = 1;
# else
junk
#endif""",
        ),
    )
    demand(found, ("t0", "t2", "action"), ("t1", "t2", "match"))


def test_what_an_editor_or_another_preprocessor_leaves(tmp_path):
    """A byte order mark of an editor, and the line markers of ``cpp -E``, are accepted."""
    plain = program(table("t0", ETH, "meta.a = 1;"), "t0.apply();")
    marked = '\ufeff# 1 "case.p4"\n#line 7 "case.p4"\n' + plain
    want, found = fit(tmp_path, plain), fit(tmp_path, marked)
    assert found[0] == want[0] == 0, (found, want)
    assert found[1]["placement"] == want[1]["placement"]


@pytest.mark.parametrize(
    "text",
    [
        program(table("t0", ETH, "meta.a = " + "(" * 5000 + "1" + ")" * 5000 + ";"), "t0.apply();"),
        program(table("t0", ETH, "meta.%s = 1;" % ("x" * 1000000)), "t0.apply();"),
        '#include "case.p4"\n' + program(table("t0", ETH, ""), "t0.apply();"),
        program("", "A.apply(meta);", controls="control A(inout M m) { A() a; apply { a.apply(m); } }"),
        program(table("t0", ETH, "") * 2, "t0.apply();"),
        program(table("t0", ETH, "for (bit<8> i = 0; i < 4; i = i + 1) { meta.a = 1; }"), "t0.apply();"),
    ],
    ids=["nested", "long-name", "includes-itself", "recursion", "two-tables-of-a-name", "loop"],
)
def test_unusable_programs(tmp_path, text):
    """An unreadable program ends with exit status 2 and a document with the error."""
    code, answer, _ = fit(tmp_path, text)
    assert code == 2
    assert answer["error"]["what"]


# --- Tests that failed when they were written ---

GIVE = "bit<16> give(in bit<16> x, out bit<16> y) { y = x; return x; }"


@pytest.mark.parametrize(
    "action",
    [
        "meta.a = give(meta.b, meta.c);",
        "if (give(meta.b, meta.c) == 1) { meta.a = 1; }",
        "hdr.tags[give(meta.b, meta.c)].label = 1;",
    ],
    ids=["assigned", "condition", "index"],
)
def test_function_with_a_value_writes_its_out_operand(tmp_path, action):
    """A function whose value is used and that also writes operands is refused, since its writes would be ignored."""
    code, _, said = fit(
        tmp_path,
        program(
            table("t0", ETH, action) + table("t1", "meta.c: exact", "meta.d = 2;"),
            "t0.apply(); t1.apply();",
            top=GIVE,
        ),
    )
    assert code == 2
    assert "writes its operands" in said


def test_function_in_a_condition_writes_its_out_operand(tmp_path):
    """Such a function is also refused in a condition of the control."""
    code, _, said = fit(
        tmp_path,
        program(
            table("t0", ETH, "meta.a = 1;") + table("t1", "meta.c: exact", "meta.d = 2;"),
            "if (give(meta.b, meta.c) == 1) { t0.apply(); } t1.apply();",
            top=GIVE,
        ),
    )
    assert code == 2
    assert "writes its operands" in said


def test_recursive_function_is_refused(tmp_path):
    """A function that calls itself is refused, even if only its value is used."""
    code, _, _ = fit(
        tmp_path,
        program(
            table("t0", ETH, "meta.a = again(meta.a);"),
            "t0.apply();",
            top="bit<16> again(in bit<16> x) { return again(x); }",
        ),
    )
    assert code == 2


def test_function_writes_only_what_it_assigns(tmp_path):
    """A function that decrements one field of a struct writes only that field, so that t1 depends on it."""
    found = dependencies(
        tmp_path,
        program(
            table("t0", ETH, "lower(hdr);") + table("t1", "hdr.ip.ttl: exact", "meta.a = 1;"),
            "t0.apply(); t1.apply();",
            controls="void lower(inout H h) { h.ip.ttl = h.ip.ttl - 1; }",
        ),
    )
    demand(found, ("t0", "t1", "match"))


def test_two_applications_have_their_own_variables(tmp_path):
    """Each instance of a control has its own variables, so that two stages suffice."""
    code, answer, _ = fit(
        tmp_path,
        program(
            "S() s1; S() s2;",
            "s1.apply(hdr.ip.ttl, meta.a); s2.apply(hdr.ip.tos, meta.b);",
            controls="control S(in bit<8> x, inout bit<16> y) { bit<16> l; "
            + table("p", "x: exact", "l = 5;")
            + table("q", "l: exact", "y = 1;")
            + " apply { p.apply(); q.apply(); } }",
        ),
    )
    assert code == 0
    assert answer["stages"] == 2


def test_field_list_is_looked_at(tmp_path):
    """A note names the fields that a resubmit preserves by @field_list."""
    code, answer, _ = fit(
        tmp_path,
        program(
            table("t1", ETH, "meta.kept = 4;") + table("t2", ETH, "resubmit_preserving_field_list(8w1);"),
            "t1.apply(); t2.apply();",
        ),
    )
    assert code == 0
    pairs = {(d["before"], d["after"]) for d in answer["dependencies"]}
    assert ("t1", "t2") in pairs or any("fields kept" in note for note in answer["notes"])


def test_default_action_with_a_field_as_operand(tmp_path):
    """A field as data of a default action is refused: default data is constant."""
    code, _, _ = fit(
        tmp_path,
        program(
            "action x(bit<8> v) { meta.a = 1; }"
            " table t { key = { hdr.ip.ttl: exact; } actions = { x; } default_action = x(meta.e); }",
            "t.apply();",
        ),
    )
    assert code == 2


def test_number_of_5000_digits(tmp_path):
    """A number of 5000 digits is refused without a traceback."""
    code, _, _ = fit(tmp_path, program(table("t0", ETH, "meta.w = %s;" % ("9" * 5000)), "t0.apply();"))
    assert code == 2


def test_name_that_is_no_text(tmp_path):
    """A name with a lone surrogate, which is no text, is refused."""
    code, _, _ = fit(
        tmp_path,
        '{"name": "x", "tables": [{"name": "\\ud800", "match": [{"width": 8, "kind": "exact"}], "entries": 5}],'
        ' "dependencies": {}}',
        name="case.json",
    )
    assert code == 2


def test_too_many_workers(tmp_path):
    """A number of threads above the solver's limit is refused or reduced; it causes no traceback."""
    code, _, _ = fit(tmp_path, program(table("t0", ETH, ""), "t0.apply();"), "--workers", "99999999")
    assert code in (0, 2)


def test_negative_pop(tmp_path):
    """Only a positive number of headers can be popped from a stack."""
    code, _, _ = fit(tmp_path, program(table("t0", ETH, "hdr.tags.pop_front(-1);"), "t0.apply();"))
    assert code == 2


# --- Invalid P4 ---

INGRESS = "control I(inout H hdr, inout M meta, inout standard_metadata_t std)"


def run_by_t0(action, **more):
    """A program with one table, whose action has this body."""
    return program(table("t0", ETH, action), "t0.apply();", **more)


def with_entry(kind, value):
    """A program with one table, which has a constant entry."""
    entry = f"const entries = {{ {value}: NoAction(); }}"
    return program(
        f"table t0 {{ key = {{ hdr.ip.ttl: {kind}; }} actions = {{ NoAction; }} {entry} }}",
        "t0.apply();",
    )


def with_index(index):
    """A program that increments a counter at this index."""
    return program(
        f"counter(4, CounterType.bytes) n; {table('t0', ETH, f'n.count({index});')}",
        "t0.apply();",
    )


TWICE = {
    "variables": run_by_t0("bit<8> x; bit<8> x;"),
    "variables-of-apply": program(table("t0", ETH, ""), "bit<8> x; bit<8> x; t0.apply();"),
    "mains": run_by_t0("") + "V1Switch(P(), V(), I(), E(), C(), D()) main;",
    "functions": run_by_t0("", top="bit<8> f(in bit<8> x) { return x; } bit<8> f(in bit<8> y) { return y; }"),
    "members": run_by_t0("", top="enum Q { a, a }"),
    "parameters": run_by_t0("", controls="control Z(inout H h, inout M h) { apply { } }"),
    "counter-of-two-tables": program(
        "direct_counter(CounterType.bytes) n;"
        " table t1 { key = { hdr.ip.ttl: exact; } actions = { NoAction; } counters = n; }"
        " table t2 { key = { hdr.ip.ttl: exact; } actions = { NoAction; } counters = n; }",
        "t1.apply(); t2.apply();",
    ),
}


@pytest.mark.parametrize("text", TWICE.values(), ids=TWICE)
def test_two_of_one_name(tmp_path, text):
    """Two declarations of one name, and one object in two places, are refused."""
    code, answer, _ = fit(tmp_path, text)
    assert code == 2
    assert answer["error"]["line"]


INVALID = {
    "list-too-short": run_by_t0("hdr.tags[0] = {1};"),
    "list-too-long": run_by_t0("hdr.tags[0] = {1, 2, 3};"),
    "list-of-other-types": run_by_t0("hdr.tags[0] = {20w1, true};"),
    "list-into-a-field": run_by_t0("meta.a = {1};"),
    "list-cast": run_by_t0("hdr.tags[0] = (tag_t){1};"),
    "list-compared": run_by_t0("if (hdr.tags[0] == {1}) { meta.a = 1; }"),
    "isValid": run_by_t0("meta.t = hdr.ip.isValid(1);"),
    "setValid": run_by_t0("hdr.ip.setValid(1);"),
    "drop": run_by_t0("mark_to_drop(meta);"),
    "hash": run_by_t0("hash(meta.a, 5, 16w0, {meta.b}, 16w5);"),
    "clone": run_by_t0("clone(5, 5);"),
    "index": with_index("meta.t"),
    "shift": run_by_t0("meta.a = meta.a << -1;"),
    "shift-by-signed": run_by_t0("meta.a = meta.a << (int<16>)meta.b;"),
    "shift-of-constants": run_by_t0("", top="const bit<8> X = 1 << -1;"),
    "mask-of-exact": with_entry("exact", "1 &&& 3"),
    "range-of-exact": with_entry("exact", "1 .. 3"),
    "range-of-ternary": with_entry("ternary", "1 .. 3"),
    "size": run_by_t0("").replace("size = 64", "size = 0"),
    "few-operands": run_by_t0("").replace(INGRESS, "control I(inout H hdr, inout M meta)"),
    "other-operands": run_by_t0("").replace(INGRESS, INGRESS.replace("standard_metadata_t", "M")),
    "type-in-itself": run_by_t0("", top="struct A { A x; }"),
    "selector": program("table t { key = { meta.a: selector; } actions = { NoAction; } }", "t.apply();"),
}


@pytest.mark.parametrize("text", INVALID.values(), ids=INVALID)
def test_invalid_p4(tmp_path, text):
    """Code that P4 does not allow ends with exit status 2 and the line of the error."""
    code, answer, _ = fit(tmp_path, text)
    assert code == 2
    assert answer["error"]["line"]


VALID = {
    "variables-inside-others": program(table("t0", ETH, ""), "bit<8> x; { bit<8> x; x = 1; } t0.apply();"),
    "functions-of-other-operands": run_by_t0(
        "meta.a = f(meta.b) + f(meta.b, meta.c);",
        top="bit<16> f(in bit<16> x) { return x; } bit<16> f(in bit<16> x, in bit<16> y) { return f(x); }",
    ),
    "list": run_by_t0("hdr.tags[0] = {1, 2}; hdr.tags[1] = {rest = 1, label = 2};"),
    "index": with_index("(bit<32>)meta.a"),
    "shift": run_by_t0("meta.a = meta.a << 3; meta.b = meta.b >> meta.e;"),
    "mask": with_entry("ternary", "1 &&& 3"),
    "range": with_entry("range", "1 .. 3"),
}


@pytest.mark.parametrize("text", VALID.values(), ids=VALID)
def test_valid_p4(tmp_path, text):
    """Code that resembles the invalid code, but is allowed, is read."""
    code, _, said = fit(tmp_path, text)
    assert code == 0, said


@pytest.mark.parametrize("how", ["action", "control"])
def test_part_of_a_field_as_operand(tmp_path, how):
    """A slice as output operand is a write to the whole field, which also reads the field."""
    set_x = "action set(inout bit<8> x) { x = 1; } S() s;"
    first, apply = ("set(meta.w[7:0]);", "") if how == "action" else ("meta.b = 1;", "s.apply(meta.w[7:0]);")
    found = dependencies(
        tmp_path,
        program(
            set_x + table("t0", ETH, "meta.w = 1;") + table("t1", ETH, first) + table("t2", "meta.w: exact", ""),
            f"t0.apply(); t1.apply(); {apply} t2.apply();",
            controls="control S(inout bit<8> x) { " + table("u", "", "x = 1;") + " apply { u.apply(); } }",
        ),
    )
    writer = "t1" if how == "action" else "u"
    demand(found, ("t0", writer, "action"), (writer, "t2", "match"))


# --- Messages, and checks of answers ---

SAID = {
    "missing-semicolon": (run_by_t0("meta.a = 1\nmeta.b = 2;"), "close what stands before it with ;"),
    "missing-bracket": (run_by_t0("meta.a = (1 + 2;"), "write )"),
    "leading-dot": (program("action q() { } table t { actions = { .q; } }", "t.apply();"), "a dot before it"),
    "deep-expression": (run_by_t0("meta.a = " + "-" * 3000 + "1;"), "nests too deep"),
    "deep-brackets": (run_by_t0("meta.a = " + "(" * 500 + "1" + ")" * 500 + ";"), "nest deeper than"),
    "shift": ("#if 1 << 9999999999\n#endif\n" + run_by_t0(""), "has no value"),
    "shift-of-shift": ("#if 1 << (1 << 40)\n#endif\n" + run_by_t0(""), "has no value"),
    "call": ("#if 9 * f(1)\n#endif\n" + run_by_t0(""), "#if calls f"),
    "minuses": (f"#if {'-' * 5000}1\n#endif\n" + run_by_t0(""), "-... has no value"),
}


@pytest.mark.parametrize(("text", "wanted"), SAID.values(), ids=SAID)
def test_what_is_said(tmp_path, text, wanted):
    """The message has a line, and the true reason or a useful hint."""
    started = time.monotonic()
    code, answer, said = fit(tmp_path, text)
    assert code == 2
    assert answer["error"]["line"]
    assert wanted in said
    assert time.monotonic() - started < 5


def test_conditions_of_the_preprocessor(tmp_path):
    """Shifts, macros and ``defined`` of missing macros have their values in conditions of the preprocessor."""
    text = "#define F(x) ((x) << 3)\n#if F(2) == 16 && !defined(G) && 1 << 62 > 0\n#else\njunk\n#endif\n"
    code, _, said = fit(tmp_path, text + run_by_t0(""))
    assert code == 0, said


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
@pytest.mark.parametrize("options", [("--json",), ()], ids=["json", "text"])
@pytest.mark.parametrize("program", ["fig6.8", "nothing.p4"])
def test_output_that_is_full(tmp_path, program, options):
    """Output to a full disk ends with one line and exit status 2."""
    command = [sys.executable, "-c", "from subak.cli import main; main()", "fit", program, "--switch", "toy-rmt"]
    with open("/dev/full", "w") as full:
        run = subprocess.run(
            [*command, *options], stdout=full, stderr=subprocess.PIPE, text=True, timeout=30, check=False, cwd=tmp_path
        )
    assert run.returncode == 2
    assert len(run.stderr.splitlines()) == 1
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("key", "value"),
    [("stages", 7), ("stages", "1"), ("program", "other"), ("switch", "flexpipe"), ("blocks", 10**400)],
)
def test_check_of_an_answer_that_says_otherwise(tmp_path, key, value):
    """An answer whose own values differ from those of its placement is invalid."""
    text = run_by_t0("meta.a = 1;")
    _, answer, _ = fit(tmp_path, text)
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(answer))
    assert fit(tmp_path, text, "--check", str(path))[0] == 0
    path.write_text(json.dumps({**answer, key: value}))
    code, checked, _ = fit(tmp_path, text, "--check", str(path))
    assert code == 1
    assert any(one.startswith(key) for one in checked["violations"])


def test_tables_of_instances_have_names_of_one_form(tmp_path):
    """Tables of the same name get the instance's name as prefix."""
    code, answer, _ = fit(
        tmp_path,
        program(
            "S() s1; S() s2;",
            "s1.apply(meta.a); s2.apply(meta.b);",
            controls="control S(inout bit<16> x) { " + table("p", "x: exact", "x = 1;") + " apply { p.apply(); } }",
        ),
    )
    assert code == 0
    assert {row["table"] for row in answer["placement"]} == {"I.s1.p", "I.s2.p"}
