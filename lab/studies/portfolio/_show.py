"""The tables of the study: who was chosen, what it is worth, and which way to join members."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.studies._core._context import load_records
from lab.studies._core._headline import best_in_bold, interval_of, metric_words, points
from lab.studies._core._joined import ONE as SINGLE
from lab.studies._core._joined import EnsemblesCell, Scored, read_ensembles
from lab.studies._core._printed import printed_cells
from lab.studies._core._protocol import PAPER
from lab.studies._core._scores import percent
from lab.studies._core._table import ResultTable
from lab.studies.portfolio._evaluation import (
    TEST,
    TESTED,
    EvaluationCell,
)
from lab.studies.portfolio._few import PRIORS, FewCell
from lab.studies.portfolio._graphs import GRAPHS
from lab.studies.portfolio._join import IN_USE, JOINED, SHIFTED, STRATEGIES
from lab.studies.portfolio._rows import NAMED, ONE, compared, paired
from lab.studies.portfolio._run import CANDIDATES, FEW, SELECTION, CandidatesCell
from lab.studies.portfolio._select import Selection
from lab.studies.portfolio._unseen_tables import unseen_tables
from longnn.config import Config
from longnn.config._config import AFTERWARDS

#: Without and with the shift towards the class frequencies of the validation nodes.
Pair = tuple[Scored, Scored]
_ENDS = ("", ", shifted")


def tables(folder: Path) -> list[ResultTable]:
    """Nothing before the choice is made."""
    chosen = load_records(folder, [SELECTION]).get(SELECTION)
    if chosen is None or SELECTION not in chosen:
        return []
    selection = chosen.get(SELECTION, Selection)
    records = load_records(folder, list(GRAPHS))
    cells = {name: record.get(CANDIDATES, CandidatesCell) for name, record in records.items()}
    found = load_records(folder, [f"test-{name}" for name in TESTED])
    tests = {
        name.removeprefix("test-"): record.get(TEST, EvaluationCell)
        for name, record in found.items()
    }
    graphs = {name: cell for name, cell in tests.items() if name in PAPER}
    own = {name: cell for name, cell in tests.items() if name not in PAPER}
    made = [_members(selection), _scores(selection, cells), _strategies(selection)]
    if FEW in chosen:
        made.append(_few(chosen.get(FEW, FewCell)))
    recipes = read_ensembles(folder.parent / "ensembles")
    if graphs:
        shown = {name: compared(cell, recipes.get(name)) for name, cell in graphs.items()}
        made += [_test(shown), _differences(shown), _families(graphs)]
    shifted = {
        name: _with_shift(cell, recipes.get(name))
        for name, cell in graphs.items()
        if cell.default_shifted is not None
    }
    if shifted:
        made += [_shifted(shifted), _in_use(shifted)]
    if own:
        made.append(_own(own))
    return [*made, *unseen_tables(folder)]


def differing(config: Config) -> str:
    """Where a configuration differs from the defaults of LON-GNN, as one line of text.

    >>> differing(Config.from_dict({"degree": 4, "lr_basis": 0.01}))
    'degree 4, lr_basis 0.01'
    """
    usual = {k: v for k, v in Config().to_dict().items() if k not in AFTERWARDS}
    found = {k: v for k, v in config.to_dict().items() if k in usual and v != usual[k]}
    return ", ".join(f"{k} {v:g}" if isinstance(v, float) else f"{k} {v}" for k, v in found.items())


def _members(selection: Selection) -> ResultTable:
    """Each member, what it is, and how often it is chosen with something left out."""
    rows = []
    for key, portfolio in selection.portfolios.items():
        for name in portfolio.members:
            again = [
                f"{sum(name in left for left in choices.values())} of {len(choices)}"
                for choices in (portfolio.without_kind, portfolio.without_graph)
            ]
            config = selection.config(name)
            text = differing(config) or "nothing"
            rows.append([name, NAMED[key], config.model, *again, text])
    return ResultTable(
        "members",
        "The members of both portfolios in the order of their choice; in how many of the choices "
        "without one kind, and without one graph, a member is chosen again; and where its "
        "configuration differs from the defaults of LON-GNN.",
        ["member", "of", "model", "without a kind", "without a graph", "differs"],
        rows,
    )


def _scores(selection: Selection, cells: Mapping[str, CandidatesCell]) -> ResultTable:
    """What it costs that a graph, or its kind, took no part in the choice."""
    rows = []
    for name, cell in cells.items():
        shown = [f"{percent(cell.holdout[cell.usual]):.1f}"]
        for portfolio in selection.portfolios.values():
            for where in (portfolio.inside, portfolio.outside_graph, portfolio.outside_kind):
                shown.append(f"{percent(where[name][JOINED]):.1f}" if name in where else "")
        shown.append(f"{100 * selection.oracle[name]:.1f}")
        rows.append([name, GRAPHS[name].kind, metric_words(cell.metric), *shown])
    ways = ("with the graph", "without it", "without its kind")
    titles = [f"{NAMED[key]} chosen {way}" for key in selection.portfolios for way in ways]
    return ResultTable(
        "scores",
        "Mean score in % on the selection holdout over the splits: one model with the defaults; "
        "each portfolio, joined by votes, chosen with the graph, without it and its recipes "
        "(where it has any), and without all graphs of its kind; and the best single candidate, "
        "known only afterwards.",
        ["graph", "kind", "score", "default", *titles, "oracle"],
        rows,
    )


def _titles(tests: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Everything that is compared on some graph; what a recipe reaches may be missing."""
    return list(dict.fromkeys(title for own in tests.values() for title in own))


