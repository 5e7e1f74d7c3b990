"""The order in which people list values: low before high, 18-24 before 25-34, Monday before Tuesday."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import inf

from privsyn.table.encoding.bands import read_band

_STRENGTHS = ("very low", "low", "moderate", "medium", "middle", "average", "normal", "high", "very high")
_GRADES = tuple(f"{letter}{sign}" for letter in "abcdef" for sign in ("+", "", "-"))
_NUMERALS = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")

SCALES: tuple[tuple[str, ...], ...] = (
    ("none", "minimal", *_STRENGTHS, "extreme", "critical"),
    ("none", "mild", "moderate", "severe", "very severe", "critical"),
    ("very poor", "poor", "fair", "average", "good", "very good", "excellent", "outstanding"),
    ("very bad", "bad", "neutral", "ok", "good", "very good"),
    (
        *("never", "almost never", "rarely", "seldom", "occasionally", "sometimes", "often", "usually"),
        *("very often", "always"),
    ),
    (
        *("strongly disagree", "disagree", "somewhat disagree", "neutral", "neither agree nor disagree"),
        *("undecided", "somewhat agree", "agree", "strongly agree"),
    ),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("very unlikely", "unlikely", "neutral", "possible", "likely", "very likely"),
    (
        "not at all",
        "a little",
        "slightly",
        "somewhat",
        "moderately",
        "quite",
        "very",
        "very much",
        "extremely",
    ),
    ("xxs", "xs", "s", "m", "l", "xl", "xxl", "xxxl"),
    ("tiny", "extra small", "small", "medium", "large", "extra large", "huge"),
    ("short", "medium", "long"),
    ("young", "middle-aged", "old"),
    (
        *("baby", "infant", "toddler", "child", "teen", "teenager", "youth", "young adult", "adult"),
        *("senior", "elderly"),
    ),
    ("daily", "weekly", "monthly", "quarterly", "yearly"),
    ("bronze", "silver", "gold", "platinum", "diamond"),
    ("beginner", "novice", "basic", "intermediate", "advanced", "expert"),
    (
        "preschool",
        "primary",
        "elementary",
        "middle school",
        "secondary",
        "high school",
        "college",
        "tertiary",
    ),
    ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
    _NUMERALS,
    ("cold", "cool", "mild", "warm", "hot"),
    ("dry", "damp", "wet"),
    ("light", "medium", "heavy"),
    ("slow", "medium", "fast"),
    ("sehr niedrig", "niedrig", "gering", "mittel", "hoch", "sehr hoch"),
    ("nie", "selten", "manchmal", "oft", "häufig", "immer"),
    ("klein", "mittel", "groß"),
    ("faible", "moyen", "moyenne", "élevé", "élevée"),
    ("bajo", "medio", "alto"),
    _GRADES,
    ("mon", "tue", "wed", "thu", "fri", "sat", "sun"),
    ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    (
        *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
        *("october", "november", "december"),
    ),
)
"""Lists of values in their order, from which a column may leave out some."""

_MONTH = re.compile(r"([A-Za-z]{3,9})[ -](\d{4})")
_MONTHS = SCALES[-2:]

Rank = tuple[float, float]


def scale_of(values: Sequence[object]) -> list[str] | None:
    """Return texts in the order of a scale; None if no scale is known that has them all.

    >>> scale_of(["high", "low", "medium"]), scale_of(["25-34", "65+", "<18", "18-24"])
    (['low', 'medium', 'high'], ['<18', '18-24', '25-34', '65+'])
    >>> scale_of(["(100, 110]", "(20, 30]"]), scale_of(["red", "blue"])
    (['(20, 30]', '(100, 110]'], None)
    """
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < max(len(values), 2):
        return None
    ranks = _in_words(texts) or _each(_of_band, texts) or _each(_of_month, texts)
    if ranks is None or len(set(ranks)) < len(texts):
        return None
    return [text for _, text in sorted(zip(ranks, texts, strict=True))]


def _in_words(texts: Sequence[str]) -> list[Rank] | None:
    """Return the rank of each text in the first scale that has them all."""
    words = [text.strip().lower().replace("_", " ") for text in texts]
    scales = SCALES if len(words) > 2 else [scale for scale in SCALES if scale not in (_GRADES, _NUMERALS)]
    scale = next((scale for scale in scales if set(words) <= set(scale)), None)
    return None if scale is None else [(scale.index(word), 0.0) for word in words]


def _each(rank: Callable[[str], Rank | None], texts: Sequence[str]) -> list[Rank] | None:
    """Return the rank of each text, if all have one."""
    ranks = [text_rank for text_rank in map(rank, texts) if text_rank is not None]
    return ranks if len(ranks) == len(texts) else None


def _of_band(text: str) -> Rank | None:
    """Return the first number of a band; one that is open below or above comes before or after others."""
    if (band := read_band(text)) is None:
        return None
    if band.low == -inf:
        return band.high, -1.0
    return band.low, 1.0 if band.high == inf else 0.0


def _of_month(text: str) -> Rank | None:
    """Return the year and the month of a text such as Jan 2024."""
    match = _MONTH.fullmatch(text.strip())
    month = match[1].lower() if match else ""
    scale = next((months for months in _MONTHS if month in months), None)
    return None if match is None or scale is None else (float(match[2]), float(scale.index(month)))


def natural_key(value: object) -> tuple[object, ...]:
    """Return the key by which values of one type are sorted: numbers within texts by their size.

    >>> sorted(["Zone 10", "Zone 2", "Zone"], key=natural_key), sorted([1.5, -0.5, 1e-9], key=natural_key)
    (['Zone', 'Zone 2', 'Zone 10'], [-0.5, 1e-09, 1.5])
    """
    if not isinstance(value, str):
        return (value,)
    parts = re.split(r"(\d+)", str(value))
    return tuple((int(part), "") if index % 2 else (-1, part) for index, part in enumerate(parts))
