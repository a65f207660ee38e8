"""The page of a search: one HTML file, from its record alone."""

from pathlib import Path

from longnn.registry import find_model
from longnn.report import (
    alert,
    code_block,
    document,
    embed,
    heading,
    metric_name,
    pairs,
    paragraph,
    section,
    table,
    value_text,
    write_atomically,
)
from longnn.tuning._figures import plates
from longnn.tuning._record import RECORD, SearchRecord, read_record
from longnn.tuning._result import RECIPE, gain_text, shown_score

PAGE = "tuning.html"
#: The most trials in the table of the best.
LISTED = 15

METHOD = (
    "Each trial was trained once per repeat, on splits that no reported result uses. The score of "
    "a trial is the mean over its repeats of the best validation score. No test node was used: not "
    "for training, not for stopping trials early, and not for choosing the winner. The score of "
    "the winner is the highest of many, so expect a slightly lower one on new splits."
)


def write_page(folder: str | Path, record: SearchRecord | None = None) -> Path:
    """Write ``tuning.html`` and its figures.

    Args:
        folder: where to write them, and where the recipe of the search is.
        record: of the search; read from ``tuning.json`` in the folder if it is not given.

    Returns:
        The page.

    Raises:
        FileNotFoundError: if the folder has no record.
        ValueError: if its record is damaged.
    """
    folder = Path(folder)
    if record is None:
        record = read_record(folder)
    title = f"Tuning {find_model(record.model).title} on {record.dataset.name}"
    pictures = embed(plates(record), folder / "figures")
    winner = pairs("Its configuration", record.best.params)
    too_few = paragraph("There are too few trials to say which settings mattered.", kind="soft")
    content = document(
        title=title,
        header=heading(title) + paragraph(_origin(record), kind="soft"),
        main=[
            f'<div class="learned">{paragraph(_finding(record))}</div>',
            alert(list(record.notes)),
            section("The winner", winner, _use(record, folder.resolve() / RECIPE)),
            *_finalists(record),
            section(
                "The search",
                *pictures.values(),
                "" if record.importance else too_few,
                _trials(record),
            ),
            section("How the numbers were obtained", paragraph(METHOD), _method(record)),
            section("The space", _space(record)),
            section("Versions and machine", pairs("Environment", record.environment)),
        ],
        footer=paragraph(
            f"Written by longnn {record.environment['longnn']} from {RECORD}. The page is "
            "complete: it needs no network and no other file."
        ),
    )
    return write_atomically(folder / PAGE, content)


def _origin(record: SearchRecord) -> str:
    return (
        f"{_count(record.finished, 'trial')} with {_count(record.repeats, 'repeat')} each, search "
        f"{record.search}, "
        f"finished {record.created.replace('T', ' ').replace('+00:00', ' UTC')}"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _finding(record: SearchRecord) -> str:
    gain = f" On the same splits: {gain_text(record)}." if record.start is not None else ""
    first = list(record.importance)[:2]
    mattered = f" What mattered most: {' and '.join(first)}." if first else ""
    return (
        f"Trial {_number(record, record.best.number)} won with a validation "
        f"{metric_name(record.metric)} of {shown_score(record, record.value)}, "
        f"the mean over {_count(record.splits, 'tuning split')}.{gain}{mattered}"
    )


def _use(record: SearchRecord, recipe: Path) -> str:
    """The command that trains the winner, ready to copy."""
    text = "To train it on the reporting splits:"
    if record.dataset.graph is None:
        text = "To train it on the reporting splits, with the files of the graph for GRAPH:"
    return paragraph(text) + code_block(record.train_command(recipe))


def _finalists(record: SearchRecord) -> list[str]:
    """The best trials of the search on further splits; nothing where there were none."""
    finals = record.finalists
    if not finals.trials:
        return []
    rows = [
        [
            _number(record, final.number),
            *(shown_score(record, v) for v in (final.searched, final.further, final.value)),
        ]
        for final in finals.trials
    ]
    caption = (
        f"The search chose these trials on {_count(record.repeats, 'split')}. They were trained "
        f"again on {_count(len(finals.seeds), 'further split')}, and the mean over all decided"
    )
    columns = ["trial", "in the search", "on further splits", "over all"]
    return [section("The finalists", table(caption, columns, rows, words=[]))]


def _number(record: SearchRecord, number: int) -> str:
    """The number of a trial; that of the start is marked."""
    start = record.start
    return (
        f"{number} ({start.name})" if start is not None and start.number == number else f"{number}"
    )


def _trials(record: SearchRecord) -> str:
    searched = list(record.space.search)
    complete = record.with_state("complete")
    complete.sort(key=lambda t: (-(t.value or 0.0), t.number))
    shown = complete[:LISTED]
    if record.start is not None:  # it has a row, however good it is
        shown += [t for t in complete[LISTED:] if t.number == record.start.number]
    rows = [
        [
            _number(record, trial.number),
            shown_score(record, trial.value),
            str(max(trial.outcome.epochs)),
            *(value_text(trial.params.get(key)) for key in searched),
        ]
        for trial in shown
    ]
    best = min(LISTED, len(rows))
    caption = f"The best {best} of {len(complete)} trials trained to the end"
    if len(rows) > best and record.start is not None:
        caption += f", and the {record.start.name} one"
    return table(caption, ["trial", "validation", "epochs", *searched], rows, words=[])


def _method(record: SearchRecord) -> str:
    halving = record.halving
    return pairs(
        "The search in numbers",
        {
            "trials trained to the end": len(record.with_state("complete")),
            "trials stopped early": len(record.with_state("pruned")),
            "trials lost and trained again, or returned": len(record.with_state("fail")),
            "halving": f"at epochs {value_text(list(halving.rungs))}" if halving else "none",
            "split protocol": record.protocol,
            "seeds of splits, weights and dropout": list(record.seeds),
            "seed of the sampler": record.seed,
            "seconds of this worker": record.seconds,
            "data fingerprint": record.dataset.fingerprint,
        },
    )


def _space(record: SearchRecord) -> str:
    space = record.space
    dropped = f"This model does not have: {', '.join(space.dropped)}."
    return (
        pairs(f"Searched, space {space.name}", space.search)
        + pairs("The same in all trials", space.fixed)
        + (paragraph(dropped) if space.dropped else "")
    )
