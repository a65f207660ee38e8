"""The record of a benchmark: one class per section, which writes the JSON and reads it back.

A section that could not be measured is a :class:`Failure`; one that was not asked for is None.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from longnn.records import KEEP_NONE, Schema


@dataclass(frozen=True, kw_only=True)
class Failure(Schema):
    """A measurement that failed, with the reason."""

    error: str


@dataclass(frozen=True, kw_only=True)
class Spread(Schema):
    """Median and quartiles over the rounds.

    >>> Spread.from_dict({"median": 2.0, "low": 1.0, "high": 3.0})
    Spread(median=2.0, low=1.0, high=3.0)
    """

    median: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Machine(Schema):
    """The hardware, and the versions of the software on it."""

    platform: str
    cpu: str
    cores: int
    load: float | None = field(default=None, metadata=KEEP_NONE)
    threads: int
    device: str
    gpu: str | None = field(default=None, metadata=KEEP_NONE)
    gpu_memory_gib: float | None = field(default=None, metadata=KEEP_NONE)
    versions: dict[str, str | None] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], *, place: str = "record") -> Self:
        """As :meth:`Schema.from_dict`; every key that is not a field is a version."""
        own = {key: value for key, value in given.items() if key in cls.__dataclass_fields__}
        versions = {key: value for key, value in given.items() if key not in own}
        return super().from_dict({**own, "versions": versions}, place=place)

    def to_dict(self) -> dict[str, Any]:
        """As :meth:`Schema.to_dict`, with the versions beside the other keys."""
        found = super().to_dict()
        versions = found.pop("versions")
        return {**found, **versions}

    @property
    def name(self) -> str:
        """The GPU, or the CPU with its number of threads."""
        return self.gpu or f"{self.cpu}, {self.threads} thread(s)"


@dataclass(frozen=True, kw_only=True)
class Code(Schema):
    """The commit, and whether files differed from it; None where that is not known."""

    commit: str | None = field(metadata=KEEP_NONE)
    dirty: bool | None = field(metadata=KEEP_NONE)


@dataclass(frozen=True, kw_only=True)
class Settings(Schema):
    """The work of an epoch, the budgets of the timings, and the contenders with a description."""

    degree: int
    hidden: int
    dropout: float
    lr: float
    weight_decay: float
    population: int
    quick: bool
    rounds: int
    seconds: float
    rest_rounds: int
    rest_seconds: float
    contenders: dict[str, str]
    precision: str | None = None  # of LON-GNN, if it is not float32


@dataclass(frozen=True, kw_only=True)
class ContenderResult(Schema):
    """Milliseconds per model and epoch, and calls of one epoch of all models."""

    models: int
    ms: Spread
    calls: dict[str, float] | Failure = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EpochPart(Schema):
    """The work of one part of an epoch; with its rates and shares of the ceilings if timed."""

    gather_bytes: float
    bytes: float
    flops: float
    floor_ms: dict[str, float]  # ceiling -> least milliseconds
    ms: float | None = field(metadata=KEEP_NONE)
    gb_s: float | None = None
    gflop_s: float | None = None
    memory_share: float | None = None
    cache_share: float | None = None
    arithmetic_share: float | None = None
    epoch_share: float | None = None


@dataclass(frozen=True, kw_only=True)
class Share(Schema):
    """Where the time of an epoch of all models goes, against the ceilings of the machine."""

    contender: str
    members: int
    epoch_ms: float
    floor_ms: float
    parts: dict[str, EpochPart]


@dataclass(frozen=True, kw_only=True)
class ShareFailure(Failure):
    """Shares of a contender that could not be measured."""

    contender: str


@dataclass(frozen=True, kw_only=True)
class DatasetResult(Schema):
    """Everything measured on one dataset."""

    nodes: int
    edges: int
    features: int
    density: float
    classes: int
    contenders: dict[str, ContenderResult]
    ratios: dict[str, Spread]
    failed: dict[str, str]  # contender -> reason
    memory_mib: dict[str, float | None] | Failure | None = None
    ceilings: list[Share | ShareFailure] | None = None


@dataclass(frozen=True, kw_only=True)
class Ceilings(Schema):
    """What the machine can do, as measured."""

    memory_gb_s: float
    cache_gb_s: float
    float32_gflop_s: float
    tf32_gflop_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Sweep(Schema):
    """Milliseconds against one size, and the power law fitted to the sizes from ``from_`` on."""

    what: str
    axis: str
    fixed: str
    x: list[float]
    ms: list[float]
    exponent: float
    factor: float
    from_: float


@dataclass(frozen=True, kw_only=True)
class GoalResult(Schema):
    """A goal, the number that decides it, and its status.

    ``factor`` is at least 1 where the goal is reached: 1.2 is met with a fifth to spare, 0.8 is
    missed by a fifth.
    """

    name: str
    text: str
    unit: str
    limit: float
    value: float | None = field(metadata=KEEP_NONE)
    factor: float | None = field(metadata=KEEP_NONE)
    dataset: str | None = field(metadata=KEEP_NONE)
    measured: int
    datasets: int
    status: str


@dataclass(frozen=True, kw_only=True)
class Formatted(Schema):
    """A record that names its format: :data:`FORMAT`, of :data:`WHAT`."""

    FORMAT: ClassVar[str]
    WHAT: ClassVar[str]

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], *, place: str = "record") -> Self:
        """As :meth:`Schema.from_dict`; the values must name their format."""
        if not isinstance(given, Mapping) or given.get("format") != cls.FORMAT:
            raise ValueError(f"Expected the record of {cls.WHAT} (got another file)")
        return super().from_dict({k: v for k, v in given.items() if k != "format"}, place=place)

    def to_dict(self) -> dict[str, Any]:
        """As :meth:`Schema.to_dict`, with the format."""
        return {"format": self.FORMAT, **super().to_dict()}


@dataclass(frozen=True, kw_only=True)
class BenchRecord(Formatted):
    """Everything that one call of :func:`~lab.bench.run_bench` measured."""

    FORMAT: ClassVar[str] = "longnn.bench/1"
    WHAT: ClassVar[str] = "a benchmark"

    created: str
    machine: Machine
    code: Code
    settings: Settings
    datasets: dict[str, DatasetResult]
    ceilings: Ceilings | Failure | None = None
    scaling: list[Sweep] | Failure | None = None
    goals: list[GoalResult] = field(default_factory=list)

    @property
    def sweeps(self) -> list[Sweep]:
        """The sweeps of the scaling section; none where it failed or was not asked for."""
        return self.scaling if isinstance(self.scaling, list) else []
