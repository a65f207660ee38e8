"""The table of keys: types, nearest names, TOML there and back."""

import dataclasses

import pytest

from longnn.config import Config, Settings
from longnn.config._config import KNOWN_ANSWERS, RARE, SCALINGS
from longnn.config._values import parse_assignment, read_toml
from longnn.data import _scaling, csbm
from longnn.registry import MODELS, model_options
from longnn.training import complete
from longnn.training._fit import make_model


def test_keys_find_their_place():
    config = Config.from_dict(
        {"model": "lon", "degree": 5, "lr_basis": 1, "seed": 3, "hidden_channels": 16}
    )
    assert config.options["degree"] == 5
    assert config.settings.lr_basis == 1.0
    assert isinstance(config.settings.lr_basis, float)
    assert (config.seed, config.hidden_channels) == (3, 16)


@pytest.mark.parametrize("model", MODELS)
def test_toml_there_and_back(model, tmp_path):
    values = {"model": model, **model_options(model), "split": "stratified", "seed": 7}
    config = Config.from_dict({**values, "patience": 3, "wd_transform": 1e-5, "repeat": 2})
    config.write_toml(tmp_path / "c.toml")
    again = Config.from_toml(tmp_path / "c.toml")
    assert again == config
    assert again.to_dict() == config.to_dict()


def test_what_is_not_said_is_recommended_and_written_down(tmp_path):
    """A file of a default run says all it was trained with, whatever later defaults will be."""
    Config().write_toml(tmp_path / "c.toml")
    written = read_toml(tmp_path / "c.toml")
    assert {field.name for field in dataclasses.fields(Settings)} - {*RARE} <= written.keys()
    again = Config.from_dict(written)
    assert again == Config()
    assert repr(make_model(again, 4, 2)) == repr(make_model(Config(), 4, 2))


def test_text_survives_toml(tmp_path):
    path = tmp_path / "c.toml"
    Config(split='o"w\\n').write_toml(path)
    assert Config.from_toml(path).split == 'o"w\\n'


WRONG = {
    "degree": ("four", "`degree` to be an integer .got 'four'"),
    "a": (float("inf"), "`a` to be finite .got inf"),
    "dropout": ("much", "`dropout` to be a number .got 'much'"),
    "learn_basis": (1, "`learn_basis` to be true or false .got 1"),
    "weight": (2, "`weight` to be a word .got 2"),
    "lr_basis": ("fast", "`lr_basis` to be a number .got 'fast'"),
    "lr_transform": (-0.1, "`lr_transform` >= 0 and finite .got -0.1"),
    "epochs": (0, "Expected 1 <= `epochs` <= 10000000 .got 0"),
    "patience": (True, "`patience` to be an integer .got True"),
    "monitor": ("luck", "`monitor` to be one of score, loss, .*got 'luck'"),
    "seed": (-1, "Expected 0 <= `seed` <= 4611686018427387904 .got -1"),
    "repeat": (0, "Expected 1 <= `repeat` <= 1000000 .got 0"),
    "hidden_channels": (2.5, "`hidden_channels` to be an integer .got 2.5"),
    "scale": ("log", "`scale` to be one of auto, none, columns, standard, row .got 'log'"),
    "precision": ("half", "`precision` to be one of float32, float64, tf32 .got 'half'"),
    # Unknown names are answered with the nearest.
    "degre": (1, r"Unknown option `degre` .*; did you mean `degree`\?"),
    "lr_transfrom": (1, r"Unknown option `lr_transfrom` .*; did you mean `lr_transform`\?"),
    "patient": (1, r"Unknown option `patient` .*; did you mean `patience`\?"),
    "hidden_chanels": (1, r"Unknown option `hidden_chanels` .*; did you mean `hidden_channels`\?"),
    "sede": (1, r"Unknown option `sede` .*; did you mean `seed`\?"),
    "model": ("bernn", r"one of appnp, .* \(got 'bernn'\); did you mean `bern`\?"),
}
ABSURD = [
    ({"hidden_channels": 10**9}, r"1 <= `hidden_channels` <= 1048576 \(got 1000000000\)"),
    ({"degree": 10**7}, r"0 <= `degree` <= 4096 \(got 10000000\)"),
    ({"model": "arma", "stacks": 10**6}, r"1 <= `stacks` <= 1024 \(got 1000000\)"),
    ({"model": "arma", "layers": 10**6}, r"1 <= `layers` <= 1024 \(got 1000000\)"),
    ({"epochs": 10**12}, r"1 <= `epochs` <= 10000000 \(got 1000000000000\)"),
    ({"patience": 10**12}, r"1 <= `patience` <= 2147483647 \(got 1000000000000\)"),
    ({"repeat": 10**9}, r"1 <= `repeat` <= 1000000 \(got 1000000000\)"),
    ({"seed": 2**64}, r"0 <= `seed` <= 4611686018427387904 \(got "),
    ({"model": "gcn", "a": 0.5}, "Unknown option `a` of model 'gcn'"),
    ([1], r"`config` to be a table .* \(got \[1\]\)"),
    ({5: 1}, r"`config` to have text as names \(got 5\)"),
]


