"""The record of a search: ``tuning.json``, written and read by the same classes, and its page.

Figures, page and recipe are made from the record alone.
"""

import dataclasses
import math
import shlex
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import optuna
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import FrozenTrial, TrialState, create_trial

from longnn._base.schema import Node, Schema, from_plain
from longnn.data import NodeDataset
from longnn.data._catalog import known_names
from longnn.metrics import metric_of
from longnn.registry import MODELS, find_model
from longnn.report import _html as html
from longnn.report import score_text
from longnn.report._style import (
    GREY,
    NARROW,
    NAVY,
    ORANGE,
    SKY,
    in_style,
    new_figure,
    plain,
    write_atomically,
)
from longnn.tuning._ledger import FINISHED, Outcome, Scores, place_of, worker_of
from longnn.tuning._space import Plain, SearchSpace
from longnn.tuning._training import Halving

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The files in the folder of a search: its record, its page, its winner.
RECORD, PAGE, RECIPE = "tuning.json", "tuning.html", "recipe.toml"
#: Packages whose versions every record has.
VERSIONS = ("longnn", "torch", "optuna")
#: The states of trials: trained to the end, stopped by halving or diverged, in training, and lost
#: with its worker or given up to a faster one.
State = Literal["complete", "pruned", "running", "fail"]
#: Of importance: the fewest trials, with fewer it is noise, and the share that counts as the best.
LEAST, BEST = 20, 0.2
#: What a search starts with, in words.
NAMES = {"default": "the default", "given": "the given configuration"}
#: The most trials in the table of the best, and the most entries in the figure of importance.
LISTED, SHOWN = 15, 16

METHOD = (
    "Each trial was trained once per repeat, {splits}. The score of "
    "a trial is the mean over its repeats of the best validation score. No test node was used: not "
    "for training, not for stopping trials early, and not for choosing the winner. The score of "
    "the winner is the best of many, so expect a slightly worse one on new splits."
)
#: On which splits: of one model, and around a preset.
SPLITS = {
    True: "on splits that no reported result uses",
    False: "on the split that longnn train reports on, without its test nodes, and without a fifth "
    "of the others, which judge the search in the end",
}


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
class Verdict:
    """What was gained over the default preset, on nodes that nothing was chosen by."""

    default: float | None  # the score of the preset; None where these nodes have none
    gain: float  # by which it is better with what was found
    low: float  # of a 95 % interval of the gain
    high: float
    nodes: int

    @property
    def worth(self) -> bool:
        """Whether it is gained beyond chance."""
        return self.low > 0


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

    @classmethod
    def of(cls, spaces: Sequence[SearchSpace]) -> "SpaceRecord":
        """That of one model, or those around the members of a preset."""
        if not spaces[0].member:
            return from_plain(cls, spaces[0].to_dict())
        entries = [
            (s.member, key, domain) for s in spaces for key, domain in s.to_dict()["search"].items()
        ]
        return cls(
            "around", "", {f"{member}: {key}": domain for member, key, domain in entries}, {}
        )


@dataclasses.dataclass(frozen=True)
class SearchRecord(Schema):
    """A finished search, of all its workers."""

    created: str
    dataset: DatasetRecord
    model: str  # empty for the default preset
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
    start: Start | None = None  # of one model; None where that was drawn, too
    verdict: Verdict | None = None  # of a preset; None where no trial was ahead of a member
    halving: Halving | None = None
    storage: str | None = None  # its URL without secrets; None where the caller opened it

    @property
    def subject(self) -> str:
        """What is tuned."""
        return find_model(self.model).title if self.model else "the default preset"

    @property
    def keeps_default(self) -> bool:
        """Whether nothing was gained over the preset, so that there is no recipe."""
        return not self.model and (self.verdict is None or not self.verdict.worth)

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
        """The command that trains the winner on the reporting splits; it runs in any folder.

        A search around a preset has used test nodes of all of them but the first.
        """
        options = [] if self.keeps_default else ["--config", str(recipe)]
        options += ["--repeat", "10"] if self.model else []
        return shlex.join(["longnn", "train", *self.dataset.arguments(), *options])

    def check(self, node: Node) -> None:
        """Check what the page relies on and types do not say."""
        if self.model and self.model not in MODELS:
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


