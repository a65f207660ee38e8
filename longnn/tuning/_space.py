"""A search space as data: TOML in, what a search may choose for one model out.

An entry is a training setting or an option of the model (:class:`~longnn.config.Config`). It is
fixed (``epochs = 1000``), one of several choices (``a = { choices = [0, 1] }``), or in a range
(``dropout = { low = 0, high = 0.8, step = 0.1 }``, with ``log = true`` for a logarithmic scale and
``or_zero = true`` to allow exactly 0 as well). Entries that the model does not have are dropped,
so one file serves all models.

Entries for one model alone come from two places. The registry has what is true of a model in every
space (:attr:`~longnn.registry.ModelEntry.space`); it overrides the common entries of the file. The
table ``[models.NAME]`` of the file has what is true in this space; it overrides both.
"""

import dataclasses
import functools
import itertools
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Self, cast

import optuna
from optuna.trial import BaseTrial

from longnn._base.suggestions import did_you_mean
from longnn.config import Config, Settings
from longnn.config._config import RATES
from longnn.nn import Model
from longnn.registry import MODELS, find_model, model_options
from longnn.training import make_model

#: What a configuration has and a space may not: all trials of a search share it.
RESERVED = (
    *("preset", "time_limit", "model", "split", "seed", "repeat", "scale", "device", "precision"),
)
#: Options that decide which parameters a model has.
SHAPING = ("coefficients", "learn_basis", "orthonormal")


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
        """The domain with one more value, among rising numbers in its place."""
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
        """The smallest domain with one more value; between two steps it becomes choices."""
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


