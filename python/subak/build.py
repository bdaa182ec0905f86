"""Which build of Subak this is."""

from __future__ import annotations

from subak import _subak


def build() -> dict[str, str]:
    """``version``, and ``sources``: a hash of the sources that it was built from."""
    return {"version": _subak.__version__, "sources": _subak.__build__}
