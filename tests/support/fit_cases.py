"""Small P4 programs, and `subak fit` on them as a command."""

import json

import commands

PROGRAM = """#include <core.p4>
#include <v1model.p4>
%(top)s
header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header ip_t { bit<8> ttl; bit<8> tos; bit<32> src; bit<32> dst; }
header tag_t { bit<20> label; bit<12> rest; }
struct H { eth_t eth; ip_t ip; ip_t inner; tag_t[3] tags; }
struct M { bit<16> a; bit<16> b; bit<16> c; bit<16> d; bit<32> w; bit<8> e; bit<1> f; bool t; bit<2> colour;
    @field_list(1) bit<16> kept; }
parser P(packet_in pk, out H hdr, inout M meta, inout standard_metadata_t std) {
    state start { pk.extract(hdr.eth); transition accept; } }
control V(inout H hdr, inout M meta) { apply { } }
control C(inout H hdr, inout M meta) { apply { } }
%(controls)s
control I(inout H hdr, inout M meta, inout standard_metadata_t std) { %(tables)s apply { %(body)s } }
control E(inout H hdr, inout M meta, inout standard_metadata_t std) { %(late)s apply { %(late_body)s } }
control D(packet_out pk, in H hdr) { apply { pk.emit(hdr.eth); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
RANK = {"reverse-match": 0, "successor": 1, "action": 2, "match": 3}
ETH = "hdr.eth.dst: exact"


def program(tables="", body="", late="", late_body="", top="", controls=""):
    return PROGRAM % {
        "tables": tables,
        "body": body,
        "late": late,
        "late_body": late_body,
        "top": top,
        "controls": controls,
    }


def table(name, key, action):
    """A table with this key, whose one action has this body."""
    keys = f"key = {{ {key}; }}" if key else ""
    actions = f"actions = {{ {name}_x; NoAction; }}"
    return f"action {name}_x() {{ {action} }} table {name} {{ {keys} {actions} size = 64; }}\n"


def fit(folder, text, *options, name="case.p4"):
    """Runs the command on this text; returns exit status, document and standard error."""
    path = folder / name
    path.write_text(text)
    # A placement that is checked has no solver.
    workers = () if "--check" in options else ("--workers", "1")
    run = commands.run("fit", str(path), "--json", *workers, *options, timeout=30)
    out, err = run.stdout.decode(), run.stderr.decode()
    assert "Traceback" not in err, err[-500:]
    return run.returncode, json.loads(out or "{}"), err + out


def dependencies(folder, text, **more):
    """Kind of the dependency of each pair of tables."""
    code, answer, _ = fit(folder, text, **more)
    assert code == 0, answer
    return {(d["before"], d["after"]): d["kind"] for d in answer["dependencies"]}


def demand(found, *wanted):
    """Fails unless each wanted dependency exists, of this kind or a stricter one."""
    missing = [w for w in wanted if RANK.get(found.get(w[:2]), -1) < RANK[w[2]]]
    assert not missing, (missing, found)