def counted(number: int, what: str) -> str:
    """A number of things."""
    return f"{number} {what}{'s' * (number != 1)}"


def write_page(folder: Path, record: SearchRecord) -> Path:
    """Write ``tuning.html`` and its figures into the folder of a search."""
    title = f"Tuning {record.subject} on {record.dataset.name}"
    origin = (
        f"{counted(record.finished, 'trial')} with {counted(record.repeats, 'repeat')} each, "
        f"search {record.search}, finished "
        f"{record.created.replace('T', ' ').replace('+00:00', ' UTC')}"
    )
    files = "" if record.dataset.graph else ", with the files of the graph for GRAPH"
    few = html.paragraph("There are too few trials to say which settings mattered.", kind="soft")
    space = record.space
    dropped = f"This model does not have: {', '.join(space.dropped)}."
    content = html.document(
        title=title,
        header=html.heading(title) + html.paragraph(origin, kind="soft"),
        main=[
            f'<div class="learned">{html.paragraph(_summary(record))}</div>',
            html.alert(list(record.notes)),
            html.section(
                "The winner" if record.model else "The best trial",
                html.pairs("Its configuration", record.best.params),
                html.paragraph(
                    f"To train {'the default' if record.keeps_default else 'the recipe'} on the "
                    f"reporting splits{files}:"
                ),
                html.code_block(record.train_command(folder.resolve() / RECIPE)),
            ),
            _finalists(record),
            html.section(
                "The search",
                *html.embed(plates(record), folder / "figures").values(),
                few if record.model and not record.importance else "",
                _trials(record),
            ),
            html.section(
                "How the numbers were obtained",
                html.paragraph(METHOD.format(splits=SPLITS[bool(record.model)])),
                _method(record),
            ),
            html.section(
                "The space",
                html.pairs(f"Searched, space {space.name}", space.search),
                html.pairs("The same in all trials", space.fixed),
                html.paragraph(dropped) if space.dropped else "",
            ),
            html.section("Versions and machine", html.pairs("Environment", record.environment)),
        ],
        footer=html.paragraph(
            f"Written by longnn {record.environment['longnn']} from {RECORD}. The page is "
            "complete: it needs no network and no other file."
        ),
    )
    return write_atomically(folder / PAGE, content)


def finding(record: SearchRecord) -> str:
    """What the search gained, in a sentence without its end."""
    metric, verdict = metric_of(record.metric), record.verdict
    if record.model:
        score = f"validation {metric.name} {shown_score(record, record.value)}"
        return score if record.start is None else f"{score}, {gain_text(record)}"
    if verdict is None:
        if record.finished <= len({trial.params["member"] for trial in record.trials}):
            return "no time was left for trials beside the members: allow more, or keep the default"
        return "no trial was ahead of the member that it began with: keep the default"
    if verdict.default is None:
        return f"the {verdict.nodes} nodes held out have no {metric.name}: keep the default"
    low, high = (f"{metric.scale * end:+.{metric.digits}f}" for end in (verdict.low, verdict.high))
    reached = score_text(verdict.default + metric.sign * verdict.gain, record.metric)
    before = score_text(verdict.default, record.metric)
    return (
        f"{metric.name} {reached}, with the default {before}, on {verdict.nodes} nodes that "
        f"nothing was chosen by: a difference of {metric.scale * verdict.gain:+.{metric.digits}f}"
        f"{metric.points} ({low} to {high})"
        + ("" if verdict.worth else ", which may be chance: keep the default")
    )


