"""What to train and how, as one flat table: the settings of training, and beside them the model
with its options, the split, the seed and the device; and every name of it in words.
"""

import dataclasses
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from longnn._base.files import write_text
from longnn._base.suggestions import check_choice, did_you_mean, short
from longnn.config._values import (
    check_range,
    check_table,
    check_type,
    read_toml,
    toml_value,
    type_in_words,
)
from longnn.metrics import METRICS
from longnn.registry import MODELS, OPTIONS, find_model, model_options

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
    for word in text.split(","):
        name, sign, number = (kept + word).rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            kept += word + ","
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


SCALINGS = ("auto", "none", "columns", "standard", "row")
INPUTS = ("columns", "pieces", "structure")
DIRECTIONS = ("auto", "cover", "none")
FREQUENCIES = ("auto", "train")
PRECISIONS = ("float32", "float64", "tf32")
#: What is left out of a table where it is not set: most graphs have no arcs and fit in memory, and
#: most models see the features.
RARE = ("direction", "inputs", "batch_rows", "coverage", "known_answers")
#: What is done after training.
AFTERWARDS = (
    "calibrate",
    "frequencies",
    "threshold",
    "baselines",
    "coverage",
    "known_answers",
)
#: Whose answers are known at prediction.
KNOWN_ANSWERS = ("none", "train", "all")
#: One model, a portfolio of about eight, or a larger one.
PRESETS = ("fast", "default", "best")
#: Stands for the settings that a model has by default, until it is known which model.
_USUAL: Settings = Settings()


