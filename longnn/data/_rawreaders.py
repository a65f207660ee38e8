"""The published files of the named datasets → tensors, one function per format.

The functions read what PyG's dataset classes read, and give the same numbers, but trust nothing in
a file: they unpickle nothing, and look at indices before compiled code does. Where the files come
from is the business of :mod:`longnn.data._rawfiles`.
"""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from pyarrow import csv as pacsv
from torch import Tensor

from longnn.data._arrays import Archive
from longnn.data._errors import DataError, readable, require_memory
from longnn.data._pickles import read_pickle
from longnn.data._tensors import GraphTensors

_VALIDATION = 500  # nodes of Planetoid's public split


def read_planetoid(paths: Sequence[Path]) -> GraphTensors:
    """Planetoid's eight files: seven pickles and the list of test nodes.

    ``allx`` and ``ally`` are the nodes up to the test nodes, ``tx`` and ``ty`` the test nodes in
    the order of ``test.index``; where that list has gaps (CiteSeer), the missing nodes are zero.
    """
    _, tx, allx, y, ty, ally, graph, _ = (
        None if i == 0 or i == len(paths) - 1 else read_pickle(path) for i, path in enumerate(paths)
    )
    tx, allx = (_dense(found, path) for found, path in ((tx, paths[1]), (allx, paths[2])))
    y, ty, ally = (_dense(f, path) for f, path in ((y, paths[3]), (ty, paths[4]), (ally, paths[5])))
    listed = torch.from_numpy(_whole_numbers(paths[7])[:, 0])
    first, last = int(listed.min()), int(listed.max())
    gap_free = last - first + 1
    nodes = len(allx) + gap_free
    fits = len(allx) == len(ally) and len(tx) == len(ty) == len(listed) and first == len(allx)
    if not fits or len(listed.unique()) != len(listed) or gap_free > 2 * len(listed):
        raise DataError(
            f"Expected the test nodes {len(allx)}, ... as `tx` and `ty` have them (got "
            f"{len(listed)} nodes {first}..{last} for {len(tx)} and {len(ty)} rows).",
            path=paths[7],
        )
    if tx.shape[1] != allx.shape[1] or ty.shape[1] != ally.shape[1]:
        raise DataError("Expected as many columns as in `allx` and `ally`.", path=paths[1])
    if len(y) + _VALIDATION > nodes:
        raise DataError(f"Expected at most {nodes - _VALIDATION} rows.", path=paths[3])
    x, labels = (torch.zeros(nodes, known.shape[1]) for known in (allx, ally))
    for made, known, test in ((x, allx, tx), (labels, ally, ty)):
        made[: len(known)] = known
        made[listed] = test
    splits = (torch.arange(len(y)), torch.arange(len(y), len(y) + _VALIDATION), listed)
    train, val, test = (_mask(nodes_in, nodes) for nodes_in in splits)
    return GraphTensors(
        x=x,
        edge_index=_edges_of_dict(graph, nodes, paths[6]),
        y=labels.max(dim=1)[1],
        train_mask=train,
        val_mask=val,
        test_mask=test,
    )


def read_csr_archive(paths: Sequence[Path]) -> GraphTensors:
    """The archives of Shchur et al.: adjacency and features as CSR matrices; words are 0 or 1."""
    archive = Archive(paths[0])
    adjacency = sp.coo_array(archive.matrix("adj_"))
    features = _dense(archive.matrix("attr_"), paths[0])
    features[features > 0] = 1
    nodes = len(features)
    if adjacency.shape != (nodes, nodes):
        raise DataError(f"Expected {nodes} nodes (got {adjacency.shape}).", path=paths[0])
    arcs = torch.from_numpy(np.stack([adjacency.row, adjacency.col]).astype(np.int64))
    arcs = _both_ways(arcs[:, arcs[0] != arcs[1]], nodes)
    return GraphTensors(x=features, edge_index=arcs, y=_labels(archive, "labels", nodes))


def read_heterophilous(paths: Sequence[Path]) -> GraphTensors:
    """The archives of Platonov et al.: features, labels, edges and ten splits."""
    archive = Archive(paths[0])
    x = torch.from_numpy(_entry(archive, "node_features", "biuf", 2)).float()
    arcs = _entry(archive, "edges", "iu", 2).astype(np.int64).T
    masks = {
        f"{part}_mask": torch.from_numpy(_entry(archive, f"{part}_masks", "b", 2)).t().contiguous()
        for part in ("train", "val", "test")
    }
    both = _both_ways(_arcs(arcs, len(x), paths[0]), len(x))
    return GraphTensors(x=x, edge_index=both, y=_labels(archive, "node_labels", len(x)), **masks)


