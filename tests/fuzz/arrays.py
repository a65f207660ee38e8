"""Arrays as files: .npz, .mtx and .pt, with graphs and feature matrices."""

import functools
import io
import pickle
import zipfile

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from longnn.data import load
from tests.fuzz.archives import canary, mutate_npy, mutate_zip, npy, read_zip, write_zip, zip_bomb
from tests.fuzz.cases import Case, fuzzed, learn
from tests.fuzz.draw import CELLS, NUMBERS, mutate_bytes, mutate_lines
from tests.fuzz.tables import write_csv

HUGE = 3 * 2**30


def small_graph(draw):
    """The arrays of a small graph under PyG's names."""
    count = draw.randrange(8, 16)
    ends = np.array([(i, (i + step) % count) for i in range(count) for step in (1, 3)]).T
    random = np.random.default_rng(draw.randrange(2**32))
    arrays = {
        "x": random.normal(size=(count, 3)).astype(np.float32),
        "edge_index": ends.astype(np.int64),
        "y": np.arange(count) % 2,
    }
    if draw.chance(0.5):
        arrays["edge_weight"] = random.uniform(0.1, 2, ends.shape[1])
    if draw.chance(0.4):
        arrays["train_mask"] = np.arange(count) % 3 == 0
        arrays["val_mask"] = np.arange(count) % 3 == 1
    return arrays


def write_edges(folder, pairs):
    """An edge list beside another file."""
    write_csv(folder, edges=[["source", "target"], *(map(str, pair) for pair in pairs)])


def adjacency(draw):
    """A sparse symmetric matrix."""
    arrays = small_graph(draw)
    count, (row, col) = len(arrays["x"]), arrays["edge_index"]
    half = sp.coo_array((np.ones(len(row)), (row, col)), shape=(count, count))
    return half + half.T


DTYPES = (
    *(">i4", ">i8", ">f8", "<f2", "<f4", "<f8", "g", "<c8", "G", "?", "<u8", "<i1", "<U5", "S3"),
    *("<M8[s]", "m8[ns]", "<u2"),
)


def mutate_array(draw, array):
    """Another type, another shape, or special values."""
    kind = draw.randrange(9)
    if kind == 0:
        return _cast(array, draw.choice(DTYPES))
    if kind == 1:
        return np.empty(array.shape, dtype=object)
    if kind == 2:
        shapes = ((), (0,), (0, 0), (1, 1, *array.shape), (-1,), (*array.shape, 1))
        shape = draw.choice(shapes)
        size = int(np.prod(shape)) if -1 not in shape else array.size
        return array.reshape(-1)[:size].reshape(shape) if size <= array.size else array
    if kind == 3:
        return array.T if draw.chance(0.5) or not array.ndim else array[..., :-1]
    if kind == 4 and array.ndim:
        return array[:-1] if draw.chance(0.5) else np.concatenate([array, array])
    if kind == 5 and array.ndim:
        return array[..., ::-1]
    if kind == 6 and array.dtype.kind in "biu":
        array = array.astype(np.float64)
    array = array.copy()
    if array.size and array.dtype.kind in "biuf":
        for _ in range(draw.times()):
            with np.errstate(all="ignore"):
                value = _fitting(draw.number(), array.dtype)
            array.reshape(-1)[draw.randrange(array.size)] = value
    return array


def _cast(array, dtype):
    with np.errstate(all="ignore"):
        try:
            return array.astype(dtype)
        except (TypeError, ValueError):  # text is no number
            return np.zeros(array.shape, dtype)


def _fitting(number, dtype):
    """A number in a type: the nearest that it can hold."""
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        whole = int(number) if number == number and abs(number) < float("inf") else -1
        return min(max(whole, bounds.min), bounds.max)
    if dtype.kind == "b":
        return bool(number)
    try:
        return float(number)
    except OverflowError:
        return float("inf")


