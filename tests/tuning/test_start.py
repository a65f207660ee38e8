"""Where a search starts: with the default of the data, or with a given configuration."""

import functools

import optuna
import pytest
import torch
from torch_geometric.data import Data

from longnn.config import Config
from longnn.data import from_data
from longnn.data._synthetic import csbm
from longnn.registry import MODELS
from longnn.training import complete
from longnn.tuning import load_space, read_record
from longnn.tuning._space import Choices, Range, read_config, space_around
from longnn.tuning._training import Halving
from tests.commands import TINY, longnn, succeed
from tests.tuning.examples import MODELS_ONCE, SPACE, search

SHORT = ("--trials", "2", "--repeats", "1", "--finalists", "0", "--device", "cpu")
BRIEF = (*TINY, *SHORT, "--set", "epochs=3")


def table(task):
    """A graph of a user with a few dense columns."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(60, 3, generator=generator)
    edges = torch.randint(0, 60, (2, 200), generator=generator)
    y = x.sum(1) if task == "regression" else (x.sum(1) > 1.5).long()
    return from_data(Data(x=x, edge_index=edges, y=y))


DATA = {
    "named": functools.cache(csbm),
    "classes": functools.cache(lambda: table("classes")),
    "prices": functools.cache(lambda: table("regression")),
}


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("model", MODELS_ONCE)
def test_the_default_space_contains_what_plain_training_uses(kind, model):
    """Value by value: nothing has to be widened, and nothing else is fixed."""
    dataset, space = DATA[kind](), load_space("default", model)
    default = complete({"model": model}, dataset)
    flat = default.to_dict()
    assert {key: flat[key] for key in space.fixed} == space.fixed or MODELS[model].space
    assert space.widen(flat) == space
    study = optuna.create_study()
    study.enqueue_trial(space.encode(flat))
    assert space.suggest(study.ask()) == {**space.fixed, **{key: flat[key] for key in space.search}}


@pytest.mark.parametrize("kind", ["named", "prices"])
def test_the_first_trial_is_the_default(kind):
    dataset, brief = DATA[kind](), {"model": "lon", "epochs": 3}
    space = load_space("default").fix({"epochs": 3})
    record = search(dataset, None, space, trials=2, batch=2, repeats=1, halving=False).record
    first = complete({"model": "lon", **record.trials[0].params}, dataset)
    assert first == complete(brief, dataset)
    assert (record.start.name, record.start.number) == ("default", 0)
    assert record.gain == record.value - record.trials[0].value >= 0
    other = complete({"model": "lon", **record.trials[1].params}, dataset)
    untouched = set(other.to_dict()) - set(record.space.search)
    assert all(other.to_dict()[key] == first.to_dict()[key] for key in untouched)


def test_the_space_of_the_paper_keeps_its_form():
    options = {"trials": 1, "batch": 1, "repeats": 1}
    space = load_space("paper").fix({"epochs": 2})
    record = search(table("classes"), None, space, **options).record
    first = record.trials[0].params
    kept = (first["placement"], first["coefficients"], first["weight"], first["degree_penalty"])
    assert kept == ("output", "pcd", "paper", 0)
    assert first["lr_transform"] == 0.02, "the table's rate, which the paper's grid lacks"
    assert "The space was widened to contain the default: lr_transform = 0.02" in record.notes[-1]


@pytest.mark.parametrize(
    ("domain", "value", "widened"),
    [
        (Choices((1.0, 2.0)), 2.0, Choices((1.0, 2.0))),
        (Choices((1.0, 2.0)), 0.5, Choices((0.5, 1.0, 2.0))),
        (Choices(("x", "y")), "z", Choices(("x", "y", "z"))),
        (Choices((False,)), True, Choices((False, True))),
        (Range(2, 8, integer=True), 10, Range(2, 10, integer=True)),
        (Range(0.0, 0.4, step=0.2), 0.2, Range(0.0, 0.4, step=0.2)),
        (Range(0.2, 0.4, step=0.2), 0.0, Range(0.0, 0.4, step=0.2)),
        (Range(0.0, 0.4, step=0.2), 0.5, Choices((0.0, 0.2, 0.4, 0.5))),
        (Range(1e-4, 1e-2, log=True), 0.0, Range(1e-4, 1e-2, log=True, or_zero=True)),
        (Range(1e-4, 1e-2, log=True), 0.1, Range(1e-4, 0.1, log=True)),
    ],
)
def test_a_domain_is_widened_and_then_holds_the_value(domain, value, widened):
    assert domain.widen(value) == widened
    search = optuna.create_study()
    search.enqueue_trial(widened.encode("x", value))
    assert widened.suggest(search.ask(), "x") == value


def test_halving_does_not_stop_the_start(dataset):
    """It learns nothing, so that the others are better."""
    bad = Config.from_dict({**{k: v for k, v in SPACE.items() if not isinstance(v, dict)}})
    bad = bad.replace(lr_transform=1e-12, lr_coefficients=0.0, lr_basis=0.0)
    options = {"trials": 8, "batch": 8, "halving": Halving((3, 6), keep=1)}
    record = search(dataset, None, SPACE, around=bad, **options).record
    assert record.start.name == "given"
    assert record.start.number == 0
    assert record.trials[0].state == "complete"
    assert max(record.trials[0].epochs) == 12
    assert len(record.with_state("pruned")) == 4, "of the others"
    assert record.gain > 0


def test_the_winner_is_compared_with_the_start_on_the_same_splits(dataset):
    result = search(dataset, None, trials=6, finalists=1)
    finals = {final.number: final for final in result.record.finalists.trials}
    start = result.record.start
    assert start.number in finals
    assert start.value == finals[start.number].value
    assert result.record.gain == result.value - start.value >= 0


def test_the_space_around_a_configuration():
    config = Config.from_dict(
        {"placement": "hidden", "lr_transform": 0.03, "dropout": 0.25, "a": 0.5, "lr_basis": 0.0}
    )
    space = space_around(config)
    assert space.search["lr_transform"] == Choices((0.01, 0.02, 0.03, 0.05, 0.1))
    assert space.search["dropout"] == Choices((0.1, 0.2, 0.25, 0.3, 0.4))
    assert space.search["restart"] == Choices((0.5, 0.7, 1.0))
    assert space.fixed["placement"] == "hidden"
    assert space.fixed["lr_basis"] == 0, "not learned, and that is meant"
    assert not {"gamma", "lr_factors", "degree", "hidden_channels"} & set(space.search)
    pcd = space_around(config.replace(coefficients="pcd", restart=0.0))
    assert {"gamma", "lr_factors"} < set(pcd.search)
    assert "restart" not in pcd.search


@pytest.mark.parametrize("model", MODELS_ONCE)
def test_every_model_has_a_space_around_it(model):
    config = Config(model=model)
    flat = config.to_dict()
    space = space_around(config)
    assert space.widen(flat) == space
    assert space.fixed == {key: flat[key] for key in space.fixed}


def test_a_search_around_a_configuration_starts_with_it(dataset):
    config = Config.from_dict(
        {"model": "gpr", "epochs": 3, "lr_transform": 0.03, "calibrate": False, "seed": 7}
    )
    result = search(dataset, None, None, around=config, trials=2, batch=2, repeats=1)
    assert result.config.calibrate is False
    assert result.config.model == "gpr"
    assert result.record.trials[0].params["lr_transform"] == 0.03
    assert result.record.start.name == "given"
    with pytest.raises(ValueError, match=r"`around` to be of model 'lon' \(got 'gpr'\)"):
        search(dataset, None, None, around=config, model="lon")


def test_the_command_searches_around_a_run(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    Config.from_dict({"lr_transform": 0.03, "epochs": 3}).write_toml(run / "config.toml")
    printed = succeed("tune", *BRIEF, "--around", run, "--output", tmp_path / "a")
    assert "the given configuration" in printed
    record = read_record(tmp_path / "a")
    assert record.trials[0].params["lr_transform"] == 0.03
    assert record.space.name == "around"
    assert "0 (given)" in (tmp_path / "a" / "tuning.html").read_text()
    assert read_config(run) == read_config(run / "config.toml")
    with pytest.raises(ValueError, match=r"Expected the folder of a run with config.toml, or a"):
        read_config(tmp_path)


def test_the_default_is_marked_and_the_gain_is_said(tmp_path):
    result = longnn("tune", *BRIEF, "--model", "lon", "--output", tmp_path)
    record = read_record(tmp_path)
    won = record.best.number == record.start.number
    gain = f"{100 * record.gain:+.2f} points over the default"
    said = "the default won" if won else gain
    score = f"validation accuracy {100 * record.value:.2f} %, {said}"
    assert score in result.stdout
    assert "; 2 trials in" in result.stdout
    assert said in (tmp_path / "recipe.toml").read_text()
    page = (tmp_path / "tuning.html").read_text()
    assert said in page
    assert "0 (default)" in page
