"""Imports among the modules of each Rust crate have no cycle, so that modules can be read from the bottom up.

A name counts as that of the module that defines it, also where another module re-exports it. A module may use its own
submodules: it is their facade. A module of the crate's root and its submodules together need no other that needs them.
Code under `#[cfg(test)]` does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conftest import ROOT

CRATES = sorted(path.parent for path in (ROOT / "crates").glob("*/Cargo.toml"))

Name = tuple[str, ...]
"""A path of modules from the crate's root, or of a name in one: `("over", "join")`."""

# Comments, strings and characters, of which none holds code; a lifetime is no character.
LITERAL = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | b?r(?P<hashes>\#*)".*?"(?P=hashes) | b?"(?:\\.|[^"\\])*" | b?'(?:\\[^']*|[^'\\])'""",
    re.DOTALL | re.VERBOSE,
)
TEST_FILE = re.compile(r"#\[cfg\(test\)\]\s*mod\s+(\w+)\s*;")
TEST = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*")
USE = re.compile(r"(?:^|(?<=[;{}\]]))\s*(?P<public>pub(?:\([^)]*\))?\s+)?use\s+(?P<tree>[^;]*);", re.MULTILINE)
PATH = re.compile(r"(?<![\w:$])(\w+(?:\s*::\s*\w+)+)")


def without_tests(text: str) -> str:
    """Code alone: no comments, no literals, no items under `#[cfg(test)]`."""
    text = LITERAL.sub(" ", text)
    while found := TEST.search(text):
        end = found.end()
        brace, semicolon = text.find("{", end), text.find(";", end)
        if brace < 0 or 0 <= semicolon < brace:
            end = semicolon + 1
        else:
            depth, end = 1, brace + 1
            while depth:
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
        text = text[: found.start()] + text[end:]
    return text


def leaves(tree: str) -> Iterator[tuple[Name, str]]:
    """The paths that a `use` names, each with the name that stands for it; `*` for all names of a module."""
    tree = tree.strip()
    if "{" not in tree:
        path, _, alias = tree.partition(" as ")
        parts = tuple(part.strip() for part in path.split("::") if part.strip())
        if len(parts) > 1 and parts[-1] == "self":
            parts = parts[:-1]
        yield parts, alias.strip() or parts[-1]
        return
    head, rest = tree.split("{", 1)
    depth, start = 0, 0
    rest = rest.strip()[:-1] + ","
    for at, char in enumerate(rest):
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and not depth:
            if rest[start:at].strip():
                yield from leaves(head.strip() + rest[start:at].strip())
            start = at + 1


@dataclass
class Module:
    """The file of a module."""

    name: Name
    code: str
    """Code without `use`."""
    uses: list[tuple[bool, Name, str]]
    """Whether it is a re-export, the path, and the name that stands for it."""
    names: dict[str, Name] = field(default_factory=dict)
    """Where a name of a `use` comes from: a path from the root."""
    globs: list[Name] = field(default_factory=list)


def module(name: Name, text: str) -> Module:
    """The module of that name from the text of its file."""
    code = without_tests(text)
    uses = [(bool(use["public"]), *leaf) for use in USE.finditer(code) for leaf in leaves(use["tree"])]
    return Module(name, USE.sub(" ", code), uses)


def named(path: str) -> Name:
    """The name of the module in the file of that path below `src`."""
    parts = Path(path).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib") else parts


class Crate:
    """The modules of a crate."""

    def __init__(self, sources: dict[str, str]) -> None:
        """`sources`: the text of each file by its path below `src`."""
        texts = {named(path): text for path, text in sources.items()}
        tests = {(*name, test) for name, text in texts.items() for test in TEST_FILE.findall(text)}
        self.modules = {name: module(name, text) for name, text in texts.items() if name not in tests}
        self.spaces = {name[:k] for name in self.modules for k in range(len(name) + 1)}
        for one in self.modules.values():
            for _, path, alias in one.uses:
                if (whole := self.absolute(one, path)) is None:
                    continue
                if alias == "*":
                    one.globs.append(whole[:-1])
                else:
                    one.names[alias] = whole

    def absolute(self, one: Module, path: Name) -> Name | None:
        """A path as `one` writes it, from the crate's root; `None` for one that leaves the crate."""
        first, rest = path[0], path[1:]
        if first == "crate":
            return rest
        if first in ("super", "self"):
            base = one.name
            while path and path[0] in ("super", "self"):
                base = base[:-1] if path[0] == "super" else base
                path = path[1:]
            return base + path
        if (*one.name, first) in self.spaces:
            return one.name + path
        return None

    def home(self, path: Name, seen: frozenset[Name] = frozenset()) -> Name | None:
        """The module that defines what `path` names; `None` if that is in no file of the crate."""
        space = max((path[:k] for k in range(len(path) + 1) if path[:k] in self.spaces), key=len)
        one = self.modules.get(space)
        if one is None or len(space) == len(path) or path in seen:
            return space if one else None
        item, seen = path[len(space)], seen | {path}
        if (target := one.names.get(item)) is not None and target != (*space, item):
            return self.home(target + path[len(space) + 1 :], seen)
        if not re.search(rf"\b(?:fn|struct|enum|union|trait|type|const|static|mod|macro_rules!)\s+{item}\b", one.code):
            for base in one.globs:
                found = self.home((*base, item), seen)
                if found not in (None, base):
                    return found
        return space

    def needs(self, one: Module) -> set[Name]:
        """The modules whose names `one` uses, without its own submodules."""
        paths = [
            path[:-1] if alias == "*" else path
            for public, path, alias in one.uses
            if not public or (alias != "*" and re.search(rf"(?<!::)\b{alias}\b", one.code))
        ]
        paths += [tuple(part.strip() for part in found[1].split("::")) for found in PATH.finditer(one.code)]
        homes = {self.home(whole) for path in paths if path and (whole := self.absolute(one, path)) is not None}
        return {home for home in homes if home is not None and home[: len(one.name)] != one.name}

    def cycles(self) -> list[list[str]]:
        """Modules that need each other, in groups; none if modules can be read from the bottom up."""
        return groups({name: self.needs(one) for name, one in self.modules.items()})

    def cycles_of_rooms(self) -> list[list[str]]:
        """The same of modules of the crate's root, each with its submodules; the root itself does not count."""
        rooms: dict[Name, set[Name]] = {}
        for name, one in self.modules.items():
            if room := name[:1]:
                rooms.setdefault(room, set()).update(home[:1] for home in self.needs(one) if home[:1] not in ((), room))
        return groups(rooms)


