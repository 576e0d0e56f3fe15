"""The posterior of bouncing balls given crops, by particles that are whole exact trajectories of a window of frames.

A particle is where all balls are and how they move at each frame of a window, by the exact simulator. Its energy is
`sharpness` times the seen pixels that it draws wrong, summed over the window; the target is exp(-energy) times the
density of first frames (while frame 0 is in the window; later, flat in places and velocities at the known total
energy). With each frame the particles go one step on. What they draw wrong in it counts by stages, as much at a time as
leaves enough of them apart: they are resampled, and then moved by Metropolis steps. A step changes one ball (or all) at
one frame of the window, and retraces the window from there, forward and backward: the dynamics is reversible and keeps
volume, so that no Jacobian appears. It stops as soon as the energy is beyond what would be accepted: exact early
rejection. Steps:

- Gaussian, of a scale drawn log-uniformly; or along the difference of two other particles (ter Braak, 2006);
- birth: one ball anew near a seen pixel that the others do not explain, with any velocity, or with the one that leads
  to such a pixel of the frame before or after. Its density is known, and the acceptance corrected by it.

All keep the target. While a population is lost (no particle explains what is seen) two more do not: a ball taken over
from another particle, and particles far above the median replaced. Populations are independent; each may have another
number of balls. They are weighed by their evidence over the window; one that has lost for good begins again as a copy
of the best."""

# J populations, P particles of each, W slots of the window (frame f is in slot f % W), n balls (of the largest
# population), T frames seen, S rows of a picture: words of S bits, pixel j is bit j

from __future__ import annotations

import math

import numpy as np

from s2rm_data.core.compiled import compiled
from s2rm_data.generators.bballs.evaluation import ball_words as words
from s2rm_data.generators.bballs.evaluation.ball_words import ONE, density, draws, wrong
from s2rm_data.generators.bballs.making.ball_simulate import begin, next_frame

_APART = 0.3  # effective share of the particles that a resampling must leave
LOST = 12.0  # a population searches while its median of wrong pixels in the window is above this, and
_RIM = 0.8  # so many more for each ball and frame, if all of it is seen: rims of balls that have been found
_HOPELESS = 1e-12  # weight of a population that begins again as a copy of the best


@compiled(error_model="numpy")
def _touches(i, x, n, radius, size, discs):  # type: ignore[no-untyped-def]
    """Whether ball i is in a side of the box, in what stands still or in another ball."""
    low, high, reach_sq = radius, size - radius, 4.0 * radius * radius
    if not (low <= x[i, 0] <= high and low <= x[i, 1] <= high):
        return True
    for k in range(len(discs)):
        dx, dy, reach = x[i, 0] - discs[k][0], x[i, 1] - discs[k][1], radius + discs[k][2]
        if dx * dx + dy * dy < reach * reach:
            return True
    for k in range(n):
        dx, dy = x[i, 0] - x[k, 0], x[i, 1] - x[k, 1]
        if k != i and dx * dx + dy * dy < reach_sq:
            return True
    return False


@compiled(error_model="numpy")
def _log_prior(v, n, speeds, is_first):  # type: ignore[no-untyped-def]
    """Of the velocities of the window's first frame; `speeds`: (least, most) of a ball, and of its mean energy."""
    energy, density = 0.0, 0.0
    for k in range(n):
        own = v[k, 0] * v[k, 0] + v[k, 1] * v[k, 1]
        energy += own
        if is_first and not speeds[0] * speeds[0] <= own <= speeds[1] * speeds[1]:
            return -np.inf
        density -= 0.5 * math.log(own) if is_first and speeds[1] < np.inf else 0.0  # uniform in speed, not on the disc
    return density if n * speeds[2] <= energy <= n * speeds[3] else -np.inf


