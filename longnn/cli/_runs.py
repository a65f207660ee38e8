"""Commands that use runs: predict, evaluate, explain, export, compare, explore."""

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import longnn
from longnn.cli import _display
from longnn.cli._base import (
    Cache,
    Coverage,
    DataDir,
    DataOption,
    Json,
    KnownAnswers,
    Memory,
    Nodes,
    Run,
    check_output,
    err,
    load_dataset,
    out,
    print_json,
    read_memory,
    read_source,
    show_notes,
)
from longnn.metrics import METRICS, metric_of

if TYPE_CHECKING:
    from longnn.data import NodeDataset
    from longnn.explain import Explanation

#: Nodes that are printed one by one; the others are in the files.
PRINTED = 10
#: Scores of each category that are printed, the headline first.
SHOWN = 3
#: As in :mod:`longnn.explorer`, which is not loaded for a page of help.
NODES = 5000


def predict(
    run: Run,
    graph: Annotated[
        str | None,
        typer.Argument(help="Name or files of a new graph (default: the run's own graph)."),
    ] = None,
    nodes: Nodes = None,
    add: Annotated[
        Path | None,
        typer.Option(
            metavar="NEW",
            help="Folder with new nodes and all edges that touch them: predict these in the graph.",
        ),
    ] = None,
    old: Annotated[bool, typer.Option("--old", help="With --add: the old nodes, too.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            help="CSV file to write, with a Parquet file beside it, or a Parquet file alone "
            "(default: in the run folder)."
        ),
    ] = None,
    repeat_index: Annotated[
        int | None,
        typer.Option(help="Predict with one repeat, counted from 0 (default: the mean of all)."),
    ] = None,
    coverage: Coverage = None,
    known_answers: KnownAnswers = "auto",
    data_dir: DataDir = None,
    data_option: DataOption = None,
    memory: Memory = None,
    cache: Cache = None,
) -> None:
    """Predict with a finished run: its own graph, new nodes in it (--add), or another graph."""
    from longnn.runs._folder import folder_name
    from longnn.runs._new import added, only_new
    from longnn.runs._predictions import write_predictions

    if old and add is None:
        raise ValueError("Expected --add where --old is given (got none)")
    loaded = _load_run(run, data_dir, memory, cache)
    dataset = _dataset(loaded, graph, nodes, data_option, data_dir, memory, cache, add=add)
    alone = "" if repeat_index is None else f"-repeat-{repeat_index}"
    name = dataset.name if add is None else add.resolve().name
    target = output or run / f"predictions-{folder_name(name)}{alone}.csv"
    check_output(target, "--output", (".csv", ".parquet"))
    other = None if graph is None and add is None else dataset
    tables = loaded.tables(
        repeat_index,
        other,
        memory=read_memory(memory),
        coverage=coverage,
        known_answers=known_answers,
    )
    if add is not None:
        lonely = int((dataset.degrees.numpy()[added(dataset)] == 0).sum())
        if lonely:
            show_notes([f"New nodes without an edge are predicted by their columns: {lonely:,}."])
        tables = only_new(tables, dataset, old=old)
    rows, paths = write_predictions(tables, target)
    how = ""
    if repeat_index is not None:
        how = f" of repeat {repeat_index}"
    elif loaded.trained.repeats > 1:
        how = f", each the mean of {loaded.trained.repeats} repeats"
    files = " and ".join([str(paths[0]), *(path.name for path in paths[1:])])
    out.print(f"{rows} predictions{how}: {files}")
    if loaded.known:
        out.print(f"known answers: {loaded.known}")
    show_notes(filter(None, [loaded.outside]))
    used = any(one.used for one in loaded.trained.known)
    if used and (known_answers == "none" or loaded.known.startswith("none")):
        show_notes(["Intervals were learned with known answers; without them they are too narrow."])


