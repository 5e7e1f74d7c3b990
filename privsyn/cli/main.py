"""Run one command of the command line. `main` turns every failure into one line and an exit code."""

from __future__ import annotations

import atexit
import gc
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import current_thread, main_thread
from traceback import walk_tb
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from privsyn.cli.ask import ask
from privsyn.cli.budget import budget
from privsyn.cli.collect import collect, contribute
from privsyn.cli.common.keeping import Note, StoppedError
from privsyn.cli.common.options import WRITES, spelling_of
from privsyn.cli.common.terminal import DONE, FAILED, INTERRUPTED, MISTAKE, say, say_text
from privsyn.cli.compile import compile as compile_loops
from privsyn.cli.evaluate import attack, drift, evaluate
from privsyn.cli.gallery import gallery
from privsyn.cli.open_app import app as open_app
from privsyn.cli.owner import owner
from privsyn.cli.plan import plan, sweep
from privsyn.cli.publish import catalogue, statement
from privsyn.cli.reconstruct import reconstruct
from privsyn.cli.sample import dummy, report, sample
from privsyn.cli.schema import randomize, schema
from privsyn.cli.survey import demo
from privsyn.cli.synth import synth
from privsyn.errors import CutWarning, DisagreementWarning, InputError, NoiseWarning, spelling
from privsyn.files import closing_files

PRINTED = (NoiseWarning, DisagreementWarning, CutWarning)
"""Warnings that are printed. Their texts say settings, names of files and released answers alone."""

RARELY = (200_000, 20, 100)
"""New objects, and collections of younger objects, before a collection of each generation."""

# Typer has no public name for the parent of all usage errors.
UsageError: Any = typer.BadParameter.__mro__[1]


class Commands(TyperGroup):
    """The list of commands, printed without Rich, whose import takes half of the time."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings | {"rich_markup_mode": None})

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command with its first paragraph, those of one purpose together."""
        for purpose, commands in COMMANDS.items():
            with formatter.section(purpose):
                helps = {name: self.commands[name].help or "" for name in commands}
                formatter.write_dl([(name, text.partition("\n\n")[0]) for name, text in helps.items()])


