"""Small pictures as SVG: no library, no script, colours from the page's style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan

from markupsafe import Markup, escape

from privsyn.marginals.types import Floats

WIDTH, HEIGHT = 320, 120
LINE = 22
"""Height of one value's two bars."""

ROW = 16
"""Height of one count."""

LETTERS = 18
"""Of a label; a longer one is cut, and whole in its tooltip."""


def histogram(labels: Sequence[str], real: Floats, synthetic: Floats) -> Markup:
    """Real shares as filled bars, synthetic ones as a line of steps over them."""
    top = max(float(real.max()), float(synthetic.max()), 1e-12)
    step = WIDTH / len(labels)
    base = HEIGHT - 18
    heights = [share / top * (base - 4) for share in (real, synthetic)]
    filled = [
        f'<rect class="real" x="{place * step:.1f}" y="{base - high:.1f}" width="{max(step - 1, 0.6):.1f}"'
        f' height="{high:.1f}"><title>{escape(labels[place])}: real {real[place]:.2%},'
        f" synthetic {synthetic[place]:.2%}</title></rect>"
        for place, high in enumerate(heights[0])
    ]
    path = f"M0 {base}" + "".join(
        f"V{base - high:.1f}H{(place + 1) * step:.1f}" for place, high in enumerate(heights[1])
    )
    first, last = labels[0].partition(" to ")[0], labels[-1].rpartition(" to ")[2]
    return _svg(
        HEIGHT,
        *filled,
        f'<path class="step" d="{path}V{base}"/>',
        f'<line class="axis" x1="0" x2="{WIDTH}" y1="{base}" y2="{base}"/>',
        f'<text x="0" y="{HEIGHT - 4}">{escape(first)}</text>',
        f'<text x="{WIDTH}" y="{HEIGHT - 4}" text-anchor="end">{escape(last)}</text>',
    )


def bars(labels: Sequence[str], real: Floats, synthetic: Floats) -> Markup:
    """Two thin bars for each value: real above, synthetic below."""
    top = max(float(real.max()), float(synthetic.max()), 1e-12)
    left, right = 122, 42
    parts = []
    for place, (label, ours, theirs) in enumerate(zip(labels, real, synthetic, strict=True)):
        y = place * LINE + 4
        short = label if len(label) <= LETTERS else f"{label[: LETTERS - 1]}…"
        wide = [share / top * (WIDTH - left - right) for share in (ours, theirs)]
        parts += [
            f"<g><title>{escape(label)}: real {ours:.2%}, synthetic {theirs:.2%}</title>",
            f'<text x="{left - 8}" y="{y + 11}" text-anchor="end">{escape(short)}</text>',
            f'<rect class="real" x="{left}" y="{y}" width="{wide[0]:.1f}" height="7"/>',
            f'<rect class="synthetic" x="{left}" y="{y + 8}" width="{wide[1]:.1f}" height="7"/>',
            f'<text x="{WIDTH}" y="{y + 11}" text-anchor="end">{ours:.1%}</text></g>',
        ]
    return _svg(len(labels) * LINE + 6, *parts)


def whiskers(labels: Sequence[str], estimate: Floats, low: Floats, high: Floats) -> Markup:
    """A bar for each count, and a line from one end of its interval to the other."""
    top = max(float(high.max()), float(estimate.max()), 1e-12)
    left, right = 122, 52
    parts = []
    for place, (label, count, least, most) in enumerate(zip(labels, estimate, low, high, strict=True)):
        y, middle = place * ROW + 4, place * ROW + 9
        short = label if len(label) <= LETTERS else f"{label[: LETTERS - 1]}…"
        wide, start, end = (part / top * (WIDTH - left - right) for part in (count, least, most))
        parts += [
            f"<g><title>{escape(label)}: {count:,.0f}, between {least:,.0f} and {most:,.0f}</title>",
            f'<text x="{left - 8}" y="{middle + 4}" text-anchor="end">{escape(short)}</text>',
            f'<rect class="synthetic" x="{left}" y="{y}" width="{wide:.1f}" height="10"/>',
            f'<path class="whisker" d="M{left + start:.1f} {middle}H{left + end:.1f}"/>',
            f'<text x="{WIDTH}" y="{middle + 4}" text-anchor="end">{count:,.0f}</text></g>',
        ]
    return _svg(len(labels) * ROW + 6, *parts)


def strip(numbers: Mapping[str, float], *, low: float) -> Markup:
    """Where the numbers lie on a line that begins at `low`: the synthetic one a disc, yardsticks ticks."""
    known = {which: value for which, value in numbers.items() if not isnan(value)}
    high = max(*known.values(), low + 1e-9)
    width, middle = 140, 9
    parts = [f'<line class="axis" x1="6" x2="{width - 6}" y1="{middle}" y2="{middle}"/>']
    for which, value in reversed(known.items()):
        x = 6 + max(0.0, (value - low) / (high - low)) * (width - 12)
        title = f"<title>{escape(which)}</title>"
        if which == "synthetic":
            parts.append(f'<circle class="synthetic" cx="{x:.1f}" cy="{middle}" r="4.5">{title}</circle>')
        else:
            kind = which.replace(" ", "-")
            parts.append(f'<line class="tick {kind}" x1="{x:.1f}" x2="{x:.1f}" y1="3" y2="15">{title}</line>')
    return Markup(f'<svg class="strip" viewBox="0 0 {width} 18" aria-hidden="true">{"".join(parts)}</svg>')  # noqa: S704


def _svg(height: int, *parts: str) -> Markup:
    # Every text in it was escaped above; the rest is numbers.
    return Markup(f'<svg viewBox="0 0 {WIDTH} {height}" role="img">{"".join(parts)}</svg>')  # noqa: S704
