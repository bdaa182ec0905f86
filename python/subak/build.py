"""Version and source hash of this build of Subak."""

from __future__ import annotations

from subak import _subak


def build() -> dict[str, str]:
    """``version``, and ``sources``: a hash of the sources of this build."""
    return {"version": _subak.__version__, "sources": _subak.__build__}
