"""The fenced blocks of a page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^ *```([^\n]*)\n(.*?)^ *```", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    title: str
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for fence in FENCE.finditer(text):
        language, _, rest = fence[1].partition(" ")
        title = re.fullmatch(r'title="([^"]+)"', rest.strip())
        found.append(
            Block(language, title[1] if title else rest, fence[2], text[: fence.start()].count("\n") + 1)
        )
    return found
