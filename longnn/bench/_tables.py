"""A record as tables: headings and cells of text, which Markdown and the terminal both print."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from longnn.bench._contenders import LABELS

Record = Mapping[str, Any]


@dataclass
class Table:
    """A title, a sentence under it, headings and rows; all but the first column are numbers."""

    title: str
    note: str
    heads: list[str]
    rows: list[list[str]] = field(default_factory=list)
    words: bool = False  # the cells are text, to be set flush left


def tables(record: Record, *, brief: bool = False) -> list[Table]:
    """All tables the record has numbers for, in reading order; brief ones show no quartiles."""
    made = [goals_table(record), epochs_table(record, brief), ratios_table(record, brief)]
    made += [calls_table(record), memory_table(record), scaling_table(record)]
    return [table for table in [*made, *ceilings_tables(record)] if table.rows]


def number(value: float | None) -> str:
    """Three digits, in full.

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


def spread(summary: Mapping[str, float] | None, brief: bool) -> str:
    """A median and its quartiles."""
    if summary is None:
        return "-"
    if brief:
        return number(summary["median"])
    return f"{number(summary['median'])} [{number(summary['low'])}, {number(summary['high'])}]"


def _keys(record: Record) -> list[str]:
    return [key for key in LABELS if key in record["settings"]["contenders"]]


def _label(key: str, record: Record) -> str:
    members = record["settings"]["population"]
    return f"{LABELS[key]} of {members}" if key == "population" else LABELS[key]


def _quartiles(brief: bool) -> str:
    return "" if brief else " [quartiles]"


def epochs_table(record: Record, brief: bool = False) -> Table:
    """Milliseconds an epoch of each contender on each dataset."""
    keys = _keys(record)
    note = (
        f"Milliseconds a model and epoch, training and evaluation: median{_quartiles(brief)} "
        f"over {record['settings']['rounds']} rounds, contenders in turn."
    )
    table = Table("Epoch times", note, ["dataset", *(_label(key, record) for key in keys)])
    for name, part in record["datasets"].items():
        cells = [spread(part["contenders"].get(key, {}).get("ms"), brief) for key in keys]
        table.rows.append([name, *cells])
    return table


def ratios_table(record: Record, brief: bool = False) -> Table:
    """How many times longer the others take than one model of LON-GNN."""
    keys = [key for key in _keys(record) if key != "single"]
    note = (
        "How many times longer a rival's epoch takes than LON-GNN's; in the column of the "
        f"population, how many times cheaper a model is in it than alone. Median"
        f"{_quartiles(brief)} of the rounds' ratios."
    )
    table = Table("Ratios", note, ["dataset", *(_label(key, record) for key in keys)])
    for name, part in record["datasets"].items():
        table.rows.append([name, *(spread(part["ratios"].get(key), brief) for key in keys)])
    return table


_CALLS = {"operators": "operators", "sparse_products": "sparse products", "kernels": "kernels"}


def calls_table(record: Record) -> Table:
    """Operators, or kernels on a GPU, that an epoch calls."""
    keys = _keys(record)
    first: dict[str, Any] = {}
    for part in record["datasets"].values():
        for contender in part["contenders"].values():
            first = first or contender.get("calls", {})
    kinds = [kind for kind in _CALLS if kind in first]
    note = f"Calls of an epoch of all its models: {' / '.join(_CALLS[kind] for kind in kinds)}."
    table = Table("Calls", note, ["dataset", *(_label(key, record) for key in keys)])
    for name, part in record["datasets"].items() if kinds else ():
        calls = [part["contenders"].get(key, {}).get("calls", {}) for key in keys]
        cells = [" / ".join(number(call.get(kind)) for kind in kinds) for call in calls]
        table.rows.append([name, *cells])
    return table


def memory_table(record: Record) -> Table:
    """Peak memory of each contender on each dataset."""
    keys = _keys(record)
    note = "MiB at the peak of building and training, all models of a population together."
    table = Table("Peak memory", note, ["dataset", *(_label(key, record) for key in keys)])
    for name, part in record["datasets"].items():
        found = part.get("memory_mib")
        if found is not None and "error" not in found:
            table.rows.append([name, *(number(found.get(key)) for key in keys)])
    return table


