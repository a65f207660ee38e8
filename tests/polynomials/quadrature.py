"""Gauss-Jacobi quadrature in 40 digits: an oracle that does not share code with the package.

SciPy's rule loses digits as a parameter nears -1; this one refines its nodes by Newton's method
in multiple precision, so that what a test sees is the error of the polynomials alone.
"""

import mpmath
import numpy as np
import scipy.special


def gauss_jacobi(count, a, b):
    """Nodes and weights, rounded to float64, of the rule exact up to degree 2*count - 1."""
    with mpmath.workdps(40):
        a, b = mpmath.mpf(a), mpmath.mpf(b)
        t = a + b
        c = [(b - a) / (t + 2)]
        c += [(b - a) * t / ((2 * k + t) * (2 * k + t + 2)) for k in range(1, count)]
        s = [mpmath.sqrt(4 * (1 + a) * (1 + b) / ((2 + t) ** 2 * (3 + t)))]
        for k in range(2, count + 1):
            n = 2 * k + t
            s.append(mpmath.sqrt(4 * k * (k + a) * (k + b) * (k + t) / (n**2 * (n**2 - 1))))
        mass = mpmath.mpf(2) ** (t + 1) * mpmath.beta(a + 1, b + 1)
        start, _ = scipy.special.roots_jacobi(count, float(a), float(b))
        pairs = [_refine(mpmath.mpf(float(x)), c, s, mass) for x in start]
    return np.array([float(x) for x, _ in pairs]), np.array([float(w) for _, w in pairs])


def _refine(x, c, s, mass):
    for _ in range(10):
        p, previous = 1 / mpmath.sqrt(mass), mpmath.mpf(0)
        slope, previous_slope = mpmath.mpf(0), mpmath.mpf(0)
        total = mpmath.mpf(0)
        for k in range(len(c)):
            total += p * p
            back = s[k - 1] if k else 0
            p, previous, slope, previous_slope = (
                ((x - c[k]) * p - back * previous) / s[k],
                p,
                ((x - c[k]) * slope + p - back * previous_slope) / s[k],
                slope,
            )
        step = p / slope
        x -= step
        if abs(step) < mpmath.mpf(10) ** -30:
            break
    return x, 1 / total
