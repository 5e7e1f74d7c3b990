"""Pictures are true to their numbers: areas, heights, whiskers, and an axis on which they can be read."""

import re

import numpy as np
import pytest

from privsyn.pages.picture import BASE, LETTER, WIDTH, Axis, Bins, error_bars, histogram

BAR = re.compile(r'<rect class="\w+" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"/>')
WHISKER = re.compile(r'<path class="whisker" d="M[\d.]+ ([\d.]+)V([\d.]+)"/>')
TICK = re.compile(r'<text x="([\d.]+)" y="116" text-anchor="(\w+)">([^<]*)</text>')


def drawn(counts, lies, *, to_scale, whisker=0.0):
    """Bars of counts, each as (x, y, width, height)."""
    counts = np.asarray(counts, float)
    names = [f"{place} to {place + 1}" for place in range(len(counts))]
    low, high = np.maximum(counts - whisker, 0), counts + whisker
    picture = error_bars("n", Bins(names, np.asarray(lies), to_scale), counts, low, high)
    return picture, np.array(BAR.findall(picture), float)


def test_on_a_scale_the_area_of_a_bar_is_its_count_and_otherwise_its_height():
    counts, lies = np.array([30.0, 60.0, 20.0]), np.array([0.0, 0.5, 0.75, 1.0])
    _, bars = drawn(counts, lies, to_scale=True)
    areas = (bars[:, 2] + 0.8) * bars[:, 3]
    assert areas / areas.sum() == pytest.approx(counts / counts.sum(), rel=0.01)
    _, bars = drawn(counts, lies, to_scale=False)
    assert bars[:, 3] / bars[:, 3].sum() == pytest.approx(counts / counts.sum(), rel=0.01)


def test_a_whisker_goes_from_one_end_of_the_interval_to_the_other():
    picture, bars = drawn([10.0, 40.0], [0.0, 0.5, 1.0], to_scale=False, whisker=5.0)
    unit = bars[1, 3] / 40.0
    ends = np.array(WHISKER.findall(picture), float)
    assert BASE - ends == pytest.approx(np.array([[5.0, 15.0], [35.0, 45.0]]) * unit, abs=0.1)


def test_a_bar_far_above_all_others_is_cut_off_and_says_its_count():
    picture, bars = drawn([4000.0, 300, 200, 100], np.linspace(0, 1, 5), to_scale=False, whisker=9.0)
    assert 'class="cut"' in picture
    assert ">4,000</text>" in picture
    assert bars[1, 3] > bars[0, 3] / 2


def test_a_tail_of_noise_is_not_blown_up_beside_the_one_bar_there_is():
    """The others hold nothing for certain: their intervals begin at 0."""
    picture, bars = drawn([4000.0, 30, 0, 20], np.linspace(0, 1, 5), to_scale=False, whisker=100.0)
    assert 'class="cut"' not in picture
    assert bars[1, 3] < bars[0, 3] / 100


@pytest.mark.parametrize("words", [["a", "b"], ["2013-01-01", "2023-12-31"], ["0", "1,000,000"]])
@pytest.mark.parametrize("bins", [1, 2, 13, 40])
def test_numbers_on_an_axis_do_not_run_into_each_other(words, bins):
    labels = [f"{words[place % 2]} to {words[(place + 1) % 2]}" for place in range(bins)]
    share = np.full(bins, 1 / bins)
    for lies in (np.linspace(0, 1, bins + 1), np.linspace(0, 1, bins + 1) ** 4):
        ticks = TICK.findall(histogram("n", Bins(labels, lies, True), share, share))
        assert ticks[0][1:] == ("start", words[0])
        assert ticks[-1][1] == "end"
        before = -1.0
        for x, side, text in ticks:
            start = float(x) - {"start": 0.0, "middle": 0.5, "end": 1.0}[side] * len(text) * LETTER
            assert start > before
            before = start + len(text) * LETTER
        assert before <= WIDTH + 0.5


@pytest.mark.parametrize("middle", [0.0, 40.0, 1e6])
def test_edges_and_places_of_an_axis_agree(middle):
    for axis in (Axis(-10.0, 1e7), Axis(-10.0, 1e7, middle, 50.0)):
        edges = axis.edges(40)
        assert edges[[0, -1]] == pytest.approx([-10.0, 1e7])
        assert (np.diff(edges) > 0).all()
        assert axis.positions(edges) == pytest.approx(np.linspace(0, 1, 41), abs=1e-6)


def test_an_axis_is_stretched_where_most_rows_would_share_a_small_part_of_it_only():
    rng = np.random.default_rng(0)
    for points, stretched in (
        (rng.uniform(0, 100, 1000), False),
        (rng.lognormal(10, 1, 1000), True),
        (np.where(rng.random(1000) < 0.95, 0.0, 5e4), True),
        (-rng.lognormal(10, 1, 1000), True),
        (np.zeros(1000), False),
        (np.empty(0), False),
    ):
        low, high = (points.min(), points.max()) if len(points) else (0.0, 0.0)
        assert Axis.of(low, high, points, np.ones(len(points))).stretched is stretched


def test_every_bin_of_a_stretched_axis_can_be_seen():
    axis = Axis.of(0, 1e7, np.array([1.0, 2.0, 3.0]), np.ones(3))
    edges = np.array([0.0, 1e-9, 5.0, 1e7 - 1e-3, 1e7])
    assert np.diff(axis.positions(edges)).min() * WIDTH > 3
