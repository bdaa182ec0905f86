"""Equations as MathML: docutils converts LaTeX while the site is built, and browsers draw MathML without a script."""

from __future__ import annotations

import re
from typing import Any

from docutils.nodes import Element, SkipNode, math, math_block
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.errors import SphinxError


def inline(page: Any, node: math) -> None:
    """Writes an equation inside a sentence."""
    page.body.append(_mathml(node.astext()))
    raise SkipNode


def block(page: Any, node: math_block) -> None:
    """Writes displayed equations, side by side if they fit. An equation that is too wide for the page scrolls."""
    page.body.append('<div class="equation">\n')
    page.body += [f"<div>{_mathml(one, as_block=True)}</div>\n" for one in _equations(node)]
    page.body.append("</div>\n")
    raise SkipNode


def _mathml(told: str, as_block: bool = False) -> str:
    try:
        return str(tex2mathml(told, as_block=as_block))
    except MathError as error:
        raise SphinxError(f"{told!r}: {error}; docutils knows a part of LaTeX's commands") from None


def _equations(node: Element) -> list[str]:
    return [one for one in re.split(r"\n\n|\\qquad", node.astext()) if one.strip()]


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the renderer under the name ``mathml``."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"version": "1", "parallel_read_safe": True}
