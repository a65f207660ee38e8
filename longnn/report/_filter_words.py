"""The shape of a filter in words, by rules that a reader can check against its figure.

Knows responses as numbers, and nothing of runs.
"""

from collections import Counter
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import ArrayLike

from longnn.report._numbers import number_text
from longnn.report._responses import mean_response

FLAT = 0.75  # smallest over largest magnitude; above it a filter is all-pass
MILD = 0.5  # the same ratio; above it a filter is mild
LEVELS = (0.4, 0.6)  # of the range: a band ends below the first and begins above the second
NARROW = 0.1  # a dip or bump narrower than this (in eigenvalues) is a ripple, not a band
DEAD = 0.01  # channels below this share of the strongest are ignored
INVERTED = 0.1  # share of the peak that the other sign must reach to be mentioned
AGREEMENT = 2 / 3  # share of the channels that must be of one kind to name the filter

Bands = list[tuple[bool, float, float]]  # (passes?, from, to), along the spectrum

_KINDS = {
    (True,): "all-pass",
    (True, False): "low-pass",
    (False, True): "high-pass",
    (False, True, False): "band-pass",
    (True, False, True): "band-stop",
}


def describe_filter(eigenvalues: ArrayLike, response: ArrayLike) -> str:
    """A learned filter in words.

    The magnitude of each channel decides its kind. Where it is above and below the middle of its
    range decides between low-pass, high-pass, band-pass, band-stop and comb; a nearly flat channel
    is all-pass. The peak, its height and the inverted frequencies are those of the mean over the
    channels of the most frequent kind. (The amplitude of a filter is something else: its norm.)

    Args:
        eigenvalues: (points,) increasing in [0, 2].
        response: (points,) or (channels, points).

    >>> lam = np.linspace(0, 2, 101)
    >>> describe_filter(lam, 0.8 * np.exp(-10 * (lam - 0.1) ** 2))
    'low-pass, peak at 0.1, height 0.8'
    >>> describe_filter(lam, 1 - 0.7 * lam)
    'low-pass, peak at 0, height 1, inverts high frequencies (-0.4 at 2)'
    """
    grid = np.asarray(eigenvalues, dtype=np.float64)
    values = np.atleast_2d(np.asarray(response, dtype=np.float64))
    if grid.ndim != 1 or len(grid) < 2 or values.ndim != 2 or values.shape[1] != len(grid):
        raise ValueError(
            "Expected `response` of shape (points,) or (channels, points), with two points or "
            f"more (got {np.shape(response)} over {np.shape(eigenvalues)})."
        )
    if not np.isfinite(values).all():
        return "not finite: training diverged"
    strength = np.abs(values).max(axis=1)
    if strength.max(initial=0.0) < 1e-9:
        return "zero: nothing passes"
    values = values[strength >= DEAD * strength.max()]
    bands = [_bands(grid, channel) for channel in np.abs(values)]
    kinds = [_KINDS.get(tuple(passes for passes, _, _ in found), "comb") for found in bands]
    kind, count = Counter(kinds).most_common(1)[0]
    if count < AGREEMENT * len(kinds):
        return ", ".join([_mixture(kinds), *_peak(grid, values), *_signs(grid, values)])
    chosen = [index for index, found in enumerate(kinds) if found == kind]
    values = values[chosen]
    phrase = _shape(kind, values, [bands[index] for index in chosen])
    if count < len(kinds):
        phrase = f"{phrase} ({count} of {len(kinds)} channels)"
    peak = _peak(grid, values)
    if kind in ("all-pass", "band-pass", "band-stop"):  # the peak says nothing new
        peak = peak[1:]
    return ", ".join([phrase, *peak, *_signs(grid, values)])


