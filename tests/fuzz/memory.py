"""Graphs and parameters handed over in Python, malformed."""

import networkx
import numpy as np
import pandas as pd
import polars
import pyarrow as pa

from longnn.data import from_data, from_networkx, from_pandas, from_scipy
from tests.fuzz.arrays import adjacency, as_data, lie, matrix_arrays, wrong_fields
from tests.fuzz.cases import Case, fuzzed, learn
from tests.fuzz.draw import CELLS, NUMBERS, PLAIN, mutate_rows
from tests.fuzz.tables import ARROW, graph_rows


def _lying_matrix(draw):
    """A SciPy matrix whose arrays were changed after it was made."""
    matrix = adjacency(draw).asformat(draw.choice(("csr", "csc", "coo")))
    arrays = lie(draw, matrix_arrays(matrix))
    for key in ("data", "indices", "indptr"):
        if key in arrays and draw.chance(0.7):
            vars(matrix)[key] = arrays[key]
    if draw.chance(0.2):
        vars(matrix)["_shape"] = draw.choice(((10**6, 10**6), (2, 2), (0, 0), (10**9, 10**9)))
    return matrix


@fuzzed("from-data")
def pyg(draw, folder):
    fields, options = wrong_fields(draw), {}
    if draw.chance(0.3):
        lists, texts = ("classes", "ids", "feature_names", "targets"), ("task", "default_split")
        key = draw.choice((*lists, *texts))
        words = ("regression", "multilabel", "own", "published", "", "x")
        values = (["a"], ["a", "b"], ["<b>", "", "é"], ["a"] * 20, [])
        options[key] = draw.choice(values if key in lists else words)
    return Case(
        lambda: from_data(as_data(fields), **options), learn, (), f"{fields!s:.3000} {options}"
    )


@fuzzed("frames")
def frames(draw, folder):
    """Data frames of three packages, NetworkX graphs and SciPy matrices."""
    edges, nodes = (mutate_rows(draw, t) if draw.chance(0.5) else t for t in graph_rows(draw))
    kind = draw.choice((_pandas, polars.DataFrame, _arrow, networkx.Graph, "matrix"))
    if kind == "matrix":
        given = _lying_matrix(draw) if draw.chance(0.5) else draw.choice((5, None, np.eye(3), "x"))
        return Case(
            lambda: from_scipy(given), learn, (), f"{getattr(given, '__dict__', given)!s:.3000}"
        )
    if kind is networkx.Graph:
        graph = networkx.MultiDiGraph() if draw.chance(0.3) else networkx.Graph()
        for row in filter(None, nodes[1:]):
            key = draw.choice((row[0], row[0], 1.5, (1, 2)))
            graph.add_node(key, **dict(zip(("size", "hue", "label"), row[1:], strict=False)))
        for row in (row for row in edges[1:] if len(row) > 1):
            graph.add_edge(row[0], row[1], weight=draw.choice((*NUMBERS, *PLAIN[:8])))
        return Case(lambda: from_networkx(graph), learn, (), str(list(graph.edges)))
    tables = []
    for rows in (edges, nodes):
        names = rows[0][: min(map(len, rows))]
        columns = {name: [row[i] for row in rows[1:]] for i, name in enumerate(names)}
        tables.append(kind(columns) if kind is polars.DataFrame else kind(draw, columns))
    if draw.chance(0.1):
        tables = draw.choice(((None, tables[1]), (tables[0], 5), ("x", "y"), ({}, [])))
    return Case(lambda: from_pandas(*tables), learn, (), f"{edges} {nodes}")


def _pandas(draw, columns):
    frame = pd.DataFrame(columns)
    if columns and draw.chance(0.5):
        n, values = len(frame), (*NUMBERS, *PLAIN, *CELLS)
        kinds = (
            lambda: pd.Series([draw.choice(values) for _ in range(n)], dtype=object),
            lambda: pd.to_datetime(pd.Series(range(n)), unit="D", utc=True),
            lambda: pd.Series([1 + 2j] * n),
            lambda: pd.Series([pd.NA] * n, dtype="Int64"),
            lambda: pd.Series(pd.arrays.SparseArray([0.0] * n)),
            lambda: pd.Series(pd.interval_range(0, n)),
        )
        frame[draw.choice(list(columns))] = draw.choice(kinds)()
    if draw.chance(0.2):
        frame.columns = [draw.choice((*NUMBERS, "a", None, ("a", "b"))) for _ in frame.columns]
    return frame


def _arrow(draw, columns):
    arrays = {name: pa.array(values, pa.string()) for name, values in columns.items()}
    if arrays and draw.chance(0.6):
        name = draw.choice(sorted(arrays))
        arrays[name] = draw.choice(ARROW)(draw, len(arrays[name]))
    return pa.table(arrays)
