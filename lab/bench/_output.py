"""A record as files (JSON, Markdown, figures), as lines of a terminal, and beside another one."""

from pathlib import Path

from lab.bench._conclusions import PAPERS, forecast_table, scale_words
from lab.bench._figures import save_figures
from lab.bench._record import KINDS, Record, folder_of, hardware, read_bench, rows
from lab.bench._tables import Table, failures, heading, number, tables
from longnn._base.files import write_json, write_text

TITLES = {
    "epochs": "Benchmark",
    "depth": "Depth",
    "ensembles": "Ensembles",
    "scale": "Large graphs",
}


def write_bench(record: Record, folder: str | Path, *, name: str | None = None) -> list[Path]:
    r"""Write the record as JSON, ``tables/NAME.md``, and ``figures/NAME*`` as SVG and PNG.

    Several machines share one folder of results under different names. A record of large graphs
    on a CPU with all its stages also has ``tables/NAME-words.md``, sentences for a page. Where
    there is such a record, ``tables/papers100m.md`` is written, too: a graph that was not run,
    computed from it and from the record ``scale-h200`` of a GPU.

    Args:
        record: to write.
        folder: of the results.
        name: by default the device, and before it the kind of the record if it is not epochs.

    Returns:
        The files, the record and the tables first.
    """
    kind, device = KINDS[record["format"]], record["machine"]["device"]
    name = name or (device if kind == "epochs" else f"{kind}-{device}")
    records, pages, drawn = (Path(folder, part) for part in (folder_of(kind), "tables", "figures"))
    for part in (records, pages, drawn):
        part.mkdir(parents=True, exist_ok=True)
    figures = save_figures(record, drawn, name)
    file, page = records / f"{name}.json", pages / f"{name}.md"
    write_json(file, record)
    links = [f"../figures/{figure.name}" for figure in figures if figure.suffix == ".svg"]
    write_text(page, to_markdown(record, links))
    files, cpu = [file, page], "scale-cpu"
    if kind == "scale" and device == "cpu" and record["stages"]:
        files.append(pages / f"{name}-words.md")
        write_text(files[-1], "".join(f"- {text}\n" for text in scale_words(record)))
        cpu = name
    if kind == "scale" and (records / f"{cpu}.json").exists():
        gpu = records / "scale-h200.json"
        others = [read_bench(path) for path in (records / f"{cpu}.json", gpu) if path.exists()]
        paper = forecast_table(PAPERS, *others).markdown()
        files.append(pages / "papers100m.md")
        write_text(files[-1], "\n".join(paper).removeprefix("#") + "\n")
    return [*files, *figures]


def rebuild_bench(folder: str | Path) -> list[str]:
    """Write the files of all records in a folder of results again; returns their names."""
    names = []
    for kind in KINDS.values():
        for path in sorted(Path(folder, folder_of(kind)).glob("*.json")):
            write_bench(read_bench(path), folder, name=path.stem)
            names.append(path.stem)
    return names


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