def evaluate(
    run: Run,
    graph: Annotated[
        str | None,
        typer.Argument(
            help="Name or files of a graph with labels that came later: these are scored alone "
            "(default: the run's own graph and sets)."
        ),
    ] = None,
    nodes: Nodes = None,
    another: Annotated[
        bool,
        typer.Option(
            "--another", help="The nodes of the graph are others than the run's with the same ids."
        ),
    ] = False,
    known_answers: KnownAnswers = "same",
    data_dir: DataDir = None,
    data_option: DataOption = None,
    memory: Memory = None,
    cache: Cache = None,
    json_: Json = False,
    truncate: Annotated[
        bool,
        typer.Option("--truncate", help="Show the scores with shorter filters against their cost."),
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Show the scores of test nodes by category, such as by state."
        ),
    ] = None,
) -> None:
    """Score a finished run again, or on labels that came later; with --by in each category."""
    from longnn._base.schema import to_plain  # it loads NumPy

    if graph is None and another:
        raise ValueError("Expected a graph where --another is given (got none)")
    if graph is not None and (truncate or by is not None):
        option = "--truncate" if truncate else "--by"
        raise ValueError(f"Expected {option} without a graph (got both)")
    loaded = _load_run(run, data_dir, memory, cache)
    if truncate:
        _show_truncation(loaded, json_)
        return
    if by is not None:
        _show_by(loaded, by, json_)
        return
    other = None
    if graph is not None:
        other = _dataset(loaded, graph, nodes, data_option, data_dir, memory, cache)
    scores, summary = loaded.evaluate(other, another=another, known_answers=known_answers)
    shown = {"training": "train", "validation": "val", "test": "test"}
    if graph is not None:
        shown = {"came later": "test"}
        show_notes(filter(None, [loaded.outside]))
    if json_:
        seeds = range(loaded.config.seed, loaded.config.seed + len(scores))
        repeats = [{"seed": s, "scores": each} for s, each in zip(seeds, scores, strict=True)]
        plain = {"repeats": repeats, "summary": to_plain(summary)}
        print_json(plain if graph is None else {**plain, "scored": loaded.scored})
        return
    rows = []
    for metric in dict.fromkeys(metric for means in summary.values() for metric in means):
        cells = [
            longnn.report.interval_text(summary[part][metric], metric)
            if metric in summary[part]
            else ""
            for part in shown.values()
        ]
        rows.append([metric_of(metric).name, *cells])
    out.print(_display.table(["", *shown], rows, right={1, 2, 3}))
    if graph is not None:
        out.print(f"scored: {loaded.scored}")


def _show_by(run: "longnn.runs.Run", column: str, json_: bool) -> None:
    """The scores of each category of a column."""
    rows = run.scores_by(column).to_pylist()
    if json_:
        print_json({"by": column, "categories": rows})
        return
    metrics = [m for m in dict.fromkeys([run.record.metric, *METRICS]) if m in rows[0]][:SHOWN]
    cells = [
        [row[column], f"{row['test nodes']:,}"]
        + [longnn.report.score_text(math.nan if row[m] is None else row[m], m) for m in metrics]
        for row in rows
    ]
    head = [column, "test nodes", *(metric_of(metric).name for metric in metrics)]
    out.print(_display.table(head, cells, right=set(range(1, len(head)))))


def _show_truncation(run: "longnn.runs.Run", json_: bool) -> None:
    """Scores against products; the mean over the repeats, the degrees of the first."""
    repeats = run.truncation()
    if json_:
        plain = [[dataclasses.asdict(point) for point in curve] for curve in repeats]
        print_json({"repeats": plain})
        return
    watched = run.config.settings.monitor
    metric = watched if watched in repeats[0][0].val else run.record.metric
    rows = []
    for points in zip(*repeats, strict=True):  # one of every repeat, at one share
        scores = [
            sum(getattr(point, part)[metric] for point in points) / len(points)
            if metric in getattr(points[0], part)
            else math.nan
            for part in ("val", "test")
        ]
        rows.append(
            [
                f"{100 * points[0].share:g} %",
                f"{sum(point.products for point in points) / len(points):g}",
                *(longnn.report.score_text(score, metric) for score in scores),
                " ".join(map(str, points[0].degrees)),
            ]
        )
    columns = ["norm² kept", "products", "validation", "test", "degrees of the filters"]
    out.print(f"{metric_of(metric).name} with truncated filters, nothing trained again")
    out.print(_display.table(columns, rows, right={0, 1, 2, 3}))