@compiled(error_model="numpy")
def _retrace(tau, span, limit, n, path, room):  # type: ignore[no-untyped-def]
    """Fill the path's slots of the span from frame tau; the energy, or inf once it is beyond `limit`. The cost of the
    newest frame counts `newest` times."""
    low, high, newest = span
    (x, v, costs), (_, world, (on, seen), work, _) = path, room
    rows, state, links, flipped, bodies = work
    size, radius, discs, still = world
    slots, at = len(costs), tau % len(costs)
    costs[at] = wrong(x[at], n, radius, still, on[tau], seen[tau], rows)
    total = costs[at] * (newest if tau == high else 1.0)
    for sign in (1, -1):
        for k in range(n):
            flipped[k, 0], flipped[k, 1] = sign * v[at, k, 0], sign * v[at, k, 1]
        begin(x[at], flipped, bodies[0], bodies[1], state[:, :n], links[:, :n], size, discs, None, None)
        for step in range((high - tau) if sign == 1 else (tau - low)):
            if total > limit:
                return np.inf
            frame = tau + sign * (step + 1)
            to = frame % slots
            if not next_frame(state[:, :n], links[:, :n], size, discs, None, None, x[to], v[to]):
                return np.inf
            for k in range(n):
                v[to, k, 0], v[to, k, 1] = sign * v[to, k, 0], sign * v[to, k, 1]
            costs[to] = wrong(x[to], n, radius, still, on[frame], seen[frame], rows)
            total += costs[to] * (newest if frame == high else 1.0)
    return total if total <= limit else np.inf


@compiled(error_model="numpy")
def _birth(i, tau, span, n, x, v, room, random):  # type: ignore[no-untyped-def]
    """A new place and velocity of ball i of x, v (n, 2), in place; log density of the old one less that of the new."""
    low, high, _ = span
    speeds, (size, radius, _, still), (on, seen), (rows, _, _, _, _), disc = room
    count = words.unexplained(i, x, v, n, 0.0, radius, still, on[tau], seen[tau], rows)
    x0, y0, u0, v0 = x[i, 0], x[i, 1], v[i, 0], v[i, 1]
    x[i, 0], x[i, 1] = words.pick(rows, count, radius, size, random)
    ratio = density(x0, y0, rows, count, radius, size, disc)
    ratio -= density(x[i, 0], x[i, 1], rows, count, radius, size, disc)
    a, b, _, _ = draws(random)
    if a < 0.5 or low == high:
        spread = math.sqrt(0.25 * (speeds[2] + speeds[3]))
        p, q, _, _ = words.normals(random)
        v[i, 0], v[i, 1] = spread * p, spread * q
        return ratio + 0.5 * (p * p + q * q - (u0 * u0 + v0 * v0) / (spread * spread))
    ahead = 1 if tau == low or (tau < high and b < 0.5) else -1
    count = words.unexplained(i, x, v, n, float(ahead), radius, still, on[tau + ahead], seen[tau + ahead], rows)
    p, q = words.pick(rows, count, radius, size, random)
    v[i, 0], v[i, 1] = ahead * (p - x[i, 0]), ahead * (q - x[i, 1])
    ratio += density(x0 + ahead * u0, y0 + ahead * v0, rows, count, radius, size, disc)
    return ratio - density(p, q, rows, count, radius, size, disc)


@compiled(error_model="numpy")
def _shift(i, z, by, scale):  # type: ignore[no-untyped-def]
    z[i, 0] += scale * by[0]
    z[i, 1] += scale * by[1]


