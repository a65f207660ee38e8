r"""What is explained: one number per node, made of the scores of one model or of several.

One model is asked for a score, or for the difference of two. An ensemble, or several repeats,
predict with averaged probabilities: there the number is the logarithm of the average, a smooth
function f of all scores z. It is split over them along the straight way from zero,

.. math:: f(z) = f(0) + \sum_m \sum_k A_{mk} z_{mk}, \qquad
          A = \int_0^1 \nabla f(\tau z)\,d\tau,

an integral of one variable, found to rounding. The rest of the explanation is linear in z: each
model m is asked for :math:`\sum_k A_{mk} z_{mk}`, and the parts add up.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longnn.metrics import Task
from longnn.nn import Ensemble, Model
from longnn.training import Readout

#: Points of the integral over the joint of several models.
POINTS = 256
_LEAST, _ROUNDING = 1e-300, 1e-16  # of a probability, so that its logarithm is finite


@dataclasses.dataclass(frozen=True, eq=False)
class Question:
    """How the scores of single models become the number that is explained.

    Args:
        task: what is predicted.
        repeats: the models of the repeats; an ensemble joins several models.
        readouts: how the outputs of each repeat become predictions.
    """

    task: Task
    repeats: Sequence[Model]
    readouts: Sequence[Readout]

    @property
    def models(self) -> list[Model]:
        """The single models, repeat after repeat."""
        found: list[Model] = []
        for model in self.repeats:
            found += self.singles(model)
        return found

    @staticmethod
    def singles(model: Model) -> list[Model]:
        """The members of an ensemble, or the model itself."""
        if not isinstance(model, Ensemble):
            return [model]
        return [m for m in model.members.values() if isinstance(m, Model)]

    @property
    def is_joint(self) -> bool:
        """Whether averaged probabilities are explained, which are not linear in the scores."""
        joined = len(self.repeats) > 1 or any(isinstance(m, Ensemble) for m in self.repeats)
        return self.task != "regression" and joined

    def numbers(self, z: Sequence[Tensor]) -> Tensor:
        """What is explained of each output, (nodes, outputs), of scores z[m] (nodes, outputs)."""
        scores, rest = [], list(z)
        for model in self.repeats:
            count = len(self.singles(model))
            own, rest = torch.stack(rest[:count]), rest[count:]
            scores.append(model.join(own) if isinstance(model, Ensemble) else own[0])
        pairs = list(zip(self.readouts, scores, strict=True))
        if self.task == "regression":
            values = [s.new_tensor(r.offset) + s.new_tensor(r.scale) * s for r, s in pairs]
            return torch.stack(values).mean(0)
        if len(scores) == 1:
            return scores[0]
        p = torch.stack([r.predict(s) for r, s in pairs]).mean(0).clamp(_LEAST, 1 - _ROUNDING)
        return p.log() if self.task == "classification" else torch.logit(p)

    def ask(
        self, z: Sequence[Tensor], output: Tensor, against: int | None = None
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """The number of each node, its value at z = 0, and A[m] (nodes, outputs).

        Args:
            z: scores of every single model, (nodes, outputs).
            output: (nodes,), which output of each node.
            against: an output whose number is subtracted.
        """
        pick = F.one_hot(output, z[0].shape[1]).to(z[0].dtype)  # (nodes, outputs)
        if against is not None:
            pick[:, against] -= 1

        def number(at: Sequence[Tensor]) -> Tensor:
            return (pick * self.numbers(at)).sum(1)

        points, weights = np.polynomial.legendre.leggauss(POINTS if self.is_joint else 1)
        total = [torch.zeros_like(s) for s in z]
        for t, w in zip((points + 1) / 2, weights / 2, strict=True):
            at = [(t * s).requires_grad_() for s in z]
            with torch.enable_grad():
                gradients = torch.autograd.grad(number(at).sum(), at)
            total = [a + w * g for a, g in zip(total, gradients, strict=True)]
        with torch.no_grad():
            return number(list(z)), number([torch.zeros_like(s) for s in z]), total
