"""What a key of a search space may be: one of some values, or a number in a range.

Knows TOML's tables and Optuna's trials, and no key by name.
"""

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

from optuna.trial import BaseTrial


@dataclasses.dataclass(frozen=True)
class Choices:
    """One of some values. Numbers in rising order are searched as the ordered scale they are."""

    values: tuple[Any, ...]

    @property
    def ordered(self) -> bool:
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)
        return numbers and len(self.values) > 2 and list(self.values) == sorted(self.values)

    def suggest(self, trial: BaseTrial, key: str) -> Any:
        if self.ordered:
            return self.values[trial.suggest_int(key, 0, len(self.values) - 1)]
        return trial.suggest_categorical(key, self.values)

    def edges(self) -> tuple[Any, ...]:
        """The values to check; all of them."""
        return self.values

    def to_dict(self) -> dict[str, Any]:
        return {"choices": list(self.values)}


@dataclasses.dataclass(frozen=True)
class Range:
    """A number between two, ends included."""

    low: float
    high: float
    log: bool = False
    step: float | None = None
    integer: bool = False
    or_zero: bool = False

    def suggest(self, trial: BaseTrial, key: str) -> Any:
        if self.or_zero and not trial.suggest_categorical(f"{key}?", [False, True]):
            return 0 if self.integer else 0.0
        if self.integer:
            step = 1 if self.step is None else int(self.step)
            return trial.suggest_int(key, int(self.low), int(self.high), step=step, log=self.log)
        value = trial.suggest_float(key, self.low, self.high, step=self.step, log=self.log)
        return float(f"{value:.12g}") if self.step else value  # 0.3, not 0.30000000000000004

    def edges(self) -> tuple[Any, ...]:
        return (self.low, self.high, *((0,) if self.or_zero else ()))

    def to_dict(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"low": self.low, "high": self.high}
        return shown | {k: v for k in ("log", "step", "or_zero") if (v := getattr(self, k))}


Entry = Choices | Range


_FIELDS = ("choices", "low", "high", "log", "step", "or_zero")


def parse_entry(key: str, value: Any, *, integer: bool) -> Any:
    """An entry, or the fixed value itself; ``integer`` says that the key takes no other."""
    if isinstance(value, list):
        raise ValueError(f"Expected `{key} = {{ choices = {value!r} }}` (got a list)")
    if not isinstance(value, Mapping):
        return value
    for field in value:
        if field not in _FIELDS:
            near = difflib.get_close_matches(field, _FIELDS, n=1, cutoff=0.5)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            raise ValueError(f"Expected {', '.join(_FIELDS)} in `{key}` (got {field!r}){hint}")
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
    low, high, step = value.get("low"), value.get("high"), value.get("step")
    for name, number in (("low", low), ("high", high), ("step", step)):
        missing = number is None and name != "step"
        wrong = number is not None and (
            isinstance(number, bool) or not isinstance(number, int | float) or number - number != 0
        )
        if missing or wrong:
            raise ValueError(f"Expected `{name}` of `{key}` to be a number (got {number!r})")
    assert low is not None
    assert high is not None
    log, or_zero = value.get("log", False), value.get("or_zero", False)
    if not isinstance(log, bool) or not isinstance(or_zero, bool):
        raise ValueError(f"Expected `log` and `or_zero` of `{key}` to be true or false")
    if not low < high:
        raise ValueError(f"Expected `low` < `high` in `{key}` (got {low!r}, {high!r})")
    if log and (low <= 0 or step is not None):
        raise ValueError(
            f"Expected `low` > 0 and no `step` with `log` in `{key}`; for a zero add "
            f"`or_zero = true` (got {dict(value)!r})"
        )
    if step is not None and not 0 < step <= high - low:
        raise ValueError(f"Expected 0 < `step` <= high - low in `{key}` (got {step!r})")
    if step is not None and abs((high - low) / step - round((high - low) / step)) > 1e-9:
        raise ValueError(f"Expected `high` a whole number of steps above `low` in `{key}`")
    whole = all(isinstance(n, int) for n in (low, high, step) if n is not None)
    return Range(low, high, log, step, integer and whole, or_zero)
