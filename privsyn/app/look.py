"""The synthetic rows beside the public estimates of their release, and on another screen beside real rows."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privsyn.app.job import Job
from privsyn.app.study import OUTPUTS
from privsyn.errors import InputError
from privsyn.pages.sections import environment
from privsyn.release.agreement import Agreement
from privsyn.release.linked import load, one_release
from privsyn.release.outlook import COLUMNS, COLUMNS_ARE, errors_inside, level_of_column, strength
from privsyn.release.release import Release
from privsyn.studies.release_report import LIMITS, in_short
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.schema.yaml_file import to_yaml

if TYPE_CHECKING:
    from privsyn.app.screens import Form
    from privsyn.app.session import Session

ROWS, ROWS_OF_A_SHEET = 200_000, 20_000
"""Most synthetic rows that are counted, the first ones: more would take longer than a person waits. The cells
of a sheet of Excel take ten times as long as others."""

INVENTED = "invented"
"""What a column is of which nothing was found, beside `COLUMNS_ARE`."""

USABLE, ROUGH = (f"{100 * limit:.0f}" for limit in COLUMNS)
WORDS = f"below {USABLE} of 100", f"{USABLE} to {ROUGH} of 100", f"above {ROUGH} of 100", "nothing was found"
MEANING = dict(zip((*COLUMNS_ARE, INVENTED), WORDS, strict=True))
"""What a column is, and how many of its rows would have to change."""

COMPARISON = "private-comparison.html"
"""The comparison with the real rows: the one file of a run that may not be published."""

NUMBERS, COMPARED = "private-comparison.json", "comparison-schema.yaml"
"""The same as numbers, and the columns that are compared: those of the release."""

FIGURES = (
    *("one_way_mean", "pair_mean", "triple_mean", "query_mean", "quantiles_mean", "spearman_mean"),
    *("propensity", "boosting_auc", "boosting_r2"),
)
"""The scores that the screen shows of the comparison."""

WORST = 5
"""Number of columns and of pairs that are named as the furthest from the real ones."""


def looked_at(model: Path, table: Path) -> dict[str, Any]:
    """Return what the screen shows of a release and of its synthetic table. It reads no private row."""
    release = one_release(load(model), "this page")
    agreement, rows, whole, uncounted = None, 0, True, ""
    try:
        agreement, rows, whole = _counted(release, table)
    except InputError as error:  # the estimates are worth a look also without the rows
        uncounted = str(error)
    values = in_short(release, agreement, beside=True)
    columns = values["columns"]
    for place, (column, inside) in enumerate(zip(columns, errors_inside(release.fitted), strict=True), 1):
        column["anchor"] = f"column-{place}"
        column["inside"], column["off"] = inside, min(column["error"] + inside, 1.0)
        column["is"] = INVENTED if column["lost"] else COLUMNS_ARE[level_of_column(column["off"])]
    tables = _relationships(release, values["tables"], agreement)
    return values | {
        "groups": {word: [c for c in columns if c["is"] == word] for word in MEANING},
        "words": MEANING,
        "pairs": [row for row in tables if len(row["columns"]) == 2],
        "larger": [row for row in tables if len(row["columns"]) > 2],
        "counted": rows,
        "uncounted": uncounted,
        "scaled": rows != round(release.fitted.total),
        "whole": whole,
        "no_cost": not release.ledger.private,
        **LIMITS,
    }


def _counted(release: Release, table: Path) -> tuple[Agreement | None, int, bool]:
    """Count the first rows of the table as the release counts; None if it has none.

    Return also how many were counted, and whether they are all.
    """
    agreement, rows = Agreement(release.codec, release.fitted, release.accuracy_.not_found), 0
    most = ROWS_OF_A_SHEET if table.suffix == ".xlsx" else ROWS

    def count(frames: Any) -> bool:
        nonlocal rows
        for frame in frames:
            some = frame.iloc[: most - rows]
            agreement.add(some)
            rows += len(some)
            if len(some) < len(frame):
                return False
        return True

    (whole,) = read_in_batches(table, release.codec.schema).each(count)
    return agreement if rows else None, rows, whole


def _relationships(
    release: Release, rows: list[dict[str, Any]], agreement: Agreement | None
) -> list[dict[str, Any]]:
    """Add to each relationship its strength in the synthetic rows, and whether that lies in the interval."""
    counts = {} if agreement is None else agreement.counts
    found = {
        certainty.attributes: strength(certainty.measured.grouping.join(counts[certainty.attributes] * 1.0))
        for certainty, _ in release.fitted.measured_marginals
        if certainty.attributes in counts
    }
    for row in rows:
        row["synthetic"] = own = found.get(row["columns"])
        row["outside"] = own is not None and not row["low"] <= own <= row["high"]
    return rows


# The second tab: the real rows


def show_compare(session: Session) -> dict[str, Any]:
    """Show the warning, the progress, or the key figures of the comparison with the real rows."""
    study, job = session.made_from, session.comparison
    found = None if job is None or job.code != 0 else _figures(session.results)
    return {"study": study, "job": job, "file": COMPARISON, "found": found}


def _figures(folder: Path) -> dict[str, Any]:
    """Return the key figures of the comparison. They are of the real rows: not private."""
    from privsyn.evaluation.registry import METRICS  # it takes a while to import

    scores = json.loads((folder / NUMBERS).read_text(encoding="utf-8"))
    known = scores | scores["learning"]
    lines = [
        (METRICS[name], known[name])
        for name in FIGURES
        if name in known and known[name]["synthetic"] is not None
    ]
    worst = {int(order): found[:WORST] for order, found in scores["worst"].items() if int(order) < 3}
    return scores | {"lines": lines, "worst": worst}


def compare(session: Session, form: Form) -> str:
    """Compare with the real rows, which the person asked for. What comes of it is NOT PRIVATE."""
    study, folder = session.made_from, session.results
    if session.working is not None:
        return "compare"
    release = one_release(load(folder / OUTPUTS["--model"]), "this page")
    # Its schema names the columns that the synthetic table has; the person's may declare a few of them.
    (folder / COMPARED).write_text(to_yaml(release.codec.schema), encoding="utf-8")
    options = {"--schema": COMPARED, "--report": COMPARISON, "--json": NUMBERS}
    options |= {"--target": study.target} if study.target else {}
    given = (part for pair in options.items() for part in pair)
    arguments = ["evaluate", study.data, study.out, *given]
    session.comparison = Job(arguments, folder, keeps=(session.workspace.lock,))
    return "compare"


def stop_comparing(session: Session, form: Form) -> str:
    """Stop the comparison."""
    if session.comparison is not None:
        session.comparison.end()
    return "compare"


def _policy() -> str:
    """Return the policy of the comparison, which has its style and its script within.

    Only the script that all pages of this program have may run: its hash is that of the program's own file,
    not that of what the page holds. The sandbox takes the page out of our origin: it has no cookie and can
    ask this server for nothing.
    """
    text = environment().from_string('<script>\n{% include "page.js" %}\n</script>').render()
    script = re.sub("^<script>|</script>$", "", text).encode()
    hashed = b64encode(sha256(script).digest()).decode()
    return (
        "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline';"
        f" script-src 'sha256-{hashed}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


COMPARISON_HEADERS = {
    "content-security-policy": _policy(),
    "cross-origin-opener-policy": "unsafe-none",  # browsers show no page with a sandbox and another policy
}
