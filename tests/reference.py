"""The slow and obvious version of every fast routine: loops over rows and cells, nothing clever."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import ceil, exp, floor, fsum, log, pi, sqrt

import networkx as nx
import numpy as np

from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.recoding import Merging
from privsyn.synthesis._kernels import EXCHANGES
from privsyn.synthesis.annealing import VARIATES


def cells_of(shape):
    """Every cell of a table, in the order of its counts."""
    return product(*(range(size) for size in shape))


def count(records: Records, attributes: tuple[str, ...]) -> Marginal:
    """The exact table of some attributes."""
    domain = records.domain.project(attributes)
    found = Counter(map(tuple, records.codes[:, records.domain.axes(attributes)].tolist()))
    return Marginal(domain, np.array([found[cell] for cell in cells_of(domain.shape)]).reshape(domain.shape))


def project(table: Marginal, attributes: tuple[str, ...]) -> Marginal:
    domain = table.domain.project(attributes)
    counts = np.zeros(domain.shape)
    for cell in cells_of(table.domain.shape):
        counts[tuple(cell[axis] for axis in table.domain.axes(attributes))] += table.counts[cell]
    return Marginal(domain, counts)


def spread(table: Marginal, delta: Marginal) -> Marginal:
    counts = table.counts.copy()
    sharing = table.domain.cells // delta.domain.cells
    for cell in cells_of(table.domain.shape):
        counts[cell] += (
            delta.counts[tuple(cell[axis] for axis in table.domain.axes(delta.attributes))] / sharing
        )
    return Marginal(table.domain, counts)


def norm_sub(counts, total):
    """What every cell loses, found by halving: too little lost leaves too many records."""
    low, high = counts.min() - total, counts.max()
    for _ in range(200):
        middle = (low + high) / 2
        left = fsum(max(x - middle, 0.0) for x in counts.ravel())
        low, high = (middle, high) if left > total else (low, middle)
    return np.maximum(counts - high, 0.0)


# Merging


def join_runs(counts, thresholds):
    """Sizes of the runs: neighbours until all or the last reach the threshold; the rest joins the last."""
    runs, current = [], []
    for place in range(len(counts)):
        current.append(place)
        together = sum(counts[i] for i in current) >= sqrt(sum(thresholds[i] ** 2 for i in current))
        if together or counts[place] >= thresholds[place]:
            runs.append(len(current))
            current = []
    if current and runs:
        runs[-1] += len(current)
    elif current:
        runs.append(len(current))
    return runs


# Selection and combination


def expected_error(chosen, dependences, domain, rho):
    """Noise of the pairs that are measured, dependence of those that are not."""
    cells = [domain.project(pair).cells for pair in chosen]
    weights = [c ** (2 / 3) for c in cells]
    noise = sum(c / sqrt(pi * rho * w / sum(weights)) for c, w in zip(cells, weights, strict=True))
    return noise + sum(max(d, 0.0) for pair, d in dependences.items() if pair not in chosen)


def dense_marg(dependences, domain, rho):
    chosen = ()
    while len(chosen) < len(dependences):
        larger = [(*chosen, pair) for pair in dependences if pair not in chosen]
        best = min(larger, key=lambda pairs: expected_error(pairs, dependences, domain, rho))
        if expected_error(best, dependences, domain, rho) >= expected_error(chosen, dependences, domain, rho):
            break
        chosen = best
    return chosen


def combine(pairs, domain, gamma=5000, overlap=2):
    """The paper's Algorithm 2: all cliques listed, sorted, and gone through once."""

    def by_size(clique):
        return sorted((domain.sizes[axis], axis) for axis in domain.axes(tuple(clique)))

    def rank(clique):
        return -len(clique), domain.project(tuple(clique)).cells, by_size(clique)

    cliques = [clique for clique in nx.enumerate_all_cliques(nx.Graph(list(pairs))) if len(clique) > 2]
    taken, covered = [], set()
    for clique in sorted(cliques, key=rank):
        if domain.project(tuple(clique)).cells <= gamma and len(covered & set(clique)) <= overlap:
            taken.append(tuple(sorted(clique, key=lambda name: domain.axes((name,)))))
            covered |= set(clique)
    return (*taken, *(pair for pair in pairs if not any(set(pair) <= set(clique) for clique in taken)))


