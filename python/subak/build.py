"""Which build of Subak this is."""

from __future__ import annotations

from subak import _subak


def build() -> dict[str, str | None]:
    """``version``, and ``sources``: a hash of the sources that it was built from, where the build knows."""
    told = getattr(_subak, "build", None)
    known = dict(told()) if told is not None else {}
    return {"version": _subak.__version__, "sources": None, **known}
