"""What notebooks show: HTML of results, all text escaped, and a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from html import escape
from typing import Any

from privsyn.errors import printable
from privsyn.progress import Progress

WIDTH = 30
"""Characters of a progress bar in a terminal."""


def text_of(value: object) -> str:
    """Return a value as HTML text, with everything escaped that a browser or a terminal may obey.

    >>> text_of("<b>age</b>")
    '&lt;b&gt;age&lt;/b&gt;'
    """
    return escape(printable(str(value)))


def html(title: str, lines: Iterable[object] = (), *tables: str) -> str:
    """Return a title, paragraphs and tables. Only the tables are HTML already."""
    paragraphs = "".join(f"<p style='margin:.2em 0'>{text_of(line)}</p>" for line in lines)
    return f"<div><strong>{text_of(title)}</strong>{paragraphs}{''.join(tables)}</div>"


def html_table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; its first column is aligned left.

    >>> "<td style='text-align:left'>&lt;</td>" in html_table(["a"], [["<"]])
    True
    """

    def row(cells: Sequence[object], tag: str) -> str:
        style = (f" style='text-align:{'right' if number else 'left'}'" for number in range(len(cells)))
        return "".join(f"<{tag}{s}>{text_of(cell)}</{tag}>" for s, cell in zip(style, cells, strict=True))

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return f"<table><thead><tr>{row(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def progress_bar() -> Progress:
    """Return a progress bar, as the `progress` of `PrivSyn`, `sample` or `sweep`.

    In a Jupyter notebook each stage has one line, which is updated in place; it needs no widgets. In a
    terminal it is a line of text. In a log or pipe, each stage has a line when it begins and when it ends.

    Examples
    --------
    >>> PrivSyn(1.0, progress=progress_bar()).fit(people)  # doctest: +SKIP
    """
    ipython = sys.modules.get("IPython")  # every notebook has imported it
    shell = None if ipython is None else ipython.get_ipython()
    return _notebook_bar() if hasattr(shell, "kernel") else _text_bar()


def _notebook_bar() -> Progress:
    from IPython import display

    ipython: Any = display
    shown: dict[str, Any] = {}

    def report(stage: str, done: int, total: int) -> None:
        bar = (
            f"<progress value='{int(done)}' max='{int(total)}'></progress> {done} of {total} {text_of(stage)}"
        )
        if stage in shown:
            shown[stage].update(ipython.HTML(bar))
        else:
            shown[stage] = ipython.display(ipython.HTML(bar), display_id=True)

    return report


def _text_bar() -> Progress:
    """Return a bar on standard error. That it cannot be written stops no run."""
    begun = [""]

    def report(stage: str, done: int, total: int) -> None:
        stream, text = sys.stderr, f"{printable(stage)}: {done} of {total}"
        with suppress(OSError, ValueError, AttributeError):  # closed, or a program without a console
            if stream.isatty():
                full = WIDTH * done // max(total, 1)
                line = "\n" * (begun[0] not in ("", stage))
                stream.write(f"{line}\r[{'#' * full}{'.' * (WIDTH - full)}] {text}" + "\n" * (done >= total))
            elif done >= total or begun[0] != stage:
                stream.write(f"{text}\n")
            stream.flush()
        begun[0] = "" if done >= total else stage

    return report