# Consistency


def agree(measurements, total):
    """One pass of weighted averaging over everything that two tables share, smallest first."""
    tables = [m.marginal for m in measurements]
    names = sorted({name for table in tables for name in table.attributes})
    everything = [set(c) for k in range(len(names) + 1) for c in combinations(names, k)]
    for attributes in (tuple(sorted(a)) for a in everything if is_shared(a, tables)):
        holders = [i for i, table in enumerate(tables) if set(attributes) <= set(table.attributes)]
        weights = [1 / project(variance_of(measurements[i]), attributes).counts.mean() for i in holders]
        projections = [project(tables[i], attributes) for i in holders]
        mean = sum(w * p.counts for w, p in zip(weights, projections, strict=True)) / sum(weights)
        for i, projection in zip(holders, projections, strict=True):
            gap = (mean if attributes else total) - projection.counts
            tables[i] = spread(tables[i], Marginal(projection.domain, gap))
    return tables


def is_shared(attributes, tables):
    """Whether the tables that hold all the attributes have nothing else in common, and are two at least."""
    holders = [set(table.attributes) for table in tables if attributes <= set(table.attributes)]
    return not attributes or (len(holders) > 1 and set.intersection(*holders) == attributes)


def variance_of(measurement):
    return Marginal(measurement.marginal.domain, measurement.variance)


# Synthesis


def mutual_information(pair):
    joint = pair.counts / pair.counts.sum()
    return sum(
        joint[a, b] * log(joint[a, b] / (joint[a].sum() * joint[:, b].sum()))
        for a, b in cells_of(joint.shape)
        if joint[a, b] > 0
    )


def cell_of_row(row, columns, shape):
    """Place of a row's cell among the cells of a table over the columns."""
    return list(cells_of(shape)).index(tuple(row[j] for j in columns))


def plan_moves(counts, target, alpha):
    """Gains and losses of one gradual update; the share that over-full cells give up is halved in on."""
    gain = [
        max(min(t - c, alpha * c) if c > 0 else min(alpha, 1) * t, 0.0)
        for c, t in zip(counts, target, strict=True)
    ]

    def losses(beta):
        return [max(min(c - t, beta * c), 0.0) for c, t in zip(counts, target, strict=True)]

    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if fsum(losses(middle)) < fsum(gain) else (low, middle)
    return gain, losses(high)


def round_with_offset(values, offset):
    """With fractions in place of floats: each value's share of the whole numbers that the sum passes."""
    rounded, total = [], offset
    for value in values:
        rounded.append(floor(total + value) - floor(total))
        total += value
    assert all(floor(v) <= r <= ceil(v) for v, r in zip(values, rounded, strict=True))
    return rounded


def anneal(codes, sets, shape, targets, sweeps, temperature, rng, together=()):
    """Every value of every record tried out, one attribute or pair after the other, while the heat falls."""
    rows, own = codes.copy(), [tuple(np.arange(shape[column]) for column in columns) for columns in sets]
    alone = {column for columns in sets for column in columns} - {axis for pair in together for axis in pair}
    moves = [(axis,) for axis in sorted(alone)] + list(together)
    noise = rng.gumbel(size=VARIATES + max(len(values_of(codes, move)) for move in moves)).astype(np.float32)
    for sweep in range(sweeps):
        cooling = temperature * (1 - (sweep + 1) / sweeps)
        for move in moves:
            values = values_of(codes, move)
            heat = cooling * sum(bool({*move} & {*columns}) for columns in sets)
            rows = resample(rows, move, values, sets, own, targets, heat, noise, rng)
    return rows


