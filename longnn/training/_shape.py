"""What the members of one population may differ in, and what they must share."""

from longnn.config import ROLES, Config

#: What members may vary; all else decides shapes, the loop or the problem.
VARYING = frozenset(
    [f"{kind}_{role}" for kind in ("lr", "wd") for role in ROLES]
    + ["penalty", "degree_penalty", "input_dropout", "dropout", "filter_dropout"]
    + ["a", "b", "gamma", "restart"]
)
#: What says where, how often and on which nodes a member is trained.
_OWN = frozenset(["seed", "repeat", "device", "split"])


def shape_of(config: Config) -> tuple[tuple[str, object], ...]:
    """What members of one population must agree on: equal shapes are trained together."""
    keys = config.to_dict()
    varying = VARYING
    learned = keys.get("learn_basis", False) or keys.get("orthonormal", False)
    if config.settings.penalty > 0 and not learned:
        varying = VARYING - {"a", "b"}
    return tuple(sorted((k, v) for k, v in keys.items() if k not in varying and k not in _OWN))
