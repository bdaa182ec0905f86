"""Figure 7 of Soze: a coflow's slowest transfer (straggler) under equal weights, and under weights by progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subak.repro import RawResults, Value, figures
from subak.repro.jobs import rates, seconds, weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _behind(raw: RawResults, spec: str, policy: str, scheme: str = "ideal") -> float:
    """FCT of transfer f2 over that of f1; both start at the same time."""
    first, second = (seconds(raw, spec, f"shuffle/{flow}", policy, scheme, "flow") for flow in ("f1", "f2"))
    return round(second / first, 4)


def measure(raw: RawResults) -> dict[str, Value]:
    """Ratios of the FCTs of the two transfers. Nothing in these runs is random."""
    full: dict[str, Value] = {
        "even": _behind(raw, "full", "even", "soze"),
        "straggler": _behind(raw, "full", "straggler", "soze"),
        "heaviest": round(float(weights(raw, "full", "straggler", "shuffle/f2", "soze")[1].max()), 3),
    }
    return full | {
        "ideal even": _behind(raw, "fluid", "even"),
        "ideal straggler": _behind(raw, "fluid", "straggler"),
        "packets": _behind(raw, "packets", "straggler", "soze-virtual"),
    }


def draw(raw: RawResults) -> Figure:
    """Rates under equal weights and under weights by progress, and those weights."""
    figure, plots = figures.axes(columns=3, width=3.6)
    spec, scheme = "full", "soze"
    for plot, policy in zip(plots, ("even", "straggler"), strict=False):
        for name, (at, gbps) in rates(raw, spec, policy, scheme).items():
            if name.startswith("shuffle/"):
                plot.plot(at, gbps, label=name.removeprefix("shuffle/"))
        plot.set(title=policy, xlabel="s", xlim=(0, 65), ylim=(0, 25))
    plots[0].set_ylabel("Gb/s")
    plots[0].legend()
    for flow in ("f1", "f2"):
        at, weight = weights(raw, spec, "straggler", f"shuffle/{flow}", scheme)
        plots[2].step(at, weight, where="post", label=flow)
    plots[2].set(title="weights under straggler", xlabel="s")
    return figure
