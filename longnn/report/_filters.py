r"""A filter as a curve over the spectrum, and in words, by rules that a reader can check.

Small NumPy functions that know responses as numbers, and nothing of runs or drawing. The spectrum
is that of the normalised Laplacian, :math:`\lambda \in [0, 2]`, which is :math:`\lambda = 1 - x`
for the operator's :math:`x`.
"""

import math
from collections import Counter
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import ArrayLike

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


def align_signs(response: np.ndarray) -> tuple[np.ndarray, int]:
    """Flip channels so that all have the same sign where the filter is strongest.

    The sign of a whole channel is a convention, because the linear map before it can undo it; but
    in a mean, channels of different sign would cancel. The majority keeps its sign.

    Args:
        response: (channels, points).

    Returns:
        The aligned responses, and how many channels were flipped.

    >>> align_signs(np.array([[2.0, -1.0], [-2.0, 1.0], [4.0, 0.0]]))[0].tolist()
    [[2.0, -1.0], [2.0, -1.0], [4.0, 0.0]]
    """
    peak = int(np.argmax(np.abs(response).mean(axis=0)))
    sign = np.where(response[:, peak] < 0, -1.0, 1.0)
    sign *= -1.0 if sign.sum() < 0 else 1.0
    return response * sign[:, None], int((sign < 0).sum())


def mean_response(response: np.ndarray) -> np.ndarray:
    """The mean of the aligned channels, (points,)."""
    return align_signs(response)[0].mean(axis=0)


def chebyshev_response(beta: np.ndarray, eigenvalues: np.ndarray) -> np.ndarray:
    r"""The response :math:`\sum_j \beta_j T_j(1 - \lambda)` of a filter.

    Args:
        beta: (..., degree + 1, channels).
        eigenvalues: (points,).

    Returns:
        (..., channels, points).

    >>> chebyshev_response(np.array([[0.0], [0.0], [1.0]]), np.array([0.0, 1.0])).tolist()
    [[1.0, -1.0]]
    """
    degrees = np.arange(beta.shape[-2])
    terms = np.cos(degrees[:, None] * np.arccos(np.clip(1 - eigenvalues, -1, 1)))
    return np.einsum("...jc,jp->...cp", beta, terms)


def spectral_coordinates(beta: np.ndarray, eigenvalues: np.ndarray) -> np.ndarray:
    r"""Coordinates of filters whose lengths are root mean squares over the spectrum.

    With the Chebyshev terms on the grid, :math:`T^\top / \sqrt{n} = Q R`, a filter is
    :math:`R \beta`: no larger than its coefficients, however fine the grid.

    Args:
        beta: (..., degree + 1, channels).
        eigenvalues: (points,).

    Returns:
        (..., channels, rank).
    """
    terms = chebyshev_response(np.eye(beta.shape[-2]), eigenvalues)
    R = np.linalg.qr(terms.T / math.sqrt(len(eigenvalues)), mode="r")
    return np.asarray(np.einsum("kj,...jc->...ck", R, beta))


def waveform_distance(filters: np.ndarray) -> np.ndarray:
    r"""How far the waveform :math:`g / \|g\|` of each epoch is from that of the last.

    The norm is the root mean square over channels and spectrum, and so is the distance: 0 for
    the same waveform whatever the amplitude, :math:`\sqrt2` for unrelated ones, 2 for the
    opposite sign.

    Args:
        filters: (epochs, channels, points), responses or their :func:`spectral_coordinates`.

    Returns:
        (epochs,); NaN where the filter is zero.
    """
    norm = np.sqrt((filters**2).mean(axis=(1, 2), keepdims=True))
    waveform = np.divide(filters, norm, out=np.full_like(filters, np.nan), where=norm > 0)
    return np.asarray(np.sqrt(((waveform - waveform[-1]) ** 2).mean(axis=(1, 2))))


