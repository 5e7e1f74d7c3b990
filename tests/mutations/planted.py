"""The planted bugs: where, what is written there, what is written instead, and which tests should notice.

Longer than other files on purpose: one list, in the order of a run, so that a gap in it shows.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """One exact text of one file, found there once, and what takes its place."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Bug:
    """A privacy bug.

    Parameters
    ----------
    name : str
    edits : tuple of Edit
    tests : tuple of str
        At least one of these must fail: the most specific ones, so that all bugs together take minutes.
    """

    name: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]


def bug(name: str, file: str, old: str, new: str, *tests: str) -> Bug:
    """Make a bug of a single edit."""
    return Bug(name, (Edit(file, old, new),), tests)


ACCOUNTING = (
    bug(
        "the noise scale rounded to nearest, not up",
        "privsyn/private/accounting.py",
        "while _cost(sigma, sensitivity) > Fraction(rho):",
        "while False:",
        "tests/private/test_accounting.py::test_sigma_is_rounded_up_and_its_cost_too",
    ),
    bug(
        "the cost of a spend rounded to nearest, not up",
        "privsyn/private/accounting.py",
        "return nearest if Fraction(nearest) >= cost else nextafter(nearest, inf)",
        "return nearest",
        "tests/private/test_accounting.py::test_sigma_is_rounded_up_and_its_cost_too",
    ),
    bug(
        "the budget of a promise rounded up",
        "privsyn/private/accounting.py",
        "return _crossing(lambda rho: profile(rho, epsilon) <= delta)[0]",
        "return _crossing(lambda rho: profile(rho, epsilon) <= delta)[1]",
        "tests/private/test_accounting.py::test_budget_and_promise_are_inverse",
    ),
    bug(
        "delta without the margin for rounding errors",
        "privsyn/private/accounting.py",
        "MARGIN = 1e-12",
        "MARGIN = 0.0",
        "tests/private/test_accounting.py::test_delta_is_never_below_the_truth",
    ),
    bug(
        "the tighter accounting of Gaussian noise for the published one",
        "privsyn/methods/methods.py",
        "return self.accounting or law.accounting",
        "return law.accounting",
        "tests/test_synthesizer.py::test_paper_is_the_published_method_with_its_accounting",
    ),
    bug(
        "a delta whose terms cancel without a margin",
        "privsyn/private/accounting.py",
        "+ CANCELLATION * first",
        "+ 0.0 * CANCELLATION",
        "tests/private/test_accounting.py::test_delta_is_never_below_the_truth",
    ),
)

LEDGER = (
    bug(
        "the delta of a threshold forgotten",
        "privsyn/private/ledger.py",
        "return rho_for(self.promised_epsilon, self.promised_delta - self.reserved, self.accounting)",
        "return rho_for(self.promised_epsilon, self.promised_delta, self.accounting)",
        "tests/private/test_ledger.py::test_a_gaussian_answer_beside_a_threshold_keeps_the_promise_in_both_directions",
    ),
    bug(
        "epsilon of what was spent, not of the budget",
        "privsyn/private/ledger.py",
        "epsilon_for(max(self.cost, self.budget),",
        "epsilon_for(self.cost,",
        "tests/private/test_ledger.py::test_a_budget_not_all_spent_promises_no_less_epsilon",
    ),
    bug(
        "a ledger that may overspend",
        "privsyn/private/ledger.py",
        "self.rho > self.budget * (1 + SLACK):",
        "self.rho > 2 * self.budget:",
        "tests/private/test_ledger.py::test_a_ledger_that_overspends_cannot_exist",
    ),
    bug(
        "the noise scale rounded where the ledger is written",
        "privsyn/private/spend.py",
        "scale: self.sigma,",
        "scale: round(self.sigma, 3),",
        "tests/private/test_ledger.py::test_a_written_ledger_tells_the_delta_of_thresholds",
    ),
    bug(
        "the delta of a threshold lost where a ledger is read",
        "privsyn/private/spend.py",
        "sensitivity, sigma, delta, law)",
        "sensitivity, sigma, 0.0, law)",
        "tests/private/test_ledger.py::test_a_written_ledger_tells_the_delta_of_thresholds",
    ),
    bug(
        "a run that can be repeated called private",
        "privsyn/methods/reading.py",
        "private=noise.private,",
        "private=True,",
        "tests/test_synthesizer.py::test_a_run_that_can_be_repeated_is_called_not_private",
    ),
)

NOISE = (
    bug(
        "the user's seed, or a fixed one, for the noise of a private run",
        "privsyn/private/noise.py",
        "(scale, size, os_entropy)",
        "(scale, size, seeded_bits(np.random.default_rng(0)))",
        "tests/private/test_noise.py::test_entropy_of_the_operating_system_does_not_repeat",
    ),
    bug(
        "one word of entropy for all draws",
        "privsyn/private/sampler.py",
        "os.urandom(8 * size)",
        "os.urandom(8) * size",
        "tests/test_released_only.py::test_every_draw_has_entropy_of_its_own",
    ),
    bug(
        "half of the bits of entropy",
        "privsyn/private/sampler.py",
        "return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)",
        "return np.frombuffer(os.urandom(4 * size), dtype=np.uint32).astype(np.uint64) << np.uint64(32)",
        "tests/test_released_only.py::test_every_draw_has_entropy_of_its_own",
    ),
    bug(
        "floating-point noise",
        "privsyn/private/noise.py",
        "return exact + noise.draw(scale, exact.size).reshape(exact.shape)",
        "return exact + np.random.default_rng().normal(0, scale, exact.shape)",
        "tests/private/test_noise.py::test_a_released_answer_is_the_exact_one_plus_the_noise",
    ),
    bug(
        "one draw of noise for all cells of an answer",
        "privsyn/private/noise.py",
        "return exact + noise.draw(scale, exact.size).reshape(exact.shape)",
        "return exact + noise.draw(scale, 1)",
        "tests/private/test_measure.py::test_every_number_has_noise_of_its_own",
    ),
    bug(
        "fractions through the door",
        "privsyn/private/noise.py",
        "if not (np.issubdtype(exact.dtype, np.integer) and",
        "if not (True or",
        "tests/private/test_noise.py::test_only_integers_pass_the_door",
    ),
    bug(
        "noise of one sign",
        "privsyn/private/sampler.py",
        "np.negative(draws, out=draws, where=negative)",
        "pass",
        "tests/private/test_sampler.py::test_the_lowest_bit_is_the_sign",
    ),
    bug(
        "tails as double precision has them",
        "privsyn/private/sampler.py",
        " | (k < FEWEST)",
        "",
        "tests/private/test_sampler.py::test_only_the_smallest_words_are_doubtful_by_themselves",
    ),
    bug(
        "a tail settled without fresh bits",
        "privsyn/private/sampler.py",
        "self.numerator << 64 | int(self.bits(1)[0])",
        "self.numerator << 64",
        "tests/private/test_sampler.py::test_a_word_that_straddles_a_half_integer_is_decided_by_further_words",
    ),
    bug(
        "noise cut off at six standard deviations",
        "privsyn/private/sampler.py",
        "return nearest",
        "return min(nearest, round(6 * sigma))",
        "tests/private/test_sampler.py::test_words_from_all_over_the_range_agree_with_mpmath",
    ),
    bug(
        "noise that repeats after a block of cells",
        "privsyn/private/sampler.py",
        "draw(bits(min(BLOCK, size - start)))\n",
        "draw(bits(min(BLOCK, size - start)))\n"
        "        draws[start : start + BLOCK] = draws[: min(BLOCK, size - start)]\n",
        "tests/private/test_sampler.py::test_blocks_join_without_a_seam",
    ),
)

