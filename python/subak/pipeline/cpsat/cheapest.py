"""Lower bounds of the costs of single tables; their sum is a lower bound of the total cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import gcd

from subak.pipeline.cpsat.model import Model
from subak.pipeline.packing import Needs, Unit

Price = Callable[[str, Unit, int], int]
"""Cost of a number of units of a format in a memory, in one stage."""
Around = Callable[[Needs, int], int]
"""Cost of the overhead blocks (action data and the like) beside a number of entries in one stage."""
MOST_CHOICES = 400_000
"""Largest number of choices, over all stages, for which the bound is computed; otherwise it is 0."""


def cheapest(model: Model, name: str, price: Price, around: Around) -> int:
    """Lower bound on the cost of a table that may use any number of stages, each of them exclusively."""
    needs, entries = model.needs[name], model.program.by_name[name].entries
    if needs.register_blocks or model.switch.shares or model.without:
        return 0
    step = gcd(*(unit.entries for formats in needs.formats.values() for unit in formats))
    blocks = {m.name: max(s.blocks.get(m.name, 0) for s in model.switch.stages) for m in model.switch.memories}
    steps = -(-entries // step)
    stage: dict[int, int] = {}
    for held, cost in _options(needs, blocks, model.switch.overhead, entries, price):
        total = cost + around(needs, held)
        # Capacity beyond the remaining entries counts as the remaining entries.
        k = min(held // step, steps)
        stage[k] = min(stage.get(k, total), total)
    if not stage or len(stage) * steps > MOST_CHOICES:
        return 0
    best = [0]
    for k in range(1, steps + 1):
        best.append(min(cost + best[max(k - held, 0)] for held, cost in stage.items()))
    return best[-1]


def _options(
    needs: Needs, blocks: Mapping[str, int], overhead: str | None, entries: int, price: Price
) -> Iterator[tuple[int, int]]:
    """Numbers of entries that fit into one stage, with one format per memory, and the cost of their match."""
    each = []
    for memory, formats in needs.formats.items():
        some: list[tuple[int, int, int]] = [(0, 0, 0)]
        for unit in formats:
            most = min(blocks[memory] // unit.blocks, -(-entries // unit.entries))
            some += [(u * unit.entries, price(memory, unit, u), u * unit.blocks) for u in range(1, most + 1)]
        each.append(some)
    inside = [memory == overhead for memory in needs.formats]
    room = blocks[overhead] if overhead else 0
    for chosen in product(*each):
        held = sum(one[0] for one in chosen)
        taken = sum(one[2] for one, within in zip(chosen, inside, strict=True) if within)
        if held and (not overhead or taken + needs.overhead_blocks(held) <= room):
            yield held, sum(one[1] for one in chosen)
