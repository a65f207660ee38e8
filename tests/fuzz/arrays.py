"""Arrays as files: .npz, .mtx and .pt, with graphs and feature matrices."""

import functools
import io
import pickle
import zipfile

import numpy as np
import scipy.io
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from longnn.data import load
from tests.fuzz.archives import canary, mutate_npy, mutate_zip, npy, write_zip
from tests.fuzz.cases import Case, fuzzed, learn
from tests.fuzz.draw import mutate_bytes, mutate_lines
from tests.fuzz.tables import write_csv


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
    kind = draw.randrange(8)
    if kind == 0:
        return _cast(array, draw.choice(DTYPES))
    if kind == 1:
        return np.empty(array.shape, dtype=object)
    if kind == 2 and array.size:
        shape = draw.choice(((), (0,), (0, 0), (1, 1, *array.shape), (*array.shape, 1), (-1,)))
        size = array.size if -1 in shape else int(np.prod(shape))
        return array.reshape(-1)[:size].reshape(shape)
    if kind == 3 and array.ndim:
        whole, last = [array.T, array[..., ::-1], np.concatenate([array, array])], array[:-1]
        return draw.choice((*whole, last, array[..., :-1]))
    array = array.astype(np.float64) if kind == 4 and array.dtype.kind in "biu" else array.copy()
    if array.dtype.kind in "biuf":
        for _ in range(draw.times()):
            _replace_one(draw, array)
    return array


def _cast(array, dtype):
    with np.errstate(all="ignore"):
        try:
            return array.astype(dtype)
        except (TypeError, ValueError):  # text is no number
            return np.zeros(array.shape, dtype)


def _replace_one(draw, array):
    """Another number in place of one, in place: one at a border of something, or its nearest."""
    if not array.size:
        return
    number = draw.number()
    if array.dtype.kind in "iu":
        bounds = np.iinfo(array.dtype)
        whole = int(number) if number == number and abs(number) < float("inf") else -1
        number = min(max(whole, bounds.min), bounds.max)
    elif isinstance(number, int) and number > 1e308:
        number = float("inf")
    with np.errstate(all="ignore"):
        array.reshape(-1)[draw.randrange(array.size)] = number


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
    if kind <= 1 and members:
        at = draw.randrange(len(members))
        name, content = members[at]
        if kind == 0:
            members[at] = (name, mutate_npy(draw, content))
        else:
            new = draw.choice((name, f"../{name}", name.upper(), name[:-4], f"/{name}", "é.npy"))
            members.insert(0, (new, content))
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    content = write_zip(members, draw.choice(methods))
    if kind == 3 and members:
        content = mutate_zip(draw, content)
    return mutate_bytes(draw, content) if kind == 4 else content


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
    keys = {"coo": ("row", "col"), "dia": ("offsets",)}.get(matrix.format, ("indices", "indptr"))
    return {**arrays, **{key: getattr(matrix, key) for key in ("data", *keys)}}


def lie(draw, arrays):
    """Index arrays and shapes that do not fit each other."""
    arrays = {key: np.array(value) for key, value in arrays.items()}
    index = [key for key in ("indices", "indptr", "row", "col", "offsets") if key in arrays]
    for _ in range(draw.times(2)):
        kind, key = draw.randrange(8), draw.choice(index)
        if kind <= 3 and arrays[key].dtype.kind in "biuf":
            _replace_one(draw, arrays[key])
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


@fuzzed("npz-matrix")
def npz_matrix(draw, folder):
    """A sparse matrix: an adjacency, or features beside an edge list and perhaps a node file."""
    form = draw.choice(("csr", "csc", "coo", "coo", "bsr", "dia"))
    matrix = adjacency(draw).asformat(form)
    content = write_npz(draw, folder, lie(draw, matrix_arrays(matrix)))
    if draw.chance(0.5):
        (folder / "graph.npz").write_bytes(content)
        return Case(functools.partial(load, folder / "graph.npz"), learn, ("graph.npz",))
    count = matrix.shape[0]
    write_edges(folder, ((i, (i + 1) % count) for i in range(count)))
    if draw.chance(0.5):
        write_csv(folder, nodes=[["id", "label"], *([str(i), "ab"[i % 2]] for i in range(count))])
    (folder / "features.npz").write_bytes(content)
    names = ("features.npz", "edges.csv", "nodes.csv")
    return Case(functools.partial(load, folder), learn, names)


