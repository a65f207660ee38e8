"""Table 3: every model on the ten graphs, one protocol and one search budget for all.

Baselines are in the form of their own papers. LON-GNN has five rows: one whose form is searched
too, the same with the forms that came later, the first with more trials, the paper's form, and the
untuned default. Both versions of Cornell are there, by name.
"""

from pathlib import Path

from lab.records import StudyRecord
from lab.studies._core._context import Context, record_path
from lab.studies._core._printed import ACCURACY
from lab.studies._core._protocol import (
    PAPER,
    TEN,
    ConfigTable,
    Results,
    Row,
    Space,
    read_results,
    run_rows,
)
from lab.studies._core._scores import accuracy_table, difference_table, percent, save_dot_plot
from lab.studies._core._table import ResultTable
from longnn.metrics import summarize
from longnn.registry import FEATURES_FORM, PAPER_FORM

TITLE = "Table 3: accuracy of every model, one protocol, one search budget"
ORDER = 20

DATASETS = PAPER
#: One filter for all channels, with coefficients of its own that start between a strong low-pass
#: and the identity. Orthonormal polynomials are large at the ends of the spectrum, where the rates
#: of the space, which suit other bases, would make such a filter jump: it learns at slower ones.
_SHARED: Space = {
    "weight": "probability",
    "placement": "output",
    "coefficients": "free",
    "shared": True,
    "restart": {"choices": [0.1, 0.3, 1.0]},
    "lr_coefficients": {"choices": [5e-4, 1e-3, 2e-3, 5e-3]},
    "lr_basis": {"choices": [5e-4, 2e-3, 0.01]},
}
#: Forms of LON-GNN between which validation decides: one filter for all channels or one for each,
#: on class channels or hidden ones, self loops added or not.
FORMS: tuple[Space, ...] = (
    _SHARED,
    {**_SHARED, "self_loops": "add"},
    {**PAPER_FORM, "weight": "probability"},
    {**PAPER_FORM, "weight": "probability", "placement": "hidden"},
)
#: The same, and an MLP of filtered features, with a filter on its scores or without.
ALL_FORMS: tuple[Space, ...] = (
    *FORMS,
    {**_SHARED, **FEATURES_FORM},
    {**_SHARED, **FEATURES_FORM, "placement": "both"},
)
#: The winners of the common budget lay at the edge of these.
_WIDER: Space = {
    "filter_dropout": {"choices": [0.0, 0.2, 0.4, 0.6, 0.8]},
    "lr_coefficients": {"choices": [0.002, 0.005, 0.01, 0.02, 0.05]},
}
ROWS = {
    "lon": Row("LON-GNN", "lon", forms=FORMS),
    "lon-forms": Row("LON-GNN, all forms", "lon", forms=ALL_FORMS),
    "lon-full": Row("LON-GNN, 256 trials", "lon", forms=FORMS, searched=_WIDER, budget=4),
    "lon-paper": Row("LON-GNN, paper's form", "lon", fixed=PAPER_FORM, leave_dropout_on=True),
    "lon-default": Row("LON-GNN, untuned", "lon", tuned=False),
    "jacobi": Row("JacobiConv", "jacobi"),
    "bern": Row("BernNet", "bern"),
    "gpr": Row("GPRGNN", "gpr"),
    "cheb": Row("ChebNet", "cheb"),
    "appnp": Row("APPNP", "appnp"),
    "gcn": Row("GCN", "gcn"),
    "cheb2": Row("ChebNetII", "cheb2"),
    "even": Row("EvenNet", "even"),
    "favard": Row("FavardGNN", "favard"),
    "optbasis": Row("OptBasisGNN", "optbasis"),
    "arma": Row("ARMA", "arma"),
    "sgc": Row("SGC", "sgc"),
    "mlp": Row("MLP", "mlp"),
}
LABELS = {key: row.label for key, row in ROWS.items()}
#: The rows of LON-GNN that were searched for.
OWN = tuple(key for key, row in ROWS.items() if row.model == "lon" and row.tuned)


def run(context: Context) -> None:
    """Search, confirm and report every model on every graph, as far as the records lack it."""
    run_rows(context, ROWS, DATASETS)


def tables(folder: Path) -> list[ResultTable]:
    """Accuracies, paired differences, how the choices held up, and the untuned defaults."""
    results = read_results(folder)
    return [
        accuracy_table(
            results,
            LABELS,
            "accuracy",
            "Test accuracy in %, mean ± half the 95 % bootstrap interval over the published "
            "splits (seeds 0 to 9); the best of each column in bold. The average rank is over "
            "the graphs that a row has, among the other models, each by its row of 64 trials.",
            {key: row.model for key, row in ROWS.items()},
        ),
        difference_table(
            results,
            LABELS,
            "lon",
            "differences",
            "Accuracy minus that of LON-GNN on the same splits, in points, mean and 95 % "
            "bootstrap interval; bold if the interval excludes zero.",
        ),
        _selection(folder, results),
        _untuned(results),
    ]


def _form(config: ConfigTable) -> str:
    """Where the filter acts, after what, and how many there are.

    >>> _form({"placement": "output", "shared": True, "self_loops": "add"})
    'output, one filter, self loops'
    """
    transform = "" if config.get("transform", "mlp") == "mlp" else f", {config['transform']}"
    shared = ", one filter" if config.get("shared") else ""
    loops = ", self loops" if config.get("self_loops") == "add" else ""
    return str(config["placement"]) + transform + shared + loops


def _selection(folder: Path, results: Results) -> ResultTable:
    """What the choice was made by, and how it held up."""
    rows = []
    for d, cells in results.items():
        record = StudyRecord.load(record_path(folder, d))
        for key in OWN:
            cell = cells.get(key)
            if cell is None or cell.search is None:
                continue
            winner = cell.search.winner
            rows.append(
                [
                    f"{d}, {LABELS[key]}",
                    f"{100 * winner.search:.2f}",
                    f"{percent(winner.confirmed):.2f}",
                    f"{percent(cell.val):.2f}",
                    f"{percent(cell.test):.2f}",
                    _form(cell.config),
                    f"{record.made(key).seconds:.0f}",
                ]
            )
    return ResultTable(
        "selection",
        "How the choices held up: validation accuracy in % in the search, on the further tuning "
        "splits that decided, and on the reported splits, then the test accuracy; the form "
        "chosen; seconds for search, confirmation and report.",
        ["graph, model", "search", "confirmed", "reported val.", "test", "form", "seconds"],
        rows,
    )


def _untuned(results: Results) -> ResultTable:
    """The default configuration against the paper's LON-GNN."""
    rows = []
    for d in TEN:
        cell = results.get(d, {}).get("lon-default")
        if cell is not None:
            s = summarize([100 * v for v in cell.test])
            difference = s["mean"] - ACCURACY["lon"][d]
            rows.append(
                [
                    d,
                    f"{s['mean']:.2f}",
                    f"{s['low']:.2f} to {s['high']:.2f}",
                    f"{percent(cell.val):.2f}",
                    f"{ACCURACY['lon'][d]:.2f}",
                    f"{difference:+.2f}",
                ]
            )
    return ResultTable(
        "untuned",
        "LON-GNN with the package's defaults, nothing tuned: test accuracy in % over the ten "
        "published splits, against the paper's tuned LON-GNN.",
        ["graph", "test", "95 % interval", "validation", "paper's LON-GNN", "difference"],
        rows,
    )


def draw(folder: Path) -> list[Path]:
    """Mean and interval of every model on every graph."""
    return save_dot_plot(folder, read_results(folder), LABELS, OWN, "accuracy")
