"""A search space as data: TOML in, what a search may choose for one model out.

An entry is a training setting or an option of the model (:class:`~longnn.config.Config`). It is
fixed (``epochs = 1000``), one of several choices (``a = { choices = [0, 1] }``), or in a range
(``dropout = { low = 0, high = 0.8, step = 0.1 }``, with ``log = true`` for a logarithmic scale and
``or_zero = true`` to allow exactly 0 as well). Entries that the model does not have are dropped,
so one file serves all models.

Entries for one model alone come from two places. The registry has what is true of a model in every
space (:attr:`~longnn.registry.ModelEntry.space`); it overrides the common entries of the file. The
table ``[models.NAME]`` of the file has what is true in this space; it overrides both.

A search may also start from a given configuration: then its space is the one around that.
"""

import dataclasses
import functools
import itertools
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Self, cast

from optuna.trial import BaseTrial

from longnn._base.schema import from_plain, stored, to_plain
from longnn.config import Config, Settings
from longnn.config._config import RATES
from longnn.nn import Model
from longnn.records import RunRecord
from longnn.registry import MODELS, find_model, model_options
from longnn.training import make_model

#: What a configuration has and a space may not: all trials of a search share it.
RESERVED = (
    *("preset", "time_limit", "model", "split", "seed", "repeat", "scale", "device", "precision"),
)
#: Options that decide which parameters a model has.
SHAPING = ("coefficients", "learn_basis", "orthonormal")
_SPACES = resources.files("longnn.tuning").joinpath("spaces")
#: A value of a configuration, as TOML and JSON have it.
Plain = bool | int | float | str


@dataclasses.dataclass(frozen=True)
class Choices:
    """One of several values. Three or more rising numbers are searched as an ordered scale."""

    values: tuple[Plain, ...] = stored(key="choices")

    @property
    def ordered(self) -> bool:
        """Whether the sampler is told that one choice lies between two others."""
        return len(self.values) > 2 and self._rise

    @property
    def _rise(self) -> bool:
        numbers = all(map(_is_number, self.values))
        return numbers and list(self.values) == sorted(self.values, key=float)

    def suggest(self, trial: BaseTrial, key: str) -> Plain:
        """A value for one trial."""
        if self.ordered:
            return self.values[trial.suggest_int(key, 0, len(self.values) - 1)]
        return cast(Plain, trial.suggest_categorical(key, self.values))  # None is no choice

    def widen(self, value: Plain) -> "Choices":
        """The domain with one more value, among rising numbers in its place."""
        if value in self.values:
            return self
        values = (*self.values, value)
        rising = self._rise and _is_number(value)
        return Choices(tuple(sorted(values, key=float)) if rising else values)

    def encode(self, key: str, value: Plain) -> dict[str, Plain]:
        """Optuna's parameters for which :meth:`suggest` gives this value."""
        return {key: self.values.index(value) if self.ordered else value}


@dataclasses.dataclass(frozen=True)
class Range:
    """A number from ``low`` to ``high``, both included."""

    low: int | float
    high: int | float
    log: bool = False  # drawn uniformly on a logarithmic scale
    step: int | float | None = None  # only low, low + step, low + 2 step, ...
    integer: bool = stored(file=False, default=False)
    or_zero: bool = False  # or exactly 0

    def suggest(self, trial: BaseTrial, key: str) -> Plain:
        """A value for one trial."""
        if self.or_zero and not trial.suggest_categorical(f"{key}?", [False, True]):
            return 0 if self.integer else 0.0
        if self.integer:
            step = 1 if self.step is None else int(self.step)
            return trial.suggest_int(key, int(self.low), int(self.high), step=step, log=self.log)
        value = trial.suggest_float(key, self.low, self.high, step=self.step, log=self.log)
        return float(f"{value:.12g}") if self.step else value  # 0.3, not 0.30000000000000004

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


Domain = Choices | Range


