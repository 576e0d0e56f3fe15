"""Pictures of balls as words of bits, for the exact filter: drawing, comparing, and places drawn from what is seen."""

# S rows of a picture: words of S bits, pixel j is bit j; n balls

from __future__ import annotations

import math
from typing import Any

import numba as nb
import numpy as np
from numba.extending import intrinsic

from s2rm_data.core.compiled import compiled
from s2rm_data.generators.bballs.making.ball_start import uniforms

_PURPOSE = np.uint64(64)  # of the draws, apart from those of ball_start.py
_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)
ONE = np.uint64(1)
_ANYWHERE = 0.2  # share of births that ask no pixel


@intrinsic
def _bit_count_at_once(typing: Any, word: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return nb.uint64(nb.uint64), build


bit_count: Any = (lambda word: bin(int(word)).count("1")) if nb.config.DISABLE_JIT else _bit_count_at_once  # type: ignore[attr-defined]


@compiled(error_model="numpy")
def draw(x, y, radius, rows):  # type: ignore[no-untyped-def]
    """Turn on the pixels of one ball in rows (S,)."""
    last = len(rows) - 1
    for i in range(max(math.ceil(y - radius - 0.5), 0), min(math.floor(y + radius - 0.5), last) + 1):
        dy = i + 0.5 - y
        reach = math.sqrt(max(radius * radius - dy * dy, 0.0))
        left, right = max(math.ceil(x - reach - 0.5), 0), min(math.floor(x + reach - 0.5), last)
        if left <= right:
            rows[i] |= (_FULL >> np.uint64(63 - right)) & (_FULL << np.uint64(left))


@compiled(error_model="numpy")
def wrong(x, n, radius, still, on, seen, rows):  # type: ignore[no-untyped-def]
    """How many seen pixels are drawn wrong with balls at x (n, 2)."""
    for i in range(len(rows)):
        rows[i] = still[i]
    for k in range(n):
        draw(x[k, 0], x[k, 1], radius, rows)
    count = 0.0
    for i in range(len(rows)):
        count += bit_count((rows[i] ^ on[i]) & seen[i])
    return count


@compiled(error_model="numpy")
def unexplained(i, x, v, n, ahead, radius, still, on, seen, rows):  # type: ignore[no-untyped-def]
    """To rows: what is seen on, but for what the balls other than i cover after `ahead` frames; how many pixels."""
    for j in range(len(rows)):
        rows[j] = still[j]
    for k in range(n):
        if k != i:
            draw(x[k, 0] + ahead * v[k, 0], x[k, 1] + ahead * v[k, 1], radius, rows)
    count = 0
    for j in range(len(rows)):
        rows[j] = on[j] & seen[j] & ~rows[j]
        count += int(bit_count(rows[j]))
    return count


@compiled(error_model="numpy")
def seen_share(seen):  # type: ignore[no-untyped-def]
    count = 0.0
    for word in seen:
        count += bit_count(word)
    return count / (len(seen) * len(seen))


@compiled(error_model="numpy")
def draws(random):  # type: ignore[no-untyped-def]
    """Four numbers in [0, 1); random: (key, counter)."""
    random[1] += ONE
    return uniforms(random[0], _PURPOSE, random[1])


@compiled(error_model="numpy")
def normals(random):  # type: ignore[no-untyped-def]
    a, b, c, d = draws(random)
    p, q = math.sqrt(-2.0 * math.log(1.0 - a)), math.sqrt(-2.0 * math.log(1.0 - c))
    b, d = 2.0 * math.pi * b, 2.0 * math.pi * d
    return p * math.cos(b), p * math.sin(b), q * math.cos(d), q * math.sin(d)


@compiled(error_model="numpy")
def pick(rows, count, radius, size, random):  # type: ignore[no-untyped-def]
    """A place in the disc around one of `count` pixels, or anywhere."""
    a, b, c, d = draws(random)
    if count == 0 or d < _ANYWHERE:
        return radius + a * (size - 2.0 * radius), radius + b * (size - 2.0 * radius)
    left = int(a * count)
    i = 0
    while left >= int(bit_count(rows[i])):
        left -= int(bit_count(rows[i]))
        i += 1
    word = rows[i]
    for _ in range(left):
        word &= word - ONE
    j = int(bit_count((word & (~word + ONE)) - ONE))
    reach, angle = radius * math.sqrt(b), 2.0 * math.pi * c
    return j + 0.5 + reach * math.cos(angle), i + 0.5 + reach * math.sin(angle)


@compiled(error_model="numpy")
def density(x, y, rows, count, radius, size, disc):  # type: ignore[no-untyped-def]
    """Log of the density of `pick` at a place."""
    side = size - 2.0 * radius
    inside = radius <= x <= size - radius and radius <= y <= size - radius
    anywhere = 1.0 / (side * side) if inside else 0.0
    if count == 0:
        return math.log(anywhere) if inside else -np.inf
    near = 0
    for i in range(len(disc)):
        disc[i] = np.uint64(0)
    draw(x, y, radius, disc)
    for i in range(len(disc)):
        near += int(bit_count(disc[i] & rows[i]))
    value = _ANYWHERE * anywhere + (1.0 - _ANYWHERE) * near / (count * math.pi * radius * radius)
    return math.log(value) if value > 0.0 else -np.inf
