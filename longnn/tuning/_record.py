"""The record of a search: ``tuning.json``, written and read by the same classes.

Figures, page and recipe are made from it alone.
"""

import dataclasses
import math
import shlex
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import optuna
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import FrozenTrial, TrialState, create_trial

from longnn._base.schema import Node, Schema
from longnn.data import NodeDataset
from longnn.data._catalog import known_names
from longnn.registry import MODELS
from longnn.tuning._ledger import FINISHED, Outcome, Scores, place_of, worker_of
from longnn.tuning._space import Plain
from longnn.tuning._training import Halving

#: The file in the folder of a search.
RECORD = "tuning.json"
#: Packages whose versions every record has.
VERSIONS = ("longnn", "torch", "optuna")
#: The states of trials: trained to the end, stopped by halving or diverged, in training, and lost
#: with its worker or given up to a faster one.
State = Literal["complete", "pruned", "running", "fail"]
#: Of importance: the fewest trials, with fewer it is noise, and the share that counts as the best.
LEAST, BEST = 20, 0.2


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialRecord(Outcome):
    """One trial of a search, with the outcome of its trainings."""

    number: int  # in Optuna's storage
    place: int  # in the order of drawing; a lost trial and the one that repeats it share theirs
    state: State
    params: Mapping[str, Plain]  # of every entry of the space
    value: float | None = None  # mean over repeats of the best validation score; -error
    intermediate: Mapping[str, float] = dataclasses.field(default_factory=dict)  # epoch -> mean
    seconds: float | None = None
    worker: str = ""

    @classmethod
    def of(cls, trial: FrozenTrial) -> "TrialRecord":
        """The record of one of Optuna's trials."""
        start, end = trial.datetime_start, trial.datetime_complete
        scores = sorted(trial.intermediate_values.items())
        return cls(
            number=trial.number,
            place=place_of(trial),
            state=cast(State, trial.state.name.lower()),
            params=trial.user_attrs["values"],
            value=trial.values[0] if trial.values and math.isfinite(trial.values[0]) else None,
            intermediate={str(epoch): score for epoch, score in scores if math.isfinite(score)},
            seconds=(end - start).total_seconds() if start and end else None,
            worker=worker_of(trial).id,
            **vars(Outcome.of(trial)),
        )


@dataclasses.dataclass(frozen=True)
class FinalistRecord:
    """One of the best trials, trained again on further splits.

    >>> FinalistRecord(4, 0.8, (0.7, 0.9), 0.8).further
    0.8
    """

    number: int  # of the trial
    searched: float  # its score in the search
    confirmed: Scores  # on each further split
    value: float | None = None  # the mean over all splits

    @property
    def further(self) -> float | None:
        """The mean over the further splits; None where a training diverged."""
        scores = [score for score in self.confirmed if score is not None]
        return sum(scores) / len(scores) if len(scores) == len(self.confirmed) > 0 else None


@dataclasses.dataclass(frozen=True)
class Finalists:
    """The further splits by their seeds, and the finalists, the best first."""

    seeds: tuple[int, ...] = ()
    trials: tuple[FinalistRecord, ...] = ()


StartName = Literal["default", "given"]


@dataclasses.dataclass(frozen=True)
class Start:
    """The trial that a search starts with, to compare the winner with."""

    name: StartName  # "default": what plain training of one model uses
    number: int  # of the trial
    value: float | None = None  # its mean on the splits of the winner's; None where it diverged


@dataclasses.dataclass(frozen=True)
class DatasetRecord:
    """The graph of a search, and how to name it on the command line."""

    name: str
    fingerprint: str
    graph: str | None = None  # its name, or the path of its files; None where built in Python
    nodes: str | None = None  # the path of the node file
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of the loader
    data_dir: str | None = None  # the folder of the named datasets

    @classmethod
    def describe(cls, dataset: NodeDataset, data_dir: str | Path | None = None) -> "DatasetRecord":
        """From a dataset; one without a source is named where its name is that of a dataset."""
        source = getattr(dataset, "source", None)
        graph = dataset.name if dataset.name in known_names() else None
        nodes, options = None, {}
        if source is not None:
            graph, nodes, options = source.graph, source.nodes, dict(source.options)
        folder = None
        if data_dir is not None and graph in known_names():
            folder = str(Path(data_dir).absolute())
        return cls(dataset.name, dataset.fingerprint(), graph, nodes, options, folder)

    def arguments(self) -> list[str]:
        """The arguments of ``longnn train`` that name this graph."""
        arguments = [self.graph or "GRAPH"]
        if self.nodes is not None:
            arguments += ["--nodes", self.nodes]
        for key, value in self.options.items():
            if isinstance(value, bool):
                value = str(value).lower()
            elif isinstance(value, list | tuple):
                value = ",".join(map(str, value))
            arguments += ["--data", f"{key}={value}"]
        if self.data_dir is not None:
            arguments += ["--data-dir", self.data_dir]
        return arguments


