"""The README and the pages of the site are true: their Python runs, their commands run and exist.

``python`` and ``sh`` blocks of a page run in the order of the page, in one folder that holds a copy
of the examples; training is cut short. ``bash`` blocks are for clusters and other people's files:
their commands must parse. ``code-cell`` blocks run when the site is built (``make docs``).
"""

import importlib
import importlib.util
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from torch.distributed.run import get_args_parser
from typer.main import get_command

from lab.__main__ import app as lab_app
from longnn import __version__
from longnn.cli import app
from tests.commands import ROOT, succeed
from tests.test_architecture import INSIDE

DOCS, README = ROOT / "docs", ROOT / "README.md"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "_" not in p.relative_to(DOCS).parts[0])
BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
#: Pages that take longer than the others.
SLOW = {"tuning", "benchmarks", "scikit-learn"}
#: Pages whose trainings are as long as they say: a benchmark times more epochs than a brief one.
WHOLE = {"benchmarks"}
#: Pages that go on from a run on the club.
AFTER_START = {"export"}
BRIEF = {"train": ["--set", "epochs=5"], "tune": ["--set", "epochs=5", "--finalists", "0"]}


def blocks(page, *kinds):
    """(kind, text) of the blocks of these kinds, in order."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(kind, text) for kind, text in found if kind in kinds]


def lines_of(text):
    """Commands of a block, without comments."""
    return [line.strip() for line in text.splitlines() if line.strip() and line.strip()[0] != "#"]


def with_blocks(*kinds):
    pages = [page for page in PAGES if blocks(page, *kinds)]
    slow = SLOW if "sh" in kinds else set()  # to parse a command takes no time
    marks = {page: [pytest.mark.slow] if page.stem in slow else [] for page in pages}
    return [pytest.param(page, marks=marks[page], id=page.stem) for page in pages]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where a reader stands: a folder with the examples."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(line):
    program, *arguments = shlex.split(line.replace("python -m lab", "lab"), comments=True)
    succeed(*arguments, *BRIEF.get(arguments[0], []), app={"longnn": app, "lab": lab_app}[program])
    output = re.search(r"--output (\S+)", line)
    assert not output or Path(output[1]).exists(), line


@pytest.mark.parametrize("page", with_blocks("sh", "python"))
def test_page_runs(page, folder, request, monkeypatch):
    if page.stem not in WHOLE:
        request.getfixturevalue("brief")
    if blocks(page, "sh"):  # a report takes longer than a brief training, and has its own tests
        monkeypatch.setattr("longnn.runs._train.report.write_report", lambda record: None)
    if page.stem in AFTER_START:
        run("longnn train examples/club --preset fast --output runs/club")
    names = {"__name__": "docs"}
    for kind, text in blocks(page, "sh", "python"):
        if kind == "python":
            exec(compile(text, page.name, "exec"), names)
        else:
            for line in lines_of(text):
                run(line)


def options_of(name, app):
    """The options that a command knows."""
    command = get_command(app).commands[name]
    return {option for parameter in command.params for option in parameter.opts}


def check_longnn(words, app=app):
    """Whether a command exists, and all of its options."""
    name, *rest = words
    known = options_of(name, app)
    for word in rest:
        if word.startswith("--"):
            assert word in known, f"longnn {name} has no {word}"


def check_torchrun(words):
    """Whether torchrun takes these options and starts longnn with options that it has."""
    at = words.index("-m")
    assert words[at + 1] == "longnn"
    numbers = ["2" if word.startswith("$") else word for word in words]
    found = get_args_parser().parse_args(numbers)
    assert found.module
    assert found.training_script == "longnn"
    check_longnn(words[at + 2 :])


@pytest.mark.parametrize("page", with_blocks("bash"))
def test_commands_for_elsewhere_parse(page):
    checked = 0
    for _, text in blocks(page, "bash"):
        for line in lines_of(text):
            words = shlex.split(line, comments=True)
            words = words[1:] if words[0] == "srun" else words
            if words[0] == "longnn":
                check_longnn(words[1:])
            elif words[:3] == ["python", "-m", "lab"]:
                check_longnn(words[3:], lab_app)
            elif words[0] == "torchrun":
                check_torchrun(words[1:])
            else:
                assert re.match(r"export [A-Z_]+=\d+$|HEAD=\$\(", line), line
                continue
            checked += 1
    assert checked


def test_an_option_that_is_not_there_is_noticed():
    with pytest.raises(AssertionError, match="no --ranks"):
        check_longnn(["propagate", "graph", "--ranks", "4"])
    with pytest.raises(SystemExit):
        check_torchrun(["--processes", "2", "-m", "longnn", "propagate", "graph"])


def test_every_block_says_what_it_is():
    known = {"sh", "bash", "python", "text", "toml", ""}
    for page in PAGES:
        for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            assert kind in known or kind.startswith("{"), f"{page.name}: {kind}"
            assert kind or "longnn " not in text, (
                f"{page.name}: a command that no test runs\n{text}"
            )


def test_every_page_is_on_the_site():
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^(?:[\w -]+ <)?([\w/-]+)>?$", text, flags=re.MULTILINE)
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in PAGES}
    assert set(listed) <= pages
    missing = {p for p in pages - set(listed) if not p.startswith("results/")} - {"index"}
    assert not missing


def test_links_lead_somewhere():
    for page in (*PAGES, README):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\((?!http|#)([^)#\s]+)", text):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.fixture
def extension(monkeypatch):
    """Extensions of the site, by name."""
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))

    def load(name):
        pytest.importorskip("sphinx", reason="the extra `docs` is not installed")
        return importlib.import_module(name)

    yield load
    for name in ("mathml", "offline", "reference"):
        sys.modules.pop(name, None)


def test_the_reference_has_every_promised_name(extension):
    """Of every package that promises any; see also test_architecture.py."""
    reference = extension("reference")
    roots = {path.parent.name for path in (ROOT / "longnn").glob("*/__init__.py")}
    assert set(reference.PACKAGES) == (roots - INSIDE) | {"registry"}
    index = reference.table_of_names()
    for package, module in reference.packages().items():
        text = reference.page(module)
        for name in reference.exported(module):
            assert re.search(rf":: longnn\.{package}\.{name}$", text, re.MULTILINE)
            assert f"<longnn.{package}.{name}>" in index
    first = [name for names in reference.FIRST.values() for name in names]
    assert len(first) == 13
    assert [index.index(f"`{name} <") for name in first] == sorted(
        index.index(f"`{name} <") for name in first
    )


def test_pages_use_promised_names_alone():
    for page in (*PAGES, README):
        text = page.read_text(encoding="utf-8")
        for package, names in re.findall(r"^from longnn\.(\S+) import (.+)$", text, re.MULTILINE):
            promised = importlib.import_module(f"longnn.{package}").__all__
            assert package not in INSIDE, page.name
            assert {name.strip() for name in names.split("#")[0].split(",")} <= {*promised}, (
                page.name
            )


def test_formulas_become_elements_of_mathml(extension):
    mathml = extension("mathml")
    found = mathml.render(r"\big(\sum_{k=0}^K \alpha_k, \dots\big)", block=True)
    assert 'display="block"' in found
    assert "<mo" in found
    assert "big" not in found
    with pytest.raises(Exception, match="Expected a formula that MathML can show"):
        mathml.render(r"\nonsense", block=False)


def test_a_page_that_loads_from_the_network_is_noticed(extension):
    offline = extension("offline")
    pages = (
        '<script defer src="https://cdn.example/math.js">',
        '<link rel="stylesheet" href="//fonts.example/a.css">',
        "@import url(https://fonts.example/b.css)",
        "<pre>/home/me/longnn/docs</pre>",
    )
    for page in pages:
        assert len(offline.problems(page, "/home/me/longnn")) == 1, page
    assert not offline.problems('<a href="https://arxiv.org/abs/2303.13750">', "/home/me/longnn")


def test_what_a_page_shows_is_what_it_says():
    """A command whose output is on a page is on the page, too."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        said = [line for _, block in blocks(page, "sh") for line in lines_of(block)]
        for shown in re.findall(r"""^show\(["'](longnn .*)["']\)$""", text, flags=re.MULTILINE):
            assert shown in said, f"{page.name}: {shown}"


