"""The search: it finds, it halves, it repeats exactly, and it never sees a test node."""

import json
from collections import Counter

import optuna
import pytest
import torch

from longnn.config import Config
from longnn.data import from_data
from longnn.data._scaling import Scaling
from longnn.training import _fit as workflow
from longnn.training import make_problem
from longnn.tuning import confirm
from longnn.tuning._record import finding, shown_score
from longnn.tuning._training import Halving, Training
from tests.tuning.examples import (
    MODELS_ONCE,
    SPACE,
    finished,
    search,
    turn_over,
    values,
    with_masks,
)


def test_the_winner_beats_a_bad_configuration(dataset, tmp_path):
    result = search(dataset, None, trials=12, batch=6)
    bad = SPACE | {"lr_transform": {"choices": [1e-5]}, "dropout": 0.8}
    worse = search(dataset, None, bad, trials=1, default=False)
    assert result.value > worse.value + 0.1
    assert result.config.settings.lr_transform >= 1e-2
    assert result.value == max(t.value for t in result.record.with_state("complete"))


def test_a_trials_value_is_what_its_trainings_give(dataset):
    """Trained again, the winner has the same scores; how they are computed, finalists test."""
    result = search(dataset, None)
    best = result.record.best
    (scores,) = confirm(dataset, [result.config], result.record.seeds, device="cpu")
    assert scores == pytest.approx(best.scores, abs=1e-6)
    assert best.value == pytest.approx(sum(best.scores) / 2)


def test_halving_selects_the_worse_half():
    scores = [0.1, 0.9, 0.5, 0.5, 0.7]
    assert Halving(keep=1).select(scores, [0.0] * 5) == [0, 3]
    assert Halving(keep=1).select(scores, [0, 0, 2, 1, 0]) == [0, 2], "the loss decides on equals"
    assert Halving(keep=4).select(scores, [0.0] * 5) == [0]
    assert Halving(keep=2).select([0.3, 0.2], [0, 0]) == []
    with pytest.raises(ValueError, match="rising `rungs`"):
        Halving((5, 3))
    with pytest.raises(ValueError, match="`keep` >= 1"):
        Halving(keep=0)


def test_halving_stops_the_worse_and_keeps_the_best(dataset, tmp_path):
    whole = search(dataset, None, trials=8, batch=8, halving=False)
    halved = search(dataset, None, trials=8, batch=8, halving=Halving((3, 6)))
    assert [t.params for t in halved.record.trials] == [t.params for t in whole.record.trials]
    assert Counter(t.state for t in whole.record.trials) == {"complete": 8}
    assert Counter(t.state for t in halved.record.trials) == {"complete": 2, "pruned": 6}
    assert sorted(max(t.epochs) for t in halved.record.trials) == [3] * 4 + [6] * 2 + [12] * 2
    for trial in halved.record.trials:
        rungs = [int(epoch) for epoch in trial.intermediate]
        assert rungs == [r for r in (3, 6) if r <= max(trial.epochs)]
        if trial.state == "pruned":
            assert trial.value == pytest.approx(trial.intermediate[str(rungs[-1])])
            assert trial.stopped == ("pruned",) * 2
        else:
            assert trial.value == pytest.approx(whole.record.trials[trial.number].value)
    standing = {t.number: t.intermediate["3"] for t in halved.record.trials}
    gone = [standing[t.number] for t in halved.record.trials if max(t.epochs) == 3]
    assert max(gone) <= min(
        v for n, v in standing.items() if max(halved.record.trials[n].epochs) > 3
    )


@pytest.mark.parametrize("name", MODELS_ONCE)
def test_every_model_can_be_tuned(dataset, tmp_path, name):
    space = {**SPACE, "epochs": 2}
    result = search(dataset, None, space, model=name, trials=2, batch=2)
    recipe = result.write_recipe(tmp_path / "recipe.toml")
    assert Config.from_toml(recipe) == result.config
    assert result.config.model == name


