"""The record of large graphs as tables, files and lines for a terminal."""

import statistics
from pathlib import Path

from lab.bench._forecast import PAPERS, forecast_table
from lab.bench._output import aligned, markdown_rows
from lab.bench._scalerecord import Contest, ScaleRecord
from lab.bench._scalewords import scale_words
from lab.bench._tables import Table, number, spread, sweep_table
from longnn._base.files import write_json, write_text

LABELS = {
    "propagate": "longnn, terms of all degrees, written to disk in float16",
    "products": "longnn, the products alone, nothing kept",
    "gather": "gather of the same rows, in memory",
    "sign": "PyG SIGN, powers of all degrees, in memory",
    "sgc": "PyG SGConv, the last power, in memory",
}
#: Folders of the results, and the name of the tables on paper.
RECORDS, TABLES, FIGURES, PAPER = "scale", "tables", "figures", "papers100m"
#: The name of the record of a CPU.
CPU = "scale-cpu"


def scale_tables(record: ScaleRecord) -> list[Table]:
    """The tables that the record has numbers for."""
    made = [_propagation(record), _stages(record), _growth(record), _ranks(record)]
    made += [_orders(record), _contests(record), _machine(record)]
    return [table for table in made if table.rows]


def _propagation(record: ScaleRecord) -> Table:
    note = f"{record.size}. Rows read per second: float32 rows of neighbours, GB/s."
    heads = ["contender", "seconds [quartiles]", "times as long", "rows read", "peak MiB"]
    table = Table("Propagation", note, heads)
    for key, value in record.seconds.items():
        ratio = record.ratios.get(key)
        rate, memory = record.gathered_gb_s(key), record.memory_mib.get(key)
        row = [LABELS[key], spread(value, False), spread(ratio, True), number(rate)]
        table.rows.append([*row, number(memory)])
    return table


def _stages(record: ScaleRecord) -> Table:
    note = (
        f"{record.stage_size}; training is one epoch on rows. Shares: the time that the measured "
        "disk, or a copy in memory, would need for the same bytes. Files that were just written "
        "are read from memory, so a share of the disk can exceed 100 %."
    )
    heads = ["stage", "seconds", "read", "written", "share of disk", "share of memory"]
    table = Table("Stages", note, heads)
    for name, stage in record.stages.items():
        assert record.read_gb_s is not None
        assert record.memory_gb_s is not None
        disk = stage.read / record.read_gb_s + stage.written / record.disk_gb_s
        shares = [disk, stage.moved / record.memory_gb_s]
        cells = [f"{share / 1e9 / stage.seconds:.0%}" for share in shares]
        sizes = [f"{size / 1e9:.2f} GB" for size in (stage.read, stage.written)]
        table.rows.append([name, number(stage.seconds), *sizes, *cells])
    return table


def _growth(record: ScaleRecord) -> Table:
    return sweep_table("Growth", "stage", record.sweeps)


def _ranks(record: ScaleRecord) -> Table:
    note = f"Propagation of {record.size}; each rank is held to one core."
    table = Table("Ranks", note, ["", "seconds [quartiles]", "times as fast"])
    if record.ranks is not None:
        table.rows.append(["one rank on one core", spread(record.ranks.one, False), "1"])
        ratio = number(record.ranks.ratio.median)
        table.rows.append(["two ranks on two cores", spread(record.ranks.two, False), ratio])
    return table


def _orders(record: ScaleRecord) -> Table:
    note = (
        f"{record.order_size}; nodes are numbered at random. Seconds. An order pays if all "
        f"products, {record.steps} per block of columns, gain more than it costs."
    )
    heads = ["graph", "order", "to find it and renumber", "one product", "gain"]
    table = Table("Orders of the nodes", note, heads, words=True)
    for graph, orders in record.orders.items():
        first = next(iter(orders.values())).product_s
        for name, one in orders.items():
            gain = f"{first / one.product_s:.2f}x"
            table.rows.append([graph, name, number(one.find_s), number(one.product_s), gain])
    return table


def _contests(record: ScaleRecord) -> Table:
    seeds = len(record.contests[0].scores) if record.contests else 0
    note = (
        f"{record.contest_size}, {seeds} seeds: mean accuracy on test nodes with its standard "
        "deviation, mean seconds of training. All read the same stored terms, have the same "
        "hidden units and stop by the same rule."
    )
    heads = ["labels", "model", "accuracy %", "seconds", "weights"]
    table = Table("Does learning the filter pay?", note, heads, words=True)
    for one in record.contests:
        score = f"{100 * _mean(one):.1f} ± {100 * statistics.pstdev(one.scores):.1f}"
        seconds = f"{statistics.mean(one.seconds):.1f}"
        table.rows.append([one.graph, one.model, score, seconds, f"{one.weights:,}"])
    return table


