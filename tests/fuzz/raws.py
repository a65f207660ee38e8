"""Folders of named datasets, small and in PyG's layout, one of their files hostile."""

import functools
import pickle

import numpy as np
import scipy.sparse as sp

from longnn.data._catalog import find_named
from longnn.data._named import load_named
from tests.data.examples import write_webkb
from tests.data.test_pickles import write_planetoid
from tests.data.test_rawreaders import write_archive, write_heterophilous
from tests.fuzz.archives import canary
from tests.fuzz.arrays import lie, matrix_arrays, mutate_arrays, write_npz
from tests.fuzz.cases import Case, fuzzed, learn
from tests.fuzz.draw import mutate_bytes, mutate_lines

#: What writes the files of a dataset, given the folder of its raw files.
WRITERS = {
    "cora": lambda raw: write_planetoid(raw, "cora"),
    "citeseer": lambda raw: write_planetoid(raw, "citeseer", gap=True),
    "photo": lambda raw: write_archive(raw / "amazon_electronics_photo.npz"),
    "minesweeper": lambda raw: write_heterophilous(raw / "minesweeper.npz"),
    "texas": write_webkb,
    "cornell-legacy": lambda raw: write_webkb(raw, "cornell"),
}
PROTOCOL = 3  # the first that holds bytes as they are, as the published files do


def _pickle(draw, folder, content):
    """Something else in place of an object of a Planetoid file."""
    value = pickle.loads(content)
    wrong = [None, 5, "x", [], {}, [[1]], {0: "a"}, {"x": [1]}, b""]
    if sp.issparse(value):
        arrays = lie(draw, matrix_arrays(value))
        vars(value).update({k: arrays[k] for k in ("data", "indices", "indptr") if k in arrays})
        shapes = ((10**6, 10**6), (0, 0), (5,), "x", (-1, 3), (10**9, 4))
        vars(value)["_shape"] = draw.choice((*[value.shape] * 6, *shapes))
        wrong += [value] * 9
    elif isinstance(value, dict):
        node = draw.choice((-1, 10**6, 10**12, 2**63, 2.5, "a", None))
        wrong += [{**value, 0: [node]}, {**value, node: [0]}] * 4
    else:
        array = mutate_arrays(draw, {"y": value}).get("y", np.zeros(3))
        wrong += [np.zeros(3) if array.dtype.hasobject else array] * 9
    kind = draw.randrange(10)
    if kind <= 1:
        return canary(folder, draw.choice((0, 2, 4)))
    return mutate_bytes(draw, content) if kind <= 3 else pickle.dumps(draw.choice(wrong), PROTOCOL)


def _spoil(draw, folder, path):
    """Change one raw file by its kind."""
    content = path.read_bytes()
    if path.suffix == ".npz":
        with np.load(path) as held:
            content = write_npz(draw, folder, mutate_arrays(draw, dict(held)))
    elif path.suffix in (".txt", ".index"):
        text = mutate_lines(draw, content.decode().replace("\t", " ")).replace(" ", "\t")
        many = draw.choice((",", ",", ",999999999999,", ",,", ",x,"))
        content = text.replace(",", many, 3).encode(errors="replace")
    else:
        content = _pickle(draw, folder, content)
    path.write_bytes(content)


@fuzzed("raw")
def raw(draw, folder):
    name = draw.choice(tuple(WRITERS))
    entry = find_named(name)
    WRITERS[name](folder / entry.folder)
    hostile = draw.choice(entry.files)
    _spoil(draw, folder, folder / entry.folder / hostile)
    read = functools.partial(load_named, name, folder)
    return Case(read, learn, (entry.folder,), f"{hostile} is hostile")
