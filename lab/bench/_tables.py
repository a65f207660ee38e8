"""A record as tables: headings and cells of text, which Markdown and the terminal both print."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lab.bench._ceilings import say_bound
from lab.bench._contenders import LABELS
from lab.bench._record import BenchRecord, Ceilings, GoalResult, Share, Spread, Sweep

#: Parts of an epoch that are timed alone.
_TIMED = ("filter", "features")


@dataclass
class Table:
    r"""One table.

    Args:
        title: of the table.
        note: a sentence under the title.
        heads: of the columns.
        rows: cells as text; all columns but the first hold numbers.
        words: all columns hold words, which are aligned left.
    """

    title: str
    note: str
    heads: list[str]
    rows: list[list[str]] = field(default_factory=list)
    words: bool = False


def tables(record: BenchRecord, *, brief: bool = False) -> list[Table]:
    """All tables that the record has numbers for, in reading order; brief ones omit quartiles."""
    made = [goals_table(record), epochs_table(record, brief), ratios_table(record, brief)]
    made += [calls_table(record), memory_table(record), scaling_table(record)]
    return [table for table in [*made, *ceilings_tables(record)] if table.rows]


def number(value: float | None) -> str:
    r"""A number with three digits, without an exponent in everyday sizes.

    >>> number(0.04567), number(12.345), number(12345.6), number(None)
    ('0.0457', '12.3', '12346', '-')
    """
    if value is None:
        return "-"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}" if size >= 0.001 else f"{value:.2e}"


def spread(summary: Spread | None, brief: bool) -> str:
    """A median and, unless brief, its quartiles."""
    if summary is None:
        return "-"
    if brief:
        return number(summary.median)
    return f"{number(summary.median)} [{number(summary.low)}, {number(summary.high)}]"


def contender_keys(record: BenchRecord) -> list[str]:
    """The contenders of a record in the order of the tables."""
    return [key for key in LABELS if key in record.settings.contenders]


def contender_label(key: str, record: BenchRecord) -> str:
    """The name of a contender; a population with its number of members."""
    return f"{LABELS[key]} of {record.settings.population}" if key == "population" else LABELS[key]


def _quartiles(brief: bool) -> str:
    return "" if brief else " [quartiles]"


def _by_contender(title: str, note: str, keys: list[str], record: BenchRecord) -> Table:
    """An empty table with one column per contender."""
    return Table(title, note, ["dataset", *(contender_label(key, record) for key in keys)])


def epochs_table(record: BenchRecord, brief: bool = False) -> Table:
    """Milliseconds per epoch of each contender on each dataset."""
    keys = contender_keys(record)
    note = (
        f"Milliseconds per model and epoch, training and evaluation: median{_quartiles(brief)} "
        f"over {record.settings.rounds} rounds in which the contenders take turns."
    )
    table = _by_contender("Epoch times", note, keys, record)
    for name, found in record.datasets.items():
        times = {key: contender.ms for key, contender in found.contenders.items()}
        table.rows.append([name, *(spread(times.get(key), brief) for key in keys)])
    return table


def ratios_table(record: BenchRecord, brief: bool = False) -> Table:
    """How many times longer the others take than one LON-GNN model."""
    keys = [key for key in contender_keys(record) if key != "single"]
    note = (
        "How many times longer an epoch of a rival takes than one of LON-GNN. The column of the "
        "population shows how many times less a model costs in the population than alone. Median"
        f"{_quartiles(brief)} of the ratios of the rounds."
    )
    table = _by_contender("Ratios", note, keys, record)
    for name, found in record.datasets.items():
        table.rows.append([name, *(spread(found.ratios.get(key), brief) for key in keys)])
    return table


_CALLS = {"operators": "operators", "sparse_products": "sparse products", "kernels": "kernels"}


def calls_table(record: BenchRecord) -> Table:
    """Operators, or kernels on a GPU, that an epoch calls."""
    keys = contender_keys(record)
    calls: dict[str, dict[str, dict[str, float]]] = {  # dataset -> contender -> kind -> count
        name: {
            key: contender.calls
            for key, contender in found.contenders.items()
            if isinstance(contender.calls, dict)
        }
        for name, found in record.datasets.items()
    }
    counted = {kind for found in calls.values() for count in found.values() for kind in count}
    kinds = [kind for kind in _CALLS if kind in counted]
    note = f"Calls per epoch of all models: {' / '.join(_CALLS[kind] for kind in kinds)}."
    table = _by_contender("Calls", note, keys, record)
    for name, found in calls.items() if kinds else ():
        counts = [found.get(key, {}) for key in keys]
        cells = [" / ".join(number(count.get(kind)) for kind in kinds) for count in counts]
        table.rows.append([name, *cells])
    return table


def memory_table(record: BenchRecord) -> Table:
    """Peak memory of each contender on each dataset."""
    keys = contender_keys(record)
    note = "Peak MiB while building and training, for all models of a population together."
    table = _by_contender("Peak memory", note, keys, record)
    for name, found in record.datasets.items():
        if isinstance(found.memory_mib, dict):
            table.rows.append([name, *(number(found.memory_mib.get(key)) for key in keys)])
    return table


def scaling_table(record: BenchRecord) -> Table:
    """Each sweep with its exponent."""
    return sweep_table("Scaling", "call", record.sweeps)


def sweep_table(title: str, what: str, sweeps: Sequence[Sweep]) -> Table:
    """How the time of each call, or stage, grows."""
    note = "Time grows like the size to the power of the exponent, fitted to the larger half."
    table = Table(title, note, ["size", what, "fixed", "range", "ms", "exponent"], words=True)
    for sweep in sweeps:
        sizes = f"{sweep.x[0]:,.0f} to {sweep.x[-1]:,.0f}"
        times = f"{number(sweep.ms[0])} to {number(sweep.ms[-1])}"
        row = [sweep.axis, sweep.what, sweep.fixed, sizes, times]
        table.rows.append([*row, f"{sweep.exponent:.2f}"])
    return table


_CEILINGS = {
    "memory_gb_s": "memory, copy of a large buffer, read + written (GB/s)",
    "cache_gb_s": "cache, copy of a small buffer, read + written (GB/s)",
    "float32_gflop_s": "matrix product, float32 (GFLOP/s)",
    "tf32_gflop_s": "matrix product, tf32 (GFLOP/s)",
}


def ceilings_tables(record: BenchRecord) -> list[Table]:
    """What the machine can do, and how much of it the parts of an epoch reach."""
    if not isinstance(record.ceilings, Ceilings):
        return []
    machine = Table("Ceilings", "As measured on this machine.", ["ceiling", "measured"])
    found = record.ceilings.to_dict()
    machine.rows = [[text, number(found[key])] for key, text in _CEILINGS.items() if key in found]
    note = (
        "Milliseconds per epoch of all models. Bytes are those that the algorithm must move, "
        "gathered rows included. A share above 100 % of memory means that the cache helped."
    )
    heads = ["dataset", "models", "epoch", "floor"]
    for name in _TIMED:
        heads += [f"{name} ms", f"{name} GB/s", "of memory", "of cache", "of arithmetic"]
    shares = Table("Shares of the ceilings", note, heads)
    bounds = Table("What limits an epoch", "", ["dataset", "models", "limit"], words=True)
    for dataset, result in record.datasets.items():
        for share in result.ceilings or []:
            if isinstance(share, Share):
                shares.rows.append(_share_row(dataset, share))
                bounds.rows.append([dataset, str(share.members), say_bound(share)])
    return [machine, shares, bounds]


def _share_row(dataset: str, share: Share) -> list[str]:
    row = [dataset, str(share.members), number(share.epoch_ms), number(share.floor_ms)]
    for name in _TIMED:
        part = share.parts[name]
        row += [number(part.ms), number(part.gb_s)]
        shares = (part.memory_share, part.cache_share, part.arithmetic_share)
        row += ["-" if value is None else f"{value:.0%}" for value in shares]
    return row


def goals_table(record: BenchRecord) -> Table:
    """Each goal with what was measured and its status."""
    table = Table("Goals", goals_note(record), ["goal", "measured", "status"], words=True)
    for goal in record.goals:
        table.rows.append([goal.text, goal_value(goal), goal_status(goal)])
    return table


def goals_note(record: BenchRecord) -> str:
    """The conditions under which the goals were checked."""
    settings = record.settings
    quick = " A quick benchmark: these numbers mean little." if settings.quick else ""
    return (
        f"On {record.machine.name}; degree {settings.degree}, hidden {settings.hidden}, dropout "
        f"{settings.dropout:g}. The worst dataset decides a goal over several datasets.{quick}"
    )


def goal_value(goal: GoalResult) -> str:
    """What was measured, with its unit and dataset."""
    if goal.value is None:
        return "-"
    unit = "x" if goal.unit == "x" else " ms"
    at = f" ({goal.dataset})" if goal.dataset and goal.datasets > 1 else ""
    return f"{number(goal.value)}{unit}{at}"


def goal_status(goal: GoalResult) -> str:
    """Met or missed, and by what factor."""
    if goal.factor is None:
        return "not measured"
    some = "" if goal.measured == goal.datasets else f" on {goal.measured} of {goal.datasets}"
    word = {"met": "met", "missed": "missed"}.get(goal.status)
    word = word or ("met until now" if goal.factor >= 1 else "missed until now")
    by = goal.factor if goal.factor >= 1 else 1 / goal.factor
    return f"{word}{some}, by a factor of {by:.2f}"
