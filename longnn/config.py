"""The configuration of a run: one flat table, from TOML, the command line or Python.

It is the one source of defaults: :class:`Settings` says how a model is trained, the options of a
model are those of its class (:mod:`longnn.registry`), and :class:`Config` joins them with the
split, the seed and the device. The command line, the estimator and the search fill in from here.
An unknown name is an error that names the nearest valid one.
"""

import dataclasses
import json
import math
import reprlib
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from longnn._base.files import write_text
from longnn._base.suggestions import did_you_mean
from longnn.registry import MODELS, OPTIONS, find_model, model_options

#: The roles of parameters, each with a learning rate and a weight decay of its own.
ROLES = ("transform", "coefficients", "factors", "basis")
SCALINGS = ("auto", "none", "columns", "standard", "row")
DIRECTIONS = ("auto", "cover", "magnetic", "none")
PRECISIONS = ("float32", "float64")
#: What is said about arcs.
ARCS = ("direction", "phase", "out_exponent", "in_exponent")
#: What is left out of a table where it is not set: of arcs, and of training on rows.
RARE = (*ARCS, "batch_rows")
#: One model, a portfolio of about eight, or a larger one.
PRESETS = ("fast", "default", "best")
#: What an epoch can be judged by, besides its loss; the last two for regression.
METRICS = (
    "accuracy",
    "balanced_accuracy",
    "macro_f1",
    "roc_auc",
    "average_precision",
    "r2",
    "mae",
)


def _described(default: Any, meaning: str, choices: tuple[str, ...] = ()) -> Any:
    """A field with what ``longnn models --settings`` says about it."""
    return dataclasses.field(default=default, metadata={"meaning": meaning, "choices": choices})


@dataclasses.dataclass(frozen=True)
class Settings:
    """How one model is trained; each field says what it means.

    >>> Settings(epochs=100).patience
    200
    """

    epochs: int = _described(1000, "largest number of epochs")
    patience: int = _described(200, "stop after this many epochs without improvement, see monitor")
    monitor: str = _described(
        "score",
        "what improvement on the validation nodes means: loss, accuracy, balanced_accuracy, "
        "macro_f1, roc_auc, average_precision, r2, mae, or score, the headline of the data",
        ("score", "loss", *METRICS),
    )
    class_weight: str = _described(
        "none",
        "weight of classes in the loss: none, balanced, or a table such as fraud=5,other=1",
    )
    lr_transform: float = _described(0.05, "learning rate of the feature transform")
    lr_coefficients: float = _described(0.002, "learning rate of the filter's coefficients")
    lr_factors: float = _described(0.05, "learning rate of the factors of PCD")
    lr_basis: float = _described(0.002, "learning rate of a and b")
    wd_transform: float = _described(5e-5, "L2 weight decay of the feature transform")
    wd_coefficients: float = _described(0.0, "L2 weight decay of the filter's coefficients")
    wd_factors: float = _described(0.0, "L2 weight decay of the factors of PCD")
    wd_basis: float = _described(0.0, "L2 weight decay of a and b")
    batch_rows: int = _described(
        4096, "rows of a step where a graph is too large for memory and trained on rows"
    )
    penalty: float = _described(0.0, "weight of the penalty on the squared norm of the filters")
    degree_penalty: float = _described(0.0, "weight of the penalty on high degrees of the filter")

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = _check_type(field.name, getattr(self, field.name), field.default)
            object.__setattr__(self, field.name, value)
            _check_range(field.name, value)
            _check_choice(field.name, value, field.metadata["choices"])
            if field.name == "class_weight":
                parse_class_weight(value)
            if isinstance(field.default, float) and not 0 <= value < float("inf"):
                raise ValueError(f"Expected `{field.name}` >= 0 and finite (got {value!r})")

    def rates(self, kind: Literal["lr", "wd"]) -> dict[str, float]:
        """Learning rates or weight decays by role."""
        return {role: getattr(self, f"{kind}_{role}") for role in ROLES}