@compiled(error_model="numpy")
def _change(p, crowd, tau, span, lost, paths, cx, cv, room, random):  # type: ignore[no-untyped-def]
    """Another state of particle p at frame tau, in cx, cv (n, 2); log density of the way back less that of the way."""
    (first, last, n), at = crowd, tau % paths[2].shape[1]
    x, v = paths[0][:, at], paths[1][:, at]
    for k in range(n):
        for axis in range(2):
            cx[k, axis], cv[k, axis] = x[p, k, axis], v[p, k, axis]
    a, b, c, d = draws(random)
    i, births = int(a * n), 0.35 if lost else 0.1
    one, other = first + int(c * (last - first)), first + int(d * (last - first))
    if b < births:
        return _birth(i, tau, span, n, cx, cv, room, random)
    if lost and b < births + 0.15:
        k = int(d * n)
        cx[i], cv[i] = x[one, k], v[one, k]
        return 0.0
    if b < 0.6:
        if p in (one, other) or one == other:
            return -np.inf
        c, d, _, _ = draws(random)
        scale = 10.0 ** (-1.2 * c)
        for k in range(n):
            if k == i or d < 0.3:
                _shift(k, cx, x[one, k] - x[other, k], scale)
                _shift(k, cv, v[one, k] - v[other, k], scale)
        return 0.0
    p0, p1, p2, p3 = words.normals(random)
    if c < 0.8:
        _shift(i, cx, (p0, p1), 10.0 ** (2.5 * d - 2.3))
    c, d, _, _ = draws(random)
    if c < 0.7:
        _shift(i, cv, (p2, p3), 10.0 ** (2.8 * d - 2.8))
    return 0.0


@compiled(error_model="numpy")
def _move(p, crowd, span, lost, sharpness, paths, path, room, random):  # type: ignore[no-untyped-def]
    """One Metropolis step of particle p."""
    (x, v, costs, energy), (cx, cv, cc), (low, high, _), n = paths, path, span, crowd[2]
    speeds, (size, radius, discs, _), _, _, _ = room
    a, b, c, _ = draws(random)
    tau = high - int(b * (min(high - low + 1, 4) if a < 0.5 else high - low + 1))
    at, start = tau % len(cc), low % len(cc)
    gain = _change(p, crowd, tau, span, lost, paths, cx[at], cv[at], room, random) - math.log(1.0 - c)
    if gain == -np.inf or _log_prior(cv[at], n, speeds, tau == 0) == -np.inf:
        return
    for i in range(n):
        if _touches(i, cx[at], n, radius, size, discs):
            return
    slack = n * math.log(speeds[1] / speeds[0]) if speeds[1] < np.inf else 0.0
    total = _retrace(tau, span, energy[p] + (gain + slack) / sharpness, n, path, room)
    if total == np.inf:
        return
    is_first = low == 0 or n == 1
    gain += _log_prior(cv[start], n, speeds, is_first) - _log_prior(v[p, start], n, speeds, is_first)
    if not sharpness * (total - energy[p]) <= gain:
        return
    energy[p] = total
    for frame in range(low, high + 1):
        s = frame % len(cc)
        costs[p, s] = cc[s]
        for k in range(n):
            for axis in range(2):
                x[p, s, k, axis], v[p, s, k, axis] = cx[s, k, axis], cv[s, k, axis]


@compiled(error_model="numpy")
def _copy(source, target, paths):  # type: ignore[no-untyped-def]
    x, v, costs, energy = paths
    x[target], v[target], costs[target], energy[target] = x[source], v[source], costs[source], energy[source]


@compiled(error_model="numpy")
def _resample(first, weight, chosen, paths, random):  # type: ignore[no-untyped-def]
    """By weight (P,), systematically; who is chosen keeps its place, so that few are copied."""
    count, total, chosen[:] = len(weight), weight.sum(), 0
    a, _, _, _ = draws(random)
    reached, k = weight[0], 0
    for j in range(count):
        while reached < (j + a) * total / count and k < count - 1:
            k += 1
            reached += weight[k]
        chosen[k] += 1
    free = 0
    for k in range(count):
        for _ in range(chosen[k] - 1):
            while chosen[free] > 0:
                free += 1
            _copy(first + k, first + free, paths)
            chosen[free] = 1


