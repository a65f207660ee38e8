"""What is run: rows with one budget each, on graphs with their splits and scores. Data only."""

import dataclasses

from longnn.registry import FEATURES_FORM
from longnn.studies import accuracy
from longnn.studies._core._protocol import QUICK_DATASETS, TEN, Row, Space
from longnn.studies.protocols._plan import Draws, Plan

#: Parts: stacks against single filters, with arcs and without, and the graphs of the paper.
DEEP, ARCS, PUBLISHED = "deep", "arcs", "published"

#: What is searched of every stack. Shapes are few: populations share what they can.
STACK: Space = {
    "hidden_channels": 128,
    "patience": 150,
    "lr_transform": {"choices": [1e-3, 3e-3, 0.01]},
    "blocks": {"choices": [4, 8, 12]},
    "dropout": {"choices": [0.0, 0.2, 0.4, 0.6]},
    "input_dropout": {"choices": [0.0, 0.3, 0.6]},
}
#: Of a stack of filters: its filters, too.
FILTERS: Space = {
    **STACK,
    "degree": {"choices": [2, 4]},
    "lr_coefficients": {"choices": [5e-3, 0.02]},
    "restart": {"choices": [0.2, 0.5]},
}
#: The single filter: LON-GNN in the forms of Table 3, and as an MLP of filtered features.
SINGLE = (*accuracy.FORMS, {**accuracy.FORMS[0], **FEATURES_FORM})


@dataclasses.dataclass(frozen=True)
class Deep:
    """A row, and whether it sees arcs.

    Args:
        row: the model, what is fixed and what is searched.
        directed: whether arcs are kept.

    >>> ROWS["lon-deep"].row.model
    'lon-deep'
    """

    row: Row
    directed: bool = False


def _stack(label: str, **fixed: object) -> Deep:
    return Deep(Row(label, "lon-deep", fixed=fixed, searched=FILTERS))


ROWS: dict[str, Deep] = {
    "lon": Deep(Row("LON-GNN, one filter", "lon", forms=SINGLE)),
    "lon-deep": _stack("blocks of LON-GNN's filters"),
    "one-block": _stack("one block", blocks=1),
    "no-norm": _stack("without norm", norm="none"),
    "no-residual": _stack("without residual", residual=False),
    "fixed-basis": _stack("basis not learned", learn_basis=False),
    "chebyshev": _stack("Chebyshev basis", basis="chebyshev"),
    "monomial": _stack("monomial basis", basis="monomial"),
    "gcn-deep": Deep(Row("blocks of GCN", "gcn-deep", searched=STACK)),
    "sage-deep": Deep(Row("blocks of GraphSAGE", "sage-deep", searched=STACK)),
    "gat-deep": Deep(Row("blocks of GAT", "gat-deep", searched=STACK)),
    "lon-arcs": Deep(Row("LON-GNN, one filter, arcs", "lon", forms=SINGLE), directed=True),
    "lon-deep-arcs": Deep(
        Row("blocks of LON-GNN's filters, arcs", "lon-deep", searched=FILTERS), directed=True
    ),
    "lon-deep-magnetic": Deep(
        Row(
            "blocks of LON-GNN's filters, arcs as phases",
            "lon-deep",
            fixed={"direction": "magnetic"},
            searched=FILTERS,
        ),
        directed=True,
    ),
    "gcn-deep-arcs": Deep(Row("blocks of GCN, arcs", "gcn-deep", searched=STACK), directed=True),
}
LABELS = {key: deep.row.label for key, deep in ROWS.items()}
_UNDIRECTED = tuple(key for key, deep in ROWS.items() if not deep.directed)
#: Graph -> its rows, in one part each; a graph of the paper stands in the last part, too.
_ARCS_ROWS = (
    "lon",
    "lon-deep",
    "gcn-deep",
    *(key for key, deep in ROWS.items() if deep.directed),
)
_SHORT = Draws(12, splits=2, epochs=400, patience=80)


def _plan(protocol: str, metric: str, draws: Draws = _SHORT, epochs: int = 1500) -> Plan:
    return Plan(protocol, metric, splits=10, epochs=epochs, draws=draws)


#: Part -> graph -> plan.
PLANS: dict[str, dict[str, Plan]] = {
    DEEP: {
        "minesweeper": _plan("fixed", "roc_auc"),
        "tolokers": _plan("fixed", "roc_auc", Draws(8, 1, epochs=250, patience=60), epochs=800),
        "computers": _plan("stratified", "accuracy", Draws(8, 1, epochs=250, patience=60), 600),
        "photo": _plan("stratified", "accuracy", Draws(8, 1, epochs=250, patience=60), 600),
    },
    ARCS: dict.fromkeys(
        ("chameleon", "squirrel", "wisconsin", "actor"),
        _plan("geom-gcn", "accuracy", Draws(12, 2, epochs=250, patience=60), epochs=600),
    ),
    PUBLISHED: dict.fromkeys(
        TEN, _plan("published", "accuracy", Draws(12, 2, epochs=250, patience=60), epochs=600)
    ),
}
KEYS = {DEEP: _UNDIRECTED, ARCS: _ARCS_ROWS, PUBLISHED: ("lon-deep",)}
_QUICK = Draws(2, 1, epochs=3, patience=3)
QUICK_PLANS = {
    part: dict.fromkeys(QUICK_DATASETS, Plan("stratified", "accuracy", 2, 3, draws=_QUICK))
    for part in PLANS
}
QUICK_KEYS = {DEEP: ("lon", "lon-deep", "gcn-deep"), ARCS: ("lon",), PUBLISHED: ("lon-deep",)}
