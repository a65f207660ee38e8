"""Folders of named datasets, small and in PyG's layout, one of their files hostile."""

import functools
import pickle

import numpy as np
import scipy.sparse as sp

from longnn.data._named import load_named
from tests.fuzz.archives import canary, npy, write_zip
from tests.fuzz.arrays import lie, matrix_arrays, mutate_arrays, write_npz
from tests.fuzz.cases import Case, fuzzed, learn
from tests.fuzz.draw import mutate_bytes, mutate_lines

#: PyG's reader takes the 500 nodes after those of training for validation.
TRAIN, REST, TEST = 6, 500, 10
PROTOCOL = 3  # the first that holds bytes as they are, as the published files do


def planetoid_parts():
    """The eight parts of a Planetoid graph, all but the last as objects to pickle."""
    count = TRAIN + REST + TEST
    random = np.random.default_rng(0)
    x = sp.random(count, 4, density=0.5, format="csr", random_state=random)
    y = np.eye(3, dtype=np.int32)[np.arange(count) % 3]
    known = TRAIN + REST
    graph = {i: [(i + 1) % count, (i - 1) % count] for i in range(count)}
    return {
        "x": x[:TRAIN],
        "tx": x[known:],
        "allx": x[:known],
        "y": y[:TRAIN],
        "ty": y[known:],
        "ally": y[:known],
        "graph": graph,
        "test.index": "".join(f"{i}\n" for i in range(known, count)),
    }


