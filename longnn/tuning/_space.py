"""A search space as data: TOML in, the keys one model can be tuned over out.

A key is one of :class:`~longnn.config.Config`: a training setting or an option of the model. Its
value is fixed (``epochs = 1000``), one of some (``a = { choices = [0, 1] }``), or in a range
(``dropout = { low = 0, high = 0.8, step = 0.1 }``, with ``log = true`` for a log-uniform one and
``or_zero = true`` for one that may also be exactly 0). Keys the model has not are left out, so
that one file serves all models; ``[models.NAME]`` overrides keys for one of them.
"""

import dataclasses
import functools
import itertools
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Self

import optuna
from optuna.trial import BaseTrial

from longnn.config import ROLES, Config, Settings
from longnn.nn import Model
from longnn.registry import MODELS, model_options
from longnn.training import make_model
from longnn.tuning._entries import Entry, Range, parse_entry

#: Keys in which the members of one population may differ; all others decide shapes or the loop.
VARYING = frozenset(
    [f"{kind}_{role}" for kind in ("lr", "wd") for role in ROLES]
    + ["penalty", "degree_penalty", "input_dropout", "dropout", "filter_dropout"]
    + ["a", "b", "gamma", "restart"]
)
#: Keys of a configuration that are arguments of a search, not part of its space.
RESERVED = ("model", "split", "seed", "repeat", "scale", "device", "precision")
#: Keys that decide which parameters a model has.
SHAPING = ("coefficients", "learn_basis", "orthonormal")


@dataclasses.dataclass(frozen=True)
class SearchSpace:
    """What a search may choose for one model. Build with :meth:`from_dict` or :func:`load_space`.

    Args:
        model: its short name.
        name: of the space, for the record.
        search: the keys to search.
        fixed: the keys that are the same in every trial.
        dropped: keys of the file that the model has not.
        source: the table it was made from.

    >>> table = {"degree": 4, "a": {"choices": [0.5, 1.0, 1.5]}, "published_sign": True}
    >>> space = SearchSpace.from_dict(table, "lon")
    >>> space.fixed, space.dropped
    ({'degree': 4}, ('published_sign',))
    """

    model: str
    name: str
    search: Mapping[str, Entry]
    fixed: Mapping[str, Any]
    dropped: tuple[str, ...] = ()
    source: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], model: str, *, name: str = "custom") -> Self:
        """From the table of a TOML file, checked, and restricted to what the model has.

        Raises:
            ValueError: for a key that no model has (naming the nearest valid one), a value that
                the model does not take, or a space with nothing to search.
        """
        Config(model=model)
        entries = _merge(table, model)
        for key in entries:
            _check_key(key, model)
        own = {k: v for k, v in entries.items() if k in model_options(model) or _is_training(k)}
        search = {k: v for k, v in own.items() if isinstance(v, Entry)}
        if "self_loops" in search:
            raise ValueError("Expected one value for `self_loops`: all trials share the graph")
        fixed = {k: v for k, v in own.items() if not isinstance(v, Entry)}
        for key, entry in own.items():
            for value in entry.edges() if isinstance(entry, Entry) else (entry,):
                _probe(model, {**_options(model, fixed), key: value})
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
            raise ValueError(f"Expected a key of model {model!r} to search in {name} (got none)")
        return space

    def fix(self, values: Mapping[str, Any]) -> Self:
        """A copy with some keys fixed, added or not searched any more."""
        for key, value in values.items():
            if isinstance(value, Mapping | list):
                raise ValueError(f"Expected a plain value for `{key}` (got {value!r})")
            _check_key(key, self.model)
            Config.from_dict({"model": self.model, key: value})
        others = {k: v for k, v in self.source.get("models", {}).items() if k != self.model}
        table = {**_merge(self.source, self.model, parse=False), **values}
        return self.from_dict({**table, "models": others}, self.model, name=self.name)

    def suggest(self, trial: BaseTrial) -> dict[str, Any]:
        """Values for every key, the searched ones from an Optuna trial."""
        chosen = {key: entry.suggest(trial, key) for key, entry in self.search.items()}
        return {**self.fixed, **chosen}

    def config(self, values: Mapping[str, Any], **keys: Any) -> Config:
        """The configuration of some values; ``keys`` are those that are not of the space."""
        return Config.from_dict({"model": self.model, **values, **keys})

    @property
    def conditional(self) -> bool:
        """Whether some keys are drawn in some trials only."""
        return any(isinstance(entry, Range) and entry.or_zero for entry in self.search.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the record; equal spaces give equal data."""
        return {
            "name": self.name,
            "model": self.model,
            "search": {key: entry.to_dict() for key, entry in self.search.items()},
            "fixed": dict(self.fixed),
            "dropped": list(self.dropped),
        }


def load_space(
    source: "SearchSpace | Mapping[str, Any] | str | Path", model: str = "lon"
) -> SearchSpace:
    """A space by name (``"published"``, ``"wide"``), from a TOML file, or from a table.

    >>> sorted(load_space("published", "mlp").search)
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
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"Expected {path} to be TOML ({error})") from error
    return SearchSpace.from_dict(table, model, name=path.stem)


