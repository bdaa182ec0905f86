"""Reads a switch from TOML: a built-in one by name, or a file."""

from __future__ import annotations

import tomllib
from pathlib import Path

from subak import inputs
from subak.errors import InputError
from subak.pipeline.ordering import order
from subak.pipeline.program import DEPENDENCY_KINDS, MATCH_KINDS
from subak.pipeline.reading import Node
from subak.pipeline.switch import PACKED, PACKINGS, SHARED, Crossbar, Delay, Memory, Stage, Switch

FOLDER = Path(__file__).parent / "switches"
MOST_STAGES = 256
MOST_BLOCKS = 100_000


def built_in() -> list[str]:
    """Names of the built-in switches."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> Switch:
    """The built-in switch of this name, or the one in the file of this name."""
    if name in built_in():
        return read((FOLDER / f"{name}.toml").read_bytes(), f"{name}.toml")
    if not name.endswith(".toml") and not Path(name).exists():
        hint = f"choose one of: {', '.join(built_in())}, or name a TOML file"
        raise InputError(None, "--switch", f'there is no switch "{name}"', hint)
    data, file = inputs.read(name)
    return read(data, file)


def read(data: bytes, file: str | None) -> Switch:
    """The switch that a TOML text describes."""
    try:
        told = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise InputError(file, "", f"it is not TOML: {error}", "write it as docs/fit.md shows") from None
    top = Node(told, file).mapping(
        ("schema", "name", "source", "pipeline", "stage", "memory", "dependency"), ("schema", "name", "memory")
    )
    if top["schema"].value != 1:
        raise top["schema"].error(f"schema {top['schema'].value} is not known", "write schema = 1")
    held = top["memory"].mapping()
    memories = tuple(_memory(name, node) for name, node in held.items())
    crossbars = {name: _crossbar(node.mapping()["crossbar"]) for name, node in held.items() if "crossbar" in node.value}
    limits = top["pipeline"].mapping(_PIPELINE) if "pipeline" in top else {}
    stages = _stages(top, limits, [m.name for m in memories])
    told_delays = top["dependency"].mapping(DEPENDENCY_KINDS) if "dependency" in top else {}
    return Switch(
        name=top["name"].text(),
        memories=memories,
        stages=stages,
        delays={kind: _delay(kind, told_delays.get(kind)) for kind in DEPENDENCY_KINDS},
        step=limits["step"].whole() if "step" in limits else 1,
        crossbars=crossbars,
        action_bits=_limit(limits, "action_bits"),
        tables_per_stage=_limit(limits, "tables"),
        fields_per_stage=_limit(limits, "fields"),
        overhead=_overhead(limits, memories),
        source=top["source"].text() if "source" in top else "",
    )


_PIPELINE = ("stages", "blocks", "step", "tables", "fields", "action_bits", "overhead")


def _limit(limits: dict[str, Node], key: str) -> int | None:
    return limits[key].whole(1) if key in limits else None


def _overhead(limits: dict[str, Node], memories: tuple[Memory, ...]) -> str | None:
    if "overhead" not in limits:
        return None
    name = limits["overhead"].one_of(m.name for m in memories)
    if next(m for m in memories if m.name == name).packing == SHARED:
        raise limits["overhead"].error(f'blocks of "{name}" are shared', "keep action data in memory of whole blocks")
    return name


def _memory(name: str, node: Node) -> Memory:
    keys = ("width", "depth", "kinds", "packing", "formats", "tables_per_block", "exclusive", "watts_per_bit")
    told = node.mapping((*keys, "crossbar"), ("width", "depth", "kinds", "packing"))
    width, depth = told["width"].whole(1), told["depth"].whole(1)
    packing = told["packing"].one_of(PACKINGS)
    for key, wanted in (("formats", PACKED), ("tables_per_block", SHARED), ("exclusive", SHARED)):
        if key in told and packing != wanted:
            raise told[key].error(f'it means nothing where packing is "{packing}"', f'write packing = "{wanted}"')
    return Memory(
        name=name,
        width=width,
        depth=depth,
        kinds=frozenset(kind.one_of(MATCH_KINDS) for kind in told["kinds"].items()),
        packing=packing,
        formats=told["formats"].whole(1) if "formats" in told else 1,
        tables_per_block=told["tables_per_block"].whole(1) if "tables_per_block" in told else 1,
        exclusive=told["exclusive"].flag() if "exclusive" in told else False,
        watts=(told["watts_per_bit"].number() if "watts_per_bit" in told else 0.0) * width * depth,
    )


def _crossbar(node: Node) -> Crossbar:
    told = node.mapping(("units", "width"), ("units", "width"))
    return Crossbar(told["units"].whole(1), told["width"].whole(1))


def _delay(kind: str, node: Node | None) -> Delay:
    if node is None:
        return Delay(separate=kind in ("match", "action"), cycles=0)
    told = node.mapping(("separate", "cycles"), ("separate",))
    return Delay(told["separate"].flag(), told["cycles"].whole() if "cycles" in told else 0)


def _stages(top: dict[str, Node], limits: dict[str, Node], memories: list[str]) -> tuple[Stage, ...]:
    if ("stage" in top) == ("stages" in limits):
        place = top.get("stage") or top.get("pipeline") or Node({}, top["name"].file)
        raise place.error(
            "the stages are given twice or not at all",
            "give [pipeline] stages and blocks for a chain of equal stages, or each as [[stage]]",
        )
    if "stage" not in top:
        count = limits["stages"].whole(1)
        if count > MOST_STAGES:
            raise limits["stages"].error(f"{count} stages are too many", f"give at most {MOST_STAGES}")
        blocks = _blocks(limits["blocks"], memories) if "blocks" in limits else {}
        names = [str(i + 1) for i in range(count)]
        return tuple(Stage(n, blocks, (names[i - 1],) if i else ()) for i, n in enumerate(names))
    return _graph(top["stage"], memories)


def _graph(node: Node, memories: list[str]) -> tuple[Stage, ...]:
    told = [(one, one.mapping(("name", "blocks", "after"), ("name", "blocks"))) for one in node.items()]
    if not told or len(told) > MOST_STAGES:
        raise node.error(f"{len(told)} stages", f"give 1 to {MOST_STAGES}")
    stages: dict[str, Stage] = {}
    names = [entry["name"].text() for _, entry in told]
    for one, entry in told:
        name = entry["name"].text()
        if name in stages:
            raise one.error(f'there are two stages "{name}"', "give each its own name")
        after = tuple(a.one_of(names) for a in entry["after"].items()) if "after" in entry else ()
        stages[name] = Stage(name, _blocks(entry["blocks"], memories), after)
    line, cycle = order(names, [(b, s.name) for s in stages.values() for b in s.after])
    if cycle:
        raise node.error(f"the stages go in a circle: {' -> '.join(cycle)}", "let `after` name earlier stages only")
    return tuple(stages[name] for name in line)


def _blocks(node: Node, memories: list[str]) -> dict[str, int]:
    told = node.mapping(memories)
    for count in told.values():
        if count.whole() > MOST_BLOCKS:
            raise count.error(f"{count.value} blocks are too many", f"give at most {MOST_BLOCKS}")
    return {name: told[name].whole() if name in told else 0 for name in memories}
