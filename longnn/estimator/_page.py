"""The report of an estimator that was fitted without a run folder, as one page."""

import dataclasses
import datetime
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from longnn import report
from longnn._base.files import write_text, writing
from longnn._base.version import __version__
from longnn.data import NodeDataset, Split
from longnn.description import describe_baselines, describe_run
from longnn.records import Request
from longnn.training import Fitted, FittedMember, Result, Trained

#: Of one repeat: its split, what training gave, each filter's basis before it, and its members.
End = tuple[Split, Result, tuple[Mapping[str, float], ...], tuple[FittedMember, ...]]


def write_page(
    path: Path, trained: Trained, dataset: NodeDataset, ends: Sequence[End], *, command: str
) -> Path:
    """Write the page of :func:`~longnn.report.write_report` to one HTML file.

    Args:
        path: the file; the page needs no other.
        trained: the models.
        dataset: what they were trained on.
        ends: one per repeat.
        command: what the page names as its origin.
    """
    problem = trained.problem(dataset)
    fitted = [
        Fitted(
            trained.config.replace(seed=trained.config.seed + i),
            split,
            result,
            trained.models[i],
            tuple(dict(basis) for basis in start),
            trained.readouts[i],
            trained.predict(problem, repeat=i),
            members,
        )
        for i, (split, result, start, members) in enumerate(ends)
    ]
    request = Request(
        version=__version__,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        command=command,
        source=None if dataset.source is None else dataset.source.to_dict(),
        fingerprint=dataset.fingerprint(),
    )
    compare = trained.config.baselines and any(bool(one.split.test.any()) for one in fitted)
    baselines = describe_baselines(dataset, problem, fitted, []) if compare else []
    record = describe_run(request, dataset, problem, trained.scaling.kind, fitted, baselines)
    with tempfile.TemporaryDirectory() as folder:  # for the figures, which the page embeds
        page = report.write_report(
            dataclasses.replace(record, folder=Path(folder), label=path.stem)
        ).read_text(encoding="utf-8")
    with writing(path):
        write_text(path, page)
    return path
