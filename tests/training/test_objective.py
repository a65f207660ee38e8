"""Losses and scores over the nodes of each member, against torch's own on one member at a time."""

import importlib

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck

from longnn import kernels
from longnn.metrics import class_accuracy
from longnn.training._objective import Picked, cross_entropy

NODES, CLASSES = 12, 4


def masks():
    """Of different sizes, one of them with every node."""
    generator = torch.Generator().manual_seed(0)
    some = [torch.rand(NODES, generator=generator) < share for share in (0.3, 0.7)]
    return [*some, torch.ones(NODES, dtype=torch.bool)]


def example():
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(3, NODES, CLASSES, dtype=torch.float64, generator=generator)
    labels = torch.randint(CLASSES, (NODES,), generator=generator)
    picked = Picked.from_masks(masks(), torch.device("cpu"), torch.float64)
    return scores.requires_grad_(), labels, picked


def test_cross_entropy_is_the_mean_over_each_members_nodes():
    scores, labels, picked = example()
    ours = cross_entropy(scores, picked, labels[picked.rows])
    theirs = torch.stack(
        [F.cross_entropy(s[m], labels[m]) for s, m in zip(scores, masks(), strict=True)]
    )
    torch.testing.assert_close(ours, theirs)
    upstream = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    (mine,) = torch.autograd.grad(ours @ upstream, scores)
    (other,) = torch.autograd.grad(theirs @ upstream, scores)
    torch.testing.assert_close(mine, other)


@pytest.mark.skipif(torch.cuda.is_available(), reason="kernels are compiled where there is a GPU")
def test_cross_entropy_by_kernel_is_that_of_torch(monkeypatch):
    """Members beside or inside the scores in memory; in one piece and in several."""
    pytest.importorskip("triton")
    entropy = importlib.import_module("longnn.kernels._entropy")
    scores, labels, picked = example()
    target, upstream = labels[picked.rows], torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    theirs = cross_entropy(scores, picked, target)
    (expected,) = torch.autograd.grad(theirs @ upstream, scores)
    accuracy = class_accuracy(
        scores.detach().argmax(-1), labels.expand(3, -1), torch.ones(3, NODES)
    )
    monkeypatch.setattr(kernels, "usable", lambda tensor: True)
    monkeypatch.setattr(entropy, "BLOCK", 4 * CLASSES)
    for piece in (5, 2048):
        monkeypatch.setattr(entropy, "PIECE", piece)
        for s in (scores, scores.movedim(0, 1).contiguous().movedim(1, 0)):
            ours = cross_entropy(s, picked, target)
            torch.testing.assert_close(ours, theirs)
            (found,) = torch.autograd.grad(ours @ upstream, scores)
            torch.testing.assert_close(found, expected)
        every = torch.arange(NODES).repeat(3, 1)
        ones = torch.ones(3, NODES, dtype=torch.float64)
        _, hits = kernels.cross_entropy(
            scores.detach(), every, ones, labels.repeat(3, 1), weight_of_hits=ones
        )
        torch.testing.assert_close(hits / NODES, accuracy.double())
    assert gradcheck(lambda s: cross_entropy(s, picked, target), (scores,), fast_mode=True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="kernels are compiled where there is a GPU")
def test_the_first_of_equal_scores_counts_by_kernel_as_well():
    pytest.importorskip("triton")
    rows, ones = torch.tensor([[0, 1, 2]]), torch.ones(1, 3)
    _, hits = kernels.cross_entropy(torch.zeros(1, 3, 3), rows, ones, rows, weight_of_hits=ones)
    assert hits.tolist() == [1.0]


def test_cross_entropy_derivative_also_under_vmap():
    scores, labels, picked = example()
    call = lambda s: cross_entropy(s, picked, labels[picked.rows])  # noqa: E731
    assert gradcheck(call, (scores,))
    batch = torch.stack([scores.detach(), 2 * scores.detach()]).requires_grad_()
    assert gradcheck(torch.func.vmap(call), (batch,))


def test_picked_nodes_are_those_of_the_masks():
    picked = Picked.from_masks(masks(), torch.device("cpu"), torch.float64)
    values = torch.arange(3.0 * NODES, dtype=torch.float64).reshape(3, NODES)
    means = (picked.of(values) * picked.weight).sum(1)
    expected = [v[m].mean() for v, m in zip(values, masks(), strict=True)]
    torch.testing.assert_close(means, torch.stack(expected))
    last = picked.take(torch.tensor([2]))
    torch.testing.assert_close(last.of(values[2:]), values[2:])


def test_no_node_at_all_costs_nothing():
    picked = Picked.from_masks([torch.zeros(NODES, dtype=torch.bool)] * 2, "cpu", torch.float64)
    scores = torch.randn(2, NODES, CLASSES, dtype=torch.float64)
    labels = torch.zeros(2, 0, dtype=torch.int64)
    assert cross_entropy(scores, picked, labels).tolist() == [0.0, 0.0]