QUESTIONS = (
    bug(
        "sigma too small by a factor of sqrt 2",
        "privsyn/private/measure.py",
        "return release(exact, scale, self._noise), scale",
        "return release(exact, scale / sqrt(2), self._noise), scale",
        "tests/private/test_measure.py::test_the_sigma_that_is_used_is_the_one_that_is_written_down",
    ),
    bug(
        "one-ways with the sensitivity of a single table",
        "privsyn/private/measure.py",
        "np.concatenate(exact), len(tables), rho",
        "np.concatenate(exact), 1, rho",
        "tests/private/test_measure.py::test_the_sensitivities_are_those_of_the_proofs",
    ),
    bug(
        "the counts of a column with half of their sensitivity",
        "privsyn/private/measure.py",
        "counts, 1, rho * share, bound)",
        "counts, 0.5**2, rho * share, bound)",
        "tests/private/test_measure.py::test_no_record_moves_an_answer_further_than_the_ledger_says",
    ),
    bug(
        "dependences with the sensitivity of a single pair",
        "privsyn/private/measure.py",
        "exact, len(pairs), rho, bound, INDIF_SENSITIVITY",
        "exact, 1, rho, bound, INDIF_SENSITIVITY",
        "tests/private/test_measure.py::test_the_extreme_table_moves_all_dependences_at_once",
    ),
    bug(
        "the published sensitivity of InDif, 3 records for 4",
        "privsyn/private/dependence.py",
        "INDIF_SENSITIVITY = 4 * GRID + 1",
        "INDIF_SENSITIVITY = 3 * GRID + 1",
        "tests/private/test_dependence.py::test_no_record_moves_it_further_than_its_sensitivity",
    ),
    bug(
        "InDif in 64 bits, however many records there are",
        "privsyn/private/dependence.py",
        "counts if n < MOST_RECORDS else",
        "counts if n else",
        "tests/private/test_dependence.py::test_the_record_at_which_64_bits_are_full_moves_it_like_any_other",
    ),
    bug(
        "departures with the sensitivity of a single table",
        "privsyn/private/measure.py",
        "distances, len(expected), rho, bound)",
        "distances, 1, rho, bound)",
        "tests/private/test_measure.py::test_no_record_moves_an_answer_further_than_the_ledger_says",
    ),
    bug(
        "a squared distance in place of an absolute one",
        "privsyn/private/measure.py",
        "np.add.reduceat(np.abs(gaps), starts)",
        "np.add.reduceat(gaps**2, starts)",
        "tests/private/test_measure.py::test_each_departure_moves_by_1",
    ),
    bug(
        "a distance over blocks and over cells at once",
        "privsyn/private/measure.py",
        "+= joined.ravel()\n",
        "+= joined.ravel()\n            gaps[start] -= 0 if joined is counts else np.abs(counts).sum()\n",
        "tests/private/test_measure.py::test_in_blocks_a_departure_is_the_distance_of_the_joined_counts",
    ),
    bug(
        "concordances with the sensitivity of a single pair",
        "privsyn/private/measure.py",
        'numbers", exact, len(pairs), rho, bound)',
        'numbers", exact, 1, rho, bound)',
        "tests/private/test_measure.py::test_no_record_moves_an_answer_further_than_the_ledger_says",
    ),
    bug(
        "signs of size 2",
        "privsyn/private/measure.py",
        "SIGNS = (-1, 0, 1)",
        "SIGNS = (-2, -1, 0, 1, 2)",
        "tests/private/test_measure.py::test_signs_that_would_break_the_sensitivity_are_refused_before_a_row_is_counted",
    ),
    bug(
        "a table of counts with half of its sensitivity",
        "privsyn/private/measure.py",
        "(what, counts, 1, float(rhos[place]), bound)",
        "(what, counts, 0.5**2, float(rhos[place]), bound)",
        "tests/private/test_measure.py::test_no_record_moves_an_answer_further_than_the_ledger_says",
    ),
    bug(
        "residuals with the sensitivity of a table of counts",
        "privsyn/private/measure.py",
        '", exact, norm, rho, bound)',
        '", exact, 1, rho, bound)',
        "tests/private/test_measure.py::test_no_record_moves_an_answer_further_than_the_ledger_says",
    ),
    bug(
        "selection without noise",
        "privsyn/private/measure.py",
        "return noisy.astype(np.float64), sqrt(",
        "return np.array(distances, np.float64), sqrt(",
        "tests/private/test_measure.py::test_every_number_has_noise_of_its_own",
    ),
    bug(
        "part of the budget spent twice, and written down once",
        "privsyn/private/spend.py",
        "        self._spends.append(",
        "        self._times[what] == 1 and self._spends.append(",
        "tests/private/test_measure.py::test_what_is_asked_again_is_called_another_look",
    ),
    bug(
        "a merged table with a list of spends of its own",
        "privsyn/private/measure.py",
        "self._rows.merge(merging), self._noise, self.contribution, self._log)",
        "self._rows.merge(merging), self._noise, self.contribution)",
        "tests/private/test_measure.py::test_a_table_and_its_merged_one_have_one_list_of_what_was_asked",
    ),
    bug(
        "values merged by their exact counts",
        "privsyn/private/measure.py",
        "table = Marginal(self.domain.project(attributes), noisy.astype(np.float64))",
        "if len(attributes) == 1:\n"
        "            noisy = np.where(next(self._rows.count([attributes])) < 10, 0, noisy)\n"
        "        table = Marginal(self.domain.project(attributes), noisy.astype(np.float64))",
        "tests/methods/test_methods.py::test_nothing_is_learnt_but_from_answers",
    ),
    bug(
        "the last of merged counts in place of their sum",
        "privsyn/private/rows.py",
        "np.add.at(known[attributes, bound], merging.groups[axis], counts)",
        "known[attributes, bound][merging.groups[axis]] = counts",
        "tests/private/test_measure.py::test_counts_that_were_kept_before_a_merging_are_added_up",
    ),
    bug(
        "rows that are kept in memory counted twice",
        "privsyn/private/rows.py",
        "            self._kept = kept\n",
        "            self._kept = kept + kept\n",
        "tests/private/test_measure.py"
        "::test_a_row_is_counted_once_in_each_question_whether_or_not_it_is_kept",
    ),
    bug(
        "the sensitivity of one row for a person of k rows in merged codes",
        "privsyn/private/measure.py",
        "self._rows.merge(merging), self._noise, self.contribution, self._log)",
        "self._rows.merge(merging), self._noise, ONE_ROW_EACH, self._log)",
        "tests/private/test_measure.py::test_a_person_has_as_many_rows_in_merged_codes",
    ),
)

METHODS = (
    bug(
        "the sets paid for by nobody",
        "privsyn/methods/budget.py",
        "scored, trends, sets, second))",
        "scored, trends, second))",
        "tests/methods/test_budget.py::test_the_parts_sum_to_the_whole_and_none_is_negative",
    ),
    bug(
        "the part of a question that is not asked is not given back",
        "privsyn/methods/budget.py",
        "pairs=self.pairs + getattr(self, part), **{part: 0.0}",
        "pairs=self.pairs + getattr(self, part)",
        "tests/methods/test_budget.py::test_the_parts_sum_to_the_whole_and_none_is_negative",
    ),
    bug(
        "question 0 paid for by nobody",
        "privsyn/methods/learning.py",
        "rho * (1 - discovered.share)",
        "rho",
        "tests/test_synthesizer.py::test_without_a_schema_only_names_and_dtypes_are_public",
    ),
    bug(
        "the exact number of rows used",
        "privsyn/methods/default.py",
        "    pairs = _departures(",
        "    total = float(max(1, next(private._rows.count([private.domain.names[:1]])).sum()))\n"
        "    looks = (replace(m, variance=m.variance * total / 1e4) for m in problem.one_ways)\n"
        "    problem = replace(problem, one_ways=tuple(looks))\n"
        "    pairs = _departures(",
        "tests/methods/test_methods.py::test_nothing_is_learnt_but_from_answers",
    ),
)

