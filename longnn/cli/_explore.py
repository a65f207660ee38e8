"""The command that writes the page to explore runs, or serves it."""

from pathlib import Path
from typing import Annotated

import typer

import longnn
from longnn.cli._base import DataDir, err, out

#: As in :mod:`longnn.explorer`, which is not loaded for a page of help.
NODES = 5000


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
) -> None:
    """Write one page to explore runs: filters, basis, graph, and why a node is predicted so.

    The page opens offline. Of a graph larger than the limit it shows the nodes around one.
    """
    if serve and output is not None:
        raise ValueError("Expected --output or --serve (got both): a served page is not written")
    if not 0 <= port < 65536:
        raise ValueError(f"Expected --port from 0 to 65535 (got {port})")
    runs = [longnn.runs.load_run(folder, data_dir=data_dir) for folder in folders]

    def data(centre: str | None) -> dict[str, object]:
        found: dict[str, object] = longnn.explorer.collect(runs, limit=limit, node=centre)
        return found

    if not serve:
        _write(data(node), output or Path("explorer.html"))
        return

    def page(asked: str | None) -> str:
        return longnn.explorer.render({**data(node if asked is None else asked), "served": True})

    with longnn.explorer.make_server(page, port) as server:
        host, chosen = server.socket.getsockname()
        out.print(f"serving on http://{host}:{chosen}/ (stop with Ctrl-C)", markup=False)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            err.print("stopped", markup=False)


def _write(data: dict[str, object], target: Path) -> None:
    if not target.parent.is_dir():
        raise ValueError(f"Expected --output in an existing folder (got {target.parent})")
    path = longnn.explorer.write_explorer(data, target)
    graphs = data["graphs"]
    assert isinstance(graphs, list)
    for graph in graphs:
        if len(graph["ids"]) < graph["nodes"]:
            centre = "one of them, choose it with --node" if data["node"] is None else data["node"]
            err.print(
                f"note: {graph['name']} has {graph['nodes']:,} nodes; the page has the "
                f"{len(graph['ids']):,} nearest to {centre}; --serve shows any",
                markup=False,
            )
    out.print(f"page: {path} ({path.stat().st_size / 1e6:.1f} MB)", markup=False)
