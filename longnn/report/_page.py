"""The report: one page per run folder, for readers who did not make the run.

Knows the order of the page and the sentences on it. HTML is made in ``_markup``, figures in
``_figures``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from longnn.records import RepeatRecord, RunRecord
from longnn.report._checks import (
    baseline_mean,
    checks,
    class_rows,
    difference_text,
    graph_text,
)
from longnn.report._figures import plates, save_plates
from longnn.report._graph_section import CLASSES, graph_section
from longnn.report._markup import (
    alert,
    code_block,
    document,
    folded,
    heading,
    items,
    pairs,
    paragraph,
    picture,
    section,
    table,
    value_text,
)
from longnn.report._members import gain_text, member_rows
from longnn.report._numbers import interval_text, metric_name, number_text, score_text
from longnn.report._plate import Plate
from longnn.report._stack import FEW
from longnn.report._style import write_atomically
from longnn.report._words import (
    PARTS,
    headline,
    learned_text,
    model_name,
    protocol_name,
    protocols_text,
    split_notes,
    splits_text,
    untested_text,
)

#: Figures that everybody should see: the filter, what the graph adds, where it errs.
FILTER, ADDED = ("filter_response",), ("baselines",)
ERRORS = ("confusion", "precision_recall", "predicted_true")
#: Folded: how the filter was learned, and what joining members gained.
LEARNED = ("members", "basis_path", "amplitude_waveform")

METHOD = (
    "Each repeat was trained on its training nodes only. The validation nodes decided which epoch "
    "to keep and, for classes, the temperature and the shift of probabilities, and the threshold. "
    "The weights of that epoch were then scored once on the test nodes: no test label was used in "
    "training or in any choice."
)
INTERVAL = (
    "The interval is the 95 % confidence interval of the mean over the repeats, by the bootstrap. "
    "It describes the mean, not single repeats; with fewer than ten repeats it is too narrow."
)


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
    drawn = plates(run)
    pictures = embed(drawn, run.folder / "figures")
    shown = {name: pictures.pop(name) for name in (*FILTER, *ADDED, *ERRORS) if name in pictures}
    learned = [pictures.pop(name) for name in LEARNED if name in pictures]
    lines = "".join(paragraph(line) for line in learned_text(run))
    content = document(
        title=headline(run),
        header=heading(headline(run)) + paragraph(_origin(run), kind="soft"),
        main=[
            f'<div class="learned">{lines}</div>',
            section("How well it works", _scores(run), alert(checks(run)), _untested(run)),
            section("What was learned", *(shown[name] for name in FILTER if name in shown)),
            section(
                "What the graph adds",
                *_baselines(run),
                *(shown[name] for name in ADDED if name in shown),
            ),
            section(
                "Where it errs",
                _per_class(run),
                *(shown[name] for name in ERRORS if name in shown),
            ),
            folded("The models that vote", *_members(run)),
            folded("How the filter was learned", *learned),
            folded("Training, repeats and calibration", *pictures.values(), _repeats(run)),
            folded("How the numbers were obtained", *_method(run)),
            folded("The data", *graph_section(run)),
            folded("Reproduce the run", *_reproduction(run)),
            section("Not on this page", items(absences(run)) if absences(run) else ""),
        ],
        footer=paragraph(
            f"Written by longnn {run.version} from the run folder {run.name}. This page needs no "
            "network and no other file."
        ),
    )
    return write_atomically(run.folder / "report.html", content)


def embed(drawn: Sequence[Plate], folder: Path) -> dict[str, str]:
    """Save the figures and return each as HTML, by name."""
    files = save_plates(drawn, folder)
    return {
        plate.name: picture(plate, svg, png)
        for plate, svg, png in zip(drawn, files[::2], files[1::2], strict=True)
    }


def absences(run: RunRecord) -> list[str]:
    """What a reader may miss on the page, and why it is not there."""
    found = list(run.missing)
    if run.filters and not ({"a", "b"} <= run.filters[0].learned.keys()):
        found.append(f"{model_name(run)} has a fixed basis, so there is no path of a and b.")
    elif run.filters and run.history is not None and not run.history.has("a", "b"):
        found.append("The history has no a and b, so their path is not drawn.")
    if len(run.repeats) == 1:
        found.append("There is only one repeat: no interval and no distribution of scores.")
    counts = run.repeats[0].confusion
    if run.data.task == "classification" and counts is None:
        found.append("The record has no confusion matrix.")
    elif counts is not None and not counts.any():
        found.append("The first repeat has no test nodes, so there is no confusion matrix.")
    return found


def _origin(run: RunRecord) -> str:
    made = f"Run {run.name}"
    if run.created:
        made += f", {run.created.replace('T', ' ').removesuffix('+00:00')}"
        made += " UTC" if run.created.endswith("+00:00") else ""
    return f"{made}, longnn {run.version}."


def _scores(run: RunRecord) -> str:
    found = dict.fromkeys(m for found in run.summary.values() for m in found)
    metrics = sorted(found, key=lambda metric: metric != run.metric)  # the headline first
    parts = [part for part in ("val", "test") if part in run.summary]
    if not metrics or not parts:
        return paragraph("The record has no scores.")

    def cell(part: str, metric: str) -> str:
        summary = run.score(part, metric)
        return "n/a" if summary is None else interval_text(summary, metric=metric, short=True)

    rows = [[metric_name(metric), *(cell(part, metric) for part in parts)] for metric in metrics]
    over = "mean and 95 % interval over" if len(run.repeats) > 1 else "on"
    caption = f"Scores, {over} {splits_text(run)}"
    return table(caption, ["score", *(PARTS[part] for part in parts)], rows, words=[0])


def _members(run: RunRecord) -> list[str]:
    """The models of an ensemble, and what joining them gained."""
    if not run.members:
        return []
    columns = ["model", "kind", "weight", "validation", "test", "best epoch", "filter"]
    over = "" if len(run.repeats) == 1 else ", means over the repeats"
    caption = f"Each model of the ensemble alone, {metric_name(run.metric)}{over}"
    rows = table(caption, columns, member_rows(run), words=[0, 1, 6])
    return [paragraph(gain_text(run)), rows]


def _baselines(run: RunRecord) -> list[str]:
    """The same splits without the graph, and what the graph adds."""
    ours = run.score()
    if not run.baselines or ours is None:
        return []
    name = metric_name(run.metric)
    rows = [[model_name(run), score_text(ours.mean, run.metric), ""]]
    for baseline in run.baselines:
        score = score_text(baseline_mean(baseline, run.metric), run.metric)
        ahead = baseline.ahead.get(run.metric)
        gain = "n/a" if ahead is None else difference_text(ahead, run.metric)
        bare = baseline.title.removesuffix(" without the graph")
        rows.append([bare, score, gain.removesuffix(" (one split)")])
    columns = ["model", f"test {name}", "ahead of it by"]
    one = len(run.repeats) == 1
    paired = "one split" if one else "the same splits; differences are paired by repeat"
    caption = f"With and without the graph, on {paired}"
    return [paragraph(graph_text(run)), table(caption, columns, rows, words=[0])]


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
    return table(caption, columns, lines, words=[0])


def _untested(run: RunRecord) -> str:
    text = untested_text(run)
    return alert([text] if text else [])


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
        row[f"val {metric_name(run.metric)}"] = _score(val, run.metric)
        row |= {f"test {metric_name(metric)}": _score(test, metric) for metric in metrics}
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
    return table(caption, columns, lines, words=words)


def _score(scores: Mapping[str, float], metric: str) -> str:
    return score_text(scores.get(metric, math.nan), metric)


def _learned(repeat: RepeatRecord) -> dict[str, float]:
    """The basis of the filter; a stack has one per block, which its words tell."""
    return repeat.filters[0].learned if 0 < len(repeat.filters) <= FEW else {}


def _method(run: RunRecord) -> list[str]:
    plural = "s" if len(run.repeats) > 1 else ""
    notes = split_notes(run)
    blocks = [
        paragraph(f"Split protocol: {protocols_text(run)}; {len(run.repeats)} repeat{plural}."),
        paragraph(METHOD),
    ]
    if len(run.repeats) > 1:
        blocks.append(paragraph(INTERVAL))
    return [*blocks, alert(notes)]


def _reproduction(run: RunRecord) -> list[str]:
    took = f" It took {number_text(sum(run.seconds.values()))} s." if run.seconds else ""
    steps = {step: f"{number_text(taken)} s" for step, taken in run.seconds.items()}
    blocks = []
    if run.command:
        blocks += [
            code_block(run.command),
            paragraph(
                "The command gives the same numbers with the same version, machine and data." + took
            ),
        ]
    versions = {"longnn": run.version, "data fingerprint": run.data.fingerprint or "not recorded"}
    return [
        *blocks,
        pairs("Where the time went", steps) if steps else "",
        pairs("Versions, machine and data", versions | run.environment),
        *_configuration(run),
    ]


def _configuration(run: RunRecord) -> list[str]:
    """All keys of a single model; of an ensemble what is shared, and where its models differ."""
    if not run.portfolio:
        return [pairs("Configuration", run.config)]
    tables = list(run.portfolio.values())
    keys = dict.fromkeys(key for one in tables for key in one)
    missing = object()
    same = {k for k in keys if len({repr(t.get(k, missing)) for t in tables}) == 1}
    shared = {k: run.config.get(k, tables[0].get(k)) for k in keys if k in same}
    shared |= {k: run.config[k] for k in ("preset", "repeat") if k in run.config}
    own = {
        name: ", ".join(f"{k} {value_text(v)}" for k, v in one.items() if k not in same)
        for name, one in run.portfolio.items()
    }
    return [pairs("Configuration of all models", shared), pairs("Of each model", own)]
