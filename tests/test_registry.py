"""One entry per model: complete, in agreement with its class, and enough to add another."""

import inspect
import typing

import pytest
import torch

from longnn import LONGNNClassifier, registry
from longnn.config._config import explain_options
from longnn.data._synthetic import csbm
from longnn.filters._coefficients import Parametrization
from longnn.graphs._adjacency import SelfLoops
from longnn.nn import Model
from longnn.nn._model import PLACEMENTS
from longnn.nn._transform import Linear, TransformKind
from longnn.polynomials._families import Weight
from longnn.registry import MODELS, OPTIONS, ModelEntry
from tests.commands import TINY, succeed, succeed_json


@pytest.mark.parametrize("name", MODELS)
def test_every_entry_is_complete(name):
    entry = MODELS[name]
    assert entry.name == name
    assert issubclass(entry.model, Model)
    assert entry.title
    assert entry.summary
    assert entry.formula
    assert entry.paper is not None or name == "mlp"
    for explained in explain_options(name):
        assert explained.meaning
        assert explained.default == entry.options[explained.name]


@pytest.mark.parametrize("name", [name for name, entry in MODELS.items() if entry.paper])
def test_the_docstring_cites_the_same_paper(name):
    """Registry and class both name it: they must not drift. An ablation's paper is its parent's."""
    entry = MODELS[name]
    text = " ".join(inspect.getdoc(cls) or "" for cls in entry.model.__mro__[:2])
    text = " ".join(text.split())
    assert entry.paper.link in text
    assert entry.paper.title.lower() in text.lower()
    assert str(entry.paper.year) in text


def test_choices_are_those_of_the_types():
    typed = {
        "weight": Weight,
        "self_loops": SelfLoops,
        "transform": TransformKind,
    }
    for name, literal in typed.items():
        assert set(OPTIONS[name].choices) == set(typing.get_args(literal))
    assert OPTIONS["placement"].choices == PLACEMENTS
    assert set(OPTIONS["coefficients"].choices) < set(typing.get_args(Parametrization))


def test_no_option_is_explained_in_vain():
    used = {option for name in MODELS for option in MODELS[name].options}
    assert used == set(OPTIONS)


class Toy(Model):
    r"""One hop and a bias per class: :math:`\hat Y = P X W + t`."""

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, *, tilt: float = 0.5
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels)
        self.linear = Linear(in_channels, out_channels, bias=False)
        self.tilt = tilt

    def scores(self, x, operator):
        return operator @ self.linear(x) + torch.full((self.out_channels,), self.tilt)


@pytest.fixture
def toy(monkeypatch):
    entry = ModelEntry("toy", Toy, "ToyNet", "one hop", "Y = P X W + t", space={"tilt": 0.25})
    monkeypatch.setitem(registry.MODELS, "toy", entry)
    monkeypatch.setitem(registry.OPTIONS, "tilt", registry.Option("a number added to every score"))
    monkeypatch.setattr("longnn.runs._train.report.write_report", lambda record: None)


def test_a_new_model_is_a_class_and_an_entry(toy, tmp_path):
    """Nothing else is touched, and command, estimator, search and lists know it."""
    run = tmp_path / "run"
    arguments = ("--model", "toy", "--set", "tilt=0.75", "--repeat", 2, "--output", run)
    record = succeed_json("train", *TINY, "--device", "cpu", "--set", "epochs=8", *arguments)
    assert (record["config"]["model"], record["config"]["tilt"]) == ("toy", 0.75)
    assert "each the mean of 2 repeats" in succeed("predict", run)
    assert "accuracy" in succeed("evaluate", run)
    data = csbm(num_nodes=60, num_features=8)
    classifier = LONGNNClassifier(model="toy", epochs=8, model_options={"tilt": 0.1}).fit(data)
    assert classifier.predict().shape == (60,)
    assert classifier.model_.tilt == 0.1
    assert "toy" in succeed("models")
    shown = succeed("models", "toy")
    assert "ToyNet" in shown
    assert "a number added to every score" in " ".join(shown.split())
    folder = tmp_path / "tune"
    options = ("--trials", 2, "--repeats", 1, "--finalists", 0, "--output", folder)
    found = succeed_json("tune", *TINY, "--model", "toy", "--set", "epochs=4", *options)
    assert found["space"]["fixed"]["tilt"] == 0.25, "what the entry says of every search space"
