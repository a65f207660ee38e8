"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

import re

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

#: What docutils' reader of LaTeX does not know, in words that it knows.
#: Delimiters of MathML grow with what they enclose, so sizes are dropped.
WORDS = (
    (re.compile(r"\\(operatorname\*?|textrm)\b"), r"\\mathrm"),
    (re.compile(r"\\([bB]igg?[lr]?|textstyle)(?![a-zA-Z])"), ""),
    (re.compile(r"\\dots\b"), r"\\ldots"),
)


def render(text: str, *, block: bool) -> str:
    """A formula in LaTeX as a MathML element.

    >>> "<mi>x</mi>" in render("x^2", block=False)
    True
    >>> render(r"\\nonsense", block=True)
    Traceback (most recent call last):
    sphinx.errors.ExtensionError: Expected a formula that MathML can show (got \\nonsense): ...
    """
    for pattern, word in WORDS:
        text = pattern.sub(word, text)
    try:
        return latex2mathml.tex2mathml(text, as_block=block)
    except MathError as error:
        message = f"Expected a formula that MathML can show (got {text}): {error}"
        raise ExtensionError(message) from error


def inline(self, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(f'<span class="math">{render(node.astext(), block=False)}</span>')
    raise nodes.SkipNode


def block(self, node: nodes.math_block) -> None:
    """Write a formula on lines of its own."""
    self.body.append(f'<div class="math">{render(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Make ``mathml`` a renderer to choose."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
