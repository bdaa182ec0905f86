"""Chromium without a display, for tests of pages."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any


def browser() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def chromium(profile: Path) -> list[str]:
    quiet = "--disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update"
    options = ["--headless", "--no-sandbox", *quiet.split(), "--disable-sync", "--hide-scrollbars"]
    return [browser() or "", *options, f"--user-data-dir={profile}"]


def asked(page: Path, folder: Path, script: str, width: int) -> list[Any]:
    """Value of ``found`` after the ``script`` of this folder ran in the page."""
    script = Path(__file__).with_name(script).read_text()
    probe = folder / "probe.html"
    tell = 'document.body.innerHTML = ""; document.body.dataset.found = JSON.stringify(found);'
    probe.write_text(page.read_text().replace("</body>", f"<script>(() => {{{script}\n{tell}}})();</script></body>"))
    command = [*chromium(folder / "profile"), f"--window-size={width},1800", "--dump-dom", probe.as_uri()]
    dumped = subprocess.run(command, check=True, capture_output=True, timeout=120).stdout.decode()
    told = re.search(r'data-found="(.*?)"', dumped)
    assert told, "the script did not come to its end"
    return json.loads(html.unescape(told[1]))
