"""Trained models and all they need to predict on any graph, in memory or as one file."""

import copy
import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor

from longnn._base.schema import Node
from longnn.config import Config
from longnn.data import DataError, NodeDataset
from longnn.data._errors import counted
from longnn.data._scaling import Scaling
from longnn.metrics import Task
from longnn.nn import Model
from longnn.nn._ensemble import Ensemble
from longnn.training._files import read_trained, write_trained
from longnn.training._fit import (
    ROWS,
    Fitted,
    heard_batches,
    load_weights,
    make_model,
    make_problem,
)
from longnn.training._group import architecture_of
from longnn.training._intervals import Forecast, Intervals, Opinion, plausible
from longnn.training._known import Around, Known, KnownFilter, Rests, Told
from longnn.training._problem import Problem
from longnn.training._readout import Readout
from longnn.training._seen import Seen

if TYPE_CHECKING:
    from longnn.data._encoding import Encoding


#: Whose answers may be known, see :meth:`Trained.problem`.
WHOSE = ("auto", "run", "same", "file", "none")
#: Nodes by which a graph is recognised as that of the run.
SAMPLE = 1 << 16


def match_features(
    dataset: NodeDataset, names: Sequence[str], count: int, open_features: int
) -> NodeDataset:
    """The dataset with its features ordered as in training.

    Args:
        dataset: whose features are made as in training.
        names: of the features of training, or empty.
        count: how many there were.
        open_features: how many of the last ones were an open vocabulary.

    Raises:
        DataError: for other features.
    """
    given = dataset.feature_names
    if names and given and tuple(names) != tuple(given):
        known, new = open_features, dataset.open_features
        if not (known and new):  # what one of them has fixed is fixed
            known = new = 0
        fixed, held = len(names) - known, len(given) - new
        place = _match_fixed(names[:fixed], given[:held])
        if known:
            place += _match_open(names[fixed:], given[held:], first=held)
        dataset = dataset.backing.take_features(dataset, place)
        dataset = dataclasses.replace(
            dataset, feature_names=tuple(names), open_features=open_features
        )
    if dataset.num_features != count:
        raise DataError(
            f"Expected {count} features as the run was trained with (got {dataset.num_features})"
        )
    return dataset


def _match_fixed(names: Sequence[str], given: Sequence[str]) -> list[int]:
    """Where each feature of training is among those of a graph, which must be the same."""
    place = {name: i for i, name in enumerate(given)}
    missing = [name for name in names if name not in place]
    if missing:
        raise DataError(
            f"Expected the features the run was trained with (missing {missing[0]!r}; "
            f"the graph has {', '.join(given[:8])}{', ...' if len(given) > 8 else ''})"
        )
    extra = sorted(place.keys() - set(names), key=place.__getitem__)
    if extra:
        raise DataError(
            f"Expected {len(names)} features as the run was trained with (got "
            f"{len(given)}; not known: {extra[0]!r}); leave them out with "
            "--data feature_columns=..."
        )
    return [place[name] for name in names]


def _match_open(names: Sequence[str], given: Sequence[str], first: int) -> list[int]:
    """The same for an open vocabulary: -1 where the graph does not have the feature."""
    place = {name: i for i, name in enumerate(given, start=first)}
    found = [place.get(name, -1) for name in names]
    if max(found) < 0:
        raise DataError(
            f"Expected features the run was trained with, such as {names[0]!r} (got only unknown "
            f"ones, such as {given[0]!r})"
        )
    return found


def match_edge_types(dataset: NodeDataset, names: Sequence[str]) -> NodeDataset:
    """The dataset with the types of edges in the order of training."""
    own = tuple(dataset.backing.types())
    return dataset if own == tuple(names) else dataset.backing.take_types(dataset, names)


