"""The command line: it parses, calls and prints; it knows no mathematics.

Results go to standard output, everything else to standard error. A user's mistake is one line
and a non-zero exit, never a traceback (set LONGNN_DEBUG=1 to see it).
"""

import io
import sys
from typing import Annotated

import typer

from longnn._base.version import __version__
from longnn.cli._base import Command, Group, guarded, out
from longnn.cli._graphs import datasets, info, models, prepare, propagate
from longnn.cli._runs import compare, evaluate, explain, explore, export, predict
from longnn.cli._train import train, tune

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Predict answers that you lack, for things that are connected: from two tables to\n"
    "predictions, how sure they are, and why.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
#: In the order of the help.
COMMANDS = (
    *(info, train, predict, explain, explore, evaluate, compare, tune, export),
    *(datasets, models, prepare, propagate),
)
for command in COMMANDS:
    app.command(cls=Command)(guarded(command))


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if show:
        out.print(__version__)
        raise typer.Exit()


class WithoutPandas:
    """pyarrow and LightGBM load pandas wherever it is installed, and no command uses it: they find
    none, half a second earlier."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def main() -> None:
    """Entry point of the command ``longnn``."""
    sys.meta_path.insert(0, WithoutPandas)
    for stream in (sys.stdout, sys.stderr):  # names of nodes and classes, on any terminal
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="longnn")
