"""A person's whole way through linked tables in a real browser, at two widths."""

import numpy as np
import pandas as pd
import pytest
from screens import printed_address


@pytest.fixture
def address(tmp_path):
    """The printed address of an app, in whose start folder is a folder of two linked tables."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "clinic"
    folder.mkdir()
    each = rng.poisson(2, 300)
    patients = pd.DataFrame({"patient": [f"P{row:03d}" for row in range(300)]})
    patients["sex"] = rng.choice(["F", "M"], 300)
    visits = pd.DataFrame({"patient": patients["patient"].repeat(each)})
    visits["year"] = 2000 + visits.groupby("patient").cumcount()
    visits["a_long_name_of_a_ward_" + "x" * 50] = rng.choice(["heart", "a long value " * 5], len(visits))
    patients.to_csv(folder / "patients.csv", index=False)
    visits.to_csv(folder / "visits.csv", index=False)
    with printed_address(tmp_path) as address:
        yield address


@pytest.mark.slow
def test_from_a_folder_to_linked_tables(address, tab, looked_at):
    tab.goto(address)
    tab.wait_for_url("**/choose")
    looked_at(tab)
    tab.check("text=The folder clinic")
    tab.click("text=Take this folder")
    tab.wait_for_url("**/tables")
    looked_at(tab)
    tab.click("button[value=draft]")
    tab.wait_for_selector(".linked.needs")
    looked_at(tab)
    assert tab.locator("svg.diagram desc").text_content().startswith("patients: the persons, key patient")
    tab.click("button[value=next]")  # refused, and it says why
    assert "look at the links of" in tab.locator("[role=alert]").first.text_content()
    for place in (0, 1):
        tab.check(f"input[name=confirmed-{place}]")
    tab.click("button[value=next]")

    tab.wait_for_url("**/people")
    looked_at(tab)
    tab.click("button.tab >> text=visits")
    tab.wait_for_selector("button.tab[aria-current] >> text=visits")
    looked_at(tab)
    for button in ("confirm", "next") * 2:
        with tab.expect_navigation():
            tab.click(f"button[value={button}]")

    tab.wait_for_url("**/run")
    looked_at(tab)
    tab.click("button[value=start]")
    tab.wait_for_url("**/result")
    looked_at(tab)
    tab.click("button.tab >> text=visits")
    tab.wait_for_selector("button.tab[aria-current] >> text=visits")
    looked_at(tab)
    tab.click("text=Compare with the real rows")
    tab.wait_for_url("**/compare")
    tab.click("button[value=compare]")
    tab.wait_for_selector("text=Real against synthetic")
    looked_at(tab)
    tab.goto(tab.url.replace("/compare", "/result"))
    looked_at(tab)
    for name in ("synthetic.zip", "everything.zip", "model.privsyn"):
        with tab.expect_download() as download:
            tab.click(f"a[href='file/{name}']")
        assert download.value.suggested_filename == name


@pytest.mark.slow
def test_linked_tables_by_the_keyboard_alone(address, tab, tab_to):
    tab.goto(address)
    tab.wait_for_url("**/choose")
    tab_to("input[name=file][value='clinic']")
    tab.keyboard.press("Space")
    tab_to("button[value=choose]")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/tables")
    tab_to("button[value=draft]")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".linked.needs")
    for place in (0, 1):
        tab_to(f"input[name=confirmed-{place}]")
        tab.keyboard.press("Space")
    tab_to("button[value=next]")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/people")
    tab_to("button[value='show visits']")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("button.tab[aria-current] >> text=visits")
    for button in ("confirm", "next") * 2:
        tab_to(f"button[value={button}]")
        with tab.expect_navigation():
            tab.keyboard.press("Enter")
    tab.wait_for_url("**/run")
