"""The choice of a portfolio: its scores, its greed, and that a kind is really left out."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from lab.studies import Context, portfolio
from lab.studies._engine import compute_cells
from lab.studies._invented import DEVELOPMENT
from lab.studies.portfolio._candidates import FAMILIES, FORMS, KNOWN, UNLIKE, candidates, tuned_on
from lab.studies.portfolio._members import (
    IN_USE,
    JOINED,
    SHIFTED,
    STRATEGIES,
    Part,
    Predictions,
    evaluate,
)
from lab.studies.portfolio._select import Candidate, Judge, Limits, choose_all
from longnn.config import Config
from longnn.data import make_split
from longnn.data._synthetic import csbm
from longnn.recipes import load_recipe
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
            sure = 0.7 * torch.nn.functional.one_hot(said, 3).double() + 0.1
            # Never quite alike, so that no two classes of an average are.
            noise = torch.rand(nodes, 3, generator=generator).double()
            rows.append(torch.softmax(sure.log() + 0.02 * noise, dim=1))
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
#: All free; and, to choose from without a graph, one that was tuned on it.
FREE = {"fair": Candidate(0), "x": Candidate(1), "y": Candidate(2)}
TUNED = {**FREE, "x": Candidate(1, graph="x1", kind="x")}


def limits(size: int, shapes: int = 9, *, only_own: bool = False) -> dict[str, Limits]:
    return {"one": Limits(size, shapes, only_own=only_own)}


def chosen(
    known: dict[str, Candidate], graphs: dict[str, Predictions], own: dict[str, Limits]
) -> dict[str, Any]:
    return choose_all(known, graphs, KIND, own)["portfolios"]["one"]


def test_complementary_candidates_are_chosen(three: dict[str, Predictions]) -> None:
    found = choose_all(FREE, three, KIND, limits(2))
    assert set(found["portfolios"]["one"]["members"]) == {"x", "y"}
    best = max(evaluate(three["x1"], [i])["average"][0] for i in range(3))
    assert found["oracle"]["x1"] == pytest.approx(best)


def test_a_kind_that_is_left_out_has_no_say(three: dict[str, Predictions]) -> None:
    found = chosen(FREE, three, limits(1))
    assert found["without_kind"] == {"x": ["y"], "y": ["x"]}
    assert found["without_graph"] == {}
    assert found["outside_kind"]["x1"]["average"] == evaluate(three["x1"], [2])["average"]


def test_what_was_tuned_on_a_graph_is_left_out_with_it(three: dict[str, Predictions]) -> None:
    found = chosen(TUNED, three, limits(3))
    assert set(found["members"]) == {"fair", "x", "y"}
    assert set(found["without_graph"]["x1"]) == {"fair", "y"}
    assert set(found["without_kind"]["x"]) == {"fair", "y"}
    assert set(found["without_kind"]["y"]) == {"fair", "x", "y"}
    assert set(found["outside_graph"]) == {"x1"}


def test_the_defective_cornell_counts_as_texas_and_as_cornell() -> None:
    qualities = [0.5, 0.6, 0.7, 0.1]
    graphs = {name: guesses(qualities, i) for i, name in enumerate(("texas", "cornell"))}
    pages = ("texas", "cornell", "cornell-legacy")
    known = {name: Candidate(i, graph=name, kind="pages") for i, name in enumerate(pages)}
    known["free"] = Candidate(3)
    kinds = dict.fromkeys(graphs, "pages")
    found = choose_all(known, graphs, kinds, limits(4))["portfolios"]["one"]["without_graph"]
    members = {name: set(own) for name, own in found.items()}
    assert members == {
        "texas": {"cornell", "free"},
        "cornell": {"texas", "free"},
        "cornell-legacy": {"free"},
    }


def test_shapes_are_few_and_the_portfolio_is_full(three: dict[str, Predictions]) -> None:
    graphs = {
        name: dataclasses.replace(
            p,
            val=tuple(Part(part.predicted[[0, 1, 2, 0, 0]], part.labels) for part in p.val),
            holdout=tuple(Part(part.predicted[[0, 1, 2, 0, 0]], part.labels) for part in p.holdout),
        )
        for name, p in three.items()
    }
    known = {**FREE, "fair too": Candidate(0), "fair again": Candidate(0)}
    members = chosen(known, graphs, limits(4, shapes=2))["members"]
    assert len(members) == 4
    assert len({known[name].shape for name in members}) == 2
    assert set(chosen(known, graphs, limits(2, shapes=2))["members"]) == {"x", "y"}


def test_a_portfolio_may_be_of_our_own_models(three: dict[str, Predictions]) -> None:
    known = {**FREE, "x": Candidate(1, is_own=False)}
    assert set(chosen(known, three, limits(3, only_own=True))["members"]) == {"fair", "y"}
    assert set(chosen(known, three, limits(3))["members"]) == {"fair", "x", "y"}


def test_the_judge_scores_sets_as_they_are_joined(three: dict[str, Predictions]) -> None:
    """Quick formulas for every candidate at once, against the plain ones."""
    quality = [0.2, 0.5, 0.3, 0.6, 0.4, 0.55]
    p = guesses(quality, 7)
    judge, alone = Judge(p), max(evaluate(p, [i])["average"][0] for i in range(6))
    for chosen_ones in ([], [0], [3, 1], [1, 0, 3], [0, 2, 4, 5]):
        rest = [i for i in range(6) if i not in chosen_ones]
        found = judge.regrets(chosen_ones, rest)
        for i, regret in zip(rest, found, strict=True):
            score = evaluate(p, [*chosen_ones, i])["votes on all nodes"][0]
            assert regret == pytest.approx(min(100 * (alone - score), 5.0), abs=1e-4)


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
    for form, count in ((form, entries["count"]) for form, entries in FORMS.items()):
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


def test_candidates_alone_choose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many processes train candidates side by side; none of them begins the choice or the test."""
    few = {name: candidates({"epochs": 2})[name] for name in ("default", "gcn cora")}
    monkeypatch.setattr(portfolio, "candidates", lambda limits: few)
    context = Context(tmp_path, device="cpu", quick=True, datasets=["xor"], tell=lambda _: None)
    compute_cells(portfolio, context)
    assert [path.name for path in (tmp_path / "records").iterdir()] == ["xor.json"]
    assert portfolio.predictions_path(tmp_path, "xor").is_file()


