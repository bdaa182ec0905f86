"""The README's figure, from the results of the demo: slowdown by flow size.

``make demo`` runs this. A file beside the figure has the hash of its spec; a test compares it with that of the present
spec.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import subak
from subak import units

ROOT = Path(__file__).parents[1]
SPEC = ROOT / "examples/demo.toml"
PICTURE = ROOT / "docs/images/demo.png"
COLOURS = ("#0b6aa8", "#b8480a", "#12756b")
MARKS = ("o-", "s--", "^:")


def digest(spec: Path) -> str:
    """SHA-256 of a spec's text."""
    return hashlib.sha256(spec.read_bytes()).hexdigest()


def draw(folder: Path, picture: Path) -> None:
    """Draws the results in ``folder``, and writes the hash of their spec beside the figure."""
    results = subak.Results(folder)
    rows = results.summary()["rows"]
    mpl.rcParams.update({"font.family": "DejaVu Sans", "font.size": 10, "svg.hashsalt": "subak"})
    figure, plots = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
    for plot, metric, title in zip(plots, ("slowdown_mean", "slowdown_p99"), ("mean", "99th percentile"), strict=True):
        for slot, row in enumerate(rows):
            stats = [one["metrics"][metric] for one in row["sizes"]]
            x = [k + 0.08 * (slot - 1) for k in range(len(stats))]
            y, half = [s["mean"] for s in stats], [s["ci95"] or 0.0 for s in stats]
            low = [min(h, mean - 1.0) for h, mean in zip(half, y, strict=True)]
            plot.errorbar(x, y, (low, half), fmt=MARKS[slot], color=COLOURS[slot], label=row["scheme"], markersize=5)
        plot.set(title=title, yscale="log", xlabel="size of the flow", ylabel="slowdown")
        ticks = [t for t in (1, 2, 5, 10, 20, 50, 100) if t <= 1.2 * plot.get_ylim()[1]]
        plot.set_yticks(ticks, [str(t) for t in ticks])
        plot.set_yticks([], minor=True)
        plot.set_ylim(bottom=1)
        plot.set_xticks(
            range(len(rows[0]["sizes"])), [_bin(one["up_to_bytes"], one["above_bytes"]) for one in rows[0]["sizes"]]
        )
        plot.grid(axis="y", color="#e3e8ec")
        plot.spines[["top", "right"]].set_visible(False)
    plots[0].legend(frameon=False)
    figure.savefig(picture, dpi=110, metadata={"Software": None})
    plt.close(figure)
    of = {"spec": SPEC.name, "spec_sha256": digest(folder / "spec.toml"), "version": results.manifest["version"]}
    picture.with_suffix(".json").write_text(json.dumps(of, indent=2) + "\n", encoding="utf-8")


def _bin(up_to: int | None, above: int) -> str:
    return f"to {units.size(up_to)}" if up_to else f"over {units.size(above)}"


if __name__ == "__main__":
    draw(Path(sys.argv[1]), PICTURE)
