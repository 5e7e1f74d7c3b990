"""Imports: no module imports itself through others, not even for the types of annotations."""

from __future__ import annotations

import grimp
import networkx as nx


def test_no_circle_of_imports():
    """The contracts of import-linter are about packages; this is about single modules."""
    imports = grimp.build_graph("privsyn")
    graph = nx.DiGraph(
        (name, imported)
        for name in imports.modules
        for imported in imports.find_modules_directly_imported_by(name)
    )
    assert [circle for circle in nx.strongly_connected_components(graph) if len(circle) > 1] == []
