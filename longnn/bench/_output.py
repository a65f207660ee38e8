"""A record as files (JSON, Markdown, figures) and as lines for a terminal."""

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longnn._base.files import write_json, write_text
from longnn.bench._tables import Table, tables

RECORD, PAGE = "bench.json", "bench.md"
_FORMAT = "longnn.bench/1"

Record = Mapping[str, Any]


def read_bench(path: str | Path) -> dict[str, Any]:
    """A record from its file, or from the folder that holds it."""
    path = Path(path)
    path = path / RECORD if path.is_dir() else path
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"Expected {path} to be a benchmark's record ({error})") from error
    if not isinstance(record, dict) or record.get("format") != _FORMAT:
        raise ValueError(f"Expected {path} to be a benchmark's record (got another file)")
    return record


def write_bench(record: Record, folder: str | Path) -> list[Path]:
    """Write bench.json, bench.md and the figures; returns the files.

    Without matplotlib there are no figures: read the record where there is, and write it again.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / RECORD, record)
    figures: list[Path] = []
    if importlib.util.find_spec("matplotlib") is not None:
        from longnn.bench._figures import save_figures

        figures = save_figures(record, folder)
    write_text(folder / PAGE, to_markdown(record, [f.name for f in figures if f.suffix == ".svg"]))
    return [folder / RECORD, folder / PAGE, *figures]


def to_markdown(record: Record, figures: list[str]) -> str:
    """The whole record as a page."""
    text = [f"# Benchmark on {_where(record)}", "", *(f"- {line}" for line in heading(record)), ""]
    for table in tables(record):
        text += [f"## {table.title}", "", *([table.note, ""] if table.note else [])]
        text += [*_markdown_rows(table), ""]
    text += _problems(record)
    text += [line for name in figures for line in (f"![{Path(name).stem}]({name})", "")]
    return "\n".join(text).rstrip() + "\n"


def _where(record: Record) -> str:
    machine = record["machine"]
    return str(machine["gpu"] or f"{machine['cpu']}, {machine['threads']} thread(s)")


def heading(record: Record) -> list[str]:
    """Who measured what, and when."""
    machine, code, settings = record["machine"], record["code"], record["settings"]
    commit = code["commit"] or "unknown"
    changed = " with local changes" if code["dirty"] else ""
    names = ("longnn", "torch", "torch_geometric", "triton", "python", "cuda")
    versions = ", ".join(f"{name} {machine[name]}" for name in names if machine.get(name))
    lines = [
        f"date: {record['created']}; commit: {commit}{changed}",
        f"machine: {machine['cpu']}, {machine['cores']} cores, {machine['threads']} thread(s)"
        + (f", {machine['gpu']}" if machine["gpu"] else "")
        + f"; {machine['platform']}",
        f"versions: {versions}",
        f"work: degree {settings['degree']}, hidden {settings['hidden']}, dropout "
        f"{settings['dropout']:g} on features and inside, Adam, published split 0",
    ]
    return lines + [f"{key}: {text}" for key, text in settings["contenders"].items()]


def _problems(record: Record) -> list[str]:
    """What could not be measured, and why."""
    found = [
        f"- {part}: {record[part]['error']}"
        for part in ("scaling", "ceilings")
        if isinstance(record.get(part), dict) and "error" in record[part]
    ]
    for name, part in record["datasets"].items():
        found += [f"- {name}, {key}: {reason}" for key, reason in part["failed"].items()]
        if "error" in (part.get("memory_mib") or {}):
            found.append(f"- {name}, memory: {part['memory_mib']['error']}")
        shares = part.get("ceilings", [])
        found += [f"- {name}, ceilings: {s['error']}" for s in shares if "error" in s]
    return ["## Not measured", "", *found, ""] if found else []


def _markdown_rows(table: Table) -> list[str]:
    marks = ["---" if i == 0 or table.words else "--:" for i in range(len(table.heads))]
    return ["| " + " | ".join(row) + " |" for row in (table.heads, marks, *table.rows)]


def lines(record: Record) -> list[str]:
    """The record for a terminal: what was measured where, and its tables in aligned columns."""
    text = [*heading(record)[:4], ""]
    for table in tables(record, brief=True):
        text += [table.title.upper(), *([table.note] if table.note else []), *_aligned(table), ""]
    text += _problems(record)
    return text[:-1] if text and not text[-1] else text


def _aligned(table: Table) -> list[str]:
    widths = [max(map(len, column)) for column in zip(table.heads, *table.rows, strict=True)]
    found = []
    for row in (table.heads, *table.rows):
        cells = [
            cell.ljust(width) if i == 0 or table.words else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        found.append("  ".join(cells).rstrip())
    return found