@compiled(error_model="numpy")
def _weigh(loss, sharpen, weight):  # type: ignore[no-untyped-def]
    """weight = exp(-sharpen * loss), relative to the largest; the effective share of particles."""
    weight[:] = np.exp(-sharpen * (loss - loss.min()))
    return weight.sum() ** 2 / ((weight * weight).sum() * len(loss))


@compiled(error_model="numpy")
def _stage(first, step, lists, paths, random):  # type: ignore[no-untyped-def]
    """Resample by exp(-share of step * loss), with the largest share that leaves enough apart; returns the share."""
    (loss, weight, chosen), taken = lists, 1.0
    while _weigh(loss, step * taken, weight) < _APART and taken > 0.01:
        taken *= 0.8
    _resample(first, weight, chosen, paths, random)
    return taken


@compiled(error_model="numpy")
def _sum_up(crowd, span, paths):  # type: ignore[no-untyped-def]
    """Set the energies of a population to what its costs add up to; their median."""
    (first, last, _), (low, high, newest), (_, _, costs, energy) = crowd, span, paths
    for p in range(first, last):
        energy[p] = newest * costs[p, high % costs.shape[1]]
        for frame in range(low, high):
            energy[p] += costs[p, frame % costs.shape[1]]
    return np.median(energy[first:last])


@compiled(error_model="numpy")
def _take_in(crowd, low, high, effort, sharpness, evidence, paths, path, room, lists, random):  # type: ignore[no-untyped-def]
    """Let the newest frame count, by stages between which the population moves; then sharpen. Returns the sharpness,
    and whether the population is lost."""
    (first, last, n), (_, moves, left, sharpest), (loss, weight, _) = crowd, effort, lists
    costs, energy, slot = paths[2], paths[3], high % paths[2].shape[1]
    loss[:], newest = costs[first:last, slot], 0.0
    _weigh(loss, 1.0, weight)
    evidence[slot] = math.log(weight.mean()) - loss.min()
    limit = LOST
    for frame in range(low, high + 1):
        limit += _RIM * n * words.seen_share(room[2][1][frame])
    while True:
        middle = _sum_up(crowd, (low, high, newest), paths)
        lost = middle > limit
        sharpness = 1.0 if lost else sharpness
        if newest < 1.0:
            loss[:], rest = costs[first:last, slot], 1.0 - newest
            taken = _stage(first, sharpness * rest, lists, paths, random)
            newest = 1.0 if lost else min(newest + rest * taken, 1.0)  # whoever searches is better off unlike others
        elif lost and left > 0:
            left -= 1
            loss[:] = np.maximum(energy[first:last] - middle - 15.0, 0.0)
            _stage(first, 1.0, lists, paths, random)
        elif not lost and sharpness < sharpest and left > 0:
            left, step = 0, min(0.5 * sharpness, sharpest - sharpness)
            loss[:] = energy[first:last]
            sharpness += step * _stage(first, step, lists, paths, random)
        else:
            return sharpness, 1.0 if lost else 0.0
        span = (low, high, newest)
        _sum_up(crowd, span, paths)
        for p in range(first, last):
            for _ in range(moves * n):
                _move(p, crowd, span, lost, sharpness, paths, path, room, random)


@compiled(error_model="numpy")
def _step_on(p, high, n, x, v, room):  # type: ignore[no-untyped-def]
    """Particle p's frame high + 1, from frame high."""
    _, (size, _, discs, _), _, (_, state, links, _, bodies), _ = room
    at, to = high % x.shape[1], (high + 1) % x.shape[1]
    begin(x[p, at], v[p, at], bodies[0], bodies[1], state[:, :n], links[:, :n], size, discs, None, None)
    next_frame(state[:, :n], links[:, :n], size, discs, None, None, x[p, to], v[p, to])


@compiled(error_model="numpy")
def _add_picture(x, n, share, room, picture):  # type: ignore[no-untyped-def]
    """Add `share` to the pixels of picture (S, S) that are on."""
    _, (_, radius, _, still), _, (rows, _, _, _, _), _ = room
    rows[:] = still
    for k in range(n):
        words.draw(x[k, 0], x[k, 1], radius, rows)
    for i in range(len(rows)):
        word = rows[i]
        while word:
            picture[i, int(words.bit_count((word & (~word + ONE)) - ONE))] += share
            word &= word - ONE


