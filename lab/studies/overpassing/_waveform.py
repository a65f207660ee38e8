r"""Amplitude and waveform of a filter bank, and how a move divides between the two.

.. math::
    \langle f, g\rangle = \frac1C \sum_c \frac12\int_{-1}^1 f_c\,g_c\,dx, \qquad
    \text{amplitude } A = \|g\|, \qquad
    \text{movement of the waveform } 1 - \frac{\langle f, g\rangle}{\|f\|\,\|g\|}

Filters are given by their Chebyshev coefficients, (..., degree+1, channels): one ruler for every
basis. The amplitude is the root mean square of the response over spectrum and channels. Of a move
from f to g, :math:`g - f = c f + h` with h orthogonal to f, the *share of growth* is
:math:`\|cf\|^2 / \|g - f\|^2`.
"""

import dataclasses

import numpy as np

from longnn.polynomials._chebyshev import uniform_gram


@dataclasses.dataclass(frozen=True)
class Move:
    """What happened to a filter between two epochs.

    Args:
        growth: of the amplitude, a factor.
        movement: of the waveform.
        share: of growth in the move.
    """

    growth: float
    movement: float
    share: float


def inner(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The inner product of filters by their Chebyshev coefficients, (..., degree+1, channels)."""
    gram = uniform_gram(f.shape[-2] - 1).numpy()
    return np.asarray(np.einsum("...ic,ij,...jc->...", f, gram, g) / f.shape[-1])


def amplitude(g: np.ndarray) -> np.ndarray:
    """Root mean square of the response over the spectrum and the channels.

    >>> amplitude(np.array([[3.0], [0.0]])).item()
    3.0
    """
    return np.sqrt(inner(g, g))


def movement(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    """1 - cosine of the angle between two filters: 0 for the same waveform, 1 for unrelated ones.

    >>> movement(np.array([[3.0], [0.0]]), np.array([[0.0], [1.0]])).item()
    1.0
    """
    return 1 - inner(f, g) / (amplitude(f) * amplitude(g))


def growth_share(f: np.ndarray, g: np.ndarray) -> float:
    """Of the squared length of the move from f to g, the share along f itself; 0 without a move."""
    along, length = inner(g - f, f) / amplitude(f), inner(g - f, g - f)
    return float(along**2 / length) if length > 0 else 0.0


def describe_move(f: np.ndarray, g: np.ndarray) -> Move:
    """The move from f to g, to four digits.

    >>> describe_move(np.array([[1.0], [0.0]]), np.array([[1.5], [0.0]]))
    Move(growth=1.5, movement=0.0, share=1.0)
    """
    values = (amplitude(g) / amplitude(f), movement(f, g), growth_share(f, g))
    return Move(*(float(f"{float(value):.4g}") for value in values))


def over_passing(move: Move) -> bool:
    """Whether the amplitude grows by more than 1 % and growth is more than half of the move."""
    return move.growth > 1.01 and move.share > 0.5
