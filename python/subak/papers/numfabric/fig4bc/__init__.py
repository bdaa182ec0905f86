"""Figures 4b and 4c of NUMFabric: rate of one flow through several changes, under DCTCP and under NUMFabric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subak.repro import RawResults, Value, figures, stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPOCH_NS, HOLD_NS, EVERY_NS, FILTER_NS = 10_000_000, 5_000_000, 10_000, 80_000
SHARE = 0.95
SCHEMES = {"dctcp": "DCTCP", "numfabric": "NUMFabric"}


def _rates(raw: RawResults, scheme: str, run: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, ns, and filtered and expected rates, bit/s, of the permanent flows, one column per flow."""
    columns = ["scheme", "seed", "flow", "time_ns", "rate_bps", "assigned_bps"]
    frame = raw.simulated(scheme).table("rate", columns).to_pandas()
    frame = frame[frame["seed"] == raw.plan.seed + run]
    mine = frame[frame["scheme"] == scheme].pivot(index="time_ns", columns="flow", values="rate_bps")
    ideal = frame[frame["scheme"] == "ideal"].pivot(index="time_ns", columns="flow", values="assigned_bps")
    # At the last sample all flows have stopped.
    mine, ideal = mine.iloc[:-1].dropna(axis=1), ideal.iloc[:-1].dropna(axis=1)
    gain = 1 - np.exp(-EVERY_NS / FILTER_NS)
    rates = np.array(mine, dtype=float)
    for k in range(1, len(rates)):
        rates[k] = rates[k - 1] + gain * (rates[k] - rates[k - 1])
    return mine.index.to_numpy(dtype=float), rates, ideal[mine.columns].to_numpy(dtype=float)


def _settled(times: np.ndarray, rates: np.ndarray, ideal: np.ndarray) -> np.ndarray:
    """For each epoch and flow, whether the rate stays within 10% of the expected one in the last 5 ms of the epoch."""
    near = np.abs(rates - ideal) <= 0.1 * ideal
    ends = np.arange(EPOCH_NS, times[-1] + EVERY_NS + 1, EPOCH_NS)
    return np.array([near[(times > end - HOLD_NS) & (times < end)].all(axis=0) for end in ends])


def _converged(times: np.ndarray, rates: np.ndarray, ideal: np.ndarray) -> np.ndarray:
    """For each epoch, whether 95% of the flows are within 10% at each sample of the last 5 ms."""
    near = (np.abs(rates - ideal) <= 0.1 * ideal).mean(axis=1) >= SHARE
    ends = np.arange(EPOCH_NS, times[-1] + EVERY_NS + 1, EPOCH_NS)
    return np.array([near[(times > end - HOLD_NS) & (times < end)].all() for end in ends])


def _shown(raw: RawResults, run: int = 0) -> int:
    """The flow to draw: the one with the largest ratio between its expected rates."""
    ideal = _rates(raw, "numfabric", run)[2]
    return int(np.argmax(ideal.max(axis=0) / ideal.min(axis=0)))


def measure(raw: RawResults) -> dict[str, Value]:
    """Fraction of epochs that converge: by the paper's criterion, by the drawn flow alone, and by each flow alone."""
    found: dict[str, Value] = {}
    flows = [_shown(raw, run) for run in range(raw.plan.runs)]
    for scheme in SCHEMES:
        epochs = np.concatenate([_converged(*_rates(raw, scheme, run)) for run in range(raw.plan.runs)])
        found[f"{scheme}_epochs"] = stats.share(int(epochs.sum()), len(epochs), "epochs")
        settled = [_settled(*_rates(raw, scheme, run)) for run in range(raw.plan.runs)]
        one = np.concatenate([epochs[:, flow] for epochs, flow in zip(settled, flows, strict=True)])
        found[f"{scheme}_flow"] = stats.share(int(one.sum()), len(one), "epochs")
        # Flows of one epoch share a network: epochs are resampled, each with the fraction of its flows.
        shares = np.concatenate([epochs.mean(axis=1) for epochs in settled])
        found[f"{scheme}_all"] = stats.estimate(100 * shares, "percent", "epochs")
    return found


def draw(raw: RawResults) -> Figure:
    """Filtered and expected rate of the drawn flow, under DCTCP and under NUMFabric."""
    figure, plots = figures.axes(columns=2, width=5.5)
    flow = _shown(raw)
    for plot, (scheme, name) in zip(plots, SCHEMES.items(), strict=True):
        times, rates, ideal = _rates(raw, scheme)
        plot.plot(times / 1e6, rates[:, flow] / 1e9, color=figures.COLOURS[0], linewidth=0.8, label=name)
        plot.plot(times / 1e6, ideal[:, flow] / 1e9, color=figures.COLOURS[1], linestyle="-", label="expected")
        plot.set(title=name, xlabel="ms", ylabel="Gb/s", ylim=(0, None))
        plot.legend(loc="upper right")
    return figure