def draw_random(
    spaces: Sequence[SearchSpace], count: int, *, seed: int = 0
) -> list[dict[str, Any]]:
    """Random values of the searched keys, from the spaces in turn; the same for the same seed."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    return [spaces[i % len(spaces)].suggest(study.ask()) for i in range(count)]


def shipped_spaces() -> list[str]:
    """The names of the spaces that come with the package."""
    return sorted(p.name.removesuffix(".toml") for p in _shipped().iterdir())


def _shipped(*parts: str) -> Any:
    return resources.files("longnn.tuning").joinpath("spaces", *parts)


def architecture(config: Config) -> tuple[tuple[str, Any], ...]:
    """What members of one population must agree on; trials with the same are trained together.

    The norm in a basis that is neither orthonormal nor learned depends on its a and b, which the
    members of a population share: with a norm penalty those count as architecture too.
    """
    keys = config.to_dict()
    varying = VARYING
    learned = keys.get("learn_basis", False) or keys.get("orthonormal", False)
    if config.settings.penalty > 0 and not learned:
        varying = VARYING - {"a", "b"}
    return tuple(sorted((k, v) for k, v in keys.items() if k not in varying and k not in RESERVED))


def _merge(table: Mapping[str, Any], model: str, *, parse: bool = True) -> dict[str, Any]:
    """The keys for one model, its own overrides over the common ones."""
    overrides = table.get("models", {})
    if not isinstance(overrides, Mapping):
        raise ValueError(f"Expected tables [models.NAME] (got models = {overrides!r})")
    for name, keys in overrides.items():
        Config(model=name)
        if not isinstance(keys, Mapping):
            raise ValueError(f"Expected a table [models.{name}] (got {keys!r})")
    for key in overrides.get(model, {}):
        if not _is_training(key) and key not in model_options(model):
            Config.from_dict({"model": model, key: 0})  # raises, naming the nearest
    merged = {k: v for k, v in table.items() if k != "models"} | dict(overrides.get(model, {}))
    if not parse:
        return merged
    whole = {k for k in merged if isinstance(_default(k), int)}
    return {k: parse_entry(k, v, integer=k in whole) for k, v in merged.items()}


@functools.cache
def _training_defaults() -> dict[str, Any]:
    of_settings = {f.name: f.default for f in dataclasses.fields(Settings)}
    return {"hidden_channels": 64, **of_settings}


def _is_training(key: str) -> bool:
    return key in _training_defaults()


@functools.cache
def _all_options() -> dict[str, Any]:
    return {k: v for name in MODELS for k, v in model_options(name).items()}


def _default(key: str) -> Any:
    return {**_all_options(), **_training_defaults()}.get(key)


def _check_key(key: str, model: str) -> None:
    if key in RESERVED:
        raise ValueError(f"Expected `{key}` outside the search space: it is set for all trials")
    if not _is_training(key) and key not in _all_options():
        Config.from_dict({"model": model, key: 0})  # raises, naming the nearest


def _options(model: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in values.items() if k in model_options(model)}


def _probe(model: str, values: Mapping[str, Any]) -> Model:
    """A tiny model with some values: whatever is wrong with them shows here, not in a trial."""
    config = Config.from_dict({"model": model, **values})
    return make_model(config, 2, 2, seed=0)


def _probes(model: str, search: Mapping[str, Entry], fixed: Mapping[str, Any]) -> Iterable[Model]:
    """Tiny models over every way the space can shape their parameters."""
    shaping = [k for k in SHAPING if k in search]
    for values in itertools.product(*(search[k].edges() for k in shaping)):
        yield _probe(model, {**_options(model, fixed), **dict(zip(shaping, values, strict=True))})


def _idle_keys(models: list[Model]) -> set[str]:
    """Keys that change nothing, because no such model has what they act on."""
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
