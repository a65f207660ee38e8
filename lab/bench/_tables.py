"""Tables of a record: views of its rows as text, which Markdown and the terminal both print."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lab.bench._ceilings import say_bound
from lab.bench._contenders import LABELS
from lab.bench._record import KINDS, Cells, Record, Row, cells, hardware, rows, values


@dataclass
class Table:
    """A title, a sentence under it, heads of columns, and rows of cells as text.

    Columns but the first hold numbers, or ``words``, which are aligned left.
    """

    title: str
    note: str
    heads: list[str]
    rows: list[list[str]] = field(default_factory=list)
    words: bool = False

    def markdown(self) -> list[str]:
        """Lines of Markdown, with the title and the note if there are any."""
        marks = ["---" if i == 0 or self.words else "--:" for i in range(len(self.heads))]
        head = [f"## {self.title}", ""] if self.title else []
        head += [self.note, ""] if self.note else []
        return head + ["| " + " | ".join(row) + " |" for row in (self.heads, marks, *self.rows)]

    def lines(self) -> list[str]:
        """Lines of a terminal, in aligned columns."""
        widths = [max(map(len, column)) for column in zip(self.heads, *self.rows, strict=True)]
        aligned = [
            "  ".join(
                cell.ljust(width) if i == 0 or self.words else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in (self.heads, *self.rows)
        ]
        return [text for text in (self.title.upper(), self.note) if text] + aligned


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


def spread(row: Row | None, brief: bool = False) -> str:
    """The value of a row and, unless brief, its quartiles."""
    if row is None:
        return "-"
    if brief or row["low"] is None:
        return number(row["value"])
    return f"{number(row['value'])} [{number(row['low'])}, {number(row['high'])}]"


def tables(record: Record, *, brief: bool = False) -> list[Table]:
    """All tables that the record has numbers for, in reading order; brief ones omit quartiles."""
    kind = KINDS[record["format"]]
    if kind == "epochs":
        made = [_goals(record), *_by_contender(record, brief)]
        made += [_sweeps("Scaling", "call", record, "scaling"), *_ceilings(record)]
    elif kind == "scale":
        made = [_propagation(record), _stages(record)]
        made += [_sweeps("Growth", "stage", record, "sweeps"), _ranks(record), _orders(record)]
        made += [_contests(record), _machine(record)]
    else:
        made = [_depth(record) if kind == "depth" else _ensembles(record)]
    return [table for table in made if table.rows]


def heading(record: Record) -> list[str]:
    """When, where and on what was measured, one line each; the contenders come last."""
    machine, code, kind = record["machine"], record["code"], KINDS[record["format"]]
    settings = record.get("settings", {"contenders": {}})
    text = [f"date: {record['created']}; commit: {code['commit'] or 'unknown'}"]
    if code["dirty"] and kind in ("epochs", "depth"):
        text[0] += " with local changes"
    if kind == "scale" and machine["load"] is not None:
        text[0] += f"; load: {machine['load']:.1f} on {machine['cores']} cores"
    if kind == "epochs":
        names = ("longnn", "torch", "torch_geometric", "triton", "python", "cuda")
        versions = ", ".join(f"{name} {machine[name]}" for name in names if machine.get(name))
        gpu = f", {machine['gpu']}" if machine["gpu"] else ""
        rounded = ", LON-GNN in TF32" if settings.get("precision") == "tf32" else ""
        text += [
            f"machine: {machine['cpu']}, {machine['cores']} cores, {machine['threads']} thread(s)"
            f"{gpu}; {machine['platform']}",
            f"versions: {versions}",
            f"work: degree {settings['degree']}, hidden {settings['hidden']}, dropout "
            f"{settings['dropout']:g} on features and hidden channels, Adam, published split 0"
            f"{rounded}",
        ]
    for name, sizes in record.get("graphs", {}).items():
        text.append(f"{name}: {', '.join(f'{size:,} {what}' for what, size in sizes.items())}")
    told = settings["contenders"].items()
    return text + [f"{DEEP_LABELS.get(key, key)}: {description}" for key, description in told]


def failures(record: Record) -> list[str]:
    """What could not be measured, and why."""
    text = []
    for row in rows(record):
        if row["metric"] in ("error", "failed"):
            what = row["what"] if row["metric"] == "error" else None
            names = [name for name in (row["graph"], row["contender"], what) if name]
            text.append(f"- {', '.join(names)}: {row['value']}")
    return text


# Epochs


def contender_labels(record: Record) -> dict[str, str]:
    """The contenders of a record by key; a population with its number of members."""
    members = record["settings"]["population"]
    return {
        key: f"{label} of {members}" if key == "population" else label
        for key, label in LABELS.items()
        if key in record["settings"]["contenders"]
    }


_CALLS = {"operators": "operators", "sparse_products": "sparse products", "kernels": "kernels"}


def _by_contender(record: Record, brief: bool) -> list[Table]:
    """Times, ratios, calls and memory, each with one row per graph and one column per contender."""
    quartiles = "" if brief else " [quartiles]"
    rounds, labels = record["settings"]["rounds"], contender_labels(record)
    times = cells(record, "contenders")
    kinds = [kind for kind in _CALLS if any(f"calls.{kind}" in cell for cell in times.values())]
    views: dict[str, tuple[str, Cells, Callable[[dict[str, Row]], str]]] = {
        "Epoch times": (
            f"Milliseconds per model and epoch, training and evaluation: median{quartiles} over "
            f"{rounds} rounds in which the contenders take turns.",
            times,
            lambda cell: spread(cell.get("ms"), brief),
        ),
        "Ratios": (
            "How many times longer an epoch of a rival takes than one of LON-GNN. The column of "
            "the population shows how many times less a model costs in the population than alone. "
            f"Median{quartiles} of the ratios of the rounds.",
            cells(record, "ratios"),
            lambda cell: spread(cell.get("ratios"), brief),
        ),
        "Calls": (
            f"Calls per epoch of all models: {' / '.join(_CALLS[kind] for kind in kinds)}.",
            times if kinds else {},
            lambda cell: " / ".join(spread(cell.get(f"calls.{kind}")) for kind in kinds),
        ),
        "Peak memory": (
            "Peak MiB while building and training, for all models of a population together.",
            cells(record, "memory_mib"),
            lambda cell: spread(cell.get("memory_mib")),
        ),
    }
    made = []
    for title, (note, found, show) in views.items():
        shown = [key for key in labels if title != "Ratios" or key != "single"]
        table = Table(title, note, ["dataset", *(labels[key] for key in shown)])
        for graph in dict.fromkeys(graph for graph, _ in found):
            table.rows.append([graph, *(show(found.get((graph, key), {})) for key in shown)])
        made.append(table)
    return made


def _goals(record: Record) -> Table:
    settings = record["settings"]
    quick = " A quick benchmark: these numbers mean little." if settings["quick"] else ""
    note = (
        f"On {hardware(record)}; degree {settings['degree']}, hidden {settings['hidden']}, dropout "
        f"{settings['dropout']:g}. The worst dataset decides a goal over several datasets.{quick}"
    )
    goals = record.get("goals", [])
    told = [[goal["text"], goal_value(goal), goal_status(goal)] for goal in goals]
    return Table("Goals", note, ["goal", "measured", "status"], told, words=True)


def goal_value(goal: dict[str, Any]) -> str:
    """What was measured, with its unit and dataset."""
    if goal["value"] is None:
        return "-"
    unit = "x" if goal["unit"] == "x" else " ms"
    at = f" ({goal['dataset']})" if goal["dataset"] and goal["datasets"] > 1 else ""
    return f"{number(goal['value'])}{unit}{at}"


def goal_status(goal: dict[str, Any]) -> str:
    """Met or missed, and by what factor."""
    factor, measured, datasets = goal["factor"], goal["measured"], goal["datasets"]
    if factor is None:
        return "not measured"
    some = "" if measured == datasets else f" on {measured} of {datasets}"
    word = goal["status"]
    if word == "partial":
        word = "met until now" if factor >= 1 else "missed until now"
    return f"{word}{some}, by a factor of {factor if factor >= 1 else 1 / factor:.2f}"


_CEILINGS = {
    "memory_gb_s": "memory, copy of a large buffer, read + written (GB/s)",
    "cache_gb_s": "cache, copy of a small buffer, read + written (GB/s)",
    "float32_gflop_s": "matrix product, float32 (GFLOP/s)",
    "tf32_gflop_s": "matrix product, tf32 (GFLOP/s)",
}


def _ceilings(record: Record) -> list[Table]:
    """What the machine can do, and how much of it the parts of an epoch reach."""
    measured = cells(record, "ceilings").get((None, None), {})
    machine = Table("Ceilings", "As measured on this machine.", ["ceiling", "measured"])
    machine.rows = [[text, spread(measured[k])] for k, text in _CEILINGS.items() if k in measured]
    note = (
        "Milliseconds per epoch of all models. Bytes are those that the algorithm must move, "
        "gathered rows included. A share above 100 % of memory means that the cache helped."
    )
    heads = ["dataset", "models", "epoch", "floor"]
    parts = ("filter", "features")  # that are timed alone
    for name in parts:
        heads += [f"{name} ms", f"{name} GB/s", "of memory", "of cache", "of arithmetic"]
    shares = Table("Shares of the ceilings", note, heads)
    bounds = Table("What limits an epoch", "", ["dataset", "models", "limit"], words=True)
    for graph, result in record["datasets"].items():
        for share in result.get("ceilings", []):
            if "error" in share:
                continue
            row = [graph, str(share["members"])]
            bounds.rows.append([*row, say_bound(share)])
            row += [number(share["epoch_ms"]), number(share["floor_ms"])]
            for part in (share["parts"][name] for name in parts):
                row += [number(part["ms"]), number(part["gb_s"])]
                row += [f"{part[f'{c}_share']:.0%}" for c in ("memory", "cache", "arithmetic")]
            shares.rows.append(row)
    return [machine, shares, bounds]


def _sweeps(title: str, what: str, record: Record, section: str) -> Table:
    """How the time of each call, or stage, grows."""
    note = "Time grows like the size to the power of the exponent, fitted to the larger half."
    table = Table(title, note, ["size", what, "fixed", "range", "ms", "exponent"], words=True)
    for sweep in values(record, section):
        x, ms = sweep["x"], sweep["ms"]
        sizes, times = f"{x[0]:,.0f} to {x[-1]:,.0f}", f"{number(ms[0])} to {number(ms[-1])}"
        row = [sweep["axis"], sweep["what"], sweep["fixed"], sizes, times]
        table.rows.append([*row, f"{sweep['exponent']:.2f}"])
    return table


# Depth and ensembles

DEEP_LABELS = {
    "deep": "lon-deep",
    "deep_population": "lon-deep population",
    "gcn_deep": "gcn-deep",
    "pyg_sparse": "PyG GCN, sparse matrix",
    "pyg_edges": "PyG GCN, list of edges",
}


def _depth(record: Record) -> Table:
    work = record["settings"]
    note = (
        f"{work['blocks']} blocks or layers of {work['hidden']} channels, degree {work['degree']} "
        f"in lon-deep, dropout {work['dropout']:g}. Milliseconds per model and epoch, training and "
        "evaluation: median [quartiles] over the rounds, in which all take turns. Ratio: to the "
        "faster PyG GCN of the same precision, over the rounds that both have."
    )
    if work["quick"]:
        note += " A quick benchmark: these numbers mean little."
    heads = ["contender", "graph", "precision", "models", "rounds", "ms", "ratio"]
    times = [
        [DEEP_LABELS[cell["contender"]["value"]], graph]
        + [str(cell[metric]["value"]) for metric in ("precision", "models", "rounds")]
        + [spread(cell["ms"]), spread(cell["ratio"])]
        for (graph, _), cell in cells(record, "times").items()
    ]
    return Table("", note, heads, times)


def _ensembles(record: Record) -> Table:
    heads = ["graph", "preset", "members", "one by one, ms", "passes", "in passes, ms", "gain"]
    note = "All members of a portfolio; gain: one by one / in passes."
    times = [
        [
            *(graph, preset, str(cell["members"]["value"]), spread(cell["apart"])),
            *(str(cell["passes"]["value"]), spread(cell["together"]), spread(cell["ratio"], True)),
            spread(cell["difference"]),
        ]
        for (graph, preset), cell in cells(record, "times").items()
    ]
    return Table("", note, [*heads, "difference"], times)


# Large graphs

SCALE_LABELS = {
    "propagate": "longnn, terms of all degrees, written to disk in float16",
    "products": "longnn, the products alone, nothing kept",
    "gather": "gather of the same rows, in memory",
    "sign": "PyG SIGN, powers of all degrees, in memory",
    "sgc": "PyG SGConv, the last power, in memory",
}


def _propagation(record: Record) -> Table:
    note = f"{record['size']}. Rows read per second: float32 rows of neighbours, GB/s."
    heads = ["contender", "seconds [quartiles]", "times as long", "rows read", "peak MiB"]
    ratios, memory = cells(record, "ratios"), cells(record, "memory_mib")
    gigabytes = 4.0 * record["entries"] * record["columns"] * record["steps"] / 1e9
    table = Table("Propagation", note, heads)
    for key, cell in cells(record, "seconds").items():
        seconds, ratio = cell["seconds"], ratios.get(key, {}).get("ratios")
        row = [SCALE_LABELS[key[1]], spread(seconds), spread(ratio, True)]
        row += [number(gigabytes / seconds["value"])]
        table.rows.append([*row, spread(memory.get(key, {}).get("memory_mib"))])
    return table


def _stages(record: Record) -> Table:
    note = (
        f"{record['stage_size']}; training is one epoch on rows. Shares: the time that the "
        "measured disk, or a copy in memory, would need for the same bytes. Files that were just "
        "written are read from memory, so a share of the disk can exceed 100 %."
    )
    heads = ["stage", "seconds", "read", "written", "share of disk", "share of memory"]
    table = Table("Stages", note, heads)
    for stage in values(record, "stages"):
        read, written, seconds = stage["read"], stage["written"], stage["seconds"]
        disk = read / record["read_gb_s"] + written / record["disk_gb_s"]
        shares = [disk, stage["moved"] / record["memory_gb_s"]]
        row = [stage["contender"], number(seconds)]
        row += [f"{size / 1e9:.2f} GB" for size in (read, written)]
        table.rows.append([*row, *(f"{share / 1e9 / seconds:.0%}" for share in shares)])
    return table


def _ranks(record: Record) -> Table:
    note = f"Propagation of {record['size']}; each rank is held to one core."
    found = {key: cell["ranks"] for (_, key), cell in cells(record, "ranks").items()}
    told = found and [
        ["one rank on one core", spread(found["one"]), "1"],
        ["two ranks on two cores", spread(found["two"]), spread(found["ratio"], True)],
    ]
    return Table("Ranks", note, ["", "seconds [quartiles]", "times as fast"], told or [])


def _orders(record: Record) -> Table:
    note = (
        f"{record['order_size']}; nodes are numbered at random. Seconds. An order pays if all "
        f"products, {record['steps']} per block of columns, gain more than it costs."
    )
    heads = ["graph", "order", "to find it and renumber", "one product", "gain"]
    table = Table("Orders of the nodes", note, heads, words=True)
    first: dict[str, float] = {}  # graph -> seconds of a product in the order that it has
    for order in values(record, "orders"):
        graph, seconds = order["graph"], order["product_s"]
        gain = f"{first.setdefault(graph, seconds) / seconds:.2f}x"
        row = [graph, order["contender"], number(order["find_s"]), number(seconds), gain]
        table.rows.append(row)
    return table


def _contests(record: Record) -> Table:
    found = values(record, "contests")
    seeds = len(found[0]["scores"]) if found else 0
    note = (
        f"{record['contest_size']}, {seeds} seeds: mean accuracy on test nodes with its standard "
        "deviation, mean seconds of training. All read the same stored terms, have the same "
        "hidden units and stop by the same rule."
    )
    heads = ["labels", "model", "accuracy %", "seconds", "weights"]
    table = Table("Does learning the filter pay?", note, heads, words=True)
    for one in found:
        score, deviation = statistics.mean(one["scores"]), statistics.pstdev(one["scores"])
        row = [one["graph"], one["model"], f"{100 * score:.1f} ± {100 * deviation:.1f}"]
        table.rows.append([*row, f"{statistics.mean(one['seconds']):.1f}", f"{one['weights']:,}"])
    return table


def _machine(record: Record) -> Table:
    measured = {
        "a file written and synced": "disk_gb_s",
        "a file read from the disk": "read_gb_s",
        "a copy in memory, read plus written": "memory_gb_s",
    }
    rates = [[text, number(record[key])] for text, key in measured.items() if key in record]
    return Table("Machine", "", ["measured", "GB/s"], rates)