PERSONS = (
    bug(
        "the sensitivity of one row for a person of k rows",
        "privsyn/private/measure.py",
        " * each * bound.most\n",
        " * each\n",
        "tests/private/test_measure.py::test_no_person_moves_an_answer_further_than_the_ledger_says",
    ),
    bug(
        "k times the cost for a person of k rows, not k squared",
        "privsyn/methods/learning.py",
        "left = noise.law.of_row(rho * (1 - discovered.share), contribution.most)",
        "left = rho * (1 - discovered.share) / contribution.most",
        "tests/test_unit.py::test_the_noise_is_k_times_that_of_the_plain_case",
    ),
    bug(
        "the rows of a person counted without a bound",
        "privsyn/private/bounds.py",
        "        yield block if kept.all() else",
        "        yield block if True else",
        "tests/test_unit.py::test_no_more_rows_of_a_person_are_counted_than_may_be",
    ),
    bug(
        "values and bounds found among all rows of a person",
        "privsyn/methods/learning.py",
        "kept = opened.bounded(contribution.most)",
        "kept = opened.bounded(10**9)",
        "tests/test_person_leaves.py::test_nothing_moves_further_than_the_ledger_says",
    ),
    bug(
        "a bound on rows where squares are claimed",
        "privsyn/marginals/_kernels.py",
        "added = 2 * times[at] + 1",
        "added = 1",
        "tests/private/test_bounds.py::test_whoever_leaves_moves_a_table_by_no_more_than_the_bound",
    ),
    bug(
        "squares of counts in codes, which are joined to groups afterwards",
        "privsyn/private/rows.py",
        "yield from self.walk(WithinSquares(self.domain, some, self.grouping, further, most).count)",
        "squares = WithinSquares(self.domain, some, self.grouping, [NO_GROUPS] * len(some), most)\n"
        "            counted = self.walk(squares.count)\n"
        "            yield from (of.join(counts) for of, counts in zip(further, counted, strict=True))",
        "tests/private/test_bounds.py::test_groups_are_bounded_as_groups",
    ),
    bug(
        "the rows of a person in the order of the table",
        "privsyn/private/bounds.py",
        "words, known = bits(len(persons)), np",
        "words, known = np.arange(len(persons), dtype=np.uint64), np",
        "tests/private/test_bounds.py::test_each_choice_is_equally_likely",
    ),
    bug(
        "the rows of a person in the order of a value",
        "privsyn/private/rows.py",
        "block = self._packing.unpack(tuple(column[first:last] for column in packed))\n",
        "block = self._packing.unpack(tuple(column[first:last] for column in packed))\n"
        "                by_value = np.lexsort((block[0], np.cumsum(within[first:last] == 0)))\n"
        "                block = tuple(column[by_value] for column in block)\n",
        "tests/private/test_bounds.py"
        "::test_counts_within_squares_are_those_of_a_slow_twin_whatever_fits_in_memory",
    ),
    bug(
        "numbers of the rows that are kept of each person, in place of all",
        "privsyn/methods/persons.py",
        "rows_per_person(self.codes, log",
        "rows_per_person(self.codes[self.first(2)], log",
        "tests/test_unit.py::test_rows_per_person_are_counted_of_all_rows",
    ),
    bug(
        "rows in place of persons by their number of rows, with the sensitivity of persons",
        "privsyn/private/bounds.py",
        "np.histogram(_numbers_of_rows(persons), ",
        "np.histogram(np.repeat(_numbers_of_rows(persons), _numbers_of_rows(persons)), ",
        "tests/private/test_bounds.py::test_a_person_moves_the_numbers_of_rows_per_person_by_one_cell",
    ),
    bug(
        "the number of all rows, with the sensitivity of those of a bound",
        "privsyn/private/bounds.py",
        "np.minimum(_numbers_of_rows(persons), most).sum()",
        "_numbers_of_rows(persons).sum()",
        "tests/private/test_bounds.py::test_a_person_moves_the_number_of_all_rows_by_at_most_the_bound",
    ),
    bug(
        "tests of all rows of a person, with the cost of those within the bound",
        "privsyn/synthesizer.py",
        "law.of_row(budget.tests, tested.most)",
        "law.of_row(budget.tests, contribution.most)",
        "tests/release/acceptance/test_acceptance.py::test_the_rows_of_a_person_move_a_test_together",
    ),
    bug(
        "rows of nobody as those of one more person",
        "privsyn/private/bounds.py",
        "np.bincount(persons[persons != NOBODY])",
        "np.bincount(persons - NOBODY)",
        "tests/private/test_bounds.py::test_a_person_moves_the_numbers_of_rows_per_person_by_one_cell",
    ),
    bug(
        "a person in two blocks, and bounded in each",
        "privsyn/private/rows.py",
        'np.unique(begins[np.searchsorted(begins, wanted, side="right") - 1]).tolist()',
        "wanted.tolist()",
        "tests/private/test_bounds.py::test_no_person_is_in_two_blocks",
    ),
    bug(
        "a change of the table unseen where the rows of persons are kept",
        "privsyn/methods/persons.py",
        "check = rows.require_unchanged",
        "check = lambda: None",
        "tests/test_faults.py::test_a_change_is_refused_until_the_last_question_however_often_rows_are_read",
    ),
    bug(
        "a row more of each person than is accounted for",
        "privsyn/private/bounds.py",
        "kept = block[-1] < most",
        "kept = block[-1] <= most",
        "tests/private/test_bounds.py::test_whoever_leaves_moves_a_table_by_no_more_than_the_bound",
    ),
    bug(
        "all rows kept of nobody",
        "privsyn/private/bounds.py",
        "np.flatnonzero(persons != NOBODY)",
        "np.arange(len(persons))",
        "tests/private/test_bounds.py::test_of_each_person_as_many_rows_are_kept_as_may_be_and_none_of_nobody",
    ),
    bug(
        "the lots of rows from a generator that all know",
        "privsyn/private/noise.py",
        "return os_entropy if self._seed is None else",
        "return seeded_bits(np.random.default_rng(0)) if self._seed is None else",
        "tests/test_unit.py::test_a_seed_repeats_the_choice_of_rows_and_no_seed_does_not",
    ),
    bug(
        "the rows of a person chosen, and others counted",
        "privsyn/table/io/identifiers.py",
        "if start != self.rows or mark.digest() != self.mark:",
        "if start != self.rows:",
        "tests/table/io/test_identifiers.py::test_rows_are_kept_only_in_the_order_and_number_that_was_decided_on",
    ),
    bug(
        "as many rows of a person in each part of a table",
        "privsyn/methods/persons.py",
        "codes = codes_of(np.concatenate(prints))",
        "codes = np.concatenate([codes_of(part) for part in prints])",
        "tests/test_released_only.py::test_of_a_person_in_many_parts_no_more_rows_are_kept",
    ),
    bug(
        "fingerprints of identifiers that anybody can make",
        "privsyn/table/io/identifiers.py",
        "np.frombuffer(key, np.uint64)",
        "np.zeros(2, np.uint64)",
        "tests/table/io/test_identifiers.py::test_a_fingerprint_is_of_the_identifier_and_of_the_key",
    ),
    bug(
        "two spellings taken for one identifier, so that one person's leaving changes another's rows",
        "privsyn/table/io/identifiers.py",
        "else text.encode(",
        "else text.strip().lstrip('0').encode(",
        "tests/table/io/test_identifiers.py::test_texts_are_compared_character_by_character",
    ),
    bug(
        "half of a fingerprint compared",
        "privsyn/table/io/identifiers.py",
        "np.ascontiguousarray(prints)",
        "np.ascontiguousarray(prints * [1, 0])",
        "tests/table/io/test_identifiers.py::test_rows_are_one_persons_where_both_halves_of_the_fingerprint_are",
    ),
    bug(
        "a warning of how many rows have no identifier",
        "privsyn/private/bounds.py",
        "    words, known = bits(",
        "    __import__('warnings').warn(f'{(persons == NOBODY).sum()} rows of nobody')\n"
        "    words, known = bits(",
        "tests/test_unit.py::test_rows_without_an_identifier_are_not_counted",
    ),
    bug(
        "a key of fingerprints that anybody knows",
        "privsyn/table/io/identifiers.py",
        "KEY = secrets.token_bytes(16)",
        "KEY = bytes(16)",
        "tests/table/io/test_identifiers.py::test_a_fingerprint_is_of_the_identifier_and_of_the_key",
    ),
    Bug(
        "a mark of all identifiers that anybody can make",
        (
            Edit(
                "privsyn/table/io/identifiers.py",
                "mark = blake2b(prints.tobytes(), digest_size=32, key=key)",
                "mark = blake2b(prints.tobytes(), digest_size=32)",
            ),
            Edit(
                "privsyn/table/io/identifiers.py",
                "mark, start = blake2b(digest_size=32, key=self.key), 0",
                "mark, start = blake2b(digest_size=32), 0",
            ),
        ),
        ("tests/table/io/test_identifiers.py::test_the_mark_of_a_part_is_of_the_key_too",),
    ),
    bug(
        "the rows of a person bounded in the first batch alone",
        "privsyn/table/io/source.py",
        "    yield from kept\n",
        "    yield from kept if bound is None else frames\n",
        "tests/table/io/test_identifiers.py::test_a_person_who_leaves_changes_the_kept_rows_of_nobody_else",
    ),
)

LINKED = (
    bug(
        "a histogram of the rows of parents, with the sensitivity of persons",
        "privsyn/methods/levels.py",
        "each.persons.count(log.about(each.name)",
        "replace(each.persons, codes=each.rows.parents).count(log.about(each.name)",
        "tests/test_linked_leaves.py::test_nothing_moves_further_than_the_ledger_says",
    ),
    bug(
        "child rows counted without the bound",
        "privsyn/private/rows.py",
        "tables.count(first_rows(blocks, bound.most))",
        "tables.count(first_rows(blocks, 10**9))",
        "tests/test_linked_leaves.py::test_nothing_moves_further_than_the_ledger_says",
    ),
    bug(
        "the numbers of rows of each table paid for with the budget of all tables",
        "privsyn/methods/levels.py",
        "FOR_ROWS * rho / len(children)",
        "FOR_ROWS * rho",
        "tests/test_linked.py::test_the_ledger_names_the_tables_and_holds_the_budget",
    ),
    bug(
        "the rows of a person in linked tables in the order of the table",
        "privsyn/methods/levels.py",
        "rows.persons, random_order(rows.persons, bits), above",
        "rows.persons, random_order(rows.persons, lambda size: np.arange(size).astype(np.uint64)), above",
        "tests/test_linked_leaves.py::test_nothing_moves_further_than_the_ledger_says",
    ),
    bug(
        "codes of the rows above taken from another person's row",
        "privsyn/methods/level.py",
        "np.append(of, np.zeros(1, of.dtype))[parents]",
        "np.append(of, np.zeros(1, of.dtype))[parents - 1]",
        "tests/test_linked_leaves.py::test_nothing_moves_further_than_the_ledger_says",
    ),
    bug(
        "rows whose link names nobody as those of the first person",
        "privsyn/table/database/opened.py",
        "np.append(above.persons, NOBODY)[parents]",
        "np.append(above.persons, 0)[parents]",
        "tests/test_linked.py::test_rows_that_belong_to_nobody_are_not_counted",
    ),
    bug(
        "a derived column of all rows of the child table",
        "privsyn/table/database/opened.py",
        "counts = np.bincount(child.parents[child.parents >= 0], minlength=rows)",
        "counts = np.full(rows, (child.parents >= 0).sum())",
        "tests/test_linked.py::test_a_derived_column_says_what_it_is_of_the_rows_of_each_parent",
    ),
    bug(
        "a type of a derived column that says whether anybody has no row",
        "privsyn/table/encoding/dtypes.py",
        "if holds_missing(cells.dtype):",
        "if True:",
        "tests/test_linked_leaves.py::test_a_type_does_not_tell_whether_anybody_has_no_row_or_one",
    ),
    bug(
        "private cells of a copy that are read",
        "privsyn/table/database/opened.py",
        "_without(linked, database.tables[name].elsewhere)",
        "_without(linked, database.tables[name].constant)",
        "tests/test_linked_copies.py::test_no_private_cell_of_a_copy_is_read_and_it_costs_nothing",
    ),
    bug(
        "categories of which one row decides the type of all",
        "privsyn/table/io/source.py",
        "join = partial(_joined_categories, dtype) if isinstance(dtype, pd.CategoricalDtype) else _joined",
        "join = _joined",
        "tests/test_linked_audit.py::test_a_row_with_a_value_of_its_own_changes_no_cell_of_others",
    ),
    bug(
        "the position of a row in the whole table",
        "privsyn/table/database/opened.py",
        "found[order] = ranks(parents[order])",
        "found[order] = np.arange(len(parents))",
        "tests/test_linked.py::test_a_derived_column_says_what_it_is_of_the_rows_of_each_parent",
    ),
    bug(
        "codes below what is known above",
        "privsyn/table/enforcement/compared.py",
        'side="right" if self.strict else "left"',
        'side="left"',
        "tests/table/enforcement/test_compared.py::test_a_code_is_allowed_if_one_of_its_numbers_keeps_the_rule",
    ),
    bug(
        "rows that may have any code",
        "privsyn/synthesis/limits.py",
        "np.where(self.possible.ravel(), 0.0, NEVER)",
        "np.zeros(self.possible.size)",
        "tests/synthesis/test_linked.py::test_no_row_has_a_code_that_its_kind_may_not_have_and_tables_stay",
    ),
    bug(
        "two rows of a parent with what one has",
        "privsyn/synthesis/limits.py",
        "found[too] = draw_by_quota(others, int(too.sum()), rng)",
        "pass",
        "tests/synthesis/test_linked.py::test_one_row_of_each_parent_keeps_a_code_and_others_get_another",
    ),
    bug(
        "a constant column that parents with rows may lack",
        "privsyn/table/database/opened.py",
        "rules += () if kind.nullable else",
        "rules += () if True else",
        "tests/test_linked_rules.py::test_who_has_rows_has_what_is_the_same_in_all_of_them",
    ),
    bug(
        "of equal keys in the root all rows, each a person",
        "privsyn/table/database/opened.py",
        "persons[chosen] = of_keys[chosen]",
        "persons[order] = order",
        "tests/test_linked.py::test_of_equal_keys_in_the_root_one_row_has_all_that_belongs_to_them",
    ),
    bug(
        "the type of a sum that says whether all sums are whole numbers",
        "privsyn/table/database/opened.py",
        "        return np.where(np.isnan(sums), 0.0, sums), Numerical(nullable=False)\n",
        "        whole = (sums == np.rint(sums)).all()\n"
        "        return sums.astype(np.int64) if whole else sums, Numerical(nullable=False)\n",
        "tests/table/database/test_opened.py::test_no_row_decides_what_is_public_about_a_derived_column",
    ),
    bug(
        "a linked run with a seed whose ledger calls it private",
        "privsyn/methods/levels.py",
        "            private=noise.private,\n",
        "            private=True,\n",
        "tests/methods/test_levels.py::test_a_run_with_a_seed_is_not_private_and_says_so",
    ),
    bug(
        "the smallest bound of linked tables stated for the largest",
        "privsyn/methods/levels.py",
        "rows_per_unit=max(each.most for each in contributions)",
        "rows_per_unit=min(each.most for each in contributions)",
        "tests/methods/test_levels.py::test_a_bound_that_differs_between_tables_is_stated_as_the_largest",
    ),
    bug(
        "keys of a look-up table listed only if private rows have them",
        "privsyn/table/database/opened.py",
        "    schema = _schema(database, name, source, (unit, *also))\n",
        "    schema = _schema(database, name, source, (unit, *also))\n"
        "    columns = dict(schema.columns)\n"
        "    for column in database.looked_up(name, columns):\n"
        "        rows = set(source.column(column).dropna().tolist())\n"
        "        values = tuple(value for value in columns[column].values if value in rows)\n"
        "        columns[column] = replace(columns[column], values=values or columns[column].values[:1])\n"
        "    schema = replace(schema, columns=columns)\n",
        "tests/table/database/test_opened.py::test_all_keys_of_a_look_up_table_are_listed_whether_or_not_a_row_has_them",
    ),
    bug(
        "the largest number of child rows for the bound of their number",
        "privsyn/table/database/opened.py",
        "number_of_rows(database.tables[what.table], MOST_ROWS)",
        "number_of_rows(database.tables[what.table], int(own.added[column].max() or 1))",
        "tests/table/database/test_opened.py::test_no_row_decides_what_is_public_about_a_derived_column",
    ),
    bug(
        "a constant column that may be missing if a cell is",
        "privsyn/table/database/opened.py",
        "        nullable = column.nullable and holds_missing(dtype)",
        "        nullable = column.nullable and bool(cells.isna().any())",
        "tests/table/database/test_opened.py::test_no_row_decides_what_is_public_about_a_derived_column",
    ),
    bug(
        "the type of a first or last cell that says whether anybody has none",
        "privsyn/table/database/opened.py",
        "    cells = with_missing(cells)\n    order",
        "    order",
        "tests/table/database/test_opened.py::test_no_row_decides_what_is_public_about_a_derived_column",
    ),
    bug(
        "all reserved delta for each of the linked tables that search for values",
        "privsyn/methods/levels.py",
        "{name: reserved / len(searching) for name in searching}",
        "{name: reserved for name in searching}",
        "tests/methods/test_levels.py::test_tables_that_search_for_values_share_what_is_reserved_of_delta",
    ),
    bug(
        "a linked ledger without what keys promise",
        "privsyn/methods/levels.py",
        "(*PUBLIC, *self._promises(), *self._inputs(found))",
        "(*PUBLIC, *self._inputs(found))",
        "tests/methods/test_levels.py"
        "::test_the_ledger_lists_what_keys_promise_the_tables_looked_up_and_what_was_not_found",
    ),
    bug(
        "a linked ledger without how files were read",
        "privsyn/methods/levels.py",
        "dict.fromkeys([*remarks, *lookups, *public])",
        "dict.fromkeys([*remarks, *lookups])",
        "tests/methods/test_levels.py::test_files_of_linked_tables_state_how_each_was_read",
    ),
    bug(
        "a file of several tables, cut, read as that of one",
        "privsyn/release/saved/file_format.py",
        "if min(member.header_offset for member in file.infolist()):",
        "if False:",
        "tests/test_linked.py::test_a_file_cut_short_or_changed_is_refused",
    ),
)

