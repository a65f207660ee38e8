"""The shape of a configuration: what the members of one population have in common.

Two configurations of equal shape may be trained together on one graph, and each gives the result
that it gives alone. They may differ in the seed, the split and what :data:`VARYING` names.
"""

from longnn.config import AFTERWARDS, RATES, Config

#: Settings and options in which the members of one population may differ.
VARYING = frozenset(
    [
        *RATES,
        *("penalty", "degree_penalty", "input_dropout", "dropout", "filter_dropout"),
        *("a", "b", "gamma", "restart"),
    ]
)
#: Values that say where and how often to train, and what to do afterwards.
_CIRCUMSTANCES = frozenset(
    ["seed", "repeat", "device", "split", "preset", "time_limit", *AFTERWARDS]
)


def architecture_of(config: Config) -> tuple[tuple[str, object], ...]:
    """What decides on the structure of a trained model: a key, equal where only numbers differ.

    Models of one architecture can be asked in one pass, however they were trained.

    >>> base = Config()
    >>> architecture_of(base) == architecture_of(base.replace(a=1.0, monitor="loss", seed=7))
    True
    >>> architecture_of(base) == architecture_of(base.replace(degree=4))
    False
    """
    structure = {**config.options, "model": config.model, "hidden": config.hidden_channels}
    structure["direction"] = config.direction
    return tuple(sorted((k, v) for k, v in structure.items() if k not in VARYING))


def shape_of(config: Config) -> tuple[tuple[str, object], ...]:
    """What a configuration shares with all that may be trained with it: a key for grouping.

    The model, the precision and the scaling of the features belong to it. So are a and b where
    the norm penalty is used in a basis that is neither learned nor orthonormal: the norm of a
    filter then depends on a and b, and a population computes it with one pair for all members.

    Args:
        config: of one member.

    Returns:
        (name, value) pairs, sorted by name.

    >>> base = Config()
    >>> shape_of(base) == shape_of(base.replace(lr_transform=0.5, a=1.0, seed=7))
    True
    >>> shape_of(base) == shape_of(base.replace(degree=4))
    False
    """
    values = config.to_dict()
    varying = VARYING
    own_basis = values.get("learn_basis", False) or values.get("orthonormal", False)
    if config.settings.penalty > 0 and not own_basis:
        varying = VARYING - {"a", "b"}
    return tuple(sorted((k, v) for k, v in values.items() if k not in varying | _CIRCUMSTANCES))
