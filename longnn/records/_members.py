"""What a run records of the members of an ensemble."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from longnn._base.node import Node


@dataclass(frozen=True, eq=False)
class MemberRecord:
    """One model of an ensemble, in one repeat.

    ``val`` and ``test`` are its own headline scores, None where there are no such nodes. ``words``
    and ``response``, the mean over the channels at the ``eigenvalues``, are of its first filter.
    """

    name: str
    model: str
    weight: float  # in the ensemble; 0 for one without a vote
    epochs: int
    best_epoch: int
    stopped: str
    val: float | None
    test: float | None
    words: str = ""
    eigenvalues: np.ndarray | None = None  # (points,)
    response: np.ndarray | None = None  # (points,)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; nothing of a filter where there is none.

        >>> MemberRecord("one", "mlp", 0.5, 10, 8, "epochs", 0.5, None).to_dict()["weight"]
        0.5
        """
        plain: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("name", "model", "weight", "epochs", "best_epoch", "stopped")
        }
        plain |= {key: getattr(self, key) for key in ("val", "test")}
        if self.eigenvalues is not None and self.response is not None:
            plain["words"] = self.words
            plain["eigenvalues"] = self.eigenvalues.tolist()
            plain["response"] = self.response.tolist()
        return plain

    @classmethod
    def read(cls, node: Node) -> "MemberRecord":
        """From the place in a record."""
        weight = node["weight"].number()
        if not 0 <= weight <= 1 + 1e-6:
            node["weight"].fail("a weight from 0 to 1")
        eigenvalues = response = None
        if node["eigenvalues"].given:
            eigenvalues = node["eigenvalues"].array(None)
            response = node["response"].array(len(eigenvalues))
        val, test = (node[key].number() if node[key].given else None for key in ("val", "test"))
        return cls(
            name=node["name"].text(),
            model=node["model"].text(),
            weight=weight,
            epochs=node["epochs"].integer(),
            best_epoch=node["best_epoch"].integer(),
            stopped=node["stopped"].text(),
            val=val,
            test=test,
            words=node["words"].text(""),
            eigenvalues=eigenvalues,
            response=response,
        )
