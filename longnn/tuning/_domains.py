"""The domain of one entry of a search space: a set of choices, or a range of numbers.

Knows TOML tables and Optuna's trials, and no entry by its name.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from optuna.trial import BaseTrial

from longnn._base.suggestions import did_you_mean

#: A value of a configuration, as TOML and JSON have it.
Plain = bool | int | float | str


@dataclasses.dataclass(frozen=True)
class Choices:
    """One of several values. Three or more rising numbers are searched as an ordered scale.

    >>> Choices((0.5, 1.0, 1.5)).ordered, Choices(("paper", "probability")).ordered
    (True, False)
    """

    values: tuple[Plain, ...]

    @property
    def ordered(self) -> bool:
        """Whether the sampler is told that one choice lies between two others."""
        numbers = [v for v in self.values if _is_number(v)]
        return len(numbers) == len(self.values) > 2 and numbers == sorted(numbers, key=float)

    def suggest(self, trial: BaseTrial, key: str) -> Plain:
        """A value for one trial."""
        if self.ordered:
            return self.values[trial.suggest_int(key, 0, len(self.values) - 1)]
        return cast(Plain, trial.suggest_categorical(key, self.values))  # None is no choice

    def edges(self) -> tuple[Plain, ...]:
        """The values to check before a search: all of them."""
        return self.values

    def widen(self, value: Plain) -> "Choices":
        """The domain with one more value, among rising numbers in its place.

        >>> Choices((0.1, 0.5)).widen(0.2)
        Choices(values=(0.1, 0.2, 0.5))
        """
        if value in self.values:
            return self
        values = (*self.values, value)
        if all(map(_is_number, values)) and list(self.values) == sorted(self.values, key=float):
            values = tuple(sorted(values, key=float))
        return Choices(values)

    def encode(self, key: str, value: Plain) -> dict[str, Plain]:
        """Optuna's parameters for which :meth:`suggest` gives this value."""
        return {key: self.values.index(value) if self.ordered else value}

    def to_dict(self) -> dict[str, Any]:
        """The domain as TOML has it."""
        return {"choices": list(self.values)}


@dataclasses.dataclass(frozen=True)
class Range:
    """A number from ``low`` to ``high``, both included.

    Args:
        log: draw uniformly on a logarithmic scale.
        step: draw only ``low``, ``low + step``, ``low + 2 step``, ...
        integer: draw integers.
        or_zero: the value may also be exactly 0.

    >>> Range(0.0, 0.8, step=0.1).to_dict()
    {'low': 0.0, 'high': 0.8, 'step': 0.1}
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    integer: bool = False
    or_zero: bool = False

    def suggest(self, trial: BaseTrial, key: str) -> Plain:
        """A value for one trial."""
        if self.or_zero and not trial.suggest_categorical(f"{key}?", [False, True]):
            return 0 if self.integer else 0.0
        if self.integer:
            step = 1 if self.step is None else int(self.step)
            return trial.suggest_int(key, int(self.low), int(self.high), step=step, log=self.log)
        value = trial.suggest_float(key, self.low, self.high, step=self.step, log=self.log)
        return float(f"{value:.12g}") if self.step else value  # 0.3, not 0.30000000000000004

    def edges(self) -> tuple[Plain, ...]:
        """The values to check before a search: the ends, and 0 where it is allowed."""
        return (self.low, self.high, *((0,) if self.or_zero else ()))

    def widen(self, value: float) -> "Choices | Range":
        """The smallest domain with one more value; between two steps it becomes choices.

        >>> Range(0.1, 0.5).widen(0.7)
        Range(low=0.1, high=0.7, log=False, step=None, integer=False, or_zero=False)
        >>> Range(0.0, 0.4, step=0.2).widen(0.3)
        Choices(values=(0.0, 0.2, 0.3, 0.4))
        """
        if self.or_zero and value == 0:
            return self
        if self.log and value <= 0:
            return dataclasses.replace(self, or_zero=True)
        steps = 0.0 if self.step is None else (value - self.low) / self.step
        if abs(steps - round(steps)) < 1e-9:
            low, high = min(self.low, value), max(self.high, value)
            return dataclasses.replace(self, low=low, high=high)
        assert self.step is not None
        count = round((self.high - self.low) / self.step)
        grid = {float(f"{self.low + i * self.step:.12g}") for i in range(count + 1)}
        return Choices(tuple(sorted(grid | {value} | ({0.0} if self.or_zero else set()))))

    def encode(self, key: str, value: Plain) -> dict[str, Plain]:
        """Optuna's parameters for which :meth:`suggest` gives this value."""
        whether: dict[str, Plain] = {f"{key}?": value != 0} if self.or_zero else {}
        return whether if self.or_zero and value == 0 else {**whether, key: value}

    def to_dict(self) -> dict[str, Any]:
        """The domain as TOML has it."""
        shown: dict[str, Any] = {"low": self.low, "high": self.high}
        return shown | {k: v for k in ("log", "step", "or_zero") if (v := getattr(self, k))}