@dataclasses.dataclass(frozen=True)
class Config:
    """What to train and how.

    ``options`` are those of the model (degree, a, b, dropouts, ...), completed by its defaults;
    ``settings`` are those of training. Every other field says what it means.

    >>> config = Config(options={"degree": 4})
    >>> config.options["degree"], config.settings.patience
    (4, 200)
    """

    preset: str = _described(
        "fast",
        "how much to train: fast (one model), default (a portfolio of about eight, joined on the "
        "validation nodes), best (a larger one); fast where an option of a model is set",
        PRESETS,
    )
    model: str = _described("lon", "name of the model, see `longnn models`")
    hidden_channels: int = _described(64, "hidden units")
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    settings: Settings = dataclasses.field(default_factory=lambda: _USUAL)
    split: str | None = _described(
        None,
        "split protocol: published, stratified, geom-gcn, fixed or own; default: the dataset's",
    )
    seed: int = _described(0, "seed of the first repeat: of its weights, dropout and split")
    repeat: int = _described(1, "number of repeats, with seeds seed, seed + 1, ...")
    scale: str = _described(
        "auto",
        "scaling of features: none; standard (mean 0, deviation 1); columns (the same, but sparse "
        "columns to at most 1); row (rows sum to 1); auto (none for named data, columns for yours)",
        SCALINGS,
    )
    device: str = _described("auto", "cpu, cuda, or auto: the GPU if there is one")
    precision: str = _described("float32", "type of all numbers in training", PRECISIONS)
    calibrate: bool = _described(
        True, "make probabilities honest: a temperature fitted on the validation nodes"
    )
    threshold: float = _described(
        0.0,
        "probability from which on the rarer of two classes is predicted; 0: chosen on the "
        "validation nodes if a class has over 80 %, else 0.5",
    )
    direction: str = _described(
        "auto",
        "what to make of arcs (--data directed=true): cover (each node as a source and as a "
        "target), magnetic (a phase per arc), none (edges both ways), auto (cover if kept)",
        DIRECTIONS,
    )
    phase: float = _described(
        0.25, "of direction=magnetic: turns of an arc, from 0 (undirected) to 0.5"
    )
    out_exponent: float = _described(
        0.5,
        "of direction=cover: arcs are divided by the out-degree to this power, from 0 to 1; "
        "where it or in_exponent is not 0.5, also by the largest singular value",
    )
    in_exponent: float = _described(0.5, "of direction=cover: the same of the in-degree")
    time_limit: float = _described(
        0.0, "seconds that training may take, all in all; 0: as long as it needs"
    )
    baselines: bool = _described(
        True,
        "also train models without the graph: constant, linear, and an MLP",
    )

    def __post_init__(self) -> None:
        for key, field in _TOP.items():
            value = getattr(self, key)
            if value is not None or field.default is not None:  # no split is the dataset's own
                value = _check_type(key, value, field.default)
                object.__setattr__(self, key, value)
            _check_range(key, value)
            _check_choice(key, value, field.metadata["choices"])
        if not isinstance(self.settings, Settings):
            raise ValueError(f"Expected `settings` to be Settings (got {_short(self.settings)})")
        known = find_model(self.model).options
        if self.settings is _USUAL:
            object.__setattr__(self, "settings", Settings(**_usual_settings(self.model)))
        options = {**known, **_check_table("options", self.options)}
        for key, value in options.items():
            if key not in known:
                raise ValueError(
                    f"Unknown option `{key}` of model {self.model!r}"
                    + did_you_mean(key, [*known, *_TOP, *_SETTINGS])
                )
            options[key] = _check_type(key, value, known[key])
            _check_range(key, value)
            if isinstance(known[key], float) and not math.isfinite(options[key]):
                raise ValueError(f"Expected `{key}` to be finite (got {value})")
        object.__setattr__(self, "options", options)
        if not 0 <= self.time_limit < float("inf"):
            raise ValueError(
                f"Expected `time_limit` >= 0 and finite, in seconds (got {self.time_limit:g})"
            )
        if not 0 <= self.threshold < 1:
            raise ValueError(f"Expected 0 <= `threshold` < 1 (got {self.threshold:g})")
        for key, most in (("phase", 0.5), ("out_exponent", 1), ("in_exponent", 1)):
            if not 0 <= getattr(self, key) <= most:
                raise ValueError(f"Expected 0 <= `{key}` <= {most} (got {getattr(self, key):g})")
        if self.direction == "magnetic" and self.exponents != (0.5, 0.5):
            raise ValueError(
                "Expected `out_exponent` and `in_exponent` of 0.5 for direction='magnetic' (got "
                f"{self.out_exponent:g} and {self.in_exponent:g}); others are for direction='cover'"
            )

    @property
    def exponents(self) -> tuple[float, float]:
        """Those of the out-degrees and the in-degrees in the double cover."""
        return self.out_exponent, self.in_exponent

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From a flat table.

        >>> Config.from_dict({"model": "lon", "degree": 5, "lr_basis": 0.02}).options["degree"]
        5
        """
        top: dict[str, Any] = {}
        settings: dict[str, Any] = {}
        options: dict[str, Any] = {}
        for key, value in _check_table("config", values).items():
            if key in _TOP:
                top[key] = value
            elif key in _SETTINGS:
                settings[key] = value
            else:
                options[key] = value
        usual = _usual_settings(top.get("model", "lon"))
        return cls(**top, settings=Settings(**{**usual, **settings}), options=options)

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """From a flat TOML file; an error names it."""
        table = read_toml(path)
        try:
            return cls.from_dict(table)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """The complete flat table: it means the same after defaults have changed.

        What belongs to arcs or to rows is left out where it is not set: most graphs have neither.
        """
        own = {key: getattr(self, key) for key in _TOP}
        table = {**own, **self.options, **dataclasses.asdict(self.settings)}
        for key in RARE:
            if table[key] == (_TOP.get(key) or _SETTINGS[key]).default:
                del table[key]
        return table

    def replace(self, **values: Any) -> Self:
        """A copy with some values changed; another model starts from its own options, and from its
        own settings where they were as usual."""
        kept = self.to_dict()
        other = values.get("model", self.model)
        if other != self.model:
            usual = dataclasses.asdict(Settings(**_usual_settings(self.model)))
            special = {*_usual_settings(self.model), *_usual_settings(other)}
            own = {*self.options, *(k for k in special if kept[k] == usual[k])}
            kept = {k: v for k, v in kept.items() if k not in own}
        return type(self).from_dict({**kept, **values})

    def to_toml(self, *, leave_out: Collection[str] = ()) -> list[str]:
        """The lines of the flat table as TOML."""
        table = {k: v for k, v in self.to_dict().items() if v is not None and k not in leave_out}
        return [f"{key} = {toml_value(value)}" for key, value in table.items()]

    def write_toml(self, path: Path) -> None:
        """Write the flat table; :meth:`from_toml` reads it back."""
        write_text(path, "\n".join(self.to_toml()) + "\n")


def _usual_settings(model: object) -> Mapping[str, Any]:
    """The settings whose default differs for a model; none for a name that is wrong."""
    return MODELS[model].settings if isinstance(model, str) and model in MODELS else {}


_SETTINGS = {field.name: field for field in dataclasses.fields(Settings)}
_TOP = {
    field.name: field
    for field in dataclasses.fields(Config)
    if field.name not in ("options", "settings")
}


@dataclasses.dataclass(frozen=True)
class Explanation:
    """One name of a configuration, explained."""

    name: str
    meaning: str
    type: str
    choices: tuple[str, ...]
    default: Any


def explain_options(model: str) -> list[Explanation]:
    """Every option of a model: meaning, type, choices, default.

    >>> explain_options("gcn")[0].meaning
    'dropout rate on the features'
    """
    found = []
    for name, default in model_options(model).items():
        option = OPTIONS[name]
        found.append(Explanation(name, option.meaning, _type(default), option.choices, default))
    return found


def explain_settings() -> list[Explanation]:
    """Every setting of training, and what else a configuration holds, the options apart.

    >>> [entry.name for entry in explain_settings()][:3]
    ['preset', 'model', 'hidden_channels']
    """
    return [
        Explanation(
            name,
            field.metadata["meaning"],
            _type(field.default),
            field.metadata["choices"],
            field.default,
        )
        for name, field in {**_TOP, **_SETTINGS}.items()
    ]


def settings_names() -> list[str]:
    """The names of all settings, those of training and those beside them."""
    return [*_TOP, *_SETTINGS]


def read_toml(path: str | Path) -> dict[str, Any]:
    """A TOML file as a flat table, or one clear error."""
    try:
        with Path(path).open("rb") as file:
            table = tomllib.load(file)
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, numbers without end
        raise ValueError(f"Expected {path} to be TOML ({error})") from error
    nested = [key for key, value in table.items() if isinstance(value, dict | list)]
    if nested:
        raise ValueError(f"Expected a flat table in {path} (got a table or list at {nested[0]!r})")
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
    except (ValueError, RecursionError):
        parsed = value.strip()
    return key.strip(), parsed


def toml_value(value: Any) -> str:
    """A plain value as TOML writes it.

    >>> toml_value("loss"), toml_value(True)
    ('"loss"', 'true')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):  # as in JSON, but for one character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


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


