"""The record of the benchmark of large graphs, as JSON, as tables and as a figure."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from longnn._base.files import write_json, write_text
from longnn.bench._record import Code, Machine, Spread, Sweep
from longnn.bench._tables import Table, number, spread
from longnn.records import Schema

FORMAT = "longnn.bench.scale/1"
LABELS = {
    "propagate": "longnn, terms of all degrees, written to disk in float16",
    "gather": "gather of the same rows, in memory",
    "sign": "PyG SIGN, powers of all degrees, in memory",
    "sgc": "PyG SGConv, the last power, in memory",
}


@dataclass(frozen=True, kw_only=True)
class Order(Schema):
    """Seconds to find an order of the nodes and to renumber the graph, and of one product."""

    find_s: float
    product_s: float


@dataclass(frozen=True, kw_only=True)
class ScaleRecord(Schema):
    """Everything that :func:`~longnn.bench.run_scale` measured.

    >>> ScaleRecord.from_dict({"format": "another"})
    Traceback (most recent call last):
    ...
    ValueError: Expected the record of a benchmark of large graphs (got another file)
    """

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
    disk_gb_s: float
    orders: dict[str, Order]
    sweeps: list[Sweep]

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], *, place: str = "record") -> Self:
        """As :meth:`Schema.from_dict`; the values must name their format."""
        if given.get("format") != FORMAT:
            raise ValueError(
                "Expected the record of a benchmark of large graphs (got another file)"
            )
        return super().from_dict({k: v for k, v in given.items() if k != "format"}, place=place)

    def to_dict(self) -> dict[str, Any]:
        """As :meth:`Schema.to_dict`, with the format."""
        return {"format": FORMAT, **super().to_dict()}

    def gathered_gb_s(self, key: str) -> float:
        """GB/s of neighbours' rows, float32, that a contender reads."""
        read = 4.0 * self.entries * self.columns * self.steps
        return read / self.seconds[key].median / 1e9


def scale_tables(record: ScaleRecord) -> list[Table]:
    """The record as tables."""
    note = f"{record.size}. Rows read per second: float32 rows of neighbours, GB/s."
    heads = ["contender", "seconds [quartiles]", "times as long", "rows read", "peak MiB"]
    times = Table("Propagation", note, heads)
    for key, value in record.seconds.items():
        ratio = record.ratios.get(key)
        rate, memory = record.gathered_gb_s(key), record.memory_mib.get(key)
        row = [LABELS[key], spread(value, False), spread(ratio, True), number(rate)]
        times.rows.append([*row, number(memory)])
    machine = Table("Disk", "", ["measured", "GB/s"])
    machine.rows = [["a file written and synced", number(record.disk_gb_s)]]
    note = "Seconds. An order pays if all products together gain more than it costs."
    heads = ["order", "to find it and renumber", "one product", "all products"]
    orders = Table("Orders of the nodes", note, heads)
    for name, one in record.orders.items():
        cells = [one.find_s, one.product_s, one.product_s * record.steps]
        orders.rows.append([name, *map(number, cells)])
    heads = ["size", "fixed", "range", "ms", "exponent"]
    growth = Table("Growth", "Fitted to the larger half of the sizes.", heads, words=True)
    for sweep in record.sweeps:
        sizes = f"{sweep.x[0]:.0f} to {sweep.x[-1]:.0f}"
        span = f"{number(sweep.ms[0])} to {number(sweep.ms[-1])}"
        growth.rows.append([sweep.axis, sweep.fixed, sizes, span, f"{sweep.exponent:.2f}"])
    return [table for table in (times, machine, orders, growth) if table.rows]


def write_scale(record: ScaleRecord, folder: str | Path, *, name: str | None = None) -> list[Path]:
    """Write ``scale/NAME.json``, ``tables/NAME.md`` and ``figures/NAME.svg`` and ``.png``.

    Args:
        record: to write.
        folder: of the results.
        name: by default ``"scale-cpu"`` or ``"scale-cuda"``.
    """
    from longnn.bench._figures import save_sweeps  # matplotlib is slow to load
    from longnn.bench._output import markdown_rows

    folder, name = Path(folder), name or f"scale-{record.machine.device}"
    for kind in ("scale", "tables", "figures"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    figures = save_sweeps(record.sweeps, folder / "figures", name) if record.sweeps else []
    file, page = folder / "scale" / f"{name}.json", folder / "tables" / f"{name}.md"
    write_json(file, record.to_dict())
    text = [f"# Large graphs on {record.machine.name}", ""]
    text += [f"- date: {record.created}; commit: {record.code.commit or 'unknown'}", ""]
    for table in scale_tables(record):
        text += [f"## {table.title}", "", *([table.note, ""] if table.note else [])]
        text += [*markdown_rows(table), ""]
    text += [f"![{name}](../figures/{name}.svg)", ""] if figures else []
    write_text(page, "\n".join(text).rstrip() + "\n")
    return [file, page, *figures]


def scale_lines(record: ScaleRecord) -> list[str]:
    """The record for a terminal."""
    from longnn.bench._output import aligned

    text = [f"machine: {record.machine.name}", ""]
    for table in scale_tables(record):
        text += [table.title.upper(), *([table.note] if table.note else []), *aligned(table), ""]
    return text[:-1]