@pytest.mark.parametrize(
    ("values", "message"),
    [*(({key: value}, message) for key, (value, message) in WRONG.items()), *ABSURD],
    ids=str,
)
def test_wrong_values_and_names_are_one_line(values, message):
    with pytest.raises(ValueError, match=message):
        Config.from_dict(values)


def test_parts_of_the_wrong_type():
    for call, message in (
        (lambda: Config(options=5), r"`options` to be a table"),
        (lambda: Config(settings=5), r"Expected `settings` to be Settings \(got 5\)"),
        (lambda: Settings(class_weight=5), r"`class_weight` to be a word \(got 5\)"),
        (lambda: Config().replace(degrees=4), "did you mean `degree`"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert Config().replace(seed=4).seed == 4
    assert SCALINGS == _scaling.SCALINGS  # two layers that do not know each other


ODD = [[], [1], {}, {"a": 1}, b"x", object(), 1.5, -1, 10**400, float("nan"), float("inf"), True]


@pytest.mark.parametrize("key", [*Config().to_dict(), "nonsense"])
def test_any_value_is_taken_or_refused_in_one_line(key):
    """Nothing that Python itself would say reaches a user."""
    for value in [*ODD, "x"]:
        message = None
        try:
            taken = Config.from_dict({key: value})
        except ValueError as error:
            message = str(error)
        if message is None:
            assert type(taken.to_dict()[key]) in (int, float, str, bool)
        else:
            assert f"`{key}`" in message or repr(value) in message
            assert len(message) < 300


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x=5", 5),
        ("x = 0.5", 0.5),
        ("x=1e-3", 1e-3),
        ("x=true", True),
        ("x=paper", "paper"),
        ('x="5"', "5"),
        ("x=a=b", "a=b"),
        ("x=", ""),
    ],
)
def test_assignments(text, value):
    assert parse_assignment(text) == ("x", value)


@pytest.mark.parametrize("text", ["degree", "=5", ""])
def test_not_an_assignment(text):
    with pytest.raises(ValueError, match="Expected key=value"):
        parse_assignment(text)


def test_bad_toml_files(tmp_path):
    path = tmp_path / "c.toml"
    with pytest.raises(FileNotFoundError):
        read_toml(path)
    for text in (
        b"degree = = 3",
        b"degree = " + b"[" * 10_000,
        b"degree = " + b"1" * 10_000,
        b"\xff",
    ):
        path.write_bytes(text)
        with pytest.raises(ValueError, match=r"c\.toml to be TOML"):
            read_toml(path)
    path.write_text("[model]\ndegree = 3\n")
    with pytest.raises(ValueError, match=r"Expected a flat table in .*c\.toml .* at 'model'"):
        read_toml(path)


def test_a_model_has_settings_of_its_own():
    """However a configuration is made, unless the user sets them."""
    usual, deep = Settings(), MODELS["lon-deep"].settings
    assert deep["lr_transform"] < usual.lr_transform
    for config in (
        Config(model="lon-deep"),
        Config.from_dict({"model": "lon-deep"}),
        Config().replace(model="lon-deep"),
    ):
        assert {key: getattr(config.settings, key) for key in deep} == deep
        assert config.replace(model="lon") == Config()
    chosen = Config.from_dict({"model": "lon-deep", "lr_transform": usual.lr_transform})
    assert chosen.settings.lr_transform == usual.lr_transform
    assert chosen.replace(model="gcn-deep").settings.lr_transform == usual.lr_transform
    assert Config(model="lon-deep", settings=Settings()).settings == usual
    assert Config(settings=Settings(epochs=7)).replace(model="lon-deep").settings.epochs == 7


def test_a_run_without_known_answers_says_so():
    """Where nothing is said, training takes all: its configuration would have meant another one."""
    graph = csbm(num_nodes=60, num_features=8)
    for use in KNOWN_ANSWERS:
        config = complete({"preset": "fast", "known_answers": use}, graph)
        assert complete(config.to_dict(), graph) == config
