"""Draw small plots as SVG, without a library or a script; colours come from the page's style.

The axis of a histogram is linear, or stretched where most rows are, so that incomes are not all one bar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan

import numpy as np
import numpy.typing as npt
from markupsafe import Markup, escape

Floats = npt.NDArray[np.float64]

WIDTH, HEIGHT = 320, 120
BASE, TOP = HEIGHT - 18, 14
"""Vertical positions of the bottom and the top of bars; numbers are below and above."""

LETTER, MOST_TICKS = 5.5, 5
"""Width of a letter on the axis in pixels, and largest number of ticks."""

LEAST = 0.4
"""Smallest length of a bar, in percent of the longest one."""

TALL, CUT, REST = 3.0, 1.25, 0.02
"""A bar more than TALL times as high as the next is cut off at CUT times the next. This needs a share REST of
the rows in the other bars, so that a tail of pure noise is not magnified."""

CENTRAL, CROWDED = (0.1, 0.9), 0.25
"""The axis is stretched if the rows between these quantiles would cover less than this share of it."""

NARROWEST = 1 / 80
"""Smallest width of a bin, as a share of a stretched axis."""


@dataclass(frozen=True)
class Axis:
    r"""An axis from `low` to `high`.

    A stretched axis draws `x` at :math:`\operatorname{asinh}((x - m) / s)`. This is linear near the middle
    and logarithmic far from it, on both sides.

    Parameters
    ----------
    low, high : float
    middle : float
        ``m`` in the formula.
    spread : float
        ``s`` in the formula, the width of the linear part; infinite for a linear axis.

    Examples
    --------
    >>> incomes = np.array([10.0, 20, 30, 40, 50, 1000])
    >>> axis = Axis.of(0, 10_000, incomes, np.ones(6))
    >>> axis.stretched, axis.positions(np.array([0.0, 30, 30.5, 100, 10_000])).round(2).tolist()
    (True, [0.0, 0.15, 0.16, 0.4, 1.0])
    >>> Axis.of(0, 100, incomes, np.ones(6)).stretched
    False
    """

    low: float
    high: float
    middle: float = 0.0
    spread: float = inf

    @classmethod
    def of(cls, low: float, high: float, points: Floats, weights: Floats) -> Axis:
        """Return the axis for points, each with its number of rows as a weight."""
        if not weights.sum() > 0:
            return cls(low, high)
        first, middle, last = _quantiles(points, weights, (CENTRAL[0], 0.5, CENTRAL[1]))
        away = np.abs(points - middle)
        inner = weights * (away > 0)
        if last - first >= CROWDED * (high - low) or not inner.sum() > 0:
            return cls(low, high)
        return cls(low, high, float(middle), float(_quantiles(away, inner, (0.5,))[0]))

    @property
    def stretched(self) -> bool:
        """Whether the axis is not linear."""
        return isfinite(self.spread)

    def positions(self, edges: Floats) -> Floats:
        """Return the positions of the edges of bins, from 0 to 1; on a stretched axis no bin is invisible."""
        if not self.high > self.low:
            return np.linspace(0, 1, len(edges))
        widths = np.diff(self._transform(edges))
        if self.stretched:
            widths = np.maximum(widths, NARROWEST * widths.sum())
        return np.append(0.0, np.cumsum(widths)) / widths.sum()

    def edges(self, bins: int) -> Floats:
        """Return the edges of bins that are equally wide on the axis."""
        first, last = self._transform(np.array([self.low, self.high])).tolist()
        equal = np.linspace(first, last, bins + 1)
        return self.middle + self.spread * np.sinh(equal) if self.stretched else equal

    def _transform(self, points: Floats) -> Floats:
        return np.arcsinh((points - self.middle) / self.spread) if self.stretched else points


def _quantiles(points: Floats, weights: Floats, at: tuple[float, ...]) -> Floats:
    order = np.argsort(points, kind="stable")
    cumulative = np.cumsum(weights[order])
    ranks = np.searchsorted(cumulative, np.array(at) * cumulative[-1])
    return points[order][np.minimum(ranks, len(points) - 1)]


@dataclass(frozen=True)
class Bins:
    """The bins of a picture.

    Parameters
    ----------
    labels : sequence of str
        The range of each.
    positions : array
        Their edges on the axis, from 0 to 1.
    to_scale : bool
        Whether the axis is linear. Then the area of a bar is its count, on a stretched axis its height.
    """

    labels: Sequence[str]
    positions: Floats
    to_scale: bool

    @property
    def widths(self) -> Floats:
        """Return the widths of bars, at least a pixel: a narrower bar would be infinitely high."""
        return np.maximum(np.diff(self.positions), 1 / WIDTH)


def histogram(name: str, bins: Bins, real: Floats, synthetic: Floats) -> Markup:
    """Draw the real share of rows in each bin as a filled bar, and synthetic ones as steps over them."""
    heights, cut = _heights(np.stack([real, synthetic]), real, bins)
    bars = [
        f"<g><title>{escape(label)}: real {ours:.2%}, synthetic {theirs:.2%}</title>{bar}</g>"
        for label, ours, theirs, bar in zip(
            bins.labels, real.tolist(), synthetic.tolist(), _bars("real", bins, heights[0]), strict=True
        )
    ]
    marks = [_cut_mark(bins, index, f"{real[index]:.0%}") for index in cut]
    title = f"{name}: histogram of the real and the synthetic table"
    return _svg(title, *bars, _steps(bins, heights[1]), *marks, *_axis(bins))


def error_bars(
    name: str, bins: Bins, estimate: Floats, low: Floats, high: Floats, synthetic: Floats | None = None
) -> Markup:
    """Draw each count as a bar, and its interval as a whisker; those of synthetic rows as steps over them."""
    series = [estimate, low, high, *([] if synthetic is None else [synthetic])]
    heights, cut = _heights(np.stack(series), low, bins)
    middles = (bins.positions[:-1] + bins.positions[1:]) * WIDTH / 2
    bars = _bars("estimate", bins, heights[0])
    also = [""] * len(bins.labels)
    if synthetic is not None:
        also = [f"; {count:,.0f} synthetic rows" for count in synthetic]
    parts = [
        f"<g><title>{escape(label)}: {count:,.0f}, between {lowest:,.0f} and {highest:,.0f}{more}</title>"
        f'{bar}<path class="whisker" d="M{middle:.1f} {BASE - bottom:.1f}V{BASE - end:.1f}"/></g>'
        for label, count, lowest, highest, more, bar, middle, bottom, end in zip(
            bins.labels, estimate, low, high, also, bars, middles, *heights[1:3], strict=True
        )
    ]
    lines = [] if synthetic is None else [_steps(bins, heights[3])]
    marks = [_cut_mark(bins, index, f"{estimate[index]:,.0f}") for index in cut]
    beside = "" if synthetic is None else ", and steps of the counts of synthetic rows"
    return _svg(f"{name}: bars of estimated counts{beside}", *parts, *lines, *marks, *_axis(bins))


def percent_of(longest: float, length: float) -> str:
    """Return the length of a bar for the page's style; any positive length is visible.

    >>> percent_of(200.0, 50.0), percent_of(200.0, 1e-6), percent_of(200.0, 0.0)
    ('25.0%', '0.4%', '0.0%')
    """
    return f"{max(100 * length / longest, LEAST) if length > 0 else 0:.1f}%"


def strip(numbers: Mapping[str, float], *, low: float) -> Markup:
    """Draw numbers on a line that begins at `low`: the synthetic one as a disc, the others as ticks."""
    known_numbers = {which: value for which, value in numbers.items() if not isnan(value)}
    high = max(*known_numbers.values(), low + 1e-9)
    width, middle = 140, 9
    parts = [f'<line class="axis" x1="6" x2="{width - 6}" y1="{middle}" y2="{middle}"/>']
    for which, value in reversed(known_numbers.items()):
        x = 6 + max(0.0, (value - low) / (high - low)) * (width - 12)
        title = f"<title>{escape(which)}</title>"
        if which == "synthetic":
            parts.append(f'<circle class="synthetic" cx="{x:.1f}" cy="{middle}" r="4.5">{title}</circle>')
        else:
            kind = which.replace(" ", "-")
            parts.append(f'<line class="tick {kind}" x1="{x:.1f}" x2="{x:.1f}" y1="3" y2="15">{title}</line>')
    return Markup(f'<svg class="strip" viewBox="0 0 {width} 18" aria-hidden="true">{"".join(parts)}</svg>')  # noqa: S704


def heat_maps(name: str, labels: Sequence[str], real: Floats, synthetic: Floats) -> Markup:
    """Draw two matrices of shares side by side, the real one on the left; both on one scale of colour.

    Parameters
    ----------
    name : str
        A column.
    labels : sequence of str
        Of rows and columns: what comes first, and what comes then.
    real, synthetic : array of shape (labels, labels)
        Of what comes first, the share of each that comes then.
    """
    size, margin, gap = len(labels), 104, 12
    step = min((WIDTH - margin - gap) / 2 / size, 20.0)
    width = step * size
    largest = max(float(real.max()), float(synthetic.max()), 1e-12)
    parts = []
    for index, label in enumerate(labels):
        y = 28 + step * (index + 0.5) + 3
        begin, to, _ = label.partition(" to ")  # a range is known by where it begins
        short = f"{begin} …" if to else label
        short = short if len(short) <= 15 else f"{short[:14]}…"
        parts.append(f'<text x="{margin - 16}" y="{y:.1f}" text-anchor="end">{escape(short)}</text>')
        parts.append(f'<text x="{margin - 4}" y="{y:.1f}" text-anchor="end">{index + 1}</text>')
    for which, shares, x in (("real", real, margin), ("synthetic", synthetic, margin + width + gap)):
        parts.append(f'<text x="{x + width / 2:.1f}" y="10" text-anchor="middle">{which}</text>')
        for index, label in enumerate(labels):
            middle = x + step * (index + 0.5)
            parts.append(f'<text x="{middle:.1f}" y="24" text-anchor="middle">{index + 1}</text>')
            for row, first in enumerate(labels):
                share = float(shares[row, index])
                title = f"{which}: after {first}, {label} in {share:.1%}"
                parts.append(
                    f'<rect class="heat" x="{x + step * index:.1f}" y="{28 + step * row:.1f}"'
                    f' width="{step - 1:.1f}" height="{step - 1:.1f}"'
                    f' fill-opacity="{0.04 + 0.96 * share / largest:.3f}">'
                    f"<title>{escape(title)}</title></rect>"
                )
    title = f"{name}: what follows each value, in the real and in the synthetic table"
    return _svg(title, *parts, height=round(30 + step * size))


def dots(positions: Floats) -> Markup:
    """Draw points on a line from 0 to 1."""
    y = 9
    marks = [f'<circle class="synthetic" cx="{6 + x * (WIDTH - 12):.1f}" cy="{y}" r="4"/>' for x in positions]
    line = f'<line class="axis" x1="6" x2="{WIDTH - 6}" y1="{y}" y2="{y}"/>'
    return Markup(f'<svg viewBox="0 0 {WIDTH} 18" aria-hidden="true">{line}{"".join(marks)}</svg>')  # noqa: S704


def _heights(counts: Floats, sure: Floats, bins: Bins) -> tuple[Floats, list[int]]:
    """Return heights in pixels, and the bins that are cut off; `sure` bounds the rows of each from below."""
    if bins.to_scale:
        counts = counts / bins.widths
    tops = counts.max(axis=0)
    highest, second = int(tops.argmax()), float(np.sort(tops)[-2]) if len(tops) > 1 else 0.0
    tall = tops[highest] > TALL * second > 0 and sure.sum() - sure[highest] > REST * sure.sum()
    top = max(CUT * second if tall else float(tops[highest]), 1e-12)
    return np.minimum(counts / top, 1.0) * (BASE - TOP), [highest] if tall else []


def _bars(kind: str, bins: Bins, heights: Floats) -> list[str]:
    return [
        f'<rect class="{kind}" x="{x:.1f}" y="{BASE - high:.1f}" width="{max(width - 0.8, 0.8):.1f}"'
        f' height="{high:.1f}"/>'
        for x, width, high in zip(bins.positions * WIDTH, bins.widths * WIDTH, heights, strict=False)
    ]


def _steps(bins: Bins, heights: Floats) -> str:
    steps = "".join(
        f"V{BASE - high:.1f}H{end * WIDTH:.1f}" for high, end in zip(heights, bins.positions[1:], strict=True)
    )
    return f'<path class="step" d="M0 {BASE}{steps}V{BASE}"/>'


def _cut_mark(bins: Bins, index: int, text: str) -> str:
    """Draw two strokes through a bar that is cut off, and its value above it."""
    begin, right = (bins.positions[index : index + 2] * WIDTH).tolist()
    ends = f"{max(begin - 3, 0):.1f}", f"{min(right + 3, WIDTH):.1f}"
    strokes = "".join(f"M{ends[0]} {y}L{ends[1]} {y - 5}" for y in (26, 30))
    x, side = (begin, "start") if begin < WIDTH / 2 else (right, "end")
    number = f'<text x="{x:.1f}" y="10" text-anchor="{side}">{escape(text)}</text>'
    return f'<path class="cut" d="{strokes}"/>{number}'


def _axis(bins: Bins) -> list[str]:
    """Draw the axis, with numbers at its ends and, if there is space, between them."""
    labels, positions = bins.labels, bins.positions
    words = [*(label.partition(" to ")[0] for label in labels), labels[-1].rpartition(" to ")[2]]
    space = (max(map(len, words)) * LETTER + 8) / WIDTH
    taken, last = space, len(positions) - 1
    shown = [0]
    for wanted in np.linspace(0, 1, MOST_TICKS)[1:-1]:
        index = int(np.abs(positions - wanted).argmin())
        if taken <= positions[index] - space / 2 and positions[index] + space / 2 <= 1 - space:
            taken = positions[index] + space / 2
            shown.append(index)
    parts = [f'<line class="axis" x1="0" x2="{WIDTH}" y1="{BASE}" y2="{BASE}"/>']
    for index in (*shown, last):
        x, side = positions[index] * WIDTH, {0: "start", last: "end"}.get(index, "middle")
        parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{BASE}" y2="{BASE + 3}"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 4}" text-anchor="{side}">{escape(words[index])}</text>')
    return parts


def _svg(title: str, *parts: str, height: int = HEIGHT) -> Markup:
    # Every text was escaped above; the rest is numbers.
    return Markup(  # noqa: S704
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
    )
