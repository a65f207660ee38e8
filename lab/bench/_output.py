"""A record as files (JSON, Markdown, figures) and as lines for a terminal."""

import json
import os
from pathlib import Path

from lab.bench._record import BenchRecord, Failure, ShareFailure
from lab.bench._tables import Table, tables
from longnn._base.files import write_json, write_text

#: Folders of the results: JSON, Markdown, and SVG and PNG.
RECORDS, TABLES, FIGURES = "records", "tables", "figures"


def read_bench(path: str | Path) -> BenchRecord:
    r"""Read a record.

    Args:
        path: the JSON file, or a folder of results that holds exactly one record.

    Raises:
        FileNotFoundError: if there is no such file, or no record in the folder.
        ValueError: if the file is no record, or the folder holds several.
    """
    path = Path(path)
    if path.is_dir():
        path = _only_record(path)
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: Expected the record of a benchmark as JSON ({error})") from error
    try:
        return BenchRecord.from_dict(given)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _only_record(folder: Path) -> Path:
    files = sorted((folder / RECORDS).glob("*.json"))
    if not files:
        raise FileNotFoundError(f"{folder}: Expected a record in {RECORDS}/ (got none)")
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise ValueError(f"{folder}: Expected one record in {RECORDS}/ (got {names})")
    return files[0]


def write_bench(record: BenchRecord, folder: str | Path, *, name: str | None = None) -> list[Path]:
    r"""Write ``records/NAME.json``, ``tables/NAME.md`` and ``figures/NAME-*`` as SVG and PNG.

    Several machines share one folder of results under different names.

    Args:
        record: to write.
        folder: of the results.
        name: of the machine; by default the device, ``"cpu"`` or ``"cuda"``.

    Returns:
        The files, the record and the tables first.
    """
    folder, name = Path(folder), name or record.machine.device
    for kind in (RECORDS, TABLES, FIGURES):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    from lab.bench._figures import save_figures  # matplotlib is slow to load

    figures = save_figures(record, folder / FIGURES, name)
    file, page = folder / RECORDS / f"{name}.json", folder / TABLES / f"{name}.md"
    write_json(file, record.to_dict())
    drawn = [figure for figure in figures if figure.suffix == ".svg"]
    links = [Path(os.path.relpath(figure, page.parent)).as_posix() for figure in drawn]
    write_text(page, to_markdown(record, links))
    return [file, page, *figures]


def to_markdown(record: BenchRecord, figures: list[str]) -> str:
    r"""The whole record as one page.

    Args:
        record: to show.
        figures: links to the figures.
    """
    text = [f"# Benchmark on {record.machine.name}", ""]
    text += [*(f"- {line}" for line in heading(record)), ""]
    for table in tables(record):
        text += [f"## {table.title}", "", *([table.note, ""] if table.note else [])]
        text += [*markdown_rows(table), ""]
    text += _problems(record)
    text += [line for link in figures for line in (f"![{Path(link).stem}]({link})", "")]
    return "\n".join(text).rstrip() + "\n"


def heading(record: BenchRecord) -> list[str]:
    """Date, commit, machine, versions, work and contenders, one line each."""
    machine, code, settings = record.machine, record.code, record.settings
    commit = code.commit or "unknown"
    changed = " with local changes" if code.dirty else ""
    names = ("longnn", "torch", "torch_geometric", "triton", "python", "cuda")
    found = machine.versions
    versions = ", ".join(f"{name} {found[name]}" for name in names if found.get(name))
    lines = [
        f"date: {record.created}; commit: {commit}{changed}",
        f"machine: {machine.cpu}, {machine.cores} cores, {machine.threads} thread(s)"
        + (f", {machine.gpu}" if machine.gpu else "")
        + f"; {machine.platform}",
        f"versions: {versions}",
        f"work: degree {settings.degree}, hidden {settings.hidden}, dropout "
        f"{settings.dropout:g} on features and hidden channels, Adam, published split 0"
        + (", LON-GNN in TF32" if settings.precision == "tf32" else ""),
    ]
    return lines + [f"{key}: {text}" for key, text in settings.contenders.items()]


def _problems(record: BenchRecord) -> list[str]:
    """What could not be measured, and why."""
    whole = {"scaling": record.scaling, "ceilings": record.ceilings}
    found = [
        f"- {name}: {section.error}"
        for name, section in whole.items()
        if isinstance(section, Failure)
    ]
    for name, result in record.datasets.items():
        found += [f"- {name}, {key}: {reason}" for key, reason in result.failed.items()]
        if isinstance(result.memory_mib, Failure):
            found.append(f"- {name}, memory: {result.memory_mib.error}")
        failed = [s for s in result.ceilings or [] if isinstance(s, ShareFailure)]
        found += [f"- {name}, ceilings: {share.error}" for share in failed]
    return ["## Not measured", "", *found, ""] if found else []


def markdown_rows(table: Table) -> list[str]:
    """A table as lines of Markdown."""
    marks = ["---" if i == 0 or table.words else "--:" for i in range(len(table.heads))]
    return ["| " + " | ".join(row) + " |" for row in (table.heads, marks, *table.rows)]


def lines(record: BenchRecord) -> list[str]:
    """The record for a terminal: what was measured where, and its tables in aligned columns."""
    text = [*heading(record)[:4], ""]
    for table in tables(record, brief=True):
        text += [table.title.upper(), *([table.note] if table.note else []), *aligned(table), ""]
    text += _problems(record)
    return text[:-1] if text and not text[-1] else text


def aligned(table: Table) -> list[str]:
    """A table as lines of a terminal."""
    widths = [max(map(len, column)) for column in zip(table.heads, *table.rows, strict=True)]
    found = []
    for row in (table.heads, *table.rows):
        cells = [
            cell.ljust(width) if i == 0 or table.words else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        found.append("  ".join(cells).rstrip())
    return found
