"""Cases for Flowtune, Soze and other schemes against models of the papers, written without knowledge of the code."""

import hashlib

import numpy as np
import pytest
import subak

G = 1e9


def both_ways(links, a, b, gbps, delay):
    for x, y in ((a, b), (b, a)):
        links.append({"id": f"{x}->{y}", "from": x, "to": y, "capacity": gbps * G, "delay": delay})


def table(results, kind):
    return results.table(kind).to_pandas()


def mean_rates(results, begin, end, column="rate_bps"):
    """Mean of each flow's samples between two times, in order of the flows' numbers."""
    rows = table(results, "rate")
    rows = rows[(rows.time_ns > begin * 1e9) & (rows.time_ns < end * 1e9)]
    return rows.groupby("flow")[column].mean().to_numpy()


def proportional(crosses, capacity, weight):
    """Weighted proportional fairness: each price is scaled by the square root of its link's load until all are
    constant."""
    crosses, weight = np.asarray(crosses, float), np.asarray(weight, float)
    scale = np.mean(capacity)
    price = np.ones(len(crosses))
    for _ in range(200_000):
        load = crosses @ (weight / (crosses.T @ price))
        new = np.maximum(price * np.sqrt(load / (np.asarray(capacity) / scale)), 1e-15)
        if np.abs(new - price).max() < 1e-14 * max(1, new.max()):
            break
        price = new
    return weight / (crosses.T @ price) * scale


def max_min(crosses, capacity, weight):
    """Weighted max-min by water filling."""
    crosses, weight = np.asarray(crosses, float), np.asarray(weight, float)
    left, rate, open_ = np.array(capacity, float), np.zeros(len(weight)), np.ones(len(weight), bool)
    while open_.any():
        total = crosses[:, open_] @ weight[open_]
        level = np.where(total > 0, left / np.maximum(total, 1e-300), np.inf)
        fixed = open_ & (crosses[level <= level.min() * (1 + 1e-12)].sum(0) > 0)
        rate[fixed] = weight[fixed] * level.min()
        left = np.maximum(left - crosses[:, fixed] @ rate[fixed], 0)
        open_ &= ~fixed
    return rate


# ---- Flowtune

