"""Train seeds of LON-GNN's recipes on one graph after the other, and join them."""

import dataclasses
import functools

from lab.records import StudyRecord
from lab.studies._core._context import Context, record_path
from lab.studies._core._joined import (
    BLOCK,
    BLOCKS,
    ENSEMBLES,
    ONE,
    SEEDS,
    TOGETHER,
    EnsemblesCell,
)
from lab.studies._core._protocol import PAPER, QUICK_DATASETS
from lab.studies._core._scores import percent
from lab.studies.depth._plan import PLANS, PUBLISHED, ROWS, rows_of
from lab.studies.depth._run import load
from lab.studies.portfolio._evaluation import fit_seeds, join_every_way
from lab.studies.portfolio._join import SHIFTED
from lab.studies.portfolio._predictions import Predictions
from lab.studies.protocols._plan import record_name
from lab.studies.protocols._train import RowCell
from longnn import data
from longnn.config import Config
from longnn.data import NodeDataset, make_split
from longnn.recipes import load_recipe
from longnn.training import Fitted


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is trained.

    Args:
        protocol: of the splits, their seeds from 0 on.
        splits: how many.
        seeds: of the recipe with one filter.
        blocks: seeds of the recipe with blocks.
        epochs: at most, whatever a recipe says; 0 for those of the recipe.

    >>> FULL.seeds
    8
    """

    protocol: str
    splits: int
    seeds: int
    blocks: int
    epochs: int = 0


FULL = Plan("published", splits=10, seeds=8, blocks=2)
QUICK = Plan("stratified", splits=2, seeds=2, blocks=1, epochs=3)


def run(context: Context) -> None:
    """Every graph that the records lack."""
    plan = QUICK if context.quick else FULL
    known = QUICK_DATASETS if context.quick else PAPER
    for name in context.choose("datasets", known):
        record = context.record(name, plan)
        if ENSEMBLES not in record:
            compute = functools.partial(_cell, context, name, plan)
            cell = record.cell(ENSEMBLES, EnsemblesCell, compute, machine=context.machine())
            best = cell.rows[TOGETHER if TOGETHER in cell.rows else SEEDS][SHIFTED]
            context.tell(f"{name}: {percent(best.test):.2f} % together, shifted")


def _cell(context: Context, name: str, plan: Plan) -> EnsemblesCell:
    dataset = data.load(name, data_dir=context.data_dir)
    splits = [make_split(dataset, plan.protocol, seed) for seed in range(plan.splits)]

    def train(config: Config, seen: NodeDataset, seeds: int) -> list[list[Fitted]]:
        if plan.epochs:
            config = config.replace(epochs=min(config.settings.epochs, plan.epochs))
        return fit_seeds(seen, [(config, k) for k in range(seeds)], splits, context.device)

    fitted = train(Config.from_dict(load_recipe("lon", name)), dataset, plan.seeds)
    blocks = blocks_recipe(context, name)
    if blocks is not None:
        fitted += train(*blocks, plan.blocks)
    p = Predictions.collect(dataset, fitted)
    places = {ONE: range(1), SEEDS: range(plan.seeds)}
    if blocks is not None:
        own = range(plan.seeds, len(fitted))
        places |= {BLOCK: own[:1], BLOCKS: own, TOGETHER: range(len(fitted))}
    rows = {row: join_every_way(p, own) for row, own in places.items()}
    return EnsemblesCell(dataset.fingerprint(), rows)


def blocks_recipe(context: Context, name: str) -> tuple[Config, NodeDataset] | None:
    """The model with blocks that ``depth`` chose on the published split, and the graph as it sees
    it; nothing where there is no record of that.
    """
    path = record_path(context.folder.parent / "depth", record_name(name, PUBLISHED))
    if name not in PLANS[PUBLISHED] or not path.is_file():
        return None
    (key,) = rows_of(PUBLISHED, name)
    cell = StudyRecord.load(path).get(key, RowCell)
    return Config.from_dict(cell.configs[0]), load(name, ROWS[key], context)