def mutate_arrays(draw, arrays):
    """Change, drop, repeat or add arrays."""
    arrays = dict(arrays)
    for _ in range(draw.times(2)):
        if not arrays:
            break
        key = draw.choice(sorted(arrays))
        kind = draw.randrange(8)
        if kind <= 5:
            arrays[key] = mutate_array(draw, arrays[key])
        elif kind == 6:
            del arrays[key]
        else:
            arrays[draw.choice(("x", "y", "edge_attr", "test_mask", "extra"))] = arrays[key]
    return arrays


def write_npz(draw, folder, arrays):
    """An archive of arrays, one of its members or headers perhaps wrong."""
    members = [(f"{key}.npy", npy(array, folder)) for key, array in arrays.items()]
    kind = draw.randrange(8)
    if kind == 0 and members:
        at = draw.randrange(len(members))
        members[at] = (members[at][0], mutate_npy(draw, members[at][1]))
    elif kind == 1 and members:
        name, content = draw.choice(members)
        new = draw.choice((name, f"../{name}", name.upper(), name[:-4], f"/{name}", "é.npy"))
        members.insert(0, (new, content))
    elif kind == 2 and draw.chance(0.3):
        head = npy(np.zeros((2, 3)))[:128].replace(b"(2, 3)", b"(201326592, 2)")[:128]
        return zip_bomb("x.npy" if draw.chance(0.5) else "edge_index.npy", head, HUGE)
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    content = write_zip(members, draw.choice(methods))
    if kind == 3 and members:
        content = mutate_zip(draw, content)
    elif kind == 4:
        content = mutate_bytes(draw, content)
    return content


@fuzzed("npz-arrays")
def npz_arrays(draw, folder):
    """Arrays under PyG's names, in one file, or with the nodes in a file of their own."""
    arrays = mutate_arrays(draw, small_graph(draw))
    if draw.chance(0.7):
        (folder / "graph.npz").write_bytes(write_npz(draw, folder, arrays))
        return Case(functools.partial(load, folder / "graph.npz"), learn, ("graph.npz",))
    write_edges(folder, small_graph(draw)["edge_index"].T)
    nodes = {k: v for k, v in arrays.items() if not k.startswith("edge")}
    (folder / "nodes.npz").write_bytes(write_npz(draw, folder, nodes))
    return Case(functools.partial(load, folder), learn, ("nodes.npz", "edges.csv"))


def matrix_arrays(matrix):
    """What ``scipy.sparse.save_npz`` writes, by name."""
    arrays = {"format": np.array(matrix.format.encode()), "shape": np.array(matrix.shape)}
    arrays["data"] = matrix.data
    if matrix.format == "coo":
        return {**arrays, "row": matrix.row, "col": matrix.col}
    if matrix.format == "dia":
        return {**arrays, "offsets": matrix.offsets}
    return {**arrays, "indices": matrix.indices, "indptr": matrix.indptr}


def lie(draw, arrays):
    """Index arrays and shapes that do not fit each other."""
    arrays = {key: np.array(value) for key, value in arrays.items()}
    index = [key for key in ("indices", "indptr", "row", "col", "offsets") if key in arrays]
    for _ in range(draw.times(2)):
        kind = draw.randrange(8)
        key = draw.choice(index)
        if kind <= 3 and arrays[key].size and arrays[key].dtype.kind in "biuf":
            array = arrays[key]
            value = _fitting(draw.number(), array.dtype)
            array.reshape(-1)[draw.randrange(array.size)] = value
        elif kind == 4:
            arrays[key] = np.sort(arrays[key], axis=None)[::-1].copy()
        elif kind == 5:
            shapes = ([0, 0], [1, 1], [10**6, 10**6], [2**31, 2**31], [2**62, 2**62], [-1, 5], [9])
            arrays["shape"] = np.array(draw.choice(shapes))
        elif kind == 6:
            kinds = (b"csr", b"csc", b"coo", b"bsr", b"dia", b"xyz", b"", "csr")
            arrays["format"] = np.array(draw.choice(kinds))
        else:
            key = draw.choice(sorted(arrays))
            arrays[key] = mutate_array(draw, arrays[key])
    return arrays