app = typer.Typer(
    cls=Commands,
    help="Make a differentially private synthetic table from a private one.",
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _by_name(*commands: Callable[..., None]) -> dict[str, Callable[..., None]]:
    return {command.__name__: command for command in commands}


COMMANDS: Mapping[str, Mapping[str, Callable[..., None]]] = {
    "Try without a private table": _by_name(demo, gallery, dummy),
    "Before a run": _by_name(schema, plan, budget),
    "Make a synthetic table": _by_name(synth, open_app, sample),
    "Use and publish a model": _by_name(ask, report, catalogue, statement),
    "Judge a synthetic table": _by_name(evaluate, attack, drift),
    "Rows of several owners or of contributors": _by_name(owner, contribute, collect, randomize),
    "Experiments and machines": _by_name(sweep, reconstruct, compile_loops),
}
"""All commands, by what they are for, as the help lists them."""

for commands in COMMANDS.values():
    for name, command in commands.items():
        app.command(name)(command)


def _freeze() -> None:
    """Let Python exit without a last collection, except where DuckDB would print each object that is left."""
    if "duckdb" not in sys.modules:
        gc.freeze()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return its exit code.

    Messages of Python and of libraries are never shown: a traceback, a warning or the text of an exception
    can quote a cell of the private table.

    Parameters
    ----------
    arguments : list of str, optional
        The arguments after ``privsyn``. Default: the arguments of this process.

    Returns
    -------
    int
        0 for success, 1 for a failed check or criterion or a defect of the program, 2 for an error of the
        user, 130 for Ctrl-C.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices are small: threads would only spin
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # the others keep 40 MB that they do not use
    try:
        with (
            warnings.catch_warnings(),
            spelling(spelling_of),
            _ended_as_by_ctrl_c(),
            _rare_collections(),
            closing_files(),
        ):
            warnings.simplefilter("ignore")
            for kind in PRINTED:
                warnings.simplefilter("always", kind)
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            code = app(args=arguments, prog_name="privsyn", standalone_mode=False)
    except InputError as error:
        return _complain(_with_notes(str(error), error), MISTAKE)
    except UsageError as error:
        text = error.format_message().rstrip(".")
        for technical, plain in _PLAIN.items():
            text = re.sub(f"Input should be {technical}", plain, text)
        command = error.ctx.command_path if error.ctx else "privsyn"
        if "No such option: --table" in text:
            text += "; only `privsyn synth` counts in a database"
        if error.ctx and OTHER_OUT.search(text):
            text += _where_to_write(error.ctx)
        return _complain(f"{text}; see {command} --help", MISTAKE)
    except StoppedError as error:
        return _complain(str(error), INTERRUPTED)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except OSError as error:
        return _complain(_with_notes(_failed_call(error), error), MISTAKE if error.errno else FAILED)
    except Exception as error:  # the text may quote a cell: never show it
        return _complain(_with_notes(_defect(error), error), FAILED)
    if code == INTERRUPTED:  # newer versions of Typer return this code for Ctrl-C
        return _complain("interrupted; no file is left half written", INTERRUPTED)
    return code or DONE


def _where_to_write(context: typer.Context) -> str:
    """Say how a command takes the file that it writes: ``--out``, the argument OUT, or other options."""
    parameters = context.command.params
    if any(getattr(parameter, "metavar", None) == "OUT" for parameter in parameters):
        return f"; the file to write is an argument, as in {context.command_path} ... OUT"
    if any("--out" in parameter.opts for parameter in parameters):
        return "; the file to write is called --out"
    written = [
        parameter.opts[0] for parameter in parameters if getattr(parameter, "rich_help_panel", None) == WRITES
    ]
    if not written:
        return f"; it writes no file that you name: {context.command_path} ... > FILE keeps what it prints"
    return f"; the options that write a file are {', '.join(written)}"


def _show_warning(warning: Warning | str, *_: object) -> None:
    if isinstance(warning, PRINTED):  # another text may quote a cell
        say(str(warning))


@contextmanager
def _ended_as_by_ctrl_c() -> Iterator[None]:
    """Handle SIGTERM, sent when a machine shuts down, like Ctrl-C: no file is left half written."""
    if current_thread() is not main_thread():  # other threads receive no signals
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Search for cyclic garbage less often, and not at all when the process ends.

    Libraries make half a million objects that stay. To look at them again and again takes a quarter of the
    time of `privsyn synth` on Adult.
    """
    before = gc.get_threshold()
    gc.set_threshold(*RARELY)
    atexit.unregister(_freeze)  # `main` may run many times in one process
    atexit.register(_freeze)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _complain(text: str, code: int) -> int:
    say(f"privsyn: {text}", err=True)
    return code


def _with_notes(text: str, error: Exception) -> str:
    """Return the text and our own notes on the error. Notes of libraries might quote a cell."""
    return "; ".join([text, *(note for note in getattr(error, "__notes__", ()) if isinstance(note, Note))])


OTHER_OUT = re.compile(r"No such option: (?:--out(?:put|file|-file|put-file)?|-o)(?![\w-])")
"""The error of an option that other programs have for the file that they write."""

_PLAIN = {
    "a valid integer.*": "give a whole number",
    "a valid number.*": "give a number, such as 1.5",
    "greater than or equal to": "give at least",
    "less than or equal to": "give at most",
}
"""Words of the library that reads options, and plainer words for each."""


def _failed_call(error: OSError) -> str:
    """Describe a failed system call. An error without a number comes from a library: do not show its text."""
    if not error.errno:
        return _defect(error)
    name = error.filename if isinstance(error.filename, str | os.PathLike) else "a file"
    return f"{os.fspath(name)}: {os.strerror(error.errno)}; check the path, its permissions and the disk"


def _defect(error: Exception) -> str:
    """Name the type of an error and the innermost line of this package: the text may quote a cell."""
    modules = ((frame.f_globals.get("__name__", ""), line) for frame, line in walk_tb(error.__traceback__))
    lines = [f"{module}:{line}" for module, line in modules if module.split(".")[0] == "privsyn"]
    line = lines[-1] if lines else "an unknown line"
    return f"internal error ({type(error).__name__} at {line}); please report it"


@app.callback(invoke_without_command=True)
def privsyn(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Print the version, or the help if there is no command."""
    if version:
        from importlib.metadata import version as installed_version

        say(f"privsyn {installed_version('privsyn')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        say_text(context.get_help())
