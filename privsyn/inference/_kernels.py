"""Compiled loops of inference; each has a slow twin in tests/reference.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from privsyn.compiled import INNER, KERNEL
from privsyn.marginals.domain import Codes, Floats, Ints, Mask
from privsyn.marginals.tolerances import SMALLEST, TINY_SHARE

MEAN_OF_ABSOLUTE = float(np.sqrt(2 / np.pi))  # mean of |Z| of a standard normal Z


@njit(**KERNEL, fastmath={"contract"})  # a * b + c is rounded once, where the processor can
def add_class_evidence(
    values: Floats, classes: Floats, observed: Floats, firsts: Ints, shapes: Ints, evidence: Floats
) -> None:
    """Add the expected share of each value in each class, by the tables of pairs, to `evidence` in place.

    Parameters
    ----------
    values, evidence : of shape (values of all attributes, classes)
    classes : of shape (classes,), their shares
    observed : shares of the cells of all tables, one table after the other
    firsts : of shape (pairs, 2), where the values of the pair's attributes begin
    shapes : of shape (pairs, 2), of the tables

    Notes
    -----
    The sum over classes has a fixed order, in four parts that are added at once; see `privsyn.compiled`.
    """
    part, cell = np.empty(len(classes)), 0
    fours = len(classes) - len(classes) % 4
    for p in range(len(firsts)):
        row, column = firsts[p]
        for i in range(shapes[p, 0]):
            for j in range(shapes[p, 1]):
                share = observed[cell]
                cell += 1
                if share <= 0:
                    continue
                for k in range(len(classes)):
                    part[k] = classes[k] * values[row + i, k] * values[column + j, k]
                first = second = third = fourth = 0.0
                for k in range(0, fours, 4):
                    first += part[k]
                    second += part[k + 1]
                    third += part[k + 2]
                    fourth += part[k + 3]
                fitted = (first + third) + (second + fourth)
                for k in range(fours, len(classes)):
                    fitted += part[k]
                ratio = share / (fitted if fitted > TINY_SHARE else TINY_SHARE)
                for k in range(len(classes)):
                    evidence[row + i, k] += ratio * part[k]
                    evidence[column + j, k] += ratio * part[k]


@njit(**KERNEL)
def slopes(variances: Floats, ends: Ints, rhos: Floats) -> Floats:
    """Return how fast each table's expected error falls at each budget: float64 of shape (tables, budgets).

    Parameters
    ----------
    variances : prior variances of the cells of all tables, one table after the other
    ends : of shape (tables,), where each table's cells end
    rhos : of shape (budgets,), in zCDP
    """
    falls, start = np.empty((len(ends), len(rhos))), 0
    for t in range(len(ends)):
        fall = falls[t]
        for r in range(len(rhos)):
            fall[r] = 0.0
        for cell in range(start, ends[t]):
            for r in range(len(rhos)):
                posterior = variances[cell] / (1 + 2 * rhos[r] * variances[cell])
                fall[r] += posterior * np.sqrt(posterior)
        for r in range(len(rhos)):
            fall[r] *= MEAN_OF_ABSOLUTE
        start = ends[t]
    return falls


@njit(**KERNEL)
def sums_of_deviations(expected: Floats, uncertainty: Floats, dispersions: Floats) -> Floats:
    """Return the sum over each table's cells of their standard deviation at each dispersion.

    Parameters
    ----------
    expected, uncertainty : of shape (tables, cells)
    dispersions : of shape (dispersions,)

    Returns
    -------
    float64 of shape (tables, dispersions)
    """
    sums = np.empty((len(expected), len(dispersions)))
    for t in range(len(expected)):
        deviations = sums[t]
        for d in range(len(dispersions)):
            deviations[d] = 0.0
        for cell in range(expected.shape[1]):
            for d in range(len(dispersions)):
                deviations[d] += np.sqrt(expected[t, cell] * dispersions[d] + uncertainty[t, cell])
    return sums


@njit(**KERNEL)
def errors(variances: Floats, ends: Ints, rhos: Floats) -> Floats:
    """Return each table's expected error at each budget: float64 of shape (tables, budgets).

    The parameters are those of `slopes`.
    """
    totals, start = np.empty((len(ends), len(rhos))), 0
    for t in range(len(ends)):
        error = totals[t]
        for r in range(len(rhos)):
            error[r] = 0.0
        for cell in range(start, ends[t]):
            for r in range(len(rhos)):
                error[r] += np.sqrt(variances[cell] / (1 + 2 * rhos[r] * variances[cell]))
        for r in range(len(rhos)):
            error[r] *= MEAN_OF_ABSOLUTE
        start = ends[t]
    return totals


class Spectra(NamedTuple):
    """Attributes at some resolutions, one after the other.

    A unit is a run of ordered codes, or one nominal code. Within a run, variances add up. Across nominal
    codes, standard deviations add up.

    Parameters
    ----------
    starts : of shape (spectra + 1,), first component of each spectrum
    units, variances, gains : of shape (components,), units increasing within each spectrum
    firsts : of shape (spectra + 1,), first unit of each spectrum
    masses, priors : of shape (units,)
    """

    starts: Ints
    units: Ints
    variances: Floats
    gains: Floats
    firsts: Ints
    masses: Floats
    priors: Floats


@njit(**KERNEL)
def smooth_errors(
    axes: Ints,
    scales: Floats,
    precisions: Floats,
    spectra: Spectra,
    rhos: Floats,
) -> Floats:
    """Return each table's expected error at each budget: float64 of shape (tables, budgets).

    Parameters
    ----------
    axes : of shape (tables, 2), the spectra of both attributes
    scales : of shape (tables,), dispersion times number of records
    precisions : of shape (tables,), inverse noise variance of earlier measurements
    spectra : Spectra
    rhos : of shape (budgets,), in zCDP
    """
    starts, units, variances, gains, firsts, masses, priors = spectra
    errors = np.empty((len(axes), len(rhos)))
    for t in range(len(axes)):
        a, b, scale = axes[t, 0], axes[t, 1], scales[t]
        rows, columns = firsts[a + 1] - firsts[a], firsts[b + 1] - firsts[b]
        posterior = np.empty((rows, columns))
        for r in range(len(rhos)):
            precision = 2 * rhos[r] + precisions[t]
            for u in range(rows):
                for v in range(columns):
                    posterior[u, v] = scale * priors[firsts[a] + u] * priors[firsts[b] + v]
            if precision > 0:
                for i in range(starts[a], starts[a + 1]):
                    for j in range(starts[b], starts[b + 1]):
                        gained = scale * scale * gains[i] * gains[j]
                        gained /= scale * variances[i] * variances[j] + 1 / precision
                        posterior[units[i], units[j]] -= gained
            error = 0.0
            for u in range(rows):
                for v in range(columns):
                    size = masses[firsts[a] + u] * masses[firsts[b] + v]
                    error += size * np.sqrt(max(posterior[u, v], 0.0))
            errors[t, r] = MEAN_OF_ABSOLUTE * error
    return errors


class RequiredSums(NamedTuple):
    """The sums that the cells of tables must have.

    Parameters
    ----------
    labels : of shape (kinds of sums, cells), the sum of each kind that a cell belongs to
    targets : of shape (tables, sums), those of kind k from ``starts[k]`` to ``starts[k + 1]``
    starts : of shape (kinds of sums + 1,)
    """

    labels: Ints
    targets: Floats
    starts: Ints


@njit(**KERNEL)
def remove_negatives(
    tables: Floats, freedoms: Floats, required: RequiredSums, iterations: int, enough: float
) -> None:
    """Alternate in place between correcting counts to the required sums and setting negative counts to 0.

    Parameters
    ----------
    tables, freedoms : of shape (tables, cells)
        Counts. Each sum is corrected in proportion to the freedom of its cells.
    required : RequiredSums
    iterations : most iterations
    enough : share of the total: stop when every sum is missed by less
    """
    labels, targets, starts = required
    excess, freedom_of_sums = np.empty(targets.shape[1]), np.empty(targets.shape[1])
    for table in range(len(tables)):
        counts, freedom = tables[table], freedoms[table]
        for s in range(len(freedom_of_sums)):
            freedom_of_sums[s] = 0.0  # freedom of all cells of a sum
        for kind in range(len(labels)):
            for cell in range(len(counts)):
                freedom_of_sums[labels[kind, cell]] += freedom[cell]
        for _ in range(iterations):
            missed, total = 0.0, 0.0
            for kind in range(len(labels)):
                start, end = starts[kind], starts[kind + 1]
                for s in range(start, end):
                    excess[s] = -targets[table, s]
                for cell in range(len(counts)):
                    excess[labels[kind, cell]] += counts[cell]
                for s in range(start, end):
                    missed = max(missed, abs(excess[s]))
                    excess[s] = excess[s] / freedom_of_sums[s] if freedom_of_sums[s] > 0 else 0.0
                for cell in range(len(counts)):
                    counts[cell] -= freedom[cell] * excess[labels[kind, cell]]
            for cell in range(len(counts)):
                counts[cell] = max(counts[cell], 0.0)
                total += counts[cell]
            if missed <= enough * total:
                break


class SeenCells(NamedTuple):
    """The noisy counts of a column, and how likely they make each count of a grid.

    Parameters
    ----------
    counts, variance, near : of shape (cells,); cells that are not `near` need no prior
    likelihood : of shape (cells that are near, counts of the grid)
    grid : of shape (counts of the grid,), the possible counts
    """

    counts: Floats
    variance: Floats
    near: Mask
    likelihood: Floats
    grid: Floats


@njit(**KERNEL)
def best_tilt(seen: SeenCells, law: Floats, total: float, limit: float, halvings: int) -> float:
    """Return the tilt, from -limit to limit, with which the posterior means of a column sum to `total`.

    Parameters
    ----------
    seen : SeenCells
    law : of shape (counts of the grid,), the prior shares of the possible counts
    """
    counts, variance, near, likelihood, grid = seen
    low, high, prior = -limit, limit, np.empty(len(grid))
    for _ in range(halvings):
        tilt = (low + high) / 2
        largest = max(tilt * grid[-1], 0.0)
        for g in range(len(grid)):
            prior[g] = law[g] * np.exp(tilt * grid[g] - largest)
        mean_sum, row = 0.0, 0
        for cell in range(len(counts)):
            if not near[cell]:
                mean_sum += max(counts[cell] + tilt * variance[cell], 0.0)
                continue
            mass, mean = sums_over_grid(likelihood[row], prior, grid)
            mean_sum += mean / max(mass, SMALLEST)
            row += 1
        low, high = (low, tilt) if mean_sum > total else (tilt, high)
    return (low + high) / 2


@njit(**INNER, fastmath={"reassoc"})
def sums_over_grid(likelihood: Floats, prior: Floats, grid: Floats) -> tuple[float, float]:
    """Return the evidence of a cell and its posterior mean times the evidence.

    The sums may be reordered, so they are vectorised; see `privsyn.compiled`.
    """
    mass, mean = 0.0, 0.0
    for g in range(len(grid)):
        mass += likelihood[g] * prior[g]
        mean += likelihood[g] * prior[g] * grid[g]
    return mass, mean


MOST_NEWTON = 40  # steps for one cell; most need five
STEEPEST, LARGEST_STEP = -40.0, 1.0  # logarithms: least factor of a cell, and its largest growth in a step
SMALL_STEP = 1e-9


class CellCounts(NamedTuple):
    """The noisy counts of several tables, one after the other: see `weigh`."""

    starts: Ints
    counts: Floats
    variances: Floats
    ridges: Floats


@njit(**KERNEL)
def weigh(cells: Codes, noisy: CellCounts, weights: Floats, multipliers: Floats) -> float:
    """Move the weights of rows to the counts of one table after the other, in place; return how far.

    A cell with the weight C of its rows gets the factor exp(u) with C exp(u) + ridge variance u = count -
    variance multiplier. Its multiplier grows by ridge u. A cell without rows stays.

    Parameters
    ----------
    cells : of shape (tables, rows), the cell of each row
    noisy : its starts of shape (tables + 1,), where the cells of each table begin; ridges of shape (tables,)
    weights : of shape (rows,)
    multipliers : of all cells, as the counts and their variances
    """
    starts, counts, variances, ridges = noisy
    moved = 0.0
    for t in range(len(cells)):
        first, size = starts[t], starts[t + 1] - starts[t]
        sums, factors = np.zeros(size), np.ones(size)
        for row in range(cells.shape[1]):
            sums[cells[t, row]] += weights[row]
        ridge = ridges[t]
        for k in range(size):
            if sums[k] <= 0:
                continue
            c = first + k
            goal, slope, u = counts[c] - variances[c] * multipliers[c], variances[c] * ridge, 0.0
            for _ in range(MOST_NEWTON):
                now = sums[k] * np.exp(u)
                step = (goal - now - slope * u) / (now + slope)
                u += min(max(step, -LARGEST_STEP), LARGEST_STEP)
                u = max(u, STEEPEST)
                if abs(step) < SMALL_STEP:
                    break
            multipliers[c] += ridge * u
            factors[k] = np.exp(u)
            moved += abs(sums[k] * (factors[k] - 1))
        for row in range(cells.shape[1]):
            weights[row] *= factors[cells[t, row]]
    return moved
