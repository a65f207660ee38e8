"""Which few configurations serve all kinds of graphs: portfolios, and how members are joined.

Candidates are recipes of single graphs and random configurations, trained on graphs of many kinds.
The set is chosen greedily whose members, judged by validation nodes, lose least on nodes that took
no part in training. Each kind of graph, and each graph that has a recipe, is left out in turn to
see what the choice is worth on graphs it has not seen.

Every split has its own seed from 1000 on: 60 % of the nodes train, 20 % are validation nodes, and
the scores are of the other 20 %, the selection holdout. No reported split is used.

Each step is named as its record: the name of a graph, ``selection``, ``test-`` and the name of a
graph or table. The test is on splits that took no part in the choice: the graphs of the paper with
the portfolios that were chosen without each; the tables of the study ``tables`` and graphs of
unseen kinds with the whole ones.
"""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from lab.records import Values
from lab.studies._engine import Cell, Cells, Context, read_records
from lab.studies._printed import PAPER
from lab.studies._training import as_trained, fit_all, make_splits, train_table
from lab.studies.portfolio._candidates import candidates, tuned_on
from lab.studies.portfolio._graphs import GRAPHS, UNSEEN, kind_of
from lab.studies.portfolio._members import (
    JOINED,
    SHIFTED,
    Predictions,
    Scored,
    join,
)
from lab.studies.portfolio._select import (
    SELECTION,
    Candidate,
    Limits,
    choose_all,
    member_config,
    members_of,
)
from lab.studies.portfolio._tables import (
    CANDIDATES,
    RIVALS,
    TABLES,
    TEST,
    TESTED,
    TESTED_UNSEEN,
    TWO_WAY,
    facts,
    tables,
)
from longnn.config import Config
from longnn.config._values import toml_value
from longnn.data import NodeDataset, Split
from longnn.data._convert import undirected
from longnn.metrics import headline
from longnn.training import (
    FREE,
    PATIENCE,
    SEED_STEP,
    SEEDS,
    Fitted,
    complete,
    data_defaults,
    shape_of,
)

__all__ = ["AFTER", "ORDER", "TITLE", "cells", "facts", "files", "tables"]

TITLE = "Which few configurations serve all kinds of graphs (not in the paper)"
ORDER, AFTER = 105, ("ensembles",)

Plan = Mapping[str, Any]
#: The training of the candidates; the splits have the seeds from ``first`` on.
FULL: Plan = {"splits": 2, "epochs": 1000, "patience": PATIENCE, "first": 1000}
QUICK: Plan = {"splits": 1, "epochs": 3, "patience": 3, "first": 1000}
#: The portfolios: one that is quick enough to be the usual one, and one that may cost more.
LIMITS = {"default": Limits(8, 5, only_own=True), "best": Limits(16, 10, only_own=False)}
QUICK_LIMITS = {"default": Limits(2, 2, only_own=True), "best": Limits(3, 3, only_own=False)}
#: The test: splits of the paper's graphs, and of tables and graphs of unseen kinds.
EVALUATION: Plan = {"splits": 10, "tables": 5, "epochs": 1000, "patience": PATIENCE}
QUICK_EVALUATION: Plan = {"splits": 1, "tables": 1, "epochs": 3, "patience": 3}
QUICK_GRAPHS = ("diabetes", "xor", "cancer")
QUICK_TESTED = ("table-wine", "unseen-levels")
#: Models that may join the smaller portfolio.
OWN = ("lon", "mlp")
#: Families are compared by so many members of each, in the order of the choice.
EQUAL = 2


def cells(context: Context) -> Cells:
    """The steps that were asked for, by default all."""
    plan, limits = (QUICK, QUICK_LIMITS) if context.quick else (FULL, LIMITS)
    graphs = QUICK_GRAPHS if context.quick else tuple(GRAPHS)
    tested = QUICK_TESTED if context.quick else (*TESTED, *TESTED_UNSEEN)
    tests = {f"test-{name}": name for name in tested}
    names = context.choose("datasets", [*graphs, SELECTION, *tests])
    for name in [name for name in names if name in graphs]:
        yield Cell(name, plan, CANDIDATES, partial(_train_candidates, context, plan, name))
    wanted = [tests[name] for name in names if name in tests]
    if not wanted and SELECTION not in names:
        return
    whole = {"candidates": plan, **{k: dataclasses.asdict(v) for k, v in limits.items()}}
    cell = partial(Cell, SELECTION, whole, device="cpu")
    missing = [name for name in graphs if not predictions_path(context.folder, name).is_file()]
    if missing and not read_records(context.folder, [SELECTION]):
        context.tell("the choice waits for " + ", ".join(missing))
        return
    selection = yield cell(SELECTION, partial(_choose, context.folder, graphs, limits))
    for name in wanted:
        evaluation = QUICK_EVALUATION if context.quick else EVALUATION
        yield from _test_cells(context, selection, name, evaluation)


