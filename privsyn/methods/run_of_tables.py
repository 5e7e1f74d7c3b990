"""Run: learn one table, or the tables of a database, each after its parent, for one promise.

A row of a child table has more than its own columns: those of the rows above it, in groups that released
counts make; the class of the number of rows that its person has in the table; its position among the rows of
its parent; and the columns of the rows before it. Counts over these are what links the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING

from privsyn.errors import InputError, about
from privsyn.inference.child_rows import agreed, largest_in_column
from privsyn.inference.lasting import can_be_seen_to_last, lasts
from privsyn.inference.rows_per_person import RowsPerPerson
from privsyn.methods.budget import FOR_LASTING, FOR_ROWS, Budget, TablePlan
from privsyn.methods.budget_of_tables import BudgetOfTables
from privsyn.methods.columns import OF_NUMBERS, OF_PATHS
from privsyn.methods.complete_schema import reserved_delta
from privsyn.methods.learning import Inquiry, Learned, learn_randomised_table, learn_table
from privsyn.methods.ledger_of_run import LedgerOfRun
from privsyn.methods.links_of_rows import links_of, of_all_rows, with_uncounted
from privsyn.methods.persons import ONE_CLASS, Above, Persons, PersonsInMemory
from privsyn.methods.persons_in_engine import key_of
from privsyn.methods.previous_siblings import MOST_VALUES, OF_PREVIOUS
from privsyn.methods.reading import Opened, open_schema_of, pairs_of, persons_of_linked, public_schema_of
from privsyn.methods.table_of_run import (
    NO_CONTEXT,
    LearnedTable,
    RunTable,
    check_compared,
    check_limited,
    with_required_bounds,
)
from privsyn.private.accounting import rho_for
from privsyn.private.contribution import (
    ONE_ROW_EACH,
    previous_rows,
    random_order,
    shares_that_stay,
    values_of_one_row,
)
from privsyn.private.run_ledger import RunLedger
from privsyn.progress import MEASURING, one_of
from privsyn.synthesis.chains import EXACT, NEXT, NUMBER_OF_ROWS, OF_ROWS
from privsyn.table.database.computed_above import check_computed_above
from privsyn.table.database.database import ROWS, Database
from privsyn.table.database.derived_columns import (
    changes_of,
    most_rows_by_rules,
    number_of_changes,
    number_of_rows,
    of_lasting,
    rows_of,
    start_of,
    with_constants,
)
from privsyn.table.database.linked_table import codes_of_listed
from privsyn.table.database.lookups import with_lookups
from privsyn.table.database.opened import named_tables, open_tables, with_columns_that_last
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.schema.columns import Numerical

if TYPE_CHECKING:
    from privsyn.inference.single_rows import SingleCodes
    from privsyn.methods.run_settings import RunSettings
    from privsyn.private.noise_laws import Law
    from privsyn.private.randomness import Bits
    from privsyn.table.database.linked_table import LinkedTable


@dataclass(frozen=True, eq=False)
class Run:
    """The tables of a run before the first question: those of a database, or a single one.

    Parameters
    ----------
    database : Database
    tables : tuple of RunTable
        Each after its parent.
    settings : RunSettings
    share_of_tests : float
        Share of the budget for the tests of criteria.
    rows : mapping of a table to its LinkedTable
        Private; none for a single table.
    rows_per_person : mapping of a table to RowsPerPerson
        The released numbers of rows per person, of each table whose rows are counted by person.
    share_of_lasting : float
        Share of the budget of questions that was spent on the choice of columns that last.
    """

    database: Database
    tables: tuple[RunTable, ...]
    settings: RunSettings
    share_of_tests: float = 0.0
    rows: Mapping[str, LinkedTable] = field(default_factory=dict, repr=False)
    rows_per_person: Mapping[str, RowsPerPerson] = field(default_factory=dict)
    share_of_lasting: float = 0.0

    @classmethod
    def of_one(cls, opened: Opened, share_of_tests: float = 0.0) -> Run:
        """Return the run of a single table, whose rows are persons or belong to persons."""
        database = Database.of_one()
        table = RunTable(ROWS, database.tables[ROWS], opened, pairs_of(len(opened.schema.schema.coded)))
        return cls(database, (table,), opened.settings, share_of_tests)

    @classmethod
    def of(cls, database: Database, tables: object, settings: RunSettings, bits: Bits) -> Run:
        """Open all tables, with random `bits` for the order of each person's rows. No row is counted."""
        named, database = named_tables(database, tables), with_lookups(database)
        opened = open_tables(database, named, lambda codes: random_order(codes, bits), lambda: key_of(bits))
        run = cls(database, (), settings, rows=opened)
        for name, rows in opened.items():
            with about(f"table {name!r}"):
                persons = persons_of_linked(rows, bits)
                run = replace(run, tables=(*run.tables, run._open_table(name, rows, persons)))
        return run

    def _open_table(self, name: str, rows: LinkedTable, persons: Persons, *, again: bool = False) -> RunTable:
        """Return a table of a database, after those above it; refuse what cannot be learnt.

        If it is opened `again`, no warning about its columns is repeated.
        """
        declared, children = self.database.tables[name], self.database.children(name)
        linked, numbers = declared.parent is not None, tuple(self._numbers(name))
        above = persons.above or Above()
        lasting = [column for child in children for column in of_lasting(self.database, child)]
        weights = dict.fromkeys(map(rows_of, children), OF_NUMBERS) | dict.fromkeys(lasting, OF_PATHS)
        persons = persons.with_above(replace(above, linked=linked, numbers=numbers, weights=weights))
        data_columns = persons.bounded(rows.source, 0)
        public = public_schema_of(data_columns, rows.schema, None, nullable=self.settings.nullable)
        schema = (
            OpenSchema.of(public, data_columns.head) if again else open_schema_of(data_columns, public, None)
        )
        if not any(table.ruled or table.one for table in self.database.tables.values()):
            schema = schema.with_widest_computed()
        reserved_delta(self.settings.promise[1], schema)  # refuses values to be found with a delta of 0
        columns = tuple(schema.schema.coded)
        columns_above = [
            f"{table.name}.{column}"
            for table in self.tables
            if table.name in self.database.above(name)
            for column in table.opened.schema.schema.coded
        ]
        neighbours = [prefix + column for prefix in (*OF_PREVIOUS, *NEXT, EXACT) for column in columns]
        for column in columns:
            if column in (*columns_above, *OF_ROWS, *neighbours):
                raise InputError(f"the column {column!r} has a name that links need: rename it")
        coded = {table.name: table.opened.schema.schema.coded for table in self.tables}
        kinds_above = with_constants(self.database, name, coded)
        with_computed = {**schema.schema.coded, **rows.computed_above}
        rules, ruled = tuple(declared.computed_above.values()), declared.compared_columns
        limited = check_computed_above(rules, with_computed, kinds_above, ruled)
        schema = replace(schema, compared=(*declared.ruled, *limited))
        data_columns = data_columns.unordered(schema.unordered)
        opened = Opened(rows.source, data_columns, persons, schema, None, self.settings)
        check_compared(opened, declared, {table.name: table.opened.schema.schema for table in self.tables})
        check_limited(opened, limited)
        data_columns.check(opened.codec(schema.fill({}, {})))
        # What a lasting column adds above is worth less than columns: few of its pairs matter.
        pairs = pairs_of(len(columns) - len(lasting)) + len(lasting)
        linking_pairs = len(columns) * (len(columns_above) + len(columns)) if linked else 0
        pairs += linking_pairs + (len(columns) if linked else 0)  # and with the number of rows
        of_children = (*map(rows_of, children), *lasting)
        computed = rows.computed_above
        return RunTable(name, declared, opened, pairs, linking_pairs, children, of_children, computed)

    def _numbers(self, name: str) -> Iterator[str]:
        """Yield the columns of a table that have a number of child rows, or of changes among them."""
        for child in self.database.children(name):
            yield rows_of(child)
            for column in self.database.tables[child].lasting:
                yield changes_of(self.database, child, column)

    def with_first_answers(self, inquiry: Inquiry) -> Run:
        """Ask the numbers of rows per person, then which columns last, and return the run that knows both.

        The numbers say of which tables the second question could have an answer; see `candidates`.
        """
        if self.settings.epsilon is None:
            return self
        law = inquiry.noise.law
        rho = self.budget(law).rho_of_questions  # refuses values to be found with a delta of 0
        inquiry.report(MEASURING, 0, self.settings.algorithm.stages * len(self.tables))  # before any question
        rows_per_person = self._count_rows(inquiry, rho)
        return replace(self, rows_per_person=rows_per_person)._with_columns_that_last(inquiry, rho)

    def candidates(
        self, rows_per_person: Mapping[str, RowsPerPerson], law: Law, rho: float
    ) -> dict[str, tuple[str, ...]]:
        """Return the columns of each child table that may last: with a public list of values, in no rule.

        The rows of the table have an order, and noise does not hide all columns that last, if `rho` is what
        all questions may cost. A column that sums up the rows below is no candidate: what it is follows from
        the rules of these rows, and no rule of its own can name it. Nor is one whose first value or number of
        changes would have the name of a column of the parent.
        """
        columns = dict[str, tuple[str, ...]]()
        for name, rows in self.rows.items():
            declared = self.database.tables[name]
            listed = (
                column
                for column, kind in rows.schema.coded.items()
                if kind.lists_values
                and kind.is_public
                and 1 < len(kind.listed) <= MOST_VALUES
                and column not in rows.added
            )
            if declared.order is not None and rows.elsewhere is None:  # a database is not asked what lasts
                taken = self.rows[declared.parent or ""].schema.columns
                columns[name] = tuple(
                    column
                    for column in listed
                    if column not in declared.named_in_rules
                    and start_of(self.database, name, column) not in taken
                    and changes_of(self.database, name, column) not in taken
                )
        number = sum(map(len, columns.values()))
        if not number:
            return {}
        variance = law.variance(law.scale(FOR_LASTING * rho / (2 * number), law.joint(2)))
        return {
            name: names
            for name, names in columns.items()
            if names and can_be_seen_to_last(rows_per_person[name].persons_with(2), variance)
        }

    def _with_columns_that_last(self, inquiry: Inquiry, rho: float) -> Run:
        """Ask which columns last along the rows of a parent, and return the run with rules that say so.

        A column lasts if a row has the value of the row before it much more often than a row of another
        person has it; see `lasts`. Both are asked of each candidate. The choice follows from the answers.
        """
        candidates = self.candidates(self.rows_per_person, inquiry.noise.law, rho)
        if not candidates:
            return self
        cost = FOR_LASTING * rho / (2 * sum(map(len, candidates.values())))
        chosen = dict[str, list[str]]()
        for table in self.tables:
            if table.name not in candidates:
                continue
            log, rows = inquiry.for_table(table.title).log, self.rows[table.name]
            order = table.persons_here.order
            keys = None if rows.keys is None else rows.keys[order]
            persons, previous = rows.persons[order], previous_rows(rows.parents[order], keys)
            for column in candidates[table.name]:
                codes, size = codes_of_listed(rows, column)
                in_order, one_row = codes[order], codes[table.persons_here.first(1)]
                stays = shares_that_stay(column, persons, previous, in_order, log, inquiry.noise, cost)
                values = values_of_one_row(column, one_row, size, log, inquiry.noise, cost)
                if lasts(*stays, *values):
                    chosen.setdefault(table.name, []).append(column)
        run = replace(self, share_of_lasting=FOR_LASTING)
        return run._lasting(self.database.with_lasting(chosen)) if chosen else run

    def _lasting(self, database: Database) -> Run:
        """Return the run on a database with more columns that last. Nothing is drawn again."""
        rows = with_columns_that_last(database, self.rows)
        run = replace(self, database=database, rows=rows, tables=())
        for table in self.tables:
            persons = PersonsInMemory.of_linked(rows[table.name], table.persons_here.order)
            opened = run._open_table(table.name, rows[table.name], persons, again=True)
            run = replace(run, tables=(*run.tables, opened))
        return run

    def learn(
        self, inquiry: Inquiry, public_inputs: Callable[[], tuple[str, ...]] = tuple
    ) -> tuple[dict[str, LearnedTable], RunLedger]:
        """Ask and learn each table after its parent; return what was learnt, and the ledger.

        Parameters
        ----------
        inquiry : Inquiry
        public_inputs : callable
            Returns what else the ledger says is public, after all questions.
        """
        if self.settings.epsilon is None:
            # The respondents added the noise to their cells, so that these counts need no more.
            learned = {
                table.name: LearnedTable(learn_randomised_table(table.opened, inquiry), None, NO_CONTEXT)
                for table in self.tables
            }
        else:
            learned = self._from_answers(inquiry)
        ledger = LedgerOfRun(self.database, self.tables, self.settings)
        return learned, ledger.ledger(inquiry, learned, public_inputs())

    def _from_answers(self, inquiry: Inquiry) -> dict[str, LearnedTable]:
        """Discover what schemas leave open, put questions to the rows, and estimate from the answers.

        The numbers of rows per person, which were asked first, decide how the rest of the budget is divided
        among the tables.
        """
        law, report, rows_per_person = inquiry.noise.law, inquiry.report, {**self.rows_per_person}
        budget = self.budget(law)
        rest = 1 - FOR_ROWS * bool(rows_per_person) - self.share_of_lasting
        rho = rest * budget.rho_of_questions
        plans = BudgetOfTables(self.database, self.tables, rows_per_person, law, rho).plans
        learned: dict[str, LearnedTable] = {}
        for number, table in enumerate(self.tables):
            name, plan, delta = table.name, plans[table.name], budget.deltas[table.name]
            table = table if plan.lags else table.without_links()
            table = table.with_numbers_of_rows(self.numbers_of_rows(name, rows_per_person))
            opened, row_classes, contribution = table.opened, ONE_CLASS, ONE_ROW_EACH
            if opened.counts_rows:  # by the answers that come first: without them no bound would hold
                row_classes, contribution = opened.classes_and_contribution(
                    rows_per_person[name], law, plan.rho, table.pairs
                )
                if (parent := table.declared.parent) is not None:  # the codes of the rows above
                    row_classes = replace(row_classes, name=NUMBER_OF_ROWS) if row_classes else row_classes
                    opened = table.with_context(learned[parent].context, plan.lags)
            opened = with_required_bounds(opened, table.declared, learned)
            part = replace(inquiry.for_table(table.title), report=one_of(report, number, len(self.tables)))
            with self.database.naming_errors(name):
                estimate = learn_table(opened, row_classes, contribution, part, rho=plan.rho, delta=delta)
            children = {child: rows_of(child) for child in self.database.children(name)}
            if name in self.database.roots:
                # A row is a person: the model and the numbers of rows per person count the same child rows.
                for child, column in children.items():
                    numbers = estimate.middles_of(column)
                    limited = bool(numbers[-1] >= self._most_rows(child))
                    fitted, rows = agreed(
                        estimate.fitted, column, numbers, rows_per_person[child], limited=limited
                    )
                    estimate, rows_per_person[child] = replace(estimate, fitted=fitted), rows
            learned[name] = self._learned_table(table, estimate, learned, plans)
            if name not in self.database.roots:
                # The sum of a column of numbers of child rows is one more answer on the number of all rows of
                # the child table. It is of all rows: those that bounds leave out may have other numbers.
                # And persons with more rows of the parent than is seen have more rows of it.
                above = rows_per_person[name]
                for child, column in children.items():
                    total, variance = learned[name].learned.sum_of(column)
                    rows = rows_per_person[child].with_all(total, variance)
                    hidden = total * above.hidden_rows / max(above.total, 1.0)
                    rows_per_person[child] = rows.with_hidden_rows(hidden)
        return learned

    def budget(self, law: Law) -> Budget:
        """Return what the run may cost. It follows from public facts alone.

        Tables that search for values share the delta that is reserved.
        """
        epsilon, delta = self.settings.promise
        reserved = {table.name: reserved_delta(delta, table.opened.schema) for table in self.tables}
        rho = rho_for(epsilon, delta - max(reserved.values()), self.settings.algorithm.accounting_of(law))
        searching = max(sum(part > 0 for part in reserved.values()), 1)
        deltas = {name: part / searching for name, part in reserved.items()}
        return Budget(rho - self.share_of_tests * rho, self.share_of_tests * rho, deltas)

    def _count_rows(self, inquiry: Inquiry, rho: float) -> dict[str, RowsPerPerson]:
        """Return the released numbers of rows per person of each table whose rows are counted by person.

        In a database these are all tables but the root. A single table with a unit is counted too. `rho` is
        what all questions of the run may cost.
        """
        counted = {
            table: persons
            for table in self.tables
            if (persons := table.opened.persons) is not None and table.opened.counts_rows
        }
        cost = FOR_ROWS * rho / max(len(counted), 1)
        return {
            table.name: persons.count(inquiry.for_table(table.title).log, inquiry.noise, cost)
            for table, persons in counted.items()
        }

    def _most_rows(self, child: str) -> float:
        """Return how many rows of a child table a row of the parent has at most, by what the schema says."""
        declared = self.database.tables[child]
        kinds = next(table.opened.schema.schema.coded for table in self.tables if table.name == child)
        _, limit = declared.children or (0, None)
        return min(most_rows_by_rules(declared, kinds), inf if limit is None else limit)

    def numbers_of_rows(
        self, name: str, rows_per_person: Mapping[str, RowsPerPerson]
    ) -> dict[str, Numerical]:
        """Return the columns of numbers of child rows, and of changes among them, by their name.

        Their bounds follow from releases. A public rule is a bound, too, unless the released numbers of rows
        show persons who break it: then more rows are estimated than can be made, and this is said.
        """
        columns = {}
        for child in self.database.children(name):
            rows = rows_per_person[child]
            if name in self.database.roots:  # a person has one row of it: a larger bound adds no noise
                largest = largest_in_column(rows)
            else:  # a row above is not a person: it has fewer rows
                largest = rows.largest_of(rows_per_person[name].total)
            declared = self.database.tables[child]
            limit = self._most_rows(child)
            applies = name in self.database.roots and not rows.clearly_exceeds(limit)
            numbers = number_of_rows(declared, min(largest, limit) if applies else largest)
            columns[rows_of(child)] = numbers
            for column in declared.lasting:
                columns[changes_of(self.database, child, column)] = number_of_changes(numbers.bounds[1])
        return columns

    def _learned_table(
        self,
        table: RunTable,
        estimate: Learned,
        learned: Mapping[str, LearnedTable],
        plans: Mapping[str, TablePlan],
    ) -> LearnedTable:
        """Return the model of all rows of a table, how they are linked, and the context of rows below."""
        links, above = None, NO_CONTEXT
        if table.declared.parent is None:
            estimate = estimate.of_all_rows
        else:
            parent = learned[table.declared.parent]
            codes: dict[str, SingleCodes] = {}
            if table.declared.parent in self.database.roots:  # a row above is a person
                derive = self.database.tables[table.declared.parent].derive
                codes = table.single_codes(estimate, parent.learned, derive)
            estimate = of_all_rows(estimate, parent.learned, rows_of(table.name), codes)
            columns_above = table.context_of_rows(parent.context).columns
            links = links_of(estimate, columns_above)
            if not table.has_links:
                columns = estimate.fitted.merging.merged.project(estimate.codec.domain.names)
                in_order = table.declared.order is not None
                links = with_uncounted(links, columns_above, columns, in_order=in_order)
            above = parent.context
        context = NO_CONTEXT
        if table.children:
            groups = max(plans[child].groups for child in table.children)
            # They say how a path runs, and are drawn exactly. Tables over them would add noise to all others.
            paths = {name for child in table.children for name in of_lasting(self.database, child)}
            context = table.context_for_children(estimate, groups, paths, above)
        return LearnedTable(estimate, links, context, has_links=table.has_links)
