"""The shape of a configuration: what the members of one population have in common.

Two configurations of equal shape may be trained together on one graph, and each gives the result
that it gives alone. They may differ in the seed, the split and the keys of :data:`VARYING`.
"""

from longnn.config import ROLES, Config

#: Keys in which the members of one population may differ.
VARYING = frozenset(
    [f"{kind}_{role}" for kind in ("lr", "wd") for role in ROLES]
    + ["penalty", "degree_penalty", "input_dropout", "dropout", "filter_dropout"]
    + ["a", "b", "gamma", "restart"]
)
#: Keys that say where and how often to train, not what.
_CIRCUMSTANCES = frozenset(["seed", "repeat", "device", "split"])


def shape_of(config: Config) -> tuple[tuple[str, object], ...]:
    """What a configuration shares with all that may be trained with it: a key for grouping.

    The model, the precision and the scaling of the features are part of it. So are a and b where
    the norm penalty is used in a basis that is neither learned nor orthonormal: the norm of a
    filter then depends on a and b, and a population computes it with one pair for all members.

    Args:
        config: of one member.

    Returns:
        (key, value) pairs, sorted by key.

    >>> base = Config()
    >>> shape_of(base) == shape_of(base.replace(lr_transform=0.5, a=1.0, seed=7))
    True
    >>> shape_of(base) == shape_of(base.replace(degree=4))
    False
    """
    keys = config.to_dict()
    varying = VARYING
    own_basis = keys.get("learn_basis", False) or keys.get("orthonormal", False)
    if config.settings.penalty > 0 and not own_basis:
        varying = VARYING - {"a", "b"}
    return tuple(sorted((k, v) for k, v in keys.items() if k not in varying | _CIRCUMSTANCES))
