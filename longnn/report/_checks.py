"""Did it train, and can its score be trusted? Sentences that a person understands.

Each check looks at a record and says what it found and what to do about it, or nothing. Knows
nothing of pages: the terminal and the report show the same sentences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from longnn.metrics import UNEQUAL, metric_of
from longnn.records import RunRecord
from longnn.report._answer import baseline_score, gain_over, is_even, ranked
from longnn.report._words import FEW, class_names, score_text, sentence

#: An epoch up to this one is the very start of training.
START = 3
#: Share of the allowed epochs from which on the best one is at the limit.
LIMIT = 0.95
#: Validation and test scores further apart than this are worth a sentence, if it is no chance.
APART = 0.05
#: Standard errors that are no chance.
SURE = 3.0
#: Test nodes of the rarest class below which a score that hangs on it is rough.
RARE = 10
#: Share of the votes from which on models that do not use the graph decide.
UNUSED = 0.9
#: Models that have no graph.
WITHOUT = ("mlp",)


def checks(run: RunRecord) -> list[str]:
    """What a reader should know before trusting the scores of a run; empty if all is well."""
    return [sentence for check in _CHECKS if (sentence := check(run))]


def _share(run: RunRecord, which: Sequence[bool]) -> str:
    """ "", or "In 2 of 5 repeats, " where not all are meant."""
    if all(which):
        return ""
    return f"In {sum(which)} of {len(which)} repeats, "


def _early(run: RunRecord) -> str:
    early = [repeat.best_epoch <= START for repeat in run.repeats]
    if run.members:  # some of its models may learn nothing; their weight says so
        return ""
    if 2 * sum(early) < len(early) or not any(early):
        return ""
    first = run.repeats[early.index(True)]
    return sentence(
        f"{_share(run, early)}the epoch that was kept is at the very start (epoch "
        f"{first.best_epoch} of {first.epochs}): training did not improve on it. Try a lower "
        "learning rate (--set lr_transform=0.005) or less dropout (--set input_dropout=0 --set "
        "dropout=0)."
    )


def _late(run: RunRecord) -> str:
    limit = int(run.config.get("epochs") or 0)
    late = [r.stopped == "epochs" and r.best_epoch > LIMIT * limit for r in run.repeats]
    if not any(late) or not limit:
        return ""
    return sentence(
        f"{_share(run, late)}training was still improving when its {limit} epochs were over. Allow "
        f"more: --set epochs={3 * limit}."
    )


def _behind(run: RunRecord) -> str:
    """Worse than a baseline, by the headline score."""
    best = next(iter(ranked(run)), None)
    gain = None if best is None else gain_over(best, run.metric)
    if best is None or gain is None or gain.mean >= 0 or is_even(gain, run.metric):
        return ""
    what = f"test {metric_of(run.metric).name} {baseline_score(best, run.metric)}"
    title = sentence(best.title)
    if gain.count == 1:
        return (
            f"{title} is better on this split: {what}. More repeats (--repeat 10) show whether "
            "that is chance."
        )
    how = "is" if gain.high < 0 else "may be"
    return (
        f"{title} {how} better: {what}. Use that, or search for better settings with `longnn tune`."
    )


def _one_class(run: RunRecord) -> str:
    matrices = [repeat.confusion for repeat in run.repeats]
    alone = [m is not None and m.sum() > 0 and (m.sum(0) > 0).sum() == 1 for m in matrices]
    if not any(alone):
        return ""
    matrix = matrices[alone.index(True)]
    assert matrix is not None
    name = class_names(run, len(matrix))[int(matrix.sum(0).argmax())]
    # Weights were measured to help with more than two classes: study `weights`.
    advice = "Try --set class_weight=balanced."
    if len(matrix) == 2:
        advice = "Look at ROC AUC: the probabilities may tell them apart all the same."
    return sentence(
        f"{_share(run, alone)}every test node was predicted to be {name!r}: the model does not "
        f"tell the classes apart. {advice}"
    )


def _apart(run: RunRecord) -> str:
    """Validation far from test, beyond chance."""
    val, test = run.score("val"), run.score("test")
    if val is None or test is None or not metric_of(run.metric).higher:
        return ""
    gap = abs(val.mean - test.mean)
    nodes = [sum(getattr(r.split, part) for r in run.repeats) for part in ("val", "test")]
    middle = min(max((val.mean + test.mean) / 2, 0.02), 0.98)
    chance = math.sqrt(middle * (1 - middle) * sum(1 / max(n, 1) for n in nodes))
    if gap <= APART or gap <= SURE * chance:
        return ""
    scores = [score_text(summary.mean, run.metric) for summary in (val, test)]
    return (
        f"Validation and test are far apart ({scores[0]} and {scores[1]}): the validation nodes "
        "are few or unlike the test nodes. More repeats (--repeat 10) show which score to expect."
    )


def _diverged(run: RunRecord) -> str:
    broken = [repeat.stopped == "diverged" for repeat in run.repeats]
    if run.members or not any(broken):
        return ""
    return sentence(
        f"{_share(run, broken)}training diverged, and the best epoch before was kept. Lower the "
        "learning rates, e.g. --set lr_transform=0.005."
    )


def _cut(run: RunRecord) -> str:
    """Training that ended before its time."""
    ends = [{r.stopped, *(m.stopped for m in r.members)} for r in run.repeats]
    if any("interrupted" in found for found in ends):
        return "Training was interrupted, and this is the best so far."
    if any("time" in found for found in ends):
        limit = float(run.config.get("time_limit") or 0)
        return (
            "Training was stopped by its time limit, and this is the best so far. Allow more: "
            f"--time-limit {3 * limit:g}."
        )
    return ""


def _few(run: RunRecord) -> str:
    nodes = min(repeat.split.test for repeat in run.repeats)
    if not 0 < nodes < FEW:
        return ""
    if run.data.task != "classification":
        return f"There are only {nodes} test nodes: the scores are rough."
    return (
        f"There are only {nodes} test nodes: one more or less that is right changes the accuracy "
        f"by {100 / nodes:.0f} points."
    )


def _rare(run: RunRecord) -> str:
    """Few test nodes of the rarest class, where the headline counts it as much as the others."""
    matrices = [r.confusion for r in run.repeats if r.confusion is not None]
    if not {"rare class", "unequal classes"} & {*metric_of(run.metric).headline} or not matrices:
        return ""
    there = np.sum([np.nan_to_num(matrix).sum(1) for matrix in matrices], axis=0)
    rare = int(there.argmin())
    count = int(min(np.nan_to_num(matrix).sum(1)[rare] for matrix in matrices))
    if not 0 < count < RARE:
        return ""
    nodes = "test node is" if count == 1 else "test nodes are"
    name = class_names(run, len(there))[rare]
    return (
        f"Only {count} {nodes} {name!r}: the {metric_of(run.metric).name} is rough. "
        "More repeats (--repeat 10) show how much it varies."
    )


def _unused(run: RunRecord) -> str:
    """Models that would say the same without the edges."""
    shares = []
    for repeat in run.repeats:
        alone = [(1.0, run.model, "", tuple(f.words for f in repeat.filters))]
        models = [(m.weight, m.model, m.name, (m.words,)) for m in repeat.members] or alone
        shares.append(sum(w for w, model, name, of in models if not _hears(run, model, name, of)))
    share = sum(shares) / max(len(shares), 1)
    if run.model in WITHOUT or share < UNUSED:
        return ""
    who = f"{100 * share:.0f} % of the votes are of models that take" if run.members else "it takes"
    return (
        f"The graph is hardly used: {who} a node's own columns as they are, whatever its "
        "neighbours have."
    )


def _hears(run: RunRecord, model: str, name: str, words: Sequence[str]) -> bool:
    """Whether what a model predicts depends on edges, as far as its filters tell."""
    if model == "trees":
        config = run.portfolio.get(name, run.config)
        return config.get("columns") != "alone"
    flat = bool(words) and all(w.startswith("all-pass") for w in words)
    return model not in WITHOUT and not (flat and not model.endswith("-deep"))


def _chosen(run: RunRecord) -> str:
    """What is predicted where it is not the most probable class."""
    repeat = run.repeats[0]
    if repeat.factors is not None:
        return (
            "Probabilities are divided by the classes' frequencies before one is chosen, for the "
            f"{metric_of(run.metric).name}: what is predicted need not be the most probable class."
        )
    if repeat.threshold is None or repeat.curve is None:
        return ""
    return (
        f"{repeat.curve.name!r} is predicted when its probability exceeds {repeat.threshold:.2f}"
        + ("." if run.config.get("threshold") else ", the best F1 on the validation nodes.")
    )


def _unequal(run: RunRecord) -> str:
    counts = run.data.card.get("class_counts") or {}
    total = sum(counts.values())
    if run.data.task != "classification" or not total:
        return ""
    name, most = max(counts.items(), key=lambda item: item[1])
    if most <= UNEQUAL * total:
        return ""
    return (
        f"{100 * most / total:.0f} % of the labelled nodes are {name!r}. Accuracy says little "
        f"here; the headline is {metric_of(run.metric).name}."
    )


_CHECKS: tuple[Callable[[RunRecord], str], ...] = (
    _diverged,
    _cut,
    _early,
    _late,
    _one_class,
    _behind,
    _apart,
    _few,
    _rare,
    _unequal,
    _unused,
    _chosen,
)
