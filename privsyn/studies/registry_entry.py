"""An entry for the registry of deployments of differential privacy, written from a ledger.

The registry is github.com/opendp/deployments-registry-data. The fields are those of its schema as of July
2026 (commit 3e9c812). Fields that follow from the ledger are filled in; all others are marked. The registry's
check refuses a marked date, and a marked field that has a list of values: readers would believe a plausible
default.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from textwrap import wrap
from typing import Any

import yaml

from privsyn.errors import InputError, plural, printable, replace_errors
from privsyn.files import check_file
from privsyn.private.ledger import NO_LEDGER, Ledger
from privsyn.private.spend import TERMS

ZIP = b"PK"
"""How a model begins."""

TODO = "TO BE FILLED IN"

WIDTH = 100
"""Columns of a text."""

HEADER = f"""\
# Drafted from a ledger by `privsyn registry-entry`. Search for {TODO!r} and replace each; then
# propose the file to github.com/opendp/deployments-registry-data, in its folder deployments/.
"""

CONVERSIONS = {
    "gaussian": "the exact profile of one Gaussian answer with the same rho (Gaussian differential privacy)",
    "zcdp": "the conversion of zCDP by Canonne, Kamath and Steinke (2020)",
    "classical": "the conversion of zCDP by Bun and Steinke (2016)",
}
"""How rho becomes epsilon and delta, by accounting."""


def ledger_in(path: Path) -> Ledger:
    """Return the ledger in a file: of a model, or as `Ledger.to_json` wrote it.

    Raises
    ------
    InputError
        If the file is neither.
    """
    check_file(path)
    content = path.read_bytes()
    if content.startswith(ZIP):
        from privsyn.release.linked import load

        ledger: Ledger = load(path).ledger
        return ledger
    with replace_errors(f"{path}: {NO_LEDGER}", (InputError, UnicodeDecodeError)):
        return Ledger.from_json(content.decode("utf-8"))


def registry_entry(ledger: Ledger) -> str:
    """Return the entry as YAML, computed from the ledger alone.

    Raises
    ------
    InputError
        If the run is not private, or nothing was published because its criteria were not met.
    """
    if ledger.warning is not None:
        raise InputError(f"this is no deployment of differential privacy: {ledger.warning}")
    if ledger.acceptance is not None and not ledger.acceptance.met:
        raise InputError("the criteria were not met, so nothing was published that a registry could list")
    entry = {
        "url_slug": f"{TODO}: name, curator and year, as in health-survey-office-2026",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": _basic(),
            "dp_variant": _variant(ledger),
            "privacy_loss": _privacy_loss(ledger),
            "deployment_model": _model(ledger),
            "accounting": {
                "post_processing": _post_processing(ledger),
                "composition": _composition(ledger),
            },
            "implementation": _implementation(ledger),
            "administrative": {
                "sources": f"{TODO}: links to the table, its ledger, its public page and its data sheet",
                "notes": f"Drafted by `privsyn registry-entry` from a ledger of privsyn {ledger.version}.",
                "registry_authors": [f"{TODO}: who fills in this entry"],
            },
        },
    }
    return HEADER + yaml.dump(
        entry, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10 * WIDTH, indent=2
    )


def _basic() -> dict[str, Any]:
    return {
        "name": f"{TODO}: the name of the synthetic table",
        "data_curators": [f"{TODO}: who publishes it"],
        "intended_use": f"{TODO}: what the table is for, and what it must not be used for",
        "data_product_type": "Synthetic data",
        "data_product_region": f"{TODO}: whom or where the data describe, and whose law applies",
        "description": f"{TODO}: what the table is about, with its columns and its number of rows",
        "publication_date": f"{TODO}: YYYY-MM-DD",
        "data_product_sector": f"{TODO}: Technology, Healthcare, Education, Government, Energy or Finance",
    }


def _variant(ledger: Ledger) -> dict[str, Any]:
    if ledger.elsewhere is not None:
        name = f"{TODO}: Pure DP, Approximate DP, Zero-concentrated DP, Renyi DP or Custom"
    else:
        name = "Approximate DP" if ledger.promised_delta else "Pure DP"
    return {
        "variant_name": name,
        "data_domain": f"{TODO}: all tables that could have been there: which columns, about whom, from when",
        "unprotected_quantities": _text(
            "Taken as public, and not protected:", *_bullets(ledger.public_inputs)
        ),
    }


def _privacy_loss(ledger: Ledger) -> dict[str, Any]:
    if ledger.elsewhere is not None:
        return {
            "privacy_unit": f"{TODO}: whom the promise of the counts protects",
            "privacy_parameters": {},
            "privacy_parameters_details": _text(
                f"The counts were measured elsewhere. Whoever measured them promises: {ledger.elsewhere}.",
                f"{TODO}: epsilon, delta or rho above, from that promise.",
            ),
        }
    delta = {"delta": ledger.promised_delta} if ledger.promised_delta else {}
    return {
        "privacy_unit": _unit(ledger),
        "privacy_unit_details": _text(
            f"Adjacent data sets: {ledger.neighbours}.",
            "That somebody takes part is not protected, nor is the number of records."
            if ledger.all_local
            else "The number of records is protected too.",
        ),
        "privacy_parameters": {"epsilon": ledger.promised_epsilon, **delta},
        "privacy_parameters_details": _text(*_curve(ledger)),
    }


def _unit(ledger: Ledger) -> str:
    if ledger.all_local:
        return "the randomised cells of one record"
    if ledger.unit is None:
        return f"one record. {TODO}: whom it is about, and how many one person may have"
    person = f"one {ledger.unit!r}" if ledger.root is None else f"one {ledger.unit} of {ledger.root}"
    return f"all rows of {person}. {TODO}: whom that is, such as a person or a household"


def _curve(ledger: Ledger) -> list[str]:
    """Return the points of the privacy curve, and what thresholds reserve."""
    points = (
        f"epsilon {point['epsilon']!r} at delta {point['delta']!r}" for point in ledger.to_dict()["curve"]
    )
    reserved = f"Thresholds reserve delta {ledger.reserved!r} of it." if ledger.reserved else ""
    return [reserved, "The same release, at other deltas:", *_bullets(points)]


def _model(ledger: Ledger) -> dict[str, Any]:
    name, details = _trust(ledger)
    return {
        "model_name": name,
        "model_name_details": _text(*details),
        "actors": f"{TODO}: who can see the private table and who only the release, and why each is trusted",
        "release_type": "One release",
        "release_type_details": _text(
            f"One run. {TODO}: other releases from the same data, made or planned, and their joint cost."
        ),
        "data_source_type": f"{TODO}: Static, or Dynamic if new data come in over time",
        "access_type": "Non-interactive",
        "access_type_details": "Readers have the release. They cannot put questions to the private data.",
    }


def _trust(ledger: Ledger) -> tuple[str, list[str]]:
    """Return the registry's word for who is trusted with the private rows, and what it means here."""
    if ledger.elsewhere is not None:
        return f"{TODO}: Local, Central, Shuffle or Federated", ["As those say who measured the counts."]
    if ledger.all_local:
        return "Local", ["Each record was randomised before it was collected, as the schema says."]
    if ledger.shared:
        return "Federated", ["Several owners keep their rows. Only noisy sums over all of them are opened."]
    details = ["A trusted curator holds the table, and adds noise to each answer."]
    if ledger.local:
        details += [
            "Besides, the respondents randomised some columns, at a local epsilon of"
            f" {ledger.local_epsilon!r} together:",
            *_bullets(map(str, ledger.local)),
        ]
    return "Central", details