def swap(codes, block, pairs, sets, groups, targets, weights, heat, rng):
    """The block exchanged between the rows of each pair, all tables counted afresh before and after."""

    def misfit(rows):
        total = 0.0
        for columns, of_columns, target, weight in zip(sets, groups, targets, weights, strict=True):
            counts = np.zeros(target.shape)
            np.add.at(counts, tuple(g[rows[:, j]] for j, g in zip(columns, of_columns, strict=True)), 1)
            total += (weight * (counts - target) ** 2).sum()
        return total

    rows, block = codes.copy(), list(block)
    for i, k in pairs.T:
        if (rows[i, block] == rows[k, block]).all():
            continue
        swapped = rows.copy()
        swapped[np.ix_([i, k], block)] = rows[np.ix_([k, i], block)]
        change = misfit(swapped) - misfit(rows)
        if change < (-heat * log(1 - rng.random()) if heat > 0 else 0.0):
            rows = swapped
    return rows


def values_of(codes, move):
    """What the rows have of the attributes, in order."""
    return sorted(set(map(tuple, codes[:, list(move)].tolist())))


def resample(codes, move, values, sets, groups, targets, heat, noise, rng, barred=()):
    """Some attributes drawn again: all tables counted afresh for each value, their misfit compared."""

    def misfit(rows):
        total = 0.0
        for columns, of_columns, target in zip(sets, groups, targets, strict=True):
            counts = np.zeros(target.shape)
            np.add.at(counts, tuple(g[rows[:, j]] for j, g in zip(columns, of_columns, strict=True)), 1)
            total += ((counts - target) ** 2 / (target + 1)).sum()
        return total

    rows = codes.copy()
    for row in range(len(rows)):
        if tuple(rows[row, list(move)].tolist()) not in values:
            continue
        place = int(rng.random() * (len(noise) - len(values))) if heat > 0 else 0
        without, costs = misfit(np.delete(rows, row, axis=0)), []
        for k, value in enumerate(values):
            rows[row, list(move)] = value
            costs.append(np.float32(misfit(rows) - without) - np.float32(heat) * noise[place + k])
            costs[-1] += np.float32(1e12) * (len(barred) > 0 and list(barred[row]).count(value[0]))
        rows[row, list(move)] = values[int(np.argmin(costs))]
    return rows


def move_changes(codes, keeps_first, ends, cells, groups, strides, counts, targets, weights, heat, rng):
    """Changes of a column moved along the rows of a parent: all tables counted afresh for each proposal."""
    size = groups.shape[1] - 1

    def counted(path):
        total = np.zeros(len(counts))
        for row in range(len(path)):
            earlier = [path[row - lag] if row >= lag else size for lag in range(len(strides))]
            added = sum(s * g[code] for s, g, code in zip(strides, groups, earlier, strict=True))
            np.add.at(total, cells[begin + row].astype(int) + added, 1)
        return total

    codes, counts = codes.copy(), counts.copy()
    for begin, end in ends.tolist():
        path = codes[begin:end].tolist()
        for _ in range(len(path)):
            changes = [row for row in range(1, len(path)) if path[row] != path[row - 1]]
            proposal = path.copy()
            if not keeps_first and size > 1 and (not changes or rng.random() < EXCHANGES):
                value = int(rng.random() * size)
                exchanged = {path[0]: value, value: path[0]}
                proposal = [exchanged.get(code, code) for code in path]
            elif not changes:
                break
            else:
                which = int(rng.random() * len(changes))
                low, change, high = (0, *changes, len(path))[which : which + 3]
                if size < 3 or rng.random() < 0.5:
                    row = low + 1 + int(rng.random() * (high - low - 1))
                    proposal[low:high] = [path[low]] * (row - low) + [path[change]] * (high - row)
                else:
                    proposal[change:high] = [int(rng.random() * size)] * (high - change)
            if proposal == path or np.count_nonzero(np.diff(proposal)) < len(changes):
                continue
            moved = counts + counted(proposal) - counted(path)
            misfit = (weights * ((moved - targets) ** 2 - (counts - targets) ** 2)).sum()
            if misfit < (-heat * log(1 - rng.random()) if heat > 0 else 0.0):
                path, counts = proposal, moved
        codes[begin:end] = path
    return codes, counts


