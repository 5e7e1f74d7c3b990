"""What tests of the local page share: pressing a button, the forms of a browser, and a page of its own."""

import re
import subprocess
import sys
from contextlib import contextmanager

from privsyn.app.linking import role_of
from privsyn.app.screens import SCREENS
from privsyn.app.session import Session
from privsyn.app.workspace import Workspace

TYPED = ("kind", "low", "high", "values", "more")


@contextmanager
def session_in(start):
    """A session of a page with this start folder; afterwards its run and its folder are gone."""
    workspace = Workspace(start)
    session = Session(workspace)
    yield session
    if session.job is not None:
        session.job.end()
    workspace.close()


def press(session, screen, button, **form):
    """Press a button; return the next screen. A field with several values is a list."""
    said = {name: value if isinstance(value, list) else [value] for name, value in form.items()}
    return SCREENS[screen].actions[button.partition(" ")[0]](session, said | {"do": [button]})


def shown(session, **changes):
    """The form of columns, rules and pairs as a browser would send it, with changes such as low_1."""
    table = session.choices.table
    form = {"shown": [], "relations": "1", "table": table.data}
    for place, entry in enumerate(table.entries):
        form["shown"].append(str(place))
        form |= {f"{name}-{place}": getattr(entry, name) for name in TYPED}
        form |= {f"{name}-{place}": "on" for name in ("nullable", "confirmed") if getattr(entry, name)}
    return form | {name.replace("_", "-"): value for name, value in changes.items()}


def promise(session, button="next", epsilon="1", delta="1e-9", **answers):
    """Answer whom to protect, and choose epsilon; return the next screen. Columns and rules stay."""
    following = press(session, "people", button, table=session.choices.table.data, **answers)
    press(session, "run", "save", epsilon=epsilon, delta=delta)
    return following


def linked(session, **changes):
    """The form of the tables screen as a browser would send it, with changes such as key_1."""
    form = {"tables": session.choices.listed}
    for place, table in enumerate(session.choices.tables.values()):
        form[f"role-{place}"] = "left out" if table.use == "public" else role_of(table)
        form |= {f"{setting}-{place}": table.links.get(setting, "") for setting in ("key", "link", "order")}
        form |= {f"summary-{place}": [*table.taken], f"more-{place}": table.more}
        form |= {f"confirmed-{place}": "on"} if table.confirmed else {}
        form |= {f"public-{place}": "on"} if table.use == "public" else {}
    return form | {name.replace("_", "-"): value for name, value in changes.items()}


@contextmanager
def printed_address(folder):
    """The printed address of an app that runs in a process of its own; it ends without a trace."""
    server = subprocess.Popen(
        [sys.executable, "-u", "-m", "privsyn", "app", folder, "--no-browser"],
        stdout=subprocess.PIPE,
        text=True,
    )
    with server:
        for line in server.stdout:
            if found := re.search(r"http://127\.0\.0\.1:\S+", line):
                break
        yield found[0]
        server.terminate()
        said = server.stdout.read()
        assert server.wait(60) == 0
    assert "Traceback" not in said
    assert not list(folder.glob(".privsyn-app-*"))