@dataclasses.dataclass(frozen=True)
class SpaceRecord:
    """The space of a search, as :meth:`SearchSpace.to_dict` gives it."""

    name: str
    model: str
    search: Mapping[str, Mapping[str, Any]]
    fixed: Mapping[str, Plain]
    dropped: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class SearchRecord(Schema):
    """A finished search, of all its workers."""

    created: str
    dataset: DatasetRecord
    model: str
    metric: str  # a key of longnn.metrics.METRICS
    search: str  # its name in the storage
    finished: int  # trials that were trained to the end or stopped by halving
    repeats: int
    protocol: str
    seeds: tuple[int, ...]  # of splits, weights and dropout, one per repeat
    seed: int  # of the sampler
    notes: tuple[str, ...]
    best: TrialRecord
    value: float  # of the best, over the splits of the finalists too
    finalists: Finalists
    importance: Mapping[str, float]  # of the searched settings, falling
    space: SpaceRecord
    seconds: float  # of this worker
    environment: Mapping[str, Any]
    trials: tuple[TrialRecord, ...]  # by their numbers
    start: Start | None = None  # None where that was drawn, too
    halving: Halving | None = None
    storage: str | None = None  # its URL without secrets; None where the caller opened it

    @property
    def gain(self) -> float | None:
        """By how much the winner is better than the start, on the same splits."""
        if self.start is None or self.start.value is None:
            return None
        return self.value - self.start.value

    def with_state(self, state: str) -> list[TrialRecord]:
        """The trials in one state."""
        return [trial for trial in self.trials if trial.state == state]

    def train_command(self, recipe: Path) -> str:
        """The command that trains the winner on the reporting splits; it runs in any folder."""
        options = ["--config", str(recipe), "--repeat", "10"]
        return shlex.join(["longnn", "train", *self.dataset.arguments(), *options])

    def check(self, node: Node) -> None:
        """Check what the page relies on and types do not say."""
        if self.model not in MODELS:
            node["model"].fail("the name of a model")
        for name in VERSIONS:
            if name not in self.environment:
                node["environment"].fail(f"an object with the version of {name}")
        if not self.seeds:
            node["seeds"].fail("a list of at least one seed")
        if self.best.value is None:
            node["best"]["value"].fail("a number")
        for at, trial in zip(node["trials"], self.trials, strict=True):
            if trial.state == "complete" and not trial.epochs:
                at["epochs"].fail("a list of at least one number")


@dataclasses.dataclass(frozen=True)
class TuningProgress:
    """The state of a search, given to its callback."""

    metric: str  # a key of longnn.metrics.METRICS
    done: int  # trials that all workers have finished
    total: int
    best_value: float | None  # mean validation score, negative of an error; None at first
    best_params: Mapping[str, Plain]
    elapsed: float  # seconds since this worker started
    eta: float | None  # seconds left; None until this worker has finished a trial
    training: int  # trials that this worker is training
    epoch: int  # that they have reached


def read_record(folder: Path) -> SearchRecord:
    """Read ``tuning.json``.

    Raises:
        FileNotFoundError: if the folder has none.
        ValueError: if it is damaged, or is not the record of a search.
    """
    if not (folder / RECORD).exists():
        raise FileNotFoundError(f"Expected {RECORD} in {folder} (there is none)")
    record: SearchRecord = Node.load(folder / RECORD).read(SearchRecord)
    return record


def parameter_importance(trials: Sequence[FrozenTrial]) -> dict[str, float]:
    """How much each searched setting decided, in falling order; the values sum to one.

    PED-ANOVA compares, setting by setting, the values of the best trials with those of all trials:
    `"PED-ANOVA: Efficiently Quantifying Hyperparameter Importance in Arbitrary Subspaces"
    <https://arxiv.org/abs/2304.10255>`_ (Watanabe et al., 2023). It uses ranks only, so stopped
    trials count too: below the finished ones, and the later stopped the higher. Empty with fewer
    than :data:`LEAST` trials, or where all are equally good.
    """
    ranked = [t for t in trials if t.state in FINISHED and t.params]
    scores = []  # finished above stopped, later stopped above earlier, then by value
    for trial in ranked:
        stopped = 0 if trial.state == TrialState.COMPLETE else 1 + (trial.last_step or 0)
        value = trial.values[0] if trial.values else -math.inf
        scores.append((not stopped, stopped, value))
    levels = {score: float(level) for level, score in enumerate(sorted(set(scores)))}
    if len(ranked) < LEAST or len(levels) < 2:
        return {}
    search = optuna.create_study(direction="maximize")
    search.add_trials(
        [
            create_trial(params=t.params, distributions=t.distributions, value=levels[score])
            for t, score in zip(ranked, scores, strict=True)
        ]
    )
    evaluator = PedAnovaImportanceEvaluator(target_quantile=BEST)
    with warnings.catch_warnings():  # of constant or conditional settings; the result is checked
        warnings.filterwarnings("ignore", module=r"optuna\.importance.*")
        try:
            shares = get_param_importances(search, evaluator=evaluator)
        except (RuntimeError, ValueError):
            return {}
    merged = defaultdict[str, float](float)
    for name, value in shares.items():  # "penalty?" and "penalty" are one setting
        merged[name.removesuffix("?")] += value
    if not all(map(math.isfinite, merged.values())):
        return {}
    return dict(sorted(merged.items(), key=lambda item: (-item[1], item[0])))


def _standing(trial: FrozenTrial) -> tuple[bool, int, float]:
    """The rank of a trial: finished above stopped, later stopped above earlier, then the score."""
    complete = trial.state == TrialState.COMPLETE
    score = trial.values[0] if trial.values else -math.inf
    return complete, 0 if complete else trial.last_step or 0, score