def distance(records: Records, table: Marginal) -> float:
    """Sum of absolute differences between the rows' counts and a table scaled to as many rows."""
    return float(
        np.abs(count(records, table.attributes).counts - table.counts * len(records) / table.total).sum()
    )


def binary(names: str) -> Domain:
    """A domain of two values for each letter."""
    return Domain(tuple(names), (2,) * len(names))


# Dependence


def indif(counts: np.ndarray) -> Fraction:
    """InDif of a table of two attributes, in records, without rounding."""
    counts = counts.tolist()
    rows, columns = [sum(row) for row in counts], [sum(column) for column in zip(*counts, strict=True)]
    n = sum(rows)
    return sum(
        (
            abs(counts[i][j] - Fraction(rows[i] * columns[j], n))
            for i, j in cells_of((len(rows), len(columns)))
            if n
        ),
        Fraction(0),
    )


# The default method's arithmetic


def error_left(variances, rhos):
    """Expected L1 error of tables with these prior variances of their cells, measured and shrunk."""
    return sum(
        sqrt(2 / pi) * fsum(sqrt(v / (1 + 2 * rho * v)) for v in table.ravel())
        for table, rho in zip(variances, rhos, strict=True)
    )


def slope(variances, rho):
    """How fast the error of one table falls."""
    return np.sqrt(2 / np.pi) * ((variances / (1 + 2 * rho * variances)) ** 1.5).sum()


def fit_margins(table, margins, rounds):
    """Iterative proportional fitting, cell by cell."""
    counts = table.counts.copy()
    for _ in range(rounds):
        for margin in margins:
            sums = project(Marginal(table.domain, counts), margin.attributes).counts
            for cell in cells_of(counts.shape):
                place = tuple(cell[axis] for axis in table.domain.axes(margin.attributes))
                counts[cell] *= margin.counts[place] / sums[place] if sums[place] else 0.0
    return counts


def posterior(measurement, expected, dispersion, margins):
    """Mean of a Gaussian table given its measurement and its margins: one system of linear equations."""
    domain = measurement.marginal.domain
    precision = 1 / (dispersion * expected) + 1 / measurement.variance
    mean = (1 / dispersion + measurement.marginal.counts / measurement.variance) / precision
    units = [Marginal(domain, unit.reshape(domain.shape)) for unit in np.eye(domain.cells)]
    sums = np.concatenate([[project(u, m.attributes).counts.ravel() for u in units] for m in margins], axis=1)
    missed = mean.ravel() @ sums - np.concatenate([m.counts.ravel() for m in margins])
    variances = np.diag(1 / precision.ravel())
    # The margins say some things twice, so that there are many solutions, all of which move cells alike.
    forces = np.linalg.lstsq(sums.T @ variances @ sums, missed, rcond=None)[0]
    return mean - (variances @ sums @ forces).reshape(domain.shape)


def remove_negatives(counts, freedom, limits, rounds):
    """Correct counts to the required sums, then set negative ones to 0, and so on.

    `limits` has the group of each code of each axis, and the sums.
    """
    counts = counts.copy()
    for _ in range(rounds):
        for groups, sums in limits:
            for place in cells_of(sums.shape):
                inside = [
                    cell
                    for cell in cells_of(counts.shape)
                    if place == tuple(group[code] for group, code in zip(groups, cell, strict=True))
                ]
                whole = sum(freedom[cell] for cell in inside)
                excess = sum(counts[cell] for cell in inside) - sums[place]
                for cell in inside:
                    counts[cell] -= freedom[cell] * (excess / whole if whole > 0 else 0.0)
        counts = np.maximum(counts, 0.0)
    return counts


def class_evidence(distributions, classes, table):
    """What one pair's table puts down to each class, of both its attributes: each cell shared out.

    `distributions` are those of the pair's two attributes, of shape (values, classes).
    """
    first, second = (np.zeros(distribution.shape) for distribution in distributions)
    for a, b in cells_of(table.shape):
        joint = [p * x * y for p, x, y in zip(classes, distributions[0][a], distributions[1][b], strict=True)]
        for k, part in enumerate(joint):
            first[a, k] += table[a, b] * part / fsum(joint)
            second[b, k] += table[a, b] * part / fsum(joint)
    return first, second


