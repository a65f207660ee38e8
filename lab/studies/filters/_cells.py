"""What the record of filter fitting holds: one dataclass per kind of cell.

Losses are by filter and image, rounded to nine digits.
"""

import dataclasses

#: Filter -> one number per image.
ByImage = dict[str, list[float]]


@dataclasses.dataclass(frozen=True)
class Plan:
    """The images and the training.

    Args:
        images: where they come from.
        count: how many.
        size: height and width.
        degree: of the models.
        steps: of Adam.
        rates: learning rates that are tried.
        basis_rate: learning rate of a and b.
        basis_rates: those that are compared.
    """

    images: str
    count: int
    size: list[int]
    degree: int
    steps: int
    rates: list[float]
    basis_rate: float
    basis_rates: list[float]


@dataclasses.dataclass(frozen=True)
class Milliseconds:
    """Median and largest of some times."""

    median: float
    max: float


@dataclasses.dataclass(frozen=True)
class FloorCell:
    """The floor by the eigendecomposition, and the least loss of every degree.

    Args:
        losses: the floor.
        starts: best start (a, b) of each image.
        energy: filter -> loss of no filter at all.
        degrees: of the curve.
        by_degree: filter -> least loss by degree, mean over images.
    """

    losses: ByImage
    starts: list[list[float]]
    energy: dict[str, float]
    degrees: list[int]
    by_degree: dict[str, list[float]]


@dataclasses.dataclass(frozen=True)
class ClosedCell:
    """The closed form: losses, and time per image."""

    losses: ByImage
    ms: Milliseconds


@dataclasses.dataclass(frozen=True)
class RationalCell:
    """Rational filters.

    Args:
        losses: of the fits.
        ms: time per image.
        ms_before: time for poles and factors, once per filter.
        pairs: of conjugate poles.
        poles: filter -> real and imaginary part of each.
    """

    losses: ByImage
    ms: Milliseconds
    ms_before: Milliseconds
    pairs: int
    poles: dict[str, list[list[float]]]


@dataclasses.dataclass(frozen=True)
class OwnFloorsCell:
    """Model -> its own least loss, for models that are not free polynomials of P."""

    losses: dict[str, ByImage]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainedCell:
    """A training by Adam, each table by filter.

    Args:
        chosen: learning rate of the least mean loss.
        fastest: learning rate that is near the floor first.
        steps: that were taken.
        steps_to: steps until the loss is near the floor at the fastest rate; 0 for never.
        marks: steps of the curve.
        curve: mean loss at the marks, at the fastest rate.
        losses: at the chosen rates; not kept for bases.
        images: how many, if not all.
        rates: learning rates, if not those of the plan.
        condition: of the Hessian, the median over images; for bases.
        condition_scaled: the same with its diagonal scaled to one.
    """

    chosen: dict[str, float]
    fastest: dict[str, float]
    steps: int
    steps_to: dict[str, int]
    marks: list[int]
    curve: dict[str, list[float]]
    losses: ByImage | None = None
    images: int | None = None
    rates: list[float] | None = None
    condition: float | None = None
    condition_scaled: float | None = None


@dataclasses.dataclass(frozen=True)
class SensitivityCell:
    """Model -> learning rate of a and b -> filter -> mean loss."""

    losses: dict[str, dict[str, dict[str, float]]]


@dataclasses.dataclass(frozen=True)
class TimesCell:
    """Gradient training of LON-GNN until it is near the floor.

    Args:
        steps: of Adam.
        ratio: filter -> loss in multiples of the floor.
        ms_together: time per image, all images trained together.
        ms_alone: time of one image alone.
        ms_plain: the same with sparse products at every step.
    """

    steps: int
    ratio: dict[str, float]
    ms_together: Milliseconds
    ms_alone: Milliseconds
    ms_plain: Milliseconds