@dataclasses.dataclass(frozen=True)
class Config:
    """What to train and how.

    ``options`` are those of the model (degree, a, b, dropouts, ...), completed by its defaults;
    ``settings`` are those of training. Every other field says what it means.

    >>> config = Config(options={"degree": 4})
    >>> config.options["degree"], config.settings.patience
    (4, 200)
    """

    preset: str = described(
        "fast",
        "how much to train: fast (one model), default (about eight models that vote) or best (some "
        "twenty); where you set an option of a model, it is one model",
        PRESETS,
    )
    model: str = described("lon", "name of the model, see `longnn models`")
    hidden_channels: int = described(64, "hidden units")
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    settings: Settings = dataclasses.field(default_factory=lambda: _USUAL)
    #: In place of those of the preset, by name: flat tables of what is not the same for all.
    members: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    split: str | None = described(
        None,
        "split protocol: published, stratified, geom-gcn, fixed, own, time or group; default: the "
        "dataset's",
    )
    seed: int = described(0, "seed of the first repeat: of its weights, dropout and split")
    repeat: int = described(1, "number of repeats, with seeds seed, seed + 1, ...")
    scale: str = described(
        "auto",
        "scaling of features: none; standard (mean 0, deviation 1); columns (the same, but sparse "
        "columns to at most 1); row (rows sum to 1); auto (none for named data, columns for yours)",
        SCALINGS,
    )
    device: str = described(
        "auto", "where to train: cpu, cuda, or auto, which is the GPU if there is one"
    )
    precision: str = described(
        "float32",
        "type of all numbers in training: float32, float64, or tf32: float32, but a GPU rounds the "
        "factors of dense products to 10 bits, which is faster for wide and deep models",
        PRECISIONS,
    )
    calibrate: bool = described(
        True, "make probabilities honest: a temperature fitted on the validation nodes"
    )
    frequencies: str = described(
        "auto",
        "class frequencies that probabilities expect: train (of the training nodes); auto (of the "
        "validation nodes, if they differ beyond chance: if training was balanced, for example)",
        FREQUENCIES,
    )
    threshold: float = described(
        0.0,
        "probability from which on the rarer of two classes is predicted; 0: chosen on the "
        "validation nodes if a class has over 80 %, else 0.5",
    )
    direction: str = described(
        "auto",
        "what to make of arcs (--data directed=true): cover (each node as a source and as a "
        "target), none (edges both ways), auto (cover if kept)",
        DIRECTIONS,
    )
    inputs: str = described(
        "columns",
        "what the model sees: the columns of features; pieces (a column of numbers as eight, each "
        "of a piece of its range); structure (also numbers and averages of neighbours)",
        INPUTS,
    )
    time_limit: float = described(
        0.0,
        "seconds that training may take, all in all; the best until then is kept; 0: as long as it "
        "needs",
    )
    baselines: bool = described(
        True,
        "also train models to compare with: without the graph, and trees with neighbours' averages",
    )
    known_answers: str = described(
        "none",
        "whose answers are known at prediction, so that neighbours learn from what was left "
        "unexplained there: all (of training and validation nodes), train, or none",
        KNOWN_ANSWERS,
    )
    coverage: float = described(
        0.9,
        "share of nodes whose answer is to lie in its interval, or in its set of plausible classes",
    )

    def __post_init__(self) -> None:
        for key, field in TOP.items():
            value = getattr(self, key)
            if value is not None or field.default is not None:  # no split is the dataset's own
                value = check_type(key, value, field.default)
                object.__setattr__(self, key, value)
            check_range(key, value)
            check_choice(key, value, field.metadata["choices"])
        if not isinstance(self.settings, Settings):
            raise ValueError(f"Expected `settings` to be Settings (got {short(self.settings)})")
        possible = find_model(self.model).options
        if self.settings is _USUAL:
            object.__setattr__(self, "settings", Settings(**_usual_settings(self.model)))
        options = {**possible, **check_table("options", self.options)}
        for key, value in options.items():
            if key not in possible:
                raise ValueError(
                    f"Unknown option `{key}` of model {self.model!r}"
                    + did_you_mean(key, [*possible, *TOP, *SETTINGS])
                )
            options[key] = check_type(key, value, possible[key])
            check_range(key, value)
            if isinstance(possible[key], float) and not math.isfinite(options[key]):
                raise ValueError(f"Expected `{key}` to be finite (got {value})")
        object.__setattr__(self, "options", options)
        # One model has none, whatever it was asked beside.
        members = {} if self.preset == "fast" else check_table("members", self.members)
        object.__setattr__(self, "members", members)
        for name, table in members.items():
            try:
                Config.from_dict({**check_table(name, table), "preset": "fast"})
            except ValueError as error:
                raise ValueError(f"member {name!r}: {error}") from error
        if not 0 <= self.time_limit < float("inf"):
            raise ValueError(
                f"Expected `time_limit` >= 0 and finite, in seconds (got {self.time_limit:g})"
            )
        if not 0 < self.coverage < 1:
            raise ValueError(f"Expected 0 < `coverage` < 1 (got {self.coverage:g})")
        if not 0 <= self.threshold < 1:
            raise ValueError(f"Expected 0 <= `threshold` < 1 (got {self.threshold:g})")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From a flat table.

        >>> Config.from_dict({"model": "lon", "degree": 5, "lr_basis": 0.02}).options["degree"]
        5
        """
        top: dict[str, Any] = {}
        settings: dict[str, Any] = {}
        options: dict[str, Any] = {}
        for key, value in check_table("config", values).items():
            if key in TOP or key == "members":
                top[key] = value
            elif key in SETTINGS:
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
        """The complete flat table, without what is :data:`RARE` and not set: it means the same
        after defaults have changed."""
        top = {key: getattr(self, key) for key in TOP}
        table = {**top, **self.options, **dataclasses.asdict(self.settings)}
        for key in RARE:
            if table[key] == (TOP.get(key) or SETTINGS[key]).default:
                del table[key]
        return {**table, "members": self.members} if self.members else table

    def replace(self, **values: Any) -> Self:
        """A copy with some values changed; another model starts from its own options, and from its
        own settings where they were as usual."""
        kept = self.to_dict()
        other = values.get("model", self.model)
        if other != self.model:
            usual = dataclasses.asdict(Settings(**_usual_settings(self.model)))
            special = {*_usual_settings(self.model), *_usual_settings(other)}
            special_keys = {*self.options, *(k for k in special if kept[k] == usual[k])}
            kept = {k: v for k, v in kept.items() if k not in special_keys}
        return type(self).from_dict({**kept, **values})

    def to_toml(self, *, leave_out: Collection[str] = ()) -> list[str]:
        """The lines of the flat table as TOML, and of a table for each member."""
        left_out = {"members", *leave_out}
        table = {k: v for k, v in self.to_dict().items() if v is not None and k not in left_out}
        lines = [f"{key} = {toml_value(value)}" for key, value in table.items()]
        for name, member in self.members.items():
            lines += ["", f"[members.{toml_value(name)}]"]
            lines += [f"{key} = {toml_value(value)}" for key, value in member.items()]
        return lines

    def write_toml(self, path: Path) -> None:
        """Write the flat table; :meth:`from_toml` reads it back."""
        write_text(path, "\n".join(self.to_toml()) + "\n")


def _usual_settings(model: object) -> Mapping[str, Any]:
    """The settings whose default differs for a model; none for a name that is wrong."""
    return MODELS[model].settings if isinstance(model, str) and model in MODELS else {}


#: The fields by name: those of training, and those beside them.
SETTINGS = {field.name: field for field in dataclasses.fields(Settings)}
TOP = {
    field.name: field
    for field in dataclasses.fields(Config)
    if field.name not in ("options", "settings", "members")
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
    lines = []
    for name, default in model_options(model).items():
        option = OPTIONS[name]
        lines.append(
            Explanation(name, option.meaning, type_in_words(default), option.choices, default)
        )
    return lines


def explain_settings() -> list[Explanation]:
    """Every setting of training, and what else a configuration holds, the options apart.

    >>> [entry.name for entry in explain_settings()][:3]
    ['preset', 'model', 'hidden_channels']
    """
    return [
        Explanation(
            name,
            field.metadata["meaning"],
            type_in_words(field.default),
            field.metadata["choices"],
            field.default,
        )
        for name, field in {**TOP, **SETTINGS}.items()
    ]


def settings_names() -> list[str]:
    """The names of all settings, those of training and those beside them."""
    return [*TOP, *SETTINGS]
