"""The layers of the code: imports point down only, siblings do not import each other."""

import ast
from pathlib import Path

import longnn

ROOT = Path(longnn.__file__).parent

#: Each module and the modules of the package it may import.
LAYERS = {
    "version": set(),
    "machine": {"version"},
    "kernels": set(),
    "files": set(),
    "signals": set(),
    "derivatives": set(),
    "coefficients": {"derivatives"},
    "textbook": set(),
    "report": set(),
    "polynomials": {"derivatives", "kernels"},
    "noise": {"derivatives", "kernels"},
    "activation": {"derivatives", "kernels"},
    "sparse": {"derivatives", "kernels", "noise"},
    "graph": {"sparse"},
    "spectrum": {"graph"},
    "propagate": {"derivatives", "graph", "sparse", "kernels"},
    "lanczos": {"derivatives", "graph", "sparse"},
    "published": {"derivatives", "polynomials"},
    "filters": {"polynomials", "coefficients", "graph", "propagate", "published"},
    "nn": {
        "activation",
        "derivatives",
        "filters",
        "coefficients",
        "polynomials",
        "graph",
        "lanczos",
        "sparse",
        "noise",
        "kernels",
    },
    "data": {"graph"},
    "training": {"derivatives", "graph", "sparse", "files", "kernels"},
    "config": {"nn", "training", "files"},
    "recipes": {"config"},
    "workflow": {"config", "data", "graph", "nn", "training"},
    "artifacts": {"data", "files", "training", "workflow"},
    "records": {"config", "data", "graph", "report", "spectrum", "training", "workflow"},
    "runs": {
        "artifacts",
        "config",
        "data",
        "files",
        "machine",
        "records",
        "report",
        "signals",
        "spectrum",
        "training",
        "version",
        "workflow",
    },
    "prediction": {"artifacts", "config", "data", "records", "runs", "workflow"},
    "tuning": {"config", "data", "files", "machine", "nn", "report", "training", "workflow"},
    "bench": {
        "config",
        "data",
        "files",
        "graph",
        "machine",
        "propagate",
        "report",
        "sparse",
        "textbook",
        "training",
        "workflow",
    },
    "experiments": {
        "bench",
        "coefficients",
        "config",
        "data",
        "files",
        "filters",
        "graph",
        "machine",
        "nn",
        "polynomials",
        "propagate",
        "recipes",
        "report",
        "spectrum",
        "textbook",
        "training",
        "tuning",
        "workflow",
    },
    "estimator": {"config", "data", "files", "nn", "recipes", "training", "workflow"},
    "display": {"training"},
    "cli": {
        "artifacts",
        "bench",
        "config",
        "data",
        "display",
        "experiments",
        "graph",
        "nn",
        "prediction",
        "recipes",
        "records",
        "report",
        "runs",
        "spectrum",
        "tuning",
        "version",
    },
    "__main__": {"cli"},
}


def imports(path):
    """Names of the package's modules that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [node.module]
            if node.module == "longnn":
                names = [f"longnn.{alias.name}" for alias in node.names]
        for name in names:
            if name.split(".")[0] == "longnn" and name.count("."):
                yield name.split(".")[1]


def modules():
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts != ("__init__",):
            yield parts[0], path


def test_every_module_has_its_layer():
    assert {name for name, _ in modules()} == set(LAYERS)


def test_imports_point_down():
    wrong = [
        f"{path.relative_to(ROOT)} imports {target}"
        for name, path in modules()
        for target in imports(path)
        if target != name and target not in LAYERS[name]
    ]
    assert not wrong


def test_layers_have_no_cycle():
    order = []
    remaining = dict(LAYERS)
    while remaining:
        ready = [name for name, needs in remaining.items() if needs <= set(order)]
        assert ready, f"a cycle among {sorted(remaining)}"
        order += ready
        for name in ready:
            del remaining[name]


def test_every_module_says_what_it_is_for():
    missing = [
        str(path.relative_to(ROOT))
        for _, path in modules()
        if not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert not missing
