"""FCTs of the flows over one link of a large network, estimated from a packet simulation of these flows alone.

The exact fluid simulates all flows, once with the link far faster than it is: that gives each flow the rate that its
other links leave to it. The packet simulation then has only the flows over the link, limited to these rates. Queueing
delay at the other links is missing, so that FCTs are too short. ``--whole`` simulates the whole network as well and
prints the error.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import subak

LINE_BPS = 10e9
SPEC: dict[str, Any] = {
    "schema": 1,
    "network": {"kind": "leaf-spine", "leaves": 4, "spines": 4, "hosts_per_leaf": 16, "host_rate": LINE_BPS},
    "workload": {"kind": "poisson", "sizes": "web-search", "load": 0.6},
    "scheme": [{"name": "dctcp"}],
    "run": {"duration": "60ms", "warmup": "5ms", "seeds": [1]},
}
QUANTILES = (0.5, 0.9, 0.99)


def flows(spec: dict[str, Any], **changes: Any) -> pd.DataFrame:
    """The flows of a run, by number."""
    with tempfile.TemporaryDirectory() as folder:
        results = subak.run(spec | changes, Path(folder) / "out")
        return results.table("flow").to_pandas().set_index("flow")


def over_link(spec: dict[str, Any], link: str) -> pd.DataFrame:
    """The flows over ``link``, with the average rate that their other links leave to them: ``demand``, bit/s."""
    faster = {"kind": "capacity", "link": link, "capacity": "100Tbps", "both": False, "at": "0s"}
    fluid = flows(spec, scheme=[{"name": "ideal"}], fault=[*spec.get("fault", []), faster])
    over = fluid[[link in path.split() for path in fluid["path"]]]
    seconds = (over["fct_ns"] - over["ideal_fct_ns"]) / 1e9 + 8 * over["size_bytes"] / LINE_BPS
    return over.assign(demand=8 * over["size_bytes"] / seconds)


def alone(spec: dict[str, Any], over: pd.DataFrame) -> pd.DataFrame:
    """These flows under the spec's scheme, in the network without any others. Slowdowns are over the same ideal FCT."""
    listed = []
    for flow, row in over.iterrows():
        held = {"demand": row["demand"]} if row["demand"] < 0.999 * LINE_BPS else {}
        path, start_s, size = row["path"].split(), row["start_ns"] / 1e9, int(row["size_bytes"])
        listed.append({"id": str(flow), "path": path, "start": start_s, "size": size, **held})
    found = flows(spec, workload={"kind": "steps", "flows": listed})
    found = found.set_index(found["flow_id"].astype(int))
    return found.assign(slowdown=found["fct_ns"] / over["ideal_fct_ns"])


def slowdowns(of: pd.DataFrame) -> pd.Series:
    """Mean and quantiles of the slowdowns of the flows that count."""
    counted = of.loc[of["measured"], "slowdown"]
    return pd.Series({"mean": counted.mean(), **{f"p{100 * q:.0f}": counted.quantile(q) for q in QUANTILES}})


def main() -> None:
    """Prints slowdowns of the flows over some links."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("links", nargs="*", default=["leaf0->h0"], metavar="LINK", help="names of links (leaf0->h0)")
    asked.add_argument("--whole", action="store_true", help="simulate the whole network too")
    options = asked.parse_args()
    shape = {**SPEC["network"]}
    known = {link["id"] for link in subak.Network.generate(shape.pop("kind"), **shape).links}
    if unknown := [link for link in options.links if link not in known]:
        asked.error(f"{unknown[0]}: the network has no such link; an example is leaf0->h0")
    estimates = [alone(SPEC, over_link(SPEC, link)) for link in options.links]
    table = pd.DataFrame({"estimate": slowdowns(pd.concat(estimates))})
    if options.whole:
        every = flows(SPEC)
        table["whole network"] = slowdowns(every.loc[np.concatenate([one.index for one in estimates])])
        table["error"] = table["estimate"] / table["whole network"] - 1
    print(table.round(3))


if __name__ == "__main__":
    main()
