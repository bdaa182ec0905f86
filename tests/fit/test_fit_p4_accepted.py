"""P4 that p4c accepts, too: macros of the compiler, declarations outside of controls, defaults, and options -D and
-I."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Subak
from subak import InputError
from subak.pipeline import program_file
from subak.pipeline.program import Program
from test_fit_p4 import HEAD, ONE, TAIL, machine, packet_of, source


def read(text: bytes, **defines: str) -> Program:
    return program_file.read(text, "test.p4", defines)


def names(program: Program) -> list[str]:
    return [table.name for table in program.tables]


@pytest.mark.parametrize("name", ["_CORE_P4_", "_V1_MODEL_P4_", "__TARGET_BMV2__", "__p4c__", "V1MODEL_VERSION"])
@pytest.mark.parametrize("asked", ["#ifdef {}", "#if defined({})", "#if !defined({})\n#else"])
def test_a_table_behind_a_macro_of_the_compiler_is_there(name: str, asked: str) -> None:
    guarded = f"{ONE} apply {{\n{asked.format(name)}\nt.apply();\n#endif\nmeta.m = 1; }}"
    program = read(source(guarded))
    assert "t" in names(program)
    assert not program.notes


def test_architecture_files_define_their_macros_only_where_they_are_included() -> None:
    before = "#ifdef _CORE_P4_\n#error too early\n#endif\n"
    assert "t" in names(read(before.encode() + source(ONE + "apply { t.apply(); }")))


def test_an_error_in_a_branch_not_taken_is_passed_over() -> None:
    text = "#ifdef NOPE\n#error never\n#include\n#endif\n" + source(ONE + "apply { t.apply(); }").decode()
    assert "t" in names(read(text.encode()))
    with pytest.raises(InputError, match="#error never"):
        read(text.encode(), NOPE="1")


def test_a_macro_that_nothing_defines_is_said_and_can_be_defined() -> None:
    text = source(f"{ONE} apply {{\n#ifdef WITH_T\nt.apply();\n#endif\nmeta.m = 1; }}")
    program = read(text)
    assert "t" not in names(program)
    assert any("WITH_T is not defined" in note and "line 16" in note for note in program.notes), program.notes
    program = read(text, WITH_T="1")
    assert "t" in names(program)
    assert not program.notes


def test_a_definition_has_its_value_and_an_unused_one_is_said() -> None:
    text = source("table t { key = { meta.m: exact; } actions = { NoAction; } size = SIZE; } apply { t.apply(); }")
    (table,) = read(text, SIZE="77").tables
    assert table.entries == 77
    assert any("-D SIZES" in note for note in read(text, SIZE="77", SIZES="1").notes)


@pytest.mark.parametrize(
    ("directive", "entries", "said"),
    [
        ("#define SIZE 12", 12, True),
        ("#undef SIZE\n#define SIZE 12", 12, True),
        ("#define SIZE 77", 77, False),
        ("#ifndef SIZE\n#define SIZE 12\n#endif", 77, False),
    ],
)
def test_a_definition_that_the_program_overrides_is_said(directive: str, entries: int, said: bool) -> None:
    table = "table t { key = { meta.m: exact; } actions = { NoAction; } size = SIZE; } apply { t.apply(); }"
    program = read(source(f"\n{directive}\n{table}"), SIZE="77")
    assert [table.entries for table in program.tables] == [entries]
    assert any(note.startswith("-D SIZE: the program defines") for note in program.notes) == said


def test_annotations_of_stages_are_said() -> None:
    plain = "table t { key = { meta.m: exact; } actions = { NoAction; } } apply { t.apply(); }"
    assert not read(source(plain)).notes
    for words in ("@stage(3) ", "@pragma stage 3\n", '@name("x") @stage(1, 1024)\n'):
        program = read(source(f"/* @stage(9) */ {words}{plain}"))
        assert program.notes == ("1 annotations @stage have no effect: the solver chooses the stages of tables",)


def test_defines_are_refused_where_they_mean_nothing(subak: Subak, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="macros"):
        program_file.load("l2l3-simple", "rmt", {"A": "1"})
    with pytest.raises(InputError, match="not the name of a macro"):
        read(source("apply { }"), **{"1x": "2"})
    file = tmp_path / "p.p4"
    file.write_bytes(source(f"{ONE} apply {{\n#if N == 3\nt.apply();\n#endif\nmeta.m = 1; }}"))
    ended = subak("fit", str(file), "-D", "N=3", "--json", "--time-limit", "20")
    answer = ended.json
    assert "t" in {row["table"] for row in answer["placement"]}


def test_included_files_are_found_in_the_folders_named(subak: Subak, tmp_path: Path) -> None:
    """Includes by ``"..."`` and ``<...>``, also from included files; for ``"..."`` the program's own folder comes
    first."""
    for folder, size in (("program", 1), ("first", 2), ("second", 3)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "size.p4").write_text(f"#define SIZE {size}\n")
    (tmp_path / "second" / "only.p4").write_text('#include "deeper.p4"\n')
    (tmp_path / "second" / "deeper.p4").write_text("#define KIND exact\n")
    table = "table t { key = { meta.m: KIND; } actions = { NoAction; } size = SIZE; } apply { t.apply(); }"
    file = tmp_path / "program" / "p.p4"
    folders = [str(tmp_path / "first"), str(tmp_path / "second")]

    def entries(include: str) -> int:
        file.write_bytes(f"{include}\n#include <only.p4>\n".encode() + source(table))
        (only,) = program_file.load(str(file), "rmt", folders=folders).tables
        return only.entries

    assert entries('#include "size.p4"') == 1
    # Names in brackets are searched in the ``-I`` folders, not beside the program.
    assert entries("#include <size.p4>") == 2
    with pytest.raises(InputError, match=r"line 1: <size.p4> is not among what is known; .* with -I"):
        program_file.load(str(file))
    ended = subak("fit", file, "-I", folders[0], "--include", folders[1], "--json", "--time-limit", "20")
    assert {row["table"] for row in ended.json["placement"]} == {"t"}


def test_folders_are_refused_where_they_mean_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folders of included files"):
        program_file.load("l2l3-simple", "rmt", folders=[str(tmp_path)])
    file = tmp_path / "p.p4"
    file.write_bytes(source("apply { meta.m = 1; }"))
    with pytest.raises(InputError, match="there is no folder"):
        program_file.load(str(file), folders=[str(tmp_path / "none")])


@pytest.mark.parametrize(
    ("kind", "width"),
    [("packets", 64), ("bytes", 64), ("packets_and_bytes", 128)],
)
def test_a_counter_of_both_takes_two_cells(kind: str, width: int) -> None:
    direct = f"direct_counter(CounterType.{kind}) c; action a() {{ c.count(); }} "
    direct += "table t { key = { meta.m: exact; } actions = { a; } counters = c; } apply { t.apply(); }"
    (table,) = read(source(direct)).tables
    assert table.statistics_width == width
    for made in (f"counter(100000, CounterType.{kind}) c;", f"counter(type = CounterType.{kind}, size = 100000) c;"):
        (table,) = read(source(made + " apply { c.count(5); }")).tables
        assert [(r.width, r.cells) for r in table.registers] == [(width, 100_000)]


def test_externs_outside_of_controls_are_one_for_all() -> None:
    outside = "register<bit<8>>(256) r; counter(16, CounterType.bytes) n; meter(4, MeterType.bytes) m;\n"
    outside += "action_selector(HashAlgorithm.crc16, 16, 4) s;\ntypedef register<bit<48>> Wide;\nWide(7) w;\n"
    head = HEAD.replace("control I(", outside + "control I(").replace(
        "inout standard_metadata_t std) { apply { } }", "inout standard_metadata_t std) { apply { r.write(1, 2); } }"
    )
    inside = "table t { key = { meta.m: exact; meta.wide: selector; } actions = { NoAction; } implementation = s; } "
    inside += (
        "bit<48> x; apply { t.apply(); r.read(meta.m, 0); n.count(1); m.execute_meter(1, meta.wide); w.read(x, 0); }"
    )
    program = read((head + inside + TAIL).encode())
    held = {(r.name, r.width, r.cells) for table in program.tables for r in table.registers}
    assert held == {("r", 8, 256), ("n", 64, 16), ("m", 128, 4), ("w", 48, 7)}
    assert sum(any(r.name == "r" for r in table.registers) for table in program.tables) == 2


def test_no_action_can_be_called_and_takes_nothing() -> None:
    called = read(source(ONE + "apply { NoAction(); t.apply(); if (meta.m == 1) { NoAction(); } }"))
    assert [name for name in names(called) if not name.startswith("if")] == ["t"]
    inside = read(source("action a() { NoAction(); meta.m = 1; } apply { a(); }"))
    assert [table.modifies for table in inside.tables] == [{"meta.m"}]
    with pytest.raises(InputError, match="NoAction takes 0 operands"):
        read(source("apply { NoAction(1); }"))


def test_a_no_action_of_the_programs_own_is_not_nothing() -> None:
    own = "action NoAction() { meta.m = 3; } table t { key = { meta.wide: exact; } actions = { NoAction; } } "
    (table,) = read(source(own + "apply { t.apply(); }")).tables
    assert table.modifies == {"meta.m"}


def test_strings_may_have_several_lines() -> None:
    text = 'apply { log_msg("one // no comment\n two \\" \n three"); meta.m = meta.nope; }'
    with pytest.raises(InputError) as raised:
        read(source(text))
    assert raised.value.place.startswith("line 17")
    read(source(text.replace("meta.nope", "1")))


def test_a_field_named_type_is_a_key() -> None:
    head = HEAD.replace("header h_t { ", "header h_t { bit<8> type; ")
    text = (
        head + "table t { key = { hdr.h.type: exact; meta.m: ternary; } actions = { NoAction; } } apply { t.apply(); }"
    )
    (table,) = read((text + TAIL).encode()).tables
    assert [(key.field, key.kind) for key in table.keys] == [("hdr.h.type", "exact"), ("meta.m", "ternary")]


def test_parameters_have_defaults_and_names() -> None:
    action = "action put(in bit<8> x, in bit<8> y = 9) { meta.m = x; meta.port = (bit<9>)y; } "
    function = "bit<8> less(in bit<8> a, in bit<8> b = 2) { return a - b; }\ncontrol I("
    made = machine("apply { meta.m = 7; }")
    assert made
    program = read(
        (
            HEAD.replace("control I(", function)
            + action
            + "apply { put(hdr.h.a); put(y = 1, x = less(hdr.h.b)); }"
            + TAIL
        ).encode()
    )
    assert [table.reads for table in program.tables] == [{"hdr.h.a"}, {"hdr.h.b"}]
    with pytest.raises(InputError, match='"x" is not given'):
        read(source(action + "apply { put(y = 1); }"))
    with pytest.raises(InputError, match='no parameter "z"'):
        read(source(action + "apply { put(x = 1, z = 2); }"))
    with pytest.raises(InputError, match="by name and by place"):
        read(source(action + "apply { put(1, y = 2); }"))


def test_operands_by_name_run_in_the_order_of_the_parameters() -> None:
    made = machine("action put(bit<8> x, bit<8> y) { meta.m = x - y; } apply { put(y = 2, x = hdr.h.a); }")
    packet = packet_of(made, a=7)
    made.process(packet)
    assert packet[made.fields["meta.m"]] == 5


def test_types_of_controls_tuples_and_actions_named_as_externs() -> None:
    declared = (
        "control proto(inout bit<8> x);\nparser parts(packet_in p);\ntypedef tuple<bit<4>, bit<12>> pair_t;\ncontrol I("
    )
    inside = "action hash() { hash(meta.m, HashAlgorithm.crc16, 8w0, { hdr.h.a }, 8w7); } pair_t x; "
    inside += "apply { hash(); x = { 1, 2 }; meta.wide = 4w0 ++ x[1]; }"
    program = read((HEAD.replace("control I(", declared) + inside + TAIL).encode())
    assert any("hdr.h.a" in table.reads and "meta.m" in table.modifies for table in program.tables)


def test_a_default_of_a_controls_parameter_may_be_a_list() -> None:
    inner = "struct two_t { bit<8> a; bit<8> b; }\n"
    inner += "control inner(inout metadata_t m, in two_t t = { 3, 4 }) { apply { m.m = t.a; } }\ncontrol I("
    program = read((HEAD.replace("control I(", inner) + "inner() i; apply { i.apply(meta); }" + TAIL).encode())
    assert any("meta.m" in table.modifies for table in program.tables)


def test_an_included_file_is_named_with_its_own_lines(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "deep.p4").write_text("\n\n#if 1 <\n#endif\n")
    (tmp_path / "inc" / "types.p4").write_text('\n#include "deep.p4"\n')
    (tmp_path / "inc" / "wrong.p4").write_text("\n\n\nstruct x_t { nope y; }\n")
    for included, place in (("types.p4", ("deep.p4", "line 3")), ("wrong.p4", ("wrong.p4", "line 4"))):
        main = tmp_path / "main.p4"
        main.write_bytes(f'#include "inc/{included}"\n'.encode() + source("apply { meta.m = 1; }"))
        with pytest.raises(InputError) as raised:
            program_file.load(str(main))
        assert raised.value.file == str(tmp_path / "inc" / place[0])
        assert raised.value.place.startswith(place[1])


@pytest.mark.parametrize(
    "text",
    [
        "header_type h_t { fields { a : 8; } }\nheader h_t h;\n",
        "parser start { return ingress; }\n",
        "table t { reads { h.a : exact; } actions { a; } }\n",
        "control ingress { apply(t); }\n",
    ],
)
def test_p4_14_is_named(text: str) -> None:
    with pytest.raises(InputError, match="the program is P4_14"):
        read(b"// a comment\n" + text.encode())
