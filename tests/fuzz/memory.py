"""Graphs and parameters handed over in Python, malformed."""

import networkx
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import scipy.sparse as sp
import torch

from longnn import LONGNNClassifier, LONGNNRegressor
from longnn.data import from_data, from_networkx, from_pandas, from_scipy
from longnn.data._synthetic import csbm
from longnn.graphs import GraphOperator
from tests.fuzz import arrays as made
from tests.fuzz import material
from tests.fuzz.cases import Case, fuzzed, learn
from tests.fuzz.draw import CELLS, NUMBERS, PLAIN, mutate_rows
from tests.fuzz.settings import DEFAULTS
from tests.fuzz.tables import ARROW, graph_rows


def _fields(draw):
    """Tensors of a graph under PyG's names, some of them wrong."""
    arrays = made.small_graph(draw)
    fields = made.tensors(made.mutate_arrays(draw, arrays) if draw.chance(0.7) else arrays)
    if draw.chance(0.4) and fields:
        key = draw.choice(sorted(fields))
        fields[key] = made.mutate_tensor(draw, fields[key])
    return fields


def _shown(fields):
    return repr(fields)[:3000]


def _lying_tensor(draw):
    """A torch sparse tensor whose indices were never checked."""
    matrix = made.adjacency(draw).asformat(draw.choice(("csr", "csc")))
    held = made.lie(draw, {k: v for k, v in made.matrix_arrays(matrix).items() if k != "format"})
    kind = draw.choice((torch.sparse_csr_tensor, torch.sparse_csc_tensor, None))
    with torch.sparse.check_sparse_tensor_invariants(False):
        try:
            size = tuple(int(n) for n in np.asarray(held["shape"]).reshape(-1)[:2])
            parts = [torch.from_numpy(held[k]) for k in ("indptr", "indices", "data")]
            if kind is not None:
                return kind(parts[0].long(), parts[1].long(), parts[2], size)
            index = torch.stack([parts[1].long(), parts[1].long().flip(0)])
            return torch.sparse_coo_tensor(index, parts[2], size)
        except (OverflowError, RuntimeError, TypeError, ValueError):
            return torch.eye(4).to_sparse()


def _lying_matrix(draw):
    """A SciPy matrix whose arrays were changed after it was made."""
    matrix = made.adjacency(draw).asformat(draw.choice(("csr", "csc", "coo")))
    arrays = made.lie(draw, made.matrix_arrays(matrix))
    for key in ("data", "indices", "indptr"):
        if key in arrays and draw.chance(0.7):
            vars(matrix)[key] = arrays[key]
    if draw.chance(0.2):
        vars(matrix)["_shape"] = draw.choice(((10**6, 10**6), (2, 2), (0, 0), (10**9, 10**9)))
    return matrix


@fuzzed("graph-operator")
def graph_operator(draw, folder):
    kind = draw.randrange(4)
    options = {}
    if draw.chance(0.3):
        key = draw.choice(("normalization", "self_loops", "symmetrize", "duplicates", "dtype"))
        words = ("random_walk", "add", "remove", "error")
        options[key] = draw.choice((*words, True, torch.float64, torch.int8, None, []))
    if kind == 0:
        given = _lying_tensor(draw)
        make = lambda: GraphOperator.from_torch_sparse(given, **options)  # noqa: E731
        what = f"a {given.layout} tensor of shape {tuple(given.shape)}"
    elif kind == 1:
        given = _lying_matrix(draw)
        make = lambda: GraphOperator.from_scipy(given, **options)  # noqa: E731
        what = str({k: v for k, v in vars(given).items() if isinstance(v, np.ndarray)})
    else:
        fields = _fields(draw)
        nodes = draw.choice((None, None, *NUMBERS, *PLAIN))
        what = f"{_shown(fields)}, num_nodes={str(nodes)[:99]}"
        index, weight = fields.get("edge_index"), fields.get("edge_weight")
        if kind == 2:
            make = lambda: GraphOperator.from_edge_index(index, weight, nodes, **options)  # noqa: E731
        else:
            data = made.as_data(fields)
            make = lambda: GraphOperator.from_data(data, **options)  # noqa: E731

    def use(operator):
        repr(operator)
        operator @ torch.ones(operator.num_nodes, 2, dtype=operator.dtype)

    return Case(make, use, (), f"{what} {options}")


