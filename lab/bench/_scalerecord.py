"""The record of the benchmark of large graphs, one class per part."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

from lab.bench._record import Code, Formatted, Machine, Spread, Sweep
from longnn.records import Schema


@dataclass(frozen=True, kw_only=True)
class Order(Schema):
    """Seconds to find an order of the nodes and to renumber the graph, and of one product."""

    find_s: float
    product_s: float


@dataclass(frozen=True, kw_only=True)
class Stage(Schema):
    """One stage: its seconds, and the bytes that it reads, writes, and moves in memory."""

    seconds: float
    read: int
    written: int
    moved: int


@dataclass(frozen=True, kw_only=True)
class RanksResult(Schema):
    """Seconds of one rank on one core and of two ranks on two; the ratio is one to two."""

    one: Spread
    two: Spread
    ratio: Spread


@dataclass(frozen=True, kw_only=True)
class Contest(Schema):
    """A model on a kind of graphs: accuracy and seconds of each seed, and its weights."""

    graph: str
    model: str
    scores: list[float]
    seconds: list[float]
    weights: int


@dataclass(frozen=True, kw_only=True)
class ScaleRecord(Formatted):
    """Everything that :func:`~lab.bench.run_scale` measured; parts not asked for are empty.

    >>> ScaleRecord.from_dict({"format": "another"})
    Traceback (most recent call last):
    ...
    ValueError: Expected the record of a benchmark of large graphs (got another file)
    """

    FORMAT: ClassVar[str] = "longnn.bench.scale/1"
    WHAT: ClassVar[str] = "a benchmark of large graphs"

    created: str
    machine: Machine
    code: Code
    size: str
    entries: int
    steps: int
    columns: int
    seconds: dict[str, Spread]
    ratios: dict[str, Spread]  # how many times longer than propagate
    memory_mib: dict[str, float | None]
    disk_gb_s: float  # written and synced
    read_gb_s: float | None = None  # read from the disk
    memory_gb_s: float | None = None  # copied: read plus written
    orders: dict[str, dict[str, Order]] = field(default_factory=dict)  # by kind of graph
    order_size: str = ""
    sweeps: list[Sweep] = field(default_factory=list)
    stages: dict[str, Stage] = field(default_factory=dict)
    stage_size: str = ""
    ranks: RanksResult | None = None
    contests: list[Contest] = field(default_factory=list)
    contest_size: str = ""

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The record in a JSON file."""
        return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))

    @property
    def nodes(self) -> int:
        """Of the graph that propagation was timed on."""
        return int(self.size.split()[0].replace(",", ""))

    def gathered_gb_s(self, key: str) -> float:
        """GB/s of neighbours' rows, float32, that a contender reads."""
        read = 4.0 * self.entries * self.columns * self.steps
        return read / self.seconds[key].median / 1e9