def explain(
    run: Run,
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NODE]...",
            help="Ids of nodes to explain (default: all predictions at once).",
        ),
    ] = None,
    output_name: Annotated[
        str | None,
        typer.Option(
            "--class", help="Class, label or target to explain (default: the predicted class)."
        ),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Another class, whose score is subtracted.")
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(help="Name or files of a new graph (default: the run's own graph)."),
    ] = None,
    nodes: Annotated[
        Path | None, typer.Option(help="Node file, if the new graph is an edge file.")
    ] = None,
    repeat_index: Annotated[
        int | None,
        typer.Option(help="Explain one repeat, counted from 0 (default: the average of all)."),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(help="Without nodes: how many to count distances over."),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            min=1, help="Rows of each printed table (default: 10); without nodes, names (5)."
        ),
    ] = None,
    features: Annotated[
        bool, typer.Option("--features/--no-features", help="Split by feature, too.")
    ] = True,
    output: Annotated[
        Path | None, typer.Option(help="Tables to write: .csv, .parquet or .json.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Page to write, with every neighbourhood drawn.")
    ] = None,
    known_answers: KnownAnswers = "auto",
    data_dir: DataDir = None,
    data_option: DataOption = None,
    memory: Memory = None,
    cache: Cache = None,
    json_: Json = False,
) -> None:
    """Say why a node is predicted so; without nodes, what all predictions come from.

    Exact for a filter on class scores; else by integrated gradients, with the gap shown.
    """
    from longnn.explain._nodes import check_path
    from longnn.explain._subject import find_ids

    if output is not None:
        check_path(output)
    if html is not None:
        if not ids:
            raise ValueError("Expected nodes for --html (got none): the page draws neighbourhoods")
        check_output(html, "--html", (".html", ".htm"))
    if not ids and (output_name is not None or against is not None):
        raise ValueError("Expected nodes where --class or --against is given (got none)")
    if ids and sample is not None:
        raise ValueError("Expected --sample without nodes (got both)")
    loaded = _load_run(run, data_dir, memory, cache)
    dataset = _dataset(loaded, graph, nodes, data_option, data_dir, memory, cache)
    known = "run" if graph is None and known_answers == "auto" else known_answers
    shared: dict[str, Any] = {"repeat": repeat_index, "features": features, "known": known}
    if ids:
        places = find_ids(dataset.ids, ids)
        explained: Any = longnn.explain.explain_nodes(
            loaded.trained, dataset, places, output=output_name, against=against, **shared
        )
    else:
        with _display.work_progress(err, quiet=json_) as on_progress:
            shared |= {"sample": sample, "on_progress": on_progress}
            explained = (
                loaded.explain(**shared)
                if graph is None
                else longnn.explain.explain_model(loaded.trained, dataset, **shared)
            )
    if json_:
        plain = {name: table.to_pylist() for name, table in explained.arrow().items()}
        print_json({**explained.about(), **plain}, default=str)
    elif ids:
        _show_nodes(explained, top or 10)
    else:
        out.print(f"{explained.model}: {explained.method}")
        for line in explained.lines(top or 5):
            out.print(line)
        show_notes(explained.notes)
    if output is not None:
        _tell("tables", explained.save(output), json_)
    if html is not None:
        _tell("page", [explained.write_page(html)], json_)


def _load_run(
    folder: Path, data_dir: Path | None, memory: str | None, cache: Path | None
) -> "longnn.runs.Run":
    """A finished run, whose graph is read as the options say."""
    size = read_memory(memory)
    return longnn.runs.load_run(folder, data_dir=data_dir, memory=size, cache=cache)


def _tell(what: str, files: list[Path], quiet: bool) -> None:
    """Name the files that were written; to standard error where JSON is on standard output."""
    names = ", ".join([str(files[0]), *(file.name for file in files[1:])])
    (err if quiet else out).print(f"{what}: {names}")


def _dataset(
    run: "longnn.runs.Run",
    graph: str | None,
    nodes: Path | None,
    pairs: list[str] | None,
    data_dir: Path | None,
    memory: str | None,
    cache: Path | None,
    add: Path | None = None,
) -> "NodeDataset":
    """The graph of the run, or another one read as the run's was; with rows added, if any are."""
    from longnn.runs._new import CHANGED, grown, has_changed
    from longnn.store._disk import is_prepared

    if graph is None and add is None:
        return run.dataset
    source = run.source
    if graph is not None:
        trained_on, source = source, read_source(graph, nodes, pairs)
        if trained_on is not None and not is_prepared(source.graph):
            source = source.like(trained_on)
    if add is not None:
        source = grown(source, add)
        if graph is None and has_changed(run.source, lambda: run.dataset):
            show_notes([CHANGED])
    assert source is not None
    dataset = load_dataset(source, data_dir, memory, cache, like=run.trained.encoding)
    dataset = run.trained.encode(dataset)
    show_notes(dataset.notes)
    return dataset


