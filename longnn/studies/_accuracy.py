"""Table 3: every model on the ten graphs, one protocol and one search budget for all.

The protocol is in :mod:`longnn.studies`. Baselines are in the form of their own papers;
of LON-GNN there is the paper's form, the one whose placement is searched too, and the untuned
default. Both Cornells are there, named.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longnn.registry import PAPER_FORM
from longnn.studies._paper import Context
from longnn.studies._published import ACCURACY
from longnn.studies._scores import Study, accuracy_table, difference_table, mean, save_dot_plot
from longnn.studies._study import TEN, Entry, read_study, run_entries
from longnn.studies._table import Table
from longnn.training import summarize

TITLE = "Table 3: accuracy of every model, one protocol, one search budget"

DATASETS = (*TEN, "cornell-legacy")
#: One filter for all channels, with coefficients of its own that start between a strong low-pass
#: and the identity. Orthonormal polynomials are large at the ends of the spectrum, where the rates
#: of the space, which suit other bases, would make such a filter jump: it learns at slower ones.
_SHARED: dict[str, Any] = {
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
FORMS: tuple[dict[str, Any], ...] = (
    _SHARED,
    {**_SHARED, "self_loops": "add"},
    {**PAPER_FORM, "weight": "probability"},
    {**PAPER_FORM, "weight": "probability", "placement": "hidden"},
)
#: The winners of the common budget stood at the edge of these.
_WIDER = {
    "filter_dropout": {"choices": [0.0, 0.2, 0.4, 0.6, 0.8]},
    "lr_coefficients": {"choices": [0.002, 0.005, 0.01, 0.02, 0.05]},
}
ENTRIES = {
    "lon": Entry("LON-GNN", "lon", forms=FORMS),
    "lon-full": Entry("LON-GNN, 256 trials", "lon", forms=FORMS, searched=_WIDER, effort=4),
    "lon-paper": Entry("LON-GNN, paper's form", "lon", fixed=PAPER_FORM, leave_dropout_on=True),
    "lon-default": Entry("LON-GNN, untuned", "lon", tuned=False),
    "jacobi": Entry("JacobiConv", "jacobi"),
    "bern": Entry("BernNet", "bern"),
    "gpr": Entry("GPRGNN", "gpr"),
    "cheb": Entry("ChebNet", "cheb"),
    "appnp": Entry("APPNP", "appnp"),
    "gcn": Entry("GCN", "gcn"),
    "cheb2": Entry("ChebNetII", "cheb2"),
    "even": Entry("EvenNet", "even"),
    "favard": Entry("FavardGNN", "favard"),
    "optbasis": Entry("OptBasisGNN", "optbasis"),
    "arma": Entry("ARMA", "arma"),
    "sgc": Entry("SGC", "sgc"),
    "mlp": Entry("MLP", "mlp"),
}
LABELS = {key: entry.label for key, entry in ENTRIES.items()}


def run(context: Context) -> None:
    """Search, confirm and report every model on every graph, as far as not done."""
    run_entries(context, ENTRIES, DATASETS)


def tables(folder: Path) -> list[Table]:
    study = read_study(folder)
    return [
        accuracy_table(
            study,
            LABELS,
            "accuracy",
            "Test accuracy in %, mean ± half the 95 % bootstrap interval over the published "
            "splits (seeds 0 to 9); the best of a column in bold. The average rank is over the "
            "graphs that a row has, each time among the rows of other models.",
            {key: entry.model for key, entry in ENTRIES.items()},
        ),
        difference_table(
            study,
            LABELS,
            "lon",
            "differences",
            "Accuracy minus that of LON-GNN on the same splits, in points, mean and 95 % "
            "bootstrap interval; bold where the interval leaves out zero.",
        ),
        _selection(study),
        _untuned(study),
    ]


def _form(config: Mapping[str, Any]) -> str:
    """Where the filter stands, after what, and how many there are."""
    transform = "" if config.get("transform", "mlp") == "mlp" else f", {config['transform']}"
    shared = ", one filter" if config.get("shared") else ""
    loops = ", self loops" if config.get("self_loops") == "add" else ""
    return str(config["placement"]) + transform + shared + loops


def _selection(study: Study) -> Table:
    """What the choice was made by, and how it held."""
    rows = []
    for d, parts in study.items():
        for key in ("lon", "lon-full", "lon-paper"):
            part = parts.get(key)
            if part is None:
                continue
            search = part["search"]
            chosen = search["finalists"][search["chosen"]]
            rows.append(
                [
                    f"{d}, {LABELS[key]}",
                    f"{100 * chosen['search']:.2f}",
                    f"{mean(chosen, 'confirmed'):.2f}",
                    f"{mean(part, 'val'):.2f}",
                    f"{mean(part):.2f}",
                    _form(part["config"]),
                    f"{part['made']['seconds']:.0f}",
                ]
            )
    return Table(
        "selection",
        "How the choice held: validation accuracy in % in the search, on the further tuning "
        "splits that decided, and on the reported splits, then the test accuracy; the form "
        "chosen; seconds for search, confirmation and report.",
        ["graph, model", "search", "confirmed", "reported val.", "test", "form", "seconds"],
        rows,
    )


def _untuned(study: Study) -> Table:
    """The default configuration against the paper's LON-GNN."""
    rows = []
    for d in TEN:
        part = study.get(d, {}).get("lon-default")
        if part is not None:
            s = summarize([100 * v for v in part["test"]])
            difference = s["mean"] - ACCURACY["lon"][d]
            rows.append(
                [
                    d,
                    f"{s['mean']:.2f}",
                    f"{s['low']:.2f} to {s['high']:.2f}",
                    f"{mean(part, 'val'):.2f}",
                    f"{ACCURACY['lon'][d]:.2f}",
                    f"{difference:+.2f}",
                ]
            )
    return Table(
        "untuned",
        "LON-GNN with the package's defaults, nothing tuned: test accuracy in % over the ten "
        "published splits, against the paper's tuned LON-GNN.",
        ["graph", "test", "95 % interval", "validation", "paper's LON-GNN", "difference"],
        rows,
    )


def draw(folder: Path) -> list[Path]:
    shown = ["lon", "lon-full", "lon-paper"]
    return save_dot_plot(folder, read_study(folder), LABELS, shown, "accuracy")
