r"""Does the learned basis follow the graph? Learned (a, b) against each graph's spectral density.

A Jacobi basis is orthogonal for the weight :math:`(1-x)^a(1+x)^b`, which over the Laplacian
eigenvalue :math:`\lambda = 1 - x` is a Beta density: :math:`\lambda/2 \sim
\mathrm{Beta}(a+1, b+1)`. It can be compared with the density of the graph's eigenvalues by the
Wasserstein distance, :math:`W_1 = \int_0^2 |F(\lambda) - G(\lambda)|\,d\lambda` of their
distribution functions: at the start of training, for the learned a and b, and for those that
have the mean and variance of the eigenvalues. A graph without self loops has
:math:`\mathrm{tr}\,P = 0`, so its mean eigenvalue is 1 (isolated nodes count as 1): by moments
alone, a = b on every such graph.
"""

from lab.studies.basis._figure import draw
from lab.studies.basis._measure import run
from lab.studies.basis._tables import tables

__all__ = ["ORDER", "TITLE", "draw", "run", "tables"]

TITLE = "Learned bases against the spectra of their graphs"
ORDER = 80
