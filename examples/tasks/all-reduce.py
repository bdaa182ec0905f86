"""A ring all-reduce of four hosts that competes with background traffic: its duration by the weight of its flows."""

import subak

ring = [(step, host) for step in range(6) for host in range(4)]
flow = [{"id": f"{s}.{h}", "src": f"h{h}", "dst": f"h{(h + 1) % 4}", "size": "5MB"} for s, h in ring]
after = [{"after": [f"{step - 1}.{(host - 1) % 4}"]} if step else {} for step, host in ring]
flows = [one | waits for one, waits in zip(flow, after, strict=True)]
base = {"network": {"kind": "star", "hosts": 8, "rate": "10Gbps"}, "run": {"duration": "400ms"}}
schemes = [{"name": "soze-virtual"}, {"name": "ideal"}]
for budget in (4, 16):
    jobs = {"kind": "jobs", "jobs": [{"id": "all-reduce", "budget": budget, "flows": flows}], "background": 2}
    results = subak.run(base | {"workload": jobs, "scheme": schemes}, f"out/all-reduce-{budget}")
    print(results.to_pandas("job")[["scheme", "weight", "fct_ns"]])
