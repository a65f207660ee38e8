"""``python -m lab``: repeat studies, time this machine, make random graphs, rebuild results."""

from pathlib import Path
from typing import Annotated

import typer

from lab.commands import bench, generate, large, study
from longnn.cli._base import Command, Group, guarded

PICTURE = Path("docs/_static/filters.svg")
app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Studies and benchmarks of longnn.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def results(
    root: Annotated[Path, typer.Argument(help="Root of the checkout.")] = Path(),
) -> None:
    """Make tables, figures, pages, recipes and portfolios again from the committed records."""
    from lab.bench import rebuild_bench
    from lab.large import rebuild
    from lab.studies import build, write_files

    rebuild_bench(root / "results" / "bench")
    rebuild(root / "results" / "large")
    write_files(build(root))


def picture(
    path: Annotated[Path, typer.Argument(help="SVG file to write.")] = PICTURE,
) -> None:
    """Train one model on two graphs and draw the picture of the README."""
    from lab.picture import write_picture

    print("picture:", write_picture(path))


def planted(context: typer.Context) -> None:
    """Plant bugs, one at a time, and say which the tests catch; --help shows the options."""
    from lab.planted.runner import main

    main(context.args)


for command in (study, bench, large, generate, results, picture):
    app.command(cls=Command)(guarded(command))
app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(planted)


def main() -> None:
    """Entry point of ``python -m lab``."""
    app(prog_name="python -m lab")


if __name__ == "__main__":
    main()
