"""Splits: disjoint, of the promised sizes, the same from the same seed."""

import dataclasses

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from longnn.data import DataError, from_data, make_split
from longnn.data._card import untested
from longnn.data._named import load_named
from longnn.data._splits import hold_out, in_shares

RANDOM = ("published", "stratified")


def ring(y, **masks):
    n = len(y)
    index = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
    return from_data(Data(x=torch.ones(n, 1), edge_index=index, y=y, **masks))


def labels(*sizes, unlabelled=0):
    y = torch.cat([torch.full((size,), c) for c, size in enumerate(sizes)])
    y = torch.cat([y, torch.full((unlabelled,), -1)])
    return y[torch.randperm(len(y), generator=torch.Generator().manual_seed(9))]


def sets(dataset, protocol, seed=0):
    split = make_split(dataset, protocol, seed)
    return split.train, split.val, split.test


@pytest.mark.parametrize("protocol", RANDOM)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_random_protocols_partition_the_labelled_nodes(protocol, task):
    if task == "classification":
        d = ring(labels(30, 50, 20, unlabelled=13))
    else:
        y = torch.linspace(0, 1, 113)
        y[::9] = float("nan")
        d = ring(y)
    for seed in range(5):
        train, val, test = sets(d, protocol, seed)
        assert torch.equal(train.int() + val.int() + test.int(), d.labelled.int())
        again = sets(d, protocol, seed)
        assert all(torch.equal(a, b) for a, b in zip((train, val, test), again, strict=True))
        assert not torch.equal(train, sets(d, protocol, seed + 1)[0])


def grouped(sizes, y=None):
    """Nodes in groups of these sizes, mixed."""
    group = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    group = group[torch.randperm(len(group), generator=torch.Generator().manual_seed(1))]
    return ring(torch.linspace(0, 1, len(group)) if y is None else y(group), node_group=group)


def test_groups_stay_together_and_seeds_draw_others():
    sizes = [1, 2, 3, 5, 8, 13, 21, 34, 20, 30, 9, 7]
    d, drawn = grouped(sizes), set()
    assert d.default_split == "group"
    for seed in range(6):
        masks = sets(d, None, seed)
        assert torch.equal(sum(mask.int() for mask in masks), torch.ones(sum(sizes)).int())
        each = [set(d.data.node_group[mask].tolist()) for mask in masks]
        assert sum(map(len, each)) == len(sizes)  # none has nodes on two sides
        share = np.array([int(mask.sum()) for mask in masks]) / sum(sizes)
        assert np.abs(share - (0.6, 0.2, 0.2)).max() < 0.06
        assert all(torch.equal(*pair) for pair in zip(masks, sets(d, None, seed), strict=True))
        drawn.add(tuple(sorted(each[2])))
    assert len(drawn) > 3


def test_groups_that_train_have_all_classes():
    d = grouped([10] * 10, lambda group: (group < 3).long())
    for seed in range(8):
        assert not any("No training" in note for note in make_split(d, seed=seed).notes)


def test_groups_stay_together_where_validation_or_a_held_out_part_is_drawn():
    d = grouped([10] * 10)
    d.data.train_mask = d.data.node_group < 8
    d.data.test_mask = ~d.data.train_mask
    split = make_split(d, "own", 3)
    assert split.sizes == (60, 20, 20)
    assert "20 of the training nodes, in whole groups drawn" in split.notes[0]
    for made in (split, hold_out(d, make_split(d, "group", 3))):
        each = [set(d.data.node_group[mask].tolist()) for mask in (made.train, made.val, made.test)]
        assert sum(map(len, each)) == len(set.union(*each))


@pytest.mark.parametrize(
    ("d", "message"),
    [
        (grouped([20, 20]), r"at least three groups .* \(got 2\); name another group_column"),
        (ring(labels(20, 20)), r"groups for the split protocol 'group' \(got none\); name their"),
    ],
)
def test_groups_that_make_no_split(d, message):
    with pytest.raises(DataError, match=message):
        make_split(d, "group")


@pytest.mark.parametrize("weight", [[1.0] * 20, torch.ones(20, 2), torch.ones(19)])
def test_weights_of_another_form(weight):
    with pytest.raises(DataError, match=r"`node_weight` as a tensor \(20,\) \(got"):
        ring(labels(10, 10), node_weight=weight)


def test_every_labelled_node_has_a_group():
    group = torch.arange(20).where(torch.arange(20) != 7, -1)
    with pytest.raises(DataError, match=r"`node_group` >= 0 of every labelled node \(got -1 of"):
        ring(labels(10, 10), node_group=group)