#: The least and the greatest of every whole number. Whatever is greater is a slip of the keyboard,
#: or a damaged file: a filter has tables of (degree + 1)^2 numbers, a history one row per epoch.
#: What fits below depends on the graph, see `longnn.training`.
LIMITS = {
    "hidden_channels": (1, 2**20),
    "degree": (0, 4096),
    "stacks": (1, 1024),
    "layers": (1, 1024),
    "blocks": (1, 1024),
    "heads": (1, 1024),
    "repeat": (1, 10**6),
    "epochs": (1, 10**7),
    "batch_rows": (1, 10**7),
    "patience": (1, 2**31 - 1),
    "seed": (0, 2**62),
}


def _check_range(key: str, value: Any) -> None:
    if key not in LIMITS:
        return
    least, most = LIMITS[key]
    if not least <= value <= most:
        raise ValueError(f"Expected {least} <= `{key}` <= {most} (got {_short(value)})")


def _check_table(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(
            f"Expected `{name}` to be a table of names and values (got {_short(value)})"
        )
    for key in value:
        if not isinstance(key, str):
            raise ValueError(f"Expected `{name}` to have text as names (got {_short(key)})")
    return value


def _check_choice(key: str, value: Any, choices: tuple[str, ...]) -> None:
    if choices and value not in choices:
        raise ValueError(
            f"Expected `{key}` to be one of {', '.join(choices)} (got {_short(value)})"
        )


def _type(default: Any) -> str:
    kinds = {bool: "true or false", int: "an integer", float: "a number"}
    return kinds.get(type(default), "a word")


def _check_type(key: str, value: Any, default: Any) -> Any:
    """The value in the type of its default (an int is a float), or an error."""
    if isinstance(default, bool):
        fits = isinstance(value, bool)
    elif isinstance(default, int):
        fits = isinstance(value, int) and not isinstance(value, bool)
    elif isinstance(default, float):
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        try:
            value = float(value) if fits else value
        except OverflowError:  # a whole number of hundreds of digits
            fits = False
    else:
        fits = isinstance(value, str)
    if not fits:
        raise ValueError(f"Expected `{key}` to be {_type(default)} (got {_short(value)})")
    return value


def _short(value: Any) -> str:
    """A value of any kind and size, for a message."""
    text = reprlib.repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


#: Stands for the settings that a model has by default, until it is known which model.
_USUAL: Settings = Settings()
