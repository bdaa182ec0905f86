"""A network from networkx and flows from pandas, and the links that are worth more capacity."""

import networkx as nx
import pandas as pd
import subak

graph = nx.random_regular_graph(3, 8, seed=1)
flows = pd.DataFrame({"src": range(8), "dst": [(node + 3) % 8 for node in range(8)], "weight": 1.0})
network = subak.Network.from_networkx(graph, capacity="10Gbps", delay="5us")
print(subak.solve(network, flows=flows).to_pandas()[["id", "rate_bps", "bottlenecks"]])
print(subak.upgrades(network, flows=flows).to_pandas().head())
