"""Generated cells: patterns whose texts all differ, and stand-ins of Faker; no private cell is read."""

from __future__ import annotations

import re
import sys

import numpy as np
import pandas as pd
import pytest
import yaml

from privsyn import Categorical, Faker, Identifier, InputError, Numerical, PrivSyn, Schema, load
from privsyn.table.kinds.generated import PROVIDERS, Pattern
from privsyn.table.schema.yaml_file import from_plain, parse, to_plain

PATTERNS = [r"[A-C]\d", r"(EU|US)-[ab]{1,2}", r"x?[01]{3}", r"(a|bc|def)[xy]", r"A\.[1-3_-]", r"[ab]{0,3}"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_numbers_all_texts_that_match_and_no_two_alike(pattern):
    found = Pattern(pattern)
    texts = [found.text(number) for number in range(found.size)]
    assert len(set(texts)) == found.size
    assert all(re.fullmatch(pattern, text) for text in texts)
    assert sorted(found.scattered(number) for number in range(found.size)) == sorted(texts)


UNREADABLE = ["", 7, "[", "a*", "a+", ".", "^a", "a$", "[^a]", "(a|b", "((a))", "a{3,2}", r"\w", "[z-a]"]
AMBIGUOUS = ["a?b?", r"\d{1,2}\d{1,2}", "(a|bc){2}", "(a|ab)b?"]


@pytest.mark.parametrize("pattern", [*UNREADABLE, *AMBIGUOUS])
def test_a_pattern_that_could_be_read_in_two_ways_or_not_at_all_is_refused(pattern):
    with pytest.raises(InputError, match="write letters"):
        Identifier(pattern=pattern)


def test_identifiers_of_all_blocks_are_different():
    maker = Identifier(pattern=r"[A-Z]{2}\d{4}").maker(np.dtype("object"))
    rng = np.random.default_rng(0)
    blocks = [maker(1000, rng, start) for start in range(0, 5000, 1000)]
    assert pd.concat(blocks).is_unique
    with pytest.raises(InputError, match=r"its pattern has 10 texts, for 11 rows"):
        Identifier(pattern=r"\d").maker(np.dtype("object"))(1, rng, start=10)


@pytest.mark.slow
def test_stand_ins_come_from_faker_and_keys_are_unique():
    pytest.importorskip("faker")
    for provider in PROVIDERS:
        maker = Faker(provider, locale="de_DE").maker(np.dtype("object"))
        cells = maker(3, np.random.default_rng(0))
        assert cells.equals(maker(3, np.random.default_rng(0)))
        assert not cells.str.contains("\n").any()
    for provider in ("first_name", "email", "country"):
        maker = Faker(provider, unique=True).maker(np.dtype("object"))
        blocks = [maker(300, np.random.default_rng(seed), 300 * seed) for seed in range(3)]
        assert pd.concat(blocks).is_unique
    assert blocks[0].str.fullmatch(r".+-\d+").all()


def test_no_private_cell_is_read_and_a_model_keeps_the_settings(tmp_path):
    pytest.importorskip("faker")
    schema = from_plain(
        parse(
            """
columns:
  id: {kind: identifier, pattern: '[A-Z]{2}-\\d{6}'}
  who: {kind: faker, provider: name, locale: de_DE}
  mail: {kind: faker, provider: email, unique: true}
  sex: {kind: categorical, values: [F, M]}
"""
        )
    )
    assert from_plain(to_plain(schema)) == schema
    rows = pd.DataFrame({"id": ["secret"] * 90, "who": ["secret"] * 90, "mail": ["secret"] * 90})
    rows["sex"] = ["F", "M", "F"] * 30
    others = rows.assign(id="x", who=None, mail="y").astype({"who": rows["who"].dtype})
    first, again = (
        PrivSyn(1.0, 1e-6, schema, seed=0).fit(table).sample(50, seed=0) for table in (rows, others)
    )
    pd.testing.assert_frame_equal(first, again)
    assert first["id"].str.fullmatch(r"[A-Z]{2}-\d{6}").all()
    assert first["mail"].is_unique
    model = PrivSyn(1.0, 1e-6, schema, seed=0).fit(rows)
    model.save(tmp_path / "m.privsyn")
    pd.testing.assert_frame_equal(load(tmp_path / "m.privsyn").sample(50, seed=0), first)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (lambda: Faker("pyobject"), "none of name, first_name"),
        (lambda: Faker("seed_instance"), "none of name, first_name"),
        (lambda: Faker("name", locale="../x"), "locale '../x'"),
        (lambda: Faker("name", unique=1), "true or false"),
        (lambda: Identifier("{}", pattern="a"), "exclude each other"),
        (lambda: Faker("name").maker(np.dtype("int64")), "make it text"),
        (lambda: Faker("name", locale="xx_XX").maker(np.dtype("object")), "no locale xx_XX"),
    ],
)
def test_what_cannot_be_generated_is_refused(column, words):
    pytest.importorskip("faker")
    with pytest.raises(InputError, match=words):
        column()


def test_without_faker_nothing_is_spent(monkeypatch):
    monkeypatch.setitem(sys.modules, "faker", None)
    monkeypatch.setitem(sys.modules, "faker.config", None)
    schema = Schema({"who": Faker("name"), "n": Numerical(0, 9), "sex": Categorical(["F"])})
    model = PrivSyn(1.0, 1e-6, schema, seed=0)
    with pytest.raises(InputError, match=r"column 'who': needs Faker: run pip install \"privsyn\[faker\]\""):
        model.fit(pd.DataFrame({"who": ["a"] * 9, "n": range(9), "sex": ["F"] * 9}))
    assert not hasattr(model, "release_")


def test_generated_columns_of_a_csv_are_text(tmp_path):
    pytest.importorskip("faker")
    (tmp_path / "t.csv").write_text("id,who,n\n" + "1,Ann,3\n" * 60)
    schema = Schema({"id": Identifier(pattern=r"\d{5}"), "who": Faker("name"), "n": Numerical(0, 9)})
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(to_plain(schema)))
    model = PrivSyn(1.0, 1e-6, str(tmp_path / "s.yaml"), seed=0).fit(tmp_path / "t.csv")
    made = model.sample(20, seed=0)
    assert made["id"].str.fullmatch(r"\d{5}").all()
    assert not made["who"].eq("Ann").any()