def predictions_path(folder: Path, name: str) -> Path:
    """Where what the candidates predict on a graph is kept: too much to commit."""
    return folder / "predictions" / f"{name}.npz"


def _train_candidates(context: Context, plan: Plan, name: str) -> dict[str, Any]:
    """What every candidate reached on one graph, and which of them is the default there."""
    dataset = GRAPHS[name].make(context.data_dir)
    # A split's three parts are 60, 20 and 20 %; what it calls test is the selection holdout.
    splits = make_splits(dataset, "stratified", plan["splits"], plan["first"])
    configs = candidates({"epochs": plan["epochs"], "patience": plan["patience"]})
    fitted = fit_all(dataset, list(configs.values()), splits, device=context.device)
    kept = Predictions.collect(dataset, fitted)
    kept.write(predictions_path(context.folder, name))
    scores = {c: join(kept, [i], ["average"])["average"] for i, c in enumerate(configs)}
    by_name = dict(zip(configs, fitted, strict=True))
    return {
        "fingerprint": dataset.fingerprint(),
        "metric": headline(dataset.data.y, dataset.task)[0],
        "usual": usual_candidate(dataset),
        "val": {c: scored["val"] for c, scored in scores.items()},
        "holdout": {c: scored["test"] for c, scored in scores.items()},
        "best_epochs": {c: [f.result.best_epoch for f in runs] for c, runs in by_name.items()},
        "epochs": {c: [f.result.epochs for f in runs] for c, runs in by_name.items()},
    }


def usual_candidate(dataset: NodeDataset) -> str:
    """The candidate that is filled in for this data where nothing is set."""
    if not data_defaults(dataset):
        return "default"
    return "table, numbers" if dataset.task == "regression" else "table, classes"


def describe(name: str, config: Config) -> Candidate:
    """What the choice has to know of a candidate."""
    graph = tuned_on().get(name)
    kind = None if graph is None else kind_of(graph)
    return Candidate(shape_of(config), config.model in OWN, graph, kind)


def _choose(folder: Path, names: Sequence[str], limits: Mapping[str, Limits]) -> dict[str, Any]:
    graphs = {name: Predictions.read(predictions_path(folder, name)) for name in names}
    every = candidates({})
    described = {name: describe(name, config) for name, config in every.items()}
    selection = choose_all(described, graphs, {name: kind_of(name) for name in graphs}, limits)
    chosen = {m for portfolio in selection["portfolios"].values() for m in members_of(portfolio)}
    return {**selection, "configs": {n: c.to_dict() for n, c in every.items() if n in chosen}}


def _test_cells(context: Context, selection: Values, name: str, plan: Plan) -> Cells:
    """The portfolios on one graph; on one of an unseen kind rivals, too, and what arcs are worth:
    the smaller portfolio with every arc made two-way.
    """
    cell = partial(Cell, f"test-{name}", plan)
    portfolios = selection["portfolios"]
    members = {key: portfolio["members"] for key, portfolio in portfolios.items()}
    if name in PAPER:
        members = {key: of["without_graph"][name] for key, of in portfolios.items()}
    load = cache(partial(_load, context, name, plan))
    limits = {"epochs": plan["epochs"], "patience": plan["patience"]}
    known = {member: member_config(selection, member, limits) for member in selection["configs"]}

    def test() -> dict[str, Any]:
        return run_test(*load(), known, members, device=context.device)

    yield cell(TEST, test)
    if name not in TESTED_UNSEEN:
        return
    for rival in RIVALS:
        train = lambda rival=rival: train_table(rival, *load(), plan["epochs"])  # noqa: E731
        yield cell(rival, train, device="cpu")
    if load()[0].directed:

        def test_two_way() -> dict[str, Any]:
            dataset, splits = load()
            chosen = {"default": members["default"]}
            return run_test(undirected(dataset), splits, known, chosen, device=context.device)

        yield cell(TWO_WAY, test_two_way)


