"""The page of a search: one HTML file, from its record alone."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longnn.report import (
    alert,
    code_block,
    document,
    embed,
    heading,
    pairs,
    paragraph,
    section,
    table,
    value_text,
    write_atomically,
)
from longnn.tuning._figures import plates
from longnn.tuning._result import RECIPE, RECORD

PAGE = "tuning.html"
#: The best trials that the page lists.
LISTED = 15

METHOD = (
    "Each trial was trained once a repeat, on splits that no reported result uses. A trial's score "
    "is the mean over its repeats of the best validation score. No test node took part: neither in "
    "training, nor in stopping trials, nor in choosing the winner. The winner's score is the "
    "highest of many, so expect a little less of it on new splits."
)


def write_page(folder: str | Path) -> Path:
    """Write ``tuning.html`` and its figures from ``tuning.json`` in a folder."""
    folder = Path(folder)
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"Expected {RECORD} in {folder} (there is none)") from error
    except ValueError as error:
        raise ValueError(f"Expected {folder / RECORD} to be JSON (it is damaged)") from error
    name, model, best = record["dataset"]["name"], record["model"], record["best"]
    title = f"Tuning {model} on {name}"
    pictures = embed(plates(record), folder / "figures")
    few = (
        paragraph("There are too few trials to say which keys mattered.", kind="soft")
        if not record["importance"]
        else ""
    )
    content = document(
        title=title,
        header=heading(title) + paragraph(_origin(record), kind="soft"),
        main=[
            f'<div class="learned">{paragraph(_finding(record))}</div>',
            alert(record["notes"]),
            section("The winner", pairs("What it was trained with", best["params"]), _use(record)),
            *_finalists(record),
            section("The search", *pictures.values(), few, _trials(record)),
            section("How the numbers were obtained", paragraph(METHOD), _method(record)),
            section("The space", _space(record)),
            section("Versions and machine", pairs("Environment", record["environment"])),
        ],
        footer=paragraph(
            f"Written by longnn {record['environment']['longnn']} from {RECORD}. The page stands "
            "alone: it needs no network and no other file."
        ),
    )
    return write_atomically(folder / PAGE, content)


def _origin(record: Mapping[str, Any]) -> str:
    return (
        f"{record['finished']} trials of {record['repeats']} repeats, study "
        f"{record['study']}, finished {record['created'].replace('T', ' ')}"
    )


def _finding(record: Mapping[str, Any]) -> str:
    best = record["best"]
    splits = record["repeats"] + len(record.get("finalists", {}).get("seeds", []))
    first = list(record["importance"])[:2]
    mattered = f" What mattered most: {' and '.join(first)}." if first else ""
    return (
        f"Trial {best['number']} won with a validation {record['metric']} of "
        f"{record.get('value', best['value']):.4f}, the mean over {splits} tuning splits.{mattered}"
    )


def _use(record: Mapping[str, Any]) -> str:
    return paragraph("To train it on the reporting splits:") + code_block(
        f"longnn train {record['dataset']['name']} --config {RECIPE} --repeat 10"
    )


def _finalists(record: Mapping[str, Any]) -> list[str]:
    """The best trials of the search on further splits; nothing where there were none."""
    finals = record.get("finalists", {})
    if not finals.get("trials"):
        return []
    known = lambda value: "diverged" if value is None else f"{value:.4f}"  # noqa: E731
    rows = []
    for final in finals["trials"]:
        scores = final["confirmed"]
        further = None if None in scores else sum(scores) / len(scores)
        numbers = (final["searched"], further, final["value"])
        rows.append([str(final["number"]), *map(known, numbers)])
    caption = (
        f"The search chose these by {record['repeats']} splits; {len(finals['seeds'])} further "
        "ones decided with them"
    )
    columns = ["trial", "in the search", "on further splits", "over all"]
    return [section("The finalists", table(caption, columns, rows, words=[]))]


def _trials(record: Mapping[str, Any]) -> str:
    searched = list(record["space"]["search"])
    complete = [t for t in record["trials"] if t["state"] == "complete"]
    complete.sort(key=lambda t: (-t["value"], t["number"]))
    rows = [
        [
            str(t["number"]),
            f"{t['value']:.4f}",
            str(max(t["epochs"])),
            *(value_text(t["params"].get(key)) for key in searched),
        ]
        for t in complete[:LISTED]
    ]
    caption = f"The best {len(rows)} of {len(complete)} trials trained to the end"
    return table(caption, ["trial", "validation", "epochs", *searched], rows, words=[])


def _method(record: Mapping[str, Any]) -> str:
    states = [t["state"] for t in record["trials"]]
    halving = record["halving"]
    rungs = f"at epochs {value_text(halving['rungs'])}" if halving else "none"
    return pairs(
        "The search in numbers",
        {
            "trials trained to the end": states.count("complete"),
            "trials stopped on the way": states.count("pruned"),
            "trials lost and run again, or given back": states.count("fail"),
            "halving": rungs,
            "split protocol": record["protocol"],
            "seeds of splits, weights and dropout": record["seeds"],
            "seed of the sampler": record["seed"],
            "seconds of this worker": record["seconds"],
            "data fingerprint": record["dataset"]["fingerprint"],
        },
    )


def _space(record: Mapping[str, Any]) -> str:
    space = record["space"]
    return (
        pairs(f"Searched, space {space['name']}", space["search"])
        + pairs("The same in all trials", space["fixed"])
        + (
            paragraph(f"Not for this model: {', '.join(space['dropped'])}.")
            if space["dropped"]
            else ""
        )
    )