@dataclasses.dataclass(frozen=True, eq=False)
class Trained:
    """The repeats of one training, ready to predict.

    Args:
        config: what they were trained with; repeat i has the seed ``config.seed + i``.
        task: classification, regression or multilabel.
        classes: names of the classes or labels, in the order of the outputs; empty for regression.
        targets: names of several numbers to predict, or empty.
        features: number of features.
        feature_names: their names, or empty.
        open_features: how many of the last ones are an open vocabulary: on another graph unknown
            ones are left out and absent ones are zero.
        scaling: what was done to the features.
        states: the weights of each repeat, by name.
        readouts: how the outputs of each repeat become predictions.
        encoding: how the columns of a table became features, or None.
        edge_types: names of the types of edges, or empty where all edges are alike.
        members: the configurations of the models that ensembles consist of, by name; empty where
            the repeats are single models.
        intervals: what is known of the errors of each repeat; empty in files before version 0.13.
        known: how known answers correct the predictions of each repeat; empty where none do.
        told: these answers, of each repeat; None where they are not used.
        seen: what of the graph is kept to compare others with; None before version 0.14.
        heard: what they change at the nodes of a part of a graph, learned on the whole of it.
    """

    config: Config
    task: Task
    classes: tuple[str, ...]
    features: int
    feature_names: tuple[str, ...]
    scaling: Scaling
    states: tuple[Mapping[str, Tensor], ...]
    readouts: tuple[Readout, ...]
    targets: tuple[str, ...] = ()
    encoding: "Encoding | None" = None
    open_features: int = 0
    members: Mapping[str, Config] = dataclasses.field(default_factory=dict)
    edge_types: tuple[str, ...] = ()
    intervals: tuple[Intervals, ...] = ()
    known: tuple[KnownFilter, ...] = ()
    told: tuple[Told | None, ...] = ()
    seen: Seen | None = None
    heard: Known | None = None

    @classmethod
    def collect(cls, dataset: NodeDataset, scaling: Scaling, fitted: Sequence[Fitted]) -> Self:
        """What :func:`~longnn.training.fit` gave for the repeats of one configuration."""
        trained = cls(
            config=fitted[0].config.replace(repeat=len(fitted)),
            task=dataset.task,
            classes=tuple(dataset.classes),
            features=dataset.num_features,
            feature_names=tuple(dataset.feature_names),
            scaling=scaling,
            states=tuple(f.result.state for f in fitted),
            readouts=tuple(f.readout for f in fitted),
            targets=tuple(dataset.targets),
            encoding=dataset.encoding,
            open_features=dataset.open_features,
            members={m.name: m.fitted.config for f in fitted for m in f.members if m.weight > 0},
            edge_types=tuple(dataset.backing.types()),
            intervals=tuple(f.intervals for f in fitted if f.intervals is not None),
            known=tuple(f.known for f in fitted if f.known is not None),
            told=tuple(f.told for f in fitted),
            seen=Seen.of(dataset),
        )
        vars(trained)["models"] = tuple(f.model for f in fitted)  # as the cached property has it
        return trained

    @property
    def repeats(self) -> int:
        """How many models there are."""
        return len(self.states)

    @property
    def directed(self) -> bool:
        """Whether the models see which way edges go, and want a graph that keeps its arcs."""
        return self.config.direction == "cover"

    @property
    def row_degree(self) -> int | None:
        """How far a prediction sees, where a node's rows of terms are enough for it; else None."""
        each = [model.row_degree for model in self.models]
        return None if None in each else max(degree for degree in each if degree is not None)

    @functools.cached_property
    def models(self) -> tuple[Model, ...]:
        """The models, with their weights, in evaluation mode."""
        return tuple(load_weights(self._make(state), state) for state in self.states)

    def _make(self, state: Mapping[str, Tensor]) -> Model:
        """The model that weights are of: a single one, or the ensemble of those that are named."""
        sizes, types = (self.features, self.outputs), len(self.edge_types)
        if not self.members:
            return make_model(self.config, *sizes, types=types, table=state.get("table"))
        names = list(dict.fromkeys(k.split(".")[1] for k in state if k.startswith("members.")))
        unknown = [name for name in names if name not in self.members]
        if unknown or not names:
            raise ValueError(f"Expected weights of known members (got {unknown or 'none'})")
        equal = dict.fromkeys(names, 1.0)  # the weights of the members are weights, too
        tables = {n: state.get(f"members.{n}.table") for n in names}
        models = {
            n: make_model(self.members[n], *sizes, types=types, table=tables[n]) for n in names
        }
        alike = {name: architecture_of(self.members[name]) for name in names}
        return Ensemble(models, equal, equal, self.task, alike)

    def problem(
        self, dataset: NodeDataset, *, memory: int | None = None, known: str = "auto"
    ) -> Problem:
        """A graph, the same or another, as the models want it, with what known answers change.

        Args:
            dataset: the graph.
            memory: bytes that computing stored terms may use.
            known: whose answers are known: ``"run"``, those that the run knew in its own graph;
                ``"file"``, the labels of this one; ``"none"``; ``"same"``, those of the run where
                this is its graph, perhaps with nodes added, else none; or ``"auto"``, the same,
                else the labels of this one.

        Raises:
            DataError: where its features are not those the models were trained with, or a model
                has no form on disk and the graph is there.
        """
        dataset = self.suited(dataset)
        if known not in WHOSE:
            raise DataError(f"Expected known_answers among {', '.join(WHOSE)} (got {known!r})")
        config = self.config
        if config.device != "cpu":  # trained on a GPU, it may be used without one
            config = config.replace(device="auto")
        members = list(self.members.values())
        made = make_problem(dataset, config, self.scaling, members=members, memory=memory)
        made = dataclasses.replace(made, task=self.task)
        if known == "none" or not any(one.used for one in self.known):
            return made
        return dataclasses.replace(made, known=self.heard or self._known_on(made, dataset, known))

    def _known_on(self, problem: Problem, dataset: NodeDataset, known: str) -> Known:
        """What known answers change on a graph."""
        first, told = next((i, one) for i, one in enumerate(self.told) if one is not None)
        around = Around.of(dataset, told.rests.r.dtype)
        if around is None:
            return Known("none: the graph is too large")
        places, labelled = told.places(dataset.ids), bool(dataset.labelled.any())
        count = int((places >= 0).sum())
        if known in ("auto", "same"):
            heard = next(heard_batches(self.models[first], problem, SAMPLE))
            predicted = Opinion.of(self.readouts[first], *heard).predicted
            same = 2 * count >= len(places) and told.agrees(places, predicted)
            known = "run" if same else "file" if labelled and known == "auto" else "none"
        if known == "run" and not count:
            raise DataError(
                "Expected nodes of the run's graph for known_answers=run (got none with an id such "
                f"as {told.ids[0]!r}); use known_answers=file for the labels of this graph"
            )
        if known == "file" and not labelled:
            raise DataError("Expected labels in this graph for known_answers=file (got none)")
        if known == "none":
            return Known("none: this is not the run's graph, and no label of it is used")
        if known == "run":
            text = f"those of {counted(count, 'node')} of the run's graph"
            rests = [
                None if one is None else one.spread_out(one.places(dataset.ids), dataset.num_nodes)
                for one in self.told
            ]
        else:
            text = f"the labels of {counted(int(dataset.labelled.sum()), 'node')} of this graph"
            labels = self.answered(dataset).data.y
            said = [opinion.predicted.to(told.rests.r) for opinion in self.opinions(problem)]
            rests = [
                None if one is None else Rests.of_labels(labels, predicted, self.task)
                for one, predicted in zip(self.told, said, strict=True)
            ]
        whole = tuple(None if one is None else around.whole(one) for one in rests)
        return Known(text, around, self.known, whole)

    @property
    def outputs(self) -> int:
        """How many numbers a model says of a node."""
        return len(self.classes) or len(self.readouts[0].offset)

    def answered(self, dataset: NodeDataset) -> NodeDataset:
        """The dataset with the classes of training; a node of another one has no label.

        Raises:
            DataError: for labels of another kind.
        """
        own, given = (self.classes or self.targets), tuple(dataset.classes or dataset.targets)
        same = dataset.outputs == self.outputs and (own == given or not (own and given))
        if dataset.task != self.task or not (same or self.task == "classification"):
            raise DataError(
                f"Expected labels for {self.task}, as the run was trained with (got others); read "
                f"the graph with task={self.task} and the same label_column"
            )
        data = copy.copy(dataset.data)
        data.y = dataset.data.y.cpu()
        if self.task == "classification":
            place = {name: k for k, name in enumerate(self.classes)}
            codes = torch.tensor([*(place.get(name, -1) for name in dataset.classes), -1])
            data.y = codes[data.y]  # -1 is the last
        return dataclasses.replace(dataset, data=data, classes=self.classes)

    def encode(self, dataset: NodeDataset) -> NodeDataset:
        """The dataset with the features of its table's columns made as in training.

        One that does not come from a table stays as it is. Columns of models without an encoding
        are plain numbers.

        Raises:
            DataError: naming a column that is missing, or a cell that does not fit its column.
        """
        if dataset.columns is None:
            if self.encoding is not None and dataset.encoding is not None:
                self.encoding.check_same(dataset.encoding)
            return dataset
        if self.encoding is not None:
            return dataset.encoded(self.encoding)
        known = set(self.feature_names) <= set(dataset.columns.names)
        if not known:
            return dataset
        from longnn.data._encoding import Encoding

        return dataset.encoded(Encoding.plain(self.feature_names))

    def suited(self, dataset: NodeDataset) -> NodeDataset:
        """The same, its features and types of edges in the order of training."""
        dataset = self.encode(dataset)
        dataset = match_features(dataset, self.feature_names, self.features, self.open_features)
        return match_edge_types(dataset, self.edge_types)

    def outside(self, dataset: NodeDataset, rows: np.ndarray | None = None) -> str:
        """One sentence on what of a graph, or of some rows, lies beyond all that was trained on;
        empty where nothing does, and for a run before version 0.14."""
        if self.seen is None:
            return ""
        dataset, kept = self.suited(dataset), slice(None) if rows is None else rows
        features = (values[kept] for values in dataset.backing.each_feature())
        return self.seen.outside(self.feature_names, features, dataset.degrees.numpy()[kept])

    def opinion_batches(
        self, problem: Problem, *, repeat: int | None = None, size: int = ROWS
    ) -> Iterator[list[Opinion]]:
        """What all repeats, or one of them, say of some nodes after the other, on the CPU. A graph
        in memory is one batch.

        Raises:
            DataError: for a repeat that there is not, or predictions that are not finite.
        """
        if repeat is not None and not 0 <= repeat < self.repeats:
            raise DataError(f"Expected a repeat below {self.repeats} (got {repeat})")
        chosen = range(self.repeats) if repeat is None else [repeat]
        each = [heard_batches(self.models[i], problem, size) for i in chosen]
        start = 0
        for heard in zip(*each, strict=True):
            opinions = [
                Opinion.of(self.readouts[i], *said) for i, said in zip(chosen, heard, strict=True)
            ]
            stop = start + len(opinions[0].predicted)
            if problem.known is not None and problem.known.changes:
                parts = [problem.known.changes[i][start:stop] for i in chosen]
                opinions = [o.corrected(p, self.task) for o, p in zip(opinions, parts, strict=True)]
            start = stop
            if not all(bool(torch.isfinite(opinion.predicted).all()) for opinion in opinions):
                raise DataError(
                    "Expected finite predictions (got some that are not: features or weights are "
                    "too large for this model)"
                )
            yield opinions

    def opinions(self, problem: Problem, repeats: Sequence[int] | None = None) -> list[Opinion]:
        """What each repeat, or some of them, says of all nodes, one after the other."""
        each = []
        for repeat in range(self.repeats) if repeats is None else repeats:
            batches = [own for (own,) in self.opinion_batches(problem, repeat=repeat)]
            each.append(Opinion.join(batches))
        return each

    def predict_batches(
        self, problem: Problem, *, repeat: int | None = None, size: int = ROWS
    ) -> Iterator[Tensor]:
        """The mean of the predictions of all repeats, or those of one: probabilities or values of
        some nodes after the other; see :meth:`opinion_batches`."""
        for opinions in self.opinion_batches(problem, repeat=repeat, size=size):
            yield mean_prediction([opinion.predicted for opinion in opinions])

    def forecast(
        self,
        opinions: Sequence[Opinion],
        coverage: float | None = None,
        degrees: Tensor | None = None,  # (nodes,)
        *,
        repeat: int | None = None,
    ) -> Forecast:
        """The mean of opinions on some nodes, and how far it may be off.

        Several repeats have the mean of their intervals, and of the least probability of a
        plausible class: in practice that covers more than each of them promises.

        Args:
            opinions: of all repeats, or of one.
            coverage: share of nodes whose answer is to be covered; None for predictions alone.
            degrees: of the nodes, where there is a coverage.
            repeat: the number of one repeat; None for the mean of all.

        Raises:
            DataError: for a run without intervals, or a coverage that there is not.
        """
        predicted = mean_prediction([opinion.predicted for opinion in opinions])
        if coverage is None:
            return Forecast(predicted)
        self.check_coverage(coverage)
        learned = self.intervals if repeat is None else [self.intervals[repeat]]
        if self.task == "regression":
            assert degrees is not None
            pairs = zip(learned, opinions, strict=True)
            margin = mean_prediction(
                [i.margin(o.predicted, o.signals(degrees), coverage) for i, o in pairs]
            )
            return Forecast(predicted, predicted - margin, predicted + margin)
        least = torch.stack([one.least(coverage) for one in learned]).mean(0)
        chosen = self.choose(predicted, repeat=repeat)
        return Forecast(predicted, plausible=plausible(self.task, predicted, chosen, least))

    def check_coverage(self, coverage: float) -> None:
        """Raise DataError where no such intervals can be had."""
        if not 0 < coverage < 1:
            raise DataError(f"Expected a coverage between 0 and 1, such as 0.9 (got {coverage:g})")
        if not self.intervals:
            raise DataError(
                "Expected a run with intervals (this one was trained before version 0.13); train "
                "it again to have them"
            )

    def predict(self, problem: Problem, *, repeat: int | None = None) -> Tensor:
        """The predictions of all nodes at once, see :meth:`predict_batches`."""
        return torch.cat(list(self.predict_batches(problem, repeat=repeat)))

    def choose(self, predicted: Tensor, *, repeat: int | None = None) -> Tensor:
        """The class of each node (nodes,), or its labels (nodes, labels), of such predictions."""
        return self.readout(repeat).choose(predicted)

    def readout(self, repeat: int | None = None) -> Readout:
        """How predictions are read: those of one repeat, or the mean of all."""
        return Readout.mean(self.readouts) if repeat is None else self.readouts[repeat]

    def save(self, path: Path, *, extra: Mapping[str, Any] | None = None) -> None:
        """Write everything to one safetensors file; ``extra`` is plain data of the caller's."""
        write_trained(self, path, extra or {})

    @classmethod
    def load(cls, path: Path) -> tuple[Self, Node]:
        """Read a file that :meth:`save` wrote; returns what ``extra`` was, too.

        Raises:
            DataError: where there is none, or it is damaged, or holds something else.
        """
        fields, extra = read_trained(path)
        trained = cls(**fields)
        try:
            _ = trained.models
        except (ValueError, TypeError) as error:
            raise DataError(f"Expected {path} to fit the run's model ({error})") from error
        return trained, extra


def mean_prediction(each: Iterator[Tensor] | Sequence[Tensor]) -> Tensor:
    """The mean of predictions, in float64 on the way.

    >>> mean_prediction([torch.tensor([0.0, 1.0]), torch.tensor([1.0, 1.0])])
    tensor([0.5000, 1.0000])
    """
    total, count, dtype = None, 0, torch.float32
    for predicted in each:
        dtype = predicted.dtype
        total = predicted.double() if total is None else total + predicted.double()
        count += 1
    assert total is not None
    return (total / count).to(dtype)