def read_arxiv(paths: Sequence[Path]) -> GraphTensors:
    """The tables of ogbn-arxiv, which have no header: edges, features, classes, and the split."""
    arcs, x, y, *sets = (
        _numbers(path, "biuf" if place == 1 else "iu") for place, path in enumerate(paths)
    )
    nodes = len(x)
    if len(y) != nodes:
        raise DataError(f"Expected {nodes} labels (got {len(y)}).", path=paths[2])
    masks = {}
    for part, listed, path in zip(("train", "val", "test"), sets, paths[3:], strict=True):
        if listed.min() < 0 or listed.max() >= nodes:
            raise DataError(f"Expected nodes 0..{nodes - 1}.", path=path)
        masks[f"{part}_mask"] = _mask(torch.from_numpy(listed[:, 0]), nodes)
    return GraphTensors(
        x=torch.from_numpy(x).float(),
        edge_index=_arcs(arcs.T, nodes, paths[0]),
        y=torch.from_numpy(y[:, 0]),
        **masks,
    )


def _numbers(path: Path, kinds: str) -> np.ndarray:  # (rows, columns)
    """The cells of a table without a header, which are numbers of one of these kinds."""
    with readable(path, "table of numbers"):
        options = pacsv.ReadOptions(autogenerate_column_names=True)
        table = pacsv.read_csv(path, read_options=options)
        numbers = np.stack([column.to_numpy() for column in table.columns], axis=1)
        if numbers.dtype.kind not in kinds:
            raise ValueError(f"cells of type {numbers.dtype}")
        return numbers


def read_geom_gcn(
    paths: Sequence[Path], words: Callable[[Path, list[tuple[int, str]]], Tensor]
) -> GraphTensors:
    """Geom-GCN's text files: number, features and class of each node; then edges, splits."""
    rows = _rows(paths[0], cells=3)
    numbers = [_number(cells[0], paths[0], line) for line, cells in rows]
    if sorted(numbers) != list(range(len(rows))):
        raise DataError(f"Expected the nodes 0..{len(rows) - 1}, each once.", path=paths[0])
    rows = [rows[i] for i in np.argsort(numbers)]
    x = words(paths[0], [(line, cells[1]) for line, cells in rows])
    y = torch.tensor([_number(cells[2], paths[0], line) for line, cells in rows])
    arcs = _arcs(_whole_numbers(paths[1], skip=1, cells=2).T, len(x), paths[1])
    masks: dict[str, list[Tensor]] = {"train_mask": [], "val_mask": [], "test_mask": []}
    for path in paths[2:]:
        archive = Archive(path)
        for key, found in masks.items():
            mask = _entry(archive, key, "biuf", 1)
            if len(mask) != len(x):
                raise DataError(f"Expected `{key}` of {len(x)} nodes.", path=path)
            found.append(torch.from_numpy(mask != 0))
    stacked = {key: torch.stack(found, dim=1) for key, found in masks.items()}
    return GraphTensors(x=x, edge_index=_once(arcs, len(x)), y=y, **stacked)


def _words_in_full(path: Path, texts: list[tuple[int, str]]) -> Tensor:
    """Features written one by one: ``0,1,0,...``."""
    width = texts[0][1].count(",") + 1
    rows = []
    for line, text in texts:
        cells = text.split(",")
        try:
            rows.append(np.array([float(cell) for cell in cells], dtype=np.float32))
        except ValueError as error:
            raise DataError(f"Expected numbers ({error}).", path=path, row=line) from error
        if len(cells) != width:
            raise DataError(f"Expected {width} features (got {len(cells)}).", path=path, row=line)
    return torch.from_numpy(np.stack(rows))


def _words_by_number(path: Path, texts: list[tuple[int, str]]) -> Tensor:
    """The numbers of the features that are 1, as in the files of Actor."""
    found = [[_number(cell, path, line) for cell in text.split(",")] for line, text in texts]
    width = max(max(numbers) for numbers in found) + 1
    require_memory(4.0 * len(texts) * width, f"{width} features of {len(texts)} nodes", path=path)
    x = torch.zeros(len(texts), width)
    for i, numbers in enumerate(found):
        x[i, numbers] = 1.0
    return x


