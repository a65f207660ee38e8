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
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Self

import optuna
from optuna.trial import BaseTrial

from longnn.config import ARCS, ROLES, Config, Settings
from longnn.nn import Model
from longnn.registry import MODELS, find_model, model_options
from longnn.training import make_model
from longnn.tuning._domains import Domain, Plain, Range, parse_domain

#: What a configuration has and a space may not: all trials of a search share it.
RESERVED = (
    *("preset", "time_limit", "model", "split", "seed", "repeat", "scale", "device", "precision"),
)
#: Options that decide which parameters a model has.
SHAPING = ("coefficients", "learn_basis", "orthonormal")


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

    >>> table = {"degree": 4, "a": {"choices": [0.5, 1.0, 1.5]}, "reversed_sign": True}
    >>> space = SearchSpace.from_dict(table, "lon")
    >>> space.fixed, space.dropped
    ({'degree': 4}, ('reversed_sign',))
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
        for key in ("self_loops", *ARCS):
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
        """A copy in which some entries have one value.

        >>> load_space("paper", "sgc").fix({"degree": 3}).fixed["degree"]
        3
        """
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
        """A copy whose searched entries have these values among theirs.

        >>> load_space({"a": {"choices": [0.0, 1.0]}}).widen({"a": 0.5}).search["a"].values
        (0.0, 0.5, 1.0)
        """
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

    >>> sorted(load_space("paper", "mlp").search)
    ['dropout', 'input_dropout', 'lr_transform', 'wd_transform']
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
    """Random values for every entry, from the spaces in turn; equal seeds give equal values.

    >>> (values,) = draw_random([load_space({"a": {"choices": [0.5]}, "degree": 3})], 1)
    >>> values
    {'degree': 3, 'a': 0.5}
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    search = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    return [spaces[i % len(spaces)].suggest(search.ask()) for i in range(count)]


def shipped_spaces() -> list[str]:
    """The names of the spaces that come with the package.

    >>> shipped_spaces()
    ['compact', 'default', 'paper', 'wide']
    """
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
    arcs = {key: getattr(Config, key) for key in ARCS}
    return {"hidden_channels": 64, **arcs, **dataclasses.asdict(Settings())}


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
    idle = {f"{kind}_{role}" for kind in ("lr", "wd") for role in ROLES if role not in roles}
    filters = [f for m in models for f in m.filters()]
    if not any(f.kind != "fixed" for f in filters):
        idle.add("penalty")
    if not filters or not all(f.basis.is_orthonormal for f in filters):
        idle.add("degree_penalty")
    if "factors" not in roles:
        idle.add("gamma")
    return idle
