"""Randomly broken programs, and very large ones: each is read, or refused with its place, in a short time.

``SUBAK_FIT_BROKEN=10000 pytest tests/fit/test_fit_broken.py`` tries more of them.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from conftest import ROOT
from p4_random import Maker
from p4_spelled import P4, Json
from subak import InputError
from subak.pipeline import program_file
from test_fit_p4 import BMV2, HEAD, ONE, TAIL

BROKEN = int(os.environ.get("SUBAK_FIT_BROKEN", "400"))
ODD: tuple[Any, ...] = ("x", None, 3, -1, [], {}, True, "", [1], {"a": 1}, 1e300, "0x1", [[]], ["ip", "zz"])
WORDS = ["", "0", "-1", "99999999999", "{", "}", "hdr", "meta", "apply", "exit", "(", ")", "[0]", "bit<8>", "in", "?"]


def refused_or_read(data: bytes, file: str) -> bool:
    """Whether a program is refused; any exception other than ``InputError`` fails the test."""
    try:
        program_file.read(data, file)
    except InputError:
        return True
    return False


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, part in inner for found in places(part, (*path, key)))]


def test_json_that_is_broken_anywhere_is_refused_or_read() -> None:
    whole = [Maker(seed) for seed in range(40)]
    random, refused = Random(1), 0
    for k, made in enumerate(whole):
        P4(made)
        if not made.json_too:
            continue
        told = Json(made, old=bool(k % 2)).told
        every = places(told)[1:]
        for _ in range(BROKEN // 10):
            changed, path = json.loads(json.dumps(told)), random.choice(every)
            holder = changed
            for key in path[:-1]:
                holder = holder[key]
            if random.random() < 0.4:
                del holder[path[-1]]
            else:
                holder[path[-1]] = random.choice(ODD)
            refused += refused_or_read(json.dumps(changed).encode(), "broken.json")
    assert refused > BROKEN // 10


def test_p4_that_is_broken_anywhere_is_refused_or_read(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ROOT / "examples" / "p4"
    monkeypatch.chdir(folder)
    texts = [re.findall(r"\w+|\s+|[^\w\s]", path.read_text()) for path in sorted(folder.glob("*.p4"))]
    random, refused = Random(2), 0
    for _ in range(BROKEN):
        tokens = list(random.choice(texts))
        for _ in range(random.randint(1, 3)):
            at = random.randrange(len(tokens))
            tokens[at : at + random.randint(0, 1)] = [random.choice((*WORDS, random.choice(tokens)))]
        refused += refused_or_read("".join(tokens).encode(), "broken.p4")
    assert refused > BROKEN // 3


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("action a() { b(); } action b() { a(); } apply { a(); }", '"b" calls itself'),
        ("action a() { a(); } apply { a(); }", '"a" calls itself'),
        (
            "action a25() { meta.m = 1; } "
            + " ".join(f"action a{k}() {{ a{k + 1}(); a{k + 1}(); }}" for k in reversed(range(25)))
            + " apply { a0(); }",
            "more than 200000 statements",
        ),
        ("apply { meta.m = " + " + ".join(["meta.m"] * 3000) + "; }", "it nests too deep"),
        (
            "#define A0 1\n"
            + "\n".join(f"#define A{k + 1} A{k} + A{k}" for k in range(40))
            + "\napply { meta.m = A40; }",
            "macros grow",
        ),
        (
            "#define A0(x) x\n"
            + "\n".join(f"#define A{k + 1}(x) A{k}(x) + A{k}(x)" for k in range(40))
            + "\napply { meta.m = A40(1); }",
            "macros grow",
        ),
        ('#include "/dev/zero"\napply { }', "the include /dev/zero is not found"),
        ("#define\napply { }", "cannot be preprocessed"),
        ("apply { " + "".join(f"if (meta.m == {k}) {{ meta.m = 1; }} " for k in range(1200)) + "}", "more than 2000"),
        (ONE.replace("actions", "key = { meta.m: exact; } actions") + "apply { t.apply(); }", 'two properties "key"'),
        ("table t { key = { meta.m: exact; } } apply { t.apply(); }", "no list of actions"),
        (ONE + "apply { switch (t.apply().action_run) { a: { } a: { } } }", "there are two cases a"),
        (ONE + "apply { if (t.apply().hit && meta.m == 1) { } }", "a table is applied inside an expression"),
    ],
)
def test_what_has_no_end_or_no_meaning_is_refused(inside: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "grows.p4"
    with pytest.raises(InputError) as raised:
        program_file.read((HEAD + inside + TAIL).encode(), str(path))
    assert said in raised.value.what


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("actions", 0, "primitives", 0, "op"), "warp", 'the primitive "warp" is not modelled'),
        (("actions", 0, "primitives", 0, "parameters", 0, "type"), "warp", 'the type "warp" is not modelled'),
        (("pipelines", 0, "tables", 0, "key", 0, "match_type"), "warp", '"warp" is none of the words'),
        (("pipelines", 0, "init_table"), "nobody", 'there is no table or condition "nobody"'),
        (("pipelines", 0, "conditionals", 0, "expression", "value", "op"), "warp", 'the operation "warp" is not'),
        (("header_types", 0, "fields", 0), ["x"], "this declares no field"),
    ],
)
def test_what_is_not_modelled_in_json_is_refused(path: tuple[Any, ...], value: Any, said: str) -> None:
    told = json.loads(json.dumps(BMV2))
    holder = told
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    with pytest.raises(InputError) as raised:
        program_file.read(json.dumps(told).encode(), "odd.json")
    assert said in raised.value.what
    assert raised.value.place