@fuzzed("from-data")
def pyg(draw, folder):
    fields = _fields(draw)
    data, options = made.as_data(fields), {}
    if draw.chance(0.3):
        lists, texts = ("classes", "ids", "feature_names", "targets"), ("task", "default_split")
        key = draw.choice((*lists, *texts))
        words = ("regression", "multilabel", "own", "published", "", "x")
        values = (["a"], ["a", "b"], ["<b>", "", "é"], ["a"] * 20, [])
        options[key] = draw.choice(values if key in lists else words)
    return Case(lambda: from_data(data, **options), learn, (), f"{_shown(fields)} {options}")


@fuzzed("frames")
def frames(draw, folder):
    """Data frames of three packages, NetworkX graphs and SciPy matrices."""
    edges, nodes = graph_rows(draw)
    if draw.chance(0.5):
        edges = mutate_rows(draw, edges)
    else:
        nodes = mutate_rows(draw, nodes)
    kind = draw.randrange(5)
    if kind == 4:
        given = _lying_matrix(draw) if draw.chance(0.5) else draw.choice((5, None, np.eye(3), "x"))
        what = str(vars(given))[:3000] if sp.issparse(given) else repr(given)
        return Case(lambda: from_scipy(given), learn, (), what)
    if kind == 3:
        graph = networkx.MultiDiGraph() if draw.chance(0.3) else networkx.Graph()
        for row in (row for row in nodes[1:] if row):
            key = draw.choice((row[0], row[0], 1.5, (1, 2)))
            graph.add_node(key, **dict(zip(("size", "hue", "label"), row[1:], strict=False)))
        for row in (row for row in edges[1:] if len(row) > 1):
            graph.add_edge(row[0], row[1], weight=draw.choice((*NUMBERS, *PLAIN[:8])))
        return Case(lambda: from_networkx(graph), learn, (), str(list(graph.edges)))
    make = (_pandas, polars.DataFrame, _arrow)[kind]
    tables = [make(_columns(rows)) if kind == 1 else make(draw, rows) for rows in (edges, nodes)]
    if draw.chance(0.1):
        tables = draw.choice(((None, tables[1]), (tables[0], 5), ("x", "y"), ({}, [])))
    return Case(lambda: from_pandas(*tables), learn, (), f"{edges} {nodes}")


def _columns(rows):
    width = min(map(len, rows))
    return {name: [row[i] for row in rows[1:]] for i, name in enumerate(rows[0][:width])}


def _pandas(draw, rows):
    frame = pd.DataFrame(_columns(rows))
    if len(frame.columns) and draw.chance(0.5):
        values = [draw.choice((*NUMBERS, *PLAIN, *CELLS)) for _ in range(len(frame))]
        kinds = (
            lambda: pd.Series(values, dtype=object),
            lambda: pd.to_datetime(pd.Series(range(len(frame))), unit="D", utc=True),
            lambda: pd.Series([1 + 2j] * len(frame)),
            lambda: pd.Series([pd.NA] * len(frame), dtype="Int64"),
            lambda: pd.Series(pd.arrays.SparseArray([0.0] * len(frame))),
            lambda: pd.Series(pd.interval_range(0, len(frame))),
        )
        frame[draw.choice(list(frame.columns))] = draw.choice(kinds)()
    if draw.chance(0.2):
        frame.columns = [draw.choice((*NUMBERS, "a", None, ("a", "b"))) for _ in frame.columns]
    return frame


def _arrow(draw, rows):
    columns = {name: pa.array(values, pa.string()) for name, values in _columns(rows).items()}
    if columns and draw.chance(0.6):
        columns[draw.choice(sorted(columns))] = draw.choice(ARROW)(draw, len(rows) - 1)
    return pa.table(columns)


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
