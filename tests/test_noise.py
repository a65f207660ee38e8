"""Dropout numbers: their rate, their independence, and that nothing but their key matters."""

import numpy as np
import pytest
import torch

from longnn.matrices import _noise as noise
from longnn.nn._transform import Dropout


def mask(seed=1, epoch=1, site=0, p=0.5, size=1001, dtype=torch.float32):
    stream = torch.tensor([seed, epoch])
    return noise.keep_mask(stream, torch.tensor(p), torch.empty(size, dtype=dtype), site)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.8, 0.999])
def test_rate_and_expectation(p):
    m = mask(p=p, size=400_000, dtype=torch.float64)
    kept = (m > 0).double().mean().item()
    deviation = max(np.sqrt(p * (1 - p) / 400_000), 1e-9)
    assert abs(kept - (1 - p)) < 5 * deviation + 1 / 65536
    assert m.mean().item() == pytest.approx(1.0, abs=5 * deviation / (1 - p) + 1e-12)


@pytest.mark.parametrize("other", [{"seed": 2}, {"epoch": 2}, {"site": 1}, {"seed": 1 + 2**40}])
def test_every_number_of_the_key_counts(other):
    """Masks of different keys agree as often as independent ones do: half the time."""
    size = 100_000
    same = (mask(size=size) == mask(size=size, **other)).float().mean().item()
    assert same == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(size))


def test_neighbouring_elements_epochs_and_seeds_are_independent():
    drop = torch.stack([mask(seed=s, epoch=e, size=4096) > 0 for s in range(8) for e in range(64)])
    z = drop.double() * 2 - 1  # (512, 4096)
    count = z.numel()
    for shift in (1, 2, 7, 64):
        assert abs((z[:, shift:] * z[:, :-shift]).mean().item()) < 5 / np.sqrt(count)
        assert abs((z[shift:] * z[:-shift]).mean().item()) < 5 / np.sqrt(count)


def test_batch_equals_loop_and_torch_equals_numpy():
    streams = torch.tensor([[3, 1], [4, 7], [2**40 + 5, 1000]])
    p = torch.tensor([0.0, 0.3, 0.8])
    like = torch.empty(7, 33)
    together = torch.func.vmap(lambda s, p: noise.keep_mask(s, p, like, 2))(streams, p)
    alone = torch.stack([noise.keep_mask(s, q, like, 2) for s, q in zip(streams, p, strict=True)])
    assert torch.equal(together, alone)
    batch = like.expand(3, 7, 33).movedim(0, 1)  # a batched signal at any dimension
    call = lambda s, p, x: noise.keep_mask(s, p, x, 2)  # noqa: E731
    assert torch.equal(torch.func.vmap(call, in_dims=(0, 0, 1))(streams, p, batch), together)
    keys, thresholds = noise.keys(streams, 2), noise._thresholds(p)
    kept = noise._mask_torch(keys, thresholds, 7 * 33)  # what other devices compute
    assert torch.equal(kept.view(3, 7, 33), together > 0)


@pytest.mark.parametrize("columns", [1, 4, 7])
def test_rows_of_a_signal_have_the_numbers_of_the_whole(columns):
    """Whoever has some rows of a batch drops what one who has all of them drops there."""
    drop = Dropout(0.4).train()
    drop.stream = torch.tensor([3, 9])
    x = torch.ones(11, columns)
    whole, shares = drop(x), []
    for start, stop in ((0, 3), (3, 3), (3, 8), (8, 11)):
        drop.first_row = start
        shares.append(drop(x[start:stop]))
    assert torch.equal(torch.cat(shares), whole)
    streams, p = torch.tensor([[3, 9], [4, 9]]), torch.tensor([0.4, 0.4])
    each = torch.func.vmap(lambda s, p: noise.keep_mask(s, p, x[5:], 0, 5 * columns))(streams, p)
    assert torch.equal(each[0], whole[5:])
    keys, thresholds = noise.keys(streams, 0), noise._thresholds(p)
    kept = noise._mask_torch(keys, thresholds, 6 * columns, 5 * columns)
    assert torch.equal(kept.view(2, 6, columns), each > 0)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 16, 17])
def test_blocks_of_hashes_join_without_a_seam(size, monkeypatch):
    whole = noise._mask_numpy([2**32 - 3, 5], 30000, size)
    monkeypatch.setattr(noise, "_BLOCK", 4)
    assert np.array_equal(noise._mask_numpy([2**32 - 3, 5], 30000, size), whole)


def test_operator_passes_torchs_own_check():
    args = (torch.tensor([3, 1]), torch.tensor(0.25), torch.empty(4, 5), 1)
    torch.library.opcheck(torch.ops.longnn.keep_mask.default, args)


def test_dropout_module_follows_its_stream():
    layer = Dropout(0.5)
    x = torch.ones(50, 4)
    layer.stream = torch.tensor([9, 1])
    first = layer(x)
    assert torch.equal(first, layer(x))  # the numbers depend on the key alone
    layer.stream[1] += 1
    assert not torch.equal(first, layer(x))
    assert torch.equal(layer.eval()(x), x)
