"""Records whose counts are those of all known totals: clique after clique of a junction tree."""
