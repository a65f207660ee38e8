"""Configurations, search spaces, options of loaders, and command lines."""

import functools
import shutil

from longnn import cli
from longnn.config import Config
from longnn.config._config import explain_options, explain_settings
from longnn.config._values import parse_assignment
from longnn.data import Source
from longnn.data._synthetic import csbm
from longnn.registry import MODELS, OPTIONS
from longnn.runs import train
from longnn.tuning import load_space
from tests.commands import without_report
from tests.fuzz import material
from tests.fuzz.cases import QUICK, Case, fuzzed, learn
from tests.fuzz.draw import CELLS, mutate_bytes, mutate_lines
from tests.tuning.examples import draw_values

#: Values as TOML writes them, of every kind.
VALUES = (
    *("0", "-1", "1", "2", "1.5", "-0.0", "1e400", "nan", "inf", "-inf", "true", "false", '""'),
    *('"x"', '"é"', "[]", "[1]", "{}", "{a = 1}", "1e-320", "9007199254740993", "1000000000"),
    *("1000000000000", "9223372036854775808", "9" * 400, "2020-01-01", "'''a'''", "0x10", "1_0"),
    *('"auto"', '"cuda"', '"cuda:99"', '"meta"', '"none"', '"loss"', '"fraud=5"', "3", "10"),
    *("100000", "7" * 5000, "[" * 2000 + "]" * 2000, "{low = 0, high = 1}", "{choices = []}"),
)
#: Names of all settings and of all options of models, with a default of each.
DEFAULTS = {entry.name: entry.default for entry in explain_settings()}
DEFAULTS |= {e.name: e.default for model in MODELS for e in explain_options(model)}
NAMES = tuple(DEFAULTS)
CHOICES = {e.name: e.choices for e in explain_settings() if e.choices}
#: Values of the right kind that are still unusual.
RIGHT = {
    bool: ("true", "false"),
    int: ("0", "1", "2", "3", "7", "1000", "1000000000", "1000000000000", "9223372036854775807"),
    float: ("0", "0.5", "0.999", "1e-320", "1e-9", "1", "1e9", "1e30", "1e308", "-0.5", "-0.999"),
}


def value_of(draw, name):
    """A value for a setting, as TOML: mostly of the right kind."""
    default = DEFAULTS.get(name)
    if draw.chance(0.35) or name not in DEFAULTS:
        return draw.choice(VALUES)
    if type(default) in RIGHT:
        return draw.choice(RIGHT[type(default)])
    words = (*CHOICES.get(name, ()), *(OPTIONS[name].choices if name in OPTIONS else ()))
    other = draw.choice((str(default), "cpu", "balanced", "own", "stratified"))
    return f'"{draw.choice((*words, other))}"'


def mutate_toml(draw, text):
    """Change assignments: another value, another name, one more; or the text as such."""
    lines = [line for line in text.splitlines() if line.strip()]
    for _ in range(draw.times()):
        kind = draw.randrange(10)
        at = draw.randrange(len(lines))
        key = lines[at].partition("=")[0].strip()
        if kind <= 5:
            lines[at] = f"{key} = {value_of(draw, key)}"
        elif kind == 6:
            key = draw.choice(NAMES)
            lines.append(f"{key} = {value_of(draw, key)}")
        elif kind == 7:
            lines.append(lines[at])
        elif kind == 8:
            del lines[at]
            lines = lines or ["a = 1"]
        else:
            lines = mutate_lines(draw, "\n".join(lines)).split("\n")
    return "\n".join(lines) + "\n"


def _short(config):
    """A configuration for a moment's training: a long one is legal, and of no interest here."""
    few = config.repeat if config.repeat > 1000 else min(config.repeat, 2)
    return config.replace(epochs=min(config.settings.epochs, 2), repeat=few, baselines=False)


def _try(config):
    train(csbm(**material.SMALL), _short(config))


def _toml(draw):
    model = draw.choice((*["lon"] * 3, *MODELS))
    options = {**QUICK, "degree": 2} if model == "lon" else {"epochs": 2, "hidden_channels": 4}
    config = Config.from_dict({**options, "model": model, "device": "cpu"})
    return "\n".join(config.to_toml())


@fuzzed("config")
def config(draw, folder):
    path = folder / "settings.toml"
    text = mutate_toml(draw, _toml(draw))
    content = text.encode(errors="replace")
    path.write_bytes(mutate_bytes(draw, content) if draw.chance(0.05) else content)
    return Case(functools.partial(Config.from_toml, path), _try, (path.name,))


#: Ranges and choices of a search space.
ENTRIES = (
    *("{choices = [0.0, 1.0]}", "{choices = []}", "{choices = [1, 'a']}", "{choices = 5}"),
    *("{low = 0, high = 1}", "{low = 1, high = 0}", "{low = 0, high = 1, step = 0}"),
    *("{low = 0, high = 1, step = 1e-12}", "{low = 0.0, high = 1.0, log = true}"),
    *("{low = nan, high = 1}", "{low = 1e-5, high = 1, log = true, or_zero = true}"),
    *("{low = -inf, high = inf}", "{low = 1}", "{low = 0, high = 1, log = 'x'}"),
    *("{high = 1, low = 0, other = 1}", "{low = 1, high = 1000000000000}"),
    *("{low = 1, high = 9223372036854775808}", "{choices = [[1]]}", "{choices = [nan, inf]}"),
)


