"""A planner's question on real data: the link of a national network that is worth doubling.

Run it with `python examples/germany50.py`, or in a notebook: each `# %%` starts a cell. The network and its demands are
SNDlib's germany50, from the PyPI package topohub, so nothing is downloaded. SNDlib has no usable capacities: this
example converts a demand of 1 to 0.6 Gb/s, and sets every link to 40 Gb/s each way.
"""

# %%
from __future__ import annotations

import networkx as nx
import pyarrow as pa
import subak
import topohub

# %% The network: 50 cities, 88 links; the delay is 5 us per kilometre.
topology = topohub.get("sndlib/germany50")
graph = nx.node_link_graph(topology, edges="edges")
nx.set_edge_attributes(
    graph, {edge: 5e-6 * km for *edge, km in graph.edges(data="dist") for edge in [tuple(edge)]}, "delay"
)
graph = nx.relabel_nodes(graph, dict(graph.nodes(data="name")))
network = subak.Network.from_networkx(graph, capacity="40Gbps")

# %% The demands, each in both directions.
names = {node["id"]: node["name"] for node in topology["nodes"]}
UNIT = 0.6e9
flows = [
    {"id": f"{names[x]}->{names[y]}", "src": names[x], "dst": names[y], "demand": UNIT * size}
    for a, row in topology["graph"]["demands"].items()
    for b, size in row.items()
    for x, y in ((a, b), (b, a))
]
asked = sum(flow["demand"] for flow in flows)
print(f"{len(network.hosts)} cities, {len(network.links) // 2} links, {len(flows)} demands of {asked / 1e12:.2f} Tb/s")

# %% Max-min maximizes the smallest rates; proportional fairness weighs a rate against its cost to other flows.
answers = {"max-min": subak.solve(network, flows=flows)}
answers["proportional"] = subak.solve(network, flows=flows, policy={"kind": "alpha-fair", "alpha": 1})
for name, answer in answers.items():
    assert answer.status == "optimal", answer.certificate
    rates = pa.table(answer.flows)["rate_bps"].to_pylist()
    unmet = sum(rate < 0.999 * flow["demand"] for rate, flow in zip(rates, flows, strict=True))
    print(f"{name:12} {sum(rates) / 1e12:.3f} Tb/s, least {min(rates) / 1e9:.2f} Gb/s, {unmet} demands unmet")

# %% The bottlenecks: saturated links with a positive price.
links = pa.table(answers["proportional"].links).to_pylist()
binding = sorted((link for link in links if link["utilization"] > 0.999), key=lambda link: -link["price"])
print(f"{len(binding)} of {len(links)} directed links bind; the dearest:")
for link in binding[:5]:
    print(f"  {link['id']}")

# %% Gain from doubling one of them, in both directions, under max-min.
now = subak.Incremental(network, flows=flows)
before = pa.table(now.solve().flows)["rate_bps"].to_pylist()
gains = []
for a, b in {tuple(sorted(link["id"].split("->"))) for link in binding[:12]}:
    for capacity in ("80Gbps", "40Gbps"):
        now.set_capacity(f"{a}->{b}", capacity)
        now.set_capacity(f"{b}->{a}", capacity)
        after = pa.table(now.solve().flows)["rate_bps"].to_pylist()
        if capacity == "80Gbps":
            helped = sum(y > 1.001 * x for x, y in zip(before, after, strict=True))
            gains.append((sum(after) - sum(before), helped, f"{a} - {b}"))
print("doubling one link buys:")
for gain, helped, name in sorted(gains, reverse=True)[:5]:
    print(f"  {name:28} {gain / 1e9:+7.1f} Gb/s in all, more for {helped} demands")
