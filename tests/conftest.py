"""Settings that all tests share, and what holds of every ledger that any of them writes."""

import gc
import json
import re
import shutil
import signal
import sys
from collections import defaultdict
from functools import cache, partial
from importlib import resources
from inspect import iscode, isfunction
from itertools import compress
from operator import not_
from pathlib import Path
from types import ModuleType

import pytest
import typer.main
from command import fill
from hypothesis import settings
from jsonschema import Draft202012Validator
from repeatable import Repeatable
from xdist.scheduler import LoadFileScheduling

from privsyn.cli.common import compiling
from privsyn.evaluation import models
from privsyn.evaluation.registry import METRICS
from privsyn.methods.methods import METHODS
from privsyn.private.run_ledger import RunLedger
from privsyn.table.schema.columns import COLUMNS
from privsyn.table.schema.constraint import CONSTRAINTS

# A deadline would measure the machine's load, and the time to compile a kernel, not the code. One commit has
# one result: its examples are the same in every run. `make mutations` draws more of them, others in each run:
# pytest --hypothesis-profile=thorough. As many as thirty runs: pytest -m hypothesis
# --hypothesis-profile=thirty. `make test` draws fewer, except of the private side.
settings.register_profile("thorough", deadline=None, max_examples=100)
settings.register_profile("thirty", deadline=None, max_examples=900)
settings.register_profile("privsyn", deadline=None, max_examples=30, derandomize=True)
settings.register_profile("quick", deadline=None, max_examples=10, derandomize=True)
settings.load_profile("privsyn")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell lets its background jobs ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)

LEDGER_SCHEMA = json.loads(resources.files("privsyn.private").joinpath("ledger.schema.json").read_text())

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
OFFLINE = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


TESTS = Path(__file__).parent

HEAVY = re.compile(r"test_(spark|dask|pages?_in|page\.|processes|wheel|r\.)")
"""Files whose tests start Spark, a cluster, a browser, other processes or a build, and then wait for them."""

PAGES = "tests/test_every_page_runs.py"
"""Its pages take long, and each has a folder of its own."""


class Lanes(LoadFileScheduling):
    """The tests of a file share one process; those of all heavy files share one, beside the others.

    Each page of documentation has any process.
    """

    def _split_scope(self, nodeid):
        file = super()._split_scope(nodeid)
        return "heavy" if HEAVY.search(file) else nodeid if file == PAGES else file


def pytest_xdist_make_scheduler(config, log):
    return Lanes(config, log)


def pytest_addoption(parser):
    parser.addoption(
        "--lane",
        choices=["check", "quick", "slow"],
        help="quick: no tests marked slow, but the first case of those that have several; slow: the rest;"
        " check: of each file, two quick tests that neither fit nor draw examples",
    )
    parser.addoption("--entropy", action="store_true", help="draw other noise in each run (repeatable.py)")


def pytest_configure(config):
    """Give every draw a seed. No example in a docstring is slow, so the slow lane looks for none."""
    config.option.doctestmodules &= config.getoption("lane") != "slow"
    if not config.getoption("entropy"):
        config.pluginmanager.register(Repeatable())


def pytest_collection_modifyitems(config, items):
    """Keep the tests of one lane. Start with the heavy files, then pages: others fill the time until then."""
    if lane := config.getoption("lane"):
        quick = _quick(items)
        inner = _check(items) if lane == "check" else quick
        chosen = [(item in inner) == (lane != "slow") for item in items]
        config.hook.pytest_deselected(items=list(compress(items, map(not_, chosen))))
        items[:] = compress(items, chosen)
    files = {item: item.nodeid.split("::")[0] for item in items}
    items.sort(key=lambda item: (not HEAVY.search(files[item]), files[item] != PAGES))


def _quick(items):
    """Return the tests without the mark slow, and of each other one the first of several cases.

    No case is returned if a mark says that each case is slow, or if it opens a browser.
    """
    cases = defaultdict(list)
    for item in items:
        slow = list(item.iter_markers("slow"))
        if "chromium" not in item.fixturenames and not any("each case" in mark.args for mark in slow):
            cases[item.nodeid.partition("[")[0] if slow else item].append(item)
    return {case[0] for name, case in cases.items() if len(case) > 1 or name is case[0]}


