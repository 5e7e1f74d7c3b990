"""ddi.xml: a codebook in DDI-Codebook 2.5 of the DDI Alliance, which data archives import."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from privsyn.errors import printable
from privsyn.studies.publication.catalogues.published_tables import (
    PublishedColumn,
    PublishedTable,
    PublishedTables,
)

NAMESPACE = "ddi:codebook:2_5"

NUMERIC = ("Integer", "Float")


def ddi(published: PublishedTables) -> str:
    """Return the codebook as XML: the study, its files, and each variable with its values."""
    root = Element("codeBook", {"version": "2.5", "xmlns": NAMESPACE})
    study = SubElement(root, "stdyDscr")
    _citation(study, published)
    _information(study, published)
    collection = SubElement(SubElement(study, "method"), "dataColl")
    _add(collection, "collMode", "Generated from counts with noise, under differential privacy")
    _add(collection, "cleanOps", published.privacy["statement"])
    _access(study, published)
    for number, table in enumerate(published.tables, 1):
        _file(root, table, f"F{number}")
    data = SubElement(root, "dataDscr")
    for number, table in enumerate(published.tables, 1):
        for position, column in enumerate(table.columns, 1):
            _variable(data, column, f"V{number}_{position}", f"F{number}")
    indent(root, " ")
    return f"<?xml version='1.0' encoding='utf-8'?>\n{tostring(root, encoding='unicode')}\n"


def _add(parent: Element, name: str, text: object = None, **attributes: str) -> Element:
    """Add an element with a text, if there is one."""
    element = SubElement(parent, name, attributes)
    if text is not None:
        element.text = "\n".join(printable(line) for line in str(text).splitlines())
    return element


def _citation(study: Element, published: PublishedTables) -> None:
    words, citation = published.about, SubElement(study, "citation")
    titles = SubElement(citation, "titlStmt")
    _add(titles, "titl", published.title)
    _add(titles, "IDNo", published.identifier)
    if words.publisher:
        _add(SubElement(citation, "rspStmt"), "AuthEnty", words.publisher)
    production = SubElement(citation, "prodStmt")
    if words.licence:
        _add(production, "copyright", f"Licence: {words.licence}")
    _add(production, "software", "privsyn", version=published.release.ledger.version)
    if words.publisher or words.contact or words.issued:
        distribution = SubElement(citation, "distStmt")
        if words.publisher:
            _add(distribution, "distrbtr", words.publisher)
        if words.contact:
            is_url = words.contact.startswith("http")
            attribute = {"URI": words.contact} if is_url else {"email": words.contact}
            _add(distribution, "contact", words.publisher or words.contact, **attribute)
        if words.issued:
            _add(distribution, "distDate", words.issued, date=words.issued)
    if words.homepage:
        _add(citation, "holdings", words.homepage, URI=words.homepage)


def _information(study: Element, published: PublishedTables) -> None:
    words, information = published.about, SubElement(study, "stdyInfo")
    if words.keywords:
        subject = SubElement(information, "subject")
        for keyword in words.keywords:
            _add(subject, "keyword", keyword)
    _add(information, "abstract", published.description)
    summary = SubElement(information, "sumDscr")
    if words.temporal:
        start, _, end = words.temporal.partition("/")
        for event, day in (("start", start), ("end", end)) if end else (("single", start),):
            _add(summary, "timePrd", day, event=event, date=day)
    for name in words.spatial:
        _add(summary, "geogCover", name)
    _add(summary, "universe", "Synthetic records, which describe no person.")
    _add(summary, "dataKind", "synthetic data")


def _access(study: Element, published: PublishedTables) -> None:
    words = published.about
    if not words.licence and not words.contact:
        return
    use = SubElement(SubElement(study, "dataAccs"), "useStmt")
    if words.contact:
        _add(use, "contact", words.contact)
    if words.licence:
        _add(use, "conditions", f"Licence: {words.licence}")


def _file(root: Element, table: PublishedTable, id_: str) -> None:
    text = SubElement(SubElement(root, "fileDscr", {"ID": id_, "URI": table.file}), "fileTxt")
    _add(text, "fileName", table.file)
    words = table.about
    contents = [] if words is None else [words.title, words.description]
    if any(contents):
        _add(text, "fileCont", ". ".join(filter(None, contents)))
    dimensions = SubElement(text, "dimensns")
    _add(dimensions, "caseQnty", table.rows)
    _add(dimensions, "varQnty", len(table.columns))
    _add(text, "fileType", table.location.format.name)
    _add(text, "dataChck", f"SHA-256: {table.sha256}")


def _variable(data: Element, column: PublishedColumn, id_: str, file: str) -> None:
    is_number = column.type in NUMERIC
    interval = "contin" if is_number and not column.values else "discrete"
    variable = SubElement(data, "var", {"ID": id_, "name": column.name, "files": file, "intrvl": interval})
    _add(variable, "labl", column.description or column.name)
    if is_number and column.bounds is not None and not column.values:
        low, high = (f"{bound:.15g}" for bound in column.bounds)
        _add(SubElement(variable, "valrng"), "range", min=low, max=high)
    for value in column.values:
        category = SubElement(variable, "catgry")
        _add(category, "catValu", value)
        _add(category, "labl", value)
    form: dict[str, Any] = {"type": "numeric" if is_number else "character"}
    if column.type in ("Date", "DateTime"):
        form |= {"category": "date" if column.type == "Date" else "time"}
    _add(variable, "varFormat", **form)