def groups(needs: dict[Name, set[Name]]) -> list[list[str]]:
    """Modules that need each other, in groups."""
    reach = {name: reachable(needs, name) for name in needs}
    found = {tuple(sorted(b for b in reach[a] if a in reach.get(b, ()))) for a in needs if a in reach[a]}
    return [["::".join(("crate", *name)) for name in group] for group in sorted(found)]


def crate(root: Path) -> Crate:
    """The modules below `src` of the crate in folder `root`."""
    src = root / "src"
    return Crate({path.relative_to(src).as_posix(): path.read_text() for path in src.rglob("*.rs")})


def reachable(needs: dict[Name, set[Name]], start: Name) -> set[Name]:
    """The modules that `start` needs, directly or through others."""
    found: set[Name] = set()
    left = [start]
    while left:
        new = needs.get(left.pop(), set()) - found
        found |= new
        left += new
    return found


@pytest.mark.parametrize("root", CRATES, ids=lambda root: root.name)
def test_no_modules_use_each_other(root: Path) -> None:
    assert crate(root).cycles() == []
    assert crate(root).cycles_of_rooms() == []


LOW = "pub struct Low;\npub(crate) fn low() {}\n"


@pytest.mark.parametrize(
    "low",
    [
        "use crate::top::Top;",
        "use super::{other::Other, top::Top as T};",
        "fn f() {\n    use crate::top::Top;\n}",
        "fn f() -> crate::top::Top { todo!() }",
        "fn f() { super::top::top::<u8>() }",
        "use crate::top::*;",
        "use crate::top;\nfn f() { top::top() }",
        # The root re-exports it.
        "use crate::Top;",
        # Another module re-exports it.
        "use crate::other::Top;",
        'const TEXT: &str = "// no comment";\nuse crate::top::Top;',
        "#[cfg(test)]\nmod tests { fn f() { {} } }\nuse crate::top::Top;",
    ],
)
def test_a_circle_is_seen_however_a_name_is_used(low: str) -> None:
    sources = {
        "lib.rs": "mod low;\nmod other;\nmod top;\npub use top::Top;\n",
        "top.rs": "use crate::low::Low;\npub struct Top(Low);\npub fn top() {}\n",
        "other.rs": "pub struct Other;\npub use crate::top::Top;\n",
        "low.rs": LOW,
    }
    assert Crate(sources).cycles() == []
    assert Crate({**sources, "low.rs": LOW + low}).cycles() == [["crate::low", "crate::top"]]


@pytest.mark.parametrize(
    "low",
    [
        "// use crate::top::Top;",
        "/* use crate::top::Top; */",
        'const TEXT: &str = "use crate::top::Top;";',
        "#[cfg(test)]\nmod tests {\n    use crate::top::Top;\n}",
        "#[cfg(test)]\nuse crate::top::Top;",
        "use crate::other::Other;",
        # The name of a module that is not its own.
        "use std::top::Top;",
    ],
)
def test_what_is_no_use_makes_no_circle(low: str) -> None:
    sources = {
        "lib.rs": "mod low;\nmod other;\nmod top;\npub use top::Top;\n",
        "top.rs": "use crate::low::Low;\npub struct Top(Low);\n",
        "other.rs": "pub struct Other;\npub use crate::top::Top;\n",
        "low.rs": LOW + low,
    }
    assert Crate(sources).cycles() == []


def test_a_module_may_use_its_submodules_but_they_count_as_its_users() -> None:
    sources = {
        "lib.rs": "mod a;\nmod b;\n",
        "a/mod.rs": "mod part;\nuse part::Part;\npub struct A(Part);\n",
        "a/part.rs": "use super::A;\npub struct Part;\n",
        "b.rs": "use crate::a::A;\n",
    }
    assert Crate(sources).cycles() == []
    sources["a/mod.rs"] += "use crate::b::B;\n"
    assert Crate(sources).cycles() == [["crate::a", "crate::b"]]


def test_rooms_with_their_submodules_are_in_order_too() -> None:
    sources = {
        "lib.rs": "mod a;\nmod b;\n",
        "a/mod.rs": "mod low;\nmod top;\n#[cfg(test)]\nmod checks;\n",
        "a/low.rs": "pub struct Low;\n",
        "a/top.rs": "use crate::b::B;\n",
        "a/checks.rs": "use crate::b::B;\n",
        "b.rs": "use crate::a::low::Low;\npub struct B;\n",
    }
    assert Crate(sources).cycles() == []
    assert Crate(sources).cycles_of_rooms() == [["crate::a", "crate::b"]]
    assert Crate({**sources, "a/top.rs": ""}).cycles_of_rooms() == []