class _Reduced:
    """Pickled as a call of a function that exists on every machine."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def _object(draw, folder, value):
    """Something else in place of an object of a Planetoid file."""
    kind = draw.randrange(12)
    if kind <= 1:
        return canary(folder, draw.choice((0, 2, 4)))
    if kind == 2:
        call = _Reduced(
            draw.choice((eval, exec)), f"__import__('os').mkdir({str(folder / 'CANARY')!r})"
        )
        return pickle.dumps([value, {"a": call}], PROTOCOL)
    if kind == 3:  # hidden in an array of objects
        return pickle.dumps(
            np.array([_Reduced(eval, f"open({str(folder / 'CANARY')!r}, 'w')")]), PROTOCOL
        )
    if kind == 4:
        return pickle.dumps(
            draw.choice((None, 5, "x", [], {}, [[1]], {0: "a"}, {"x": [1]}, b"")), 2
        )
    if kind == 5 and sp.issparse(value):
        fake = value.copy()
        arrays = lie(draw, matrix_arrays(fake))
        vars(fake).update({k: arrays[k] for k in ("data", "indices", "indptr") if k in arrays})
        return pickle.dumps(fake, PROTOCOL)
    if kind == 6 and sp.issparse(value):
        fake = value.copy()
        vars(fake)["_shape"] = draw.choice(((10**6, 10**6), (0, 0), (5,), "x", (-1, 3), (10**9, 4)))
        return pickle.dumps(fake, PROTOCOL)
    if kind == 7 and isinstance(value, dict):
        node = draw.choice((-1, 10**6, 10**12, 2**63, 2.5, "a", None))
        return pickle.dumps(
            {**value, 0: [node]} if draw.chance(0.5) else {**value, node: [0]}, PROTOCOL
        )
    if kind == 8 and isinstance(value, np.ndarray):
        wrong = mutate_arrays(draw, {"y": value}).get("y", np.zeros(3))
        if not wrong.dtype.hasobject:
            return pickle.dumps(wrong, PROTOCOL)
    if kind == 9:
        return (
            b"\x80\x02" + b"(" * 10_000 + b"."
            if draw.chance(0.5)
            else b"\x80\x02" + b"]" * 99 + b"."
        )
    if kind == 10:
        return pickle.dumps(_Reduced(np.zeros, (10**10,)), PROTOCOL)
    return mutate_bytes(draw, pickle.dumps(value, PROTOCOL))


@fuzzed("planetoid")
def planetoid(draw, folder):
    name = draw.choice(("Cora", "CiteSeer", "PubMed"))
    raw = folder / name / "raw"
    raw.mkdir(parents=True)
    parts = planetoid_parts()
    hostile = draw.choice(tuple(parts))
    for part, value in parts.items():
        if part == "test.index":
            text = mutate_lines(draw, value) if part == hostile else value
            content = text.encode(errors="replace")
        elif part == hostile:
            content = _object(draw, folder, value)
        else:
            content = pickle.dumps(value, PROTOCOL)
        (raw / f"ind.{name.lower()}.{part}").write_bytes(content)
    read = functools.partial(load_named, name, folder)
    return Case(read, learn, (f"{name}/raw",), f"{hostile} is hostile")


def _amazon():
    random = np.random.default_rng(0)
    ring = sp.eye_array(30, k=1, format="csr") + sp.eye_array(30, k=-1, format="csr")
    words = sp.random_array((30, 5), density=0.4, format="csr", rng=random)
    arrays = {"labels": np.arange(30) % 3}
    for prefix, matrix in (("adj", ring), ("attr", words)):
        arrays |= {f"{prefix}_{k}": v for k, v in matrix_arrays(matrix).items() if k != "format"}
    return arrays


def _heterophilous():
    count = 30
    masks = np.arange(count)[None] % 3 == np.arange(3)[:, None]
    return {
        "node_features": np.random.default_rng(0).normal(size=(count, 4)),
        "node_labels": np.arange(count) % 2,
        "edges": np.stack([np.arange(count - 1), np.arange(1, count)], 1),
        "train_masks": masks[:1].repeat(10, 0),
        "val_masks": masks[1:2].repeat(10, 0),
        "test_masks": masks[2:].repeat(10, 0),
    }


@fuzzed("raw-npz")
def raw_npz(draw, folder):
    """Named datasets that are one archive."""
    name, path, arrays = draw.choice(
        (
            ("photo", "Photo/raw/amazon_electronics_photo.npz", _amazon()),
            ("coauthor-cs", "CS/raw/ms_academic_cs.npz", _amazon()),
            ("minesweeper", "minesweeper/raw/minesweeper.npz", _heterophilous()),
        )
    )
    file = folder / path
    file.parent.mkdir(parents=True)
    if "adj_data" in arrays and draw.chance(0.5):
        prefix = draw.choice(("adj_", "attr_"))
        part = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        lied = lie(draw, {**part, "format": np.array(b"csr")})
        arrays |= {prefix + k: v for k, v in lied.items() if k != "format"}
    else:
        arrays = mutate_arrays(draw, arrays)
    file.write_bytes(write_npz(draw, folder, arrays))
    read = functools.partial(load_named, name, folder)
    return Case(read, learn, (path.rpartition("/")[0],))


@fuzzed("raw-text")
def raw_text(draw, folder):
    """Named datasets of geom-gcn: two text files and ten splits."""
    name, stem, place = draw.choice(
        (
            ("texas", "texas", "texas/raw"),
            ("cornell-legacy", "cornell", "legacy/cornell/raw"),
            ("chameleon", "chameleon", "chameleon/geom_gcn/raw"),
            ("actor", "film", "actor/raw"),
        )
    )
    raw = folder / place
    raw.mkdir(parents=True)
    count = 12
    words = ["3,17,9" if stem == "film" else "1,0,1,0"] * count
    nodes = [f"{i}\t{words[i]}\t{i % 3}" for i in range(count)]
    nodes = "\n".join(["node_id\tfeature\tlabel", *nodes]) + "\n"
    edges = "\n".join(["a\tb", *(f"{i}\t{(i + 1) % count}" for i in range(count))]) + "\n"
    hostile = draw.randrange(3)
    texts = [nodes, edges]
    if hostile < 2:
        mutated = mutate_lines(draw, texts[hostile].replace("\t", " ")).replace(" ", "\t")
        texts[hostile] = mutated.replace(
            ",", draw.choice((",", ",", ",999999999999,", ",,", ",x,")), 3
        )
    for file, text in zip(("out1_node_feature_label", "out1_graph_edges"), texts, strict=True):
        (raw / f"{file}.txt").write_bytes(text.encode(errors="replace"))
    masks = {
        f"{key}_mask": np.arange(count) % 3 == i for i, key in enumerate(("train", "val", "test"))
    }
    for i in range(10):
        content = write_zip([(f"{key}.npy", npy(mask)) for key, mask in masks.items()])
        if hostile == 2 and i == 3:
            wrong = mutate_arrays(draw, masks)
            content = write_npz(draw, folder, wrong)
        (raw / f"{stem}_split_0.6_0.2_{i}.npz").write_bytes(content)
    read = functools.partial(load_named, name, folder)
    return Case(read, learn, (place,))
