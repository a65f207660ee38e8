"""A finished run put to use: its estimator, predictions, figures and record.

Made by :func:`~longnn.train`, or read from a folder by :func:`~longnn.load_run`.
"""

import functools
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow
import torch
from torch import Tensor

from longnn import explain, report
from longnn.config import Config
from longnn.data import DataError, NodeDataset, Source, Split, make_split
from longnn.data._errors import counted
from longnn.description import score_sets
from longnn.explain._importance import column_importance
from longnn.explain._subject import find_ids
from longnn.records import RECORD, RunRecord, Scores, Summary, summarize_repeats
from longnn.runs._dataset import categories_of, load_graph, read_source
from longnn.runs._export import export_trained
from longnn.runs._folder import PROGRAM, WEIGHTS, read_record
from longnn.runs._new import CHANGED, added, grown, has_changed, only_new
from longnn.runs._predictions import ROWS, prediction_tables, sets_of
from longnn.store._disk import load_source
from longnn.training import Problem, Trained, TruncatedScore, score, truncation_curve
from longnn.training._intervals import Forecast, Opinion
from longnn.training._seen import Seen

if TYPE_CHECKING:
    from longnn.estimator import LONGNNClassifier, LONGNNRegressor
    from longnn.runs._serve import Neighbours, Row, Served

#: Test nodes of a category, over all repeats.
NODES = "test nodes"