@compiled(error_model="numpy")
def _weights(low, high, evidence, weight):  # type: ignore[no-untyped-def]
    """Of the populations, equally likely before: by evidence over the window."""
    weight[:] = 0.0
    for frame in range(low, high + 1):
        weight += evidence[:, frame % evidence.shape[1]]
    weight[:] = np.exp(weight - weight.max())
    weight /= weight.sum()


@compiled(error_model="numpy")
def run_filter(on, seen, x, v, counts, speeds, world, effort, key, prompt, made, rolled, found):  # type: ignore[no-untyped-def]
    """Fill made (T, S, S), the probability that each pixel is on in frame t + 1 given frames 0..t. on, seen (T, S):
    what is on and what is seen; x, v (J, P, n, 2): first frames drawn from the prior; counts (J,): balls of each
    population; speeds: see `_log_prior`; world: size, radius, discs, picture (S,) of what stands still; effort: window,
    moves, rounds, sharpness; rolled (H, S, S): the frames from `prompt` on, given those before; found (T, 2 J): which
    populations are lost, then their weights."""
    J, P, balls = x.shape[:3]
    N, slots = J * P, effort[0] + 2
    paths = (np.zeros((N, slots, balls, 2)), np.zeros((N, slots, balls, 2)), np.zeros((N, slots)), np.zeros(N))
    path = (np.zeros((slots, balls, 2)), np.zeros((slots, balls, 2)), np.zeros(slots))
    X, V, costs, _ = paths
    rows, disc = np.zeros(len(world[3]), np.uint64), np.zeros(len(world[3]), np.uint64)
    bodies = np.ones((2, balls))
    bodies[0] = world[1]
    work = (rows, np.zeros((8, balls)), np.zeros((2, balls), np.int64), np.zeros((balls, 2)), bodies)
    room = (speeds, world, (on, seen), work, disc)
    lists = (np.zeros(P), np.zeros(P), np.zeros(P, np.int64))
    sharpness, evidence, share = np.ones(J), np.zeros((J, slots)), np.zeros(J)
    random = np.array([key, np.uint64(0)])
    X[:, 0], V[:, 0] = x.reshape(N, balls, 2), v.reshape(N, balls, 2)
    for t in range(len(on)):
        low, slot = max(t - effort[0], 0), t % slots
        for j in range(J):
            crowd = (j * P, (j + 1) * P, counts[j])
            for p in range(j * P, (j + 1) * P):
                costs[p, slot] = wrong(X[p, slot], counts[j], world[1], world[3], on[t], seen[t], rows)
            sharpness[j], found[t, j] = _take_in(
                crowd, low, t, effort, sharpness[j], evidence[j], paths, path, room, lists, random
            )
        _weights(low, t, evidence, share)
        best = share.argmax()
        for j in range(J):
            if share[j] < _HOPELESS and slot == 0:
                counts[j], evidence[j], sharpness[j] = counts[best], evidence[best], sharpness[best]
                for k in range(P):
                    _copy(best * P + k, j * P + k, paths)
        for j in range(J):
            found[t, J + j] = share[j]
            for p in range(j * P, (j + 1) * P):
                _step_on(p, t, counts[j], X, V, room)
                _add_picture(X[p, (t + 1) % slots], counts[j], share[j] / P, room, made[t])
        if t + 1 == prompt:
            rx, rv = X.copy(), V.copy()
            for step in range(len(rolled)):
                for p in range(N):
                    j = p // P
                    _step_on(p, t + step, counts[j], rx, rv, room)
                    _add_picture(rx[p, (t + step + 1) % slots], counts[j], share[j] / P, room, rolled[step])
