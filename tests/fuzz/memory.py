"""Graphs and parameters handed over in Python, malformed."""

import networkx
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import torch

from longnn import LONGNNClassifier, LONGNNRegressor
from longnn.data import from_data, from_networkx, from_pandas, from_scipy
from longnn.data._synthetic import csbm
from longnn.graphs import GraphOperator
from tests.fuzz import material
from tests.fuzz.arrays import adjacency, as_data, lie, matrix_arrays, wrong_fields
from tests.fuzz.cases import Case, fuzzed, learn
from tests.fuzz.draw import CELLS, NUMBERS, PLAIN, mutate_rows
from tests.fuzz.settings import DEFAULTS
from tests.fuzz.tables import ARROW, graph_rows


def _lying_tensor(draw):
    """A torch sparse tensor whose indices were never checked."""
    matrix = adjacency(draw).asformat(draw.choice(("csr", "csc")))
    held = lie(draw, matrix_arrays(matrix))
    kind = draw.choice((torch.sparse_csr_tensor, torch.sparse_csc_tensor, None))
    with torch.sparse.check_sparse_tensor_invariants(False):
        try:
            size = tuple(int(n) for n in np.asarray(held["shape"]).reshape(-1)[:2])
            pointer, index, values = (
                torch.from_numpy(held[k]) for k in ("indptr", "indices", "data")
            )
            if kind is not None:
                return kind(pointer.long(), index.long(), values, size)
            pairs = torch.stack([index.long(), index.long().flip(0)])
            return torch.sparse_coo_tensor(pairs, values, size)
        except (OverflowError, RuntimeError, TypeError, ValueError):
            return torch.eye(4).to_sparse()


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


@fuzzed("graph-operator")
def graph_operator(draw, folder):
    options, fields = {}, wrong_fields(draw)
    if draw.chance(0.3):
        key = draw.choice(("normalization", "self_loops", "symmetrize", "duplicates", "dtype"))
        words = ("random_walk", "add", "remove", "error")
        options[key] = draw.choice((*words, True, torch.float64, torch.int8, None, []))
    nodes = draw.choice((None, None, *NUMBERS, *PLAIN))
    make, given = draw.choice(
        (
            (GraphOperator.from_torch_sparse, [_lying_tensor(draw)]),
            (GraphOperator.from_scipy, [_lying_matrix(draw)]),
            (GraphOperator.from_data, [as_data(fields)]),
            (
                GraphOperator.from_edge_index,
                [fields.get("edge_index"), fields.get("edge_weight"), nodes],
            ),
        )
    )

    def use(operator):
        repr(operator)
        operator @ torch.ones(operator.num_nodes, 2, dtype=operator.dtype)

    what = f"{make.__name__} of {fields!s:.3000} or a matrix, {nodes!s:.99}, {options}"
    return Case(lambda: make(*given, **options), use, (), what)


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


@fuzzed("parameters")
def parameters(draw, folder):
    """Parameters of an estimator, of the wrong type or size."""
    kind = draw.choice((LONGNNClassifier, LONGNNClassifier, LONGNNRegressor))
    names = sorted(set(kind().get_params()) - {"graph", "epochs", "repeat"})
    options = {"epochs": 2, "degree": 2, "hidden_channels": 4, "device": "cpu"}
    for _ in range(draw.times(2)):
        wild = (*PLAIN, *CELLS[:20], (1, 2), np.float64(0.5), np.array([1]), object)
        default = DEFAULTS.get(name := draw.choice(names))
        number = isinstance(default, int | float) and draw.chance(0.6)
        options[name] = draw.choice(NUMBERS) if number else draw.choice((default, *wild))
    graph = csbm(**material.SMALL)
    arrays = (graph.data.x, graph.data.edge_index, graph.data.y)
    given = draw.choice((*[graph] * 8, graph.data, arrays, arrays[:2], None, 5, []))
    what = f"{ {k: str(v)[:200] for k, v in options.items()} } on {type(given).__name__}"
    return Case(lambda: kind(**options).fit(given), lambda found: found.predict(graph), (), what)
