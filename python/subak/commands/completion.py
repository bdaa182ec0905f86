"""Shell completion of names."""

from __future__ import annotations


def scheme_names(begun: str) -> list[str]:
    """Names of schemes that begin with ``begun``."""
    from subak import _subak

    return [scheme["name"] for scheme in _subak.schemes() if scheme["name"].startswith(begun)]


def experiment_names(begun: str) -> list[str]:
    """Names of the papers' experiments that begin with ``begun``."""
    from subak.repro.catalogue import catalogue

    return [name for name in catalogue() if name.startswith(begun)]