def _means(found: Mapping[str, Scored], titles: Sequence[str]) -> list[str]:
    """Mean test scores in %, the best in bold; empty where there are none."""
    bold = best_in_bold([percent(scored.test) for scored in found.values()], 2)
    shown = dict(zip(found, bold, strict=True))
    return [shown.get(title, "") for title in titles]


def _test(tests: Mapping[str, Mapping[str, Scored]]) -> ResultTable:
    """Test scores on the graphs of the paper."""
    columns = _titles(tests)
    rows = [[name, *_means(own, columns), *printed_cells(name)] for name, own in tests.items()]
    return ResultTable(
        "test",
        "Mean test accuracy in % over ten published splits, the best of ours in bold: one model "
        "with the defaults; the portfolios that were chosen without the graph and its recipes, as "
        "their best member by validation and joined by votes; the graph's own recipe of LON-GNN, "
        "and eight seeds of it as plain average and joined by votes; and printed numbers: the "
        "paper's tuned LON-GNN, and the best found anywhere.",
        ["graph", *columns, "paper's LON-GNN", "best printed"],
        rows,
    )


def _shifted(tests: Mapping[str, Mapping[str, Pair]]) -> ResultTable:
    """What following the class frequencies of the validation nodes is worth."""
    columns = [title for name in _titles(tests) for title in (name + end for end in _ENDS)]
    rows = []
    for name, own in tests.items():
        both = {f"{t}{end}": s for t, two in own.items() for end, s in zip(_ENDS, two, strict=True)}
        rows.append([name, *_means(both, columns), *printed_cells(name)])
    return ResultTable(
        "shifted",
        "Mean test accuracy in % over ten published splits, the best of ours in bold: one model "
        "with the defaults, both portfolios chosen without the graph and joined as presets do, and "
        "one model of the graph's recipe, each as trained and then shifted towards the class "
        "frequencies of the validation nodes; and printed numbers, none of which was made so.",
        ["graph", *columns, "paper's LON-GNN", "best printed"],
        rows,
    )


def _in_use(tests: Mapping[str, Mapping[str, Pair]]) -> ResultTable:
    """What the shift gains, and paired differences between presets as they are in use."""
    small, large = NAMED["default"], NAMED["best"]
    pairs = [(small, "default"), (large, "default"), (large, small), (large, "recipe")]
    rows, named = [], _titles(tests)
    for name, both in tests.items():
        gains = {t: interval_of(points(after.test, old.test)) for t, (old, after) in both.items()}
        found = {title: after for title, (_, after) in both.items()}
        rows.append([name, *(gains.get(title, "") for title in named), *paired(found, pairs)])
    return ResultTable(
        "in_use",
        "What the shift gains, and then differences between what is shifted: points of test "
        "accuracy, split by split, mean and 95 % bootstrap interval over the ten splits, bold if "
        "it excludes zero.",
        [
            "graph",
            *(f"{name}, shifted minus as trained" for name in named),
            *(f"{one} minus {other}" for one, other in pairs),
        ],
        rows,
    )


def _with_shift(cell: EvaluationCell, own: EnsemblesCell | None) -> dict[str, Pair]:
    """What a preset is without and with the shift, by its title."""
    assert cell.default_shifted is not None
    found = {"default": (cell.default, cell.default_shifted)}
    for key, portfolio in cell.portfolios.items():
        found[NAMED[key]] = (portfolio.joined[IN_USE], portfolio.joined[SHIFTED])
    if own is not None:
        found["recipe"] = (own.rows[SINGLE][IN_USE], own.rows[SINGLE][SHIFTED])
    return found


