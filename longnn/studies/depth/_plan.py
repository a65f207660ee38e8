"""What is run: rows with one budget each, on graphs with their splits and scores. Data only."""

import dataclasses

from longnn.registry import FEATURES_FORM
from longnn.studies import accuracy
from longnn.studies._core._protocol import QUICK_DATASETS, TEN, Row, Space
from longnn.studies.protocols._plan import Draws, Plan

#: Parts: stacks against single filters, with arcs and without, the graphs of the paper, and how far
#: a longer search in a space made for each kind of graph goes.
DEEP, ARCS, PUBLISHED, TUNED = "deep", "arcs", "published", "tuned"

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
#: What longer searches leave as it starts: they spend their draws on the rest.
START: Space = {"a": 0.5, "b": 1.0, "lr_basis": 0.002, "wd_coefficients": 0.0}
#: Longer searches. Grids and crowds: many narrow blocks, a few features dropped.
NARROW: Space = {
    **START,
    "patience": 300,
    "hidden_channels": 64,
    "blocks": {"choices": [8, 12]},
    "degree": {"choices": [2, 3]},
    "norm": {"choices": ["rms", "layer", "none"]},
    "lr_transform": {"choices": [2e-3, 3e-3, 5e-3]},
    "lr_coefficients": {"choices": [5e-3, 0.02]},
    "dropout": {"choices": [0.2, 0.3, 0.4]},
    "input_dropout": {"choices": [0.1, 0.2, 0.3]},
    "wd_transform": 0.0,
    "restart": 0.5,
}
#: Products bought together: few wide blocks, most features dropped.
WIDE: Space = {
    "patience": 200,
    "hidden_channels": {"choices": [256, 512]},
    "blocks": {"choices": [2, 3]},
    "norm": {"choices": ["rms", "layer"]},
    "lr_transform": {"choices": [1e-3, 3e-3]},
    "dropout": {"choices": [0.5, 0.7]},
    "input_dropout": {"choices": [0.5, 0.7]},
    "wd_transform": {"choices": [0.0, 5e-5, 5e-4]},
}
WIDE_FILTERS: Space = {
    **START,
    **WIDE,
    "degree": {"choices": [1, 2, 4]},
    "lr_coefficients": {"choices": [2e-3, 0.01]},
    "restart": {"choices": [0.1, 0.3]},
}
#: Pages that link: a filter per hidden unit on the words, which are many and mostly dropped.
WORDS: Space = {
    **START,
    "patience": 200,
    "self_loops": "remove",
    "lr_transform": {"choices": [3e-3, 5e-3, 0.01]},
    "lr_coefficients": {"choices": [5e-3, 0.01]},
    "dropout": {"choices": [0.0, 0.3, 0.5]},
    "input_dropout": {"choices": [0.5, 0.7, 0.8]},
    "wd_transform": {"choices": [5e-4, 2e-3, 5e-3]},
    "restart": {"choices": [0.3, 0.5, 0.8]},
}
ONE_WORDS: Space = {
    **WORDS,
    **FEATURES_FORM,
    "shared": False,
    "coefficients": "free",
    "filter_dropout": 0.4,
    "hidden_channels": {"choices": [128, 256]},
    "degree": {"choices": [10, 16]},
}
TWO_WORDS: Space = {
    **WORDS,
    "hidden_channels": 128,
    "blocks": 2,
    "degree": 10,
    "norm": "rms",
    "jump": "cat",
    "residual": False,
    "lr_transform": {"choices": [2e-3, 5e-3]},
}
#: The single filter: LON-GNN in the forms of Table 3, and as an MLP of filtered features.
SINGLE = (*accuracy.FORMS, {**accuracy.FORMS[0], **FEATURES_FORM})


@dataclasses.dataclass(frozen=True)
class Deep:
    """A row, and what it sees.

    Args:
        row: the model, what is fixed and what is searched.
        directed: whether arcs are kept.
        raw: features as the files have them, as those who printed the marks use them; else rows are
            normalised, as in the tables of the paper.
        precision: of its training.

    >>> ROWS["lon-deep"].row.model
    'lon-deep'
    """

    row: Row
    directed: bool = False
    raw: bool = False
    precision: str = "float32"


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


def _longer(label: str, model: str, searched: Space, *, directed: bool = False) -> Deep:
    row = Row(label, model, searched=searched)
    return Deep(row, directed, raw=True, precision="tf32")


#: Rows of the longer searches.
_LONGER: dict[str, Deep] = {
    "narrow": _longer("many narrow blocks of filters", "lon-deep", NARROW),
    "wide": _longer("few wide blocks of filters", "lon-deep", WIDE_FILTERS),
    "wide-gcn": _longer("few wide blocks of GCN", "gcn-deep", WIDE),
    "words": _longer("one wide filter", "lon", ONE_WORDS),
    "words-arcs": _longer("one wide filter, arcs", "lon", ONE_WORDS, directed=True),
    "two-arcs": _longer("two blocks of filters, arcs", "lon-deep", TWO_WORDS, directed=True),
}
ROWS |= _LONGER
LABELS = {key: deep.row.label for key, deep in ROWS.items()}
_EQUAL = [key for key in ROWS if key not in _LONGER]
_UNDIRECTED = tuple(key for key in _EQUAL if not ROWS[key].directed)
#: Graph -> its rows, in one part each; a graph of the paper stands in the last part, too.
_ARCS_ROWS = (
    "lon",
    "lon-deep",
    "gcn-deep",
    *(key for key in _EQUAL if ROWS[key].directed),
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
    TUNED: {
        "minesweeper": _plan("fixed", "roc_auc", Draws(16, 1, epochs=900, patience=200), 2000),
        "tolokers": _plan("fixed", "roc_auc", Draws(12, 1, epochs=500, patience=120), 1200),
        "computers": _plan("stratified", "accuracy", Draws(12, 1, epochs=500, patience=120), 1000),
        "photo": _plan("stratified", "accuracy", Draws(12, 1, epochs=500, patience=120), 1000),
        "chameleon": _plan("geom-gcn", "accuracy", Draws(16, 2, epochs=400, patience=120), 800),
        "squirrel": _plan("geom-gcn", "accuracy", Draws(16, 2, epochs=400, patience=120), 800),
    },
}
KEYS = {DEEP: _UNDIRECTED, ARCS: _ARCS_ROWS, PUBLISHED: ("lon-deep",), TUNED: tuple(_LONGER)}
_WORDS_ROWS = ("words-arcs", "two-arcs", "words")
#: Of the longer searches: graph -> its rows.
_LONGER_ROWS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("minesweeper", "tolokers"), ("narrow",)),
    **dict.fromkeys(("computers", "photo"), ("wide", "wide-gcn")),
    **dict.fromkeys(("chameleon", "squirrel"), _WORDS_ROWS),
}
_QUICK = Draws(2, 1, epochs=3, patience=3)
QUICK_PLANS = {
    part: dict.fromkeys(QUICK_DATASETS, Plan("stratified", "accuracy", 2, 3, draws=_QUICK))
    for part in PLANS
    if part != TUNED
}
QUICK_KEYS = {DEEP: ("lon", "lon-deep", "gcn-deep"), ARCS: ("lon",), PUBLISHED: ("lon-deep",)}


def rows_of(part: str, graph: str) -> tuple[str, ...]:
    """The rows of a graph in a part.

    >>> rows_of(TUNED, "photo")
    ('wide', 'wide-gcn')
    """
    return _LONGER_ROWS[graph] if part == TUNED else KEYS[part]
