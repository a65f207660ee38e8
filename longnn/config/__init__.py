"""The configuration of a run: one flat table, from TOML, the command line or Python.

It is the one source of defaults: :class:`Settings` says how a model is trained, the options of a
model are those of its class (:mod:`longnn.registry`), and :class:`Config` joins them with the
split, the seed and the device. The command line, the estimator and the search fill in from here.
An unknown name is an error that names the nearest valid one.
"""

from longnn.config._config import (
    AFTERWARDS,
    DIRECTIONS,
    FREQUENCIES,
    PRECISIONS,
    PRESETS,
    RARE,
    RATES,
    SCALINGS,
    Config,
    Explanation,
    Settings,
    explain_options,
    explain_settings,
    parse_class_weight,
    settings_names,
)
from longnn.config._values import LIMITS, parse_assignment, read_toml, toml_value

__all__ = [
    "AFTERWARDS",
    "DIRECTIONS",
    "FREQUENCIES",
    "LIMITS",
    "PRECISIONS",
    "PRESETS",
    "RARE",
    "RATES",
    "SCALINGS",
    "Config",
    "Explanation",
    "Settings",
    "explain_options",
    "explain_settings",
    "parse_assignment",
    "parse_class_weight",
    "read_toml",
    "settings_names",
    "toml_value",
]
