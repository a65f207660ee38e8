"""What an estimator shows: figures on axes of matplotlib, lines about training, its report."""

import dataclasses
import datetime
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longnn import report
from longnn._base.files import write_text, writing
from longnn._base.version import __version__
from longnn.data import NodeDataset, Split
from longnn.description import describe_run
from longnn.records import Request
from longnn.report._style import GREY, NAVY, ORANGE
from longnn.rivals import describe_baselines
from longnn.training import Fitted, FittedMember, Population, Result, Trained

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FAINT = 0.3  # opacity of the single channels behind their mean


def new_axes(axes: Any) -> "Axes":
    """The axes given, or those of a new figure."""
    if axes is not None:
        given: Axes = axes
        return given
    import matplotlib.pyplot as plt  # slow to load, and needed for figures alone

    return plt.subplots(layout="constrained")[1]


def draw_filter(
    axes: "Axes",
    eigenvalues: np.ndarray,  # (points,)
    responses: np.ndarray,  # (channels, points)
    title: str,
    *,
    cover: bool = False,
) -> "Axes":
    """The response over the spectrum, or that of a double cover: of each channel, and the mean."""
    if len(responses) > 1:
        axes.plot(eigenvalues, responses.T, color=NAVY, alpha=FAINT, linewidth=0.8)
    label = "mean of the channels" if len(responses) > 1 else "filter"
    axes.plot(eigenvalues, responses.mean(0), color=NAVY, linewidth=2, label=label)
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set_xlim(0, 2)
    axes.set_title(title, loc="left")
    if cover:
        axes.set_xlabel("1 − eigenvalue of the double cover, λ (0: sources like targets)")
    else:
        axes.set_xlabel("Laplacian eigenvalue λ (0: smooth signals, 2: alternating ones)")
    axes.set_ylabel("response g(λ) (factor)")
    if len(responses) > 1:
        axes.legend(frameon=False)
    return axes


def draw_training(
    axes: "Axes",
    history: dict[str, np.ndarray],  # field -> (epochs,)
    best_epoch: int,
    loss: str,
    title: str,
) -> "Axes":
    """Training and validation loss over the epochs, and the epoch that was kept."""
    epochs = np.arange(1, len(history["train_loss"]) + 1)
    axes.plot(epochs, history["train_loss"], color=NAVY, label="training nodes")
    axes.plot(epochs, history["val_loss"], color=ORANGE, linestyle="--", label="validation nodes")
    axes.axvline(best_epoch, color=GREY, linestyle=":", label=f"kept: epoch {best_epoch}")
    axes.set_title(title, loc="left")
    axes.set_xlabel("epoch")
    axes.set_ylabel(f"loss ({loss})")
    axes.legend(frameon=False)
    return axes


EVERY = 100  # epochs between lines


class Progress:
    """Prints how the first member of a population fares; called after each epoch.

    Args:
        epochs: the largest number of them.
    """

    def __init__(self, epochs: int) -> None:
        self.epochs, self.told = epochs, 0

    def __call__(self, population: Population) -> None:
        if population.epoch // EVERY == self.told // EVERY or population.epoch >= self.epochs:
            return
        self.told = population.epoch
        rows = {field: column[-1, 0].item() for field, column in population.rows.items()}
        print(f"epoch {self.told} of {self.epochs}: {_losses(rows)}")

    def finish(self, result: Result) -> None:
        """The last line: when training stopped and what it kept."""
        kept = {f: column[result.best_epoch - 1].item() for f, column in result.history.items()}
        print(
            f"stopped after {result.epochs} epochs ({result.stopped}), kept epoch "
            f"{result.best_epoch}: {_losses(kept)}"
        )


def _losses(rows: dict[str, Any]) -> str:
    return (
        f"training loss {rows['train_loss']:.4f}, validation loss {rows['val_loss']:.4f}, "
        f"validation score {rows['val_score']:.4f}"
    )


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
    problem = trained.problem(dataset, known="same")
    untold = dataclasses.replace(problem, known=None)
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
            trained.intervals[i] if trained.intervals else None,
            plain=trained.predict(untold, repeat=i) if problem.known else None,
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
    compare = trained.config.baselines and any(bool(each.split.test.any()) for each in fitted)
    baselines = describe_baselines(dataset, problem, fitted, {}) if compare else []
    record = describe_run(request, dataset, problem, trained.scaling.kind, fitted, baselines)
    with tempfile.TemporaryDirectory() as folder:  # for the figures, which the page embeds
        page = report.write_report(
            dataclasses.replace(record, folder=Path(folder), label=path.stem)
        ).read_text(encoding="utf-8")
    with writing(path):
        write_text(path, page)
    return path