def _mean(contest: Contest) -> float:
    return statistics.mean(contest.scores)


def _machine(record: ScaleRecord) -> Table:
    table = Table("Machine", "", ["measured", "GB/s"])
    measured = {
        "a file written and synced": record.disk_gb_s,
        "a file read from the disk": record.read_gb_s,
        "a copy in memory, read plus written": record.memory_gb_s,
    }
    table.rows = [[k, number(v)] for k, v in measured.items() if v is not None]
    return table


def page_of(record: ScaleRecord, name: str) -> str:
    """The record as a page of Markdown."""
    text = [f"# Large graphs on {record.machine.name}", ""]
    text += [
        f"- date: {record.created}; commit: {record.code.commit or 'unknown'}{_load(record)}",
        "",
    ]
    for table in scale_tables(record):
        text += _section(table)
    text += [f"![{name}](../figures/{name}.svg)", ""] if record.sweeps else []
    return "\n".join(text).rstrip() + "\n"


def _load(record: ScaleRecord) -> str:
    """How busy the machine was, where that is known: other work makes times longer."""
    load = record.machine.load
    return "" if load is None else f"; load: {load:.1f} on {record.machine.cores} cores"


def _section(table: Table) -> list[str]:
    note = [table.note, ""] if table.note else []
    return [f"## {table.title}", "", *note, *markdown_rows(table), ""]


def write_scale(record: ScaleRecord, folder: str | Path, *, name: str | None = None) -> list[Path]:
    """Write ``scale/NAME.json``, ``tables/NAME.md`` and ``figures/NAME.svg`` and ``.png``.

    Of a CPU with all its stages, also ``tables/NAME-words.md``, sentences for the page of large
    graphs. Where there is such a record, also ``tables/papers100m.md``, see :func:`write_paper`.

    Args:
        record: to write.
        folder: of the results.
        name: by default ``"scale-cpu"`` or ``"scale-cuda"``.
    """
    from lab.bench._figures import save_sweeps  # matplotlib is slow to load

    folder, name = Path(folder), name or f"scale-{record.machine.device}"
    for kind in (RECORDS, TABLES, FIGURES):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    figures = save_sweeps(record.sweeps, folder / FIGURES, name) if record.sweeps else []
    file, page = folder / RECORDS / f"{name}.json", folder / TABLES / f"{name}.md"
    write_json(file, record.to_dict())
    write_text(page, page_of(record, name))
    more: list[Path] = []
    cpu = CPU
    if record.stages and record.machine.device == "cpu":
        words, cpu = folder / TABLES / f"{name}-words.md", name
        write_text(words, words_of(record))
        more.append(words)
    if (folder / RECORDS / f"{cpu}.json").exists():  # the others are on that page, too
        more.append(write_paper(folder, cpu))
    return [file, page, *more, *figures]


def words_of(record: ScaleRecord) -> str:
    """The sentences as a list of Markdown."""
    return "\n".join(f"- {text}" for text in scale_words(record)) + "\n"


def write_paper(
    folder: str | Path,
    cpu: str = CPU,
    *,
    gpu: str = "scale-h200",
    block: str = "scale-block",
) -> Path:
    """Write ``tables/papers100m.md`` from the record of a CPU, and of others where they are there.

    Args:
        folder: of the results.
        cpu: name of the record of a CPU.
        gpu: of a GPU.
        block: of one block of columns of a graph like that, on the CPU: a check of the forecast.
    """
    folder = Path(folder)
    paths = (folder / RECORDS / f"{name}.json" for name in (cpu, gpu, block))
    own, *others = (ScaleRecord.read(path) if path.exists() else None for path in paths)
    assert own is not None
    table = forecast_table(PAPERS, own, *others)
    text = "\n".join(_section(table)).rstrip().removeprefix("#") + "\n"
    page = folder / TABLES / f"{PAPER}.md"
    write_text(page, text)
    return page


def scale_lines(record: ScaleRecord) -> list[str]:
    """The record for a terminal."""
    text = [f"machine: {record.machine.name}", ""]
    for table in scale_tables(record):
        text += [table.title.upper(), *([table.note] if table.note else []), *aligned(table), ""]
    return text[:-1]
