"""A prepared graph in a few lines, from its manifest alone: no array is read."""

from longnn._base.memory import in_words
from longnn.store._graph import FEATURES, GraphStore

#: Class names that a line has room for.
NAMES = 5


def card_lines(graph: GraphStore) -> list[str]:
    """What a prepared graph holds, in words.

    >>> import tempfile
    >>> from longnn.store import prepare
    >>> options = {"num_nodes": 40, "num_features": 8}
    >>> for line in card_lines(prepare("csbm", output=tempfile.mkdtemp(), options=options))[:3]:
    ...     print(line)
    graph       csbm
    nodes       40
    edges       ...
    """
    about = graph.about
    rows = [
        ("graph", about["name"]),
        ("nodes", f"{graph.num_nodes:,}"),
        ("edges", f"{about['edges']:,}"),
        ("degree", _degree(graph)),
        ("features", f"{graph.num_features:,}, scaling: {about['scaling']['kind']}"),
        _asked(graph),
        ("labelled", f"{about['labelled']:,} nodes"),
    ]
    split = about["split"]
    if split is not None:
        drawn = "of the split column" if split["protocol"] == "own" else f"seed {split['seed']}"
        sizes = f"train {split['train']:,}, val {split['val']:,}, test {split['test']:,}"
        rows.append(("split", f"{sizes} ({drawn})"))
    size = sum(entry.bytes for entry in graph.manifest.files.values()) + about["ids"]["bytes"]
    rows.append(("on disk", f"{in_words(size)}, {in_words(_feature_bytes(graph))} of it features"))
    return [f"{name:<12}{value}" for name, value in rows]


def _degree(graph: GraphStore) -> str:
    mean = 2 * graph.about["edges"] / graph.num_nodes
    isolated = graph.about["isolated"]
    return f"mean {mean:.1f}, largest {graph.about['degree_max']:,}; {isolated:,} isolated nodes"


def _asked(graph: GraphStore) -> tuple[str, str]:
    about = graph.about
    if about["task"] == "regression":
        return "targets", ", ".join(about["targets"]) or "1"
    names = about["classes"]
    if not names:
        return "classes", "none"
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    word = "labels" if about["task"] == "multilabel" else "classes"
    return word, f"{len(names)}: {', '.join(names[:NAMES])}{more}"


def _feature_bytes(graph: GraphStore) -> int:
    return graph.manifest.files[FEATURES].bytes
