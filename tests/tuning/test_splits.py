"""Tuning splits: never those of a report, never a test node."""

import dataclasses

import pytest
import torch

from longnn.data import make_split
from longnn.tuning._splits import REPORTING_SEEDS, tuning_seeds, tuning_splits
from tests.tuning.examples import graph


def with_masks(dataset, splits):
    made = [make_split(dataset, "stratified", seed) for seed in range(splits)]
    data = dataset.data.clone()
    for name in ("train", "val", "test"):
        masks = torch.stack([getattr(s, name) for s in made], 1)
        data[f"{name}_mask"] = masks if splits > 1 else masks[:, 0]
    return dataclasses.replace(dataset, data=data, default_split="fixed")


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


def test_one_set_of_masks_is_used_as_it_is():
    dataset = with_masks(graph(), 1)
    splits, notes = tuning_splits(dataset, None, tuning_seeds(2))
    assert "test nodes are not used" in notes[0]
    for split in splits:
        assert torch.equal(split.train, dataset.data.train_mask)
        assert torch.equal(split.val, dataset.data.val_mask)
        assert not split.test.any()


def test_many_sets_of_masks_are_replaced_by_random_splits():
    splits, notes = tuning_splits(with_masks(graph(), 3), None, tuning_seeds(2))
    assert "The 3 fixed splits share their nodes" in notes[0]
    assert {split.protocol for split in splits} == {"published"}
