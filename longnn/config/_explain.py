"""Every name of a configuration in words: what it means, its type, choices and default."""

import dataclasses
from typing import Any

from longnn.config._check import type_in_words
from longnn.config._config import SETTINGS, TOP
from longnn.registry import OPTIONS, model_options


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
        found.append(
            Explanation(name, option.meaning, type_in_words(default), option.choices, default)
        )
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
            type_in_words(field.default),
            field.metadata["choices"],
            field.default,
        )
        for name, field in {**TOP, **SETTINGS}.items()
    ]


def settings_names() -> list[str]:
    """The names of all settings, those of training and those beside them."""
    return [*TOP, *SETTINGS]
