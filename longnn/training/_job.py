"""From data and configurations to trained models: group by shape, train, predict, join.

The command line, the estimator, the search and the studies all come through here. Nothing here
touches files.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from longnn.config import Config
from longnn.data import NodeDataset, Split
from longnn.data._scaling import Scaling
from longnn.metrics import METRICS, check_monitor, headline, score_classes, score_labels
from longnn.nn import Model
from longnn.nn._ensemble import Ensemble
from longnn.registry import find_model
from longnn.store._ranks import Ranks
from longnn.training._ensemble import combine, votes_of
from longnn.training._fit import (
    Fitted,
    FittedMember,
    basis_of,
    choose_device,
    decide_direction,
    fit_readout,
    load_weights,
    make_members,
    make_problem,
    raw_scores,
)
from longnn.training._group import Group, Schedule, architecture_of, shape_of
from longnn.training._intervals import Intervals, Opinion, honest_votes
from longnn.training._known import Around, Told, corrected, learn, views_of
from longnn.training._population import Population, Result
from longnn.training._presets import members_of
from longnn.training._problem import Problem, self_loops_of
from longnn.training._readout import scores_of, threshold_again
from longnn.training._trees import TreeGroup
from longnn.training._watcher import StopTraining, Watcher


@dataclasses.dataclass(frozen=True)
class _Training:
    """One member: what is trained, and on what split."""

    config: Config
    split: Split


class Job:
    """Trainings on one dataset, prepared: splits, problems and models are made, nothing is trained.

    A configuration with a preset of several models becomes one ensemble. What is wrong with a
    configuration is found when a job is made.

    Args:
        dataset: what to learn; :attr:`dataset` and :attr:`splits` have the nodes that are asked
            about.
        configs, splits: one of each per result; ``config.seed`` is its own.
        device: where to train; by default each configuration's own.
        record_filters: keep the first filter's coefficients at every epoch.
        required: how many of the first configurations must have a result where training is stopped
            early; by default all. Of the others there are none then.
        memory: bytes that this program may take on rows of a stored graph, to compute its terms and
            to train members together.
        ranks: those that train together on rows of a stored graph; by default the caller alone.
    """

    def __init__(
        self,
        dataset: NodeDataset,
        configs: Sequence[Config],
        splits: Sequence[Split],
        *,
        device: str | None = None,
        record_filters: bool = False,
        required: int | None = None,
        memory: int | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        self.ranks = Ranks() if ranks is None else ranks
        #: The graph and the splits as they were given, of all nodes.
        self.whole, self.whole_splits = dataset, splits
        if dataset.asked is not dataset:
            dataset = dataset.asked
            splits = [split.of(dataset.backing.places()) for split in splits]
        self.by_rows = dataset.backing.by_rows
        assert self.by_rows or self.ranks.count == 1
        configs = [decide_direction(config, dataset) for config in configs]
        self.memory = memory
        self.dataset, self.configs, self.splits = dataset, configs, splits
        self.record_filters = record_filters
        self.required = len(configs) if required is None else required
        #: Why training ended before its time: "time" or "interrupted", else nothing.
        self.stopped = ""
        self._expand()
        for training in self._trainings:
            check_monitor(training.config.settings.monitor, dataset.task)
        shapes: dict[object, list[int]] = {}
        for i, training in enumerate(self._trainings):
            # On rows a batch is the same for all members, and so is the split.
            split = _digest(training.split) if self.by_rows else b""
            shapes.setdefault((shape_of(training.config), split), []).append(i)
        self._groups: list[Group | TreeGroup] = []
        self._of: dict[int, tuple[Group | TreeGroup, Scaling]] = {}
        self._models: dict[int, Model] = {}
        self._starts: dict[int, tuple[dict[str, float], ...]] = {}
        known: dict[object, tuple[Scaling, Problem]] = {}  # by what differs but for self loops
        for places in shapes.values():
            self._prepare(places, known, device)
        done = 0
        for group in self._groups:
            group.before, group.total = done, len(self._trainings)
            done += len(group.places)

    def _expand(self) -> None:
        """The members of every configuration: one, or those of its portfolio by name."""
        self._trainings: list[_Training] = []
        self._members: list[dict[str, int]] = []  # name -> number, by configuration
        for config, split in zip(self.configs, self.splits, strict=True):
            alone = config.preset == "fast"
            own = {"": config} if alone else members_of(config, self.dataset)
            first = len(self._trainings)
            self._trainings += [_Training(c, split) for c in own.values()]
            self._members.append({name: first + k for k, name in enumerate(own)})

    def _prepare(
        self,
        places: list[int],
        known: dict[object, tuple[Scaling, Problem]],
        device: str | None,
    ) -> None:
        """The models of one shape, and what they are trained on."""
        own = [self._trainings[i] for i in places]
        first = own[0].config
        where = choose_device(first.device if device is None else device)
        key = (first.scale, first.precision, first.direction, where)
        if key not in known:  # members with other self loops share all but the operator
            known[key] = self._make_problem(first, where)
        scaling, problem = known[key]
        operator = problem.variants[self_loops_of(first)]
        problem = dataclasses.replace(problem, operator=operator)
        made = make_members(
            [one.config for one in own],
            problem,
            [one.split for one in own],
            classes=self.dataset.classes,
        )
        memory = self.memory if self.by_rows else None
        group: Group | TreeGroup
        if find_model(first.model).model.by_steps:
            group = Group(places, made, problem, record_filters=self.record_filters, memory=memory)
        else:
            group = TreeGroup(places, made, problem)
        self._groups.append(group)
        for i, member in zip(places, made, strict=True):
            assert isinstance(member.model, Model)  # training knows it by less
            self._of[i], self._models[i] = (group, scaling), member.model
            self._starts[i] = tuple(basis_of(f) for f in member.model.filters())

    def _make_problem(self, first: Config, where: torch.device) -> tuple[Scaling, Problem]:
        """What all are trained on that scale alike, with the operators that any of them wants."""
        scaling = Scaling.fit(first.scale, self.dataset)
        made = make_problem(
            self.dataset,
            first,
            scaling,
            device=where,
            members=[one.config for one in self._trainings],
            memory=self.memory,
            ranks=self.ranks,
        )
        return scaling, made

    def problem_of(self, number: int) -> Problem:
        """What the configuration of this number is trained on, for whoever goes on alone."""
        return dataclasses.replace(self._problem_of(number), ranks=Ranks())

    def _problem_of(self, number: int) -> Problem:
        places = list(self._members[number].values())
        problem = self._of[places[0]][0].problem
        # Members may differ in self loops; an ensemble asks each with its own. The whole stands on
        # the graph as it was given.
        if len(places) == 1 or "keep" not in problem.variants:
            return problem
        return dataclasses.replace(problem, operator=problem.variants["keep"])

    def scaling_of(self, number: int) -> Scaling:
        """What is done to the features for the configuration of this number."""
        return self._of[next(iter(self._members[number].values()))][1]

    def run(
        self,
        *,
        begun: Mapping[int, int] | None = None,
        watcher: Watcher | None = None,
    ) -> list[Fitted]:
        """Train all members, those of one shape together as far as memory allows, and predict.

        Args:
            begun: chunks that were begun before, as {first member: how many}; they are kept.
            watcher: looks on, and may stop the training.

        Returns:
            what was trained, in the order of the configurations; see ``required``.

        Raises:
            MemoryError: where a single member does not fit.
            StopTraining: where training was stopped before a required result was there.
        """
        watcher = Watcher() if watcher is None else watcher
        for group in self._groups:
            group.expect(begun or {})
        last = max(t.config.settings.epochs for t in self._trainings)
        portfolios = [list(members.values()) for members in self._members]
        try:
            Schedule(self._groups, portfolios, last, watcher).run()
        except StopTraining as stop:
            self.stopped = stop.reason
            for group in self._groups:
                group.stop(stop.reason)
        results = {i: r for group in self._groups for i, r in group.results.items()}
        if self.stopped:  # before its first validation a member has no weights to keep
            results = {i: r for i, r in results.items() if r.best_epoch > 0}
        found: list[Fitted] = []
        for number, places in enumerate(self._members):
            own = {name: i for name, i in places.items() if i in results}
            if not own and number < self.required:
                raise StopTraining(self.stopped)
            if not own:  # all or none of the others, which are told apart by their places
                return found[: self.required]
            each = {name: self._fitted(i, results[i]) for name, i in own.items()}
            alone = self.configs[number].preset == "fast"
            fitted = each[""] if alone else self._join(number, each)
            found.append(fitted if fitted.intervals else self._with_intervals(fitted))
        return found

    def _fitted(self, i: int, result: Result) -> Fitted:
        model, one, problem = self._models[i], self._trainings[i], self._of[i][0].problem
        load_weights(model, result.state)
        scores = raw_scores(model, problem)
        readout = fit_readout(one.config, problem, result, scores, one.split)
        predicted = readout.predict(scores)
        return Fitted(one.config, one.split, result, model, self._starts[i], readout, predicted)

    def _join(self, number: int, each: Mapping[str, Fitted]) -> Fitted:
        """The members of a portfolio as one model: their weighted average."""
        config, split, problem = self.configs[number], self.splits[number], self._problem_of(number)
        sound = {name: one for name, one in each.items() if one.is_sound}
        weights = dict.fromkeys(each, 0.0)
        honest, views = None, list[Tensor]()
        if sound:
            use, each_said = config.known_answers, [one.predicted for one in sound.values()]
            how = self._how_known(config)
            around = None if use == "none" else self._around(each_said[0].dtype)
            sets = (self.dataset.data.y.cpu(), split.train.cpu(), split.val.cpu())
            views = views_of(around, each_said, *sets, problem.task, **how)
            heard = (problem.labels.cpu()[split.val.cpu()], problem.task, self._weigh(split.val))
            votes, honest = votes_of(views, *heard), honest_votes(views, *heard)
            weights |= dict(zip(sound, votes.tolist(), strict=True))
        else:  # all diverged; whoever checks the result says so
            weights[next(iter(each))] = 1.0
        voting = {name: one for name, one in each.items() if weights[name] > 0}
        model = Ensemble(
            {name: one.model for name, one in voting.items()},
            weights,
            {name: one.readout.temperature for name, one in voting.items()},
            problem.task,
            {name: architecture_of(one.config) for name, one in voting.items()},
        ).to(problem.dtype)
        lead = voting[model.leader]
        scores = raw_scores(model, problem)
        state = {name: p.detach().cpu().clone() for name, p in model.named_parameters()}
        result = dataclasses.replace(lead.result, state=state)
        readout = fit_readout(config, problem, result, scores, split)
        members = tuple(FittedMember(name, weights[name], one) for name, one in each.items())
        predicted = readout.predict(scores)
        fitted = Fitted(config, split, result, model, lead.start, readout, predicted, members)
        if honest is None or problem.task != "regression":
            again = None if honest is None else readout.predict(scores_of(honest, problem.task))
            return self._with_intervals(fitted, again)
        values = torch.stack([voting[name].predicted for name in model.members])
        fitted = self._with_intervals(fitted, honest, model.disagreement(values))
        if fitted.plain is None or len(views) == 1:
            return fitted
        # Without known answers, votes would have been cast by what members say alone.
        plain = combine(torch.stack(each_said), votes_of(views[:1], *heard))
        return dataclasses.replace(fitted, plain=plain)

    def _with_intervals(
        self, fitted: Fitted, honest: Tensor | None = None, disagreement: Tensor | None = None
    ) -> Fitted:
        """The same, knowing how large its errors are.

        Args:
            honest: what it would predict of the validation nodes if they had had no part in its
                votes; by default what it does predict.
            disagreement: of its members, as many numbers as it predicts.
        """
        if not fitted.is_sound:
            return fitted
        val, signals = fitted.split.val.cpu(), dict[str, Tensor]()
        honest = fitted.predicted[val] if honest is None else honest
        fitted, honest = self._with_known(fitted, honest)
        if self.dataset.task == "regression":
            there = None if disagreement is None else disagreement[val]
            signals = Opinion(honest, there).signals(self._degrees[val])
        labels = self.dataset.data.y.cpu()[val]
        weight = self._weigh(fitted.split.val)
        intervals = Intervals.fit(self.dataset.task, honest, labels, signals, weight)
        return dataclasses.replace(fitted, intervals=intervals, disagreement=disagreement)

    def _with_known(self, fitted: Fitted, honest: Tensor) -> tuple[Fitted, Tensor]:
        """The same, corrected by known answers if that pays; and so what is honestly predicted of
        the validation nodes."""
        use = fitted.config.known_answers
        around = None if use == "none" else self._around(fitted.predicted.dtype)
        if around is None:
            return fitted, honest
        task, y, plain = self.dataset.task, self.dataset.data.y.cpu(), fitted.predicted
        train, val = fitted.split.train.cpu(), fitted.split.val.cpu()
        how = self._how_known(fitted.config)
        learned = learn(around, plain, y, train, val, task, **how)
        after = corrected(honest, learned.honest, task)
        if learned.filter.used and self._order_of(after, val) < self._order_of(honest, val):
            learned = learned._replace(filter=learned.filter.silent())
        if not learned.filter.used:
            return dataclasses.replace(fitted, known=learned.filter), honest
        honest = after
        return dataclasses.replace(
            fitted,
            predicted=corrected(plain, learned.change, task),
            readout=threshold_again(
                fitted.readout, fitted.config, honest, y[val], self._weigh(val)
            ),
            known=learned.filter,
            told=Told.collect(self.dataset.ids, learned.rests, plain),
            plain=plain,
        ), honest

    def _how_known(self, config: Config) -> dict[str, Any]:
        """Whose answers are known, see :func:`learn`.

        Nodes to predict are of other groups than all known nodes. So are validation nodes, if they
        hear of training nodes alone: else their errors are far too small.
        """
        group = self.dataset.data.get("node_group")
        only_train = config.known_answers == "train" or group is not None
        return {"only_train": only_train, "group": group, "weight": self.dataset.node_weight}

    def _weigh(self, nodes: Tensor) -> Tensor | None:
        """How much some nodes count; None where all count alike."""
        weight = self.dataset.node_weight
        return None if weight is None else weight[nodes.cpu()]

    def _order_of(self, said: Tensor, nodes: Tensor) -> float:
        """The headline score of what is said of some nodes where it judges an order: where one
        class is rare, the likelihood may rise while the order gets worse. Else 0."""
        metric, positive = headline(self.dataset.data.y, self.dataset.task)
        labels, weight = self.dataset.data.y.cpu()[nodes], self._weigh(nodes)
        if not METRICS[metric].ranks:
            return 0.0
        if self.dataset.task == "multilabel":
            return score_labels(said, labels, weight=weight).get(metric, 0.0)
        return score_classes(said, labels, positive=positive, weight=weight).get(metric, 0.0)

    @functools.cache  # noqa: B019 - a job lives as long as its graph
    def _around(self, dtype: torch.dtype) -> Around | None:
        return Around.of(self.dataset, dtype)

    @functools.cached_property
    def _degrees(self) -> Tensor:
        return self.dataset.degrees.cpu()


def _digest(split: Split) -> bytes:
    """The same for equal splits."""
    sets = (split.train, split.val)
    return b"".join(hashlib.sha256(mask.cpu().numpy().tobytes()).digest() for mask in sets)


def fit(
    dataset: NodeDataset,
    configs: Sequence[Config],
    splits: Sequence[Split],
    *,
    device: str | None = None,
    record_filters: bool = False,
    on_epoch: Callable[[Population], None] | None = None,
) -> list[Fitted]:
    """Train each configuration on its split, those of one shape together; see :class:`Job`.

    >>> from longnn.data import csbm, make_split
    >>> data = csbm(num_nodes=40, num_features=8)
    >>> (one,) = fit(data, [Config.from_dict({"epochs": 3})], [make_split(data, None, 0)])
    >>> one.predicted.shape
    torch.Size([40, 2])
    """
    job = Job(dataset, configs, splits, device=device, record_filters=record_filters)
    return job.run(watcher=Watcher(on_epoch))
