"""The comparison with the real rows, which a person may ask for. What comes of it is NOT PRIVATE."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

from privsyn.app.choices import OUTPUTS, RUN_SCHEMA
from privsyn.app.column_entries import Form
from privsyn.app.job import Job
from privsyn.app.results import convert
from privsyn.app.session import Session
from privsyn.pages.sections import environment
from privsyn.release.release import load
from privsyn.table.io.formats import is_csv
from privsyn.table.schema.yaml_file import to_yaml

COMPARISON = "private-comparison.html"
"""The comparison with the real rows: the one file of a run that may not be published."""

NUMBERS, COMPARED = "private-comparison.json", "comparison-schema.yaml"
"""The comparison as numbers; the schema of the compared columns, which the release has."""

PLAIN_COPY = "compared.csv"
"""The synthetic table, in a CSV in which text may begin like a formula."""

FIGURES = (
    *(
        "children_mean",
        "parent_child_mean",
        "next_mean",
        "later_mean",
        "profile_mean",
        "sums_mean",
        "detection",
    ),
    *("one_way_mean", "pair_mean", "triple_mean", "query_mean", "quantiles_mean", "spearman_mean"),
    *("propensity", "boosting_auc", "boosting_r2"),
)
"""The scores that the screen shows of the comparison."""

WORST = 5
"""Number of columns and of pairs that are named as the furthest from the real ones."""


def show_compare(session: Session) -> dict[str, Any]:
    """Show the warning, the progress, or the key figures of the comparison with the real rows."""
    choices, job = session.made_from, session.comparison
    figures = None if job is None or job.code != 0 else _figures(session.results)
    return {"choices": choices, "job": job, "file": COMPARISON, "found": figures}


def _figures(folder: Path) -> dict[str, Any]:
    """Return the key figures of the comparison. They are of the real rows: not private."""
    from privsyn.evaluation.registry import METRICS  # it takes a while to import

    scores = json.loads((folder / NUMBERS).read_text(encoding="utf-8"))
    parts = []
    for name, of_table in {"": scores, **scores["tables"]}.items():
        by_name = of_table | of_table["learning"]
        lines = [
            (METRICS[figure], by_name[figure])
            for figure in FIGURES
            if by_name.get(figure, {}).get("synthetic") is not None
        ]
        worst = {
            int(order): columns[:WORST] for order, columns in of_table["worst"].items() if int(order) < 3
        }
        parts.append({"name": name, "lines": lines, "worst": worst})
    return scores | {"parts": parts}


def compare(session: Session, form: Form) -> str:
    """Compare with the real rows, which the person asked for. What comes of it is NOT PRIVATE."""
    choices, folder = session.made_from, session.results
    if session.working is not None:
        return "compare"
    schema = RUN_SCHEMA
    if not choices.linked:
        release, schema = load(folder / OUTPUTS["--model"]).table("this page"), COMPARED
        # Its schema names the columns that the synthetic table has; the person's may declare a few of them.
        (folder / COMPARED).write_text(to_yaml(release.codec.schema), encoding="utf-8")
    options = {"--schema": schema, "--report": COMPARISON, "--json": NUMBERS}
    options |= {"--target": choices.target} if choices.target else {}
    if choices.together:
        options |= {"--unit": choices.unit or "", "--order": choices.order or ""}
    words = (part for pair in options.items() if pair[1] for part in pair)
    synthetic = choices.out
    if is_csv(synthetic):  # without the apostrophes that keep a spreadsheet from running text
        synthetic = PLAIN_COPY
        convert(folder, folder / PLAIN_COPY)
    arguments = ["evaluate", choices.data, synthetic, *words]
    session.comparison = Job(arguments, folder, keeps=(session.workspace.lock,))
    return "compare"


def stop_comparing(session: Session, form: Form) -> str:
    """Stop the comparison."""
    if session.comparison is not None:
        session.comparison.end()
    return "compare"


def _content_security_policy() -> str:
    """Return the policy of the comparison, which has its style and its script within.

    Only the script that all pages of this program have may run: the hash is computed from the program's own
    file, not from the page. The sandbox takes the page out of our origin: it has no cookie and can
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
    "content-security-policy": _content_security_policy(),
    "cross-origin-opener-policy": "unsafe-none",  # browsers show no page with a sandbox and another policy
}
