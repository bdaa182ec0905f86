"""Every parameter of every scheme changes the results of some run."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import subak
from subak import _subak

SCHEMES = {scheme["name"]: scheme for scheme in _subak.schemes() if scheme["params"]}

CHECKED = {
    ("soze", "dt"): "a bound that params.p is checked against",
    ("flowtune", "alpha"): "must be the policy's",
    ("rcp-star", "alpha"): "must be the policy's",
}
"""Parameters that change no result, with the reason."""


def _star(hosts: int, keys: str, workload: str, rest: str) -> str:
    return f'network = {{kind = "star", hosts = {hosts}, {keys}}}\nworkload = {{{workload}}}\n{rest}\n'


def _pairs(keys: str, flows: str, rest: str) -> str:
    listed = f'kind = "steps", flows = [{flows}]'
    return f'network = {{kind = "dumbbell", {keys}}}\nworkload = {{{listed}}}\n{rest}\n'


def _lost(probability: float, *kinds: str) -> str:
    return f'{{kind = "loss", probability = {probability}, kinds = {json.dumps(kinds)}}}'


FAST = 'rate = "10Gbps", link_delay = "2us", buffer = "60KB"'
SLOW = 'pairs = 3, host_rate = "1Gbps", bottleneck_rate = "500Mbps", link_delay = "2ms", buffer = "100KB"'
FOUR = 'pairs = 4, host_rate = "10Gbps", bottleneck_rate = "5Gbps", link_delay = "5us"'
WEB = 'kind = "poisson", sizes = "web-search", load = 0.7'
SMALL = 'kind = "poisson", sizes = "enterprise", load = 0.7'
TAIL = 'run = {duration = "4ms", drain = "20ms"}'
STEPS = """
    {src = "h0", dst = "h4", weight = 2, weights = [["1500us", 1]]},
    {src = "h1", dst = "h5", start = "300us", size = "400KB"},
    {src = "h2", dst = "h6", start = "1ms", demand = "300Mbps"},
    {src = "h3", dst = "h7", start = "1ms", stop = "2ms"},
    {src = "h5", dst = "h1"},
    {src = "h6", dst = "h2", start = "2500us", size = "3KB"},
"""
LONG = '{src = "h0", dst = "h3", size = "3MB"}, {src = "h1", dst = "h4", start = "20ms", size = "3MB"}'
LOSSES = f"fault = [{_lost(0.002, 'data')}]\n"
OUTAGE = '{kind = "down", link = "h1->switch0", down = "1200us", up = "1400us"}'
LONG_OUTAGE = OUTAGE.replace("1400us", "30ms")
ACK_LOSS = _lost(0.4, "data", "ack")
NO_CONTROL = f"{_lost(0.02, 'data')}, {_lost(1.0, 'ctl')}"
LEAVES = (
    'network = {kind = "leaf-spine", leaves = 3, spines = %d, hosts_per_leaf = 3, '
    'host_rate = "10Gbps", spine_rate = "%dGbps"CONTROLLER}\n'
)
_ENDS = [f'{{id = "n{k}", kind = "{"switch" if 0 < k < 11 else "host"}"}}' for k in range(12)]
_HOPS = [
    f'{{source = "n{k}", target = "n{k + 1}", capacity = "10Gbps", delay = "1us", both = true}}' for k in range(11)
]
CHAIN = f"""network.nodes = [{", ".join(_ENDS)}]
network.links = [{", ".join(_HOPS)}]
workload = {{kind = "steps", flows = [{{src = "n0", dst = "n11"}}, {{src = "n11", dst = "n0"}},
    {{src = "n0", dst = "n11", start = "100us", size = "300KB"}}]}}