def _load(context: Context, name: str, plan: Plan) -> tuple[NodeDataset, list[Split]]:
    """A graph of the test with its splits."""
    if name in PAPER:
        dataset = context.load(name)
        return dataset, make_splits(dataset, "published", plan["splits"])
    if name in TESTED_UNSEEN:
        dataset = UNSEEN[TESTED_UNSEEN[name]].make(None)
    else:
        dataset = TABLES[name.removeprefix("table-")]()
    return dataset, make_splits(dataset, "stratified", plan["tables"])


def run_test(
    dataset: NodeDataset,
    splits: Sequence[Split],
    known: Mapping[str, Config],  # the members that there are
    chosen: Mapping[str, Sequence[str]],  # by portfolio
    *,
    device: str = "auto",
) -> dict[str, Any]:
    """Train everything in one call, so that models of one shape train together; then join.

    Returns:
        scores over the splits of one model with nothing set (``default``), as trained and shifted
        as in use; and of every portfolio: each member ``alone``, all seeds of all members
        ``joined`` in every way, and the ``families``: the ``whole`` of one, and its first few
        members, as many of every family that has them (``equal``).
    """
    wanted: dict[Hashable, tuple[Config, int]] = {
        "default": (complete({"preset": "fast"}, dataset), 0)
    }
    for key, members in chosen.items():
        wanted |= {(m, k): (known[m], k) for k in range(SEEDS[key]) for m in members}
    number = {key: i for i, key in enumerate(wanted)}
    p = Predictions.collect(dataset, fit_seeds(dataset, list(wanted.values()), splits, device))

    def alone(key: Hashable) -> Scored:
        return join(p, [number[key]], ["average"])["average"]

    def votes(members: Sequence[str], times: int) -> Scored:
        return join(p, [number[m, k] for k in range(times) for m in members], [JOINED])[JOINED]

    portfolios = {}
    for key, members in chosen.items():
        times = SEEDS[key]
        families: dict[str, list[str]] = {}
        for member in members:
            families.setdefault(known[member].model, []).append(member)
        every = [number[m, k] for k in range(times) for m in members]
        portfolios[key] = {
            "members": list(members),
            "alone": {m: alone((m, 0)) for m in members},
            "joined": join(p, every),
            "families": {
                model: {
                    "members": len(of),
                    "whole": votes(of, times),
                    "equal": votes(of[:EQUAL], times),
                }
                for model, of in families.items()
            },
        }
    return {
        "fingerprint": dataset.fingerprint(),
        "metric": headline(dataset.data.y, dataset.task)[0],
        "default": alone("default"),
        "portfolios": portfolios,
        "default_shifted": join(p, [number["default"]], [SHIFTED])[SHIFTED],
    }


def fit_seeds(
    dataset: NodeDataset, wanted: Sequence[tuple[Config, int]], splits: Sequence[Split], device: str
) -> list[list[Fitted]]:
    """Each configuration with the seed of the split or a later one; shifts come when joined."""
    configs = [as_trained(config).replace(seed=SEED_STEP * k) for config, k in wanted]
    return fit_all(dataset, configs, splits, device=device)


_HEAD = """\
# Portfolios: configurations that are trained side by side. One table per member, in the order of
# the choice. From the records in results, see docs/results/portfolio.md.
"""


def files(root: Path) -> dict[Path, str]:
    """The portfolios of the package: one table per member; nothing before the choice is made."""
    records = read_records(root / "results" / "portfolio", [SELECTION])
    if not records:
        return {}
    selection = records[SELECTION][SELECTION]
    blocks = [_HEAD]
    for key, portfolio in selection["portfolios"].items():
        for member in portfolio["members"]:
            lines = member_config(selection, member).to_toml(leave_out=FREE)
            blocks.append("\n".join([f"[{key}.{toml_value(member)}]", *lines]) + "\n")
    return {root / "longnn" / "training" / "portfolio.toml": "\n".join(blocks)}