DISCOVERY = (
    bug(
        "a whole vote for each value that a row holds",
        "privsyn/private/discovery.py",
        "weights = _votes(list(left.values()))",
        "weights = np.full(len(next(iter(left.values()), ())), VOTE)",
        "tests/private/test_discovery.py::test_a_row_more_moves_the_votes_by_no_more_than_the_sensitivity",
    ),
    bug(
        "votes rounded up",
        "privsyn/private/discovery.py",
        "isqrt(VOTE**2 // m) for",
        "isqrt(VOTE**2 // m) + 1 for",
        "tests/private/test_discovery.py::test_a_row_more_moves_the_votes_by_no_more_than_the_sensitivity",
    ),
    bug(
        "the number of numbers with the sensitivity of a single column",
        "privsyn/private/discovery.py",
        "sensitivity = float(self.rows_per_unit * len(counts))",
        "sensitivity = float(self.rows_per_unit)",
        "tests/private/test_discovery.py"
        "::test_a_row_more_moves_the_number_of_numbers_by_no_more_than_the_sensitivity",
    ),
    bug(
        "question 0 with the sensitivity of one row for a person of k rows",
        "privsyn/private/discovery.py",
        "charge(what, len(columns), sensitivity, cost, GAUSSIAN",
        "charge(what, len(columns), float(VOTE), cost, GAUSSIAN",
        "tests/private/test_discovery.py::test_the_ledger_of_discovery_says_what_was_asked",
    ),
    bug(
        "a threshold that lets through what one person alone holds",
        "privsyn/private/discovery.py",
        "return rows_per_unit * VOTE + margin",
        "return rows_per_unit * VOTE + margin // 2",
        "tests/private/test_discovery.py::test_the_threshold_is_the_lowest_that_keeps_its_delta",
    ),
    bug(
        "the threshold of one row for a person of k rows",
        "privsyn/private/discovery.py",
        "return rows_per_unit * VOTE + margin",
        "return VOTE + margin",
        "tests/private/test_discovery.py::test_the_threshold_is_the_lowest_that_keeps_its_delta",
    ),
    bug(
        "all of delta for each column's threshold",
        "privsyn/private/discovery.py",
        "probability = delta / (columns * rows_per_unit)",
        "probability = delta / rows_per_unit",
        "tests/private/test_discovery.py::test_the_threshold_is_the_lowest_that_keeps_its_delta",
    ),
    bug(
        "all of delta in each round",
        "privsyn/private/discovery.py",
        "enough = threshold(sigma, round_delta,",
        "enough = threshold(sigma, delta,",
        "tests/private/test_discovery.py::test_a_value_of_one_person_appears_as_often_as_the_threshold_says",
    ),
    bug(
        "the threshold on exact votes",
        "privsyn/private/discovery.py",
        "np.flatnonzero(noisy >= enough)",
        "np.flatnonzero(exact >= enough)",
        "tests/private/test_discovery.py::test_a_value_of_one_person_appears_as_often_as_the_threshold_says",
    ),
    bug(
        "found values sorted by exact votes",
        "privsyn/private/discovery.py",
        "noisy[passed].tolist())",
        "exact[passed].tolist())",
        "tests/test_released_only.py::test_found_values_come_in_the_order_of_their_noisy_votes",
    ),
    Bug(
        "found values in the order of the rows",
        (
            Edit(
                "privsyn/private/discovery.py",
                "for kind in kinds for value in sorted(votes[kind])",
                "for kind in kinds for value in votes[kind]",
            ),
            Edit(
                "privsyn/private/discovery.py",
                "key=lambda pair: (-pair[0], str(type(pair[1])), repr(pair[1]))",
                "key=lambda pair: -pair[0]",
            ),
        ),
        ("tests/private/test_discovery.py::test_a_release_does_not_depend_on_the_order_of_the_rows",),
    ),
    bug(
        "how many values occur, in the ledger",
        "privsyn/private/discovery.py",
        "charge(what, len(columns), sensitivity",
        "charge(what, sum(map(len, votes.values())), sensitivity",
        "tests/test_released_only.py::test_tables_that_got_the_same_answers_leave_the_same_bytes",
    ),
    bug(
        "bounds of several columns with the sensitivity of one",
        "privsyn/private/discovery.py",
        "sensitivity = self.rows_per_unit * law.joint(len(counts))",
        "sensitivity = float(self.rows_per_unit)",
        "tests/private/test_discovery.py::test_the_ledger_of_discovery_says_what_was_asked",
    ),
    bug(
        "bounds from exact counts",
        "privsyn/private/discovery.py",
        "return {name: (release(exact, scale, self.noise), sigma) for",
        "return {name: (exact, sigma) for",
        "tests/test_released_only.py::test_both_looks_at_bounds_leave_with_noise",
    ),
    bug(
        "the second look at bounds without noise",
        "privsyn/methods/discovery.py",
        "self._closer_cells = self._finder.cells(close, FOR_CLOSER_BOUNDS * self._rho, look=CLOSER)",
        "cells = self._finder.cells(close, FOR_CLOSER_BOUNDS * self._rho)\n"
        "        self._closer_cells = {n: (close[n], sigma) for n, (_, sigma) in cells.items()}",
        "tests/test_released_only.py::test_both_looks_at_bounds_leave_with_noise",
    ),
    bug(
        "where to look again decided by exact counts",
        "privsyn/methods/discovery.py",
        "self._cells = self._public.settled(self._finder.cells(near, share * self._rho))",
        "cells = self._finder.cells(near, share * self._rho)\n"
        "        exact = {name: (near[name], sigma) for name, (_, sigma) in cells.items()}\n"
        "        self._cells = self._public.settled(exact)",
        "tests/test_released_only.py::test_both_looks_at_bounds_leave_with_noise",
    ),
    bug(
        "the second look at bounds not in the ledger",
        "privsyn/methods/discovery.py",
        "self._closer_cells = self._finder.cells(",
        "self._closer_cells = Finder(self._finder.noise, self._finder.rows_per_unit).cells(",
        "tests/private/test_discovery.py::test_the_ledger_of_discovery_says_what_was_asked",
    ),
    bug(
        "the question on grids not in the ledger",
        "privsyn/methods/discovery.py",
        "self._on_lattices = self._finder.cells(",
        "self._on_lattices = Finder(self._finder.noise, self._finder.rows_per_unit).cells(",
        "tests/table/discovery/test_lattices.py::test_the_ledger_says_what_the_grids_cost",
    ),
    bug(
        "a row on every lattice that holds its number",
        "privsyn/table/discovery/lattices.py",
        "return np.bincount(first, minlength=len(listed) + 1).astype(np.int64)",
        "return np.bincount(first, minlength=len(listed) + 1).cumsum().astype(np.int64)",
        "tests/table/discovery/test_lattices.py::test_a_row_more_moves_one_count_by_one",
    ),
    bug(
        "a number counted twice among the frequent ones",
        "privsyn/table/discovery/frequent.py",
        "minlength=self.size).astype(np.int64)",
        "minlength=self.size).astype(np.int64) * 2",
        "tests/table/discovery/test_frequent.py::test_a_row_more_moves_one_count_by_one",
    ),
    bug(
        "frequent numbers counted in several rows of a person, with noise for one",
        "privsyn/methods/discovery.py",
        "_by_table(asked, table, table if one_row is None else one_row)",
        "_by_table(asked, table, table)",
        "tests/private/test_discovery.py::test_frequent_numbers_are_counted_in_one_row_of_each_person",
    ),
    bug(
        "noise for one row of a person, of whom several are counted",
        "privsyn/methods/discovery.py",
        "self._of_one_row = replace(finder, rows_per_unit=1) if one_row else finder",
        "self._of_one_row = replace(finder, rows_per_unit=1)",
        "tests/private/test_discovery.py"
        "::test_without_a_table_of_one_row_all_rows_of_a_person_pay_for_frequent_numbers",
    ),
    bug(
        "two rows of a person in the table of one",
        "privsyn/methods/learning.py",
        "opened.bounded(1)",
        "opened.bounded(2)",
        "tests/private/test_discovery.py::test_frequent_numbers_are_counted_in_one_row_of_each_person",
    ),
    bug(
        "frequent numbers found in exact counts",
        "privsyn/methods/discovery.py",
        "{name: noisy for name, (noisy, _) in finder.cells(counts, rho, what=FREQUENT).items()}",
        "{name: counts[name] for name in finder.cells(counts, rho, what=FREQUENT)}",
        "tests/test_released_only.py::test_frequent_numbers_follow_from_noisy_counts",
    ),
    bug(
        "the question on frequent numbers not in the ledger",
        "privsyn/methods/discovery.py",
        "in finder.cells(counts, rho, what=FREQUENT)",
        "in Finder(finder.noise, finder.rows_per_unit).cells(counts, rho, what=FREQUENT)",
        "tests/table/discovery/test_frequent.py::test_the_ledger_says_what_they_cost",
    ),
    bug(
        "cells of a grid that overlap",
        "privsyn/table/encoding/bounds_cells.py",
        "minlength=len(self.lows)).astype(np.int64)",
        "minlength=len(self.lows)).astype(np.int64) * 2",
        "tests/private/test_discovery.py::test_a_row_more_moves_the_cells_of_a_grid_by_the_sensitivity",
    ),
    bug(
        "half of the noise in the counts of bounds",
        "privsyn/private/discovery.py",
        "(release(exact, scale, self.noise), sigma) for",
        "(release(exact, scale / 2, self.noise), sigma) for",
        "tests/private/test_discovery.py::test_the_noise_of_question_0_is_that_of_its_ledger",
    ),
    bug(
        "half of the noise in the number of numbers",
        "privsyn/private/discovery.py",
        "int(release(exact, scale, self.noise)[0])",
        "int(release(exact, scale / 2, self.noise)[0])",
        "tests/private/test_discovery.py::test_the_noise_of_question_0_is_that_of_its_ledger",
    ),
    bug(
        "dates counted in years by their exact number",
        "privsyn/methods/discovery.py",
        "if size < SPREAD",
        "if sum(int(each.sum()) for each in near.values()) / len(near) < SPREAD",
        "tests/private/test_discovery.py::test_what_question_0_asks_follows_from_released_answers_alone",
    ),
    bug(
        "votes of a part that are added to it again",
        "privsyn/private/discovery.py",
        "sums = dict(more)",
        "sums = more",
        "tests/private/test_discovery.py::test_the_votes_of_parts_add_up_to_those_of_the_table",
    ),
)