run = {{duration = "1ms"}}
"""
# Two flows have 5 Gb/s at their host, and the third what they leave: 5.5 Gb/s, 6% more than an equal share.
NEAR = '{src = "h0", dst = "h3"}, {src = "h1", dst = "h3"}, {src = "h2", dst = "h4", start = "200us"}'
PLACES = {
    "short": _star(8, FAST, WEB, f"fault = [{_lost(0.01, 'data', 'ack')}]\n{TAIL}"),
    "steps": _pairs(
        FOUR, STEPS, f'fault = [{_lost(0.05, "ctl")}, {OUTAGE}]\nrun = {{duration = "5ms", drain = "20ms"}}'
    ),
    "incast": _star(
        40,
        'rate = "10Gbps", link_delay = "1us", buffer = "20KB"',
        'kind = "incast", senders = 38, size = "600KB"',
        'run = {duration = "1ms", drain = "100ms"}',
    ),
    "paths": LEAVES % (2, 10) + 'workload = {kind = "permutation", subflows = 2}\nrun = {duration = "3ms"}\n',
    "long": _pairs(SLOW, LONG, 'run = {duration = "500ms", drain = "2s"}'),
    "churn": LEAVES % (1, 20) + f'workload = {{{SMALL}}}\nrun = {{duration = "2ms", drain = "20ms"}}\n',
    "outage": _pairs(
        FOUR,
        STEPS.replace('stop = "2ms"', 'size = "2MB"'),
        f'fault = [{_lost(0.05, "data")}, {LONG_OUTAGE}]\nrun = {{duration = "5ms", drain = "200ms"}}',
    ),
    "acks": _star(8, FAST, SMALL, f"fault = [{ACK_LOSS}]\n{TAIL}"),
    "weights": _star(8, FAST, SMALL + ", weights = {uniform = [1, 4]}", TAIL),
    "control": _star(8, FAST, WEB, f"fault = [{_lost(0.5, 'ctl')}]\n{TAIL}"),
    "no control": _star(8, FAST, WEB, f"fault = [{NO_CONTROL}]\n{TAIL}"),
    "losses": _pairs(SLOW, LONG.replace("3MB", "10MB"), LOSSES + 'run = {duration = "500ms", drain = "2s"}'),
    "chain": CHAIN,
    "near": _pairs(
        'pairs = 3, host_rate = "10Gbps", bottleneck_rate = "15.5Gbps", link_delay = "2us"',
        NEAR,
        'run = {duration = "1ms"}',
    ),
}
"""Networks and workloads, in the order in which they are tried."""
AT = {
    "paths": "controller",
    "churn": "controller",
    "incast": "h39",
    "long": "h5",
    "losses": "h5",
    "chain": "n0",
    "near": "h5",
}
"""The node of a controller, where it is not h7."""

PFC: dict[str, Any] = {"pfc": "static", "pfc_threshold": 20000, "initial_window": 40}
SPECIAL: dict[tuple[str, str], tuple[str, dict[str, Any], Any]] = {
    ("ideal", "tolerance"): ("churn", {}, 0.05),
    ("numfabric", "queues"): ("weights", {"queue": "weighted"}, 2),
    ("numfabric", "queue_low"): ("weights", {"queue": "weighted"}, 0.5),
    ("numfabric", "queue_high"): ("weights", {"queue": "weighted"}, 2),
    ("numfabric", "service"): ("weights", {"queue": "weighted"}, "drr"),
    ("numfabric", "share"): ("weights", {"queue": "weighted"}, "queue"),
    ("numfabric", "beyond"): ("weights", {"queue": "afq", "queues": 2}, "drop"),
    ("numfabric", "sketch"): ("weights", {"queue": "afq"}, 4),
    ("numfabric-swift", "queues"): ("weights", {"queue": "weighted"}, 2),
    ("numfabric-swift", "queue_low"): ("weights", {"queue": "weighted"}, 0.5),
    ("numfabric-swift", "queue_high"): ("weights", {"queue": "weighted"}, 2),
    ("numfabric-swift", "service"): ("weights", {"queue": "weighted"}, "drr"),
    ("numfabric-swift", "share"): ("weights", {"queue": "weighted"}, "queue"),
    ("numfabric-swift", "beyond"): ("weights", {"queue": "afq", "queues": 2}, "drop"),
    ("numfabric-swift", "sketch"): ("weights", {"queue": "afq"}, 4),
    ("cubic", "target"): ("short", {"codel_interval": 1e-4}, 2e-5),
    ("cubic", "codel_interval"): ("short", {"target": 2e-5}, 1e-4),
    ("cubic", "hystart"): ("steps", {"queue": "fifo"}, True),
    ("cubic", "hystart_unit"): ("steps", {"queue": "fifo", "hystart": True}, 1e-4),
    ("cubic", "fast_convergence"): ("losses", {"reno_friendly": False}, False),
    ("dctcp", "pfc_alpha"): ("incast", {"pfc": "dynamic"}, 0.01),
    ("dctcp", "pfc_reserve"): ("incast", {"pfc": "dynamic", "pfc_alpha": 0.01}, 4096),
    ("dctcp", "pfc_threshold"): ("incast", {**PFC, "pfc_threshold": 40000}, 20000),
    ("dctcp", "pfc_resume"): ("incast", PFC, 10000),
    ("dctcp", "pfc_buffer"): ("incast", {"pfc": "dynamic"}, 8000000),
    ("dctcp", "pfc_headroom"): ("incast", PFC, 3000),
    ("hpcc", "pfc_reserve"): ("incast", {"pfc": "dynamic", "pfc_alpha": 0.001}, 4096),
    ("powertcp", "pfc_reserve"): ("incast", {"pfc": "dynamic", "pfc_alpha": 0.001}, 4096),
    ("powertcp", "pfc_threshold"): ("incast", {"pfc": "static"}, 3100),
    ("powertcp", "pfc_buffer"): ("incast", {"pfc": "dynamic", "pfc_alpha": 0.001}, 8000000),
    ("dcqcn", "pfc_reserve"): ("incast", {"pfc": "dynamic", "pfc_alpha": 0.01}, 4096),
    ("timely", "pfc_reserve"): ("incast", {"pfc": "dynamic", "pfc_alpha": 0.01}, 4096),
    ("xwi-s-perc", "tie"): ("churn", {}, 0.1),
    ("hpcc", "pfc_threshold"): ("incast", {"pfc": "static"}, 3100),
    ("hpcc", "pfc_buffer"): ("incast", {"pfc": "dynamic", "pfc_alpha": 0.001}, 8000000),
    ("dcqcn", "pfc_threshold"): ("incast", {"pfc": "static"}, 20000),
    ("dcqcn", "pfc_buffer"): ("incast", {}, 8000000),
    ("dcqcn", "counter"): ("steps", {}, 1e5),
    ("dcqcn", "hai"): ("steps", {"timer": 2e-5, "counter": 0, "fast": 1}, 0.2),
    ("timely", "pfc_threshold"): ("incast", {"pfc": "static"}, 20000),
    ("timely", "pfc_buffer"): ("incast", {}, 8000000),
    ("timely", "t_high"): ("steps", {"t_low": 1e-5}, 3e-5),
    ("timely", "hai"): ("steps", {"t_low": 5e-6, "t_high": 1e-3}, 20),
    ("timely", "hai_after"): ("steps", {"t_low": 5e-6, "t_high": 1e-3}, 2),
    ("google-swift", "min_cwnd"): ("incast", {"base_target": 5e-6, "fs_range": 0}, 0.5),
    ("google-swift", "max_cwnd"): ("steps", {}, 2),
    ("google-swift", "retx_reset"): ("outage", {}, 1),
    ("s-perc", "compact"): ("chain", {}, True),
    ("s-perc-star", "compact"): ("chain", {}, True),
    ("s-perc-star", "short"): ("steps", {}, 500_000),
    ("flowtune", "passes"): ("churn", {}, 3),
    ("flowtune", "control_rto_max"): ("control", {}, 1e-3),
    ("numfabric", "least_weight"): ("steps", {}, 0.3),
    ("xwi-s-perc", "least_weight"): ("steps", {}, 0.1),
    ("xwi-soze", "least_weight"): ("steps", {}, 0.3),
    ("soze", "beta_rate"): ("steps", {"alpha_rate": "10Gbps"}, 1e9),
    **{
        (name, "timeout"): ("short", {"rto_min": 1e-5, "probe": False}, "all")
        for name in ("cubic", "reno", "google-swift", "wrr", "xcp")
    },
    **{(name, "tie"): ("near", {}, 0.1) for name in ("charny", "n-perc", "s-perc", "s-perc-star")},
}
"""Parameters that act in a place and under other parameters that none of the first five places has, with a value."""


@dataclass(frozen=True)
class Run:
    """A run of one scheme."""

    scheme: str
    place: str
    params: str

    def text(self) -> str:
        of = SCHEMES[self.scheme]
        body, at = PLACES[self.place], AT.get(self.place, "h7")
        if "no weights" in of["policies"]:
            body = body.replace("weight = 2, ", "").replace('weights = [["1500us", 1]]', "connections = 1")
        body = body.replace("CONTROLLER", ', controller_rate = "10Gbps"' if of["controller"] else "")
        maximin = of["policies"] == "any" or of["policies"].startswith("max-min")
        policy = '{kind = "max-min"}' if maximin else '{kind = "alpha-fair", alpha = 1}'
        controller = f'controller = {{at = "{at}"}}\n' if of["controller"] else ""
        scheme = f'{{name = "{self.scheme}", params = {self.params}}}'
        return f"schema = 1\nscheme = [{scheme}]\npolicy = {policy}\n{controller}{body}"


@cache
def _outcome(run: Run) -> str:
    """Hash of the results of ``run``."""
    with TemporaryDirectory() as folder:
        results = subak.run(tomllib.loads(run.text()), out=f"{folder}/out")
        tables = [results.table(kind).to_pandas().to_csv() for kind in ("flow", "link")]
    return hashlib.sha256("".join(tables).encode()).hexdigest()


def _changes(scheme: str, place: str, name: str, beside: dict[str, Any], value: Any) -> bool:
    before = _outcome(Run(scheme, place, _table(beside)))
    try:
        return _outcome(Run(scheme, place, _table({**beside, name: value}))) != before
    except subak.InputError as error:
        if name not in str(error):
            raise
        return False


def _table(params: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{name} = {json.dumps(value)}" for name, value in params.items()) + "}"


def _others(param: dict[str, Any]) -> list[Any]:
    """Values other than the default."""
    default = param["default"]
    if isinstance(default, bool):
        return [not default]
    if isinstance(default, str):
        return [word for word in param["choices"] if word != default]
    return [value for value in (2 * default, default / 2, 10 * default, default + 1) if value != default]


def _acts(scheme: str, param: dict[str, Any]) -> bool:
    name = param["name"]
    if (scheme, name) in SPECIAL:
        place, beside, value = SPECIAL[scheme, name]
        return _changes(scheme, place, name, beside, value)
    return any(_changes(scheme, place, name, {}, value) for place in PLACES for value in _others(param))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_parameter_acts(scheme: str) -> None:
    still = {(scheme, p["name"]) for p in SCHEMES[scheme]["params"] if not _acts(scheme, p)}
    assert still == {key for key in CHECKED if key[0] == scheme}
