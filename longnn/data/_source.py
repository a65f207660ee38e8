"""Where a graph comes from, resolved once: a name or files, and the loader's options.

Whatever the user wrote becomes a :class:`Source`, which says which loader reads it, has checked the
options against that loader, and is plain data in the record of a run. Nothing else compares names
or looks at paths.
"""

import inspect
import numbers
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeGuard

from longnn._base.suggestions import did_you_mean, nearest
from longnn.data._catalog import BUNDLED, CATALOG, canonical_name
from longnn.data._dataset import NodeDataset
from longnn.data._errors import DataError
from longnn.data._files import load_files
from longnn.data._formats import FORMATS, find_nodes_beside, graph_name, names_of
from longnn.data._named import load_named
from longnn.data._options import OPTIONAL, FileOptions, alternatives
from longnn.data._text import table_suffix

Kind = Literal["named", "bundled", "files"]


@dataclass(frozen=True)
class Source:
    """Where a graph comes from: a name or files, and the loader's options.

    Make one with :meth:`resolve`, which checks what it is given.

    Args:
        kind: ``"named"`` (a benchmark dataset), ``"bundled"`` (made or shipped with a package) or
            ``"files"`` (the user's own).
        graph: the canonical name, or the absolute path of an edge file or folder.
        nodes: the absolute path of the node file, where one was given.
        options: for the loader, plain data.

    >>> Source.resolve("Roman_Empire")
    Source(kind='named', graph='roman-empire', nodes=None, options={})
    >>> Source.resolve("csbm", options={"phi": "0.5"}).load()
    NodeDataset('csbm', nodes=800, edges=..., features=320, classes=2, labelled=800, splits=0)
    """

    kind: Kind
    graph: str
    nodes: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def resolve(
        cls,
        graph: str | Path,
        nodes: str | Path | None = None,
        *,
        options: Mapping[str, Any] | None = None,
    ) -> "Source":
        """What the user named, made definite.

        Args:
            graph: a name (case, spaces and underscores do not matter), or the path of an edge file
                or of a folder with ``edges.*`` and ``nodes.*``. A name wins over a folder of that
                name: write ``./cora`` for the folder. A :class:`~pathlib.Path` is never a name.
            nodes: the node file, where ``graph`` is an edge file.
            options: for the loader. Values may be text as typed on a command line: ``"0.5"`` for a
                number, ``"age,height"`` for ``feature_columns``.

        Raises:
            DataError: for an unknown name or option (with the nearest valid ones), or a value of
                the wrong type.
        """
        kind, place = _resolve_graph(graph, nodes)
        node_path = None if nodes is None else _absolute(nodes)
        checked = _check_options(kind, place, options or {})
        if checked.get("feature_file") is not None:
            checked["feature_file"] = _absolute(checked["feature_file"])
        if checked.get("more_rows"):
            checked["more_rows"] = [_absolute(folder) for folder in checked["more_rows"]]
        return cls(kind, place, node_path, checked)

    @property
    def name(self) -> str:
        """The name that the dataset will have.

        >>> Source.resolve("Cora").name
        'cora'
        """
        given = self.options.get("name")
        if given is not None:
            return str(given)
        return self.graph if self.is_named else graph_name(Path(self.graph))

    @property
    def is_named(self) -> bool:
        """Whether it is a named or bundled dataset: one with recipes, its features ready to use."""
        return self.kind != "files"

    def load(self, data_dir: str | Path | None = None) -> NodeDataset:
        """Read the graph; ``dataset.source`` is this source, with the node file it found.

        Args:
            data_dir: where the files of named datasets are (see :func:`load_named`).

        Raises:
            DataError: naming what is wrong with the data.
        """
        source, options = self, self.options
        if self.kind == "named":
            dataset = load_named(self.graph, data_dir, **options)
        elif self.kind == "bundled":
            dataset = BUNDLED[self.graph].make(**options)
        else:
            dataset = load_files(self.graph, self.nodes, **options)
            if self.nodes is None and (beside := find_nodes_beside(Path(self.graph))) is not None:
                source = replace(source, nodes=str(beside))
        if options.get("directed") == "auto":  # so that records have what was found
            source = replace(source, options={**options, "directed": dataset.directed})
        return dataset.with_source(source)

    def like(self, trained_on: "Source") -> "Source":
        """This source, its files read as those of another were: a new graph to predict on.

        Options of ``trained_on`` hold unless this source sets them. The columns of labels and
        splits that come from there, and those that are dropped, may be absent: what is known only
        with the answer is not known of a new graph. A feature file, or rows that are added, belong
        to one graph, so that a new graph needs its own.

        >>> old = Source.resolve("old.csv", "n.csv", options={"label_column": "topic"})
        >>> dict(Source.resolve("new.csv", "m.csv").like(old).options)
        {'label_column': ['topic'], 'optional_columns': ['label_column']}
        """
        if self.is_named or trained_on.is_named:
            return self
        own = ("name", "feature_file", "more_rows", *self.options)
        kept = {k: v for k, v in trained_on.options.items() if k not in own}
        optional = [column for column in OPTIONAL if column in kept]
        kept.pop("optional_columns", None)
        options = {**kept, **self.options}
        if optional:
            options["optional_columns"] = [*options.get("optional_columns", ()), *optional]
        return replace(self, options=options)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for the record of a run."""
        return {
            "kind": self.kind,
            "graph": self.graph,
            "nodes": self.nodes,
            "options": dict(self.options),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Source":
        """From :meth:`to_dict`; records of earlier versions, which have no ``kind``, are read too.

        Raises:
            DataError: if a field is missing, or as :meth:`resolve` does.

        >>> source = Source.resolve("digits", options={"neighbours": 5})
        >>> Source.from_dict(source.to_dict()) == source
        True
        """
        graph, nodes, options = (fields.get(key) for key in ("graph", "nodes", "options"))
        if not _is_place(graph) or not (nodes is None or _is_place(nodes)):
            raise DataError(f"Expected the source of a graph with a `graph` (got {dict(fields)}).")
        if not isinstance(options, Mapping | None):
            raise DataError(f"Expected the source of a graph with `options` (got {options!r}).")
        is_path = fields.get("kind") == "files"
        return cls.resolve(Path(graph) if is_path else graph, nodes, options=options)


def load(
    source: str | Path,
    nodes: str | Path | None = None,
    *,
    data_dir: str | Path | None = None,
    **options: Any,
) -> NodeDataset:
    """A dataset by name, or from the user's files.

    Args:
        source: a named dataset (:func:`list_named`), a bundled one (:func:`list_bundled`), or the
            path of an edge file or of a folder with ``edges.*`` and ``nodes.*``. A name wins over a
            folder of that name: write ``./cora`` for the folder.
        nodes: the node file, where ``source`` is an edge file.
        data_dir: where the files of named datasets are (see :func:`load_named`).
        options: for the loader: of :func:`load_named`, of the bundled dataset, or of
            :func:`load_files`.

    Raises:
        DataError: for an unknown name or option (with the nearest valid ones), or bad data.

    >>> load("csbm", phi=-0.5, num_nodes=40, num_features=8).num_nodes
    40
    """
    return Source.resolve(source, nodes, options=options).load(data_dir)


def _is_place(value: Any) -> TypeGuard[str]:
    """Whether it can be a name or a path: systems end paths at a zero."""
    return isinstance(value, str) and "\0" not in value


def _absolute(path: str | Path) -> str:
    if "\0" in str(path):
        raise DataError(f"Expected a path without null bytes (got {str(path)!r}).", value=path)
    return str(Path(path).expanduser().resolve())


def _resolve_graph(graph: str | Path, nodes: str | Path | None) -> tuple[Kind, str]:
    """The kind of source, and its canonical name or absolute path."""
    text, name = str(graph), canonical_name(str(graph))
    if nodes is None and not isinstance(graph, Path):
        if name in CATALOG:
            return "named", name
        if name in BUNDLED:
            return "bundled", name
    path = Path(graph).expanduser()
    looks_like_path = isinstance(graph, Path) or "/" in text or table_suffix(path) in FORMATS
    if nodes is not None or looks_like_path or path.exists():
        return "files", _absolute(graph)
    names = (*CATALOG, *BUNDLED)
    near = nearest(name, names, count=3)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise DataError(
        f"Expected the name of a dataset or the path of a file (got {text!r}).{hint} Names: "
        f"{', '.join(names)}. Files: {names_of()}.",
        value=graph,
    )


def _check_options(kind: Kind, graph: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the loader wants them, each known to it and of the right type."""
    if kind == "files":
        known = typing.get_type_hints(FileOptions)
    else:
        loader = load_named if kind == "named" else BUNDLED[graph].make
        parameters, hints = inspect.signature(loader).parameters, typing.get_type_hints(loader)
        known = {k: hints[k] for k, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    checked = {}
    for key, value in options.items():
        if key not in known:
            choices = f" (it has {', '.join(known)})" if known else " (it has none)"
            raise DataError(
                f"Unknown data option `{key}` of {graph}{choices}{did_you_mean(key, known)}",
                value=value,
            )
        try:
            checked[key] = _convert(value, known[key])
        except (TypeError, ValueError) as error:
            raise DataError(
                f"Expected data options of another type (got {key}={value!r}: {error})",
                value=value,
            ) from error
    return checked


def _convert(value: Any, hint: Any) -> Any:
    """A value as plain data of the annotated type, from that type or from text."""
    accepted = alternatives(hint)
    if value is None and type(None) in accepted:
        return None
    kinds = [kind for kind in accepted if kind is not type(None)]
    if bool in kinds and len(kinds) > 1:  # true, false or a word
        (words,) = [typing.get_args(kind) for kind in kinds if kind is not bool]
        if isinstance(value, str) and value.lower() in words:
            return value.lower()
        try:
            return _truth(value)
        except TypeError:
            raise TypeError(f"true, false or {' or '.join(words)} is needed") from None
    (wanted,) = kinds
    return _CONVERTERS[typing.get_origin(wanted) or wanted](value)


def _truth(value: Any) -> bool:
    text = str(value).lower() if isinstance(value, str) else value
    if text in ("true", "false"):
        return bool(text == "true")
    if not isinstance(value, bool):
        raise TypeError("true or false is needed")
    return value


def _number(value: Any, kind: type = float) -> Any:
    wanted = numbers.Integral if kind is int else numbers.Real
    if not isinstance(value, str) and (isinstance(value, bool) or not isinstance(value, wanted)):
        raise TypeError("a whole number is needed" if kind is int else "a number is needed")
    return kind(value)


def _text(value: Any) -> str:
    """Text; a number too, since columns may be called 0, 1, ...; or a path."""
    if not isinstance(value, str | numbers.Real | Path):
        raise TypeError("text is needed")
    if "\0" in str(value):
        raise ValueError("text without null bytes is needed")
    return str(value)


def _texts(value: Any) -> list[str]:
    """A list of text, or text that lists it with commas."""
    if isinstance(value, str):
        return [part.strip() for part in _text(value).split(",")]
    if isinstance(value, numbers.Real):
        return [str(value)]
    if not isinstance(value, Sequence):
        raise TypeError("a list of text is needed")
    return [_text(part) for part in value]


#: By annotation of the loader's option. Choices (``Literal``) are checked by the loader itself.
_CONVERTERS: dict[Any, Callable[[Any], Any]] = {
    bool: _truth,
    int: lambda value: _number(value, int),
    float: _number,
    str: _text,
    Sequence: _texts,
    Literal: _text,
}
