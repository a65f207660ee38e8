"""Tables of explanations as files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow

from longnn._base.files import write_json, writing
from longnn._base.tables import write_table

ENDINGS = (".csv", ".parquet", ".json")


def check_path(path: Path) -> Path:
    """The path, if a table can be written there.

    Raises:
        ValueError: for another ending, or a folder that does not exist.

    >>> check_path(Path("why.json")).name
    'why.json'
    """
    if path.suffix not in ENDINGS:
        raise ValueError(f"Expected a file that ends in {', '.join(ENDINGS)} (got {path})")
    if not path.parent.is_dir():
        raise ValueError(f"Expected a file in an existing folder (got {path.parent})")
    return path


def save_tables(
    tables: Mapping[str, pyarrow.Table], about: Mapping[str, Any], path: Path
) -> list[Path]:
    """Write tables: the first to the file named, the others beside it; JSON holds all in one.

    In CSV files, texts that a spreadsheet would run as a formula get an apostrophe.
    """
    check_path(path)
    if path.suffix == ".json":
        with writing(path):
            write_json(path, {**about, **{name: t.to_pylist() for name, t in tables.items()}})
        return [path]
    written: list[Path] = []
    for name, table in tables.items():
        target = path if not written else path.with_name(f"{path.stem}-{name}{path.suffix}")
        if written and not len(table):
            continue
        write_table(table, target)
        written.append(target)
    return written
