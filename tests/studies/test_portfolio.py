"""The choice of a portfolio: its scores, its greed, and that a kind is really left out."""

import dataclasses
from pathlib import Path

import pytest
import torch

from longnn.config import Config
from longnn.data import csbm, make_split
from longnn.recipes import load_recipe
from longnn.studies import Context
from longnn.studies.portfolio import _run
from longnn.studies.portfolio._candidates import (
    FAMILIES,
    FORMS,
    KNOWN,
    UNLIKE,
    candidates,
    tuned_on,
)
from longnn.studies.portfolio._graphs import GRAPHS, KINDS, kind_of, related
from longnn.studies.portfolio._predictions import Part, Predictions
from longnn.studies.portfolio._run import _usual
from longnn.studies.portfolio._select import STRATEGIES, choose_all, evaluate
from longnn.studies.presets._data import DEVELOPMENT
from longnn.studies.tables._data import HELD_BACK, STORIES
from longnn.training import complete, fit, score, shape_of


def guesses(quality: list[float], seed: int, nodes: int = 200) -> Predictions:
    """Candidates that know the class of some nodes and guess that of the others."""
    generator = torch.Generator().manual_seed(seed)

    def part() -> Part:
        y = torch.randint(0, 3, (nodes,), generator=generator)
        rows = []
        for share in quality:
            known = torch.rand(nodes, generator=generator) < share
            said = torch.where(known, y, torch.randint(0, 3, (nodes,), generator=generator))
            rows.append(0.7 * torch.nn.functional.one_hot(said, 3).double() + 0.1)
        return Part(torch.stack(rows), y)

    return Predictions("classification", "accuracy", 1, (part(),), (part(),))


@pytest.fixture
def three() -> dict[str, Predictions]:
    """Candidate 0 is fair everywhere, 1 good on one kind of graph, 2 good on the other."""
    return {
        "x1": guesses([0.6, 0.9, 0.1], 0),
        "x2": guesses([0.6, 0.9, 0.1], 1),
        "y1": guesses([0.6, 0.1, 0.9], 2),
    }


KIND = {"x1": "x", "x2": "x", "y1": "y"}


def test_complementary_candidates_are_chosen(three: dict[str, Predictions]) -> None:
    found = choose_all(["fair", "x", "y"], three, KIND, 2)
    assert set(found.portfolio) == {"x", "y"}
    assert found.oracle["x1"] == max(evaluate(three["x1"], [i])["average"][0] for i in range(3))


def test_a_kind_that_is_left_out_has_no_say(three: dict[str, Predictions]) -> None:
    found = choose_all(["fair", "x", "y"], three, KIND, 1)
    assert found.left_out == {"x": ["y"], "y": ["x"]}
    assert found.outside["x1"]["average"] == evaluate(three["x1"], [2])["average"]


def test_members_may_come_from_an_allowed_few(three: dict[str, Predictions]) -> None:
    found = choose_all(["fair", "x", "y"], three, KIND, 2, allowed=["fair", "y"])
    assert set(found.portfolio) == {"fair", "y"}


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_every_strategy_gives_weights(name: str, three: dict[str, Predictions]) -> None:
    p = three["x1"]
    weights = STRATEGIES[name](p, 0, [0, 1, 2])
    assert float(weights.sum()) == pytest.approx(1)
    assert bool((weights >= 0).all())


def test_a_diverged_member_is_not_the_best(three: dict[str, Predictions]) -> None:
    part = three["x1"].val[0]
    broken = part.predicted.clone()
    broken[1] = torch.nan
    p = dataclasses.replace(three["x1"], val=(Part(broken, part.labels),))
    for name in ("best by validation", "average of the better half", "votes on draws"):
        assert STRATEGIES[name](p, 0, [1, 0])[0] == 0, name


def test_predictions_are_kept_and_scored_as_elsewhere(tmp_path: Path) -> None:
    for dataset in (csbm(num_nodes=60, num_features=8), DEVELOPMENT["diabetes"]()):
        split = make_split(dataset, "stratified", 0)
        fitted = fit(dataset, [complete({"epochs": 3}, dataset)], [split])
        made = Predictions.collect(dataset, [fitted])
        made.write(tmp_path / "one.npz")
        read = Predictions.read(tmp_path / "one.npz")
        expected = score(fitted[0].predicted, dataset, split.test)[made.metric]
        for p in (made, read):
            (part,) = p.holdout
            assert p.score(part.predicted[0], part.labels) == pytest.approx(expected, abs=1e-3)


def test_candidates_of_one_form_train_together() -> None:
    found = candidates({"epochs": 5})
    for form, (_, count) in FORMS.items():
        assert len({shape_of(found[f"{form} {i}"]) for i in range(count)}) == 1, form
    assert len({str(c.to_dict()) for c in found.values()}) == len(found)


def test_recipes_are_candidates_as_they_are_but_for_their_epochs() -> None:
    limits = {"epochs": 1000, "patience": 100}
    found, tuned = candidates(limits), tuned_on()
    assert len(tuned) == 11 + len(FAMILIES) * len(UNLIKE)
    assert tuned["recipe cornell-legacy"] == "cornell-legacy"
    assert "recipe csbm" not in found
    for name, graph in tuned.items():
        expected = Config.from_dict({**load_recipe(found[name].model, graph), **limits})
        assert found[name] == expected, name
    assert {(c.settings.epochs, c.settings.patience) for c in found.values()} == {(1000, 100)}


def test_every_recipe_belongs_to_a_kind() -> None:
    assert {kind_of(graph) for graph in tuned_on().values()} <= set(KINDS)
    assert kind_of("cornell-legacy") == kind_of("texas")
    for name in tuned_on().values():
        assert all(name in related(other) for other in related(name)), name


def test_candidates_alone_choose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many processes train candidates side by side; none of them begins the choice or the test."""
    few = {name: candidates({"epochs": 2})[name] for name in ("default", "gcn cora")}
    monkeypatch.setattr(_run, "candidates", lambda limits: few)
    context = Context(tmp_path, device="cpu", quick=True, datasets=["xor"], tell=lambda _: None)
    _run.run(context)
    assert [path.name for path in (tmp_path / "records").iterdir()] == ["xor.json"]
    assert _run.predictions_path(tmp_path, "xor").is_file()


def test_the_usual_candidate_is_the_default() -> None:
    """What is compared as the default is what a user gets, but for its stopping rule."""
    for dataset in (csbm(num_nodes=60), DEVELOPMENT["diabetes"](), DEVELOPMENT["cancer"]()):
        usual = candidates({})[_usual(dataset)].replace(monitor="loss")
        assert usual == complete({}, dataset).replace(monitor="loss")
    assert {"default", "table, classes", "table, numbers"} == set(KNOWN)


def test_no_held_back_table_is_in_the_collection() -> None:
    assert not {*HELD_BACK, *STORIES} & {*GRAPHS} - {"fraud", "digits"}
    assert GRAPHS["fraud"].make(None).fingerprint() == DEVELOPMENT["fraud"]().fingerprint()
    assert len(KINDS) > 8