def test_a_finished_search_is_not_run_again_but_can_be_extended(dataset, tmp_path):
    first = search(dataset, tmp_path, storage=None)
    seen = []
    again = search(dataset, tmp_path, storage=None, on_progress=seen.append)
    assert values(again) == values(first)
    assert {p.training for p in seen} == {0}
    longer = search(dataset, tmp_path, storage=None, trials=8)
    assert values(longer)[:6] == values(first)
    assert len(longer.record.trials) == 8
    drawn = [json.dumps(t.params) for t in longer.record.trials]
    assert len(set(drawn[6:]) - set(drawn[:6])) == 2, "the sampler does not begin again"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "`trials` to be an integer >= 1"),
        ({"batch": -1}, "`batch` to be an integer >= 1"),
        ({"repeats": 0}, "`repeats` to be an integer >= 1"),
        ({"scale": "unit"}, "`scale` to be one of auto, none, columns, standard, row"),
        ({"device": "tpu9"}, "`device`"),
        ({"split": "folds"}, "split protocol among"),
        ({"model": "lonn"}, "did you mean `lon`"),
    ],
)
def test_errors(dataset, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        search(dataset, None, **options)


def test_a_search_is_not_mixed_with_another(dataset):
    storage = optuna.storages.InMemoryStorage()
    search(dataset, None, trials=1, storage=storage)
    for change, message in (
        ({"repeats": 3}, r"the repeats that the search 'csbm-lon' .* \(got 3, not 2"),
        ({"space": SPACE | {"degree": 2}}, "the space that"),
        ({"split": "stratified"}, "the split protocol that"),
        ({"halving": False}, "the halving that"),
    ):
        with pytest.raises(ValueError, match=f"Expected {message}"):
            search(dataset, None, trials=2, storage=storage, **change)


def test_progress(dataset):
    seen = []
    result = search(dataset, None, on_progress=seen.append)
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert seen[0].done == 0
    assert seen[0].best_value is seen[0].eta is None
    last = seen[-1]
    assert (last.done, last.total) == (6, 6)
    assert last.best_value == result.value
    assert last.best_params["epochs"] == SPACE["epochs"]
    assert last.eta == 0
    middle = next(p for p in seen if p.done == 3)
    assert middle.eta == pytest.approx(middle.elapsed)
    assert {p.training for p in seen} >= {3}


def test_a_search_is_repeated_exactly(dataset):
    first, second = (search(dataset, None, halving=Halving((4,))) for _ in "ab")
    assert values(first) == values(second)
    assert values(search(dataset, None, seed=1)) != values(first)


def test_a_trial_that_ends_at_a_rung_is_not_stopped(dataset):
    """Nothing is learned, so that patience ends every trial at the epoch of the rung."""
    still = {f"lr_{role}": 0.0 for role in ("transform", "coefficients", "factors", "basis")}
    space = SPACE | still | {"patience": 3}
    result = search(dataset, None, space, trials=6, batch=6, halving=Halving((4,)))
    assert {t.state for t in result.record.trials} == {"complete"}
    assert {why for t in result.record.trials for why in t.stopped} == {"patience"}


def test_trials_of_different_shapes_share_a_batch(dataset):
    space = SPACE | {"placement": {"choices": ["output", "hidden"]}, "degree": {"choices": [1, 2]}}
    result = search(dataset, None, space, trials=8, batch=8)
    assert len({(t.params["placement"], t.params["degree"]) for t in result.record.trials}) > 2
    assert len(finished(result)) == 8


def test_test_labels_have_no_influence(dataset, monkeypatch):
    """Labels of test nodes are turned over: every number of the search is the same."""
    for name in ("score", "predict"):
        monkeypatch.setattr(workflow, name, None)  # whoever scores predictions fails
    masked, options = with_masks(dataset, 1), {"halving": Halving((4,)), "finalists": 2}
    first, second = (search(d, None, **options) for d in (masked, turn_over(masked)))
    assert values(first) == values(second)
    assert first.record.finalists == second.record.finalists


def test_diverging_trials_lose(dataset, tmp_path):
    space = SPACE | {"lr_transform": {"choices": [1e38, 1e-2]}}
    result = search(dataset, tmp_path, space, trials=6, batch=6, halving=False)
    assert [t for t in result.record.trials if t.params["lr_transform"] == 1e38]
    assert result.config.settings.lr_transform != 1e38
    json.loads((tmp_path / "tuning.json").read_text(), parse_constant=lambda name: 1 / 0)


@pytest.mark.parametrize("room", [2, 0])
def test_running_out_of_memory_halves_the_batch(dataset, monkeypatch, room):
    sizes, run = [], Training.run

    def limited(self):
        sizes.append(len(self.claims))
        if len(self.claims) > room:
            raise torch.OutOfMemoryError("fake")
        run(self)

    monkeypatch.setattr(Training, "run", limited)
    if room == 0:
        with pytest.raises(MemoryError, match="room for one trial of 2 repeats on cpu"):
            search(dataset, None, trials=1)
        return
    assert len(finished(search(dataset, None, trials=8, batch=5))) == 8
    assert sizes == [5, 2, 2, 1, 2, 1]


def test_memory_lost_half_way_keeps_what_is_finished(dataset, monkeypatch):
    watch, failed = Training._watch, []

    def fail_once(self, population):
        watch(self, population)
        if population.epoch == 6 and not failed:
            failed.append(len([c for c in self.claims if c.done]))
            raise torch.OutOfMemoryError("fake")

    monkeypatch.setattr(Training, "_watch", fail_once)
    result = search(dataset, None, trials=8, batch=8, halving=Halving((4,)))
    assert failed == [4]
    assert len(finished(result)) == 8


def test_optuna_is_quiet_and_left_as_it_was(dataset, tmp_path, capfd):
    optuna.logging.set_verbosity(optuna.logging.INFO)
    try:
        search(dataset, tmp_path, storage=None, trials=2)
        assert optuna.logging.get_verbosity() == optuna.logging.INFO
    finally:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
    assert capfd.readouterr() == ("", "")


def rare(data):
    """One class of few nodes."""
    data.y = (torch.arange(data.num_nodes) % 16 == 0).long()
    return from_data(data, classes=["usual", "rare"]), "average_precision", "average precision"


def several(data):
    """Two labels of yes or no."""
    data.y = torch.stack([data.y, 1 - data.y], 1).float()
    return from_data(data), "average_precision", "average precision"


def numbers(data):
    data.y = data.x @ torch.linspace(-1, 1, data.x.shape[1])
    return from_data(data), "r2", "R²"


@pytest.mark.parametrize("change", [rare, several, numbers])
def test_a_score_has_the_name_that_training_gives_it(dataset, tmp_path, change):
    changed, metric, name = change(dataset.data.clone())
    result = search(changed, tmp_path, trials=2, repeats=1, split="stratified")
    problem = make_problem(changed, result.config, Scaling("none"))
    assert result.record.metric == problem.metric == metric
    assert (
        f"Validation {name} {shown_score(result.record, result.value)}"
        in (tmp_path / "tuning.html").read_text()
    )
    assert "accuracy" not in finding(result.record)
    other = "mae" if metric == "r2" else "macro_f1"
    free = search(changed, None, SPACE | {"monitor": other}, trials=1, repeats=1)
    assert free.record.metric == other
