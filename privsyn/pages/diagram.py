"""Draw tables and how they are linked, as SVG that also says everything in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap

from markupsafe import Markup

from privsyn.pages.sections import environment

WIDTH, LETTER = 350, 6.6
"""Width of the picture in pixels, so that a phone shows it in full size; and that of a letter, at most."""

INDENT, RAIL = 20, 14
"""How far a child is right of its parent; and the space at the right for the arrows to each look-up table."""

LINE, PADDING, GAP = 16, 8, 14
"""Height of a line of text; space around the text of a box; and space below a box."""


@dataclass(frozen=True)
class Box:
    """A table in the picture.

    Parameters
    ----------
    name : str
    lines : sequence of str
        Facts about it.
    parent : str, optional
        The table that it belongs to.
    label : str
        Facts about this link.
    lookups : mapping of a column to a table
        The look-up tables that columns lead to.
    public : bool
        Whether it is a look-up table.
    """

    name: str
    lines: Sequence[str]
    parent: str | None = None
    label: str = ""
    lookups: Mapping[str, str] = field(default_factory=dict)
    public: bool = False

    @property
    def sentence(self) -> str:
        """All that the picture says of the table."""
        links = [] if self.parent is None else [f"Each row belongs to a row of {self.parent} ({self.label})."]
        links += [f"Column {column} leads to {table}." for column, table in self.lookups.items()]
        return " ".join([f"{self.name}: {', '.join(self.lines)}.", *links])


def diagram(title: str, boxes: Sequence[Box]) -> Markup:
    """Draw a box for each table, each child below its parent with an arrow to it, look-up tables last.

    Parameters
    ----------
    title : str
    boxes : sequence of Box
        Each after its parent.

    Examples
    --------
    >>> homes, trips = Box("homes", ["about 20 rows"]), Box("trips", ["about 45 rows"], "homes", "link home")
    >>> drawn = diagram("Tables", [homes, trips])
    >>> "trips: about 45 rows. Each row belongs to a row of homes (link home)." in drawn
    True
    """
    tables = sorted(boxes, key=lambda box: box.public)
    public = [box.name for box in tables if box.public]
    rails = {name: WIDTH - RAIL * (index + 0.5) for index, name in enumerate(public)}
    placed: dict[str, Placed] = {}
    below = 2.0
    for box in tables:
        margin = 2.0 if box.parent is None else placed[box.parent].start + INDENT
        placed[box.name] = Placed(box, margin, WIDTH - RAIL * len(rails) - 2, below)
        below = placed[box.name].bottom + GAP
    arrows = [
        f"M{child.start:g} {child.middle:g}H{child.start - INDENT / 2:g}V{placed[child.box.parent].bottom:g}"
        for child in placed.values()
        if child.box.parent is not None
    ]
    dashed = [
        f"M{table.right:g} {table.middle:g}H{rails[name]:g}V{placed[name].middle:g}H{table.right:g}"
        for table in placed.values()
        for name in dict.fromkeys(table.box.lookups.values())
    ]
    values = {"title": title, "placed": [*placed.values()], "arrows": arrows, "dashed": dashed}
    size = {"width": WIDTH, "height": f"{below:g}", "line": LINE, "padding": PADDING}
    return Markup(environment().get_template("diagram.svg").render(values | size))  # noqa: S704


@dataclass(frozen=True)
class Placed:
    """A table at its place in the picture; `above` is the position where its own space begins."""

    box: Box
    start: float
    right: float
    above: float

    @property
    def label(self) -> list[str]:
        """The lines above the box, about the link."""
        return _wrapped(self.box.label, self.right - self.start) if self.box.parent else []

    @property
    def lines(self) -> list[str]:
        """The lines in the box, below its name."""
        leads = [f"{column} → {table}" for column, table in self.box.lookups.items()]
        width = self.width - 2 * PADDING
        return [line for text in (*self.box.lines, *leads) for line in _wrapped(text, width)]

    @property
    def name(self) -> str:
        """The name as far as it fits."""
        longest = int((self.width - 2 * PADDING) / (1.1 * LETTER))  # it is bold
        return self.box.name if len(self.box.name) <= longest else f"{self.box.name[: longest - 1]}…"

    @property
    def top(self) -> float:
        """Where the box begins."""
        return self.above + LINE * len(self.label)

    @property
    def width(self) -> float:
        """The width of the box."""
        return self.right - self.start

    @property
    def height(self) -> float:
        """The height of the box."""
        return LINE * (1 + len(self.lines)) + 2 * PADDING

    @property
    def middle(self) -> float:
        """Where arrows begin and end."""
        return self.top + self.height / 2

    @property
    def bottom(self) -> float:
        """Where the box ends."""
        return self.top + self.height


def _wrapped(text: str, width: float) -> list[str]:
    """Return the lines of a text that are hardly wider than `width`."""
    return wrap(text, max(int(width / LETTER), 8))
