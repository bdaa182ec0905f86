"""Keeps what an experiment came to at paper scale, for its page: ``python docs/record.py out/repro/NAME-paper ...``."""

import json
import shutil
import sys
from pathlib import Path

RECORDS = Path(__file__).parent / "records"

for folder in map(Path, sys.argv[1:]):
    verdict = json.loads((folder / "verdict.json").read_text())
    if verdict["scale"] != "paper":
        sys.exit(f"{folder}: this ran at {verdict['scale']} scale; pages show paper scale")
    shutil.copy(folder / "verdict.json", RECORDS / f"{verdict['name']}.json")
    shutil.copy(folder / "figure.png", RECORDS / f"{verdict['name']}.png")
