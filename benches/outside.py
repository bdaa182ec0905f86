"""Cost of schemes of users: DCTCP in Rust, C and Python, and RCP in Rust and Python, in turn in one process.

``python benches/outside.py [ROUNDS]`` prints the processor time of a run and its ratio to Rust's. 16 hosts, web
search at 60%, 10 ms. The compiled scheme needs numba.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import subak

ROOT = Path(__file__).parents[1]
TEMPLATES = ROOT / "python/subak/outside/templates"
SCHEMES = {
    "dctcp in Rust": {"name": "dctcp"},
    "dctcp in C": {"library": "dctcp.so"},
    "dctcp in Python, compiled": {"name": "mine", "python": "dctcp_compiled.py:Dctcp"},
    "dctcp in Python, marks in Rust": {"name": "mine", "python": "dctcp.py:Dctcp"},
    "rcp in Rust": {"name": "rcp"},
    "rcp in Python": {"name": "mine", "python": "rcp.py:Rcp"},
}


def measure(rounds: int) -> dict[str, list[float]]:
    """Processor seconds of each run, by scheme; in each round every scheme runs once."""
    took: dict[str, list[float]] = {name: [] for name in SCHEMES}
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        for path in [*TEMPLATES.glob("*.py"), ROOT / "examples/schemes/dctcp_compiled.py"]:
            (here / path.name).write_text(path.read_text())
        compiler = ["cc", "-O2", "-shared", "-fPIC", f"-I{ROOT / 'include'}", "-o", here / "dctcp.so"]
        subprocess.run([*compiler, ROOT / "examples/schemes/dctcp.c"], check=True)
        specs = {}
        for number, (name, scheme) in enumerate(SCHEMES.items()):
            text = "\n".join(f'{key} = "{value}"' for key, value in scheme.items())
            specs[name] = here / f"{number}.toml"
            specs[name].write_text(f'{SPEC}[[scheme]]\nlabel = "it"\n{text}\n')
        for round_ in range(rounds + 1):
            for name, spec in specs.items():
                began = time.process_time()
                results = subak.run(spec, here / "out", jobs=1, threads=1, progress=False, overwrite=True)
                seconds = time.process_time() - began
                assert not results.failed, results.failed
                if round_:  # the first round warms caches up
                    took[name].append(seconds)
    return took


SPEC = """
[network]
kind = "star"
hosts = 16
[workload]
kind = "poisson"
sizes = "web-search"
load = 0.6
[run]
duration = "10ms"
"""


if __name__ == "__main__":
    took = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
    for name, seconds in took.items():
        rust = took[f"{name.split()[0]} in Rust"]
        ratios = [mine / theirs for mine, theirs in zip(seconds, rust, strict=True)]
        median = statistics.median(seconds)
        print(f"{name:<32} {1e3 * median:7.1f} ms  {statistics.median(ratios):5.2f} times Rust")
