"""The layers of the code: imports point down only, siblings do not import each other."""

import ast
import functools
import importlib
import inspect
import re
import subprocess
from pathlib import Path

import pytest

import longnn

ROOT = Path(longnn.__file__).parent

#: From the bottom up. A module may import what stands in a line above its own; those that share a
#: line are siblings and know nothing of each other.
LAYERS = (
    ("_base", "metrics"),
    ("kernels",),
    ("polynomials", "matrices"),
    ("graphs",),
    ("filters",),
    ("nn",),
    ("registry",),
    ("config", "data"),
    ("store",),
    ("recipes",),
    ("training",),
    ("records",),
    ("report",),
    ("description", "explain"),
    ("rivals",),
    ("estimator",),
    ("runs",),
    ("tuning", "explorer"),
    ("cli",),
    ("__main__",),
)
#: Modules with public names and no doctest, and why an example there would not help.
WITHOUT_EXAMPLE = {
    "longnn.kernels": "needs a GPU",
    "longnn.report": "draws figures and pages of a run",
    "longnn.description": "needs a trained run",
    "longnn.runs": "needs a run on disk",
    "longnn.explorer._data": "needs a run on disk",
    "longnn.data._named": "needs downloaded files",
    "longnn.graphs._spectrum": "estimates by random probes; tests have tolerances",
    "longnn.store": "needs a prepared folder",
    "longnn.training._files": "needs a population in training",
}
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names}


def modules():
    """Every file of the package but its root, with the layer it belongs to."""
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts != ("__init__",):
            yield parts[0], path


@functools.cache
def nodes(path):
    """All of the syntax of a file, in which several laws are looked for."""
    return tuple(ast.walk(ast.parse(path.read_text())))


def imports(path):
    """Modules of longnn that a file imports, wherever in the file, in full."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] == "longnn")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "longnn":
                yield from (f"longnn.{alias.name}" for alias in node.names)
            elif node.module.startswith("longnn."):
                yield node.module


def test_every_module_has_its_layer():
    assert {name for name, _ in modules()} == set(HEIGHT)


def test_imports_point_down():
    wrong = [
        f"{path.relative_to(ROOT)} imports {target}"
        for name, path in modules()
        for target in imports(path)
        if target != "longnn"
        and target.split(".")[1] != name
        and HEIGHT[target.split(".")[1]] >= HEIGHT[name]
    ]
    assert not wrong


def test_the_package_does_not_know_the_laboratory():
    wrong = [
        str(path.relative_to(ROOT))
        for _, path in modules()
        if re.search(r"^\s*(?:from|import) lab\b", path.read_text(), flags=re.MULTILINE)
    ]
    assert not wrong


def test_only_the_command_line_goes_through_the_root():
    """There modules are loaded when first used; everyone else says what it needs."""
    using = {name for name, path in modules() if "longnn" in imports(path)}
    assert using == {"cli"}


#: Packages that promise users nothing: their roots are for the packages above them.
INSIDE = {
    *("_base", "cli", "description", "explorer", "kernels", "matrices", "records", "report"),
    "training",
}


def test_what_is_promised_is_little():
    """Users may rely on what the roots of packages name: see docs/api/index.md."""
    homes = {name: package.split(".")[1:2] for package, name, _ in public_names()}
    promised = {name for name, home in homes.items() if home and home[0] not in INSIDE}
    assert 60 < len(promised) <= 80
    root = {name for name in longnn.__all__ if not name.islower() and name != "__version__"}
    assert root <= promised


@pytest.mark.parametrize("name", sorted({n for n in HEIGHT if (ROOT / n).is_dir()} - INSIDE))
def test_a_root_imports_what_it_promises(name):
    """Whoever needs more takes it from the file that defines it."""
    path = ROOT / name / "__init__.py"
    exported = set(getattr(importlib.import_module(f"longnn.{name}"), "__all__", ()))
    imported = [
        alias.name
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"longnn.{name}.")
        for alias in node.names
    ]
    used = [n.id for n in nodes(path) if isinstance(n, ast.Name)]
    assert set(imported) <= exported | set(used)


def test_private_files_are_underscored():
    """In packages; the modules of the base are public names by themselves."""
    wrong = [
        str(path.relative_to(ROOT))
        for name, path in modules()
        if path.parent != ROOT and name != "_base" and not path.stem.startswith("_")
    ]
    assert not wrong


def test_every_module_says_what_it_is_for():
    missing = [
        str(path.relative_to(ROOT))
        for _, path in modules()
        if not ast.get_docstring(nodes(path)[0])
    ]
    assert not missing


@pytest.mark.skipif(not (ROOT.parent / ".git").exists(), reason="not a git checkout")
def test_git_ignores_no_module():
    """A pattern for folders of users must not hide a package of that name."""
    paths = "\n".join(str(path) for _, path in modules())
    command = ["git", "check-ignore", "--no-index", "--stdin"]
    done = subprocess.run(command, input=paths, cwd=ROOT.parent, capture_output=True, text=True)
    assert done.stdout == ""


def test_private_torch_is_used_in_one_file():
    """What torch may change without a word; its own compiler's names do not count."""
    wrong = []
    for _, path in modules():
        if path.name == "torch_private.py":
            continue
        for node in nodes(path):
            dotted = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
            if dotted.startswith("torch.") and any(p.startswith("_") for p in dotted.split(".")):
                wrong.append(f"{path.relative_to(ROOT)}: {dotted}")
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
                named = [*node.module.split("."), *(a.name for a in node.names)]
                wrong += [f"{path.relative_to(ROOT)}: {n}" for n in named if n.startswith("_")]
    assert not wrong


