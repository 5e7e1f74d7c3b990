"""Count rows in the database where they are: SQL of codes and of counts, of which aggregates alone come back.

How the rest of privsyn uses it:

- `engine.Engine` is a connection with its dialect and log. ``engine.count(source, cells)`` is the only way
  to ask: each of `cells` is an integer expression over the columns of `source` with its number of values, and
  the answer is an array of counts for each. NULL is in no cell. ``engine.keep(query)`` writes a temporary
  table inside the engine and returns its name; nothing comes back. ``engine.begin()`` starts the transaction
  in which all questions to the raw table see the same rows; `Engine.commit` ends it.
- `scales.scale_of` orders the values of a column's type as integers, and `steps.steps_of` finds by bisection
  where a function of them, such as an encoder of ours, changes. `expressions.Cell` is one column in SQL:
  ``cell.steps(steps)``, ``cell.listed(...)``.
- `codes.codes_of` returns the expression of each attribute of a codec; `codes.grouped` those of joined codes.
- `engine_table.EngineTable` is the `RawTable` of a table in an engine: its `relation` is what `Engine.count`
  takes as `source` before the codes are known. ``table.counter(codec)`` writes the codes of all rows into a
  temporary table (`CodedTable`), and returns what counts them: a function of `privsyn.marginals.counting`'s
  `Tables`, which `privsyn.private.rows.RowsElsewhere` asks.
"""
