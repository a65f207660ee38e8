"""Where a search starts: the default of the data, or a given configuration and the space around it.

Configurations only: nothing is trained here.
"""

from pathlib import Path
from typing import Any

from longnn.config import Config
from longnn.config._config import AFTERWARDS, settings_names
from longnn.records import RunRecord
from longnn.registry import model_options
from longnn.tuning._space import RESERVED, SearchSpace

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
    keys = {*settings_names(), *model_options(config.model)} - {*RESERVED, *AFTERWARDS}
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
