"""What to train and how, as one flat table: the settings of training, and beside them the model
with its options, the split, the seed and the device.
"""

import dataclasses
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Self

from longnn._base.files import write_text
from longnn._base.suggestions import did_you_mean
from longnn.config._check import check_choice, check_range, check_table, check_type, short
from longnn.config._settings import Settings, described
from longnn.config._toml import read_toml, toml_value
from longnn.registry import MODELS, find_model

SCALINGS = ("auto", "none", "columns", "standard", "row")
DIRECTIONS = ("auto", "cover", "none")
FREQUENCIES = ("auto", "train")
PRECISIONS = ("float32", "float64", "tf32")
#: What is left out of a table where it is not set: most graphs have no arcs and fit in memory.
RARE = ("direction", "batch_rows")
#: What is done after training.
AFTERWARDS = ("calibrate", "frequencies", "threshold", "baselines")
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
        "how much to train: fast (one model), default (a portfolio of about eight, joined on the "
        "validation nodes), best (a larger one); fast where an option of a model is set",
        PRESETS,
    )
    model: str = described("lon", "name of the model, see `longnn models`")
    hidden_channels: int = described(64, "hidden units")
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    settings: Settings = dataclasses.field(default_factory=lambda: _USUAL)
    split: str | None = described(
        None,
        "split protocol: published, stratified, geom-gcn, fixed or own; default: the dataset's",
    )
    seed: int = described(0, "seed of the first repeat: of its weights, dropout and split")
    repeat: int = described(1, "number of repeats, with seeds seed, seed + 1, ...")
    scale: str = described(
        "auto",
        "scaling of features: none; standard (mean 0, deviation 1); columns (the same, but sparse "
        "columns to at most 1); row (rows sum to 1); auto (none for named data, columns for yours)",
        SCALINGS,
    )
    device: str = described("auto", "cpu, cuda, or auto: the GPU if there is one")
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
    time_limit: float = described(
        0.0, "seconds that training may take, all in all; 0: as long as it needs"
    )
    baselines: bool = described(
        True,
        "also train models without the graph: constant, linear, and an MLP",
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
        known = find_model(self.model).options
        if self.settings is _USUAL:
            object.__setattr__(self, "settings", Settings(**_usual_settings(self.model)))
        options = {**known, **check_table("options", self.options)}
        for key, value in options.items():
            if key not in known:
                raise ValueError(
                    f"Unknown option `{key}` of model {self.model!r}"
                    + did_you_mean(key, [*known, *TOP, *SETTINGS])
                )
            options[key] = check_type(key, value, known[key])
            check_range(key, value)
            if isinstance(known[key], float) and not math.isfinite(options[key]):
                raise ValueError(f"Expected `{key}` to be finite (got {value})")
        object.__setattr__(self, "options", options)
        if not 0 <= self.time_limit < float("inf"):
            raise ValueError(
                f"Expected `time_limit` >= 0 and finite, in seconds (got {self.time_limit:g})"
            )
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
            if key in TOP:
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
        own = {key: getattr(self, key) for key in TOP}
        table = {**own, **self.options, **dataclasses.asdict(self.settings)}
        for key in RARE:
            if table[key] == (TOP.get(key) or SETTINGS[key]).default:
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


#: The fields by name: those of training, and those beside them.
SETTINGS = {field.name: field for field in dataclasses.fields(Settings)}
TOP = {
    field.name: field
    for field in dataclasses.fields(Config)
    if field.name not in ("options", "settings")
}
