"""A switch pipeline: stages as an acyclic graph, memories, crossbars and delays (PERC thesis, section 6.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

PACKED, ROWS, SHARED = "packed", "rows", "shared"
TEXT, RELEASE = "text", "release"
POWER_MODELS = (TEXT, RELEASE)
PACKINGS = (PACKED, ROWS, SHARED)
"""Layouts of entries in memory: several per row of adjacent blocks; one per row; one per row of blocks whose rows
several tables share."""


@dataclass(frozen=True)
class Memory:
    """A kind of memory blocks, such as SRAM or TCAM."""

    name: str
    width: int
    """Bits per row."""
    depth: int
    """Rows per block."""
    kinds: frozenset[str]
    """Match kinds that the memory supports."""
    packing: str
    formats: int = 1
    """Number of packing formats to consider, for ``packed``."""
    tables_per_block: int = 1
    """Largest number of tables per block, for ``shared``."""
    exclusive: bool = False
    """For ``shared``: whether only tables that exclude each other may share a block."""
    watts: float = 0.0
    """Power of an active block, W."""


@dataclass(frozen=True)
class Crossbar:
    """Crossbar that carries fields to the match logic of one memory: ``units`` of ``width`` bits in each stage."""

    units: int
    width: int


@dataclass(frozen=True)
class Stage:
    """A stage of the switch pipeline, with its memory blocks."""

    name: str
    blocks: Mapping[str, int]
    """Number of blocks of each memory."""
    after: tuple[str, ...]
    """Stages that start before this one."""


@dataclass(frozen=True)
class Delay:
    """Requirement of a kind of dependency on the stages of its two tables."""

    separate: bool
    """Whether the later table's stages must start strictly after the earlier one's."""
    cycles: int
    """Cycles from the start of the earlier table's last stage to the start of the later table's first stage."""


@dataclass(frozen=True)
class Switch:
    """A switch pipeline: its stages, and the resources of each stage."""

    name: str
    memories: tuple[Memory, ...]
    stages: tuple[Stage, ...]
    """Stages in a topological order."""
    delays: Mapping[str, Delay]
    """Delay of each kind of dependency."""
    step: int = 1
    """Cycles between the starts of successive stages."""
    crossbars: Mapping[str, Crossbar] = field(default_factory=dict)
    """Crossbar of each memory, by the memory's name."""
    action_bits: int | None = None
    """Action data that a stage can pass to its actions, bits."""
    tables_per_stage: int | None = None
    fields_per_stage: int | None = None
    """Number of fields that a stage can modify."""
    overhead: str | None = None
    """Memory for action data, statistics and registers; ``None`` if the model of the switch ignores them."""
    source: str = ""
    power: str = "text"
    """Power model: ``text``, equation 6.6; ``release``, as in the thesis' published figures."""

    @cached_property
    def memory(self) -> dict[str, Memory]:
        """The memories by name."""
        return {memory.name: memory for memory in self.memories}

    @cached_property
    def reaches(self) -> tuple[frozenset[int], ...]:
        """For each stage, the stages that start after it."""
        index = {stage.name: i for i, stage in enumerate(self.stages)}
        reach: list[set[int]] = [set() for _ in self.stages]
        for i in reversed(range(len(self.stages))):
            for before in self.stages[i].after:
                reach[index[before]] |= {i} | reach[i]
        return tuple(frozenset(r) for r in reach)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """For each stage, the number of stages before it on the longest path."""
        found: dict[str, int] = {}
        for stage in self.stages:
            found[stage.name] = max((found[before] + 1 for before in stage.after), default=0)
        return tuple(found.values())

    @cached_property
    def layered(self) -> bool:
        """Whether a deeper stage always starts later, so that stages of equal depth run in parallel."""
        depths = self.depths
        return all(
            (j in self.reaches[i]) == (depths[i] < depths[j])
            for i in range(len(self.stages))
            for j in range(len(self.stages))
        )

    @cached_property
    def is_chain(self) -> bool:
        """Whether the stages form a chain."""
        return self.depths == tuple(range(len(self.stages)))

    @property
    def shares(self) -> bool:
        """Whether the switch has memory whose blocks tables can share."""
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
        """The switch with the blocks of some memories, and the units of all crossbars, multiplied."""
        factors = blocks or {}
        stages = tuple(
            replace(s, blocks={m: int(n * factors.get(m, 1)) for m, n in s.blocks.items()}) for s in self.stages
        )
        wider = {m: Crossbar(int(c.units * crossbars), c.width) for m, c in self.crossbars.items()}
        bits = None if self.action_bits is None else int(self.action_bits * crossbars)
        return replace(self, stages=stages, crossbars=wider, action_bits=bits)
