"""A preset of several models is trained as its members are, joined, and stopped when asked to."""

import pytest
import torch

from longnn.config import Config
from longnn.data import Source, from_data, make_split
from longnn.data._synthetic import csbm
from longnn.nn import _ensemble as ensemble_module
from longnn.nn._ensemble import Ensemble
from longnn.training import (
    Job,
    StopTraining,
    Watcher,
    architecture_of,
    combine,
    complete,
    fit,
    make_model,
    make_problem,
    members_of,
    portfolio,
    predict,
    preset_of,
)
from longnn.training import _job as job_module

SMALL = {"epochs": 6, "device": "cpu"}


@pytest.fixture(scope="module")
def dataset():
    return csbm(num_nodes=80, num_features=8)


@pytest.fixture(scope="module")
def config(dataset):
    return complete({**SMALL, "preset": "default", "seed": 3}, dataset)


@pytest.fixture(scope="module")
def split(dataset):
    return make_split(dataset, None, 3)


@pytest.fixture(scope="module")
def joined(dataset, config, split):
    return fit(dataset, [config], [split])[0]


def test_best_has_the_recipe_of_a_named_dataset(dataset):
    named = Source.resolve("csbm", options={"num_nodes": 60}).load()
    config = Config(preset="best")
    assert "recipe for csbm" in members_of(config, named)
    assert not any("recipe for" in name for name in members_of(config, dataset))


def test_members_take_what_is_the_users(dataset):
    config = complete({**SMALL, "preset": "default", "class_weight": "balanced"}, dataset)
    for member in members_of(config, dataset).values():
        assert member.settings.epochs == 6
        assert member.settings.class_weight == "balanced"
        assert member.preset == "fast"


def test_the_preset_follows_from_what_is_set():
    assert preset_of({}) == preset_of({"seed": 3, "repeat": 2}) == "default"
    assert preset_of({"model": "lon"}) == preset_of({"lr_basis": 0.1}) == "fast"
    assert preset_of({"preset": "best", "model": "lon"}) == "best"


def test_what_members_have_of_their_own_cannot_be_set(dataset):
    with pytest.raises(ValueError, match=r"no `dropout` beside preset='default'.*preset='fast'"):
        complete({"preset": "default", "dropout": 0.123}, dataset)
    written = complete({"preset": "default"}, dataset)
    assert complete(written.to_dict(), dataset) == written


def test_the_ensemble_is_the_average_of_its_members(joined):
    weights = torch.tensor([m.weight for m in joined.members], dtype=torch.float64)
    predicted = torch.stack([m.fitted.predicted for m in joined.members])
    assert float(weights.sum()) == pytest.approx(1)
    raw = joined.readout.uncalibrated(joined.predicted)
    torch.testing.assert_close(raw, combine(predicted, weights), rtol=1e-4, atol=1e-5)


def test_members_are_trained_as_they_are_alone(dataset, config, split):
    exact = config.replace(precision="float64")
    (joined,) = fit(dataset, [exact], [split])
    for name, alone in list(members_of(exact, dataset).items())[::3]:
        (single,) = fit(dataset, [alone], [split])
        (member,) = [m for m in joined.members if m.name == name]
        assert member.fitted.result.best_epoch == single.result.best_epoch
        torch.testing.assert_close(member.fitted.predicted, single.predicted)


def test_only_members_with_a_vote_are_kept(joined):
    assert isinstance(joined.model, Ensemble)
    voting = {m.name for m in joined.members if m.weight > 0}
    assert set(joined.model.members) == voting
    assert {key.split(".")[1] for key in joined.result.state if key.startswith("members")} == voting


@pytest.mark.parametrize(("preset", "passes"), [("default", 7), ("best", 14)])
def test_members_of_one_architecture_are_asked_in_one_pass(preset, passes, dataset, monkeypatch):
    config = complete({"device": "cpu", "preset": preset}, dataset)
    configs = members_of(config, dataset)
    models = {name: make_model(own, 8, 2) for name, own in configs.items()}
    even = dict.fromkeys(models, 1 / len(models))
    keys = {name: architecture_of(own) for name, own in configs.items()}
    model = Ensemble(models, even, dict.fromkeys(models, 1.0), alike=keys).eval()
    scaling = job_module.Scaling("none")
    problem = make_problem(dataset, configs[min(configs)], scaling, members=[*configs.values()])
    each = predict(model, problem)
    monkeypatch.setattr(ensemble_module, "pays", lambda x: True)
    found = model._passes(problem.features)
    assert len(found) == passes
    assert sorted(name for names in found for name in names) == sorted(models)
    torch.testing.assert_close(predict(model, problem), each, rtol=0, atol=1e-6)


def test_without_time_for_an_epoch_there_is_no_result(dataset, config, split):
    class Impatient(Watcher):
        def begin(self, population, first):
            raise StopTraining("time")

        def check(self):
            raise StopTraining("time")

    with pytest.raises(StopTraining):
        Job(dataset, [config.replace(preset="fast")], [split]).run(watcher=Impatient())


def test_what_is_not_required_may_be_missing(dataset, config, split):
    class Stop(Watcher):
        def watch(self, population, first):
            if population.epoch == 3:
                raise StopTraining("interrupted")

    other = Config.from_dict({**SMALL, "model": "mlp", "seed": 9})
    job = Job(dataset, [config, other], [split, split], required=1)
    found = job.run(watcher=Stop())
    assert len(found) == 1
    assert job.stopped == "interrupted"


@pytest.mark.parametrize("preset", ["default", "best"])
@pytest.mark.parametrize("numbers", [False, True])
def test_every_member_of_a_table_is_a_configuration(preset, numbers):
    """Those that are like another differ from it in what they say themselves."""
    members = portfolio(preset, words=False, numbers=numbers)
    for table in members.values():
        Config.from_dict({**table, "preset": "fast"})
    assert "trees" in {table.get("model") for table in members.values()}
    if numbers:
        like = portfolio("default")["hidden, one filter per unit 1"]
        assert members["hidden, structure"] == {**like, "inputs": "structure"}


def test_trees_are_left_out_of_words_and_of_very_wide_tables():
    """Both are asked of the data; a width that suits two classes may be too much for many."""
    generator = torch.Generator().manual_seed(0)
    index = torch.tensor([[0, 1], [1, 0]])

    def models(columns, classes):
        x = torch.randn(40, columns, generator=generator)
        y = torch.arange(40) % classes
        table = from_data({"x": x, "edge_index": index, "y": y})
        return {c.model for c in members_of(complete({"preset": "default"}, table), table).values()}

    assert "trees" in models(300, 2)
    assert models(300, 4) == {"lon"}
