"""The first screen of a run: what was asked, the answer, what helped, and what to do next.

The terminal and the page begin with the same sentences. How it was learned comes after them.
"""

import dataclasses
import math

from longnn.metrics import metric_of
from longnn.records import RECORD, BaselineRecord, RunRecord, Summary
from longnn.report._words import (
    SETS,
    difference_text,
    interval_text,
    right_text,
    score_text,
    sentence,
    splits_text,
)

#: Classes that a question names, and characters that their names may have together.
LISTED, CHARACTERS = 5, 60
#: Edges beyond which known answers may take too long.
LARGE = 100_000
#: Baselines that are no rivals: they compare like with like, or know nothing.
NO_RIVALS = ("constant", "joined", "plain")


def question_text(run: RunRecord) -> str:
    """What was asked.

    >>> from longnn.records import GraphRecord
    >>> data = GraphRecord(name="club", classes=("chess", "rowing", "tennis"))
    >>> question_text(RunRecord(config={}, data=data, metric="", repeats=(), summary={}))
    'Is each node of club chess, rowing or tennis?'
    """
    data, names = run.data, run.data.classes or run.data.targets
    if data.task == "regression" and not names:
        columns = ((data.source or {}).get("options") or {}).get("label_column") or ["label"]
        names = (columns,) if isinstance(columns, str) else tuple(map(str, columns))
    *most, last = names or ("?",)
    listed = f"{', '.join(most)} or {last}" if most else last
    short = len(names) <= LISTED and len(listed) <= CHARACTERS
    if data.task == "regression":
        what = listed.replace(" or ", " and ") if short else f"{len(names)} numbers"
        return f"What {'are' if len(names) > 1 else 'is the'} {what} of each node of {data.name}?"
    if data.task == "multilabel":
        return f"Which of {len(names)} labels does each node of {data.name} have?"
    if short and most:
        return f"Is each node of {data.name} {listed}?"
    return f"Which of {len(names)} classes is each node of {data.name}?"


def basis_text(run: RunRecord) -> str:
    """How many known answers it was learned from and tested on."""
    split = run.repeats[0].split
    each = " in each repeat" if len(run.repeats) > 1 else ""
    return (
        f"Learned from {split.train:,} known answers, chosen by {split.val:,} others, tested on "
        f"{split.test:,} that it never saw{each}."
    )


def answer_text(run: RunRecord) -> str:
    """The score with its interval, the strongest rival, and what the graph adds."""
    clauses, rivals = [_score_clause(run)], ranked(run, NO_RIVALS)
    if rivals:
        clauses.append(f"{rivals[0].title} {baseline_score(rivals[0], run.metric)}")
    baseline = best_baseline(run)
    if baseline is not None:
        alike = ", compared with the same models without it" * (baseline.name == "joined")
        effect = effect_text(gain_over(baseline, run.metric), run.metric)
        clauses.append(f"the graph {effect}{alike}")
    return "; ".join(clauses) + "."


def _score_clause(run: RunRecord) -> str:
    name, few = metric_of(run.metric).name, right_text(run)
    if few:
        return f"{few} on the test nodes"
    for part in ("test", "val", "train"):
        summary = run.score(part)
        if summary is not None:
            nodes, several = getattr(run.repeats[0].split, part), len(run.repeats) > 1
            where = f"the {SETS[part]} nodes" if several else f"{nodes:,} {SETS[part]} nodes"
            of = f" of {splits_text(run)}" if several else ""
            return f"{sentence(name)} {interval_text(summary, run.metric)} on {where}{of}"
    return f"{sentence(name)} not scored"


def known_text(run: RunRecord) -> str:
    """What the known answers of labelled nodes add; empty where they are not used."""
    for baseline in run.baselines:
        if baseline.name == "plain" and run.metric in baseline.ahead:
            effect = effect_text(gain_over(baseline, run.metric), run.metric)
            without = baseline_score(baseline, run.metric)
            return f"Using the known answers of other nodes {effect}; without them: {without}."
    if run.config.get("known_answers", "none") == "none" or not run.baselines:
        return ""
    large = ", or the graph is too large for them" * (run.data.card.get("edges", 0) > LARGE)
    return (
        "Known answers of other nodes are not used: the validation nodes do not show that they "
        f"help{large}."
    )