class Run:
    """A finished run.

    Args:
        record: every number of it.
        trained: its models.
        dataset, splits, opinions: what it was trained on, the split of each repeat and what each
            predicts, where they are known; else made again when needed.
        seconds: where the time went; by default as in the record.
        data_dir, memory, cache: how its graph is read again, see :func:`load_run`.
    """

    def __init__(
        self,
        record: RunRecord,
        trained: Trained,
        dataset: NodeDataset | None = None,
        *,
        splits: Sequence[Split] | None = None,
        opinions: Sequence[Opinion] | None = None,
        seconds: Mapping[str, float] | None = None,
        data_dir: str | Path | None = None,
        memory: int | None = None,
        cache: str | Path | None = None,
    ) -> None:
        self.record, self.trained = record, trained
        self._reading: dict[str, Any] = {"data_dir": data_dir, "memory": memory, "cache": cache}
        #: Where the time went, step by step; the record has it up to its own writing.
        self.seconds = record.seconds if seconds is None else seconds
        #: Whose answers the last predictions knew, what of the graph lies outside what was trained
        #: on, and which nodes were scored, in words.
        self.known, self.outside, self.scored = "", "", ""
        # What training knows already is not made again.
        known = {"dataset": dataset, "splits": splits, "opinions": opinions}
        vars(self).update({name: value for name, value in known.items() if value is not None})

    def __repr__(self) -> str:
        name, model = self.record.name, self.record.model
        return f"Run({name!r}, model={model!r}, repeats={self.trained.repeats})"

    def _repr_html_(self) -> str:
        return report.short_page(self.record)

    @property
    def folder(self) -> Path | None:
        """Where it is kept, or None."""
        return self.record.folder

    @property
    def config(self) -> Config:
        """What it was trained with."""
        return self.trained.config

    @property
    def source(self) -> Source | None:
        """Where its graph comes from; None for one that was in memory."""
        found = self.record.data.source
        return None if found is None else read_source(found, (self.folder or Path()) / RECORD)

    @functools.cached_property
    def estimator(self) -> "LONGNNClassifier | LONGNNRegressor":
        """The models as a fitted estimator, for any graph with the same features."""
        from longnn.estimator import LONGNNClassifier, LONGNNRegressor  # scikit-learn: slow to load

        cls = LONGNNRegressor if self.trained.task == "regression" else LONGNNClassifier
        made: LONGNNClassifier | LONGNNRegressor = cls.from_trained(self.trained)
        return made

    @property
    def figures(self) -> "report.Figures":
        """The figures of the report, one method each: ``run.figures.filter()``."""
        return report.Figures(self.record)

    @functools.cached_property
    def dataset(self) -> NodeDataset:
        """The data it was trained on, the very same.

        Raises:
            DataError: where it cannot be read again, or has changed since.
        """
        source = self.source
        if source is None:
            raise DataError(
                "Expected the graph that the run was trained on: it was in memory and is not kept"
            )
        wanted = self.record.data.fingerprint
        file = (self.folder or Path()) / RECORD
        dataset = load_graph(source, file, wanted, **self._reading)
        if dataset.fingerprint() != wanted:
            raise DataError(
                "Expected the data the run was trained on (the files have changed since)"
            )
        return dataset

    @functools.cached_property
    def asked(self) -> NodeDataset:
        """The nodes of its data that scores are about: all, or those with a label."""
        return self.dataset.asked

    @functools.cached_property
    def problem(self) -> Problem:
        """The data as the models want it."""
        return self._hearing(self.trained.problem(self.asked, known="run"))

    def _hearing(self, problem: Problem) -> Problem:
        """The same, :attr:`known` set."""
        self.known = "" if problem.known is None else problem.known.text
        return problem

    @functools.cached_property
    def opinions(self) -> Sequence[Opinion]:
        """What each repeat predicts for :attr:`asked`, and how far its members disagree."""
        try:
            return self.trained.opinions(self.problem)
        except DataError as error:
            raise DataError(str(error), path=self.folder and self.folder / WEIGHTS) from error

    @property
    def predicted(self) -> Sequence[Tensor]:
        """What each repeat predicts for :attr:`asked`: probabilities or values."""
        return [opinion.predicted for opinion in self.opinions]

    @functools.cached_property
    def splits(self) -> Sequence[Split]:
        """The split of each repeat."""
        config = self.config
        return [
            make_split(self.dataset, config.split, config.seed + i)
            for i in range(self.trained.repeats)
        ]

    def _asked_splits(self) -> list[Split]:
        """The same of the nodes that scores are about."""
        if self.asked is self.dataset:
            return list(self.splits)
        return [split.of(self.asked.backing.places()) for split in self.splits]

    def predictions(
        self, repeat: int | None = None, *, coverage: float | None = None
    ) -> pyarrow.Table:
        """One row per node of its graph: the mean over the repeats, or one repeat's own.

        Nodes have a column ``set`` where all that is shown comes from one split: a test node of
        one repeat may be a training node of another.

        Args:
            repeat: the number of one repeat; None for the mean of all.
            coverage: share of nodes whose answer lies between ``low`` and ``high``, or is in
                ``plausible``; by default as the run was trained with.
        """
        return pyarrow.concat_tables(self.tables(repeat, coverage=coverage))

    def to_pandas(self, repeat: int | None = None, *, coverage: float | None = None) -> Any:
        """:meth:`predictions` as a data frame of pandas."""
        return self.predictions(repeat, coverage=coverage).to_pandas()

    def predict(
        self,
        dataset: NodeDataset,
        repeat: int | None = None,
        *,
        coverage: float | None = None,
        known_answers: str = "auto",
    ) -> pyarrow.Table:
        """The same for another graph; ``known_answers`` as in :meth:`tables`."""
        tables = self.tables(repeat, dataset, coverage=coverage, known_answers=known_answers)
        return pyarrow.concat_tables(tables)

    def predict_new(
        self,
        new: str | Path,
        repeat: int | None = None,
        *,
        old: bool = False,
        coverage: float | None = None,
        known_answers: str = "auto",
    ) -> pyarrow.Table:
        """The same for nodes that came later, in the run's graph, without training.

        Args:
            new: a folder with a table of the new nodes, and one of all edges that touch them; other
                ends may be nodes of the run's graph.
            repeat, coverage, known_answers: as in :meth:`tables`.
            old: the nodes of the run's graph too; a column ``new`` says which are not.
        """
        source, like = grown(self.source, new), self.trained.encoding
        if has_changed(self.source, lambda: self.dataset):
            warnings.warn(CHANGED, stacklevel=2)
        dataset = self.trained.encode(load_source(source, like=like, **self._reading))
        tables = self.tables(repeat, dataset, coverage=coverage, known_answers=known_answers)
        return pyarrow.concat_tables(only_new(tables, dataset, old=old))

    def predict_one(
        self, row: "Row", neighbours: "Neighbours" = (), *, coverage: float | None = None
    ) -> dict[str, Any]:
        """The same for one new node, in milliseconds; the first call takes seconds, and memory.

        Args:
            row: its columns by name, as they would stand in a file; for a graph that does not come
                from a table its features in order.
            neighbours: ids of nodes of the run's graph; where edges have weights a mapping from
                ids to these.
            coverage: see :meth:`predictions`.

        Returns:
            its prediction by column, and whether it is ``exact``: as :meth:`predict_new` has it, to
            rounding. Else reactions of far nodes to the new one are left out.
        """
        return self._served.predict(row, neighbours, self._coverage(coverage))

    @functools.cached_property
    def _served(self) -> "Served":
        from longnn.runs._serve import Served

        return Served(self.trained, self.dataset)

    def _coverage(self, coverage: float | None) -> float | None:
        """Of the intervals that are shown, if any are."""
        if coverage is None and self.trained.intervals:
            coverage = self.config.coverage
        if coverage is not None:
            self.trained.check_coverage(coverage)
        return coverage

    def tables(
        self,
        repeat: int | None = None,
        dataset: NodeDataset | None = None,
        *,
        memory: int | None = None,
        coverage: float | None = None,
        known_answers: str = "auto",
    ) -> Iterator[pyarrow.Table]:
        """The same as tables of some rows each, for graphs of any size.

        Args:
            repeat: the number of one repeat; None for the mean of all.
            dataset: another graph; by default the run's own.
            memory: bytes that computing missing terms may use.
            coverage: see :meth:`predictions`.
            known_answers: whose answers are known: ``run``, ``file``, ``same``, ``none``, or
                ``auto``, see :meth:`~longnn.training.Trained.problem`; :attr:`known` has it in
                words. In the run's own graph ``auto`` is ``run``: no label of a test node is used.
        """
        if repeat is not None and not 0 <= repeat < self.trained.repeats:
            raise DataError(f"Expected a repeat below {self.trained.repeats} (got {repeat})")
        trained, sets = self.trained, None
        own = self.dataset if dataset is None else dataset
        if dataset is None:
            known_answers = "run" if known_answers == "auto" else known_answers
            splits = self.splits if repeat is None else [self.splits[repeat]]
            sets = sets_of(splits)
        coverage = self._coverage(coverage)
        new = None if own.source is None or dataset is None else added(own)
        self.outside = "" if dataset is None else trained.outside(own, new)
        every: Iterable[Sequence[Opinion]]
        if dataset is None and self.asked is own and known_answers == "run":  # done already
            every = [self.opinions if repeat is None else [self.opinions[repeat]]]
        else:
            problem = trained.problem(own, memory=memory, known=known_answers)
            every = trained.opinion_batches(self._hearing(problem), repeat=repeat, size=ROWS)
        batches = self._forecasts(every, own, coverage, repeat)
        return prediction_tables(trained, own, batches, repeat=repeat, sets=sets)

    def _forecasts(
        self,
        every: Iterable[Sequence[Opinion]],
        dataset: NodeDataset,
        coverage: float | None,
        repeat: int | None,
    ) -> Iterator[Forecast]:
        """What is said of some nodes after the other, with intervals."""
        degrees, start = None if coverage is None else dataset.degrees, 0
        for opinions in every:
            stop = start + len(opinions[0].predicted)
            own = None if degrees is None else degrees[start:stop]
            yield self.trained.forecast(opinions, coverage, own, repeat=repeat)
            start = stop

    def explain(self, nodes: Sequence[Any] | None = None, **options: Any) -> Any:
        """Why nodes are predicted so; without nodes, what all predictions come from.

        Args:
            nodes: ids, as the run's graph has them.
            options: of :func:`~longnn.explain.explain_nodes`, or without nodes of
                :func:`~longnn.explain.explain_model`.
        """
        options = {"known": "run", **options}
        if nodes is None:
            overview = explain.explain_model(self.trained, self.dataset, **options)
            return overview.with_importance(self.column_importance())
        places = find_ids(self.dataset.ids, [str(node) for node in nodes])
        return explain.explain_nodes(self.trained, self.dataset, places, **options)

    def column_importance(self, draws: int | None = None) -> Mapping[str, Summary]:
        """What the headline score of test nodes loses where a column is shuffled over the nodes.

        All features of a column are shuffled together, and all models predict the changed graph,
        with the known answers of the run.

        Args:
            draws: how often; by default as in the report, or as often as takes seconds, perhaps
                never.

        Returns:
            the mean over the draws by column, that which counts most first.
        """
        if draws is None and self.record.importance:
            return self.record.importance
        asked = self.trained, self.dataset, self.splits, self.record.metric
        return column_importance(*asked, draws=draws)

    def evaluate(
        self,
        dataset: NodeDataset | None = None,
        *,
        another: bool = False,
        known_answers: str = "same",
    ) -> tuple[list[Scores], dict[str, dict[str, Summary]]]:
        """The scores of every repeat and their summary, computed again from weights and data.

        Of a graph: its labels that the run did not know are the test, and :attr:`scored` says how
        many these are. Nodes are told apart by their ids.

        Args:
            dataset: the run's graph with labels that came later, or another graph.
            another: whether its nodes are others than those of the run with the same ids.
            known_answers: as in :meth:`tables`; ``same`` are those that the run knew in its graph.

        Raises:
            DataError: for a graph without such labels.
        """
        if dataset is None:
            predicted, asked, splits = self.predicted, self.asked, self._asked_splits()
        else:
            asked, later = self._later(dataset, another)
            problem = self._hearing(self.trained.problem(asked, known=known_answers))
            predicted = [opinion.predicted for opinion in self.trained.opinions(problem)]
            splits = [later] * self.trained.repeats
        repeats = zip(predicted, splits, self.trained.readouts, strict=True)
        scores = [score_sets(said, asked, split, readout) for said, split, readout in repeats]
        return list(scores), summarize_repeats(scores)

    def _later(self, dataset: NodeDataset, another: bool) -> tuple[NodeDataset, Split]:
        """The nodes of a graph that have a label, or all; those whose label the run did not know
        are its test nodes."""
        if not bool(dataset.labelled.any()):
            raise DataError("Expected labels, to compare predictions with (got none)")
        self.outside = self.trained.outside(dataset)
        given = self.trained.suited(dataset).asked
        asked, seen = self.trained.answered(given), self.trained.seen or Seen.of(self.dataset)
        known = torch.zeros_like(asked.labelled) if another else seen.knew(asked.ids)
        later, nobody = asked.labelled & ~known, torch.zeros_like(known)
        told = counted(int((given.labelled & known).sum()), "node")
        if not bool(later.any()):
            raise DataError(
                f"Expected labels that the run did not know (got {told} with ids whose label it "
                "knew); if these are other nodes with the same ids, use --another, or another=True"
            )
        strange = counted(int((given.labelled & ~asked.labelled & ~known).sum()), "node")
        self.scored = f"{counted(int(later.sum()), 'node')} whose label came later; not scored: "
        self.scored += f"{told} whose label the run knew, {strange} of a class unknown to it"
        return asked, Split(nobody, nobody, later, "later", 0)

    def scores_by(self, column: str) -> pyarrow.Table:
        """The scores of test nodes in each category of a column, the largest first.

        Args:
            column: of the node table, used in training or not. Numbers of many values are cut at
                their quartiles.

        Returns:
            a table with a row per category: how many test nodes it has over all repeats, and the
            mean of each score; empty where a score says nothing of so few.
        """
        names, codes = categories_of(self.asked, column)
        splits, rows = self._asked_splits(), list[dict[str, Any]]()
        for k, name in enumerate(names):
            masks = [split.test & torch.from_numpy(codes == k) for split in splits]
            repeats = zip(self.predicted, masks, self.trained.readouts, strict=True)
            each = [score(p, self.asked, mask, readout) for p, mask, readout in repeats]
            metrics = dict.fromkeys(metric for scores in each for metric in scores)
            means = {m: float(np.mean([s[m] for s in each if m in s])) for m in metrics}
            rows.append({column: name, NODES: sum(int(mask.sum()) for mask in masks), **means})
        rows = sorted((row for row in rows if row[NODES]), key=lambda row: -row[NODES])
        if not rows:
            raise DataError("Expected a run with test nodes, to score them (it has none)")
        keys = dict.fromkeys(key for row in rows for key in row)
        return pyarrow.table({key: [row.get(key) for row in rows] for key in keys})

    def truncation(self) -> list[list[TruncatedScore]]:
        """The scores of each repeat with truncated filters, against the number of products.

        Raises:
            ValueError: for a model without filters, or with a basis that is not orthonormal.
        """
        splits = self._asked_splits()
        repeats = zip(self.trained.models, splits, self.trained.readouts, strict=True)
        return [
            truncation_curve(model, self.problem, self.asked, split, readout)
            for model, split, readout in repeats
        ]

    def export(self, path: str | Path | None = None) -> Path:
        """Write the run as a program of torch, a function of features and graph arrays.

        It runs without longnn, on any graph: ``torch.export.load(path).module()`` takes ``x``
        float32 (nodes, features), ``edge_index`` int64 (2, arcs) with both directions of an edge
        and ``edge_weight`` float32 (arcs,), and gives what :meth:`predict` gives. ``x`` are encoded
        features as the run's dataset has them; scaling is part of the program.

        Args:
            path: a file ``.pt2``; by default ``model.pt2`` in the run's folder.

        Raises:
            ValueError: where there is no such place.
        """
        if path is None:
            if self.folder is None:
                raise ValueError("Expected a path for a run without a folder (got None)")
            path = self.folder / PROGRAM
        return export_trained(self.trained, Path(path))


def load_run(
    folder: str | Path,
    *,
    data_dir: str | Path | None = None,
    memory: int | None = None,
    cache: str | Path | None = None,
) -> Run:
    """A finished run from its folder: record, models, predictions, figures.

    Args:
        folder: the run folder.
        data_dir: where the files of named datasets are, if its graph is to be read again.
        memory: bytes that preparing it again may use, if it was on disk.
        cache: the folder where it is prepared.

    Raises:
        DataError: where there is no finished run, or its files are damaged.
    """
    folder = Path(folder)
    record = read_record(folder)
    trained, _ = Trained.load(folder / WEIGHTS)
    if trained.repeats != len(record.repeats):
        raise DataError(
            f"Expected weights of {len(record.repeats)} repeats in {folder / WEIGHTS} "
            f"(got {trained.repeats})"
        )
    return Run(record, trained, data_dir=data_dir, memory=memory, cache=cache)