Domain = Choices | Range

_FIELDS = ("choices", "low", "high", "log", "step", "or_zero")


def parse_domain(key: str, value: Any, *, integer: bool) -> Domain | Plain:
    """The domain that a TOML value describes, or the value itself, which is then fixed.

    Args:
        key: named in errors.
        value: a plain value, or a table with ``choices`` or with ``low`` and ``high``.
        integer: whether the entry takes integers only.

    Raises:
        ValueError: for a table that describes neither choices nor a range.

    >>> parse_domain("degree", {"low": 2, "high": 8}, integer=True)
    Range(low=2, high=8, log=False, step=None, integer=True, or_zero=False)
    >>> parse_domain("degree", 5, integer=True)
    5
    """
    if isinstance(value, list):
        raise ValueError(f"Expected `{key} = {{ choices = {value!r} }}` (got a list)")
    if not isinstance(value, Mapping):
        plain: Plain = value
        return plain
    for field in value:
        if field not in _FIELDS:
            raise ValueError(
                f"Expected {', '.join(_FIELDS)} in `{key}` (got {field!r})"
                + did_you_mean(field, _FIELDS)
            )
    if "choices" in value:
        return _parse_choices(key, value)
    return _parse_range(key, value, integer)


def _parse_choices(key: str, value: Mapping[str, Any]) -> Choices:
    if len(value) > 1:
        raise ValueError(f"Expected `{key}` to have choices or a range (got both)")
    choices = value["choices"]
    if not isinstance(choices, list | tuple) or not choices:
        raise ValueError(f"Expected `choices` of `{key}` to be a list (got {choices!r})")
    if any(isinstance(v, Mapping | list) for v in choices):
        raise ValueError(f"Expected plain values in `choices` of `{key}` (got {choices!r})")
    if len(set(choices)) < len(choices):
        raise ValueError(f"Expected different `choices` of `{key}` (got {choices!r})")
    return Choices(tuple(choices))


def _parse_range(key: str, value: Mapping[str, Any], integer: bool) -> Range:
    low, high = (_parse_number(key, name, value.get(name)) for name in ("low", "high"))
    step = None if value.get("step") is None else _parse_number(key, "step", value["step"])
    log, or_zero = value.get("log", False), value.get("or_zero", False)
    if not isinstance(log, bool) or not isinstance(or_zero, bool):
        raise ValueError(f"Expected `log` and `or_zero` of `{key}` to be true or false")
    if not low < high:
        raise ValueError(f"Expected `low` < `high` in `{key}` (got {low!r}, {high!r})")
    if log and (low <= 0 or step is not None):
        raise ValueError(
            f"Expected `low` > 0 and no `step` with `log` in `{key}`; to include zero, add "
            f"`or_zero = true` (got {dict(value)!r})"
        )
    if step is not None:
        _check_step(key, low, high, step)
    numbers: Sequence[float] = (low, high) if step is None else (low, high, step)
    whole = all(isinstance(n, int) for n in numbers)
    return Range(low, high, log, step, integer and whole, or_zero)


def _parse_number(key: str, name: str, number: Any) -> float:
    if not _is_number(number) or not math.isfinite(number):
        raise ValueError(f"Expected `{name}` of `{key}` to be a number (got {number!r})")
    value: float = number
    return value


def _check_step(key: str, low: float, high: float, step: float) -> None:
    if not 0 < step <= high - low:
        raise ValueError(f"Expected 0 < `step` <= high - low in `{key}` (got {step!r})")
    if abs((high - low) / step - round((high - low) / step)) > 1e-9:
        raise ValueError(f"Expected `high` a whole number of steps above `low` in `{key}`")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
