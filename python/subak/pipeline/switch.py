"""A switch pipeline: stages as an acyclic graph, memories, crossbars and delays (perc-thesis, section 6.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

PACKED, ROWS, SHARED = "packed", "rows", "shared"
TEXT, RELEASE = "text", "release"
POWER_MODELS = (TEXT, RELEASE)
PACKINGS = (PACKED, ROWS, SHARED)
"""How entries lie in blocks: several a row over blocks strung together; one a row; one a row, in blocks that several
tables share row by row."""


@dataclass(frozen=True)
class Memory:
    """A kind of memory block."""

    name: str
    width: int
    """Bits a row."""
    depth: int
    """Rows a block."""
    kinds: frozenset[str]
    """Match kinds that it supports."""
    packing: str
    formats: int = 1
    """Packing formats that are considered, for ``packed``."""
    tables_per_block: int = 1
    """For ``shared``."""
    exclusive: bool = False
    """For ``shared``: only tables that are known to have no packet that meets both share a block."""
    watts: float = 0.0
    """An active block."""


@dataclass(frozen=True)
class Crossbar:
    """What carries fields to the match logic of one memory: ``units`` of ``width`` bits in each stage."""

    units: int
    width: int


@dataclass(frozen=True)
class Stage:
    """One stage of the pipeline."""

    name: str
    blocks: Mapping[str, int]
    """Blocks of each memory."""
    after: tuple[str, ...]
    """Stages that start before it."""


@dataclass(frozen=True)
class Delay:
    """What a dependency asks of the stages of its tables."""

    separate: bool
    """Whether the later table's stages have to come strictly after the earlier one's."""
    cycles: int
    """From the start of the earlier table's last stage to that of the later one's first."""


@dataclass(frozen=True)
class Switch:
    """A pipeline."""

    name: str
    memories: tuple[Memory, ...]
    stages: tuple[Stage, ...]
    """In an order that the graph of stages allows."""
    delays: Mapping[str, Delay]
    """By kind of dependency."""
    step: int = 1
    """Cycles between the starts of a stage and of the next."""
    crossbars: Mapping[str, Crossbar] = field(default_factory=dict)
    """Of the memories that have one."""
    action_bits: int | None = None
    """Action data that a stage can hand to its actions."""
    tables_per_stage: int | None = None
    fields_per_stage: int | None = None
    """Fields that a stage can modify."""
    overhead: str | None = None
    """The memory that holds action data, statistics and registers; without it they are ignored."""
    source: str = ""
    power: str = "text"
    """How power is counted: ``text``, by equation 6.6; ``release``, as the thesis' published figures were."""

    @cached_property
    def memory(self) -> dict[str, Memory]:
        """The memories by name."""
        return {memory.name: memory for memory in self.memories}

    @cached_property
    def reaches(self) -> tuple[frozenset[int], ...]:
        """For each stage, those that start after it."""
        index = {stage.name: i for i, stage in enumerate(self.stages)}
        reach: list[set[int]] = [set() for _ in self.stages]
        for i in reversed(range(len(self.stages))):
            for before in self.stages[i].after:
                reach[index[before]] |= {i} | reach[i]
        return tuple(frozenset(r) for r in reach)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """For each stage, how many come before it on the longest way to it."""
        found: dict[str, int] = {}
        for stage in self.stages:
            found[stage.name] = max((found[before] + 1 for before in stage.after), default=0)
        return tuple(found.values())

    @cached_property
    def layered(self) -> bool:
        """Whether a deeper stage always starts later; stages of one depth then run at the same time."""
        depths = self.depths
        return all(
            (j in self.reaches[i]) == (depths[i] < depths[j])
            for i in range(len(self.stages))
            for j in range(len(self.stages))
        )

    @cached_property
    def is_chain(self) -> bool:
        """Whether the stages come one after the other."""
        return self.depths == tuple(range(len(self.stages)))

    @property
    def shares(self) -> bool:
        """Whether it has memory whose blocks tables share."""
        return any(memory.packing == SHARED for memory in self.memories)

    def allows(self, kind: str, earlier: int, later: int) -> bool:
        """Whether a dependency may lead from a table in one stage to a table in another."""
        if later in self.reaches[earlier]:
            return True
        if self.delays[kind].separate:
            return False
        return earlier == later or (self.depths[earlier] == self.depths[later] and earlier not in self.reaches[later])

    def changed(
        self,
        blocks: Mapping[str, float] | None = None,
        crossbars: float = 1,
    ) -> Switch:
        """The same with the blocks of some memories and the units of all crossbars multiplied."""
        factors = blocks or {}
        stages = tuple(
            replace(s, blocks={m: int(n * factors.get(m, 1)) for m, n in s.blocks.items()}) for s in self.stages
        )
        wider = {m: Crossbar(int(c.units * crossbars), c.width) for m, c in self.crossbars.items()}
        bits = None if self.action_bits is None else int(self.action_bits * crossbars)
        return replace(self, stages=stages, crossbars=wider, action_bits=bits)
