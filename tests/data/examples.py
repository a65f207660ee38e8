"""Small graphs, and ways to write them to files."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from longnn.data import from_data

Write = Callable[[str, str], Path]

EDGES = "source,target\na,b\nb,c\nc,d\n"
NODES = """id,size,hue,label,split
a,1,0.5,cat,train
b,2,0.25,dog,val
c,3,-1,,
d,4e1,0,cat,test
"""


N = 9
RNG = np.random.default_rng(0)
PAIRS = np.array([(i, j) for i in range(N) for j in range(i + 1, N) if RNG.random() < 0.4])
WEIGHT = RNG.integers(1, 9, len(PAIRS)) / 4
X = RNG.integers(-8, 9, (N, 3)) / 8
Y = np.array([0, 1, 2, 0, 1, 2, 0, 1, -1])


def reference():
    return from_data(
        Data(
            x=torch.from_numpy(X),
            edge_index=torch.from_numpy(PAIRS.T),
            edge_weight=torch.from_numpy(WEIGHT),
            y=torch.from_numpy(Y),
        )
    )


def adjacency():
    half = sp.coo_array((WEIGHT, (PAIRS[:, 0], PAIRS[:, 1])), shape=(N, N))
    return sp.csr_array(half + half.T)


def columns():
    edges = {"src": PAIRS[:, 0].tolist(), "dst": PAIRS[:, 1].tolist(), "weight": WEIGHT.tolist()}
    nodes = {"node_id": list(range(N))}
    nodes |= {f"f{k}": X[:, k].tolist() for k in range(3)}
    nodes["y"] = [None if label < 0 else int(label) for label in Y]
    return edges, nodes


def as_text(table, delimiter):
    rows = [table.keys(), *zip(*table.values(), strict=True)]
    return "".join(
        delimiter.join("" if cell is None else str(cell) for cell in row) + "\n" for row in rows
    )


class Trap:
    """Unpickled without care, this makes a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def write_table(path, table):
    if path.suffix == ".parquet":
        pq.write_table(pa.table(table), path)
    else:
        path.write_text(as_text(table, "," if path.suffix == ".csv" else "\t"))
    return path


def write_webkb(folder, school="texas"):
    """Raw files of a tiny WebKB graph: 4 pages, edges 0-1 (both ways), 1-2, a loop at 3."""
    folder.mkdir(parents=True)
    words = ["1,1,0", "0,3,1", "0,0,0", "2,0,2"]
    lines = [f"{i}\t{w}\t{i % 2}" for i, w in enumerate(words)]
    text = "node_id\tfeature\tlabel\n" + "\n".join(lines) + "\n"
    (folder / "out1_node_feature_label.txt").write_text(text)
    (folder / "out1_graph_edges.txt").write_text("a\tb\n0\t1\n1\t0\n1\t2\n3\t3\n")
    for k in range(10):
        masks = np.eye(4)[:3]
        file = folder / f"{school}_split_0.6_0.2_{k}.npz"
        np.savez(file, train_mask=masks[0], val_mask=masks[1], test_mask=masks[2])
