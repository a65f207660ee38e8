"""The configuration of a run: one flat table of keys, from TOML, the command line or Python.

Keys are those of :class:`~longnn.training.Settings`, the options of the chosen model, and the few
below. An unknown key is an error that names the nearest valid one.
"""

import dataclasses
import difflib
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Self

from longnn.files import write_text
from longnn.nn import MODELS, model_options
from longnn.training import Settings

#: Options that a model is given where nothing is said. They and the rates of Settings are the
#: choice of ``longnn paper defaults``: least regret in validation over ten graphs.
RECOMMENDED: dict[str, dict[str, Any]] = {
    "lon": {
        "placement": "output",
        "weight": "probability",
        "coefficients": "free",
        "shared": True,
        "restart": 1.0,
        "a": 0.5,
        "b": 1.0,
        "input_dropout": 0.5,
        "dropout": 0.2,
        "filter_dropout": 0.4,
    },
}

#: LON-GNN as published: a filter for each class channel, PCD, the textbook's weight function.
PAPER_FORM: dict[str, Any] = {
    "placement": "output",
    "weight": "paper",
    "coefficients": "pcd",
    "shared": False,
    "restart": 0.0,
    "self_loops": "keep",
}

#: The other way round: an MLP of filtered features, its hidden units normalised.
FEATURES_FORM: dict[str, Any] = {"placement": "features", "normalize": True}

SCALINGS = ("auto", "none", "standard", "row")


@dataclasses.dataclass(frozen=True)
class Config:
    """What to train and how.

    Args:
        model: a short name, see ``longnn models``.
        hidden_channels: hidden units.
        options: of the model (degree, a, b, dropouts, ...), completed by :data:`RECOMMENDED` and
            the model's own defaults.
        settings: of training (learning rates, patience, ...).
        split: the protocol, or None for the dataset's own.
        seed: of the first repeat; weights, dropout and split all follow from it.
        repeat: how many repeats, with seeds seed, seed + 1, ...
        scale: features ``"standard"`` (mean 0, deviation 1), ``"row"`` (rows sum to one),
            ``"none"``, or ``"auto"``: standard for a user's own columns, none for the rest.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"``.
        precision: ``"float32"`` or ``"float64"``.
    """

    model: str = "lon"
    hidden_channels: int = 64
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    settings: Settings = dataclasses.field(default_factory=Settings)
    split: str | None = None
    seed: int = 0
    repeat: int = 1
    scale: str = "auto"
    device: str = "auto"
    precision: str = "float32"

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise ValueError(
                f"Expected `model` to be one of {', '.join(sorted(MODELS))} (got {self.model!r})"
                + _suggest(self.model, MODELS)
            )
        known = model_options(self.model)
        recommended = RECOMMENDED.get(self.model, {})
        object.__setattr__(self, "options", {**known, **recommended, **self.options})
        for key, value in self.options.items():
            if key not in known:
                raise ValueError(
                    f"Unknown option `{key}` of model {self.model!r}"
                    + _suggest(key, [*known, *_flat_keys()])
                )
            _check_type(key, value, known[key])
        _check_integer("hidden_channels", self.hidden_channels, least=1)
        _check_integer("repeat", self.repeat, least=1)
        _check_integer("seed", self.seed, least=0)
        for key, choices in (("scale", SCALINGS), ("precision", ("float32", "float64"))):
            if getattr(self, key) not in choices:
                raise ValueError(
                    f"Expected `{key}` to be one of {', '.join(choices)} "
                    f"(got {getattr(self, key)!r})"
                )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From a flat table of keys.

        >>> Config.from_dict({"model": "lon", "degree": 5, "lr_basis": 0.02}).options["degree"]
        5
        """
        own = {f.name for f in dataclasses.fields(cls)} - {"options", "settings"}
        training = {f.name: f for f in dataclasses.fields(Settings)}
        top: dict[str, Any] = {}
        settings: dict[str, Any] = {}
        options: dict[str, Any] = {}
        for key, value in values.items():
            if key in own:
                top[key] = value
            elif key in training:
                settings[key] = _check_type(key, value, training[key].default)
            else:
                options[key] = value
        return cls(**top, settings=Settings(**settings), options=options)

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """From a TOML file of flat keys."""
        return cls.from_dict(read_toml(path))

    def to_dict(self) -> dict[str, Any]:
        """The flat table: every key, so that it means the same when defaults have changed."""
        own = {
            f.name: getattr(self, f.name)
            for f in dataclasses.fields(self)
            if f.name not in ("options", "settings")
        }
        return {**own, **self.options, **dataclasses.asdict(self.settings)}

    def replace(self, **values: Any) -> Self:
        """A copy with some keys changed; another model starts from its own options."""
        kept = self.to_dict()
        if values.get("model", self.model) != self.model:
            kept = {k: v for k, v in kept.items() if k not in self.options}
        return type(self).from_dict({**kept, **values})

    def to_toml(self, *, leave_out: Collection[str] = ()) -> list[str]:
        """The lines of the flat table as TOML."""
        table = {k: v for k, v in self.to_dict().items() if v is not None and k not in leave_out}
        return [f"{key} = {_toml(value)}" for key, value in table.items()]

    def write_toml(self, path: Path) -> None:
        """Write the flat table; :meth:`from_toml` reads it back."""
        write_text(path, "\n".join(self.to_toml()) + "\n")


def read_toml(path: str | Path) -> dict[str, Any]:
    """A TOML file as a flat table, or one clear error."""
    try:
        with Path(path).open("rb") as file:
            table = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"Expected {path} to be TOML ({error})") from error
    nested = [key for key, value in table.items() if isinstance(value, dict | list)]
    if nested:
        raise ValueError(f"Expected flat keys in {path} (got a table or list at {nested[0]!r})")
    return table


def parse_assignment(text: str) -> tuple[str, Any]:
    """``key=value`` from the command line; the value as TOML where it is, else as text.

    >>> parse_assignment("degree=5"), parse_assignment("weight=paper")
    (('degree', 5), ('weight', 'paper'))
    """
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise ValueError(f"Expected key=value (got {text!r})")
    try:
        parsed = tomllib.loads(f"value = {value.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()
    return key.strip(), parsed


def _flat_keys() -> list[str]:
    own = [f.name for f in dataclasses.fields(Config) if f.name not in ("options", "settings")]
    return own + [f.name for f in dataclasses.fields(Settings)]


def _suggest(word: str, choices: Any) -> str:
    near = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.5)
    return f"; did you mean `{near[0]}`?" if near else ""


def _check_integer(key: str, value: Any, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"Expected `{key}` to be an integer >= {least} (got {value!r})")


def _check_type(key: str, value: Any, default: Any) -> Any:
    """The value in the type of its default (an int is a float), or an error."""
    if isinstance(default, bool):
        fits = isinstance(value, bool)
        kind = "true or false"
    elif isinstance(default, int):
        fits = isinstance(value, int) and not isinstance(value, bool)
        kind = "an integer"
    elif isinstance(default, float):
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        kind = "a number"
        value = float(value) if fits else value
    else:
        fits = isinstance(value, str)
        kind = "a word"
    if not fits:
        raise ValueError(f"Expected `{key}` to be {kind} (got {value!r})")
    return value


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value)
