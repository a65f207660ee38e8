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
from tests.commands import without_report
from tests.fuzz import material
from tests.fuzz.archives import mutate_json, mutate_safetensors
from tests.fuzz.arrays import mutate_arrays, write_npz
from tests.fuzz.cases import Case, fuzzed
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


def copies(name, of, files, read, use=None, names=()):
    """Enter a format: a copy of a folder with one or two files changed, or one gone."""

    def make(draw, folder):
        target = shutil.copytree(material.place / of, folder / of)
        for file in {draw.choice(files): None for _ in range(draw.times(2))}:
            if draw.chance(0.05):
                (target / file).unlink()
            else:
                _mutate(draw, folder, target / file)
        return Case(functools.partial(read, target), use, (*files, *names, str(target)))

    fuzzed(name)(make)


def _show(record):
    report.text_summary(record)
    report.compare_words([record])
    report.cautions([record])


def _use_run(run):
    run.predictions()
    run.evaluate()
    _show(run.record)


def _use_estimator(estimator):
    estimator.predict(csbm(**material.SMALL))
    estimator.get_params()
    estimator.filter_response()


def _use_operator(operator):
    repr(operator)
    operator @ torch.ones(operator.num_nodes, 2, dtype=operator.dtype)


#: Those with most to say are drawn more often.
RECORD = ("record.json", "record.json", "history.csv", "filter_path.npz")
FINISHED = (*RECORD, "run.json", "record.json", "weights.safetensors", "weights.safetensors")
STOPPED = ("run.json", "config.toml", *["checkpoint.safetensors"] * 3)
ESTIMATOR, OPERATOR = "estimator.safetensors", "operator.safetensors"
copies("run", "run", FINISHED, load_run, _use_run)
copies("record", "run", FINISHED, read_record, _show)
copies("report", "run", RECORD, read_record, report.write_report)
# With a learning rate that was changed training may diverge: no fault of a file.
copies("checkpoint", "stopped", STOPPED, without_report()(resume), names=("to stay finite",))
copies(
    *("estimator", "estimator", (ESTIMATOR,)),
    lambda folder: LONGNNClassifier.load(folder / ESTIMATOR),
    _use_estimator,
)
copies(
    *("operator-file", "operator", (OPERATOR,)),
    lambda folder: GraphOperator.load(folder / OPERATOR),
    _use_operator,
)
copies("search-record", "search", ("tuning.json",), read_search)
