"""The API reference: one page per public package, with every name that it exports.

Pages are written before Sphinx looks for them, so a new name needs no line here. A name that two
packages export is explained where the first of them in ``PACKAGES`` has it.
"""

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

from sphinx.application import Sphinx

import longnn

#: Packages in the order of the reference, and for what they are.
PACKAGES = {
    "runs": "train, load, predict, evaluate",
    "estimator": "the scikit-learn interface",
    "explain": "why a prediction",
    "explorer": "a page to explore a run",
    "data": "graphs by name and from files, splits",
    "config": "settings and their defaults",
    "registry": "one entry per model",
    "recipes": "tuned settings",
    "nn": "layers and models",
    "filters": "filters and least-squares fits",
    "polynomials": "families of polynomials, their matrices and norms",
    "graphs": "the operator, the one loop, spectra",
    "matrices": "sparse matrices and products",
    "store": "graphs on disk",
    "training": "the training loop",
    "tuning": "the search",
    "records": "the schema of saved results",
    "report": "figures, words and pages",
    "bench": "how fast it is",
    "studies": "the experiments",
    "kernels": "Triton kernels for GPUs",
}
#: Letters of a constant's value that the reference shows.
SHORT = 80


def packages() -> dict[str, ModuleType]:
    """The public packages that there are, by name, in the order of the reference."""
    root = Path(longnn.__file__).parent
    found = {p.parent.name for p in root.glob("*/__init__.py")} | {
        p.stem for p in root.glob("*.py")
    }
    public = {name for name in found if not name.startswith("_")} - {"cli"}
    ordered = [name for name in PACKAGES if name in public]
    names = ordered + sorted(public - set(ordered))
    return {name: importlib.import_module(f"longnn.{name}") for name in names}


def exported(module: ModuleType) -> list[str]:
    """The public names of a package, or of a module without ``__all__``."""
    names = getattr(module, "__all__", None)
    if names is None:
        own = vars(module).items()
        names = [n for n, o in own if getattr(o, "__module__", None) == module.__name__]
    return [name for name in names if not name.startswith("_")]


def summary(found: object) -> str:
    """The first sentence of a docstring."""
    if not (inspect.isclass(found) or inspect.isroutine(found) or inspect.ismodule(found)):
        return ""
    lines = (inspect.getdoc(found) or "").partition("\n\n")[0].splitlines()
    return " ".join(lines)


def _kind(found: object) -> str:
    if inspect.ismodule(found):
        return "module"
    if inspect.isclass(found):
        return "class"
    return "function" if inspect.isroutine(found) else "data"


def _directive(module: ModuleType, name: str) -> list[str]:
    found, full = getattr(module, name), f"{module.__name__}.{name}"
    kind = _kind(found)
    if kind == "module":
        return [f".. automodule:: {found.__name__}", "   :members:", "   :undoc-members:", ""]
    if kind == "class":
        return [f".. autoclass:: {full}", "   :members:", ""]
    if kind == "function":
        return [f".. autofunction:: {full}", ""]
    lines = [f".. py:data:: {full}", f"   :type: {type(found).__name__}"]
    value = " ".join(repr(found).split())
    return [*lines, *([f"   :value: {value}"] if len(value) <= SHORT else []), ""]


def page(module: ModuleType) -> str:
    """The page of a package in reStructuredText: a table of its names, then each in full."""
    title = module.__name__
    lines = [title, "=" * len(title), "", f".. automodule:: {title}", "   :no-members:", ""]
    names = exported(module)
    lines += [".. list-table::", "   :class: names", "   :widths: auto", ""]
    for name in names:
        found = getattr(module, name)
        role = {"class": "class", "function": "func"}.get(_kind(found), "data")
        target = found.__name__ if inspect.ismodule(found) else f"{title}.{name}"
        role = "mod" if inspect.ismodule(found) else role
        lines += [f"   * - :py:{role}:`{name} <{target}>`", f"     - {summary(found)}"]
    lines += ["", ""]
    for name in names:
        lines += _directive(module, name)
    return "\n".join(lines) + "\n"


def table_of_names() -> str:
    """What ``longnn`` itself exports, in Markdown, with links to where each is explained."""
    homes = packages()
    rows = ["| name | what it is |", "|---|---|"]
    for name in sorted(exported(longnn), key=lambda n: (n.islower(), n.lower())):
        found = getattr(longnn, name)
        if inspect.ismodule(found):
            continue
        home = next(key for key, module in homes.items() if name in exported(module))
        kind = "class" if inspect.isclass(found) else "func"
        words = re.sub(r":\w+:`~?([^`<]*\.)?([^`<]*)`", r"`\2`", summary(found)).replace("``", "`")
        words = re.sub(r"`([^`<]*) <(http[^>]*)>`_", r"[\1](\2)", words)
        rows.append(f"| {{py:{kind}}}`{name} <longnn.{home}.{name}>` | {words} |")
    about = [f"| {{py:mod}}`longnn.{key}` | {PACKAGES.get(key, '')} |" for key in homes]
    return "\n".join(
        [*rows, "", "## Packages", "", "| package | what it is for |", "|---|---|", *about, ""]
    )


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
