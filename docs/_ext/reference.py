"""The API reference: one page per package that promises names, with each of them.

Pages are written before Sphinx looks for them, so a new name needs no line here.
"""

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

from sphinx.application import Sphinx

#: Packages with names that users may rely on, in the order of the reference, and for what they are.
PACKAGES = {
    "runs": "train, load, predict, evaluate",
    "estimator": "the scikit-learn interface",
    "data": "graphs by name and from files, splits",
    "explain": "why a prediction",
    "tuning": "the search",
    "config": "settings and their defaults",
    "recipes": "tuned settings",
    "nn": "layers and models",
    "registry": "models by name",
    "filters": "filters with learnable coefficients",
    "polynomials": "families of polynomials, their matrices and norms",
    "graphs": "the operator, the one loop, spectra",
    "store": "graphs on disk",
}
#: What most people need, package by package; the first page shows them first.
FIRST = {
    "runs": ("train", "load_run", "Run"),
    "data": ("load", "Source"),
    "estimator": ("LONGNNClassifier", "LONGNNRegressor"),
    "explain": ("explain_nodes",),
    "tuning": ("tune",),
    "nn": ("LONConv",),
    "filters": ("PolynomialFilter",),
    "graphs": ("GraphOperator", "apply_filter"),
}


def packages() -> dict[str, ModuleType]:
    """The packages of the reference by name, in its order."""
    return {name: importlib.import_module(f"longnn.{name}") for name in PACKAGES}


def exported(module: ModuleType) -> list[str]:
    """The names that a package promises."""
    return list(module.__all__)


def summary(found: object) -> str:
    """The first sentence of a docstring."""
    lines = (inspect.getdoc(found) or "").partition("\n\n")[0].splitlines()
    return " ".join(lines)


def page(module: ModuleType) -> str:
    """The page of a package in reStructuredText: a table of its names, then each in full."""
    title = module.__name__
    lines = [title, "=" * len(title), "", f".. automodule:: {title}", "   :no-members:", ""]
    lines += [".. list-table::", "   :class: names", "   :widths: auto", ""]
    found = {name: getattr(module, name) for name in exported(module)}
    for name, value in found.items():
        role = "class" if inspect.isclass(value) else "func"
        lines += [f"   * - :py:{role}:`{name} <{title}.{name}>`", f"     - {summary(value)}"]
    lines += ["", ""]
    for name, value in found.items():
        members = ["   :members:"] if inspect.isclass(value) else []
        kind = "class" if inspect.isclass(value) else "function"
        lines += [f".. auto{kind}:: {title}.{name}", *members, ""]
    return "\n".join(lines) + "\n"


def _row(package: str, name: str) -> str:
    """A line of a table in Markdown, with a link to where the name is explained."""
    found = getattr(importlib.import_module(f"longnn.{package}"), name)
    role = "class" if inspect.isclass(found) else "func"
    words = re.sub(r":math:`([^`]*)`", r"$\1$", summary(found))
    words = re.sub(r":\w+:`~?([^`<]*\.)?([^`<]*?)( <[^>]*>)?`", r"`\2`", words).replace("``", "`")
    words = re.sub(r"`([^`<]*) <(http[^>]*)>`_", r"[\1](\2)", words)
    return f"| {{py:{role}}}`{name} <longnn.{package}.{name}>` | {words} |"


def table_of_names() -> str:
    """In Markdown: what most people need, and every other name by package."""
    head = ["| name | what it is |", "|---|---|"]
    lines = [*head, *(_row(package, name) for package in FIRST for name in FIRST[package])]
    for package, about in PACKAGES.items():
        rest = [n for n in exported(packages()[package]) if n not in FIRST.get(package, ())]
        if rest:
            lines += ["", f"## {{py:mod}}`longnn.{package}`: {about}", "", *head]
            lines += [_row(package, name) for name in rest]
    return "\n".join([*lines, ""])


def write(app: Sphinx) -> None:
    """Write the pages; a page that is as it was keeps its time, and is not read again."""
    folder = Path(app.srcdir) / "api"
    for name, module in packages().items():
        path, text = folder / f"{name}.rst", page(module)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for its sources."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
