"""Figure 11 of Soze: times of TPC-H queries under equal weights, and under weights by the longest path to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ONE_PATH = ("q1", "q6")


def _jobs(raw: RawResults, spec: str = "fluid", scheme: str = "ideal") -> Any:
    """One row per query and random placement of tasks: times under both policies, and critical path, ns."""
    columns = ["seed", "scheme", "flow_id", "workload.policy", "fct_ns", "ideal_fct_ns"]
    frame = raw.simulated(spec).table("job", columns).to_pandas()
    frame = frame[frame["scheme"] == scheme]
    index = ["seed", "flow_id"]
    wide = frame.pivot(index=index, columns="workload.policy", values="fct_ns")
    wide["bound"] = frame.groupby(index)["ideal_fct_ns"].first() / wide["even"]
    wide["ratio"] = wide["longest-distance"] / wide["even"]
    return wide.reset_index()


def _apart(raw: RawResults, scheme: str) -> float:
    """Largest difference between packet level and fluid of a query's time relative to that under even weights."""
    columns = ["scheme", "seed", "flow_id", "workload.policy", "fct_ns"]
    frame = raw.simulated("packets").table("job", columns).to_pandas()
    wide = frame.pivot(index=["seed", "flow_id", "scheme"], columns="workload.policy", values="fct_ns")
    ratios = (wide["longest-distance"] / wide["even"]).unstack()
    return float((ratios[scheme] - ratios["ideal"]).abs().max())


def _mean_and_best(raw: RawResults, scheme: str) -> tuple[Value, Value]:
    """Of a hundredth of the sizes: mean ratio by placement, and that of the query that gains most."""
    jobs = _jobs(raw, "hundredth", scheme)
    mean = stats.estimate(jobs.groupby("seed")["ratio"].mean(), "mean", "placements")
    return mean, round(float(jobs.groupby("flow_id")["ratio"].mean().min()), 3)


def measure(raw: RawResults) -> dict[str, Value]:
    """Query times relative to those under equal weights. A query whose tasks are all on one host does not count."""
    jobs = _jobs(raw)
    by_run = jobs.groupby("seed")[["ratio", "bound"]].mean()
    chains = jobs[jobs["flow_id"].isin(ONE_PATH)]["ratio"].dropna()
    packets: dict[str, Value] = {}
    if raw.has("packets"):
        packets = {
            "packets": round(_apart(raw, "given/swift"), 4),
            "packets soze": round(_apart(raw, "soze-virtual"), 4),
        }
    if raw.has("hundredth") and raw.scale == "paper":
        packets["soze mean"], packets["soze best"] = _mean_and_best(raw, "soze")
        packets["hundredth ideal mean"], packets["hundredth ideal best"] = _mean_and_best(raw, "ideal")
    return packets | {
        "mean": stats.estimate(by_run["ratio"], "mean", "placements"),
        "best": round(float(jobs.groupby("flow_id")["ratio"].mean().min()), 3),
        "one path": round(100 * float((chains - 1).abs().max()), 4),
        "bound": stats.estimate(by_run["bound"], "mean", "placements"),
    }


def draw(raw: RawResults) -> Figure:
    """Time of each query relative to equal weights, mean over placements, and the bound by the critical path."""
    figure, (plot,) = figures.axes(width=7)
    means = _jobs(raw).groupby("flow_id")[["ratio", "bound"]].mean()
    means = means.loc[[f"q{k}" for k in range(1, 23)]]
    at = range(1, 23)
    plot.bar(at, means["ratio"], label="longest distance")
    plot.plot(at, means["bound"], color=figures.COLOURS[1], linestyle="", marker="_", markersize=12, label="bound")
    plot.axhline(1, color="grey", linewidth=0.8, linestyle=":")
    plot.set(xlabel="query", ylabel="time over that under even weights", xticks=list(at), ylim=(0, 1.2))
    plot.legend(loc="upper right", ncols=2)
    return figure