def _summary(record: SearchRecord) -> str:
    """The finding, where it was seen, and what mattered."""
    sentence = finding(record)
    splits = counted(record.repeats + len(record.finalists.seeds), "tuning split")
    over = f", the mean over {splits}" if record.model else ""
    first = list(record.importance)[:2]
    mattered = f" What mattered most: {' and '.join(first)}." if first else ""
    best = f"Trial {_number(record, record.best.number)}"
    return f"{sentence[0].upper()}{sentence[1:]}. {best} was the best{over}.{mattered}"


def _finalists(record: SearchRecord) -> str:
    """The best trials of the search on further splits; nothing where there were none."""
    finals = record.finalists
    rows = [
        [
            _number(record, final.number),
            *(shown_score(record, v) for v in (final.searched, final.further, final.value)),
        ]
        for final in finals.trials
    ]
    caption = (
        f"The search chose these trials on {counted(record.repeats, 'split')}. They were trained "
        f"again on {counted(len(finals.seeds), 'further split')}, and the mean over all decided"
    )
    columns = ["trial", "in the search", "on further splits", "over all"]
    finalists = html.table(caption, columns, rows, words=[])
    return html.section("The finalists", finalists) if rows else ""


def _number(record: SearchRecord, number: int) -> str:
    """The number of a trial; that of the start is marked."""
    start = record.start
    return f"{number} ({start.name})" if start and start.number == number else f"{number}"


def _trials(record: SearchRecord) -> str:
    searched = list(record.space.search) if record.model else ["member", "what differs from it"]
    complete = record.with_state("complete")
    complete.sort(key=lambda t: (-(t.value or 0.0), t.number))
    shown = complete[:LISTED]
    if record.start is not None:  # it has a row, however good it is
        shown += [t for t in complete[LISTED:] if t.number == record.start.number]
    rows = [
        [
            _number(record, trial.number),
            shown_score(record, trial.value),
            str(max(trial.epochs)),
            *(_shown_values(record, trial)),
        ]
        for trial in shown
    ]
    best = min(LISTED, len(rows))
    caption = f"The best {best} of {len(complete)} trials trained to the end"
    if len(rows) > best and record.start is not None:
        caption += f", and the {record.start.name} one"
    words = [] if record.model else [3, 4]
    return html.table(caption, ["trial", "validation", "epochs", *searched], rows, words=words)


def _shown_values(record: SearchRecord, trial: TrialRecord) -> list[str]:
    """The searched values of a trial of one model; of a preset its member, and what differs."""
    if record.model:
        return [html.value_text(trial.params.get(key)) for key in record.space.search]
    member = trial.params["member"]
    begun = next(t.params for t in record.trials if t.params["member"] == member)
    changed = [(k, v) for k, v in trial.params.items() if v != begun[k]]
    return [str(member), ", ".join(f"{k} {html.value_text(v)}" for k, v in changed)]


def _method(record: SearchRecord) -> str:
    halving = record.halving
    return html.pairs(
        "The search in numbers",
        {
            "trials trained to the end": len(record.with_state("complete")),
            "trials stopped early": len(record.with_state("pruned")),
            "trials lost and trained again, or returned": len(record.with_state("fail")),
            "halving": f"at epochs {html.value_text(list(halving.rungs))}" if halving else "none",
            "split protocol": record.protocol,
            "seeds of splits, weights and dropout": list(record.seeds),
            "seed of the sampler": record.seed,
            "seconds of this worker": record.seconds,
            "data fingerprint": record.dataset.fingerprint,
        },
    )


def shown_score(record: SearchRecord, value: float | None) -> str:
    """A score with as many digits as tell close trials apart; of an error, which the search counts
    as negative, its size.
    """
    if value is None:
        return "diverged"
    return score_text(metric_of(record.metric).sign * value, record.metric, digits=2)


def gain_text(record: SearchRecord) -> str:
    """How much the winner gained over the trial that the search started with."""
    assert record.start is not None, "the search started with a trial of its own"
    name = NAMES[record.start.name]
    if record.start.number == record.best.number:
        return f"{name} won"
    if record.gain is None:
        return f"{name} diverged"
    shown = shown_score(record, record.start.value)
    metric = metric_of(record.metric)
    gain = f"{metric.scale * record.gain:+.{metric.digits + 1}f}{metric.points}"
    return f"{gain} over {name} ({shown})"


