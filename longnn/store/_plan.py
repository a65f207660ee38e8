"""How terms are cut into blocks of columns, so that they fit the memory that is given."""

import dataclasses
import itertools
from collections.abc import Sequence

from longnn._base.memory import in_words
from longnn.store._terms import rows_per_rank

#: Memory that the program takes beside its arrays: the interpreter, torch, what threads work on.
RESERVE = 500_000_000
#: A row of 16 float32 is a cache line: narrower blocks read lines that they do not use.
LINE = 16
#: The widest block on a GPU; on a CPU a line is: wider blocks are no faster there.
WIDEST = 64
#: The narrowest block that is kept in memory until it is written, rather than in a scratch file.
NARROWEST = 8


@dataclasses.dataclass(frozen=True)
class Plan:
    """The blocks, and where arrays are kept meanwhile.

    Args:
        columns: of each block.
        resident: the graph stays in memory.
        staged: a block's terms are kept in memory until they are written; else in a file.
        bytes: that the arrays of the widest block take, with the graph.
    """

    columns: list[int]
    resident: bool
    staged: bool
    bytes: int


@dataclasses.dataclass(frozen=True)
class Size:
    """What a plan must know of the work.

    Args:
        nodes, entries: of the graph.
        columns: its features and the constant.
        kept: rows that are kept.
        term_bytes: of one number of each term: (K+1) x bytes on disk.
        row_ranks: ranks that share the rows.
        column_ranks: ranks that share the columns.
        scratch: a scratch file may be used (not on a GPU).
    """

    nodes: int
    entries: int
    columns: int
    kept: int
    term_bytes: int
    row_ranks: int = 1
    column_ranks: int = 1
    scratch: bool = True

    @property
    def graph_bytes(self) -> int:
        """Neighbours and offsets of one rank."""
        return (4 * self.entries + 8 * self.nodes) // self.row_ranks

    @property
    def column_bytes(self) -> int:
        """The arrays of one column; ranks that share rows have one array whole, two in part."""
        if self.row_ranks == 1:
            return 8 * self.nodes
        share = rows_per_rank(self.nodes, self.row_ranks)
        return 4 * (share * self.row_ranks + 2 * share)

    @property
    def staged_bytes(self) -> int:
        """The terms of one column, as on disk."""
        return -(-self.kept // self.row_ranks) * self.term_bytes


def make_plan(size: Size, memory: int) -> Plan:
    r"""Cut the columns into blocks.

    Raises:
        MemoryError: where not even one column fits.
    """
    free = memory - min(RESERVE, memory // 2) - 8 * size.nodes // size.row_ranks
    resident = size.graph_bytes <= free // 2
    if resident:
        free -= size.graph_bytes
    most = min(LINE, WIDEST) if size.scratch else WIDEST
    wanted = min(-(-size.columns // size.column_ranks), most)
    in_memory = free // (size.column_bytes + size.staged_bytes)
    staged = in_memory >= min(NARROWEST, wanted) or not size.scratch
    width = min(in_memory if staged else free // size.column_bytes, wanted)
    if width < 1:
        need = 2 * (size.column_bytes + size.graph_bytes + 8 * size.nodes) + 2 * RESERVE
        raise MemoryError(
            f"Expected memory for one column of {size.nodes:,} nodes, {in_words(need)} at most "
            f"(got {in_words(memory)}); give more with --memory, or share the rows over ranks"
        )
    for whole in (LINE, NARROWEST):
        if width > whole and width < size.columns:
            width -= width % whole
            break
    blocks = [width] * (size.columns // width)
    if size.columns % width:
        blocks.append(size.columns % width)
    used = width * (size.column_bytes + int(staged) * size.staged_bytes)
    return Plan(blocks, resident, staged, used + (size.graph_bytes if resident else 0))


def spans_of(columns: Sequence[int]) -> list[tuple[int, int]]:
    """First and last column of each block."""
    return list(itertools.pairwise([0, *itertools.accumulate(columns)]))