@fuzzed("npz-adjacency")
def npz_adjacency(draw, folder):
    form = draw.choice(("csr", "csc", "coo", "coo", "bsr", "dia"))
    arrays = lie(draw, matrix_arrays(adjacency(draw).asformat(form)))
    (folder / "graph.npz").write_bytes(write_npz(draw, folder, arrays))
    return Case(functools.partial(load, folder / "graph.npz"), learn, ("graph.npz",))


@fuzzed("npz-features")
def npz_features(draw, folder):
    """A feature matrix beside an edge list, or beside a node file."""
    graph = small_graph(draw)
    write_edges(folder, graph["edge_index"].T)
    count = len(graph["x"])
    if draw.chance(0.5):
        write_csv(folder, nodes=[["id", "label"], *([str(i), "ab"[i % 2]] for i in range(count))])
    density = sp.random_array((count, 6), density=0.4, rng=np.random.default_rng(0))
    arrays = lie(draw, matrix_arrays(density.asformat(draw.choice(("csr", "csc", "coo")))))
    (folder / "features.npz").write_bytes(write_npz(draw, folder, arrays))
    names = ("features.npz", "edges.csv", "nodes.csv")
    return Case(functools.partial(load, folder), learn, names)


@fuzzed("mtx")
def mtx(draw, folder):
    """Matrix Market: an adjacency, or features."""
    kind = draw.choice(("real", "real", "integer", "pattern", "complex", "unsigned-integer"))
    shape = draw.choice(("general", "symmetric", "symmetric", "skew-symmetric", "hermitian"))
    count = draw.randrange(4, 9)
    entries = [(max(pair), min(pair)) for pair in ((i, i % count + 1) for i in range(1, count + 1))]
    value = {"pattern": "", "complex": " 1.5 0"}.get(kind, " 2")
    lines = [f"{i} {j}{value}" for i, j in entries]
    size = f"{count} {count} {len(entries)}"
    head = f"%%MatrixMarket matrix coordinate {kind} {shape}"
    if draw.chance(0.2):
        head, size = "%%MatrixMarket matrix array real general", f"{count} {count}"
        lines = ["1.5"] * (count * count)
    change = draw.randrange(8)
    if change <= 2:
        words = lines[at := draw.randrange(len(lines))].split()
        words[draw.randrange(len(words))] = str(draw.choice((*NUMBERS, *CELLS)))
        lines[at] = " ".join(words)
    elif change <= 4:
        sizes = (10**6, 10**9, 2**31, 2**63, 0, -1, 1, count)
        size = f"{draw.choice(sizes)} {draw.choice(sizes)}"
        size += f" {draw.choice((1, len(entries), 10**9, 2**63))}" * (" array " not in head)
    text = "\n".join([head, "% a comment", size, *lines]) + "\n"
    if change == 5:
        text = mutate_lines(draw, text)
    content = text.encode(errors="replace")
    if change == 6:
        content = mutate_bytes(draw, content)
    if draw.chance(0.7):
        (folder / "graph.mtx").write_bytes(content)
        return Case(functools.partial(load, folder / "graph.mtx"), learn, ("graph.mtx",))
    write_edges(folder, ((i, i + 1) for i in range(count - 1)))
    (folder / "features.mtx").write_bytes(content)
    return Case(functools.partial(load, folder), learn, ("features.mtx", "edges.csv"))


def tensors(arrays):
    """NumPy arrays as tensors; those that torch does not know stay."""
    found = {}
    for key, array in arrays.items():
        try:
            found[key] = torch.from_numpy(np.ascontiguousarray(array))
        except (TypeError, ValueError):
            found[key] = array if array.dtype.kind != "O" else None
    return found


