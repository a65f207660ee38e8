"""The configuration of a run: one flat table, from TOML, the command line or Python.

It is the one source of defaults: :class:`Settings` says how a model is trained, the options of a
model are those of its class (:mod:`longnn.registry`), and :class:`Config` joins them with the
split, the seed and the device. The command line, the estimator and the search fill in from here.
An unknown name is an error that names the nearest valid one.
"""

from longnn.config._config import Config, Settings

__all__ = [
    "Config",
    "Settings",
]