def jacobi_weight(eigenvalues: np.ndarray, a: float, b: float) -> np.ndarray:
    r"""The weight function :math:`(1-x)^a (1+x)^b / \mu` at :math:`x = 1 - \lambda`, of mass one.

    Here :math:`\mu = 2^{a+b+1} \Gamma(a+1) \Gamma(b+1) / \Gamma(a+b+2)`. Logarithms avoid
    overflow for large a and b.

    Args:
        eigenvalues: (points,) strictly between 0 and 2.
        a, b: of the weight, > -1.

    >>> jacobi_weight(np.array([0.3, 1.0]), 0.0, 0.0).round(9).tolist()
    [0.5, 0.5]
    """
    log_mass = (a + b + 1) * math.log(2) + math.lgamma(a + 1) + math.lgamma(b + 1)
    log_mass -= math.lgamma(a + b + 2)
    logarithm = a * np.log(eigenvalues) + b * np.log(2 - eigenvalues) - log_mass
    return np.asarray(np.exp(logarithm))


def density_top(eigenvalues: np.ndarray, density: np.ndarray) -> float:
    """A height of the axis that shows most of a density instead of one narrow peak.

    Estimates grow without bound at the ends of the spectrum, and equal eigenvalues make a spike
    anywhere. The ends are therefore ignored, and the height is at most four times the mean.
    """
    density = np.clip(np.nan_to_num(density), 0, 1e300)  # a mean of larger ones is infinite
    inner = np.interp(np.linspace(0.02, 1.98, 400), eigenvalues, density)
    return max(min(float(inner.max()), 4 * float(inner.mean())), 1e-12)


def number_text(value: float) -> str:
    """Two significant digits, without exponents in everyday sizes.

    >>> [number_text(value) for value in (0.8, 0.0341, 12.3, 1234.5)]
    ['0.8', '0.034', '12', '1234']
    """
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.2g}"


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
    kinds = [_KINDS.get(tuple(passes for passes, _, _ in each), "comb") for each in bands]
    kind, count = Counter(kinds).most_common(1)[0]
    if count < AGREEMENT * len(kinds):
        return ", ".join([_mixture(kinds), *_peak(grid, values), *_signs(grid, values)])
    alike = [index for index, other in enumerate(kinds) if other == kind]
    values = values[alike]
    phrase = _shape(kind, values, [bands[index] for index in alike])
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
    top = abs(1 - grid[int(np.argmax(magnitude))])
    peak = [f"peak at singular value {round(float(top), 1):g}"]
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
        count = int(np.median([sum(passes for passes, _, _ in each) for each in bands]))
        return f"comb, {count} pass bands"
    magnitude = np.abs(values).mean(axis=0)
    mild = kind != "all-pass" and magnitude.min() > MILD * magnitude.max()
    kind = f"mild {kind}" if mild else kind
    if kind.endswith(("band-pass", "band-stop")):
        # three bands: the one in the middle is the one that names the filter
        return f"{kind}, centre {np.median([sum(each[1][1:]) / 2 for each in bands]):.1f}"
    return kind


def _mixture(kinds: list[str]) -> str:
    counts = Counter(kinds).most_common()
    named = [f"{count} {kind}" for kind, count in counts[:3]]
    rest = sum(count for _, count in counts[3:])
    named += [f"{rest} other"] if rest else []
    return f"mixed ({len(kinds)} channels: {', '.join(named)})"


def _peak(grid: np.ndarray, values: np.ndarray) -> list[str]:
    magnitude = np.abs(values).mean(axis=0)
    top = grid[magnitude >= 0.999 * magnitude.max()]  # of a plateau, the end of the spectrum
    peak = top[-1] if grid[-1] in top and grid[0] not in top else top[0]
    return [f"peak at {round(float(peak), 1):g}", f"height {number_text(magnitude.max())}"]


def _signs(grid: np.ndarray, values: np.ndarray) -> list[str]:
    """Which frequencies the filter inverts, if any."""
    mean = mean_response(values)
    threshold = INVERTED * np.abs(mean).max()
    if mean.min() >= -threshold:
        return []
    if mean.max() <= threshold:
        return ["negative throughout"]
    lowest = int(np.argmin(mean))
    frequency = float(grid[lowest])
    region = "low" if frequency < 2 / 3 else "high" if frequency > 4 / 3 else "middle"
    return [
        f"inverts {region} frequencies ({number_text(mean[lowest])} at {round(frequency, 1):g})"
    ]
