r"""Figure 1, over-passing: does a filter continue to grow after it has found its shape?

GPRGNN and LON-GNN in the paper's form, :math:`\hat Y = g(P)\,t_\theta(X)`, are trained for a fixed
number of epochs, and the filter is written down at each: its amplitude and its waveform, as defined
in ``_waveform``. One record per graph.
"""

from lab.studies.overpassing._figures import draw
from lab.studies.overpassing._measure import run
from lab.studies.overpassing._tables import tables

__all__ = ["ORDER", "TITLE", "draw", "run", "tables"]

TITLE = "Over-passing: amplitude and waveform over training (Figure 1)"
ORDER = 60