def public_names():
    """(package, name, object) of everything that a package or a module of the root exports."""
    for path in sorted([*ROOT.rglob("__init__.py"), *ROOT.glob("[!_]*.py")]):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        package = importlib.import_module(".".join(parts).removesuffix(".__init__"))
        for name in getattr(package, "__all__", ()):
            yield package.__name__, name, getattr(package, name)


def methods(cls):
    """Names and functions of the public methods and properties that a class defines itself."""
    for name, member in vars(cls).items():
        found = getattr(cls, name)
        routine = isinstance(member, property) or inspect.isroutine(found)
        if routine and not name.startswith("_"):
            yield name, found


def test_every_public_name_has_a_docstring():
    missing = []
    for package, name, found in public_names():
        if inspect.isclass(found) and found.__module__.startswith("longnn"):
            generated = f"{name}("  # what a dataclass writes for itself
            if not found.__doc__ or found.__doc__.startswith(generated):
                missing.append(f"{package}.{name}")
            for method, function in methods(found):
                if not inspect.getdoc(function):
                    missing.append(f"{package}.{name}.{method}")
        elif (inspect.isfunction(found) or inspect.ismodule(found)) and not found.__doc__:
            missing.append(f"{package}.{name}")
    assert not missing


def test_public_modules_have_an_example():
    homes = {
        found.__module__
        for _, _, found in public_names()
        if inspect.isclass(found) or inspect.isfunction(found)
    }
    bare = [
        home
        for home in sorted(homes)
        if home.startswith("longnn")
        and not any(f"{home}.".startswith(f"{excused}.") for excused in WITHOUT_EXAMPLE)
        and ">>>" not in inspect.getsource(importlib.import_module(home))
    ]
    assert not bare


#: What may hold single backticks in a docstring: code in double ones, roles, links, examples.
MARKUP = re.compile(r"``.*?``|:[\w:]+:`[^`]*`|`[^`]*<[^`>]*>`_|^ *>>>.*?(?:\n *\n|\Z)", re.S | re.M)


def test_docstrings_are_in_one_dialect():
    """reStructuredText: code in double backticks, single ones only in roles and links."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    wrong = [
        f"{path.relative_to(ROOT)}: {getattr(node, 'name', 'module')}"
        for path in sorted(ROOT.rglob("*.py"))
        for node in nodes(path)
        if isinstance(node, kinds) and "`" in MARKUP.sub("", ast.get_docstring(node) or "")
    ]
    assert not wrong