def most_alike(listed, wanted):
    """For each wanted row the places of all listed rows that share its longest beginning that any has."""
    found = []
    for row in wanted:
        shared = [
            next((j for j, (a, b) in enumerate(zip(other, row, strict=True)) if a != b), len(row))
            for other in listed
        ]
        found.append([place for place, length in enumerate(shared) if length == max(shared)])
    return found


def best_tilt(counts, variance, near, likelihood, grid, law, total, most, halvings):
    """The tilt that gives the total, by bisection; means of all cells at once."""
    low, high = -most, most
    for _ in range(halvings):
        tilt = (low + high) / 2
        prior = law * np.exp(tilt * grid - max(tilt * grid[-1], 0.0))
        means = np.maximum(counts + tilt * variance, 0.0)
        means[near] = likelihood @ (prior * grid) / np.maximum(likelihood @ prior, np.finfo(float).tiny)
        low, high = (low, tilt) if means.sum() > total else (tilt, high)
    return (low + high) / 2


def siphash(key, text):
    """SipHash-2-4 with 128 bits, as the paper describes it: words are numbers, and bytes are read in turn."""
    whole = 2**64 - 1

    def turned(word, by):
        return (word << by | word >> (64 - by)) & whole

    def mixed(v, rounds):
        a, b, c, d = v
        for _ in range(rounds):
            a, c = (a + b) & whole, (c + d) & whole
            b, d = turned(b, 13) ^ a, turned(d, 16) ^ c
            a = turned(a, 32)
            c, a = (c + b) & whole, (a + d) & whole
            b, d = turned(b, 17) ^ c, turned(d, 21) ^ a
            c = turned(c, 32)
        return [a, b, c, d]

    low, high = (int.from_bytes(half, "little") for half in (key[:8], key[8:]))
    letters = b"somepseudorandomlygeneratedbytes"
    v = [int.from_bytes(letters[place : place + 8], "big") for place in range(0, 32, 8)]
    v = [v[0] ^ low, v[1] ^ high ^ 0xEE, v[2] ^ low, v[3] ^ high]
    padded = text + bytes(7 - len(text) % 8) + bytes([len(text) % 256])
    for place in range(0, len(padded), 8):
        word = int.from_bytes(padded[place : place + 8], "little")
        v[3] ^= word
        v = mixed(v, 2)
        v[0] ^= word
    v[2] ^= 0xEE
    v = mixed(v, 4)
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    v = mixed(v, 4)
    return b"".join(half.to_bytes(8, "little") for half in (first, v[0] ^ v[1] ^ v[2] ^ v[3]))


def unmerged(domain):
    """Return the merging that keeps all codes."""
    each = tuple(np.arange(size, dtype=np.int32) for size in domain.sizes)
    return Merging(domain, domain, each, tuple(map(np.ones, domain.sizes)))


def weigh(cells, starts, counts, variances, ridges, weights, multipliers, passes=2):
    """Return the weights of rows after passes over all tables, each cell by bisection."""
    weights, multipliers = [*weights], [*multipliers]
    for _ in range(passes):
        for table, row_cells in enumerate(cells):
            sums = [0.0] * int(starts[table + 1] - starts[table])
            for row, cell in enumerate(row_cells):
                sums[cell] += weights[row]
            for k, total in enumerate(sums):
                c = starts[table] + k
                low, high = -40.0, 40.0
                for _ in range(100):
                    u = (low + high) / 2
                    gap = total * exp(u) + variances[c] * (multipliers[c] + ridges[table] * u) - counts[c]
                    low, high = (low, u) if gap > 0 else (u, high)
                multipliers[c] += ridges[table] * low * (total > 0)
                for row, cell in enumerate(row_cells):
                    weights[row] *= exp(low) if cell == k else 1.0
    return weights
