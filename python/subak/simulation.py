"""Simulations that the caller advances step by step."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from subak import _subak, inputs, runs, tables
from subak.errors import InputError, InputWarning

if TYPE_CHECKING:
    from subak.scheme import Scheme

LONGEST = "2h"
"""Longest simulated time of a simulation without a spec: the limit of the packet backend."""


class Simulation(_subak.Simulation):
    """A simulation of one scheme on one network, which stops between two steps.

    Between steps flows can be added, stopped, rerouted and given other weights, links can fail, recover and change
    their capacity, and the state of flows and links can be read. Times are nanoseconds as whole numbers, or text with
    a unit, such as ``"5ms"``. The same calls give the same results, to the byte. A step releases the interpreter, and
    Ctrl-C interrupts it within 0.1 s: the simulation then stands at an earlier time and can go on.

    :param network: A ``Network``, or what a spec's section ``network`` has.
    :param scheme: The name of a scheme, an ``OPTIMIZER/TRANSPORT``, or a class: ``class Mine(subak.Scheme)``.
    :param params: Parameters of the scheme.
    :param policy: The policy, such as ``{"kind": "alpha-fair", "alpha": 1}``; max-min by default.
    :param seed: Seed of the paths of flows and of all that is random in the scheme.
    :param sections: Other sections of a spec, by name: ``routing``, ``packets``, ``fault``, ``controller``.
    :raises InputError: for input that cannot be used. A warning (``InputWarning``) tells what a run would warn of.

    ``Simulation.of_spec`` takes a whole spec, with its flows.
    """

    @inputs.keywords
    def __new__(
        cls,
        network: _subak.Network | Mapping[str, Any],
        scheme: str | type[Scheme] = "dctcp",
        *,
        params: Mapping[str, Any] | None = None,
        policy: str | Mapping[str, Any] | None = None,
        seed: int = 1,
        backend: str | None = None,
        sections: Mapping[str, Any] | None = None,
    ) -> Self:
        """Creates a simulation without flows, at time 0."""
        if not isinstance(scheme, (str, type)):
            hint = 'give a name, such as "s-perc" or "xwi/swift", or a class'
            raise InputError(None, "scheme", f"it is {scheme!r}", hint)
        chosen: dict[str, Any] = {"name": scheme} if isinstance(scheme, str) else {"name": scheme.__name__.lower()}
        if isinstance(scheme, str) and "/" in scheme:
            optimizer, _, transport = scheme.partition("/")
            chosen = {"optimizer": optimizer, "transport": transport}
        if params:
            chosen["params"] = dict(params)
        spec: dict[str, Any] = {
            "network": network,
            "workload": {"kind": "steps", "flows": []},
            "scheme": [chosen],
            "run": {"duration": LONGEST, "drain": 0, "seeds": [seed]},
        }
        if policy is not None:
            # As the scheme's own policy: a scheme that does not serve it is refused.
            chosen["policy"] = {"kind": policy} if isinstance(policy, str) else dict(policy)
        for name, section in (sections or {}).items():
            if name not in SECTIONS:
                raise InputError(
                    None, f"sections.{name}", "a simulation does not have it", f"give one of: {', '.join(SECTIONS)}"
                )
            spec[name] = section
        schemes = {} if isinstance(scheme, str) else {chosen["name"]: scheme}
        return super().__new__(cls, _warned(runs.load(spec, backend, schemes), 4, is_open=True))

    @classmethod
    def of_spec(
        cls,
        spec: Mapping[str, Any] | str | os.PathLike[str],
        *,
        backend: str | None = None,
        schemes: Mapping[str, type[Scheme]] | None = None,
    ) -> Self:
        """The trial of a spec with one scheme, one seed and no sweep, with the flows of its workload.

        What the spec measures is not recorded. Workloads whose flows wait for others are refused.
        """
        return super().__new__(cls, _warned(runs.load(spec, backend, schemes), 3, is_open=False))

    def add(self, src: str | None = None, dst: str | None = None, **keys: Any) -> int:
        """Adds a flow and returns its number. It starts now unless ``start`` is given.

        The keywords are the keys of a flow of the workload ``steps``: ``size``, ``weight``, ``start``, ``stop``,
        ``demand``, ``subflows``, ``path``, ``paths``, ``deadline``, ``bandwidth_function``, ``utility``, ``id``.
        """
        flow = {"src": src, "dst": dst} | keys
        return self.add_all([flow])[0]

    def add_all(self, flows: Any) -> range:
        """Adds flows, all of them or none: a list of dicts, or a table with a row for each. Returns their numbers."""
        rows = tables.rows_of(flows, "flows", _steps()) if tables.is_frame(flows) else flows
        if not isinstance(rows, (list, tuple)) or not all(isinstance(row, Mapping) for row in rows):
            raise InputError(None, "flows", f"it is {rows!r:.60}", "give a list of dicts, or a table")
        rows = [{key: value for key, value in row.items() if value is not None} for row in rows]
        first = super().add_flows(inputs.to_json(rows))
        return range(first, first + len(rows))

    @inputs.keywords
    def run(self, until: int | str, *, stop_at: Literal["finish", "done"] | None = None) -> list[int]:
        """Advances to the time ``until``. Returns the flows that finished, in the order of their finish times.

        ``stop_at="finish"`` stops as soon as a flow has finished, ``"done"`` as soon as every flow with a size has.
        """
        if stop_at not in (None, "finish", "done"):
            raise InputError(None, "stop_at", f"it is {stop_at!r}", 'give None, "finish" or "done"')
        return super().advance(inputs.time_ns("until", until), stop_at or "time")

    @inputs.keywords
    def sample(self, times: Iterable[int | str]) -> _subak.Table:
        """Advances to each of the times in turn, and returns each flow's assigned rate at each of them.

        The table has a row for each time and flow: ``time_ns``, ``flow``, ``assigned_bps``. This is much faster than a
        call of ``run`` and a look at ``flows`` for each time.
        """
        return super().sample_rates([inputs.time_ns("times", time) for time in times])

    def restart_peaks(self) -> None:
        """Begins ``peak_queued_bytes`` of all links anew."""
        super().restart_peaks()

    def set_weight(self, flow: int, weight: float) -> None:
        """Changes the weight of a flow."""
        super().change_weight(inputs.flow_number(flow), weight)

    def stop(self, flow: int) -> None:
        """Stops a flow: it sends no new data."""
        super().stop_flow(inputs.flow_number(flow))

    def reroute(self, flow: int, *paths: Sequence[str]) -> None:
        """Moves a flow to other paths, lists of links: one for each subflow. Packets in flight stay on the old path."""
        super().change_paths(inputs.flow_number(flow), [list(path) for path in paths])

    def fail(self, link: str, *, both: bool = True) -> None:
        """Fails a link, and its reverse link if ``both``. Its packets are lost; paths of flows do not change."""
        super().set_up(link, False, both)

    def recover(self, link: str, *, both: bool = True) -> None:
        """Ends a failure of a link, and of its reverse link if ``both``."""
        super().set_up(link, True, both)

    def set_capacity(self, link: str, capacity: float | str, *, both: bool = True) -> None:
        """Changes the capacity of a link, and of its reverse link if ``both``: bit/s, or text such as ``"1Gbps"``."""
        super().change_capacity(link, inputs.to_json(capacity), both)

    @property
    def flows(self) -> _subak.Table:
        """A row for each flow: its plan, bytes, FCT (null until it has finished), losses and assigned rate."""
        return super().flows_table()

    @property
    def links(self) -> _subak.Table:
        """A row for each link: its capacity (0 if it is down), its queue, and its counters since time 0."""
        return super().links_table()

    @property
    def notes(self) -> _subak.Table:
        """A row for each ``io.note`` of a scheme in Python so far: time, flow or link, subflow, name and value."""
        return super().notes_table()

    def paces(self, flow: int) -> _subak.Table:
        """A row for each subflow of a running flow: its window, its pacing rate and its bytes in flight."""
        return super().paces_table(inputs.flow_number(flow))

    def __repr__(self) -> str:
        """The present time and the number of flows."""
        return f"<subak.Simulation: {len(self.flows)} flows, at {self.now_ns} ns>"


SECTIONS = ("routing", "packets", "fault", "controller")


def _warned(spec: _subak.Spec, level: int, *, is_open: bool) -> _subak.Spec:
    """Warns of what a run of the spec would warn of; ``level`` leads to the caller's line."""
    for text in _subak.Simulation.warnings(spec, is_open):
        warnings.warn(text, InputWarning, stacklevel=level)
    return spec


def _steps() -> Any:
    from subak import schemas

    return schemas.steps()