def _show_nodes(explanation: "Explanation", top: int) -> None:
    from longnn.explain import _presentation as shown

    out.print(f"{explanation.model}: {explanation.method}")
    for e in explanation.nodes[:PRINTED]:
        out.print(f"\n{e.node}", style="bold")
        for line in shown.why(explanation, e):
            out.print(line)
        for _, columns, rows in shown.tables(explanation, e, top):
            _show_table(columns, rows)
        out.print(f"\nsum: {shown.sums(e)}")
    if len(explanation) > PRINTED:
        rest = len(explanation) - PRINTED
        out.print(f"\n{rest} more explained; --output and --html write all of them")
    show_notes(explanation.notes)


def _show_table(columns: list[str], rows: list[list[str]]) -> None:
    """Names and numbers below an empty line; nothing where there are none."""
    if rows:
        out.print()
        out.print(_display.table(columns, rows, right=set(range(1, len(columns)))))


def export(
    run: Run,
    path: Annotated[
        Path | None, typer.Argument(help="File to write (default: model.pt2 in the run folder).")
    ] = None,
) -> None:
    """Write a run as a program of PyTorch that predicts without longnn.

    It takes encoded features; scaling and normalisation are inside.
    """
    from longnn.runs._export import describe_program

    loaded = longnn.runs.load_run(run)
    written = loaded.export(path)
    about = describe_program(loaded.trained)
    inputs = ", ".join(f"{name} {text.partition(':')[0]}" for name, text in about["inputs"].items())
    output = about["output"].partition(", columns")[0]
    out.print(f"program: {written}")
    if any(one.used for one in loaded.trained.known):
        show_notes(["The program knows no answers: it is `longnn predict --known-answers none`."])
    out.print(f"call: torch.export.load(...).module()({inputs}) -> {output}")


def compare(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    output: Annotated[Path, typer.Option(help="HTML page to write.")] = Path("comparison.html"),
) -> None:
    """Compare runs in a table, and on one page."""
    from longnn.runs._folder import read_record

    records = longnn.report.name_apart([read_record(folder) for folder in folders])
    words = longnn.report.compare_words(records)
    for name, value in words.shared.items():
        out.print(f"{name}: {value}")
    out.print(_display.table(words.columns, words.rows))
    out.print("\nlearned filters", style="bold")
    for name, told in words.filters.items():
        out.print(f"  {name}: {told}")
    show_notes(longnn.report.cautions(records))
    page = longnn.report.write_comparison(records, output)
    out.print(f"\npage: {page}")


def explore(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    output: Annotated[
        Path | None, typer.Option(help="HTML page to write (default: explorer.html).")
    ] = None,
    node: Annotated[
        str | None, typer.Option(metavar="ID", help="Select this node; a large graph around it.")
    ] = None,
    limit: Annotated[int, typer.Option(help="Most nodes of a graph on the page.")] = NODES,
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Serve the page on this machine alone, until Ctrl-C."),
    ] = False,
    port: Annotated[int, typer.Option(help="Of --serve; 0 for any that is free.")] = 0,
    data_dir: DataDir = None,
    memory: Memory = None,
    cache: Cache = None,
) -> None:
    """Write one page to explore a run: its graph, why each node is predicted so, its filters.

    The page opens offline. Of a graph larger than the limit it shows the nodes around one.
    """
    if serve and output is not None:
        raise ValueError("Expected --output or --serve (got both): a served page is not written")
    if not 0 <= port < 65536:
        raise ValueError(f"Expected --port from 0 to 65535 (got {port})")
    runs = [_load_run(folder, data_dir, memory, cache) for folder in folders]

    def data(centre: str | None) -> dict[str, object]:
        page: dict[str, object] = longnn.explorer.collect(runs, limit=limit, node=centre)
        return page

    if not serve:
        _write_explorer(data(node), output or Path("explorer.html"))
        return

    def page(asked: str | None) -> str:
        return longnn.explorer.render({**data(node if asked is None else asked), "served": True})

    with longnn.explorer.make_server(page, port) as server:
        host, bound = server.socket.getsockname()
        out.print(f"serving on http://{host}:{bound}/ (stop with Ctrl-C)")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            err.print("stopped")


def _write_explorer(data: dict[str, object], target: Path) -> None:
    path = longnn.explorer.write_explorer(data, check_output(target, "--output"))
    graphs = data["graphs"]
    assert isinstance(graphs, list)
    for graph in graphs:
        if len(graph["ids"]) < graph["nodes"]:
            centre = "one of them, choose it with --node" if data["node"] is None else data["node"]
            err.print(
                f"note: {graph['name']} has {graph['nodes']:,} nodes; the page has the "
                f"{len(graph['ids']):,} nearest to {centre}; --serve shows any"
            )
    out.print(f"page: {path} ({path.stat().st_size / 1e6:.1f} MB)")
