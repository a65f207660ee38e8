"""Small graphs with flaws, drawn at random, through both backings: one verdict, one answer.

Errors must be equal word by word, the datasets equal in all that is asked about nodes, and
predictions equal to 1e-4.
"""

import collections
import shutil

import numpy as np
import torch

from longnn.config import Config
from longnn.data import DataError, Source, make_split
from longnn.store._disk import load_source
from longnn.training import Job, Trained

MODEL = {"placement": "features", "epochs": 2, "degree": 2, "hidden_channels": 4, "device": "cpu"}
#: By loss: a score of ranks jumps where two answers are equal up to rounding.
MODEL |= {"monitor": "loss"}
MODEL |= {"input_dropout": 0.0, "dropout": 0.0, "filter_dropout": 0.0}
TASKS = ("two", "rare", "many", "number", "numbers", "labels")
#: Cells that are no plain numbers, and how often one turns up among features.
ODD = ("", "NA", "nan", " 3 ", "1e3", "-0", "x", '"a,b"', "12 %", "inf", "1_000")


def draw(rng):
    """Lines of an edge file and of a node file, and options."""
    nodes = int(rng.integers(8, 40))
    styles = (lambda i: str(i), lambda i: f"n{i}", lambda i: f"{i:03d}", lambda i: f"a {i}")
    name = styles[rng.integers(len(styles))]
    task = TASKS[rng.integers(len(TASKS))]
    columns = {"id": [name(i) for i in range(nodes)]}
    for k in range(int(rng.integers(1, 5))):
        columns[f"f{k}"] = _feature(rng, nodes)
    targets = _answers(rng, task, nodes)
    columns |= targets
    if rng.random() < 0.3:
        parts = np.array(["train", "val", "test", ""])[rng.choice(4, nodes, p=[0.5, 0.2, 0.2, 0.1])]
        columns["split"] = list(parts)
    options = {"label_column": list(targets)}
    edges = rng.integers(nodes, size=(int(rng.integers(1, 4 * nodes)), 2))
    rows = [[name(a), name(b)] for a, b in edges]
    if rng.random() < 0.3:  # a loop, a repeat, a reverse
        rows += [[name(0), name(0)], rows[0], rows[0][::-1]]
    for key, values, chance in (
        ("self_loops", [True], 0.2),
        ("unknown_ids", ["drop", "add"], 0.2),
        ("features", ["degree"], 0.1),
        ("missing", ["error"], 0.1),
        ("directed", [True, "auto"], 0.3),
        ("isolated", ["drop"], 0.1),
        ("repeated_nodes", ["merge"], 0.3),
    ):
        if rng.random() < chance:
            options[key] = values[rng.integers(len(values))]
    if rng.random() < 0.2:
        rows.insert(int(rng.integers(len(rows) + 1)), [name(0), "nobody"])
    names, table = list(columns), [list(row) for row in zip(*columns.values(), strict=True)]
    if rng.random() < 0.15:  # one cell is as good as any for a flaw
        spoiled = [table, rows][rng.integers(2)]
        row = spoiled[rng.integers(len(spoiled))]
        row[rng.integers(len(row))] = ("", "\u00a0", '"', name(1), "é", "1e999")[rng.integers(6)]
    if rng.random() < 0.05:
        table.append(table[0])
    if rng.random() < 0.05:
        table[-1] = table[-1][:-1]
    header = ["source", "target"]
    if rng.random() < 0.3:
        header.append("weight")
        for row in rows:
            row.append(str(rng.integers(1, 9) / 4))
    if rng.random() < 0.2:
        header.append("edge_type")
        for row in rows:
            row.append("uvw"[rng.integers(3)])
    return _lines(header, rows), _lines(names, table), options


def _feature(rng, nodes):
    kind = rng.integers(5)
    if kind == 0:
        values = [f"{v:.3f}" for v in rng.normal(size=nodes) * 10.0 ** rng.integers(-3, 6)]
    elif kind == 1:
        values = [str(v) for v in rng.integers(3, size=nodes)]
    elif kind == 2:
        values = [f"c{v}" for v in rng.integers(3, size=nodes)]
    elif kind == 3:
        values = [f"2024-0{1 + v % 9}-1{v % 9}" for v in rng.integers(9, size=nodes)]
    else:
        values = [("yes", "no")[v] for v in rng.integers(2, size=nodes)]
    for k in range(nodes):
        if rng.random() < 0.05:
            values[k] = ""
    if rng.random() < 0.15:
        values[rng.integers(nodes)] = ODD[rng.integers(len(ODD))]
    return values