# The README

TEXT = README.read_text(encoding="utf-8")
COMMANDS = (DOCS / "commands.md").read_text(encoding="utf-8")
SHELL = [line for _, text in blocks(README, "sh") for line in lines_of(text)]


def test_the_readme_is_short_and_has_a_picture():
    assert len(TEXT.encode()) < 7000
    (picture,) = re.findall(r"!\[[^]]{20,}\]\((\S+)\)", TEXT)
    assert (ROOT / picture).exists()


def test_the_readme_runs(folder, brief, monkeypatch):
    """Its commands in their order, then its Python; pages have their own tests, and are empty."""
    write = lambda record: (record.folder / "report.html").touch()  # noqa: E731
    monkeypatch.setattr("longnn.runs._train.report.write_report", write)
    lines = [line for line in SHELL if line.startswith("longnn")]
    assert [line.split()[1] for line in lines] == ["info", "train", "explain", "predict"]
    for line in lines:
        run(line)
    assert len(Path("new.csv").read_text().splitlines()) == 21
    for name in re.findall(r"`(runs/\S+?\.\w+)`", TEXT):
        assert Path(name).exists(), name
    table = COMMANDS.partition("## A run is a folder")[2].partition("##")[0]
    for path in Path("runs/club").iterdir():
        listed = path.name in table or (path.suffix == ".parquet" and "`.parquet`" in table)
        assert listed, path.name
    ((_, python),), names = blocks(README, "python"), {"__name__": "readme"}
    exec(compile(python, "README.md", "exec"), names)
    assert Path("filter.png").exists()
    assert (names["run"].trained.repeats, names["run"].config.preset) == (3, "fast")


