"""A bug is data: code, and what to write in its place. Here it is read, found and planted.

It is bound to code and not to the name of a file, so that it stays the same bug when code moves. It
must not know how tests are run.
"""

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

TABLE = Path(__file__).with_name("bugs.toml")
#: What a bug may be planted in: code and data of the package.
KINDS = (".py", ".toml", ".html", ".txt")


@dataclasses.dataclass(frozen=True)
class Bug:
    """One line of the table; see its head for what the fields mean."""

    name: str
    kind: str
    about: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    tests: tuple[str, ...]
    status: str = "planted"

    def find(self, sources: Mapping[Path, str]) -> tuple[Path, str] | None:
        """The file and its text with the bug in it; None where its code is not, or is twice."""
        for old, new in zip(self.old, self.new, strict=True):
            code = pattern(old)
            hits = [(path, hit) for path, text in sources.items() for hit in code.finditer(text)]
            if len(hits) == 1:
                path, hit = hits[0]
                return path, _replaced(sources[path], hit, old, new)
        return None


def read_bugs(path: Path = TABLE) -> list[Bug]:
    """All bugs of the table, in its order."""
    bugs = []
    for name, fields in tomllib.loads(path.read_text(encoding="utf-8")).items():
        old, new = (_forms(fields.pop(key)) for key in ("old", "new"))
        new = new * len(old) if len(new) == 1 else new
        if len(old) != len(new):
            raise ValueError(f"Expected as many forms of `new` as of `old` in [{name}] of {path}")
        bugs.append(Bug(name, old=old, new=new, tests=tuple(fields.pop("tests")), **fields))
    return bugs


def read_sources(root: Path) -> dict[Path, str]:
    """The text of every file of the package under a root."""
    paths = sorted((root / "longnn").rglob("*"))
    return {path: path.read_text(encoding="utf-8") for path in paths if path.suffix in KINDS}


def pattern(code: str) -> "re.Pattern[str]":
    """Matches the lines of a piece of code, however far they are indented.

    >>> pattern("a\\n    b").search("x:\\n    a\\n        b") is not None
    True
    """
    lines = [re.escape(line.strip()) for line in code.strip().splitlines()]
    return re.compile(r"\n[ \t]*".join(lines))


def _forms(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _replaced(text: str, hit: "re.Match[str]", old: str, new: str) -> str:
    """The text with the lines of `new` instead, indented as those that they replace."""
    start = text.rfind("\n", 0, hit.start()) + 1
    line = text[start : hit.start()]
    indent = line[: len(line) - len(line.lstrip())]
    first, *rest = new.strip("\n").splitlines() or [""]
    lines = [first, *(indent + each if each.strip() else "" for each in rest)]
    return text[: hit.start()] + "\n".join(lines) + text[hit.end() :]
