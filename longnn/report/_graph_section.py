"""What a report says of the graph: its card, its columns, its classes."""

from typing import Any

from longnn.records import RunRecord
from longnn.report._markup import alert, items, pairs, paragraph, table
from longnn.report._words import NAMED

COLUMNS = 60  # rows of the table of columns
CLASSES = 30  # rows of the table of classes; the other classes share one row


def graph_section(run: RunRecord) -> list[str]:
    """The blocks of the section on the data; an empty one has nothing to say."""
    card = run.data.card
    warnings = [str(text) for text in card.get("warnings") or ()]
    notes = dict.fromkeys([*run.data.notes, *(str(text) for text in card.get("notes") or ())])
    return [
        alert(warnings),
        pairs(f"The graph {run.data.name}", _card_rows(card) | _outlier_row(run)),
        _columns(run),
        _classes(card.get("class_counts")),
        "<h3>Notes</h3>" + items(notes) if notes else "",
        paragraph("The record has no card of the graph.") if not card else "",
    ]


def _columns(run: RunRecord) -> str:
    """What was done to each column of the node table."""
    rows = [list(row) for row in run.data.columns]
    if len(rows) > COLUMNS:
        rows = [*rows[:COLUMNS], [f"{len(rows) - COLUMNS} more", "", ""]]
    if not rows:
        return ""
    return table("Columns of the node table", ["column", "kind", "features"], rows, words=[0, 1, 2])


def _card_rows(card: dict[str, Any]) -> dict[str, Any]:
    """The card of a graph with names and units that readers understand."""

    def show(key: str, form: str, scale: float = 1) -> str | None:
        value = card.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None if value is None else str(value)
        return form.format(value * scale)

    def count(key: str) -> str | None:
        return show(key, "{:,}")

    def share(key: str) -> str | None:
        return show(key, "{:.1f} %", 100)

    low, high = count("degree_min"), count("degree_max")
    median, mean = show("degree_median", "{:g}"), show("degree_mean", "{:.1f}")
    rows: dict[str, Any] = {
        "task": card.get("task"),
        "nodes": count("nodes"),
        "arcs" if card.get("directed") else "edges": count("edges"),
        "arcs without a reverse": count("one_way") if card.get("directed") else None,
        "features per node": count("features"),
        "features that are not zero": share("feature_density"),
        "weighted edges": card.get("weighted"),
        "neighbours per node": f"{low} to {high}, median {median}, mean {mean}" if low else None,
        "connected components": count("components"),
        "nodes in the largest component": share("largest_component_share"),
        "nodes without a neighbour": count("isolated_nodes"),
        "nodes with a label": share("labelled_share"),
        "largest class over smallest": show("imbalance", "{:.1f}"),
        "edges within a class (edge homophily)": show("edge_homophily", "{:.3f}"),
        "neighbours of the same class (node homophily)": show("node_homophily", "{:.3f}"),
        "edges within a class, compared with chance (adjusted homophily)": show(
            "adjusted_homophily", "{:.3f}"
        ),
        "nodes with the same features as another node": count("duplicate_rows"),
        "nodes with only zero features": count("zero_rows"),
    }
    return {name: value for name, value in rows.items() if value is not None}


def _outlier_row(run: RunRecord) -> dict[str, str]:
    few = run.data.outliers
    if few is None:
        return {}
    shown = ", ".join(f"{value:.2f}" for value in few[:NAMED])
    shown += f" and {len(few) - NAMED} more" if len(few) > NAMED else ""
    return {"eigenvalues outside the bulk": shown or "none"}


def _classes(counts: Any) -> str:
    if not isinstance(counts, dict) or not all(isinstance(n, int) for n in counts.values()):
        return ""
    total = max(sum(counts.values()), 1)
    rows = [[name, f"{n:,}", f"{100 * n / total:.1f} %"] for name, n in counts.items()]
    if len(rows) > CLASSES:
        rest = sum(list(counts.values())[CLASSES:])
        more = [f"{len(rows) - CLASSES} more", f"{rest:,}", f"{100 * rest / total:.1f} %"]
        rows = [*rows[:CLASSES], more]
    if not rows:
        return ""
    return table("Labelled nodes of each class", ["class", "nodes", "share"], rows, words=[0])
