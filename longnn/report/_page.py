"""One run for readers who did not make it: the page in its folder, and the same as plain lines.

Knows the order of both and the sentences on them. HTML is made in ``_html``, figures are in
``_filter_figures`` and ``_score_figures``.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longnn.metrics import metric_of
from longnn.records import MemberRecord, RepeatRecord, RunRecord
from longnn.report import _html as html
from longnn.report._answer import (
    answer_text,
    baseline_score,
    basis_text,
    brackets_text,
    graph_text,
    known_text,
    next_text,
    question_text,
)
from longnn.report._checks import checks
from longnn.report._filter_figures import (
    amplitude_plate,
    basis_plate,
    density,
    filter_plate,
    known_plate,
    members_plate,
)
from longnn.report._filters import number_text
from longnn.report._score_figures import (
    baselines_plate,
    confusion_plate,
    curve_plate,
    degree_plate,
    map_plate,
    predicted_plate,
    reliability_plate,
    scores_plate,
    training_plate,
)
from longnn.report._style import write_atomically
from longnn.report._words import (
    DRAWN,
    NAMED,
    SETS,
    class_names,
    covered_text,
    difference_text,
    filter_rows,
    gain_text,
    importance_text,
    interval_text,
    leading,
    mean_weights,
    model_name,
    plain_text,
    protocol_name,
    protocols_text,
    score_text,
    split_notes,
    splits_text,
    title_of,
    untested_text,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Figures that everybody should see: the filters, what the graph adds, where it errs.
FILTER, ADDED = ("filter_response", "known_rings"), ("baselines",)
ERRORS = ("error_map", "confusion", "precision_recall", "predicted_true")
#: Folded: how the filter was learned, and what joining members gained.
LEARNED = ("members", "basis_path", "amplitude_waveform")
COLUMNS = 60  # rows of the table of columns
CLASSES = 30  # rows of the tables of classes
IMPORTANT = 20  # rows of the table of columns that count

METHOD = (
    "Each repeat was trained on its training nodes only. The validation nodes decided which epoch "
    "to keep and, for classes, the temperature and the shift of probabilities, and the threshold. "
    "The weights of that epoch were then scored once on the test nodes: no test label was used in "
    "training or in any choice."
)
INTERVAL = (
    "The interval is the 95 % confidence interval of the mean over the repeats, by the bootstrap. "
    "It describes the mean, not single repeats; with fewer than ten repeats it is too narrow. "
    "Where all repeats have the same test nodes, these are drawn in place of the repeats: then it "
    "says nothing about other splits."
)

SHUFFLED = (
    "Each column is shuffled over all nodes, so that it says nothing any more, and the trained "
    "models predict again. What the score then loses is what they take from this column. Of two "
    "columns that say the same, each may seem to be worth little. This says what the models use, "
    "not what causes what."
)


def _drawing(plate: Callable[[RunRecord], html.Plate]) -> Callable[[Figures], Figure]:
    """A figure as a method, with the docstring of its plate."""

    def draw(self: Figures) -> Figure:
        return plate(self.run).draw()

    draw.__doc__ = plate.__doc__
    return draw


class Figures:
    """The figures of one run, drawn when asked for.

    Each method returns a matplotlib figure, or raises ValueError with the reason why the run has
    no such figure.

    Args:
        run: its record.
    """

    def __init__(self, run: RunRecord) -> None:
        self.run = run

    filter = _drawing(filter_plate)
    known = _drawing(known_plate)
    members = _drawing(members_plate)
    training = _drawing(training_plate)
    basis = _drawing(basis_plate)
    amplitude = _drawing(amplitude_plate)
    confusion = _drawing(confusion_plate)
    scores = _drawing(scores_plate)

    def density(self) -> Figure:
        """The spectral density of the graph."""
        return density(self.run)

    def save(self, folder: str | Path) -> list[Path]:
        """Write all figures of the report into a folder, as PNG and SVG."""
        return html.save_plates(plates(self.run), Path(folder))

    def __repr__(self) -> str:
        return f"Figures({self.run.name}: {', '.join(plate.name for plate in plates(self.run))})"


#: In reading order.
_PLATES = (
    *(filter_plate, known_plate, members_plate, basis_plate, amplitude_plate, scores_plate),
    *(training_plate, map_plate, confusion_plate, baselines_plate, curve_plate, predicted_plate),
    *(degree_plate, reliability_plate),
)


def plates(run: RunRecord) -> list[html.Plate]:
    """The figures that this run has, each with its texts, in reading order."""
    shown = []
    for plate in _PLATES:
        with contextlib.suppress(html.FigureError):
            shown.append(plate(run))
    return shown


def write_report(run: RunRecord) -> Path:
    """Write ``report.html`` into the folder of a run, and its figures into ``figures/``.

    Args:
        run: its record, which names its folder.

    Returns:
        The HTML file.

    Raises:
        ValueError: if the run has no folder.
    """
    if run.folder is None:
        raise ValueError("Expected a run with a folder to write the report to (it has none)")
    pictures = html.embed(plates(run), run.folder / "figures")

    def take(names: tuple[str, ...]) -> list[str]:
        return [pictures.pop(name) for name in names if name in pictures]

    filters, added, errors, learned = map(take, (FILTER, ADDED, ERRORS, LEARNED))
    untested, absent = untested_text(run), absences(run)
    answer = [importance_text(run), known_text(run), plain_text(run)]
    answer.append(next_text(run, run.folder.name))
    content = html.document(
        title=f"{run.data.name}: {answer_text(run)}",
        header=html.heading(question_text(run)) + html.paragraph(basis_text(run), kind="soft"),
        main=[
            f'<div class="learned">{html.paragraph(answer_text(run), kind="answer")}'
            f"{''.join(html.paragraph(text) for text in answer if text)}</div>",
            html.paragraph(f"{brackets_text(run)} {_origin(run)}", kind="soft"),
            html.alert([*checks(run), *([untested] if untested else [])]),
            html.section("How well it works", _scores(run), html.paragraph(covered_text(run))),
            html.section("What the graph adds", *_baselines(run), *added),
            html.section("Which columns count", *_importance(run)),
            html.section("Where it errs", _per_class(run), *errors, _worst(run)),
            html.section("What was learned", *filters),
            html.folded("The models that vote", *_members(run)),
            html.folded("How the filter was learned", _filters(run), *learned),
            html.folded("Training, repeats and calibration", *pictures.values(), _repeats(run)),
            html.folded("How the numbers were obtained", *_method(run)),
            html.folded("The data", *_data(run)),
            html.folded("Reproduce the run", *_reproduction(run)),
            html.section("Not on this page", html.items(absent) if absent else ""),
        ],
        footer=html.paragraph(
            f"Written by longnn {run.version} from the run folder {run.name}. This page needs no "
            "network and no other file."
        ),
    )
    return write_atomically(run.folder / "report.html", content)


def short_page(run: RunRecord) -> str:
    """The first screen for a notebook."""
    texts = [f"{run.name}: {question_text(run)}", answer_text(run), importance_text(run)]
    return "\n".join(html.paragraph(text) for text in [*texts, known_text(run)] if text)


def text_summary(run: RunRecord) -> list[str]:
    """The run in a few lines for a terminal: question, answer, what was learned, scores, splits."""
    lead = [answer_text(run), importance_text(run), known_text(run)]
    lead += [next_text(run, str(run.folder))]
    lines = [question_text(run), "", *(f"  {text}" for text in lead if text)]
    lines += ["", f"  {plain_text(run)}", ""]
    rows = _score_table(run)
    if rows:
        rows[0][0] = ""
    others = [["  " + b.title, baseline_score(b, run.metric)] for b in run.baselines]
    width = max((len(row[0]) + 2 for row in [*rows, *others]), default=0)
    for row in rows:
        lines.append(f"  {row[0]:<{width}}" + "".join(f"{cell:<24}" for cell in row[1:]).rstrip())
    if others and run.score() is not None:
        lines += ["", f"  compared with, test {metric_of(run.metric).name}:"]
        lines += [f"  {name:<{width}}{score}" for name, score in others]
    covered = covered_text(run)
    lines += ["", f"  {covered}"] * bool(covered)
    joined = [f"  {gain_text(run)}"] if run.members else []
    first, last = run.repeats[0], run.repeats[-1]
    seeds = f"seed {first.seed}" if first is last else f"seeds {first.seed} to {last.seed}"
    split = f"  split {protocol_name(run, first.split)}, {seeds}. {brackets_text(run)}"
    lines += ["", *joined, split.rstrip()]
    untested = untested_text(run)
    lines += [f"  note: {note}" for note in [*split_notes(run), *([untested] if untested else [])]]
    return [*lines, *(f"  check: {sentence}" for sentence in checks(run))]


def absences(run: RunRecord) -> list[str]:
    """What a reader may miss on the page, and why it is not there."""
    absent = list(run.missing)
    if run.filters and not ({"a", "b"} <= run.filters[0].learned.keys()):
        absent.append(f"{model_name(run)} has a fixed basis, so there is no path of a and b.")
    elif run.filters and run.history is not None and not run.history.has("a", "b"):
        absent.append("The history has no a and b, so their path is not drawn.")
    if len(run.repeats) == 1:
        absent.append("There is only one repeat: nothing is known of other splits.")
    counts = run.repeats[0].confusion
    if run.repeats[0].split.test and not run.importance:
        absent.append(
            "Which columns count was not computed: the graph is on disk, or large, or has words "
            "for columns. In Python, run.column_importance(1) computes it."
        )
    if run.data.task == "classification" and counts is None:
        absent.append("The record has no confusion matrix.")
    elif counts is not None and not counts.any():
        absent.append("The first repeat has no test nodes, so there is no confusion matrix.")
    return absent


def _origin(run: RunRecord) -> str:
    made = f"{model_name(run)}, {splits_text(run)}. Run {run.name}"
    if run.created:
        made += f", {run.created.replace('T', ' ').removesuffix('+00:00')}"
        made += " UTC" if run.created.endswith("+00:00") else ""
    return f"{made}, longnn {run.version}."


def _score_table(run: RunRecord) -> list[list[str]]:
    """The sets that are scored, and one row per score, the headline first."""
    parts = [part for part in ("val", "test") if run.summary.get(part)]
    metrics = dict.fromkeys([run.metric, *(m for part in parts for m in run.summary[part])])

    def cell(part: str, metric: str) -> str:
        summary = run.score(part, metric)
        return "n/a" if summary is None else interval_text(summary, metric)

    rows = [[metric_of(metric).name, *(cell(part, metric) for part in parts)] for metric in metrics]
    return [["score", *(SETS[part] for part in parts)], *rows] if parts else []


def _scores(run: RunRecord) -> str:
    rows = _score_table(run)
    if not rows:
        return html.paragraph("The record has no scores.")
    over = "mean and 95 % interval over" if len(run.repeats) > 1 else "on"
    if run.over_nodes:
        over = "with the 95 % interval over the test nodes of"
    return html.table(f"Scores, {over} {splits_text(run)}", rows[0], rows[1:], words=[0])


def _members(run: RunRecord) -> list[str]:
    """The models of an ensemble, the largest weight first, and what joining them gained."""
    if not run.members:
        return []
    rows = []
    for name, weight in mean_weights(run).items():
        each = [m for repeat in run.repeats for m in repeat.members if m.name == name]
        rows.append(
            [
                name,
                title_of(each[0].model),
                f"{weight:.2f}",
                score_text(_mean_score(each, "val"), run.metric),
                score_text(_mean_score(each, "test"), run.metric),
                f"{np.mean([m.best_epoch for m in each]):.0f}",
                each[0].words,
            ]
        )
    columns = ["model", "kind", "weight", "validation", "test", "best epoch", "filter"]
    over = "" if len(run.repeats) == 1 else ", means over the repeats"
    caption = f"Each model of the ensemble alone, {metric_of(run.metric).name}{over}"
    return [html.paragraph(gain_text(run)), html.table(caption, columns, rows, words=[0, 1, 6])]


def _filters(run: RunRecord) -> str:
    columns, rows = filter_rows(run)
    products = sum(record.degree for record in run.filters)
    leader = leading(run)
    whose = "" if leader is None else f" of the leading model ({leader.name})"
    caption = f"The filters{whose}; one pass takes {products} products with the graph"
    return html.table(caption, columns, rows, words=range(len(columns))) if rows else ""


def _mean_score(members: list[MemberRecord], part: str) -> float:
    scores = [score for m in members if (score := getattr(m, part)) is not None]
    return float(np.mean(scores)) if scores else math.nan


def _baselines(run: RunRecord) -> list[str]:
    """The same splits without the graph, and what the graph adds."""
    ours = run.score()
    if not run.baselines or ours is None:
        return []
    name = metric_of(run.metric).name
    rows = [[model_name(run), score_text(ours.mean, run.metric), ""]]
    for baseline in run.baselines:
        ahead = baseline.ahead.get(run.metric)
        gain = "n/a" if ahead is None else difference_text(ahead, run.metric)
        rows.append([baseline.title, baseline_score(baseline, run.metric), gain])
    columns = ["model", f"test {name}", "ahead of it by"]
    one = len(run.repeats) == 1
    paired = "one split" if one else "the same splits; differences are paired by repeat"
    caption = f"With and without the graph, on {paired}"
    return [html.paragraph(graph_text(run)), html.table(caption, columns, rows, words=[0])]


def _per_class(run: RunRecord) -> str:
    """How each class or label fares, over the test nodes of all repeats."""
    rows = class_rows(run)
    if not rows:
        return ""
    label = "label" if run.data.task == "multilabel" else "class"
    columns = [label, "test nodes", "found (recall)", "right if predicted (precision)", "F1"]
    caption = f"Each {label}, over the test nodes of all repeats"
    lines = [
        [name, f"{int(nodes):,}", *(score_text(value, "accuracy") for value in scores)]
        for name, nodes, *scores in rows
    ]
    if len(lines) > CLASSES:
        lines = [*lines[:CLASSES], [f"{len(rows) - CLASSES} more", "", "", "", ""]]
    return html.table(caption, columns, lines, words=[0])


def _worst(run: RunRecord) -> str:
    """The largest errors of the first repeat, with the ids of their nodes."""
    rows = [[e.node, e.what, e.true, e.predicted, f"{e.error:.3g}"] for e in run.repeats[0].worst]
    size = "off by" if run.data.task == "regression" else "improbable"
    columns = ["node", "of", "true", "predicted", size]
    if not any(row[1] for row in rows):
        rows, columns = [[row[0], *row[2:]] for row in rows], [columns[0], *columns[2:]]
    caption = f"The {len(rows)} worst errors on test nodes" + " of the first repeat" * (
        len(run.repeats) > 1
    )
    return html.table(caption, columns, rows, words=range(len(columns) - 1)) if rows else ""


def _importance(run: RunRecord) -> list[str]:
    """What each column is worth to the trained models."""
    rows = [[name, difference_text(lost, run.metric)] for name, lost in run.importance.items()]
    if not rows:
        return []
    if len(rows) > IMPORTANT:
        rows = [*rows[:IMPORTANT], [f"{len(rows) - IMPORTANT} more", ""]]
    lost = f"test {metric_of(run.metric).name} lost"
    caption = "Each column shuffled in turn; brackets are 95 % intervals over the draws"
    return [html.paragraph(SHUFFLED), html.table(caption, ["column", lost], rows, words=[0])]


def class_rows(run: RunRecord) -> list[tuple[str, float, float, float, float]]:
    """Name, test nodes, recall, precision and F1 of each class, over all repeats.

    A score that does not exist, as the recall of a class without test node, is NaN.
    """
    matrices = [repeat.confusion for repeat in run.repeats if repeat.confusion is not None]
    counts = [repeat.counts for repeat in run.repeats if repeat.counts is not None]
    if matrices:
        total = np.nan_to_num(np.sum(matrices, axis=0))
        there, chosen, both = total.sum(1), total.sum(0), np.diag(total)
    elif counts:
        there, chosen, both = np.nan_to_num(np.sum(counts, axis=0)).T
    else:
        return []
    with np.errstate(invalid="ignore", divide="ignore"):
        recall, precision = both / there, both / chosen
        f1 = np.where(there > 0, 2 * both / (there + chosen), np.nan)
    names = class_names(run, len(there))
    return [
        (name, float(there[k]), float(recall[k]), float(precision[k]), float(f1[k]))
        for k, name in enumerate(names)
    ]


def _repeats(run: RunRecord) -> str:
    metrics = dict.fromkeys(m for repeat in run.repeats for m in repeat.scores.get("test", {}))
    protocols = {protocol_name(run, repeat.split) for repeat in run.repeats}
    sizes = {(r.split.train, r.split.val, r.split.test) for r in run.repeats}

    def cells(repeat: RepeatRecord) -> dict[str, str]:
        val, test = repeat.scores.get("val", {}), repeat.scores.get("test", {})
        learned, split = _learned(repeat), repeat.split
        row = {"seed": str(repeat.seed), "split": str(split.seed)}
        if len(protocols) > 1:
            row["protocol"] = protocol_name(run, split)
        row[f"val {metric_of(run.metric).name}"] = _score(val, run.metric)
        row |= {f"test {metric_of(metric).name}": _score(test, metric) for metric in metrics}
        row |= {key: f"{learned[key]:z.2f}" for key in ("a", "b") if key in learned}
        row |= {"best epoch": str(repeat.best_epoch), "epochs": str(repeat.epochs)}
        row["stopped by"] = repeat.stopped
        if len(sizes) > 1:
            row["train / val / test nodes"] = f"{split.train} / {split.val} / {split.test}"
        return row

    rows = [cells(repeat) for repeat in run.repeats]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    caption = f"Every repeat ({protocols.pop()} splits)" if len(protocols) == 1 else "Every repeat"
    if len(sizes) == 1:
        caption += f", train / val / test nodes: {' / '.join(map(str, sizes.pop()))}"
    words = [columns.index(name) for name in ("protocol", "stopped by") if name in columns]
    lines = [[row.get(column, "n/a") for column in columns] for row in rows]
    return html.table(caption, columns, lines, words=words)


def _score(scores: Mapping[str, float], metric: str) -> str:
    return score_text(scores.get(metric, math.nan), metric)


def _learned(repeat: RepeatRecord) -> dict[str, float]:
    """The basis of the filter; a stack has one per block, which its words tell."""
    return repeat.filters[0].learned if 0 < len(repeat.filters) <= DRAWN else {}


def _method(run: RunRecord) -> list[str]:
    plural = "s" if len(run.repeats) > 1 else ""
    notes = split_notes(run)
    blocks = [
        html.paragraph(
            f"Split protocol: {protocols_text(run)}; {len(run.repeats)} repeat{plural}."
        ),
        html.paragraph(METHOD),
    ]
    return [*blocks, html.paragraph(INTERVAL), html.alert(notes)]


def _data(run: RunRecord) -> list[str]:
    """The card of the graph, its columns, its classes."""
    card = run.data.card
    warnings = [str(text) for text in card.get("warnings") or ()]
    notes = dict.fromkeys([*run.data.notes, *(str(text) for text in card.get("notes") or ())])
    return [
        html.alert(warnings),
        html.pairs(f"The graph {run.data.name}", _card_rows(card) | _outlier_row(run)),
        _columns(run),
        _class_counts(card.get("class_counts")),
        "<h3>Notes</h3>" + html.items(notes) if notes else "",
        html.paragraph("The record has no card of the graph.") if not card else "",
    ]


def _columns(run: RunRecord) -> str:
    """What was done to each column of the node table."""
    rows = [list(row) for row in run.data.columns]
    if len(rows) > COLUMNS:
        rows = [*rows[:COLUMNS], [f"{len(rows) - COLUMNS} more", "", ""]]
    if not rows:
        return ""
    return html.table(
        "Columns of the node table", ["column", "kind", "features"], rows, words=[0, 1, 2]
    )


#: The card of a graph with names and units that readers understand: name, key, form, factor.
CARD = (
    ("task", "task", "{}", 1),
    ("nodes", "nodes", "{:,}", 1),
    ("edges", "edges", "{:,}", 1),
    ("arcs without a reverse", "one_way", "{:,}", 1),
    ("features per node", "features", "{:,}", 1),
    ("features that are not zero", "feature_density", "{:.1f} %", 100),
    ("weighted edges", "weighted", "{}", 1),
    ("connected components", "components", "{:,}", 1),
    ("nodes in the largest component", "largest_component_share", "{:.1f} %", 100),
    ("nodes without a neighbour", "isolated_nodes", "{:,}", 1),
    ("nodes with a label", "labelled_share", "{:.1f} %", 100),
    ("largest class over smallest", "imbalance", "{:.1f}", 1),
    ("edges within a class (edge homophily)", "edge_homophily", "{:.3f}", 1),
    ("neighbours of the same class (node homophily)", "node_homophily", "{:.3f}", 1),
    ("edges within a class, compared with chance (adjusted homophily)", "adjusted_homophily",
     "{:.3f}", 1),
    ("nodes with the same features as another node", "duplicate_rows", "{:,}", 1),
    ("nodes with only zero features", "zero_rows", "{:,}", 1),
)  # fmt: skip


def _card_rows(card: dict[str, Any]) -> dict[str, Any]:
    def show(key: str, form: str, factor: float = 1) -> Any:
        value = card.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        return form.format(value * factor)

    directed = bool(card.get("directed"))
    rows = {
        "arcs" if directed and key == "edges" else name: show(key, form, factor)
        for name, key, form, factor in CARD
        if directed or key != "one_way"
    }
    low, high = show("degree_min", "{:,}"), show("degree_max", "{:,}")
    if low is not None:
        median, mean = show("degree_median", "{:g}"), show("degree_mean", "{:.1f}")
        rows["neighbours per node"] = f"{low} to {high}, median {median}, mean {mean}"
    return {name: value for name, value in rows.items() if value is not None}


def _outlier_row(run: RunRecord) -> dict[str, str]:
    few = run.data.outliers
    if few is None:
        return {}
    shown = ", ".join(f"{value:.2f}" for value in few[:NAMED])
    shown += f" and {len(few) - NAMED} more" if len(few) > NAMED else ""
    return {"eigenvalues outside the bulk": shown or "none"}


def _class_counts(counts: Any) -> str:
    if not isinstance(counts, dict) or not all(isinstance(n, int) for n in counts.values()):
        return ""
    total = max(sum(counts.values()), 1)
    rows = [[name, f"{n:,}", f"{100 * n / total:.1f} %"] for name, n in counts.items()]
    if len(rows) > CLASSES:
        rest = sum(list(counts.values())[CLASSES:])
        more = [f"{len(rows) - CLASSES} more", f"{rest:,}", f"{100 * rest / total:.1f} %"]
        rows = [*rows[:CLASSES], more]
    if not rows:
        return ""
    return html.table("Labelled nodes of each class", ["class", "nodes", "share"], rows, words=[0])


def _reproduction(run: RunRecord) -> list[str]:
    took = f" It took {number_text(sum(run.seconds.values()))} s." if run.seconds else ""
    steps = {step: f"{number_text(taken)} s" for step, taken in run.seconds.items()}
    blocks = []
    if run.command:
        blocks += [
            html.code_block(run.command),
            html.paragraph(
                "The command gives the same numbers with the same version, machine and data." + took
            ),
        ]
    versions = {"longnn": run.version, "data fingerprint": run.data.fingerprint or "not recorded"}
    return [
        *blocks,
        html.pairs("Where the time went", steps) if steps else "",
        html.pairs("Versions, machine and data", versions | run.environment),
        *_configuration(run),
    ]


def _configuration(run: RunRecord) -> list[str]:
    """All keys of a single model; of an ensemble what is shared, and where its models differ."""
    if not run.portfolio:
        return [html.pairs("Configuration", run.config)]
    tables = list(run.portfolio.values())
    keys = dict.fromkeys(key for one in tables for key in one)
    missing = object()
    same = {k for k in keys if len({repr(t.get(k, missing)) for t in tables}) == 1}
    shared = {k: run.config.get(k, tables[0].get(k)) for k in keys if k in same}
    shared |= {k: run.config[k] for k in ("preset", "repeat") if k in run.config}
    own = {
        name: ", ".join(f"{k} {html.value_text(v)}" for k, v in one.items() if k not in same)
        for name, one in run.portfolio.items()
    }
    return [html.pairs("Configuration of all models", shared), html.pairs("Of each model", own)]
