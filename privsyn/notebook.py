"""What notebooks show: HTML of results, all text escaped, and a progress bar."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from privsyn.errors import InputError, printable, replace_errors
from privsyn.progress import Progress

ELSEWHERE = "progress_bar is for notebooks: elsewhere give a function such as print"


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
        style = (f" style='text-align:{'right' if place else 'left'}'" for place in range(len(cells)))
        return "".join(f"<{tag}{s}>{text_of(cell)}</{tag}>" for s, cell in zip(style, cells, strict=True))

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return f"<table><thead><tr>{row(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def progress_bar() -> Progress:
    """Return a progress bar for Jupyter notebooks, as the `progress` of `PrivSyn`, `sample` or `sweep`.

    Each stage has one line, which is updated in place. It needs no widgets.

    Raises
    ------
    InputError
        Outside a notebook.

    Examples
    --------
    >>> PrivSyn(1.0, progress=progress_bar()).fit(people)  # doctest: +SKIP
    """
    with replace_errors(ELSEWHERE, ImportError):
        from IPython import display, get_ipython
    if not hasattr(get_ipython(), "kernel"):
        raise InputError(ELSEWHERE)
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