def test_the_examples_are_what_their_script_makes(tmp_path):
    spec = importlib.util.spec_from_file_location("make_club", ROOT / "examples" / "make_club.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(tmp_path)
    for path in sorted((ROOT / "examples").glob("*/*.csv")):
        made = tmp_path / path.relative_to(ROOT / "examples")
        assert made.read_text() == path.read_text(), path.name


def test_studies_and_targets_of_the_readme_exist():
    listed = succeed("study", "--list", app=lab_app)
    for line in SHELL:
        if line.startswith("python -m lab"):
            word = line.split()[4]
            assert word.startswith("--") or word in listed
        else:
            assert line.startswith(("longnn ", "make "))
    makefile = (ROOT / "Makefile").read_text()
    made = [line.split()[1] for line in SHELL if line.startswith("make ")]
    assert made == ["demo", "test"]
    for target in (*made, *re.findall(r"`make (\w+)`", TEXT)):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_demo(folder, no_report):
    """The command behind ``make demo``; the target clears its own folder, so it runs again."""
    recipe = re.search(r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    (command,) = re.findall(r"\$\(BIN\)/(longnn .*)", recipe[1])
    assert "rm -rf demo-run" in recipe[1].split("$(BIN)")[0]
    run(f"{command} --preset fast")
    assert (folder / "demo-run" / "record.json").exists()


def test_every_command_is_in_the_table():
    table = COMMANDS.partition("## A run")[0]
    for program, commands in (("longnn", app), ("python -m lab", lab_app)):
        for command in commands.registered_commands:
            assert f"{program} {command.callback.__name__}" in table


def test_what_is_cited_is_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in citation
