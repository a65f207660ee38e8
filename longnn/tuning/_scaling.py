"""Feature scaling of a search: ``Scaling.fit(kind, dataset)``, where ``"auto"`` resolves itself.

To be replaced by ``longnn.data.Scaling`` once that takes a dataset: then this file goes, and the
two imports of it name :mod:`longnn.data`.
"""

from longnn import training
from longnn.config import SCALINGS
from longnn.data import NodeDataset, known_names


class Scaling:
    """Scaling of features that knows which datasets have features ready to use."""

    @staticmethod
    def fit(kind: str, dataset: NodeDataset) -> training.Scaling:
        """``auto`` is ``none`` for named datasets and ``standard`` for a user's own columns."""
        if kind not in SCALINGS:
            raise ValueError(f"Expected `scale` to be one of {', '.join(SCALINGS)} (got {kind!r})")
        if kind == "auto":
            kind = "none" if dataset.name in known_names() else "standard"
        return training.Scaling.fit(kind, dataset.data.x)