TO_ALLOCATOR = ["c->s0", "s0->c", "c->s1", "s1->c"]
# Rows: links out of h0, out of h1, between the switches, into h3, into h4, into h2.
CROSSES = [[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def allocated(delay, lease, duration, faults=()):
    links = []
    for i in range(6):
        both_ways(links, f"h{i}", "s0" if i < 3 else "s1", 10, 1e-6)
    both_ways(links, "s0", "s1", 10, 1e-6)
    both_ways(links, "c", "s0", 40, delay)
    both_ways(links, "c", "s1", 40, delay)
    flows = [
        {"src": "h0", "dst": "h3"},
        {"src": "h1", "dst": "h3", "weight": 2},
        {"src": "h1", "dst": "h4"},
        {"src": "h0", "dst": "h2"},
    ]
    return {
        "network": {"links": links},
        "routing": {"metric": "hops"},
        "controller": {"at": "c"},
        "policy": {"kind": "alpha-fair", "alpha": 1},
        "workload": {"kind": "steps", "flows": flows},
        "scheme": [{"name": "flowtune", "params": {"lease": lease}}],
        "measure": {"rates": duration / 400},
        "fault": list(faults),
        "run": {"duration": duration},
    }


@pytest.mark.parametrize(("delay", "duration"), [(0, 0.02), (11e-6, 0.02), (99e-6, 0.02), (1e-3, 0.1), (5e-3, 0.4)])
def test_far_allocator_settles(tmp_path, delay, duration):
    """Without loss, rates are proportionally fair over the allocated capacity, for any delay to the allocator."""
    results = subak.run(allocated(delay, max(0.002, 20 * delay), duration), tmp_path)
    want = proportional(CROSSES, np.full(6, 0.97 * 10 * G), [1, 2, 1, 1])
    got = mean_rates(results, 0.6 * duration, 0.999 * duration)
    assert np.abs(got / want - 1).max() < 0.02


@pytest.mark.parametrize("kind", ["duplicate", "delay"])
def test_doubled_and_late_messages_do_no_harm(tmp_path, kind):
    """If a third of the messages is duplicated, or late by several RTTs, rates equal those without faults."""
    fault = {"kind": kind, "probability": 0.3, "kinds": ["ctl"], "links": TO_ALLOCATOR}
    if kind == "delay":
        fault["by"] = 90e-6
    results = subak.run(allocated(11e-6, 0.002, 0.02, [fault]), tmp_path)
    want = proportional(CROSSES, np.full(6, 0.97 * 10 * G), [1, 2, 1, 1])
    assert np.abs(mean_rates(results, 0.012, 0.0199) / want - 1).max() < 0.02


@pytest.mark.parametrize(("lost", "share"), [(0.1, 0.001), (0.3, 0.1)])
def test_leases_lapse_seldom_where_messages_are_lost(tmp_path, lost, share):
    """A lease of 8 ms allows about seven tries: at 30% loss it is expired for less than a tenth of the time; at 10%,
    never."""
    fault = {"kind": "loss", "probability": lost, "kinds": ["ctl"], "links": TO_ALLOCATOR}
    spec = allocated(11e-6, 0.008, 0.05, [fault])
    spec["run"]["seeds"] = 6
    rows = table(subak.run(spec, tmp_path), "rate")
    rows = rows[(rows.time_ns > 10e6) & (rows.time_ns < 49.9e6)]
    want = proportional(CROSSES, np.full(6, 0.97 * 10 * G), [1, 2, 1, 1])
    off = np.abs(rows.assigned_bps.to_numpy() / want[rows.flow.to_numpy()] - 1) > 0.02
    assert off.mean() <= share


@pytest.mark.parametrize(
    "network",
    [
        {"kind": "dumbbell", "pairs": 4},
        {"kind": "star", "hosts": 8},
        {"kind": "leaf-spine", "leaves": 3, "spines": 2, "hosts_per_leaf": 4},
        {"kind": "fat-tree", "k": 4},
        {"kind": "chain", "rates": ["10Gbps", "5Gbps", "10Gbps", "2Gbps"]},
    ],
    ids=lambda network: network["kind"],
)
def test_allocator_at_a_host_that_restarts(tmp_path, network):
    """If the allocator runs at a host and restarts in the middle, all flows finish with all bytes."""
    spec = {
        "network": network,
        "controller": {"at": "h0"},
        "policy": {"kind": "alpha-fair", "alpha": 1},
        "workload": {"kind": "poisson", "sizes": "facebook-web", "load": 0.2 if network["kind"] == "chain" else 0.6},
        "scheme": [{"name": "flowtune"}],
        "fault": [{"kind": "restart", "machine": "controller", "at": "2ms"}],
        "run": {"duration": "4ms"},
    }
    flows = table(subak.run(spec, tmp_path), "flow")
    assert flows.fct_ns.notna().all()
    assert (flows.received_bytes == flows.size_bytes).all()
    assert flows.slowdown.min() > 0.999


@pytest.mark.parametrize(("hosts", "rate", "share"), [(60, 1e8, 0.5), (60, 1e8, 0.1), (30, 1e9, 0.05), (30, 1e9, 0.01)])
def test_messages_keep_to_their_share(tmp_path, hosts, rate, share):
    """Messages take at most the fraction `control_share` of the allocator's links, after an initial burst of 1 ms."""
    spec = {
        "network": {"kind": "star", "hosts": hosts, "rate": rate},
        "controller": {"at": "h0"},
        "policy": {"kind": "alpha-fair", "alpha": 1},
        "workload": {"kind": "poisson", "sizes": "facebook-web", "load": 0.6},
        "scheme": [{"name": "flowtune", "params": {"control_share": share}}],
        "run": {"duration": "20ms"},
    }
    links = table(subak.run(spec, tmp_path), "link").set_index("link")
    taken = links.loc[["h0->switch0", "switch0->h0"]].ctl_bytes.to_numpy() * 8 / 0.02 / rate
    assert taken.max() <= share * 1.15


# ---- Soze, its variant soze-virtual, and s-PERC


def one_bottleneck(scheme, nics, trunk, weights, nic, params, duration, delay=0.5e-6):
    links, flows = [], []
    for i, gbps in enumerate(nics):
        both_ways(links, f"h{i}", "s0", gbps, 0.5e-6)
        both_ways(links, f"r{i}", "s1", 100, 0.5e-6)
        flows.append({"src": f"h{i}", "dst": f"r{i}", "weight": weights[i]})
    both_ways(links, "s0", "s1", trunk, delay)
    return {
        "network": {"links": links, "nic": nic},
        "workload": {"kind": "steps", "flows": flows},
        "scheme": [{"name": scheme, "params": params}],
        "measure": {"rates": duration / 20},
        "run": {"duration": duration},
    }


@pytest.mark.parametrize("nic", ["queue", "round-robin"])
@pytest.mark.parametrize("scheme", ["soze-virtual", "s-perc", "s-perc-star", "numfabric-swift"])
@pytest.mark.parametrize(
    ("nics", "trunk", "weights"),
    [([10, 40], 10, [1, 1]), ([1, 10, 25, 40], 20, [1, 1, 1, 1]), ([10, 25, 40, 40], 40, [1, 2, 5, 10])],
)
def test_unequal_nics_share_by_weight(tmp_path, scheme, nic, nics, trunk, weights):
    """Flows behind NICs of different rates get the same fraction of their weighted max-min rates."""
    results = subak.run(one_bottleneck(scheme, nics, trunk, weights, nic, {}, 0.01), tmp_path)
    want = max_min(np.vstack([np.eye(len(nics)), np.ones(len(nics))]), np.array([*nics, trunk]) * G, weights)
    part = mean_rates(results, 0.006, 0.01) / want
    assert part.min() > 0.9
    assert part.max() <= 1.005
    assert part.max() / part.min() < 1.05


@pytest.mark.parametrize("m", [0.05, 0.25, 1, 1.9])
def test_integers_give_the_rates_of_floating_point(tmp_path, m):
    """Rates with fixed-point arithmetic are within 1% of those with floating point, for any exponent."""
    rates = []
    for arithmetic in ("float", "fixed"):
        params = {"m": m, "arithmetic": arithmetic}
        spec = one_bottleneck("soze-virtual", [40, 40, 10, 10], 40, [1, 3, 1, 3], "queue", params, 0.02, 10e-6)
        rates.append(mean_rates(subak.run(spec, tmp_path / arithmetic), 0.012, 0.02))
    assert np.abs(rates[0] / rates[1] - 1).max() < 0.01


@pytest.mark.parametrize("idle", [1, 40])
def test_an_idle_fast_nic_changes_nothing(tmp_path, idle):
    """Two flows of weight 100 share a link of 1 Gb/s equally, for any rate of another host's idle NIC."""
    links = []
    for host, gbps in (("h0", 1), ("h1", idle), ("h2", 1)):
        both_ways(links, host, "s", gbps, 1e-6)
    spec = {
        "network": {"links": links},
        "workload": {"kind": "steps", "flows": [{"src": "h0", "dst": "h2", "weight": 100}] * 2},
        "scheme": [{"name": "soze-virtual"}],
        "measure": {"rates": 0.0025},
        "run": {"duration": 0.05},
    }
    got = mean_rates(subak.run(spec, tmp_path), 0.025, 0.05)
    assert np.abs(got / (0.49 * G) - 1).max() < 0.05


def test_weights_change_across_bottlenecks(tmp_path):
    """A long flow over three links and a short one on each: weighted max-min before and after the weights change."""
    flows = [{"src": "h0", "dst": "h3", "weight": 1, "weights": [[0.015, 9]]}]
    flows += [{"src": f"h{i}", "dst": f"h{i + 1}", "weight": 1 + i} for i in range(3)]
    spec = {
        "network": {"kind": "chain", "rates": ["10Gbps", "5Gbps", "25Gbps"], "host_rate": "40Gbps"},
        "workload": {"kind": "steps", "flows": flows},
        "scheme": [{"name": "soze-virtual"}, {"name": "s-perc"}],
        "measure": {"rates": 2e-4},
        "run": {"duration": 0.03},
    }
    rows = table(subak.run(spec, tmp_path), "rate")
    crosses = [[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]]
    for begin, end, weight in ((0.009, 0.015, 1), (0.022, 0.03, 9)):
        want = max_min(crosses, np.array([10, 5, 25]) * G, [weight, 1, 2, 3])
        sample = rows[(rows.time_ns > begin * 1e9) & (rows.time_ns < end * 1e9)]
        for scheme, of in sample.groupby("scheme"):
            part = of.groupby("flow").rate_bps.mean().to_numpy() / want
            # ACKs share the links of the hosts in the middle.
            assert part.max() <= 1.005, scheme
            assert part.max() / part.min() < 1.05, scheme


# ---- Faults, and warnings about them


@pytest.mark.parametrize("scheme", ["s-perc", "n-perc", "s-perc-star"])
def test_late_control_packets_spoil_or_warn(tmp_path, scheme):
    """After 1 ms of late control packets, rates converge again, or the run warns that they do not."""
    flows = [{"src": f"h{i}", "dst": "h3", "start": 5e-3 if i == 2 else 0} for i in range(3)]
    late = {"kind": "delay", "probability": 0.05, "kinds": ["ctl"], "by": "50us", "from": "1ms", "until": "2ms"}
    spec = {
        "network": {"kind": "star", "hosts": 4},
        "workload": {"kind": "steps", "flows": flows},
        "scheme": [{"name": scheme}],
        "fault": [late],
        "measure": {"rates": "500us"},
        "run": {"duration": "20ms"},
    }
    results = subak.run(spec, tmp_path)
    back = mean_rates(results, 0.012, 0.02).min() > 0.9 * 0.94 * 10 * G / 3
    assert back or any(warning["kind"] == "no-recovery" for warning in results.warnings)


def test_restart_of_a_switch_is_that_of_its_links(tmp_path):
    """A restart of a switch resets the state of its links, like a restart of each link; or the fault is refused."""
    flows = [{"src": f"h{i}", "dst": "h3", "start": 5e-3 if i == 2 else 0} for i in range(3)]
    rates = {}
    for what, where in (("none", {}), ("node", {"node": "switch0"}), ("link", {"link": "switch0->h3"})):
        spec = {
            "network": {"kind": "star", "hosts": 4},
            "workload": {"kind": "steps", "flows": flows},
            "scheme": [{"name": "s-perc"}],
            "fault": [{"kind": "restart", "at": "2ms", **where}] if where else [],
            "measure": {"rates": "500us"},
            "run": {"duration": "20ms"},
        }
        rates[what] = mean_rates(subak.run(spec, tmp_path / what), 0.012, 0.02)
    assert np.abs(rates["link"] / rates["none"] - 1).max() > 0.1
    assert np.abs(rates["node"] / rates["none"] - 1).max() > 0.1


# ---- CUBIC and pFabric

VARIANTS = [
    {"name": "cubic", "label": f"{overflow} {quantum}", "params": {"overflow": overflow, "quantum": quantum}}
    for overflow in ("head", "tail")
    for quantum in (0, 1514)
]
PFABRIC = [{"name": "pfabric", "label": f"room for {n}", "params": {"buffer": n}} for n in (1, 24)]


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    spec = {
        "network": {"kind": "star", "hosts": 8},
        "workload": {"kind": "poisson", "sizes": "facebook-web", "load": 0.8},
        "scheme": VARIANTS + PFABRIC,
        "run": {"duration": "4ms", "drain": 2},
    }
    return subak.run(spec, tmp_path_factory.mktemp("crowded"))


def test_crowded_flows_complete(crowded):
    """All flows complete with all bytes, and dropped packets were retransmitted."""
    flows = table(crowded, "flow")
    assert flows.fct_ns.notna().all()
    assert (flows.received_bytes == flows.size_bytes).all()
    assert (flows.drops <= flows.retransmissions).all()


def test_no_flow_beats_the_ideal(crowded):
    """No FCT is below that of the same flow alone, except by rounding to 1 ns."""
    flows = table(crowded, "flow")
    assert (flows.fct_ns >= flows.ideal_fct_ns - 1).all()


# ---- Jobs, files, input


def test_job_times(tmp_path):
    """A job takes at least its critical path, ends with its last part, and is unfinished if that did not end."""
    jobs = [
        {
            "id": "query",
            "tasks": [
                {"id": "scan", "host": "h0"},
                {"id": "join", "host": "h1", "time": "2ms"},
                {"id": "end", "host": "h2"},
            ],
            "flows": [
                {"id": "rows", "src": "scan", "dst": "join", "size": "2MB"},
                {"id": "answer", "src": "join", "dst": "end", "size": "1MB"},
            ],
        }
    ]
    spec = {
        "network": {"kind": "star", "hosts": 3},
        "workload": {"kind": "jobs", "jobs": jobs, "policy": "even"},
        "scheme": [{"name": "ideal"}, {"name": "soze-virtual"}, {"name": "s-perc"}],
    }
    done = table(subak.run(spec | {"run": {"duration": "50ms"}}, tmp_path / "done"), "job")
    # 3 MB in packets of 1446 bytes with 54 bytes of headers at 10 Gb/s, 2 ms of computing, and some us of delay.
    path = 3e6 * 1500 / 1446 * 8 / 10 + 2e6
    assert (done.fct_ns >= done.ideal_fct_ns).all()
    assert np.abs(done.ideal_fct_ns / path - 1).max() < 0.01
    cut = table(subak.run(spec | {"run": {"duration": "3ms", "drain": 0}}, tmp_path / "cut"), "job")
    assert cut.fct_ns.isna().all()


SMALL = {
    "network": {"kind": "star", "hosts": 4},
    "controller": {"at": "h0"},
    "policy": {"kind": "alpha-fair", "alpha": 1},
    "workload": {"kind": "poisson", "sizes": "facebook-web", "load": 0.3},
    "scheme": [{"name": "flowtune"}, {"name": "cubic"}],
    "run": {"duration": "1ms", "seeds": 2},
}


def digest(folder):
    return hashlib.sha256((folder / "results.parquet").read_bytes()).hexdigest()


def test_same_seed_same_bytes(tmp_path):
    """Two runs of a spec write the same bytes, as does a run that was interrupted and resumed."""
    for folder in ("one", "two"):
        subak.run(SMALL, tmp_path / folder)
    assert digest(tmp_path / "one") == digest(tmp_path / "two")


def test_a_cut_table_is_written_again(tmp_path):
    """A truncated table of results is written again from the trials, which are complete."""
    subak.run(SMALL, tmp_path)
    whole = digest(tmp_path)
    file = tmp_path / "results.parquet"
    file.write_bytes(file.read_bytes()[:100])
    subak.run(SMALL, tmp_path)
    assert digest(tmp_path) == whole


@pytest.mark.parametrize(
    ("scheme", "name", "value"),
    [
        ("flowtune", "lease", -1),
        ("flowtune", "interval", float("nan")),
        ("flowtune", "control_share", 1e300),
        ("soze-virtual", "m", 2.5),
        ("soze-virtual", "headroom", float("inf")),
        ("soze", "arithmetic", "roman"),
        ("cubic", "overflow", "middle"),
        ("pfabric", "buffer", -1),
        ("dctcp", "nonsense", 1),
        ("cubic", "bins", 1.5),
        ("cubic", "device", 1.5),
        ("pfabric", "patience", 1.5),
        ("pfabric", "buffer", 1e-9),
    ],
)
def test_bad_parameters_are_named(tmp_path, scheme, name, value):
    """An invalid parameter is refused, and the message names it."""
    spec = SMALL | {"scheme": [{"name": scheme, "params": {name: value}}]}
    if scheme in ("soze", "soze-virtual"):
        spec["policy"] = {"kind": "max-min"}
    with pytest.raises(Exception, match=name):
        subak.run(spec, tmp_path)


@pytest.mark.parametrize("at", ["nowhere", None])
def test_an_allocator_needs_a_place(tmp_path, at):
    """Flowtune is refused if the spec has no node for its allocator, or names a node that does not exist."""
    spec = {key: value for key, value in SMALL.items() if key != "controller"} | (
        {"controller": {"at": at}} if at else {}
    )
    with pytest.raises(Exception, match=r"controller"):
        subak.run(spec, tmp_path)


@pytest.mark.parametrize("mtu", [100, 1500])
def test_flowtune_takes_acknowledgements_of_any_size(tmp_path, mtu):
    """By default Flowtune reserves capacity for ACKs, at most half of a link, whatever the ACK size."""
    spec = {key: value for key, value in SMALL.items() if key not in ("scheme", "packets")}
    spec |= {"scheme": [{"name": "flowtune"}], "packets": {"mtu": mtu, "ack": 64 if mtu == 100 else 1200}}
    results = subak.run(spec, tmp_path)
    assert not results.failed
    assert len(table(results, "flow"))