def _post_processing(ledger: Ledger) -> str:
    verdict = [] if ledger.acceptance is None else [f"{ledger.acceptance}."]
    return _text(
        "The released counts are made consistent with each other and with public constraints. Synthetic rows"
        " are drawn from them, and generated identifiers are added. None of this reads the private data.",
        *verdict,
    )


def _composition(ledger: Ledger) -> str:
    if ledger.elsewhere is not None:
        return "No question was put to private data in this run."
    if ledger.all_local:
        columns = _bullets(map(str, ledger.local))
        return _text(
            "The cells of a record are randomised independently, so the epsilons of its columns add up to"
            f" {ledger.cost!r}. Everything after that is post-processing.",
            *columns,
        )
    cost = TERMS[ledger.law][1]
    adds = (
        f"Sequential composition of {plural(len(ledger.spends), 'question')}, later ones depending on earlier"
        f" answers. Their {cost} add up to {ledger.cost:.6g}, of {ledger.budget:.6g} fixed in advance."
    )
    how = CONVERSIONS.get(ledger.accounting)
    converted = "" if how is None else f"The whole budget becomes epsilon and delta by {how}."
    return _text(adds, converted)


def _implementation(ledger: Ledger) -> dict[str, Any]:
    return {
        "preprocessing_and_hyperparameter_tuning": _text(
            "The run put no question to the private data that is not in its ledger.",
            f"{TODO}: what was looked at before the run (a draft of the schema, exploration, other runs), how"
            " epsilon was chosen, and whether that was accounted for.",
        ),
        "mechanisms": _text(*_mechanisms(ledger)),
        "justification": f"{TODO}: why these parameters, this unit and this method",
    }


def _mechanisms(ledger: Ledger) -> list[str]:
    """Return what adds the noise, and to how many numbers."""
    security = f"{TODO}: how the private data are stored, and who has access."
    lines = [f"privsyn {ledger.version}: {ledger.randomness}."]
    if ledger.spends:
        scale = TERMS[ledger.law][0]
        scales = sorted(spend.sigma for spend in ledger.spends)
        numbers = plural(sum(spend.answers for spend in ledger.spends), "noisy number")
        lines += [
            f"{plural(len(scales), 'question')}, {numbers}, {scale} from {scales[0]:.6g} to {scales[-1]:.6g}."
            " The ledger has each question with its sensitivity, scale and cost.",
            "Exact answers and noise are whole numbers, drawn without rounding errors of floating-point"
            " numbers. The deployment is not interactive, so nobody can time a query.",
        ]
    return [*lines, security]


def _bullets(lines: Iterable[str]) -> list[str]:
    return [f"- {line}" for line in lines]


def _text(*lines: str) -> str:
    """Return lines, wrapped; those of a list are indented."""
    wrapped = (
        wrap(printable(line), WIDTH, subsequent_indent="  " * line.startswith("- "), break_on_hyphens=False)
        for line in lines
    )
    return "\n".join(part for parts in wrapped for part in parts) + "\n"


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, as the registry's check demands, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", data, style="|" if "\n" in data else None)


_Dumper.add_representer(str, _Dumper.represent_str)
