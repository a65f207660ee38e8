"""Splits are never those of a report; of finalists the better one wins, not the luckier."""

import json

import optuna
import pytest
import torch

from longnn.config import Config
from longnn.data import make_split
from longnn.training._fit import Scaling, make_population, make_problem
from longnn.tuning import _splits as finalists
from longnn.tuning import confirm
from longnn.tuning._record import Finalists
from longnn.tuning._splits import REPORTING_SEEDS, tuning_seeds, tuning_splits
from tests.tuning.examples import search, values, with_masks

TINY = {"epochs": 6, "degree": 2, "hidden_channels": 4, "device": "cpu"}


def test_a_score_is_that_of_its_training(dataset):
    configs = [
        Config.from_dict({**TINY, "lr_transform": 0.05}),
        Config.from_dict({**TINY, "model": "gpr"}),
        Config.from_dict({**TINY, "lr_transform": 0.01}),
    ]
    scores = confirm(dataset, configs, [1003, 1004], device="cpu")
    assert [len(row) for row in scores] == [2, 2, 2]
    for config, row in zip(configs, scores, strict=True):
        problem = make_problem(dataset, config, Scaling("none"))
        for seed, score in zip((1003, 1004), row, strict=True):
            one = make_population(
                [config.replace(seed=seed)], problem, [make_split(dataset, None, seed)]
            )
            (alone,) = one.run()
            kept = float(alone.history["val_score"][alone.best_epoch - 1])
            assert kept == pytest.approx(score, abs=1e-6)


def test_seeds_of_reports_are_refused(dataset):
    with pytest.raises(ValueError, match=r"tuning seeds from 1000 on \(got 3"):
        confirm(dataset, [Config.from_dict(TINY)], [1000, 3])


def test_the_best_over_all_splits_wins(dataset, tmp_path, monkeypatch):
    """Further splits on which the search's favourite does badly overturn it."""
    plain = search(dataset, None)
    favourite = plain.record.best.number
    assert plain.record.finalists == Finalists()
    asked = []

    def fake(dataset, configs, seeds, **options):
        asked.append((len(configs), seeds))
        return [[0.0] * 5] + [[0.9] * 5] * (len(configs) - 1)

    monkeypatch.setattr(finalists, "confirm", fake)
    result = search(dataset, None, finalists=3)
    assert asked == [(3, [1002, 1003, 1004, 1005, 1006])]
    assert values(result) == values(plain), "the search itself is the same"
    final = result.record.finalists.trials
    assert [f.confirmed[0] for f in final] == [0.9, 0.9, 0.0]
    assert final[-1].number == favourite
    best = result.record.best
    assert best.number == final[0].number != favourite
    assert final[0].searched == best.value
    assert result.value == pytest.approx((sum(best.scores) + 5 * 0.9) / 7)
    assert result.config.to_dict()["lr_transform"] == best.params["lr_transform"]


def test_a_finalist_that_diverges_loses(dataset, tmp_path, monkeypatch):
    def fake(dataset, configs, seeds, **options):
        return [[-float("inf")] * 5] + [[0.1] * 5] * (len(configs) - 1)

    monkeypatch.setattr(finalists, "confirm", fake)
    result = search(dataset, tmp_path, finalists=2)
    last = result.record.finalists.trials[-1]
    assert last.value is None
    assert last.confirmed == (None,) * 5
    assert result.record.best.number != last.number
    json.loads((tmp_path / "tuning.json").read_text(), parse_constant=lambda name: 1 / 0)
    assert "diverged" in (tmp_path / "tuning.html").read_text()


def test_a_killed_final_is_held_again(dataset, tmp_path, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    options = {"storage": optuna.storages.InMemoryStorage(), "finalists": 2}
    with monkeypatch.context() as patch:
        patch.setattr(finalists, "confirm", interrupt)
        with pytest.raises(KeyboardInterrupt):
            search(dataset, None, **options)
    again = search(dataset, None, **options)
    whole = search(dataset, tmp_path, finalists=2)
    assert again.record.finalists == whole.record.finalists
    assert values(again) == values(whole)
    page, recipe = ((tmp_path / name).read_text() for name in ("tuning.html", "recipe.toml"))
    assert "The finalists" in page
    assert "the mean over 7 tuning splits" in page
    assert "seeds 1000 to 1006" in recipe
    assert all(f"{100 * whole.value:.2f} %" in text for text in (page, recipe))


def test_seeds_are_disjoint_from_those_of_reports():
    assert tuning_seeds(3) == [1000, 1001, 1002]
    assert not set(tuning_seeds(50)) & set(REPORTING_SEEDS)
    for wrong in (0, -1, True, 1.5):
        with pytest.raises(ValueError, match="`repeats` to be an integer >= 1"):
            tuning_seeds(wrong)


def test_random_protocols_are_drawn_with_tuning_seeds(dataset):
    splits, notes = tuning_splits(dataset, "published", tuning_seeds(2))
    assert notes == []
    for split, seed in zip(splits, (1000, 1001), strict=True):
        expected = make_split(dataset, "published", seed)
        assert torch.equal(split.train, expected.train)
        assert torch.equal(split.val, expected.val)
        assert not split.test.any()
    for seed in range(10):
        reported = make_split(dataset, "published", seed)
        assert not any(torch.equal(split.val, reported.val) for split in splits)


def test_one_set_of_masks_is_used_as_it_is(dataset):
    dataset = with_masks(dataset, 1)
    splits, notes = tuning_splits(dataset, None, tuning_seeds(2))
    assert "test nodes are not used" in notes[0]
    for split in splits:
        assert torch.equal(split.train, dataset.data.train_mask)
        assert torch.equal(split.val, dataset.data.val_mask)
        assert not split.test.any()


def test_many_sets_of_masks_are_replaced_by_random_splits(dataset):
    splits, notes = tuning_splits(with_masks(dataset, 3), None, tuning_seeds(2))
    assert "The 3 fixed splits share their nodes" in notes[0]
    assert {split.protocol for split in splits} == {"published"}
