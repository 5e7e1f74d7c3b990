"""Comments of a schema file that a person reviews."""

from __future__ import annotations

import re
from textwrap import wrap

WIDTH = 110
"""Characters of a comment."""

_UNBROKEN = re.compile(r"(: (?=[,}])|\w+: \[ \]|\{\w+: \w+\})")
"""A gap to be filled in, as `low: ,` or `[ ]`, and a short setting."""


def wrapped(remark: str) -> list[str]:
    """Return the lines of a comment. A gap to be filled in, as `low: ,` or `[ ]`, is not broken."""
    text = _UNBROKEN.sub(lambda gap: gap[0].replace(" ", "\xa0"), remark)
    lines = wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in lines]


def comment(remark: str) -> str:
    r"""Return a remark as comment lines of a schema file.

    >>> comment("one remark")
    '# one remark\n'
    """
    return "".join(f"# {line}\n" for line in wrapped(remark))