def describe_cover_filter(eigenvalues: ArrayLike, response: ArrayLike) -> str:
    r"""A filter on the double cover of a directed graph in words.

    Its eigenvalues are 1 - s and 1 + s for the singular values s of the arcs: no signal is smooth
    or alternating there. What has a meaning are the two parts of
    :math:`g(1 \mp s) = g_{even}(s) \pm g_{odd}(s)`: the even one joins nodes with common targets,
    or with common sources, the odd one joins the two ends of an arc. Their shares are those of
    :math:`\int g^2 ds`, over all channels.

    Args:
        eigenvalues: (points,) from 0 to 2, symmetric about 1.
        response: (points,) or (channels, points).

    >>> lam = np.linspace(0, 2, 101)
    >>> describe_cover_filter(lam, 1 - lam)
    '100 % odd (along arcs), peak at singular value 1, height 1'
    >>> describe_cover_filter(lam, 2 + 0.5 * (1 - lam))
    '98 % even (common targets or sources), 2 % odd (along arcs), peak at singular value 1,
    height 2.5'
    """
    grid = np.asarray(eigenvalues, dtype=np.float64)
    values = np.atleast_2d(np.asarray(response, dtype=np.float64))
    if not np.isfinite(values).all():
        return "not finite: training diverged"
    mirrored = values[:, ::-1]
    power = {
        "even (common targets or sources)": float(((values + mirrored) ** 2).sum()),
        "odd (along arcs)": float(((values - mirrored) ** 2).sum()),
    }
    total = sum(power.values())
    if total < 1e-18:
        return "zero: nothing passes"
    shares = sorted(power.items(), key=lambda item: -item[1])
    shown = [f"{100 * p / total:.0f} % {name}" for name, p in shares if p >= 0.005 * total]
    magnitude = np.abs(values).mean(axis=0)
    place = abs(1 - grid[int(np.argmax(magnitude))])
    peak = [f"peak at singular value {round(float(place), 1):g}"]
    if magnitude.min() >= FLAT * magnitude.max():  # a plateau has no peak
        peak = []
    return ", ".join([*shown, *peak, f"height {number_text(magnitude.max())}"])


def _bands(grid: np.ndarray, magnitude: np.ndarray) -> Bands:
    """The pass and stop bands of a channel, with hysteresis and without ripples."""
    low, high = magnitude.min(), magnitude.max()
    if low >= FLAT * high:
        return [(True, float(grid[0]), float(grid[-1]))]
    states = _states((magnitude - low) / (high - low))
    peak = int(np.argmax(magnitude))
    while True:
        runs = [list(run) for _, run in groupby(range(len(states)), states.__getitem__)]
        inner = [float(grid[run[0] - 1] + grid[run[0]]) / 2 for run in runs[1:]]
        edges = [float(grid[0]), *inner, float(grid[-1])]
        widths = [end - start for start, end in pairwise(edges)]
        ripples = [k for k, run in enumerate(runs) if widths[k] < NARROW and peak not in run]
        if not ripples:
            return [(states[run[0]], edges[k], edges[k + 1]) for k, run in enumerate(runs)]
        for i in runs[min(ripples, key=widths.__getitem__)]:
            states[i] = not states[i]


def _states(level: np.ndarray) -> list[bool]:
    """Pass or stop at each point; a change counts from where the level crosses one half."""
    states: list[bool] = []
    state = bool(level[0] >= 0.5)
    for i, value in enumerate(level):
        changed = value <= LEVELS[0] if state else value >= LEVELS[1]
        if changed:
            state = not state
            for j in range(i - 1, -1, -1):
                if (level[j] >= 0.5) != state:
                    break
                states[j] = state
        states.append(state)
    return states


def _shape(kind: str, values: np.ndarray, bands: list[Bands]) -> str:
    """The kind of filter and the place of its band."""
    if kind == "comb":
        count = int(np.median([sum(passes for passes, _, _ in found) for found in bands]))
        return f"comb, {count} pass bands"
    magnitude = np.abs(values).mean(axis=0)
    mild = kind != "all-pass" and magnitude.min() > MILD * magnitude.max()
    kind = f"mild {kind}" if mild else kind
    if kind.endswith(("band-pass", "band-stop")):
        # three bands: the one in the middle is the one that names the filter
        return f"{kind}, centre {np.median([sum(found[1][1:]) / 2 for found in bands]):.1f}"
    return kind


def _mixture(kinds: list[str]) -> str:
    found = Counter(kinds).most_common()
    named = [f"{count} {kind}" for kind, count in found[:3]]
    rest = sum(count for _, count in found[3:])
    named += [f"{rest} other"] if rest else []
    return f"mixed ({len(kinds)} channels: {', '.join(named)})"


def _peak(grid: np.ndarray, values: np.ndarray) -> list[str]:
    magnitude = np.abs(values).mean(axis=0)
    top = grid[magnitude >= 0.999 * magnitude.max()]  # of a plateau, the end of the spectrum
    place = top[-1] if grid[-1] in top and grid[0] not in top else top[0]
    return [f"peak at {round(float(place), 1):g}", f"height {number_text(magnitude.max())}"]


def _signs(grid: np.ndarray, values: np.ndarray) -> list[str]:
    """Which frequencies the filter inverts, if any."""
    mean = mean_response(values)
    threshold = INVERTED * np.abs(mean).max()
    if mean.min() >= -threshold:
        return []
    if mean.max() <= threshold:
        return ["negative throughout"]
    lowest = int(np.argmin(mean))
    place = float(grid[lowest])
    region = "low" if place < 2 / 3 else "high" if place > 4 / 3 else "middle"
    return [f"inverts {region} frequencies ({number_text(mean[lowest])} at {round(place, 1):g})"]
