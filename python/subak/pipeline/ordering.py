"""Topological order of names."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush


def order(names: Iterable[str], edges: Iterable[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """The names, each after its predecessors and otherwise in the given order; and a cycle, if there is one."""
    names = list(dict.fromkeys(names))
    place = {name: k for k, name in enumerate(names)}
    waits: dict[str, set[str]] = {name: set() for name in names}
    follow: dict[str, list[str]] = {name: [] for name in names}
    for before, after in edges:
        if before not in waits[after]:
            waits[after].add(before)
            follow[before].append(after)
    left = {name: len(held) for name, held in waits.items()}
    ready = [place[name] for name in names if not left[name]]
    done: dict[str, None] = {}
    while ready:
        name = names[heappop(ready)]
        done[name] = None
        for after in follow[name]:
            left[after] -= 1
            if not left[after]:
                heappush(ready, place[after])
    if len(done) < len(names):
        return list(done), _cycle({name: waits[name] - done.keys() for name in names if name not in done})
    return list(done), []


def _cycle(waits: dict[str, set[str]]) -> list[str]:
    # Every name here has a predecessor here: the walk to predecessors must return to a visited name.
    seen: list[str] = []
    at = next(iter(waits))
    while at not in seen:
        seen.append(at)
        at = min(waits[at])
    return [at, *reversed(seen[seen.index(at) :])]
