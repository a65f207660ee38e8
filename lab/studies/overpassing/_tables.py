"""Tables of over-passing: amplitude, waveform and accuracy; and the paper's observations."""

from pathlib import Path

import numpy as np

from lab.studies._core._context import load_records
from lab.studies._core._table import ResultTable
from lab.studies.overpassing._measure import (
    GRAPHS,
    MODELS,
    RATE,
    SETS,
    SLOW_RATE,
    Variant,
    VariantsCell,
)
from lab.studies.overpassing._waveform import over_passing


def read_variants(folder: Path) -> dict[str, dict[str, dict[str, Variant]]]:
    """What was measured: graph -> model -> variant."""
    return {
        graph: {model: cell.variants for model, cell in record.all(VariantsCell).items()}
        for graph, record in load_records(folder, list(GRAPHS)).items()
    }


def tables(folder: Path) -> list[ResultTable]:
    """Amplitude, waveform and accuracy of each run; and the paper's three observations."""
    rows, observed = [], []
    for graph, models in read_variants(folder).items():
        for model, variants in models.items():
            for variant, some in variants.items():
                head = [f"{GRAPHS[graph]}, {MODELS[model]}", variant]
                rows.append(head + _amplitudes(some))
                observed.append(head + _observations(some))
    seeds = len(some.moves["0-80"])
    moves = [name.replace("-", " to ") for name in some.moves]
    over = f"mean over {seeds} published splits; rates {RATE} (slow: {SLOW_RATE}), no weight decay"
    return [
        ResultTable(
            "amplitude",
            "Amplitude (root mean square of the response over the spectrum) at some epochs, "
            "movement of the waveform (1 − cosine, in thousandths) between them, and accuracy "
            f"in % ± standard deviation after the last epoch; {over}.",
            ["graph, model", "held back by"]
            + [f"amplitude at {t}" for t in some.amplitude_at]
            + [f"waveform, {move}" for move in moves]
            + [f"{name} accuracy" for name in SETS],
            rows,
        ),
        ResultTable(
            "observations",
            "The paper's observations. Over-passing: the amplitude grows by more than 1 % and "
            "growth is more than half of the filter's squared move. Smallest response: of any "
            "channel at any eigenvalue, in absolute value (the paper: above 1 from epoch 80). "
            "Transform: growth of the length of the weights before the filter. The slow runs "
            f"were added after those at {RATE} had been seen; {over}.",
            [
                "graph, model",
                "held back by",
                "amplitude, 0 to 80",
                "amplitude, 120 to 160",
                "share of growth, 120 to 160",
                "splits that over-pass, 120 to 160",
                f"splits that over-pass, {moves[-1]}",
                "smallest response at 80",
                "smallest response at 160",
                "transform, 80 to the end",
                "train accuracy at 80",
                "train accuracy at 160",
                "last train loss",
            ],
            observed,
        ),
    ]


def _amplitudes(found: Variant) -> list[str]:
    shown = [f"{value:.2f}" for value in found.amplitude_at.values()]
    for moves in found.moves.values():
        shown.append(f"{1000 * np.mean([m.movement for m in moves]):.1f}")
    last = list(found.scores)[-1]
    for name in SETS:
        values = 100 * np.array(found.scores[last][name])
        shown.append(f"{values.mean():.1f} ± {values.std(ddof=1):.1f}")
    return shown


def _observations(found: Variant) -> list[str]:
    moves, means = found.moves, found.mean
    mean = lambda window, what: np.mean([getattr(m, what) for m in moves[window]])  # noqa: E731
    count = lambda window: sum(over_passing(m) for m in moves[window])  # noqa: E731
    at_80 = means["epochs"].index(80)
    seeds = len(moves["120-160"])
    return [
        f"× {mean('0-80', 'growth'):.2f}",
        f"× {mean('120-160', 'growth'):.3f}",
        f"{mean('120-160', 'share'):.2f}",
        f"{count('120-160')} of {seeds}",
        f"{count(list(moves)[-1])} of {seeds}",
        *(f"{found.smallest[t]:.2f}" for t in ("80", "160")),
        f"× {means['transform'][-1] / means['transform'][at_80]:.3f}",
        *(f"{100 * np.mean(found.scores[t]['train']):.1f}" for t in ("80", "160")),
        f"{means['train_loss'][-1]:.2g}",
    ]