@fuzzed("space")
def space(draw, folder):
    path = folder / "space.toml"
    lines = ["epochs = 2", "degree = {low = 1, high = 3}", "a = {choices = [0.0, 1.0]}"]
    lines += ["dropout = {low = 0, high = 0.8, step = 0.1}"]
    lines += ["lr_transform = {low = 1e-4, high = 1e-1, log = true}"]
    for _ in range(draw.times()):
        kind = draw.randrange(6)
        if kind <= 3:
            value = draw.choice((*ENTRIES, *ENTRIES, *VALUES))
            lines.append(f"{draw.choice(NAMES)} = {value}")
        elif kind == 4:
            model = draw.choice((*MODELS, "x", '""'))
            lines += [f"[models.{model}]", f"{draw.choice(NAMES)} = {draw.choice(ENTRIES)}"]
        else:
            lines = mutate_lines(draw, "\n".join(lines)).split("\n")
    path.write_bytes("\n".join(lines).encode(errors="replace"))
    model = draw.choice(("lon", "lon", *MODELS))
    use = lambda found: [found.config(each) for each in draw_values([found], 2)]  # noqa: E731
    return Case(functools.partial(load_space, path, model), use, (path.name,), model)


_COUNTS = ("0", "1", "2", "5", "40", "1000000000", "1000000000000", "9223372036854775807", "-1")
_COLUMNS = ("id", "size", "hue", "label", "source", "target", "id,size", "size,size", "label,hue")
_OF = ("id", "label", "split", "time", "group", "source", "target", "weight", "type")
#: Options of loaders, with values of the right kind.
DATA = {
    "files": {
        **dict.fromkeys((f"{of}_column" for of in _OF), _COLUMNS),
        **dict.fromkeys((f"{of}_columns" for of in ("feature", "text", "category")), _COLUMNS),
        "directed": ("true", "false", "auto"),
        "self_loops": ("true", "false"),
        "missing": ("fill", "error"),
        "features": ("auto", "columns", "degree", "identity"),
        "task": ("classification", "regression", "multilabel"),
        "name": ("5", "<b>", "x", "../x", "a/b"),
        "optional_columns": ("label_column", "split_column", "drop_columns"),
        "feature_file": ("nodes.csv", "c.toml"),
        "more_rows": ("more", "nodes.csv", "."),
    },
    "csbm": {
        **dict.fromkeys(("num_nodes", "num_features", "seed"), _COUNTS),
        **dict.fromkeys(("phi", "degree", "eps"), ("0", "0.5", "1", "-1", "5", "1e9", "1e308")),
    },
    "digits": {"neighbours": _COUNTS},
}
WORDS = sorted({word for options in DATA.values() for words in options.values() for word in words})


@fuzzed("data-options")
def data_options(draw, folder):
    kind = draw.choice(("files", "files", "csbm", "digits"))
    graph = material.place / "graph" if kind == "files" else kind
    pairs = []
    for _ in range(draw.times()):
        key = draw.choice((*DATA[kind], *DATA[kind], "unknown", ""))
        value = draw.choice(DATA[kind].get(key, WORDS))
        if draw.chance(0.3):
            value = draw.choice((*WORDS, *CELLS, *VALUES))
        pairs.append(f"{key}={value}")

    def read():
        options = dict(parse_assignment(pair) for pair in pairs)
        return Source.resolve(graph, options=options)

    return Case(read, lambda source: learn(source.load()), (), repr(pairs))


@fuzzed("command")
def command(draw, folder):
    """A whole command line, run in this process as the command would."""
    graph = str(material.place / "graph")
    shutil.copytree(material.place / "run", folder / "run")
    shutil.copytree(material.place / "stopped", folder / "stopped")
    quick = ["--set", "epochs=2", "--set", "baselines=false", "--device", "cpu"]
    (folder / "c.toml").write_text(mutate_toml(draw, _toml(draw)))
    key, name = draw.choice(tuple(DATA["files"])), draw.choice(NAMES)
    data = [f"{key}={draw.choice((*DATA['files'][key], *WORDS, *CELLS[:20]))}"]
    assigned = f"{name}={value_of(draw, name)}"
    wild = draw.choice((*CELLS, *WORDS, "--", "-h", "--json", "--quiet", "/", ".", "run", "c.toml"))
    wild = wild.replace("\0", "")  # no shell passes one
    lines = (
        ["info", graph, "--data", *data],
        ["info", wild],
        ["models", wild],
        ["datasets", wild],
        ["evaluate", "run", "--json"],
        ["evaluate", wild],
        ["compare", "run", wild],
        ["predict", "run", graph, "--repeat-index", wild],
        ["predict", "run", graph, "--output", wild],
        ["predict", "run", graph, "--data", *data],
        ["train", "--resume", draw.choice(("stopped", "run", wild))],
        ["train", graph, "--config", "c.toml", *quick],
        ["train", graph, *quick, "--set", assigned],
        ["train", graph, *quick, "--model", draw.choice((*MODELS, wild)), "--split", wild],
        ["train", graph, *quick, "--seed", wild, "--output", wild],
        ["train", graph, *quick, "--checkpoint-every", wild, "--data", *data],
        ["train", wild, *quick],
        ["tune", graph, "--trials", wild, "--storage", wild, "--space", "c.toml"],
        [wild, wild],
    )
    line = list(draw.choice(lines))
    if draw.chance(0.2):
        line.insert(draw.randrange(len(line) + 1), wild)
    line = [part.replace("\0", "").encode("utf-8", "replace").decode() for part in line]
    run = without_report()(functools.partial(cli.app, line, prog_name="longnn"))
    return Case(run, None, (), repr(line))
