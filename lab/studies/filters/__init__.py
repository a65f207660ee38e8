r"""Tables 2 and 6 of the paper: learning five filters from images.

Each image is a signal on the pixel grid, its target the image after a known filter, and the loss
the sum of squared errors over the interior pixels. All polynomial models of one degree share one
least loss, the *floor*; what differs is how fast they come near it, and that is a matter of
conditioning: in a basis with matrix C the Hessian of the coefficients is
:math:`C\,S^TS\,C^T`, S the Chebyshev terms of the image, and the steps a gradient method needs
grow with its condition number. Images have their energy at small eigenvalues; an orthonormal
Jacobi basis whose weight :math:`(1-x)^a(1+x)^b` lies there too makes the Hessian nearly the
identity, which a basis without norms, or one for an even weight, does not.
"""

from lab.studies.filters._figures import draw
from lab.studies.filters._run import run
from lab.studies.filters._tables import tables

__all__ = ["ORDER", "TITLE", "draw", "run", "tables"]

TITLE = "Learning five filters from images (Tables 2 and 6)"
ORDER = 10