@dataclasses.dataclass(frozen=True)
class SearchSpace:
    """What a search may choose for one model. Make one with :func:`load_space`.

    Args:
        model: the name of the model.
        name: of the space, for the record.
        search: the entries to search, each with its domain.
        fixed: the entries that have the same value in every trial.
        dropped: entries of the file that the model does not have.
        source: the table of the file.

    >>> table = {"degree": 4, "a": {"choices": [0.5, 1.0, 1.5]}, "heads": 2}
    >>> space = SearchSpace.from_dict(table, "lon")
    >>> space.fixed, space.dropped
    ({'degree': 4}, ('heads',))
    """

    model: str
    name: str
    search: Mapping[str, Domain]
    fixed: Mapping[str, Plain]
    dropped: tuple[str, ...] = ()
    source: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], model: str, *, name: str = "custom") -> Self:
        """From the table of a TOML file, checked and restricted to what the model has.

        Raises:
            ValueError: for an entry that no model has (naming the nearest valid one), a value that
                the model does not accept, or a space with nothing to search.
        """
        find_model(model)
        entries = _parse(_merge(table, model))
        for key in entries:
            _check_key(key, model)
        own = {k: v for k, v in entries.items() if k in model_options(model) or _is_training(k)}
        search = {k: v for k, v in own.items() if isinstance(v, Domain)}
        for key in ("self_loops", "direction"):
            if key in search:
                raise ValueError(f"Expected one value for `{key}`: all trials share the graph")
        fixed = {k: v for k, v in own.items() if not isinstance(v, Domain)}
        for key, domain in own.items():
            for value in domain.edges() if isinstance(domain, Domain) else (domain,):
                _check_value(model, {**_options(model, fixed), key: value}, key)
        idle = _idle_keys(list(_probes(model, search, fixed)))
        space = cls(
            model,
            name,
            {k: v for k, v in search.items() if k not in idle},
            {k: v for k, v in fixed.items() if k not in idle},
            tuple(k for k in entries if k not in own or k in idle),
            table,
        )
        if not space.search:
            raise ValueError(f"Expected an entry of model {model!r} to search in {name} (got none)")
        return space

    def fix(self, values: Mapping[str, Any]) -> Self:
        """A copy in which some entries have one value."""
        for key, value in values.items():
            if isinstance(value, Mapping | list):
                raise ValueError(f"Expected a plain value for `{key}` (got {value!r})")
            _check_key(key, self.model)
            Config.from_dict({"model": self.model, key: value})
        tables = _tables(self.source)
        own = {**tables.get(self.model, {}), **values}
        table = {**self.source, "models": {**tables, self.model: own}}
        return self.from_dict(table, self.model, name=self.name)

    def suggest(self, trial: BaseTrial) -> dict[str, Plain]:
        """A value for every entry; the searched ones are drawn by an Optuna trial."""
        chosen = {key: domain.suggest(trial, key) for key, domain in self.search.items()}
        return {**self.fixed, **chosen}

    def widen(self, values: Mapping[str, Any]) -> Self:
        """A copy whose searched entries have these values among theirs."""
        search = {key: domain.widen(values[key]) for key, domain in self.search.items()}
        return dataclasses.replace(self, search=search)

    def encode(self, values: Mapping[str, Plain]) -> dict[str, Plain]:
        """Optuna's parameters for which :meth:`suggest` gives these values."""
        encoded = (domain.encode(key, values[key]) for key, domain in self.search.items())
        return {key: value for part in encoded for key, value in part.items()}

    def config(self, values: Mapping[str, Plain], **others: Plain) -> Config:
        """The configuration with these values; ``others`` are those that no space has."""
        return Config.from_dict({"model": self.model, **values, **others})

    @property
    def conditional(self) -> bool:
        """Whether some entries are drawn in some trials only."""
        return any(isinstance(d, Range) and d.or_zero for d in self.search.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the record; equal spaces give equal data."""
        return {
            "name": self.name,
            "model": self.model,
            "search": {key: domain.to_dict() for key, domain in self.search.items()},
            "fixed": dict(self.fixed),
            "dropped": list(self.dropped),
        }


def load_space(
    source: SearchSpace | Mapping[str, Any] | str | Path, model: str = "lon"
) -> SearchSpace:
    """A search space for one model.

    Args:
        source: the name of a shipped space (:func:`shipped_spaces`), a TOML file, its table, or a
            space, which is returned.
        model: the name of the model.

    Raises:
        ValueError: for an unknown name or a damaged file, or as :meth:`SearchSpace.from_dict`.
    """
    if isinstance(source, SearchSpace):
        if source.model != model:
            raise ValueError(f"Expected a space for model {model!r} (got one for {source.model!r})")
        return source
    if isinstance(source, Mapping):
        return SearchSpace.from_dict(source, model)
    if str(source) in shipped_spaces():
        text = _shipped(f"{source}.toml").read_text(encoding="utf-8")
        return SearchSpace.from_dict(tomllib.loads(text), model, name=str(source))
    path = Path(source)
    if not path.is_file():
        raise ValueError(
            f"Expected `space` to be {', '.join(shipped_spaces())} or a TOML file "
            f"(got {str(source)!r})"
        )
    find_model(model)  # before the file, which has no part in this mistake
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Expected {path} to be TOML ({error})") from error
    try:
        return SearchSpace.from_dict(table, model, name=path.stem)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{path}: {error}") from error


def draw_random(
    spaces: Sequence[SearchSpace], count: int, *, seed: int = 0
) -> list[dict[str, Plain]]:
    """Random values for every entry, from the spaces in turn; equal seeds give equal values."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    search = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    return [spaces[i % len(spaces)].suggest(search.ask()) for i in range(count)]


def shipped_spaces() -> list[str]:
    """The names of the spaces that come with the package."""
    return sorted(p.name.removesuffix(".toml") for p in _shipped().iterdir())


def _shipped(*parts: str) -> Traversable:
    return resources.files("longnn.tuning").joinpath("spaces", *parts)


def _tables(table: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """The tables ``[models.NAME]``, checked."""
    tables = table.get("models", {})
    if not isinstance(tables, Mapping):
        raise ValueError(f"Expected tables [models.NAME] (got models = {tables!r})")
    for name, entries in tables.items():
        find_model(name)
        if not isinstance(entries, Mapping):
            raise ValueError(f"Expected a table [models.{name}] (got {entries!r})")
    return tables


def _merge(table: Mapping[str, Any], model: str) -> dict[str, object]:
    """The entries for one model: the file's common ones < the registry's < ``[models.NAME]``."""
    own = _tables(table).get(model, {})
    for key in own:
        if not _is_training(key) and key not in model_options(model):
            Config.from_dict({"model": model, key: 0})  # raises, naming the nearest
    common = {k: v for k, v in table.items() if k != "models"}
    return {**common, **find_model(model).space, **own}


def _parse(entries: Mapping[str, object]) -> dict[str, Domain | Plain]:
    return {k: parse_domain(k, v, integer=isinstance(_default(k), int)) for k, v in entries.items()}


@functools.cache
def _training_defaults() -> dict[str, Plain]:
    top = {"hidden_channels": 64, "direction": Config.direction}
    return {**top, **dataclasses.asdict(Settings())}


def _is_training(key: str) -> bool:
    return key in _training_defaults()


@functools.cache
def _all_options() -> dict[str, Plain]:
    return {k: v for name in MODELS for k, v in model_options(name).items()}


def _default(key: str) -> Plain | None:
    return {**_all_options(), **_training_defaults()}.get(key)


def _check_key(key: str, model: str) -> None:
    if key in RESERVED:
        raise ValueError(f"Expected `{key}` outside the search space: it is set for all trials")
    if not _is_training(key) and key not in _all_options():
        Config.from_dict({"model": model, key: 0})  # raises, naming the nearest


def _options(model: str, values: Mapping[str, Plain]) -> dict[str, Plain]:
    return {k: v for k, v in values.items() if k in model_options(model)}


def _check_value(model: str, values: Mapping[str, Any], key: str) -> None:
    """Raise for a value of an entry that is invalid; rates and the like are none of a model's."""
    if _is_training(key) and key != "hidden_channels":
        Config.from_dict({"model": model, **values})
    else:
        _probe(model, values)


def _probe(model: str, values: Mapping[str, Any]) -> Model:
    """A tiny model with these values: if they are invalid, it shows here and not in a trial."""
    config = Config.from_dict({"model": model, **values})
    return make_model(config, 2, 2)


def _probes(model: str, search: Mapping[str, Domain], fixed: Mapping[str, Any]) -> Iterable[Model]:
    """Tiny models, one for each set of parameters that the space allows."""
    shaping = [k for k in SHAPING if k in search]
    for values in itertools.product(*(search[k].edges() for k in shaping)):
        yield _probe(model, {**_options(model, fixed), **dict(zip(shaping, values, strict=True))})


def _idle_keys(models: list[Model]) -> set[str]:
    """Entries that change nothing, because none of the models has what they act on."""
    roles = {role for m in models for role, group in m.parameter_groups().items() if group}
    idle = {key for key in RATES if key.partition("_")[2] not in roles}
    filters = [f for m in models for f in m.filters()]
    if not any(f.kind != "fixed" for f in filters):
        idle.add("penalty")
    if not filters or not all(f.basis.is_orthonormal for f in filters):
        idle.add("degree_penalty")
    if "factors" not in roles:
        idle.add("gamma")
    return idle


_FIELDS = ("choices", "low", "high", "log", "step", "or_zero")


def parse_domain(key: str, value: Any, *, integer: bool) -> Domain | Plain:
    """The domain that a TOML value describes, or the value itself, which is then fixed.

    Args:
        key: named in errors.
        value: a plain value, or a table with ``choices`` or with ``low`` and ``high``.
        integer: whether the entry takes integers only.

    Raises:
        ValueError: for a table that describes neither choices nor a range.
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