@pytest.mark.slow
def test_a_test_joins_members_and_seeds() -> None:
    dataset = csbm(num_nodes=60, num_features=8)
    splits = [make_split(dataset, "stratified", seed) for seed in (0, 1)]
    chosen_ones = {"default": ["scores 0", "mlp 0"], "best": ["mlp 0", "scores 0", "scores 1"]}
    known = candidates({"epochs": 3, "patience": 3})
    cell = portfolio.run_test(dataset, splits, known, chosen_ones, device="cpu")
    best = cell["portfolios"]["best"]
    assert best["alone"]["mlp 0"] == cell["portfolios"]["default"]["alone"]["mlp 0"]
    assert {model: of["members"] for model, of in best["families"].items()} == {"mlp": 1, "lon": 2}
    assert best["families"]["mlp"]["whole"] == best["families"]["mlp"]["equal"]
    assert set(best["joined"]) == {*STRATEGIES, IN_USE, SHIFTED}
    seeds = [known["mlp 0"].replace(seed=seed) for seed in (0, 1, 1000, 1001)]
    fitted = fit(dataset, seeds, [*splits, *splits])
    own = Predictions.collect(dataset, [fitted[:2], fitted[2:]])
    assert best["families"]["mlp"]["whole"]["test"] == evaluate(own, [0, 1])[JOINED]
    accuracy = score(fitted[1].predicted, dataset, splits[1].test)["accuracy"]
    assert best["alone"]["mlp 0"]["test"][1] == pytest.approx(accuracy)


def test_the_usual_candidate_is_the_default() -> None:
    """What is compared as the default is what a user gets, but for its stopping rule."""
    for dataset in (csbm(num_nodes=60), DEVELOPMENT["diabetes"](), DEVELOPMENT["cancer"]()):
        usual = candidates({})[portfolio.usual_candidate(dataset)].replace(monitor="loss")
        given = {"preset": "fast", "frequencies": "train", "known_answers": "none"}
        assert usual == complete(given, dataset).replace(monitor="loss")
    assert {"default", "table, classes", "table, numbers"} == set(KNOWN)