def plates(record: SearchRecord) -> list[html.Plate]:
    """The figures of a search, in reading order."""
    history = html.Plate(
        "tuning_history",
        lambda: draw_history(record),
        "The search",
        "Each mark is one trial. Dots were trained to the end. Crosses were stopped early, because "
        "the better half was ahead at the same epoch. The line shows the best score until then.",
        f"Validation scores of {record.finished} trials in their order; the best is trial "
        f"{record.best.number} with {shown_score(record, record.best.value)}.",
    )
    top = [f"{key} {value:.2f}" for key, value in record.importance.items()][:3]
    importance = html.Plate(
        "tuning_importance",
        lambda: draw_importance(record),
        "What mattered",
        "How much each setting decided whether a trial was among the best fifth (PED-ANOVA; the "
        "bars sum to one). A low bar means that the values that were tried made little difference, "
        "not that every value is good.",
        f"Importance of the searched settings, highest first: {', '.join(top)}.",
    )
    return [history, importance] if record.importance else [history]


@in_style
def draw_history(record: SearchRecord) -> "Figure":
    """The score of each trial in their order, and the best until then."""
    from matplotlib.ticker import MaxNLocator

    title = f"{record.subject} on {record.dataset.name}: {record.finished} trials"
    figure, grid = new_figure(title, height=3.6, width=NARROW)
    axes = grid[0, 0]
    metric = metric_of(record.metric)
    scale = metric.sign * metric.scale  # of an error the search counts the negative
    points = [(t.state, t.number, scale * t.value) for t in record.trials if t.value is not None]
    for state, marker, colour, label in (
        ("pruned", "x", GREY, "stopped early"),
        ("complete", "o", SKY, "trained to the end"),
    ):
        xy = [(number, value) for at, number, value in points if at == state]
        if xy:
            axes.scatter(*np.transpose(xy), marker=marker, c=colour, s=22, lw=1.2, label=label)
    best = (np.maximum if metric.higher else np.minimum).accumulate([value for _, value in xy])
    axes.step([n for n, _ in xy], best, where="post", color=NAVY, label="best until then")
    winner, start = record.best, record.start
    assert winner.value is not None, "the winner was trained to the end"
    top = scale * winner.value
    axes.scatter(winner.number, top, marker="*", s=140, c=ORANGE, zorder=3, label="winner")
    xy = [(n, value) for _, n, value in points if start is not None and n == start.number]
    if start is not None and xy and start.number != winner.number:
        axes.scatter(*np.transpose(xy), marker="D", s=36, c=NAVY, zorder=3, label=start.name)
    _focus(axes, np.sort([metric.sign * value for *_, value in points]), metric.sign)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("trial")
    axes.set_ylabel(f"validation {metric.axis}")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)
    return figure


def _focus(axes: "Axes", values: np.ndarray, sign: int) -> None:
    """Cut off the few worst trials where they would flatten all others; values rise to the best."""
    worst, low, best = values[0], values[len(values) // 10], values[-1]
    if best > low > worst:
        margin = 0.15 * (best - low)
        ends = max(worst - margin, low - 4 * (best - low)), best + margin
        axes.set_ylim(*sorted(sign * end for end in ends))


@in_style
def draw_importance(record: SearchRecord) -> "Figure":
    """Bars of importance, the highest first."""
    importance = list(record.importance.items())[:SHOWN]
    title = f"{record.subject} on {record.dataset.name}: what mattered"
    height = 1.2 + 0.26 * len(importance)
    figure, grid = new_figure(title, height=height, width=NARROW)
    axes = grid[0, 0]
    names = [plain(key) for key, _ in importance]
    axes.barh(names, [value for _, value in importance], color=NAVY, height=0.65)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlim(left=0)
    axes.set_xlabel("importance")
    return figure
