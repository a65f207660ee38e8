"""A record as files (JSON, Markdown, figures), as lines of a terminal, and beside another one."""

from pathlib import Path

from lab.bench._figures import save_figures
from lab.bench._goals import goals_table
from lab.bench._history import (
    DEEP_LABELS,
    ceiling_tables,
    depth_tables,
    ensemble_tables,
    forecast_table,
    scale_tables,
    scale_words,
)
from lab.bench._record import KINDS, Record, folder_of, hardware, read_bench, rows
from lab.bench._tables import Table, epoch_tables, number, sweeps_table
from longnn._base.files import write_json, write_text

TITLES = {
    "epochs": "Benchmark",
    "depth": "Depth",
    "ensembles": "Ensembles",
    "scale": "Large graphs",
}


def write_bench(record: Record, folder: str | Path, *, name: str | None = None) -> list[Path]:
    r"""Write the record as JSON, ``tables/NAME.md``, and ``figures/NAME*`` as SVG and PNG.

    Several machines share one folder of results under different names.

    Args:
        record: to write.
        folder: of the results.
        name: by default the device.

    Returns:
        The files, the record and the tables first.
    """
    name = name or record["machine"]["device"]
    kind = folder_of(KINDS[record["format"]])
    records, pages, drawn = (Path(folder, part) for part in (kind, "tables", "figures"))
    for part in (records, pages, drawn):
        part.mkdir(parents=True, exist_ok=True)
    figures = save_figures(record, drawn, name)
    file, page = records / f"{name}.json", pages / f"{name}.md"
    write_json(file, record)
    links = [f"../figures/{figure.name}" for figure in figures if figure.suffix == ".svg"]
    write_text(page, to_markdown(record, links))
    return [file, page, *figures]


def rebuild_bench(folder: str | Path) -> list[str]:
    """Write the files of all records in a folder of results again; returns their names."""
    names = []
    for kind in KINDS.values():
        for path in sorted(Path(folder, folder_of(kind)).glob("*.json")):
            write_bench(read_bench(path), folder, name=path.stem)
            names.append(path.stem)
    cpu, gpu = (read_bench(Path(folder, "scale", f"scale-{name}.json")) for name in ("cpu", "h200"))
    words = "".join(f"- {text}\n" for text in scale_words(cpu))
    write_text(Path(folder, "tables", "scale-cpu-words.md"), words)
    paper = "\n".join(forecast_table(cpu, gpu).markdown()) + "\n"
    write_text(Path(folder, "tables", "papers100m.md"), paper.removeprefix("#"))
    return names


def tables(record: Record, *, brief: bool = False) -> list[Table]:
    """All tables that the record has numbers for, in reading order; brief ones omit quartiles."""
    kind = KINDS[record["format"]]
    if kind == "epochs":
        every = [goals_table(record), *epoch_tables(record, brief), *ceiling_tables(record)]
    elif kind == "scale":
        every = scale_tables(record, sweeps_table("Growth", "stage", record, "sweeps"))
    else:
        every = (depth_tables if kind == "depth" else ensemble_tables)(record)
    return [table for table in every if table.rows]


def heading(record: Record) -> list[str]:
    """When, where and on what was measured, one line each; the contenders come last."""
    machine, code, kind = record["machine"], record["code"], KINDS[record["format"]]
    settings = record.get("settings", {"contenders": {}})
    text = [f"date: {record['created']}; commit: {code['commit'] or 'unknown'}"]
    if code["dirty"] and kind == "epochs":
        text[0] += " with local changes"
    if kind == "scale":
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


def to_markdown(record: Record, figures: list[str]) -> str:
    """The whole record as one page, with links to its figures."""
    text = [f"# {TITLES[KINDS[record['format']]]} on {hardware(record)}", ""]
    text += [*(f"- {line}" for line in heading(record)), ""]
    for table in tables(record):
        text += [*table.markdown(), ""]
    failed = failures(record)
    text += ["## Not measured", "", *failed, ""] if failed else []
    text += [line for link in figures for line in (f"![{Path(link).stem}]({link})", "")]
    return "\n".join(text).rstrip() + "\n"


def lines(record: Record) -> list[str]:
    """The record for a terminal: where and on what was measured, and its tables."""
    told = record.get("settings", {}).get("contenders", {})
    head = heading(record)
    text = [f"machine: {hardware(record)}", *head[: len(head) - len(told)], ""]
    for table in tables(record, brief=True):
        text += [*table.lines(), ""]
    return [*text, *failures(record)] if failures(record) else text[:-1]


def compare_records(before: Record, after: Record) -> Table:
    """Every number that two records share, and how many times larger the second is."""
    numbers = [
        {
            tuple(row[key] or "" for key in ("what", "graph", "contender", "metric")): row["value"]
            for row in rows(record)
            if isinstance(row["value"], int | float) and row["what"] not in ("goals", "datasets")
        }
        for record in (before, after)
    ]
    note = f"Before: {hardware(before)}. After: {hardware(after)}."
    heads = ["what", "graph", "contender", "metric", "before", "after", "ratio"]
    table = Table("Comparison", note, heads)
    for key, old in numbers[0].items():
        if key in numbers[1]:
            new = numbers[1][key]
            ratio = number(new / old) if old else "-"
            table.rows.append([*key, number(old), number(new), ratio])
    return table