def _answers(rng, task, nodes):
    gap = lambda values: [v if rng.random() > 0.2 else "" for v in values]  # noqa: E731
    if task in ("two", "rare", "many"):
        classes = {"two": 2, "rare": 2, "many": 4}[task]
        drawn = rng.integers(classes, size=nodes)
        if task == "rare":
            drawn = (np.arange(nodes) % 6 == 0).astype(int)
        return {"label": gap([f"k{v}" for v in drawn])}
    if task == "labels":
        return {f"l{k}": gap([str(v) for v in rng.integers(2, size=nodes)]) for k in range(2)}
    names = ["y"] if task == "number" else ["y", "z"]
    return {name: gap([f"{v:.4f}" for v in rng.normal(size=nodes)]) for name in names}


def _lines(header, rows):
    return "\n".join(",".join(row) for row in [header, *rows]) + "\n"


def campaign(seeds, folder, on_difference=lambda text: None):
    """What differs, by seed, and how many graphs ended in what: errors, training, predictions."""
    differences, kinds = {}, collections.Counter()
    for seed in seeds:
        home = folder / str(seed)
        home.mkdir()
        try:
            kind, text = check(seed, home)
        except Exception as error:  # what should have been an answer or one line is the worst
            kind, text = "crashes", f"{type(error).__name__}: {error}"
        kinds[kind] += 1
        shutil.rmtree(home)
        if text:
            differences[seed] = text
            on_difference(f"{seed}: {text}")
    return differences, kinds


def check(seed, folder):
    """What the graph of a seed ends in, and what differs between the backings, if anything."""
    edges, table, options = draw(np.random.default_rng(seed))
    graph = folder / f"g{seed}"
    graph.mkdir()
    (graph / "edges.csv").write_text(edges)
    (graph / "nodes.csv").write_text(table)
    source = Source.resolve(graph, options=options)
    cache = folder / "cache"
    loads = [
        lambda: source.load(),
        lambda: load_source(source, rows=True, memory=1 << 30, cache=cache),
    ]
    memory, disk = (_result(load) for load in loads)
    if isinstance(memory, str) or isinstance(disk, str):
        return "errors", "" if memory == disk else f"{memory!s:.300} != {disk!s:.300}"
    return _differs(memory, disk)


def _result(call):
    try:
        return call()
    except (DataError, ValueError) as error:
        return str(error)


def _differs(memory, disk):
    for field in ("task", "classes", "targets", "feature_names", "num_features", "num_edges"):
        one, other = getattr(memory, field), getattr(disk, field)
        if one != other:
            return "data", f"{field}: {one} != {other}"
    if list(memory.ids) != list(disk.ids):
        return "data", f"ids: {list(memory.ids)} != {list(disk.ids)}"
    for field in ("y", "train_mask", "val_mask", "test_mask"):
        one, other = memory.data.get(field), disk.data.get(field)
        if (one is None) != (other is None):
            return "data", f"{field}: {one} != {other}"
        if one is not None and not torch.equal(one.nan_to_num(-7), other.nan_to_num(-7)):
            return "data", f"{field}: {one} != {other}"
    if memory.backing.types() != disk.backing.types():
        return "data", f"types: {memory.backing.types()} != {disk.backing.types()}"
    if not torch.equal(memory.degrees, disk.degrees):
        return "data", "degrees differ"
    if not torch.equal(memory.data.x.to_dense(), disk.backing.features()):
        return "data", "features differ"
    if memory.notes != disk.notes[:-1]:  # the last says how much memory the graph takes
        return "data", f"notes: {memory.notes} != {disk.notes[:-1]}"
    splits = [_result(lambda d=d: make_split(d)) for d in (memory, disk)]
    if isinstance(splits[0], str) or isinstance(splits[1], str):
        same = splits[0] == splits[1]
        return "splits", "" if same else f"splits: {splits[0]!s:.300} != {splits[1]!s:.300}"
    pairs = zip((memory, disk), splits, strict=True)
    said = [_result(lambda d=d, s=s: _train(d, s)) for d, s in pairs]
    if isinstance(said[0], str) or isinstance(said[1], str):
        same = said[0] == said[1]
        return "training", "" if same else f"training: {said[0]!s:.300} != {said[1]!s:.300}"
    (model, expected), (other, from_disk) = said
    answers = {
        "the model from disk": from_disk,
        "the same model on disk": model.predict(model.problem(disk)),
        "the model from disk in memory": other.predict(other.problem(memory)),
    }
    scale = max(float(expected.abs().max()), 1.0)
    for name, found in answers.items():
        gap = float((found - expected).abs().max()) / scale
        if not gap < 1e-4:
            return "predictions", f"predictions by {name} differ by {gap:.2g}"
    return "predictions", ""


def _train(dataset, split):
    """The models, and what they predict of all nodes."""
    job = Job(dataset, [Config.from_dict(MODEL)], [split])
    fitted = job.run()
    fitted[0].check()
    trained = Trained.collect(job.whole, job.scaling_of(0), fitted)
    return trained, trained.predict(trained.problem(dataset))