@dataclasses.dataclass(frozen=True)
class SearchSpace:
    """What a search may choose for one model. Make one with :func:`load_space`.

    >>> table = {"degree": 4, "a": {"choices": [0.5, 1.0, 1.5]}, "heads": 2}
    >>> space = SearchSpace.from_dict(table, "lon")
    >>> space.fixed, space.dropped
    ({'degree': 4}, ('heads',))
    """

    model: str
    name: str
    search: Mapping[str, Domain]
    fixed: Mapping[str, Plain]
    dropped: tuple[str, ...] = ()  # entries of the file that the model does not have
    source: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)  # of the file
    member: str = ""  # of a preset, around which this is; it is among the values

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], model: str, *, name: str = "custom") -> Self:
        """From the table of a TOML file, checked and restricted to what the model has.

        Raises:
            ValueError: for an entry that no model has (naming the nearest valid one), a value that
                the model does not accept, or a space with nothing to search.
        """
        entries = _entries(table, model)
        owned = {k: v for k, v in entries.items() if k in _training() or k in model_options(model)}
        search = {k: v for k, v in owned.items() if isinstance(v, Domain)}
        fixed = {k: v for k, v in owned.items() if not isinstance(v, Domain)}
        for key in ("self_loops", "direction"):
            if key in search:
                raise ValueError(f"Expected one value for `{key}`: all trials share the graph")
        for key, domain in owned.items():
            for value in _edges(domain):
                config = Config.from_dict({"model": model, **fixed, key: value})
                if key == "hidden_channels" or key in model_options(model):
                    make_model(config, 2, 2)  # an invalid option shows here and not in a trial
        shaping = [k for k in SHAPING if k in search]
        shapes = itertools.product(*(_edges(search[k]) for k in shaping))
        tables = [{**fixed, **dict(zip(shaping, values, strict=True))} for values in shapes]
        configs = [Config.from_dict({"model": model, **each}) for each in tables]
        idle = _idle_keys([make_model(config, 2, 2) for config in configs])
        space = cls(
            model,
            name,
            {k: v for k, v in search.items() if k not in idle},
            {k: v for k, v in fixed.items() if k not in idle},
            tuple(k for k in entries if k not in owned or k in idle),
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
        tables = _tables(self.source)
        entries = {**tables.get(self.model, {}), **values}
        table = {**self.source, "models": {**tables, self.model: entries}}
        return self.from_dict(table, self.model, name=self.name)

    def suggest(self, trial: BaseTrial) -> dict[str, Plain]:
        """A value for every entry; the searched ones are drawn by an Optuna trial."""
        drawn = {key: of.suggest(trial, self._named(key)) for key, of in self.search.items()}
        return {**({"member": self.member} if self.member else {}), **self.fixed, **drawn}

    def _named(self, key: str) -> str:
        """An entry as Optuna knows it: members have the same ones."""
        return f"{self.member}: {key}" if self.member else key

    def values_of(self, config: Config) -> dict[str, Plain]:
        """What a configuration has for the searched entries, and the member that it is of."""
        flat = {**config.to_dict(), "direction": config.direction}
        given = {key: flat[key] for key in self.search}
        return {"member": self.member, **given} if self.member else given

    def widen(self, values: Mapping[str, Any]) -> Self:
        """A copy whose searched entries have these values among theirs."""
        search = {key: domain.widen(values[key]) for key, domain in self.search.items()}
        return dataclasses.replace(self, search=search)

    def highest(self, key: str, least: Any) -> Any:
        """The largest number that an entry may be, or ``least`` if that is larger."""
        domain = self.search.get(key)
        ends = (
            domain.values
            if isinstance(domain, Choices)
            else ()
            if domain is None
            else (domain.high,)
        )
        return max([least, *ends])

    def encode(self, values: Mapping[str, Plain]) -> dict[str, Plain]:
        """Optuna's parameters for which :meth:`suggest` gives these values."""
        encoded = (of.encode(self._named(key), values[key]) for key, of in self.search.items())
        return {key: value for entries in encoded for key, value in entries.items()}

    def config(self, values: Mapping[str, Plain], **others: Plain) -> Config:
        """The configuration with these values; ``others`` are those that no space has."""
        return Config.from_dict({"model": self.model, **values, **others})

    @property
    def conditional(self) -> bool:
        """Whether some entries are drawn in some trials only."""
        return any(isinstance(d, Range) and d.or_zero for d in self.search.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the record; equal spaces give equal data."""
        search = {key: to_plain(domain) for key, domain in self.search.items()}
        return {
            "name": self.name,
            "model": self.model,
            "search": {
                k: {n: v for n, v in d.items() if v is not False} for k, d in search.items()
            },
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
        table = tomllib.loads((_SPACES / f"{source}.toml").read_text(encoding="utf-8"))
        return SearchSpace.from_dict(table, model, name=str(source))
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


#: Values along which a configuration is varied, step by step.
STEPS: dict[str, tuple[float, ...]] = {
    "lr_transform": (0.002, 0.005, 0.01, 0.02, 0.05, 0.1),
    "lr_coefficients": (1e-6, 1e-5, 1e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05),
    "lr_factors": (5e-4, 5e-3, 0.01, 0.02, 0.05),
    "lr_basis": (1e-6, 1e-5, 1e-4, 5e-4, 2e-3, 5e-3, 0.01, 0.02, 0.05),
    "wd_transform": (0.0, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3),
    "wd_coefficients": (0.0, 5e-5, 5e-4, 5e-3),
    "penalty": (0.0, 1e-5, 1e-4, 1e-3),
    "input_dropout": tuple(i / 10 for i in range(10)),
    "dropout": tuple(i / 10 for i in range(10)),
    "filter_dropout": tuple(i / 10 for i in range(10)),
    "a": (-0.75, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0),
    "b": (-0.75, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0),
    "gamma": (0.5, 0.75, 1.0, 1.25, 1.5),
    "restart": (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0),
    "hidden_channels": (32, 64, 128, 256, 512),
    "degree": (5, 10, 15),
    "leaves": (4, 8, 16, 32, 64),
    "share": (0.2, 0.4, 0.6, 0.8, 1.0),
}
#: Settings that only one way of making coefficients has.
ONLY = {"gamma": "pcd", "lr_factors": "pcd", "restart": "free"}
#: What belongs to the form of a model, which the space around a configuration does not change.
FORM = ("penalty", "hidden_channels", "degree")
#: A rate of 0 says that something is not learned, a restart of 0 that there is none.
MEANT = ("lr_transform", "lr_coefficients", "lr_factors", "lr_basis", "restart")
#: Steps to either side.
REACH = 2


def space_around(config: Config) -> SearchSpace:
    """The space around a configuration: its form, with nearby rates, decays, dropouts, a and b.

    Each searched value is the configuration's own, or one of the two nearest of :data:`STEPS` below
    it and above it.
    """
    flat = config.to_dict()
    keys = {*_training(), *model_options(config.model)}
    table: dict[str, Any] = {key: value for key, value in flat.items() if key in keys}
    kind = flat.get("coefficients")
    for key, steps in STEPS.items():
        if key not in table or key in FORM or (key in MEANT and flat[key] == 0):
            continue
        if ONLY.get(key, kind) == kind:
            below = [step for step in steps if step < flat[key]][-REACH:]
            above = [step for step in steps if step > flat[key]][:REACH]
            table[key] = {"choices": [*below, flat[key], *above]}
    return SearchSpace.from_dict({"models": {config.model: table}}, config.model, name="around")


def read_config(path: str | Path) -> Config:
    """The configuration of a run by its folder, or a TOML file with a flat configuration.

    Raises:
        ValueError: if there is none, naming what was expected.
    """
    path = Path(path)
    file = path / "config.toml" if path.is_dir() else path
    if not file.is_file():
        raise ValueError(
            f"Expected the folder of a run with config.toml, or a TOML file (got {str(path)!r})"
        )
    config = Config.from_toml(file)
    if config.preset == "fast" or not path.is_dir():
        return config.replace(preset="fast")
    record = RunRecord.read(path)  # of an ensemble: around the member with the largest weight
    leader = max(record.members, key=lambda member: member.weight)
    return Config.from_dict(record.portfolio[leader.name])


def shipped_spaces() -> list[str]:
    """The names of the spaces that come with the package."""
    return sorted(p.name.removesuffix(".toml") for p in _SPACES.iterdir())


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


def _entries(table: Mapping[str, Any], model: str) -> dict[str, Domain | Plain]:
    """The entries for one model: the file's common ones < the registry's < ``[models.NAME]``."""
    common = {k: v for k, v in table.items() if k != "models"}
    registered, special = find_model(model).space, _tables(table).get(model, {})
    options = {k: v for name in MODELS for k, v in model_options(name).items()}
    for key in (*common, *special):
        if key in RESERVED:
            raise ValueError(f"Expected `{key}` outside the search space: it is set for all trials")
        if key not in {**_training(), **(model_options(model) if key in special else options)}:
            Config.from_dict({"model": model, key: 0})  # raises, naming the nearest
    defaults = {**options, **_training()}
    return {
        key: parse_domain(key, value, integer=isinstance(defaults.get(key), int))
        for key, value in {**common, **registered, **special}.items()
    }


@functools.cache
def _training() -> dict[str, Plain]:
    """Entries that every model has, with their defaults."""
    top = {"hidden_channels": 64, "direction": Config.direction}
    return {**top, **dataclasses.asdict(Settings())}


def _edges(domain: Domain | Plain) -> tuple[Plain, ...]:
    """The values to check before a search."""
    if isinstance(domain, Range):
        return (domain.low, domain.high, *((0,) if domain.or_zero else ()))
    return domain.values if isinstance(domain, Choices) else (domain,)


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


def parse_domain(key: str, value: Any, *, integer: bool) -> Domain | Plain:
    """The domain that a TOML value describes, or the value itself, which is then fixed.

    Args:
        key: named in errors.
        value: a plain value, or a table with ``choices`` or with ``low`` and ``high``.
        integer: whether the entry takes integers only.
    """
    if isinstance(value, list):
        raise ValueError(f"Expected `{key} = {{ choices = {value!r} }}` (got a list)")
    if not isinstance(value, Mapping):
        plain: Plain = value
        return plain
    if "choices" in value:
        choices = from_plain(Choices, value, key)
        if not choices.values or len(set(choices.values)) < len(choices.values):
            raise ValueError(f"Expected different `choices` of `{key}` (got {value['choices']!r})")
        return choices
    domain = from_plain(Range, value, key)
    low, high, step = domain.low, domain.high, domain.step
    if not low < high:
        raise ValueError(f"Expected `low` < `high` in `{key}` (got {low!r}, {high!r})")
    if domain.log and (low <= 0 or step is not None):
        raise ValueError(
            f"Expected `low` > 0 and no `step` with `log` in `{key}`; to include zero, add "
            f"`or_zero = true` (got {dict(value)!r})"
        )
    if step is not None and not 0 < step <= high - low:
        raise ValueError(f"Expected 0 < `step` <= high - low in `{key}` (got {step!r})")
    if step is not None and abs((high - low) / step - round((high - low) / step)) > 1e-9:
        raise ValueError(f"Expected `high` a whole number of steps above `low` in `{key}`")
    whole = all(number is None or isinstance(number, int) for number in (low, high, step))
    return dataclasses.replace(domain, integer=integer and whole)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