def _dense(found: Any, path: Path) -> Tensor:
    """An array or CSR matrix of two dimensions as float32."""
    if not isinstance(found, np.ndarray | sp.csr_array) or found.ndim != 2:
        raise DataError(f"Expected a matrix (got {type(found).__name__}).", path=path)
    rows, columns = found.shape
    require_memory(2.0 * rows * columns * found.dtype.itemsize, f"{rows} x {columns}", path=path)
    dense = found.toarray() if isinstance(found, sp.csr_array) else found
    return torch.from_numpy(np.ascontiguousarray(dense)).float()


def _edges_of_dict(graph: object, nodes: int, path: Path) -> Tensor:
    """Arcs of a table {node: [neighbours]}."""
    plain = isinstance(graph, dict) and all(
        type(key) is int and isinstance(ends, list) and all(type(end) is int for end in ends)
        for key, ends in graph.items()
    )
    if not isinstance(graph, dict) or not plain:
        raise DataError("Expected a table of nodes and their neighbours.", path=path)
    pairs = [(key, end) for key, ends in graph.items() for end in ends]
    try:
        arcs = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    except OverflowError as error:
        raise DataError(f"Expected nodes 0..{nodes - 1} ({error}).", path=path) from error
    ends = _arcs(arcs, nodes, path)
    return _once(ends[:, ends[0] != ends[1]], nodes)


def _mask(chosen: Tensor, nodes: int) -> Tensor:
    return torch.zeros(nodes, dtype=torch.bool).index_fill_(0, chosen, True)


def _once(arcs: Tensor, nodes: int) -> Tensor:  # (2, arcs)
    """Arcs sorted, each once."""
    key = torch.unique(arcs[0] * nodes + arcs[1])
    return torch.stack([key // nodes, key % nodes])


def _both_ways(arcs: Tensor, nodes: int) -> Tensor:
    return _once(torch.cat([arcs, arcs.flip(0)], dim=1), nodes)


def _arcs(arcs: np.ndarray, nodes: int, path: Path) -> Tensor:  # (2, arcs)
    if arcs.shape[0] != 2 or arcs.size == 0 or arcs.min() < 0 or arcs.max() >= nodes:
        raise DataError(f"Expected edges between the nodes 0..{nodes - 1}.", path=path)
    return torch.from_numpy(np.ascontiguousarray(arcs))


def _entry(archive: Archive, key: str, kinds: str, dimensions: int) -> np.ndarray:
    found = archive.get(key)
    if found is None or found.dtype.kind not in kinds or found.ndim != dimensions:
        got = "none" if found is None else f"{found.dtype} {found.shape}"
        raise DataError(
            f"Expected an array `{key}` of {dimensions} dimensions (got {got}).", path=archive.path
        )
    return found


def _labels(archive: Archive, key: str, nodes: int) -> Tensor:
    labels = _entry(archive, key, "iu", 1)
    if len(labels) != nodes:
        raise DataError(f"Expected {nodes} labels (got {len(labels)}).", path=archive.path)
    return torch.from_numpy(labels.astype(np.int64))


def _rows(path: Path, *, cells: int, skip: int = 1) -> list[tuple[int, list[str]]]:
    """The number and the cells of each line of a text file, without the header."""
    try:
        lines = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"Expected a text file (got {error}).", path=path) from error
    rows = [(line, text.split("\t")) for line, text in lines if line > skip and text.strip()]
    wrong = [(line, len(row)) for line, row in rows if len(row) != cells]
    if wrong or not rows:
        line, got = wrong[0] if wrong else (None, "no line")
        raise DataError(f"Expected {cells} cells in a line (got {got}).", path=path, row=line)
    return rows


def _whole_numbers(path: Path, *, skip: int = 0, cells: int = 1) -> np.ndarray:  # (lines, cells)
    rows = _rows(path, cells=cells, skip=skip)
    return np.array([[_number(cell, path, line) for cell in row] for line, row in rows])


def _number(text: str, path: Path, line: int) -> int:
    """A whole number from 0 up to what an index can be."""
    plain = text.strip()
    if not (plain.isascii() and plain.isdecimal() and len(plain) < 16):
        raise DataError(f"Expected a whole number (got {text[:40]!r}).", path=path, row=line)
    return int(plain)


READERS: dict[str, Callable[[Sequence[Path]], GraphTensors]] = {
    "planetoid": read_planetoid,
    "csr-archive": read_csr_archive,
    "heterophilous": read_heterophilous,
    "word-lists": functools.partial(read_geom_gcn, words=_words_in_full),
    "word-numbers": functools.partial(read_geom_gcn, words=_words_by_number),
    "arxiv": read_arxiv,
}