ROWS = (
    bug(
        "domain from the data",
        "privsyn/methods/learning.py",
        "codec = opened.codec(discovered.schema, ",
        "rows = opened.rows\n    codec = opened.codec(type(discovered.schema)({\n"
        "            name: type(column)([\n"
        "                v for v in column.values if any((f[name] == v).any() for f in rows.frames())\n"
        "            ] or [0], nullable=column.nullable)\n"
        "            if getattr(column, 'values', None) and name in opened.rows.head\n"
        "            else column\n"
        "            for name, column in discovered.schema.columns.items()\n"
        "        }), ",
        "tests/test_leaks.py::test_what_may_come_out_is_the_schemas_whatever_the_rows_hold",
    ),
    bug(
        "an error message with a value",
        "privsyn/table/codec/codec.py",
        '        with replace_errors("the table could not be coded',
        "        for name, encoder in zip(self.domain, self.encoders, strict=True):\n"
        "            if len(strange := table[name][~encoder.fits(table[name])].dropna()):\n"
        "                raise InputError(f'column {name!r}: {strange.iloc[0]!r} is strange')\n"
        '        with replace_errors("the table could not be coded',
        "tests/test_leaks.py::test_no_mark_of_a_row_is_in_what_a_run_leaves",
    ),
    bug(
        "an error message with what a library says of a row",
        "privsyn/table/io/csv_table.py",
        'some row is longer or shorter than"',
        'some row is longer or shorter than {error}"',
        "tests/test_leaks.py::test_no_mark_of_a_damaged_row_is_told",
    ),
    bug(
        "an error message with what failed on a cluster",
        "privsyn/errors.py",
        "InputError(message(error) if callable(message) else message)",
        "InputError(f'{message(error) if callable(message) else message}: {error}')",
        "tests/test_released_only.py::test_what_fails_on_a_part_is_not_quoted",
    ),
    bug(
        "a message that keeps behind it what a library says of a row",
        "privsyn/errors.py",
        "        replacement.__context__ = None\n",
        "",
        "tests/table/io/test_read_in_batches.py::test_a_reader_that_fails_is_not_quoted",
    ),
    bug(
        "a change of the file noticed only where the rows do not fit in memory",
        "privsyn/private/rows.py",
        "        self._check = check\n",
        "        self._check = lambda: None\n",
        "tests/test_faults.py::test_a_change_is_refused_until_the_last_question_however_often_rows_are_read",
    ),
    bug(
        "guessed types of a CSV left out of the ledger",
        "privsyn/table/io/csv_table.py",
        "(*said.public_inputs, *guessed_facts(guessed))",
        "said.public_inputs",
        "tests/table/io/test_read_in_memory.py::test_without_a_schema_all_types_are_read_off_the_file",
    ),
    bug(
        "rows of persons read again in another order",
        "privsyn/table/io/identifiers.py",
        "if start != self.rows or mark.digest() != self.mark:",
        "if start != self.rows:",
        "tests/table/io/test_identifiers.py::test_rows_are_kept_only_in_the_order_and_number_that_was_decided_on",
    ),
    bug(
        "a view of DuckDB that is run again for each walk",
        "privsyn/table/io/duckdb_table.py",
        "        if not (place.query or view):\n",
        "        if not place.query:\n",
        "tests/table/io/test_duckdb_table.py::test_a_view_or_query_is_run_once_for_all_walks",
    ),
    bug(
        "a cell of a workbook that is not sound ends the run",
        "privsyn/table/io/workbook.py",
        "cells[column] = alone(self._cell, cell, None)",
        "cells[column] = self._cell(cell)",
        "tests/table/io/test_workbook.py::test_a_cell_that_is_not_sound_is_missing_and_nothing_else_changes",
    ),
    bug(
        "a log of how many rows are read",
        "privsyn/table/io/source.py",
        "    rows = batch_rows(len(frame.columns))\n    for start",
        "    rows = batch_rows(len(frame.columns))\n"
        "    __import__('logging').getLogger('privsyn').debug('%d rows', len(frame))\n    for start",
        "tests/test_released_only.py::test_tables_that_got_the_same_answers_leave_the_same_bytes",
    ),
    bug(
        "progress in rows",
        "privsyn/methods/discovery.py",
        'report("finding values and bounds", done, WALKS)',
        'report("finding values and bounds", done, WALKS + sum(len(v) for each in locals().get("counts", ())'
        " for v in each.values()))",
        "tests/test_released_only.py::test_tables_that_got_the_same_answers_leave_the_same_bytes",
    ),
    bug(
        "persons are counted before a run says that it measures",
        "privsyn/synthesizer.py",
        "        self._report(MEASURING, 0, self.algorithm.rounds)  # before any question\n"
        "        sizes, contribution, left = opened.contribution(noise, log, budget.questions)\n",
        "        sizes, contribution, left = opened.contribution(noise, log, budget.questions)\n"
        "        self._report(MEASURING, 0, self.algorithm.rounds)\n",
        "tests/test_progress.py::test_an_exception_at_measuring_stops_the_run_with_nothing_asked",
    ),
    bug(
        "two runs at once both pass the policy",
        "privsyn/account/runs.py",
        "fcntl.LOCK_SH if shared else fcntl.LOCK_EX",
        "fcntl.LOCK_SH",
        "tests/account/test_budget_file.py::test_of_processes_at_once_no_more_begin_than_the_policy_allows",
    ),
    bug(
        "a policy that does not limit what is left of delta",
        "privsyn/account/policy.py",
        "if run.delta > delta * (1 + ROUNDING):",
        "if run.delta > self.delta * (1 + ROUNDING):",
        "tests/account/test_policy.py::test_delta_is_limited_by_what_is_left_of_it_as_epsilon_is",
    ),
    bug(
        "one release without its limit if it would take all that is left",
        "privsyn/account/policy.py",
        "if epsilon and run.epsilon > (most :=",
        "if run.epsilon < epsilon and run.epsilon > (most :=",
        "tests/account/test_policy.py::test_one_release_is_limited_also_if_it_would_take_all_that_is_left",
    ),
    bug(
        "a run that begins in its budget file after the first question",
        "privsyn/account/account.py",
        "if (stage, done) == (MEASURING, 0):",
        "if (stage, done) == (MEASURING, 1):",
        "tests/account/test_budget_file.py::test_a_refusal_at_measuring_asks_nothing",
    ),
    bug(
        "a run that did not end costs nothing",
        "privsyn/account/runs.py",
        "if runs and len(ledgers) == len(runs):",
        "if ledgers:",
        "tests/account/test_budget_file.py::test_a_run_that_did_not_end_counts_in_full",
    ),
    bug(
        "a run that is withdrawn costs nothing",
        "privsyn/account/runs.py",
        "private = [run for run in listed if not run.seeded]",
        "private = [run for run in listed if not run.seeded and run.withdrawal is None]",
        "tests/account/test_budget_file.py::test_a_policy_gives_nothing_back_for_a_withdrawn_run",
    ),
    bug(
        "a part of the table counted twice where it is asked again",
        "privsyn/table/io/source.py",
        "map(operator.add, some, others)",
        "map(operator.iadd, some, others)",
        "tests/test_released_only.py::test_adding_two_parts_changes_neither",
    ),
    bug(
        "the rows of a person bounded nowhere on a cluster",
        "privsyn/table/io/source.py",
        "bounds=tuple(bounds))",
        "bounds=())",
        "tests/test_released_only.py::test_of_a_person_in_many_parts_no_more_rows_are_kept",
    ),
)