def _differences(tests: Mapping[str, Mapping[str, Scored]]) -> ResultTable:
    """Paired differences between what the table of test scores compares."""
    small, large = NAMED["default"], NAMED["best"]
    pairs = [
        (small, "default"),
        (large, "default"),
        (large, small),
        ("recipe, votes on seeds", "recipe"),
        ("recipe, votes on seeds", "recipe, average of seeds"),
        (large, "recipe"),
        (large, "recipe, votes on seeds"),
    ]
    return ResultTable(
        "differences",
        "Differences in test accuracy, split by split, in points: mean and 95 % bootstrap interval "
        "over the ten splits, bold if it excludes zero.",
        ["graph", *(f"{one} minus {other}" for one, other in pairs)],
        [[name, *paired(own, pairs)] for name, own in tests.items()],
    )


def _families(tests: Mapping[str, EvaluationCell]) -> ResultTable:
    """Which family wins within the large portfolio."""
    known = {m: None for cell in tests.values() for m in cell.portfolios["best"].families}
    rows = []
    for name, cell in tests.items():
        own = cell.portfolios["best"].families
        shown = [
            f"{percent(own[m].equal.test):.2f} / {percent(own[m].whole.test):.2f} "
            f"({own[m].members})"
            if m in own
            else ""
            for m in known
        ]
        rows.append([name, *shown, f"{percent(cell.portfolios['best'].joined[JOINED].test):.2f}"])
    return ResultTable(
        "families",
        "Mean test accuracy in % of the members of one family in the large portfolio, joined by "
        "votes: of its first two members / of all (their number); and of the whole portfolio.",
        ["graph", *known, "all families"],
        rows,
    )


def _own(tests: Mapping[str, EvaluationCell]) -> ResultTable:
    """Test scores on tables that no choice has seen."""
    small, large = NAMED["default"], NAMED["best"]
    rows = []
    for name, cell in tests.items():
        found = compared(cell)
        means = [f"{percent(scored.test):.1f}" for scored in found.values()]
        gains = paired(found, [(small, "default"), (large, "default")])
        rows.append([name.removeprefix("table-"), metric_words(cell.metric), *means, *gains])
    columns = list(compared(next(iter(tests.values()))))
    return ResultTable(
        "own",
        "Mean test score in % over five stratified splits of tables that no choice has seen: one "
        "model with the defaults, the whole portfolios as their best member by validation and "
        "joined by votes; and their difference to one model in points with the 95 % bootstrap "
        "interval, bold if it excludes zero.",
        ["table", "score", *columns, f"{small} minus default", f"{large} minus default"],
        rows,
    )


def _strategies(selection: Selection) -> ResultTable:
    """The mean difference of each way to join members to the best single one by validation."""
    rows = []
    for key, portfolio in selection.portfolios.items():
        for strategy in STRATEGIES:
            gains = {
                name: percent(scores[strategy]) - percent(scores[ONE])
                for name, scores in portfolio.outside_kind.items()
            }
            values = list(gains.values())
            worst = min(gains, key=lambda name: gains[name])
            numbers = [
                f"{sum(values) / len(values):+.2f}",
                str(sum(value > 0.5 for value in values)),
                str(sum(value < -0.5 for value in values)),
            ]
            rows.append([strategy, NAMED[key], *numbers, f"{worst} {gains[worst]:+.1f}"])
    return ResultTable(
        "strategies",
        "Ways to join the members of a portfolio, minus its best member by validation: points on "
        "the selection holdout, mean over graphs, each with the portfolio chosen without its kind; "
        "on how many graphs it is better or worse by over half a point; and the worst graph.",
        ["joined by", "of", "mean", "better", "worse", "worst graph"],
        rows,
    )


def _few(cell: FewCell) -> ResultTable:
    """What a prior gains over none, by the number of validation nodes."""
    rows = []
    for nodes, by_prior in cell.scores.items():
        gains = [cell.gains(nodes, prior) for prior in by_prior if prior != "0"]
        rows.append([nodes, str(len(gains[0])), *(f"{sum(g) / len(g):+.2f}" for g in gains)])
    priors = [str(prior) for prior in PRIORS if prior]
    return ResultTable(
        "few",
        "Few validation nodes: the plain average of the better half counted as so many nodes, "
        "minus votes alone, in points on the selection holdout, mean over the graphs with enough "
        "nodes, each cut at ten points; four draws of the nodes of each split.",
        ["validation nodes", "graphs", *(f"counts as {prior}" for prior in priors)],
        rows,
    )


def draw(folder: Path) -> list[Path]:
    """No figures."""
    return []