@fuzzed("mtx")
def mtx(draw, folder):
    """Matrix Market: an adjacency, or features."""
    matrix, stream = adjacency(draw).tocoo(), io.BytesIO()
    field = draw.choice(("real", "integer", "pattern", "complex"))
    scipy.io.mmwrite(stream, matrix, field=field, symmetry=draw.choice(("general", "symmetric")))
    content = mutate_lines(draw, stream.getvalue().decode()).encode(errors="replace")
    content = mutate_bytes(draw, content) if draw.chance(0.2) else content
    if draw.chance(0.7):
        (folder / "graph.mtx").write_bytes(content)
        return Case(functools.partial(load, folder / "graph.mtx"), learn, ("graph.mtx",))
    write_edges(folder, ((i, i + 1) for i in range(matrix.shape[0] - 1)))
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
    number = tensor if torch.is_tensor(tensor) and not tensor.is_complex() else torch.ones(2, 3)
    flat = number.reshape(-1).float()
    types = (torch.complex64, torch.bfloat16, torch.bool, torch.float8_e4m3fn, torch.int8)
    far = torch.tensor([[0, 10**9], [0, 1]])
    kinds = (
        lambda: torch.tensor(draw.choice((0, 1.5, float("nan"), 2**62))),
        lambda: torch.empty(draw.choice(((0,), (2, 0)))),
        lambda: torch.quantize_per_tensor(flat, 0.1, 0, torch.qint8),
        lambda: number.to_sparse() if number.dim() == 2 else number,
        lambda: number.float().to_sparse_csr() if number.dim() == 2 else number,
        *[lambda: number.to(draw.choice(types))] * 4,
        lambda: flat.clone().requires_grad_(),
        lambda: torch.ones(1).expand(10**6),
        lambda: draw.choice((5, "text", [1, 2, 3], {"a": torch.ones(1)})),
        lambda: torch.sparse_coo_tensor(far, torch.ones(2), (10**9 + 1, 2)),
        lambda: torch.sparse_csr_tensor(
            torch.tensor([0, 5, 1]), torch.tensor([7, -3]), torch.ones(2), (2, 2)
        ),
    )
    with torch.sparse.check_sparse_tensor_invariants(False):
        return draw.choice(kinds)()


def wrong_fields(draw):
    """Tensors of a graph under PyG's names, some of them wrong."""
    arrays = small_graph(draw)
    fields = tensors(mutate_arrays(draw, arrays) if draw.chance(0.6) else arrays)
    if draw.chance(0.5) and fields:
        key = draw.choice(sorted(fields))
        fields[key] = mutate_tensor(draw, fields[key])
    return fields


def as_data(fields):
    data = Data()
    for key, value in fields.items():
        if key != "num_nodes":
            data[key] = value
    return data


@fuzzed("pt")
def pt(draw, folder):
    fields = wrong_fields(draw)
    if draw.chance(0.2):
        fields["num_nodes"] = draw.choice((5, 0, -1, 10**9, 10**12, 2**63, 2.5, "9", None))
    others = (as_data(fields), (fields, None), [fields], fields.values())
    stream, zipped = io.BytesIO(), draw.chance(0.8)
    try:
        saved = draw.choice((fields, fields, *others))
        torch.save(saved, stream, _use_new_zipfile_serialization=zipped)
    except (RuntimeError, TypeError, AttributeError, pickle.PicklingError):
        stream, zipped = io.BytesIO(), True
        torch.save(torch.ones(2), stream)
    content, kind = stream.getvalue(), draw.randrange(8)
    if kind == 0:
        content = mutate_bytes(draw, content)
    elif kind == 1:
        content = mutate_zip(draw, content) if zipped else canary(folder)
    elif kind <= 3 and zipped:
        with zipfile.ZipFile(stream) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        name = next(n for n in members if n.endswith("data.pkl"))
        pickles = (canary(folder), mutate_bytes(draw, members[name]), b"")
        members[name] = draw.choice(pickles)
        content = write_zip(members.items(), zipfile.ZIP_STORED)
    path = folder / draw.choice(("graph.pt", "graph.pth"))
    path.write_bytes(content)
    return Case(functools.partial(load, path), learn, (path.name,))