RELEASE = (
    Bug(
        "the table kept, and measured again in sample",
        (
            Edit(
                "privsyn/release/release.py",
                "        return getattr(self._fitted, method.__name__)(*args, **options)\n",
                "        if hasattr(self, '_table'):\n            self.fit(self._table)\n"
                "        return getattr(self._fitted, method.__name__)(*args, **options)\n",
            ),
            Edit(
                "privsyn/synthesizer.py",
                "            opened = Opened.of(",
                "            self._table = table\n            opened = Opened.of(",
            ),
        ),
        ("tests/test_synthesizer.py::test_the_private_table_can_be_deleted_after_the_fit",),
    ),
    bug(
        "the codes of the rows kept by the model",
        "privsyn/synthesizer.py",
        "codec, private = learned.codec, learned.private",
        "codec, private = learned.codec, learned.private\n        self._rows = private._rows",
        "tests/test_released_only.py::test_fit_leaves_a_release_and_nothing_else",
    ),
    bug(
        "what programs note beside the types, such as the number of rows, kept in the model",
        "privsyn/table/io/output_type.py",
        'return cls("pyarrow", bare)',
        'return cls("pyarrow", bare.with_metadata(table.schema.metadata))',
        "tests/test_released_only.py::test_no_note_beside_the_types_reaches_the_model",
    ),
    bug(
        "one invalid value in a list or record makes all cells of the column missing",
        "privsyn/table/io/arrow.py",
        "part = cells.take(pa.array(rows))",
        "part = cells.slice(rows[0] if len(rows) else 0, len(rows))",
        "tests/table/io/test_read_in_memory.py::test_an_invalid_value_within_a_cell_moves_no_other_cell",
    ),
    bug(
        "dictionaries inside lists and records, whose cells one invalid value makes missing",
        "privsyn/table/encoding/dtypes.py",
        "return not inside and _is_plain(kind.value_type)",
        "return _is_plain(kind.value_type)",
        "tests/test_leaks.py::test_no_list_of_values_that_a_type_carries_is_in_a_model",
    ),
    bug(
        "cells read by a dtype that pandas noted before the column was replaced, if they fit",
        "privsyn/table/io/arrow.py",
        "if not _is_dtype_of(column, schema):",
        "if False:",
        "tests/table/io/test_read_in_memory.py::test_no_cell_of_a_column_replaced_since_pandas_noted_its_dtype_is_read_by_it",
    ),
    bug(
        "one text that is not UTF-8 in a Parquet dictionary decides whether a file is read",
        "privsyn/table/io/parquet.py",
        "read_dictionary=[*texts, *coded]",
        "read_dictionary=[*texts]",
        "tests/table/io/test_parquet.py::test_text_of_a_dictionary_that_is_not_utf8_costs_its_own_cell_only",
    ),
    bug(
        "one row decides whether a stream is read",
        "privsyn/table/io/read_in_batches.py",
        "if first is None and isinstance(source, pa.RecordBatchReader):",
        "if False:",
        "tests/table/io/test_read_in_batches.py::test_a_reader_without_rows_is_a_table_as_with_rows",
    ),
    bug(
        "a dictionary's indices as wide as the rows need them",
        "privsyn/table/io/output_type.py",
        "for field in public_schema(table.schema) if",
        "for field in table.schema if",
        "tests/test_containers.py::test_index_width_does_not_depend_on_rows",
    ),
    bug(
        "the type of the identifiers kept in the model",
        "privsyn/methods/reading.py",
        "return form.only({*codec.names, *others}.difference(codec.dropped))",
        "return form",
        "tests/test_released_only.py::test_the_model_does_not_keep_the_type_of_identifiers",
    ),
    bug(
        "the time of the run in the saved model",
        "privsyn/release/saved/file_format.py",
        "zipfile.ZipInfo(name)",
        "name",
        "tests/test_released_only.py::test_a_saved_file_does_not_tell_when_it_was_saved",
    ),
    bug(
        "the time of the run in a packed file",
        "privsyn/table/io/write.py",
        "mtime=0)",
        "mtime=None)",
        "tests/test_released_only.py::test_a_saved_file_does_not_tell_when_it_was_saved",
    ),
)

