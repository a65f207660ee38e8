"""What the shift towards the class frequencies of validation nodes changes in a prediction."""

from collections.abc import Sequence

import torch
from torch import Tensor

from longnn.training import Readout, Trained, mean_prediction

_LEAST = 1e-300  # of a probability, so that its logarithm is finite


class Shift:
    """Predictions with and without the shift.

    Args:
        trained: the models.
        each: probabilities (nodes, classes) of the repeats in question, shifted.
        repeats: which these are.

    >>> from longnn import LONGNNClassifier, data
    >>> graph = data.csbm(num_nodes=60, num_features=8)
    >>> trained = LONGNNClassifier(preset="fast", epochs=5).fit(graph).trained_
    >>> Shift(trained, [trained.predict(trained.problem(graph))], [0]).there
    False
    """

    def __init__(self, trained: Trained, each: Sequence[Tensor], repeats: Sequence[int]) -> None:
        readouts = [trained.readouts[k] for k in repeats]
        self.there = any(r.shift for r in readouts)
        #: Whether a class can be another with it: a threshold that was fitted makes up for it.
        self.decides = self.there and (bool(trained.config.threshold) or not readouts[0].threshold)
        self._shifted = mean_prediction(each).double()
        pairs = zip(readouts, each, strict=True)
        self._plain = mean_prediction([r.without_shift(p) for r, p in pairs]).double()
        choose = Readout.mean(readouts).choose
        self.chosen = choose(self._shifted)
        #: (nodes,) classes that the scores alone would give.
        self.without = choose(self._plain) if self.decides else self.chosen

    def log_odds(self, node: int) -> float:
        """What it adds to the log-odds of the predicted class against that without it."""
        ours, other = int(self.chosen[node]), int(self.without[node])
        shifted, plain = (
            torch.log(p[node, [ours, other]].clamp_min(_LEAST))
            for p in (self._shifted, self._plain)
        )
        return float((shifted[0] - shifted[1]) - (plain[0] - plain[1]))
