"""How one model is trained: every setting with its default, its meaning and its choices."""

import dataclasses
from typing import Any, Literal

from longnn.config._check import check_choice, check_range, check_type
from longnn.metrics import METRICS

#: The roles of parameters, each with a learning rate and a weight decay of its own.
ROLES = ("transform", "coefficients", "factors", "basis")


def described(default: Any, meaning: str, choices: tuple[str, ...] = ()) -> Any:
    """A field with what ``longnn models --settings`` says about it."""
    return dataclasses.field(default=default, metadata={"meaning": meaning, "choices": choices})


@dataclasses.dataclass(frozen=True)
class Settings:
    """How one model is trained; each field says what it means.

    >>> Settings(epochs=100).patience
    200
    """

    epochs: int = described(1000, "largest number of epochs")
    patience: int = described(200, "stop after this many epochs without improvement, see monitor")
    monitor: str = described(
        "score",
        f"what improvement on the validation nodes means: loss, {', '.join(METRICS)}, or score, "
        "the headline of the data",
        ("score", "loss", *METRICS),
    )
    class_weight: str = described(
        "none",
        "weight of classes in the loss: none, balanced, or a table such as fraud=5,other=1",
    )
    lr_transform: float = described(0.05, "learning rate of the feature transform")
    lr_coefficients: float = described(0.002, "learning rate of the filter's coefficients")
    lr_factors: float = described(0.05, "learning rate of the factors of PCD")
    lr_basis: float = described(0.002, "learning rate of a and b")
    wd_transform: float = described(5e-5, "L2 weight decay of the feature transform")
    wd_coefficients: float = described(0.0, "L2 weight decay of the filter's coefficients")
    wd_factors: float = described(0.0, "L2 weight decay of the factors of PCD")
    batch_rows: int = described(
        4096, "rows of a step where a graph is too large for memory and trained on rows"
    )
    penalty: float = described(0.0, "weight of the penalty on the squared norm of the filters")
    degree_penalty: float = described(0.0, "weight of the penalty on high degrees of the filter")

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = check_type(field.name, getattr(self, field.name), field.default)
            object.__setattr__(self, field.name, value)
            check_range(field.name, value)
            check_choice(field.name, value, field.metadata["choices"])
            if field.name == "class_weight":
                parse_class_weight(value)
            if isinstance(field.default, float) and not 0 <= value < float("inf"):
                raise ValueError(f"Expected `{field.name}` >= 0 and finite (got {value!r})")

    def rates(self, kind: Literal["lr", "wd"]) -> dict[str, float]:
        """Learning rates or weight decays by role; a and b do not decay."""
        return {role: getattr(self, f"{kind}_{role}", 0.0) for role in ROLES}


#: The names of the learning rates and weight decays.
RATES = tuple(f.name for f in dataclasses.fields(Settings) if f.name.startswith(("lr_", "wd_")))


def parse_class_weight(text: str) -> dict[str, float] | str:
    """``class_weight`` read: ``"none"``, ``"balanced"``, or the weight of each class it names.

    A class name may hold a comma or an equals sign: the last equals sign of a part counts.

    >>> parse_class_weight("fraud=5,other=0.5"), parse_class_weight("balanced")
    ({'fraud': 5.0, 'other': 0.5}, 'balanced')
    """
    if text in ("none", "balanced"):
        return text
    weights: dict[str, float] = {}
    kept = ""
    for part in text.split(","):
        name, sign, number = (kept + part).rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            kept += part + ","
            continue
        if not sign or not name or not 0 <= weight < float("inf"):
            break
        weights[name.strip()], kept = weight, ""
    else:
        if weights and not kept:
            return weights
    raise ValueError(
        "Expected `class_weight` to be none, balanced or a table such as fraud=5,other=1 with "
        f"weights >= 0 (got {text!r})"
    )
