"""Tables in one piece of memory are what they were, table by table."""

import torch

from longnn.training._stack import ALIGNED, Packed

TABLES = {"w": torch.randn(3, 5, 2), "none": torch.randn(3, 0), "b": torch.randn(3)}


def test_tables_are_copies_that_begin_aligned_and_do_not_overlap():
    packed = Packed(TABLES)
    assert list(packed) == list(TABLES)
    for name, table in TABLES.items():
        assert torch.equal(packed[name], table)
        assert packed[name].is_contiguous()
        assert packed[name].storage_offset() % ALIGNED == 0
    packed["w"].zero_()
    assert torch.equal(packed["b"], TABLES["b"])
    assert bool((TABLES["w"] != 0).any())


def test_what_is_done_to_all_is_done_to_each():
    packed = Packed(TABLES)
    packed.flat.mul_(2)
    for name, table in TABLES.items():
        assert torch.equal(packed[name], 2 * table)


def test_some_members_are_taken_in_their_order():
    rows = torch.tensor([2, 0])
    taken = Packed(TABLES).take(rows)
    for name, table in TABLES.items():
        assert torch.equal(taken[name], table[rows])


def test_blocks_cover_every_number_of_a_member_once():
    wide = Packed({"w": torch.zeros(2, 1500), "b": torch.zeros(2, 3)})
    members, before = torch.full_like(wide.flat, -1), 0
    for start, beside, count, row in wide.blocks.tolist():
        members[start : start + count] = row
        assert beside == before  # gradients lie side by side without gaps
        before += count
    assert members[wide["w"].storage_offset() :][:3000].tolist() == [0] * 1500 + [1] * 1500
    assert members[wide["b"].storage_offset() :][:6].tolist() == [2] * 3 + [3] * 3
    assert int((members >= 0).sum()) == before == 3006