PURE = (
    bug(
        "a Laplace scale of half the size",
        "privsyn/private/noise.py",
        "_SAMPLERS[self.law.name](scale, size, os_entropy)",
        "_SAMPLERS[self.law.name](scale if self.law.name == 'gaussian' else scale / 2, size, os_entropy)",
        "tests/private/test_laplace.py::test_our_noise_is_distributed_like_that_of_opendp",
        "tests/audit/test_pure.py::test_guesses_show_no_more_than_epsilon_and_most_of_it",
    ),
    bug(
        "the L2 sensitivity of several tables for Laplace noise",
        "privsyn/private/laws.py",
        "return float(tables)",
        "return sqrt(tables)",
        "tests/private/test_pure.py::test_no_person_moves_an_answer_further_in_l1_than_the_ledger_says_and_one_as_far",
    ),
    bug(
        "zero drawn once for each sign",
        "privsyn/private/laplace.py",
        "* 2.0**-64 * (1 + _ratio(scale))",
        "* 2.0**-63",
        "tests/private/test_laplace.py::test_words_from_all_over_the_range_agree_with_mpmath",
        "tests/private/test_laplace.py::test_zero_is_drawn_once_and_not_once_for_each_sign",
    ),
    bug(
        "Laplace noise of one sign",
        "privsyn/private/laplace.py",
        "np.negative(draws, out=draws, where=negative)",
        "del negative",
        "tests/private/test_laplace.py::test_draws_follow_the_discrete_laplace_and_no_other",
    ),
    bug(
        "a doubtful Laplace draw left to double precision",
        "privsyn/private/laplace.py",
        "for found in np.flatnonzero(doubtful):",
        "for found in np.flatnonzero(doubtful)[:0]:",
        "tests/private/test_laplace.py::test_a_word_at_a_tail_is_decided_by_further_words",
    ),
    bug(
        "k rows at the price of one, without a delta",
        "privsyn/private/laws.py",
        "return cost * rows\n",
        "return cost * rows * rows\n",
        "tests/private/test_pure.py::test_k_rows_cost_k_times_as_much_and_no_more_than_their_share",
    ),
    bug(
        "a pure ledger that may overspend by a rounding error",
        "privsyn/private/ledger.py",
        "epsilon_of(spend.sigma, spend.sensitivity) for spend in self.spends",
        "Fraction(1 - 1e-9) * epsilon_of(spend.sigma, spend.sensitivity) for spend in self.spends",
        "tests/private/test_pure.py::test_a_ledger_that_overspends_by_the_last_bit_cannot_exist",
    ),
    bug(
        "values searched for without a delta",
        "privsyn/methods/discovery.py",
        "if open_schema.values and delta == 0:",
        "if False:",
        "tests/private/test_pure.py::test_what_pure_epsilon_cannot_do_is_refused_in_one_line",
    ),
    bug(
        "the largest mu for all of a composition",
        "privsyn/private/composition.py",
        "rho = fsum(run.budget for run in gaussian)",
        "rho = max((run.budget for run in gaussian), default=0.0)",
        "tests/private/test_composition.py::test_random_sets_lie_between_the_bounds_of_an_independent_accountant",
    ),
    bug(
        "the deltas of promises forgotten in a composition",
        "privsyn/private/composition.py",
        "sure = -expm1(fsum(log1p(-run.promised_delta) for run in runs))",
        "sure = 0.0 * log1p(0.0)",
        "tests/private/test_composition.py::test_no_bound_is_given_at_a_delta_below_its_own",
    ),
    bug(
        "the deltas of thresholds forgotten in a composition of zCDP",
        "privsyn/private/composition.py",
        "left = delta - fsum(run.reserved for run in runs)\n",
        "left = delta\n",
        "tests/private/test_composition.py::test_what_thresholds_reserve_of_delta_is_not_left_for_the_noise",
    ),
    bug(
        "the deltas of thresholds forgotten in an exact composition",
        "privsyn/private/composition.py",
        "left = (delta - fsum(run.reserved for run in gaussian) - sure)",
        "left = (delta - sure)",
        "tests/private/test_composition.py::test_what_thresholds_reserve_of_delta_is_not_left_for_the_noise",
    ),
    bug(
        "the deltas of other accountings forgotten beside Gaussian noise",
        "privsyn/private/composition.py",
        "for run in gaussian) - sure) / (1 - sure)",
        "for run in gaussian))",
        "tests/private/test_composition.py::test_the_delta_of_another_accounting_is_not_left_for_the_noise",
    ),
    bug(
        "advanced composition without its drift",
        "privsyn/private/composition.py",
        "return drift + sqrt(",
        "return 0 * drift + sqrt(",
        "tests/private/test_composition.py"
        "::test_no_theorem_gives_less_than_follows_from_the_promises_that_it_rests_on",
    ),
    bug(
        "losses of a composition rounded to nearest, not up",
        "privsyn/private/composition.py",
        "np.ceil(losses / step)",
        "np.rint(losses / step)",
        "tests/private/test_composition.py::test_a_loss_that_is_rounded_becomes_no_smaller",
    ),
    bug(
        "a composed epsilon rounded down",
        "privsyn/private/composition.py",
        "    return high\n",
        "    return low\n",
        "tests/private/test_composition.py::test_a_composed_epsilon_is_rounded_up",
    ),
    bug(
        "counts measured elsewhere composed as if they cost nothing",
        "privsyn/private/composition.py",
        "if run.elsewhere is not None:",
        "if False:",
        "tests/private/test_composition.py::test_what_has_no_joint_promise_is_refused",
    ),
    bug(
        "a pure ledger that is called twice as private in mu",
        "privsyn/private/ledger.py",
        "-2 * float(ndtri_exp(",
        "-1 * float(ndtri_exp(",
        "tests/private/test_pure.py"
        "::test_the_gaussian_answer_that_stands_for_a_pure_ledger_is_no_more_private",
    ),
    bug(
        "a pure ledger with a quarter of its rho",
        "privsyn/private/ledger.py",
        'self.cost**2 / 2 if self.accounting == "pure"',
        'self.cost**2 / 8 if self.accounting == "pure"',
        "tests/private/test_pure.py::test_the_rho_of_laplace_noise_is_half_the_square_of_its_epsilon",
    ),
    bug(
        "a Laplace scale without room for rounded shares",
        "privsyn/private/laws.py",
        "HEADROOM = 2.0**-40",
        "HEADROOM = 0.0",
        "tests/private/test_pure.py::test_k_rows_cost_k_times_as_much_and_no_more_than_their_share",
    ),
)

LOCAL = (
    bug(
        "a cell kept once too often",
        "privsyn/private/randomised_response.py",
        "bits) < probability.numerator",
        "bits) <= probability.numerator",
        "tests/private/test_local.py::test_the_epsilon_of_a_column_is_that_of_all_draws_enumerated",
    ),
    bug(
        "randomised response without rejection",
        "privsyn/private/randomised_response.py",
        "last = np.uint64(2**64 // bound * bound - 1)",
        "last = np.uint64(2**64 - 1)",
        "tests/private/test_local.py::test_words_that_would_favour_small_numbers_are_drawn_again",
    ),
    bug(
        "cells replaced by their neighbours, and not by any value",
        "privsyn/private/randomised_response.py",
        "np.where(kept, codes, uniform_below(size, len(codes), bits))",
        "np.where(kept, codes, (codes + uniform_below(size, len(codes), bits) // 2) % size)",
        "tests/private/test_local.py::test_the_epsilon_of_a_column_is_that_of_all_draws_enumerated",
    ),
    bug(
        "the respondents' draws from a seed",
        "privsyn/private/randomised_response.py",
        "words = np.array(bits(size))",
        "words = np.random.default_rng(0).integers(0, 2**64, size, np.uint64)",
        "tests/methods/test_randomised.py::test_a_seed_does_not_repeat_the_respondents_draws",
    ),
    bug(
        "the epsilon of one column for a whole record",
        "privsyn/private/randomised_response.py",
        "fsum(promise.epsilon for promise in promises)",
        "fsum([max(promise.epsilon for promise in promises)])",
        "tests/private/test_local.py::test_the_epsilon_of_a_record_is_that_of_all_its_columns_enumerated",
    ),
    bug(
        "a local epsilon rounded down",
        "privsyn/private/randomised_response.py",
        'return nextafter(float(libmp.to_float(libmp.mpf_log(ratio, DIGITS, "u"))), inf)',
        'return nextafter(float(libmp.to_float(libmp.mpf_log(ratio, DIGITS, "u"))), -inf)',
        "tests/private/test_local.py::test_the_epsilon_of_a_column_is_that_of_all_draws_enumerated",
    ),
    bug(
        "missing cells not counted among the values",
        "privsyn/methods/randomise.py",
        "LocalPromise(name, kept, sizes[name])",
        "LocalPromise(name, kept, max(sizes[name] - 1, 1))",
        "tests/methods/test_randomised.py::test_missing_cells_are_one_more_value",
    ),
    bug(
        "exact counts of columns that nobody randomised",
        "privsyn/private/randomised_response.py",
        "if others := set(rows.domain.names).difference(randomised):",
        "if others := set(rows.domain.names).difference(rows.domain.names):",
        "tests/private/test_local.py::test_exact_counts_need_that_every_column_is_randomised",
    ),
    bug(
        "a ledger that promises less than its channels keep",
        "privsyn/private/ledger.py",
        "self.unit is not None or self.cost > self.promised_epsilon",
        "self.unit is not None",
        "tests/private/test_local.py::test_a_ledger_that_promises_less_than_its_channels_keep_cannot_exist",
    ),
    bug(
        "a randomised table with exact columns called private",
        "privsyn/private/ledger.py",
        "if self.unchanged and (self.private or not self.all_local):",
        "if self.unchanged and not self.all_local:",
        "tests/private/test_local.py::test_a_ledger_of_exact_columns_cannot_claim_to_be_private",
    ),
    bug(
        "the epsilon of randomised cells left out of a composition",
        "privsyn/private/composition.py",
        "run.promised_epsilon + local * run.local_epsilon for",
        "run.promised_epsilon for",
        "tests/private/test_composition.py"
        "::test_the_local_epsilon_is_added_if_a_run_has_randomised_columns_beside_others",
    ),
    bug(
        "the last column sent as it is",
        "privsyn/methods/randomise.py",
        "source.frame.assign(**{name: drawn[name] for name in names})",
        "source.frame.assign(**{name: drawn[name] for name in names[: len(names) - (len(names) > 1)]})",
        "tests/methods/test_randomised.py::test_a_randomised_table_has_the_same_form_and_other_cells",
    ),
    bug(
        "no epsilon needed for columns that nobody randomised",
        "privsyn/settings.py",
        "if self.epsilon is None and others:",
        "if self.epsilon is None and not public.randomised:",
        "tests/methods/test_randomised.py::test_what_cannot_be_randomised_is_refused_in_one_line",
    ),
    bug(
        "each column kept as often as the one that is kept most",
        "privsyn/methods/randomise.py",
        "randomised(codes[:, place], size, settled.randomised[name])",
        "randomised(codes[:, place], size, max(settled.randomised.values()))",
        "tests/methods/test_randomised.py::test_each_column_is_kept_as_often_as_its_own_promise_says",
    ),
)