@pytest.mark.parametrize("seed", range(20))
def test_values_in_shares(seed):
    """Against all ways to cut: no set is empty, and each end is the nearest that is left."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 9, size=rng.integers(3, 9))
    made = in_shares(counts, (0.6, 0.8))
    reached = counts.cumsum() / counts.sum()
    first, second = np.searchsorted(made, 1), np.searchsorted(made, 2)
    assert made.tolist() == sorted(made)
    assert {*made} == {0, 1, 2}
    assert abs(reached[first - 1] - 0.6) == np.abs(reached[:-2] - 0.6).min()
    assert abs(reached[second - 1] - 0.8) == np.abs(reached[first:-1] - 0.8).min()


def test_global_random_state_is_left_alone():
    d = ring(labels(30, 30))
    state = torch.get_rng_state()
    first = sets(d, "published")[0]
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(123)
    assert torch.equal(sets(d, "published")[0], first)


def test_published_is_the_stated_procedure():
    """Findings, section 3, written out with the global generator as the references do."""
    y = labels(60, 25, 5, 40, unlabelled=7)
    d = ring(y)
    n, classes = 130, 4
    for seed in range(10):
        torch.manual_seed(seed)
        order = [torch.randperm(int((y == c).sum())) for c in range(classes)]
        nodes = [torch.nonzero(y == c).flatten()[order[c]] for c in range(classes)]
        quota = round(0.6 * n / classes)
        train = torch.cat([group[:quota] for group in nodes])
        rest = torch.cat([group[quota:] for group in nodes])
        rest = rest[torch.randperm(len(rest))]
        expected = (train, rest[: round(0.2 * n)], rest[round(0.2 * n) :])
        for mask, wanted in zip(sets(d, "published", seed), expected, strict=True):
            assert mask.nonzero().flatten().tolist() == sorted(wanted.tolist())


def test_published_texas_is_46_20_33_percent(shared_data):
    split = make_split(load_named("texas", shared_data), "published", 0)
    assert split.sizes == (85, 37, 61)
    assert [round(100 * size / 183) for size in split.sizes] == [46, 20, 33]


def test_stratified_keeps_the_shares_of_every_class():
    d = ring(labels(100, 50, 10, 1))
    train, val, test = sets(d, "stratified", 3)
    y = d.data.y
    for c, size in enumerate((100, 50, 10)):
        parts = [int((mask & (y == c)).sum()) for mask in (train, val, test)]
        assert parts == [size * 6 // 10, size * 2 // 10, size * 2 // 10]
    assert bool(train[y == 3].all())  # a class of one node is trained on


def test_regression_is_60_20_20():
    assert make_split(ring(torch.linspace(0, 1, 50)), "published").sizes == (30, 10, 10)


class TestMasks:
    y = labels(10, 10)

    def three(self, columns):
        shape = (20,) if columns is None else (20, columns)
        part = torch.arange(20).view(-1, *[1] * (len(shape) - 1)).expand(shape)
        part = (part + torch.arange(columns or 1)) % 4 if columns else part % 4
        return {"train_mask": part < 2, "val_mask": part == 2, "test_mask": part == 3}

    @pytest.mark.parametrize("protocol", ["fixed", "geom-gcn", "own"])
    def test_given_masks_are_used_as_they_are(self, protocol):
        masks = self.three(3)
        d = ring(self.y, **masks)
        for seed in range(7):
            for mask, key in zip(sets(d, protocol, seed), masks, strict=True):
                assert torch.equal(mask, masks[key][:, seed % 3])
        single = ring(self.y, **self.three(None))
        assert make_split(single, protocol, 5).sizes == (10, 5, 5)
        assert make_split(single, seed=5).protocol == "own"  # the default where there are masks

    @pytest.mark.parametrize("protocol", ["fixed", "geom-gcn", "own"])
    def test_no_masks(self, protocol):
        with pytest.raises(DataError, match=r"'graph' to come with masks .* 'stratified', or give"):
            make_split(ring(self.y), protocol)

    def test_missing_validation_is_carved_from_train(self):
        train = torch.zeros(20, dtype=torch.bool)
        train[self.y.argsort()[:5]] = True  # 5 of class 0
        train[self.y.argsort()[10:20]] = True  # 10 of class 1
        d = ring(self.y, train_mask=train, test_mask=~train)
        split = make_split(d, "own", 4)
        assert torch.equal(split.train | split.val, train)
        assert split.sizes == (12, 3, 5)
        parts = [int((split.val & (self.y == c)).sum()) for c in (0, 1)]
        assert parts == [1, 2]  # 20 % of each class
        assert "3 of the training nodes, 20 % of each class drawn" in split.notes[0]
        numbers = ring(self.y.float(), train_mask=train, test_mask=~train)
        assert "20 % drawn with seed 4" in make_split(numbers, "own", 4).notes[0]
        assert torch.equal(split.val, make_split(d, "own", 4).val)

    def test_no_test_nodes_is_said(self):
        masks = self.three(None)
        del masks["test_mask"]
        split = make_split(ring(self.y, **masks), "own")
        assert split.notes == ("There are no test nodes: no test score can be given.",)

    def test_overlap_and_unlabelled_are_refused(self):
        masks = self.three(None)
        masks["test_mask"] = masks["val_mask"]
        with pytest.raises(DataError, match=r"each node in one set .got node 2 in two"):
            make_split(ring(self.y, **masks), "own")
        d = ring(self.y, **self.three(None))
        d.data.y[0] = -1  # after the check of the dataset
        with pytest.raises(DataError, match=r"label for each node in a mask .got none for node 0"):
            make_split(d, "own")

    def test_class_without_training_node(self):
        train = self.y == 0
        val = (self.y == 1) & (torch.arange(20) % 2 == 0)
        d = ring(self.y, train_mask=train, val_mask=val, test_mask=~train & ~val)
        with pytest.raises(
            DataError, match=r"a training node of each class .got none of '1'.; corr"
        ):
            make_split(d, "own")
        # Published masks have this flaw (Texas): they must stay usable.
        assert make_split(d, "fixed").notes == (
            "No training node has class '1': it cannot be learned in this split.",
            "1 of 2 classes has no test node: 0; scores say nothing about it.",
        )

    def test_no_training_nodes(self):
        masks = self.three(None)
        masks["train_mask"] = torch.zeros(20, dtype=torch.bool)
        with pytest.raises(DataError, match=r"Expected training nodes \(got none: train 0, val 5"):
            make_split(ring(self.y, **masks), "own")


def test_geom_gcn_masks_of_texas_lack_a_class_in_some_splits(shared_data):
    d = load_named("texas", shared_data)
    notes = [make_split(d, "geom-gcn", seed).notes for seed in range(10)]
    assert [any("No training node" in n for n in note) for note in notes] == [
        seed in (0, 1, 2, 7) for seed in range(10)
    ]
    assert all(any("no test node" in n for n in notes[seed]) for seed in (3, 4, 5, 6, 8, 9))
    assert make_split(d, "geom-gcn", 0).sizes == (87, 59, 37)  # 48/32/20 %


class TestClassesWithoutTestNodes:
    """The published protocol trains on every node of a class smaller than its quota."""

    def test_are_named(self):
        d = ring(labels(100, 5, 100, 5))  # a quota of 32
        for seed in range(3):
            split = make_split(d, "published", seed)
            note = "2 of 4 classes have no test node: 1, 3; scores say nothing about them."
            assert split.notes == split.test_notes == (note,)
            for c in (1, 3):
                assert not (split.test & (d.data.y == c)).any()
        assert make_split(d, "stratified").notes == ()

    def test_at_most_five_by_name(self):
        d = ring(labels(100, 100, *[3] * 7))
        assert make_split(d, "published").notes == (
            "7 of 9 classes have no test node: 2, 3, 4, 5, 6 and 2 more; scores say nothing about "
            "them.",
        )

    def test_a_class_without_labelled_nodes_is_none(self):
        y = labels(50, 50)
        d = from_data(Data(x=torch.eye(100), edge_index=torch.tensor([[0], [1]]), y=y),
                      classes=("a", "b", "never"))  # fmt: skip
        assert make_split(d).notes == ()

    def test_it_is_known_of_the_default_split(self):
        d = ring(labels(100, 5, 100, 5))
        assert untested(d) == ()
        published = dataclasses.replace(d, default_split="published")
        assert untested(published) == make_split(published).notes != ()
        assert untested(ring(torch.full((5,), -1))) == (), "nothing to split"

    def test_choosing_does_not_see_the_test_set(self):
        split = make_split(ring(labels(100, 5, 100, 5)), "published").without_test()
        assert split.sizes[2] == 0
        assert split.notes == ()
        assert split.train.any()


@pytest.mark.parametrize("protocol", RANDOM)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (labels(10, unlabelled=5), r"at least two classes .*\(got only '0'\); label nodes"),
        (torch.full((5,), -1), r"Expected labelled nodes in 'graph' .got none"),
        (labels(1, 1), r"Expected validation nodes .got none: .*; label more"),
    ],
)
def test_labels_that_make_no_split(protocol, y, message):
    with pytest.raises(DataError, match=message):
        make_split(ring(y), protocol)


def test_bad_arguments():
    d = ring(labels(10, 10))
    with pytest.raises(DataError, match=r"geom-gcn, fixed, own, time, group \(got 'random'"):
        make_split(d, "random")
    with pytest.raises(DataError, match=r"`seed` >= 0 \(got -1"):
        make_split(d, "published", -1)
    assert repr(make_split(d, seed=2)) == "Split('stratified', seed=2, train=12, val=4, test=4)"