def mutate_tensor(draw, tensor):
    """What a tensor can be besides dense numbers."""
    number = torch.ones(2, 3) if not torch.is_tensor(tensor) else tensor
    flat = number.reshape(-1).float() if not number.is_complex() else number.real.reshape(-1)
    kinds = (
        lambda: torch.tensor(draw.choice((0, 1.5, float("nan"), 2**62))),
        lambda: torch.empty(0),
        lambda: torch.empty(2, 0, dtype=torch.int64),
        lambda: torch.quantize_per_tensor(flat, 0.1, 0, torch.qint8),
        lambda: number.to_sparse() if number.dim() == 2 else number,
        lambda: number.float().to_sparse_csr() if number.dim() == 2 else number,
        lambda: number.to(torch.complex64),
        lambda: number.to(torch.bfloat16),
        lambda: number.to(torch.bool),
        lambda: number.to(torch.float8_e4m3fn),
        lambda: flat.clone().requires_grad_(),
        lambda: torch.ones(1).expand(10**6),
        lambda: torch.nn.Parameter(flat.clone()),
        lambda: number.to(torch.int8),
        lambda: 5,
        lambda: "text",
        lambda: [1, 2, 3],
        lambda: {"a": torch.ones(1)},
        lambda: torch.sparse_coo_tensor(
            torch.tensor([[0, 10**9], [0, 1]]), torch.ones(2), (10**9 + 1, 2)
        ),
        lambda: _lying_csr(),
    )
    return draw.choice(kinds)()


def _lying_csr():
    with torch.sparse.check_sparse_tensor_invariants(False):
        crow, col = torch.tensor([0, 5, 1]), torch.tensor([7, -3])
        return torch.sparse_csr_tensor(crow, col, torch.ones(2), (2, 2))


@fuzzed("pt")
def pt(draw, folder):
    arrays = small_graph(draw)
    fields = tensors(mutate_arrays(draw, arrays) if draw.chance(0.5) else arrays)
    if draw.chance(0.5) and fields:
        key = draw.choice(sorted(fields))
        fields[key] = mutate_tensor(draw, fields[key])
    if draw.chance(0.2):
        fields["num_nodes"] = draw.choice((5, 0, -1, 10**9, 10**12, 2**63, 2.5, "9", None))
    saved = draw.choice(
        (fields, fields, as_data(fields), (fields, None), [fields], fields.values())
    )
    stream = io.BytesIO()
    try:
        torch.save(saved, stream, _use_new_zipfile_serialization=draw.chance(0.8))
    except (RuntimeError, TypeError, AttributeError, pickle.PicklingError):
        stream = io.BytesIO()
        torch.save(arrays["x"], stream)
    content = stream.getvalue()
    kind = draw.randrange(10)
    if kind == 0:
        content = mutate_bytes(draw, content)
    elif content[:2] == b"PK":
        content = _mutate_pt(draw, folder, kind, content)
    elif kind == 1:
        content = canary(folder)
    path = folder / draw.choice(("graph.pt", "graph.pth"))
    path.write_bytes(content)
    return Case(functools.partial(load, path), learn, (path.name,))


def as_data(fields):
    data = Data()
    for key, value in fields.items():
        if key != "num_nodes":
            data[key] = value
    return data


def _mutate_pt(draw, folder, kind, content):
    members = read_zip(content)
    if kind == 1:
        return mutate_zip(draw, content)
    at = draw.randrange(len(members))
    name, member = members[at]
    if kind == 2:
        members[at] = (name, mutate_bytes(draw, member))
    elif kind == 3:
        members = [(n, canary(folder) if n.endswith("data.pkl") else c) for n, c in members]
    elif kind == 4:
        del members[at]
    elif kind == 5:
        first = next(i for i, (n, _) in enumerate(members) if n.endswith("data.pkl"))
        members[first] = (members[first][0], mutate_bytes(draw, members[first][1]))
    else:
        return content
    return write_zip(members, zipfile.ZIP_STORED)
