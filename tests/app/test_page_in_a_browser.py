"""A person's whole way through a table of forty columns in a real browser, at two widths."""

import numpy as np
import pandas as pd
import pytest
from screens import printed_address

ROWS = 2000

HIGHEST = 2000
"""Most pixels of a screen, 1280 wide, before a person unfolds anything."""


def forty_columns(rows):
    rng = np.random.default_rng(0)
    age = rng.integers(0, 100, rows)
    table = {"patient": rng.integers(1, rows // 2, rows), "age": age, "sex": rng.choice(["F", "M"], rows)}
    table |= {f"score_{place}": rng.normal(50 + age / 4, 10).round(1) for place in range(12)}
    table |= {f"count_{place}": rng.poisson(2 + age / 40) for place in range(12)}
    table |= {f"answer_{place}": rng.choice(["yes", "no", "do not know"], rows) for place in range(10)}
    admitted = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 1500, rows), "D")
    table |= {"admitted": admitted, "discharged": admitted + pd.to_timedelta(rng.integers(0, 20, rows), "D")}
    table["a_long_name_that_somebody_chose_" + "x" * 60] = rng.choice(
        ["a value that is long " * 4, "b"], rows
    )
    return pd.DataFrame(table)


@pytest.fixture
def address(tmp_path):
    """The printed address of an app, in whose start folder is a table of forty columns."""
    forty_columns(ROWS).to_csv(tmp_path / "people.csv", index=False)
    with printed_address(tmp_path) as address:
        yield address


@pytest.mark.slow
def test_from_a_file_to_the_table_in_three_screens(address, tab, looked_at):
    tab.goto(address)
    tab.wait_for_url("**/choose")
    assert "token" not in tab.url
    looked_at(tab)
    tab.check("text=people.csv")
    tab.click("button[value=choose]")
    tab.wait_for_url("**/people")
    assert tab.locator("nav li").all_text_contents() == ["Table and people", "Run", "Result"]
    assert tab.locator(".column").count() == 40
    looked_at(tab)

    tab.check("input[value=row]")
    tab.click("button[value=draft]")
    tab.wait_for_selector(".needs", state="attached")
    assert tab.is_checked("input[value=row]")  # the draft keeps the answers
    looked_at(tab)  # at 1280 pixels, in the end
    assert tab.evaluate("document.documentElement.scrollHeight") <= HIGHEST
    tab.fill("input[name=title]", "Visits")
    tab.press("input[name=title]", "Enter")  # saves, and reads no row
    tab.wait_for_load_state()
    assert tab.input_value("input[name=title]") == "Visits"
    tab.click("#columns > summary")
    tab.fill("#find", "score")
    assert tab.locator(".column:visible").count() == 12
    tab.fill("#find", "")
    tab.check("input[name=confirmed-1]")
    tab.click("button[value=save]")
    tab.wait_for_load_state()
    assert tab.locator(".needs").count() == 39
    tab.click("button[value=next]")  # refused, and it says why and where
    assert "confirm" in tab.locator("[role=alert]").first.text_content()
    tab.wait_for_selector("#columns > summary:focus")
    assert "39 columns to confirm" in tab.locator(".open").text_content()
    tab.check("#needs")
    assert tab.locator(".column:visible").count() == 39
    with tab.expect_navigation():
        tab.click("button[value='confirm rest']")
    assert "You confirmed" in tab.locator(".notice").text_content()  # the list stays open, and says so
    tab.wait_for_selector(".notice:focus")
    for asked in tab.locator(".columns > .needs input[name^=confirmed]").all():
        asked.check()
    tab.click("button[value=next]")

    tab.wait_for_url("**/run")
    looked_at(tab)
    assert tab.evaluate("document.documentElement.scrollHeight") <= HIGHEST
    tab.locator("#slider").focus()
    tab.keyboard.press("End")
    assert tab.input_value("#epsilon") == "10"
    assert int(tab.text_content("#guess")) > 54
    tab.fill("#epsilon", "1")
    tab.press("#epsilon", "Enter")  # shows what to expect, and starts nothing
    tab.wait_for_load_state()
    assert tab.text_content("#guess") == "54"
    tab.click("button[value=start]")
    tab.wait_for_url("**/result")  # opens when the run has ended
    looked_at(tab)
    assert tab.evaluate("document.documentElement.scrollHeight") <= HIGHEST
    assert tab.locator("main h2").first.text_content() == "Before you use it"
    tab.click("text=run again")
    tab.wait_for_url("**/run#again")
    assert not tab.is_checked("input[name=again]")  # nobody spends it again by one click
    assert tab.text_content("a.main") == "Open the result"
    looked_at(tab)
    tab.click("a.main")
    tab.wait_for_url("**/result")
    for name in ("synthetic.csv", "synthetic.xlsx", "model.privsyn"):
        with tab.expect_download() as download:
            tab.click(f"text={name}")
        assert download.value.suggested_filename == name
    tab.click("summary >> text=Forget everything")
    tab.check("input[name=sure]")
    tab.click("button[value=forget]")
    tab.wait_for_url("**/choose")


@pytest.mark.slow
def test_by_the_keyboard_alone(address, tab, tab_to):
    tab.goto(address)
    tab.wait_for_url("**/choose")

    tab_to("input[name=file][value='people.csv']")
    tab.keyboard.press("Space")
    tab_to("button[value=choose]")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/people")
    tab_to("input[name=protects]")
    tab.keyboard.press("Space")
    tab_to("button[value=next]")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/run")
    tab_to("button[value=start]")
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