OWNERS = (
    bug(
        "shares of noise as if all owners were honest",
        "privsyn/private/laws.py",
        "    share = sqrt(honest) * sigma\n    while Fraction(share) ** 2 < honest * Fraction(sigma) ** 2:",
        "    share = sigma\n    while False:",
        "tests/private/test_shares.py::test_the_shares_of_the_honest_keep_the_promise_without_slack",
    ),
    bug(
        "the sigma of a share rounded to nearest, not up",
        "privsyn/private/laws.py",
        "    while Fraction(share) ** 2 < honest * Fraction(sigma) ** 2:",
        "    while False:",
        "tests/private/test_shares.py::test_the_sigma_of_a_share_is_rounded_up",
    ),
    bug(
        "counts that are multiplied by more than the noise was made for",
        "privsyn/private/noise.py",
        "return self.honest * exact.ravel()",
        "return (self.honest + 1) * exact.ravel()",
        "tests/private/test_shares.py::test_one_more_row_moves_the_sum_by_at_most_its_sensitivity",
    ),
    bug(
        "an owner's counts sent without its share of the noise",
        "privsyn/private/noise.py",
        " + self.draw(scale, exact.size)\n\n        whole",
        " + 0 * self.draw(scale, exact.size)\n\n        whole",
        "tests/private/test_shares.py::test_the_law_states_the_variance_that_is_in_the_answers",
    ),
    bug(
        "fresh noise when an owner is asked again",
        "privsyn/owners/journal.py",
        "        if not place.exists():\n            _write_once(place, question",
        "        place.unlink(missing_ok=True)\n        if True:\n            _write_once(place, question",
        "tests/owners/test_rounds.py::test_an_owner_that_ends_in_any_round_resumes_and_draws_nothing_twice",
    ),
    bug(
        "noisy answers on the disk for everybody to read",
        "privsyn/owners/journal.py",
        "os.O_EXCL, 0o600)",
        "os.O_EXCL, 0o644)",
        "tests/owners/test_rounds.py::test_only_the_owner_can_read_its_noisy_answers",
    ),
    bug(
        "a new run joined by owners who sent their answers to another",
        "privsyn/owners/sums.py",
        'if not self._journal.bind("run", name):',
        "if False:",
        "tests/owners/test_rounds.py::test_an_owner_who_lost_the_folder_ends_the_run",
    ),
    bug(
        "an older copy of an owner's folder that answers again with fresh noise",
        "privsyn/owners/sums.py",
        "if self._journal.answers() < rows[:, -1].max():",
        "if False:",
        "tests/owners/test_rounds.py::test_an_older_copy_of_the_folder_is_refused_before_anything_is_drawn",
    ),
    bug(
        "fresh noise drawn before the owners know whether the folder is an older copy",
        "privsyn/owners/sums.py",
        "if number >= self._journal.answers():",
        "if False:",
        "tests/owners/test_rounds.py::test_an_older_copy_of_the_folder_is_refused_before_anything_is_drawn",
    ),
    bug(
        "a name of a file that a failure of the machine loses",
        "privsyn/owners/journal.py",
        "        finally:\n            _sync(place.parent)",
        "        finally:\n            _ = (place.parent)",
        "tests/owners/test_rounds.py::test_names_of_files_are_on_the_disk_before_anything_is_sent",
    ),
    bug(
        "a ledger that is silent about an unencrypted network",
        "privsyn/owners/owners.py",
        "if self._owners.tls is None:",
        "if False:",
        "tests/owners/test_rounds.py::test_all_owners_have_the_same_bytes",
    ),
    bug(
        "vectors that any single owner can read",
        "privsyn/owners/network.py",
        "options.threshold = (len(peers) - 1) // 2",
        "options.threshold = 0",
        "tests/owners/test_processes.py::test_what_one_owner_receives_is_uniform_besides_the_sum_and_never_unpickled",
    ),
    bug(
        "messages that are unpickled",
        "privsyn/owners/network.py",
        "options.no_log = options.mix32_64bit = True",
        "options.no_log = True",
        "tests/owners/test_processes.py::test_what_one_owner_receives_is_uniform_besides_the_sum_and_never_unpickled",
    ),
    bug(
        "a group of half of the owners that is trusted",
        "privsyn/owners/owners.py",
        "least = len(self.peers) // 2 + 1\n",
        "least = 1\n",
        "tests/owners/test_rounds.py::test_wrong_settings_are_refused_in_one_line",
    ),
    bug(
        "a seed for the noise of several owners",
        "privsyn/owners/owners.py",
        "if settings.seed is not None:",
        "if False:",
        "tests/owners/test_rounds.py::test_what_several_owners_cannot_do_is_refused_in_one_line",
    ),
    bug(
        "rows of a person chosen by words that all owners know",
        "privsyn/owners/owners.py",
        "shake_256(secret + next",
        "shake_256(next",
        "tests/owners/test_rounds.py"
        "::test_which_rows_of_a_person_are_kept_follows_from_what_only_the_owner_knows",
    ),
    bug(
        "the public part of a run's name as the secret of an owner",
        "privsyn/owners/journal.py",
        'bytes.fromhex(key["secret"]))',
        'bytes.fromhex(key["part"]))',
        "tests/owners/test_rounds.py"
        "::test_which_rows_of_a_person_are_kept_follows_from_what_only_the_owner_knows",
    ),
    bug(
        "an owner with a certificate that poses as another",
        "privsyn/owners/network.py",
        "                self._check_name(peer)\n",
        "",
        "tests/owners/test_processes.py::test_an_owner_cannot_pose_as_another_with_a_certificate_of_its_own",
    ),
    bug(
        "owners who trust different numbers of owners",
        "privsyn/owners/owners.py",
        "several = (owners.trusted, len",
        "several = (len",
        "tests/owners/test_rounds.py::test_nothing_is_counted_before_all_owners_agree_on_each_setting",
    ),
    bug(
        "owners who keep different numbers of rows of a person",
        "privsyn/settings.py",
        'Public.",\n            agreed=True,',
        'Public.",',
        "tests/owners/test_rounds.py::test_nothing_is_counted_before_all_owners_agree_on_each_setting",
    ),
    bug(
        "owners who promise different epsilons",
        "privsyn/settings.py",
        '(`keep`).",\n            agreed=True,\n',
        '(`keep`).",\n',
        "tests/owners/test_rounds.py::test_nothing_is_counted_before_all_owners_agree_on_each_setting",
    ),
    bug(
        "owners with different schemas",
        "privsyn/owners/owners.py",
        "            to_plain(open_schema.schema),\n",
        "",
        "tests/owners/test_rounds.py::test_nothing_is_counted_before_all_owners_agree_on_each_setting",
    ),
    bug(
        "owners of whom one has the rows of a person on several machines",
        "privsyn/owners/owners.py",
        "            opened.puts_persons_together,",
        "            True,",
        "tests/owners/test_rounds.py::test_an_owner_with_a_cluster_and_one_without_do_not_count_persons_together",
    ),
    bug(
        "an answer with the noise of another scale",
        "privsyn/owners/sums.py",
        'f"{size} {scale!r}".encode()',
        'f"{size}".encode()',
        "tests/owners/test_rounds.py::test_a_question_with_another_scale_is_another_question",
    ),
    bug(
        "a run resumed with a table that changed",
        "privsyn/owners/owners.py",
        "repr((owners.party, stamps))",
        "repr(owners.party)",
        "tests/owners/test_rounds.py::test_a_table_that_changed_is_not_taken_for_that_of_the_interrupted_run",
    ),
)

ACCEPTANCE = (
    bug(
        "the rows that a released table expects forgotten in the sensitivity of a distance",
        "privsyn/private/acceptance.py",
        "return UNIT + self.allowed",
        "return UNIT // 2 + self.allowed",
        "tests/private/test_acceptance.py::test_no_row_moves_a_distance_further_than_its_sensitivity",
    ),
    bug(
        "one side of a mean forgotten in its sensitivity",
        "privsyn/private/acceptance.py",
        "max(np.abs(self.above).max(), np.abs(self.below).max(), 1)",
        "max(np.abs(self.above).max(), 1)",
        "tests/private/test_acceptance.py::test_no_row_moves_a_larger_sum_further_than_its_sensitivity",
    ),
    bug(
        "a test with the sensitivity of a count",
        "privsyn/private/measure.py",
        "exact, 1, rho / len(tests), bound, test.sensitivity)",
        "exact, 1, rho / len(tests), bound)",
        "tests/private/test_acceptance.py::test_the_answer_is_the_excess_with_the_noise_of_the_ledger",
    ),
    bug(
        "tests that are paid for beside the budget",
        "privsyn/methods/reading.py",
        "Budget(reserved, whole - tests, tests)",
        "Budget(reserved, whole, tests)",
        "tests/release/acceptance/test_acceptance.py::test_the_tests_take_their_share_of_the_budget",
    ),
    bug(
        "criteria met although noise may hide that they are not",
        "privsyn/release/acceptance/judge.py",
        "met=excess <= -sure",
        "met=excess <= sure",
        "tests/release/acceptance/test_acceptance.py::test_a_table_just_above_its_bound_is_hardly_ever_accepted",
    ),
    bug(
        "a slope tested at twice the error allowed",
        "privsyn/release/acceptance/judge.py",
        "last, self.slope + within)",
        "last, self.slope + 2 * within)",
        "tests/release/acceptance/test_slope.py::test_a_slope_is_exceeded_exactly_if_it_is_further_away",
    ),
    bug(
        "numbers of a slope taken to lie at the near end of their cells",
        "privsyn/release/acceptance/judge.py",
        "np.where(u > 0, u * high, u * low)",
        "np.where(u > 0, u * low, u * high)",
        "tests/release/acceptance/test_slope.py::test_no_row_of_a_cell_adds_more_than_its_units",
    ),
    bug(
        "a distance rounded down",
        "privsyn/private/acceptance.py",
        "return -(-UNIT * distance // (2 * total)) -",
        "return UNIT * distance // (2 * total) -",
        "tests/private/test_acceptance.py::test_a_distance_of_less_than_a_unit_is_rounded_up",
    ),
    bug(
        "rows of a cut cell that lower a sum",
        "privsyn/release/acceptance/judge.py",
        "np.expand_dims(np.maximum(side, 0), others) * cut",
        "np.expand_dims(side, others) * cut",
        "tests/release/acceptance/test_acceptance.py"
        "::test_a_row_of_a_cut_cell_adds_as_much_as_if_it_met_the_condition_and_as_if_it_did_not",
    ),
    bug(
        "rows of a cut cell that never meet the condition of a proportion",
        "privsyn/release/acceptance/judge.py",
        "above[possible], below[sure])",
        "above[sure], below[sure])",
        "tests/release/acceptance/test_acceptance.py"
        "::test_private_rows_of_a_cut_cell_are_taken_to_meet_a_condition_or_not_as_is_worse",
    ),
    bug(
        "numbers of a mean taken to lie at the near end of their cells",
        "privsyn/release/acceptance/judge.py",
        "ceil((high - middle - within) / step) for high in last",
        "ceil((low - middle - within) / step) for low in first",
        "tests/release/acceptance/test_acceptance.py"
        "::test_a_number_counts_as_the_end_of_its_cell_that_is_worse",
    ),
)

BUGS = (
    *ACCOUNTING,
    *LEDGER,
    *NOISE,
    *QUESTIONS,
    *METHODS,
    *PERSONS,
    *LINKED,
    *DISCOVERY,
    *ROWS,
    *RELEASE,
    *PURE,
    *LOCAL,
    *OWNERS,
    *ACCEPTANCE,
)
