"""What is run: rows with one budget each, on graphs with their splits and scores. Data only."""

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

from lab.studies import accuracy
from lab.studies._printed import QUICK_DATASETS, TEN
from lab.studies._search import Plan, Row, Space, split_plan
from lab.studies.depth._textbook import TEXTBOOK
from longnn.registry import FEATURES_FORM


def _read_spaces() -> dict[str, Space]:
    """What is searched, from ``spaces.toml``."""
    text = Path(__file__).with_name("spaces.toml").read_text(encoding="utf-8")
    spaces: dict[str, Space] = {"features": FEATURES_FORM}
    for name, entries in tomllib.loads(text).items():
        space: dict[str, object] = {}
        for base in entries.pop("from", ()):
            space |= spaces[base]
        spaces[name] = {**space, **entries}
    return spaces


SPACES = _read_spaces()
#: Parts: stacks against single filters, with arcs and without, the graphs of the paper, and how far
#: a longer search in a space made for each kind of graph goes.
DEEP, ARCS, PUBLISHED, TUNED = "deep", "arcs", "published", "tuned"

#: The single filter: LON-GNN in the forms of Table 3, and as an MLP of filtered features.
SINGLE = (*accuracy.FORMS, {**accuracy.FORMS[0], **FEATURES_FORM})


@dataclasses.dataclass(frozen=True)
class Deep:
    """A row, and what it sees."""

    row: Row
    directed: bool = False  # whether arcs are kept
    #: Features as the files have them, as those who printed the marks use them; else rows are
    #: normalised, as in the tables of the paper.
    raw: bool = False
    precision: str = "float32"
    #: Where they are not as the plan of the graph has them.
    epochs: int = 0
    candidates: int = 0
    #: Search on tuning splits, as recipes are selected: one half of the validation nodes stops a
    #: training, the other scores it. Else on the first splits that are reported.
    halved: bool = False

    def plan(self, plan: Plan) -> Plan:
        """The plan of a graph for this row."""
        candidates = self.candidates or plan["draws"]["candidates"]
        draws = {**plan["draws"], "candidates": candidates}
        return {**plan, "epochs": self.epochs or plan["epochs"], "draws": draws}


def _stack(label: str, **fixed: object) -> Deep:
    return Deep(Row(label, "lon-deep", fixed=fixed, searched=SPACES["filters"]))


ROWS: dict[str, Deep] = {
    "lon": Deep(Row("LON-GNN, one filter", "lon", forms=SINGLE)),
    "lon-deep": _stack("blocks of LON-GNN's filters"),
    "one-block": _stack("one block", blocks=1),
    "no-norm": _stack("without norm", norm="none"),
    "no-residual": _stack("without residual", residual=False),
    "fixed-basis": _stack("basis not learned", learn_basis=False),
    "chebyshev": _stack("Chebyshev basis", basis="chebyshev"),
    "monomial": _stack("monomial basis", basis="monomial"),
    "gcn-deep": Deep(Row("blocks of GCN", "gcn-deep", searched=SPACES["stack"])),
    "sage-deep": Deep(Row("blocks of GraphSAGE", "sage-deep", searched=SPACES["stack"])),
    "gat-deep": Deep(Row("blocks of GAT", "gat-deep", searched=SPACES["stack"])),
    "lon-arcs": Deep(Row("LON-GNN, one filter, arcs", "lon", forms=SINGLE), directed=True),
    "lon-deep-arcs": Deep(
        Row("blocks of LON-GNN's filters, arcs", "lon-deep", searched=SPACES["filters"]),
        directed=True,
    ),
    "gcn-deep-arcs": Deep(
        Row("blocks of GCN, arcs", "gcn-deep", searched=SPACES["stack"]), directed=True
    ),
}


def _longer(label: str, model: str, searched: Space, **options: Any) -> Deep:
    row = Row(label, model, searched=searched)
    return Deep(row, raw=True, precision="tf32", **options)


