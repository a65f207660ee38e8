"""The record of a search: ``tuning.json``, written and read by the same classes.

Figures, page and recipe are made from it alone.
"""

import dataclasses
import json
import math
import shlex
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import FrozenTrial, TrialState, create_trial

from longnn._base.schema import Node, Schema, from_plain
from longnn.data import NodeDataset
from longnn.data._catalog import known_names
from longnn.registry import find_model
from longnn.tuning._ledger import Outcome, Scores, place_of, worker_of
from longnn.tuning._space import Plain
from longnn.tuning._training import Halving

#: The file in the folder of a search.
RECORD = "tuning.json"
#: Packages whose versions every record has.
VERSIONS = ("longnn", "torch", "optuna")
#: The states of trials, and a bound for their numbers.
STATES, MOST = ("complete", "pruned", "running", "fail"), 10**9
#: Of importance: the fewest trials, with fewer it is noise, and the share that counts as the best.
LEAST, BEST = 20, 0.2


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialRecord(Outcome):
    """One trial of a search, with the outcome of its trainings.

    Args:
        number: of the trial in Optuna's storage.
        place: in the order in which trials were drawn; a trial that was lost and the one that
            repeats it have the same.
        state: ``"complete"``, ``"pruned"`` (stopped by halving, or diverged), ``"running"`` or
            ``"fail"`` (lost with its worker, or another worker was faster).
        params: the value of every entry of the space.
        value: the mean over the repeats of the best validation score.
        intermediate: that mean at the epochs of halving.
        seconds: from its start to its end.
        worker: the id of the worker that trained it.
    """

    number: int
    place: int
    state: str
    params: Mapping[str, Plain]
    value: float | None = None
    intermediate: Mapping[str, float] = dataclasses.field(default_factory=dict)
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
            state=trial.state.name.lower(),
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

    Args:
        number: of the trial.
        searched: its score in the search.
        confirmed: its score on each further split.
        value: the mean over the splits of the search and the further ones.

    >>> FinalistRecord(4, 0.8, (0.7, 0.9), 0.8).further
    0.8
    """

    number: int
    searched: float
    confirmed: Scores
    value: float | None = None

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


@dataclasses.dataclass(frozen=True)
class Start:
    """The trial that a search starts with, to compare the winner with.

    Args:
        name: ``"default"``, what plain training of one model uses, or ``"given"``.
        number: of the trial.
        value: its mean score on the splits of the winner's; None where it diverged.
    """

    name: str
    number: int
    value: float | None = None


@dataclasses.dataclass(frozen=True)
class DatasetRecord:
    """The graph of a search, and how to name it on the command line.

    Args:
        name: of the dataset.
        fingerprint: of its data.
        graph: its name, or the path of its files; None for a graph that was built in Python.
        nodes: the path of the node file, where one was given.
        options: of the loader.
        data_dir: the folder of the named datasets, where one was given.
    """

    name: str
    fingerprint: str
    graph: str | None = None
    nodes: str | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    data_dir: str | None = None

    @classmethod
    def describe(cls, dataset: NodeDataset, data_dir: str | Path | None = None) -> "DatasetRecord":
        """From a dataset; one without a source is named where its name is that of a dataset."""
        source = getattr(dataset, "source", None)
        fingerprint = dataset.fingerprint()
        if source is None:
            graph = dataset.name if dataset.name in known_names() else None
            record = cls(dataset.name, fingerprint, graph)
        else:
            options = dict(source.options)
            record = cls(dataset.name, fingerprint, source.graph, source.nodes, options)
        if data_dir is None or record.graph not in known_names():
            return record
        return dataclasses.replace(record, data_dir=str(Path(data_dir).absolute()))

    def arguments(self) -> list[str]:
        """The arguments of ``longnn train`` that name this graph.

        >>> DatasetRecord("csbm", "", "csbm", options={"phi": 0.5}).arguments()
        ['csbm', '--data', 'phi=0.5']
        """
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
    """A finished search, of all its workers.

    Args:
        created: when it was finished.
        dataset: the graph.
        model: the name of the model.
        metric: what validation scores are: a key of :data:`longnn.metrics.METRICS`.
        search: the name of the search in its storage.
        finished: trials that were trained to the end or stopped by halving.
        repeats: trainings per trial.
        protocol: the split protocol.
        seeds: of splits, weights and dropout, one per repeat.
        seed: of the sampler.
        notes: sentences the user ought to read.
        best: the winner.
        value: its mean validation score, over the splits of the finalists too.
        finalists: the best trials on further splits.
        importance: of the searched settings, in falling order.
        space: what was searched.
        seconds: of this worker.
        environment: machine and versions.
        trials: all of them in the order of their numbers.
        start: the trial that it started with; None if that was drawn, too.
        halving: when trials were stopped; None if never.
        storage: the URL of the storage without its password; None if the caller opened it.
    """

    created: str
    dataset: DatasetRecord
    model: str
    metric: str
    search: str
    finished: int
    repeats: int
    protocol: str
    seeds: tuple[int, ...]
    seed: int
    notes: tuple[str, ...]
    best: TrialRecord
    value: float
    finalists: Finalists
    importance: Mapping[str, float]
    space: SpaceRecord
    seconds: float
    environment: Mapping[str, Any]
    trials: tuple[TrialRecord, ...]
    start: Start | None = None
    halving: Halving | None = None
    storage: str | None = None

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
        """Check what the page relies on and types do not say.

        Raises:
            ValueError: where the record contradicts itself.
        """
        find_model(self.model)
        missing = [name for name in VERSIONS if name not in self.environment]
        if missing:
            raise ValueError(f"Expected the version of {missing[0]} in `record.environment`")
        if not self.seeds or self.best.value is None:
            raise ValueError("Expected `record` to have seeds and a best trial with a value")
        for trial in (self.best, *self.trials):
            if trial.state not in STATES or not 0 <= trial.number < MOST:
                raise ValueError(f"Expected trials with a state and a number (got {trial!r:.60})")
            if trial.state == "complete" and not trial.epochs:
                raise ValueError(f"Expected trial {trial.number} to have epochs (got none)")


@dataclasses.dataclass(frozen=True)
class TuningProgress:
    """The state of a search, given to its callback.

    Args:
        metric: what scores are: a key of :data:`longnn.metrics.METRICS`.
        done: trials that all workers together have finished.
        total: trials to finish.
        best_value: the best mean validation score until now; None at first.
        best_params: the values that gave it; empty at first.
        elapsed: seconds since this worker started.
        eta: estimated seconds left; None until this worker has finished a trial.
        training: trials that this worker is training.
        epoch: the epoch they have reached.
    """

    metric: str
    done: int
    total: int
    best_value: float | None
    best_params: Mapping[str, Plain]
    elapsed: float
    eta: float | None
    training: int
    epoch: int


def read_record(folder: Path) -> SearchRecord:
    """Read ``tuning.json``.

    Raises:
        FileNotFoundError: if the folder has none.
        ValueError: if it is damaged, or is not the record of a search.
    """
    try:
        table = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"Expected {RECORD} in {folder} (there is none)") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Expected {folder / RECORD} to be JSON (it is damaged)") from error
    try:
        record = from_plain(SearchRecord, table, "record")
    except ValueError as error:
        raise ValueError(f"{folder / RECORD}: {error}") from error
    return record


def parameter_importance(trials: Sequence[FrozenTrial]) -> dict[str, float]:
    """How much each searched setting decided, in falling order; the values sum to one.

    PED-ANOVA compares, setting by setting, the values of the best trials with those of all trials:
    `"PED-ANOVA: Efficiently Quantifying Hyperparameter Importance in Arbitrary Subspaces"
    <https://arxiv.org/abs/2304.10255>`_ (Watanabe et al., 2023). It uses ranks only, so stopped
    trials count too: below the finished ones, and the later stopped the higher. Empty with fewer
    than :data:`LEAST` trials, or where all are equally good.
    """
    ranked = [t for t in trials if t.state in (TrialState.COMPLETE, TrialState.PRUNED) and t.params]
    scores = [_standing(t) for t in ranked]
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
    with warnings.catch_warnings():
        # Constant or conditional settings; the result is checked below.
        warnings.filterwarnings("ignore", module=r"optuna\.importance.*")
        try:
            found = get_param_importances(search, evaluator=evaluator)
        except (RuntimeError, ValueError):
            return {}
    merged: dict[str, float] = {}
    for name, value in found.items():  # "penalty?" and "penalty" are one setting
        key = name.removesuffix("?")
        merged[key] = merged.get(key, 0.0) + value
    if not merged or not all(map(math.isfinite, merged.values())):
        return {}
    return dict(sorted(merged.items(), key=lambda item: (-item[1], item[0])))


def _standing(trial: FrozenTrial) -> tuple[bool, int, float]:
    """The rank of a trial: finished above stopped, later stopped above earlier, then the score."""
    complete = trial.state == TrialState.COMPLETE
    score = trial.values[0] if trial.values else -math.inf
    return complete, 0 if complete else trial.last_step or 0, score
