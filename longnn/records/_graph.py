"""What a run records of the graph it was made on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from longnn._base.node import Node

#: A density over [0, 2] is larger only where a file is damaged: figures cannot draw that.
LARGEST_DENSITY = 1e9


@dataclass(frozen=True, eq=False)
class GraphRecord:
    """The data a run was made on; ``density`` is (eigenvalues, density).

    ``outliers`` are the eigenvalues outside the bulk; None where they were not computed.

    >>> graph = GraphRecord("club", "classification", "", ("left", "right"), (), {}, None)
    >>> GraphRecord.read(Node(graph.to_dict(), file="record.json"), []).classes
    ('left', 'right')
    """

    name: str
    task: str
    fingerprint: str
    classes: tuple[str, ...]
    notes: tuple[str, ...]
    card: dict[str, Any]
    density: tuple[np.ndarray, np.ndarray] | None
    source: Mapping[str, Any] | None = None
    scaling: str = ""
    targets: tuple[str, ...] = ()  # names of several numbers to predict
    columns: tuple[tuple[str, str, str], ...] = ()  # of the node table: name, kind, what was done
    outliers: np.ndarray | None = None  # (count,) increasing

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain = {
            "name": self.name,
            "source": None if self.source is None else dict(self.source),
            "fingerprint": self.fingerprint,
            "task": self.task,
            "classes": list(self.classes),
            "notes": list(self.notes),
            "scaling": self.scaling,
            "targets": list(self.targets),
            "columns": [list(row) for row in self.columns],
            "card": self.card,
        }
        if self.density is not None:
            eigenvalues, density = self.density
            plain["density"] = {"eigenvalues": eigenvalues.tolist(), "density": density.tolist()}
        if self.outliers is not None:
            plain["outliers"] = self.outliers.tolist()
        return plain

    @classmethod
    def read(cls, node: Node, missing: list[str]) -> "GraphRecord":
        """From the place in a record; what it lacks is added to ``missing`` in sentences."""
        density = None
        if node["density"].given:
            eigenvalues = node["density"]["eigenvalues"].array(None)
            density = eigenvalues, node["density"]["density"].array(len(eigenvalues))
            if not np.isfinite(eigenvalues).all() or (np.abs(density) > LARGEST_DENSITY).any():
                node["density"].fail("a density of the eigenvalues from 0 to 2")
        else:
            missing.append("The record holds no spectral density of the graph.")
        card = _card(node["card"])
        if not card:
            missing.append("The record holds no card of the graph.")
        outliers = None
        if node["outliers"].given:
            outliers = np.array([at.number() for at in node["outliers"]])
        return cls(
            name=node["name"].text(),
            task=node["task"].text("classification"),
            fingerprint=node["fingerprint"].text(""),
            classes=node["classes"].texts(),
            notes=node["notes"].texts(),
            card=card,
            density=density,
            source=node["source"].mapping() if node["source"].given else None,
            scaling=node["scaling"].text(""),
            targets=node["targets"].texts(),
            columns=_columns(node["columns"]),
            outliers=outliers,
        )


def _card(node: Node) -> dict[str, Any]:
    """What pages show of the graph, as it was written; empty where there is none."""
    if not node.given:
        return {}
    for key in ("warnings", "notes"):
        node[key].texts()
    counts = node["class_counts"]
    for name in counts.mapping() if counts.given else ():
        counts[name].integer()
    for key, value in node.mapping().items():
        if isinstance(value, int) and not isinstance(value, bool):
            node[key].integer()
    return node.mapping()


def _columns(node: Node) -> tuple[tuple[str, str, str], ...]:
    """Absent in records of earlier versions."""
    found = []
    for at in node if node.given else ():
        row = at.texts()
        if len(row) != 3:
            at.fail("name, kind and treatment of a column")
        found.append((row[0], row[1], row[2]))
    return tuple(found)