#: Rows of the longer searches.
_LONGER: dict[str, Deep] = {
    "narrow": _longer("many narrow blocks of filters", "lon-deep", SPACES["narrow"]),
    "wide": _longer("few wide blocks of filters", "lon-deep", SPACES["wide_filters"]),
    "wide-gcn": _longer("few wide blocks of GCN", "gcn-deep", SPACES["wide"]),
    "words": _longer("one wide filter", "lon", SPACES["one_words"]),
    "words-arcs": _longer("one wide filter, arcs", "lon", SPACES["one_words"], directed=True),
    "wider-arcs": _longer(
        "one wider filter, arcs, trained longer",
        "lon",
        SPACES["wider_words"],
        directed=True,
        epochs=2000,
        candidates=6,
    ),
    "two-arcs": _longer(
        "two blocks of filters, arcs", "lon-deep", SPACES["two_words"], directed=True
    ),
    "hops-arcs": _longer(
        "blocks of one or two hops, arcs", "lon-deep", SPACES["hops"], directed=True
    ),
}
_LOOPS: tuple[Space, ...] = ({"self_loops": "keep"}, {"self_loops": "remove"})
_OWN: tuple[Space, ...] = ({"self_loops": "keep"}, {"self_loops": "add"})
#: Rows of the graphs of the paper, by kind of graph.
_PAPER: dict[str, Deep] = {
    "cited-scores": Deep(
        Row("blocks", "lon-deep", forms=_OWN, searched=SPACES["cited_scores"]), halved=True
    ),
    "cited-often": Deep(Row("blocks", "lon-deep", searched=SPACES["cited_often"])),
    "weak": Deep(Row("blocks", "lon-deep", forms=_LOOPS, searched=SPACES["weak"])),
    "few": Deep(Row("blocks", "lon-deep", searched=SPACES["few"]), halved=True),
    "bought": _longer("blocks", "lon-deep", SPACES["bought"]),
    "linked": _longer("blocks", "lon-deep", SPACES["linked"]),
}
_EQUAL = list(ROWS)
ROWS |= _LONGER | _PAPER
#: Rows of an operator that is gone, arcs as phases: their records stay, nothing runs them.
GONE = {
    "lon-magnetic": "LON-GNN, one filter, arcs as phases",
    "lon-deep-magnetic": "blocks of LON-GNN's filters, arcs as phases",
}
LABELS = {key: deep.row.label for key, deep in ROWS.items()} | GONE
LABELS |= {
    "textbook-gcn": "GCN as printed",
    "textbook-sage": "GraphSAGE as printed",
}
_UNDIRECTED = tuple(key for key in _EQUAL if not ROWS[key].directed)
#: Graph -> its rows, in one part each; a graph of the paper stands in the last part, too.
_ARCS_ROWS = (
    *("lon", "lon-deep", "gcn-deep", "lon-arcs", "lon-magnetic"),
    *("lon-deep-arcs", "lon-deep-magnetic", "gcn-deep-arcs"),
)
_Draws = tuple[int, int, int, int]


def _plan(protocol: str, metric: str, draws: _Draws = (12, 2, 400, 80), epochs: int = 1500) -> Plan:
    return split_plan(protocol, metric, 10, epochs, draws=draws)


def _published(candidates: int, splits: int) -> Plan:
    return _plan("published", "accuracy", (candidates, splits, 400, 80), 1000)


#: Configurations and splits of the search, where they are not 16 and 2.
_SEARCHES = {
    "actor": (32, 2),
    **dict.fromkeys(("cora", "citeseer"), (16, 4)),
    **dict.fromkeys(("texas", "cornell"), (16, 20)),
}
#: Part -> graph -> plan.
PLANS: dict[str, dict[str, Plan]] = {
    DEEP: {
        "minesweeper": _plan("fixed", "roc_auc"),
        "tolokers": _plan("fixed", "roc_auc", (8, 1, 250, 60), epochs=800),
        "computers": _plan("stratified", "accuracy", (8, 1, 250, 60), 600),
        "photo": _plan("stratified", "accuracy", (8, 1, 250, 60), 600),
    },
    ARCS: dict.fromkeys(
        ("chameleon", "squirrel", "wisconsin", "actor"),
        _plan("geom-gcn", "accuracy", (12, 2, 250, 60), epochs=600),
    ),
    PUBLISHED: {graph: _published(*_SEARCHES.get(graph, (16, 2))) for graph in TEN},
    TUNED: {
        "minesweeper": _plan("fixed", "roc_auc", (16, 1, 900, 200), 2000),
        "tolokers": _plan("fixed", "roc_auc", (12, 1, 500, 120), 1200),
        "computers": _plan("stratified", "accuracy", (12, 1, 500, 120), 1000),
        "photo": _plan("stratified", "accuracy", (12, 1, 500, 120), 1000),
        "chameleon": _plan("geom-gcn", "accuracy", (16, 2, 400, 120), 800),
        "squirrel": _plan("geom-gcn", "accuracy", (16, 2, 400, 120), 800),
    },
}
KEYS = {
    DEEP: _UNDIRECTED,
    ARCS: _ARCS_ROWS,
    PUBLISHED: tuple(_PAPER),
    TUNED: (*_LONGER, *TEXTBOOK),
}
#: Parts whose rows depend on the graph: part -> graph -> rows.
_BY_GRAPH: dict[str, dict[str, tuple[str, ...]]] = {
    TUNED: {
        **dict.fromkeys(("minesweeper", "tolokers"), ("narrow",)),
        **dict.fromkeys(("computers", "photo"), ("wide", "wide-gcn", *TEXTBOOK)),
        **dict.fromkeys(
            ("chameleon", "squirrel"),
            ("words-arcs", "wider-arcs", "two-arcs", "hops-arcs", "words"),
        ),
    },
    PUBLISHED: {
        **dict.fromkeys(("cora", "citeseer"), ("cited-scores",)),
        "pubmed": ("cited-often",),
        **dict.fromkeys(("computers", "photo"), ("bought",)),
        **dict.fromkeys(("chameleon", "squirrel"), ("linked",)),
        **dict.fromkeys(("texas", "cornell"), ("few",)),
        "actor": ("weak",),
    },
}
QUICK_PLANS = {
    part: dict.fromkeys(
        QUICK_DATASETS, split_plan("stratified", "accuracy", 2, 3, draws=(2, 1, 3, 3))
    )
    for part in PLANS
    if part != TUNED
}
QUICK_KEYS = {DEEP: ("lon", "lon-deep", "gcn-deep"), ARCS: ("lon",), PUBLISHED: ("cited-scores",)}


def rows_of(part: str, graph: str) -> tuple[str, ...]:
    """The rows of a graph in a part."""
    return _BY_GRAPH[part][graph] if part in _BY_GRAPH else KEYS[part]