def scaling_table(record: Record) -> Table:
    """Each sweep with its exponent."""
    note = "Time grows as the size to this power, fitted to the larger half of the sizes."
    heads = ["against", "of", "at", "sizes", "ms", "exponent"]
    table = Table("Scaling", note, heads, words=True)
    for sweep in _sweeps(record):
        sizes = f"{sweep['x'][0]} to {sweep['x'][-1]}"
        times = f"{number(sweep['ms'][0])} to {number(sweep['ms'][-1])}"
        row = [sweep["axis"], sweep["what"], sweep["fixed"], sizes, times]
        table.rows.append([*row, f"{sweep['exponent']:.2f}"])
    return table


def _sweeps(record: Record) -> list[dict[str, Any]]:
    found = record.get("scaling")
    return found if isinstance(found, list) else []


_CEILINGS = {
    "memory_gb_s": "memory, copy of a large buffer, read + written (GB/s)",
    "cache_gb_s": "cache, copy of a small buffer, read + written (GB/s)",
    "float32_gflop_s": "matrix product, float32 (GFLOP/s)",
    "tf32_gflop_s": "matrix product, tf32 (GFLOP/s)",
}


def ceilings_tables(record: Record) -> list[Table]:
    """What the machine can do, and what the parts of an epoch reach of it."""
    found = record.get("ceilings")
    if found is None or "error" in found:
        return []
    machine = Table("Ceilings", "As measured on this machine.", ["ceiling", "measured"])
    machine.rows = [[text, number(found[key])] for key, text in _CEILINGS.items() if key in found]
    note = (
        "Milliseconds an epoch of all models. Bytes are those the algorithm must move, gathered "
        "rows included; a share above 100 % of memory is the cache's doing."
    )
    heads = ["dataset", "models", "epoch", "floor"]
    for part in ("filter", "features"):
        heads += [f"{part} ms", f"{part} GB/s", "of memory", "of cache", "of arithmetic"]
    shares = Table("Shares of the ceilings", note, heads)
    bounds = Table("What bounds an epoch", "", ["dataset", "models", "bound"], words=True)
    for name, dataset in record["datasets"].items():
        for share in dataset.get("ceilings", []):
            if "error" not in share:
                shares.rows.append(_share_row(name, share))
                bounds.rows.append([name, str(share["members"]), share["words"]])
    return [machine, shares, bounds]


def _share_row(name: str, share: Record) -> list[str]:
    row = [name, str(share["members"]), number(share["epoch_ms"]), number(share["floor_ms"])]
    for part in ("filter", "features"):
        p = share["parts"][part]
        row += [number(p["ms"]), number(p["gb_s"])]
        row += [f"{p[key]:.0%}" for key in ("memory_share", "cache_share", "arithmetic_share")]
    return row


def goals_table(record: Record) -> Table:
    """Each goal with what was measured and how it stands."""
    table = Table("Goals", goals_note(record), ["goal", "measured", "status"], words=True)
    for goal in record["goals"]:
        table.rows.append([goal["text"], goal_value(goal), goal_status(goal)])
    return table


def goals_note(record: Record) -> str:
    """Under which conditions the goals were judged."""
    settings, machine = record["settings"], record["machine"]
    where = machine["gpu"] or f"{machine['cpu']}, {machine['threads']} thread(s)"
    quick = " A quick run: these numbers mean little." if settings["quick"] else ""
    return (
        f"On {where}; degree {settings['degree']}, hidden {settings['hidden']}, dropout "
        f"{settings['dropout']:g}. A goal over several datasets is judged by the worst.{quick}"
    )


def goal_value(goal: Mapping[str, Any]) -> str:
    """What was measured, with its unit and dataset."""
    if goal["value"] is None:
        return "-"
    unit = "x" if goal["unit"] == "x" else " ms"
    at = f" ({goal['dataset']})" if goal["dataset"] and goal["datasets"] > 1 else ""
    return f"{number(goal['value'])}{unit}{at}"


def goal_status(goal: Mapping[str, Any]) -> str:
    """Met or missed, and by what factor."""
    if goal["factor"] is None:
        return "not measured"
    some = (
        ""
        if goal["measured"] == goal["datasets"]
        else (f" on {goal['measured']} of {goal['datasets']}")
    )
    word = {"met": "met", "missed": "missed"}.get(goal["status"])
    word = word or ("met so far" if goal["factor"] >= 1 else "missed so far")
    by = goal["factor"] if goal["factor"] >= 1 else 1 / goal["factor"]
    return f"{word}{some}, by a factor of {by:.2f}"