FITS = {
    "PrivSyn",
    "Popen",
    "attack",
    "evaluate",
    "fit",
    "learn",
    "main",
    "plan",
    "plan_linked",
    "report",
    "sweep",
}
"""Whatever calls one of these takes its time, and a command ends in `main`."""


def _check(items):
    """Return, of each light file, the first cases of two tests that neither fit nor draw examples.

    A session's fixtures may fit: all tests share what they return.
    """
    chosen = defaultdict(dict)
    for item in items:
        file, _, name = item.nodeid.partition("::")
        tests = chosen[file]
        if name.partition("[")[0] in tests or len(tests) == 2 or HEAVY.search(file):
            continue
        if not isinstance(item, pytest.Function) or next(item.iter_markers("slow"), None) or _fits(item):
            continue
        tests[name.partition("[")[0]] = item
    return {item for tests in chosen.values() for item in tests.values()}


def _fits(item):
    """Return whether a test, a helper or one of its fixtures fits, runs a command or draws examples."""
    fixtures = (item._fixtureinfo.name2fixturedefs.get(name, [None])[-1] for name in item.fixturenames)
    functions = [
        item.function,
        *(fixture.func for fixture in fixtures if fixture and fixture.scope != "session"),
    ]
    return hasattr(item.function, "hypothesis") or not FITS.isdisjoint(_names(*functions))


def _names(*functions):
    """Return the names that functions use, and the functions of the tests that they call."""
    names, codes = set(), [(each.__code__, each.__globals__) for each in functions if isfunction(each)]
    while codes:
        code, module = codes.pop()
        called = [module.get(name) for name in set(code.co_names) - names]
        codes += [(each.__code__, each.__globals__) for each in called if _is_of_tests(each)]
        codes += [(constant, module) for constant in code.co_consts if iscode(constant)]
        names |= {*code.co_names}
    return names


def _is_of_tests(function):
    return isfunction(function) and Path(function.__code__.co_filename).is_relative_to(TESTS)


def pytest_collection_finish():
    """Keep the garbage collector from looking through all modules and tests again and again."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _every_ledger_fits_its_schema():
    """Whatever a test does that writes a ledger, into a file, a model or a text, the schema describes it."""
    validator = Draft202012Validator(LEDGER_SCHEMA)
    to_dict = RunLedger.to_dict

    def checked(ledger):
        plain = to_dict(ledger)
        validator.validate(plain)
        return plain

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunLedger, "to_dict", checked)
        yield


@pytest.fixture(scope="session", autouse=True)
def _typer_builds_its_commands_once():
    """Build Typer's commands once, not in each run: that took a quarter of the time of such tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_second_process_compiles():
    """Let the tests compile their loops themselves; test_compiling.py tests the second process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "compile_ahead", lambda: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _models_have_few_trees():
    """Train ten trees, for speed."""
    with pytest.MonkeyPatch.context() as patch:
        for model, trees in (("HistGradientBoosting", "max_iter"), ("RandomForest", "n_estimators")):
            for name in (f"{model}Classifier", f"{model}Regressor"):
                patch.setattr(models, name, partial(getattr(models, name), **{trees: 10}))
        yield


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a table and its schema; see `command.fill`."""
    fill(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def module(monkeypatch):
    """A module to run the blocks of a page in, whose registrations end with the test.

    Dataclasses look up their module by its name.
    """
    registries = [COLUMNS, CONSTRAINTS, METRICS, METHODS]
    before = [dict(registry) for registry in registries]
    page = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", page)
    yield page
    for registry, entries in zip(registries, before, strict=True):
        registry.clear()
        registry.update(entries)


@pytest.fixture(scope="session")
def chromium():
    """A browser without a screen, to open a page with."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright to open the page with")
    if BROWSER is None:
        pytest.skip("no Chromium to open the page with: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=BROWSER, args=OFFLINE)
        yield browser
        browser.close()


@pytest.fixture(params=[(390, "dark"), (1200, "light")], ids=str)
def open_page(chromium, request):
    """Open a page on a phone, dark, or on a desk, light. It fits, raises no error and makes no request."""
    width, scheme = request.param
    context = chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    tab, complaints, requests = context.new_page(), [], []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))

    def open_(path):
        tab.goto(path.as_uri())
        return tab

    yield open_
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert (complaints, requests) == ([], [tab.url.partition("#")[0]])
    context.close()
