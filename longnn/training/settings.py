"""How a model is trained: learning rates, weight decays, penalties, when to stop."""

import dataclasses
from typing import Literal

Monitor = Literal["score", "loss"]

#: The roles of parameters, each with a learning rate and a weight decay of its own.
ROLES = ("transform", "coefficients", "factors", "basis")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Training of one model.

    Args:
        epochs: the most epochs to train.
        patience: stop after so many epochs without a better validation.
        monitor: what "better" means: a higher validation ``"score"`` (accuracy or R2; the lower
            loss decides between equals) or a lower validation ``"loss"``.
        lr_transform, lr_coefficients, lr_factors, lr_basis: Adam's learning rates for the
            feature transform, the filter's coefficients, the factors of PCD, and a and b.
        wd_transform, wd_coefficients, wd_factors, wd_basis: L2 weight decays of the same.
        penalty: weight of the filter-norm penalty, the sum over channels of squared norms.
        degree_penalty: weight of the penalty that empties high degrees.
        averaging: how much of the moving average of the weights stays at each epoch, below 1. With
            0.95, say, what is validated, kept and used is an average over about 20 epochs; with 0
            the weights themselves.
    """

    epochs: int = 1000
    patience: int = 200
    monitor: Monitor = "score"
    lr_transform: float = 0.05
    lr_coefficients: float = 0.002
    lr_factors: float = 0.05
    lr_basis: float = 0.002
    wd_transform: float = 5e-5
    wd_coefficients: float = 0.0
    wd_factors: float = 0.0
    wd_basis: float = 0.0
    penalty: float = 0.0
    degree_penalty: float = 0.0
    averaging: float = 0.0

    def __post_init__(self) -> None:
        for name in ("epochs", "patience"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"Expected `{name}` to be an integer >= 1 (got {value!r})")
        if self.monitor not in ("score", "loss"):
            raise ValueError(f"Expected `monitor` to be 'score' or 'loss' (got {self.monitor!r})")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(field.default, float) and not 0 <= value < float("inf"):
                raise ValueError(f"Expected `{field.name}` >= 0 and finite (got {value!r})")
        if self.averaging >= 1:
            raise ValueError(f"Expected `averaging` below 1 (got {self.averaging!r})")

    def rates(self, kind: Literal["lr", "wd"]) -> dict[str, float]:
        """Learning rates or weight decays by role."""
        return {role: getattr(self, f"{kind}_{role}") for role in ROLES}
