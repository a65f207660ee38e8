"""What longnn writes and reads again: run folders, estimators, operators, records of searches."""

import functools
import shutil

import numpy as np
import torch

from longnn import LONGNNClassifier, report
from longnn.data._synthetic import csbm
from longnn.graphs import GraphOperator
from longnn.runs import load_run, resume
from longnn.runs._folder import read_record
from longnn.tuning import read_record as read_search
from tests.fuzz import material
from tests.fuzz.archives import mutate_json, mutate_safetensors
from tests.fuzz.arrays import mutate_arrays, write_npz
from tests.fuzz.cases import Case, fuzzed, without_pages
from tests.fuzz.draw import mutate_rows
from tests.fuzz.settings import mutate_toml


def _mutate(draw, folder, path):
    """Change one file by its kind."""
    content = path.read_bytes()
    if path.suffix == ".json":
        content = mutate_json(draw, content)
    elif path.suffix == ".safetensors":
        content = mutate_safetensors(draw, content)
    elif path.suffix == ".toml":
        content = mutate_toml(draw, content.decode()).encode(errors="replace")
    elif path.suffix == ".csv":
        rows = [line.split(",") for line in content.decode().splitlines()]
        content = "\n".join(map(",".join, mutate_rows(draw, rows))).encode(errors="replace")
    elif path.suffix == ".npz":
        with np.load(path) as held:
            content = write_npz(draw, folder, mutate_arrays(draw, dict(held)))
    path.write_bytes(content)


def _copy(draw, folder, name, files):
    """A copy of a folder with one or two files changed, or one gone."""
    target = folder / name
    shutil.copytree(material.place / name, target)
    for name in {draw.choice(files): None for _ in range(draw.times(2))}:
        if draw.chance(0.05):
            (target / name).unlink()
        else:
            _mutate(draw, folder, target / name)
    return target


#: Files of a finished run that are read again; those with most to say are drawn more often.
FINISHED = (
    *("run.json", "record.json", "record.json", "record.json", "weights.safetensors"),
    *("weights.safetensors", "history.csv", "filter_path.npz"),
)


@fuzzed("run")
def run(draw, folder):
    target = _copy(draw, folder, "run", FINISHED)
    kind = draw.randrange(3)
    names = ("run.json", "record.json", "weights.safetensors", str(target))
    if kind == 0:
        return Case(functools.partial(read_record, target), _show, names, "shown")
    return Case(functools.partial(load_run, target), _use, names, "used")


def _show(record):
    report.text_summary(record)
    report.compare_words([record])
    report.cautions([record])


def _use(found):
    found.predictions()
    found.evaluate()
    _show(found.record)


@fuzzed("report")
def page(draw, folder):
    """The page of a run, from its record alone."""
    target = _copy(
        draw, folder, "run", ("record.json", "record.json", "history.csv", "filter_path.npz")
    )
    names = ("run.json", "record.json", str(target))
    return Case(functools.partial(read_record, target), report.write_report, names)


@fuzzed("checkpoint")
def checkpoint(draw, folder):
    files = ("run.json", "config.toml", *["checkpoint.safetensors"] * 3)
    target = _copy(draw, folder, "stopped", files)
    names = ("run.json", "config.toml", "checkpoint.safetensors", str(target))
    names += ("to stay finite",)  # with a learning rate that was changed: no fault of a file
    return Case(without_pages()(functools.partial(resume, target)), None, names)


@fuzzed("estimator")
def estimator(draw, folder):
    path = folder / "estimator.safetensors"
    shutil.copy(material.place / path.name, path)
    _mutate(draw, folder, path)

    def use(found):
        graph = csbm(**material.SMALL)
        found.predict(graph)
        found.get_params()
        found.filter_response()

    return Case(functools.partial(LONGNNClassifier.load, path), use, (path.name,))


@fuzzed("operator-file")
def operator_file(draw, folder):
    path = folder / "operator.safetensors"
    shutil.copy(material.place / path.name, path)
    _mutate(draw, folder, path)

    def use(found):
        repr(found)
        found @ torch.ones(found.num_nodes, 2, dtype=found.dtype)

    return Case(functools.partial(GraphOperator.load, path), use, (path.name,))


@fuzzed("search-record")
def search_record(draw, folder):
    target = folder / "search"
    target.mkdir()
    content = (material.place / "search" / "tuning.json").read_bytes()
    (target / "tuning.json").write_bytes(mutate_json(draw, content))
    return Case(functools.partial(read_search, target), None, ("tuning.json",))
