"""The models that come with the package load by name and answer the question that the gallery shows."""

from __future__ import annotations

import pytest
from command import run

import privsyn
from privsyn.release.published.models import PUBLISHED


@pytest.mark.slow
@pytest.mark.parametrize("model", PUBLISHED, ids=lambda model: model.name)
def test_a_published_model_loads_by_name_and_answers_its_question(model):
    release = privsyn.load(model.name)
    answer = release.ask(model.question)
    assert answer.low <= answer.estimate <= answer.high
    assert release.ledger.epsilon(1e-9) == pytest.approx(1, abs=1e-6)


def test_rows_come_by_name_without_a_private_table(tmp_path, capsys):
    out = tmp_path / "rows.csv"
    assert run(capsys, "sample", "survey", out, "--rows", 20, "--seed", 1).code == 0
    assert len(out.read_text().splitlines()) == 21


def test_a_file_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "adult").write_bytes(b"mine")
    with pytest.raises(privsyn.InputError, match="adult: is no model"):
        privsyn.load("adult")


def test_the_gallery_lists_and_writes_pages(tmp_path, capsys):
    listed = run(capsys, "gallery")
    assert all(model.name in listed.out for model in PUBLISHED)
    page = tmp_path / "survey.html"
    assert run(capsys, "gallery", "survey", "--out", page, "--no-browser").code == 0
    assert page.stat().st_size > 10_000
    assert run(capsys, "gallery", "nobody").code == 2
    assert "there are adult, hospital, survey" in run(capsys, "gallery", "nobody").err