def next_text(run: RunRecord, folder: str) -> str:
    """What to do next, with the folder of the run as the reader knows it; empty without one."""
    if run.folder is None or not (run.folder / RECORD).is_file():
        return ""
    over = "trainings" if run.repeats[0].split.protocol in ("fixed", "own") else "splits"
    varies = f" Train again with --repeat 5 to see how much the score varies between {over}."
    return (
        "Next: predictions.csv has an answer for every node, and how sure it is. "
        f"`longnn explain {folder} NODE` says why, `longnn explore {folder}` shows the graph."
        + varies
        * (len(run.repeats) == 1)
    )


def brackets_text(run: RunRecord) -> str:
    """What intervals are over."""
    score = run.score()
    if score is None or score.low == score.high:
        return ""
    over = "the test nodes" if run.over_nodes else f"{score.count} repeats"
    return f"Brackets hold 95 % intervals over {over}."


def graph_text(run: RunRecord) -> str:
    """What the graph adds to the best baseline without it; empty without any."""
    baseline = best_baseline(run)
    if baseline is None:
        return ""
    title = baseline.title.removesuffix(" without the graph")
    who = f"{title}, the best model without it, has"
    if baseline.name == "joined":
        who = "the same kinds of models, joined by the same votes, have"
    effect = effect_text(gain_over(baseline, run.metric), run.metric)
    score = baseline_score(baseline, run.metric)
    return f"The graph {effect} of {metric_of(run.metric).name}. Without it, {who} {score}."


def ranked(run: RunRecord, without: tuple[str, ...] = ()) -> list[BaselineRecord]:
    """The baselines with a score but for some, the strongest first."""
    scored = [b for b in run.baselines if run.metric in b.ahead and b.name not in without]
    return sorted(scored, key=lambda b: gain_over(b, run.metric).mean)


def best_baseline(run: RunRecord) -> BaselineRecord | None:
    """The best baseline without the graph; where models are joined, those that are joined alike."""
    alone = [b for b in ranked(run, ("plain",)) if not b.uses_graph]
    return next((b for b in alone if b.name == "joined"), alone[0] if alone else None)


def gain_over(baseline: BaselineRecord, metric: str) -> Summary:
    """How much better the run is, whichever way its metric counts."""
    ahead = baseline.ahead[metric]
    if metric_of(metric).higher:
        return ahead
    return _negative(ahead)


def _negative(gain: Summary) -> Summary:
    return dataclasses.replace(gain, mean=-gain.mean, low=-gain.high, high=-gain.low)


def effect_text(gain: Summary, metric: str) -> str:
    """What something does to a score.

    >>> effect_text(Summary(0.1, 0.05, 0.15, 0, 3), "accuracy")
    'adds 10.0 points [5.0, 15.0]'
    >>> effect_text(Summary(0.1, -0.05, 0.15, 0, 3), "accuracy")
    'may add nothing (10.0 points [-5.0, 15.0])'
    """
    bare = gain.low == gain.high  # one split, and no interval over its nodes
    if is_even(gain, metric):
        return "adds nothing"
    if gain.low > 0 or (bare and gain.mean > 0):
        return f"adds {difference_text(gain, metric)}"
    if gain.high < 0 or (bare and gain.mean < 0):
        return f"costs {difference_text(_negative(gain), metric)}"
    return f"may add nothing ({difference_text(gain, metric)})"


def is_even(gain: Summary, metric: str) -> bool:
    """Whether the mean difference is zero in the digits that are shown."""
    scale, digits = metric_of(metric).scale, metric_of(metric).digits
    return round(scale * gain.mean, digits) == 0 and (gain.count == 1 or gain.low <= 0 <= gain.high)


def baseline_score(baseline: BaselineRecord, metric: str) -> str:
    """The mean test score of a baseline over the repeats."""
    summary = baseline.summary.get(metric)
    return score_text(math.nan if summary is None else summary.mean, metric)
