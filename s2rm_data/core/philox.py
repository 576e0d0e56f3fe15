"""Philox-4x64-10 (Salmon et al., 2011) for compiled code; bit for bit NumPy's `Philox` with the same key and counter.
Draw n of a stream is a function of (key, n), so that no state has to be carried. Integer arithmetic only: the same
everywhere."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from s2rm_data.core.compiled import compiled

_M0 = np.uint64(0xD2E7470EE14C6C93)
_M1 = np.uint64(0xCA5A826395121157)
_W0 = np.uint64(0x9E3779B97F4A7C15)
_W1 = np.uint64(0xBB67AE8584CAA73B)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_11 = np.uint64(11)


def _mul_high_by_halves(a: Any, b: Any) -> Any:
    """Upper 64 bits of the 128-bit product, for code that is not compiled."""
    a0, a1, b0, b1 = a & _LOW, a >> _32, b & _LOW, b >> _32
    middle = a1 * b0 + ((a0 * b0) >> _32)
    return a1 * b1 + (middle >> _32) + (((middle & _LOW) + a0 * b1) >> _32)


@intrinsic
def _mul_high_at_once(typing: Any, a: Any, b: Any) -> Any:
    """The same in one instruction, which makes `philox` four times as fast."""

    def build(context: Any, builder: Any, signature: Any, factors: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(factor, wide) for factor in factors))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return nb.uint64(nb.uint64, nb.uint64), build


_mul_high: Any = _mul_high_by_halves if nb.config.DISABLE_JIT else _mul_high_at_once  # type: ignore[attr-defined]


@compiled("UniTuple(uint64, 4)(uint64, uint64, uint64, uint64)")
def philox(key0, key1, counter0, counter1):  # type: ignore[no-untyped-def]
    """Four 64-bit words for the key (key0, key1) and the counter (counter0, counter1, 0, 0)."""
    x0, x1, x2, x3 = counter0, counter1, np.uint64(0), np.uint64(0)
    k0, k1 = key0, key1
    for _ in range(10):
        high0, low0 = _mul_high(_M0, x0), _M0 * x0
        high1, low1 = _mul_high(_M1, x2), _M1 * x2
        x0, x1, x2, x3 = high1 ^ x1 ^ k0, low1, high0 ^ x3 ^ k1, low0
        k0, k1 = k0 + _W0, k1 + _W1
    return x0, x1, x2, x3


@compiled("float64(uint64)", inline="always")
def to_unit(word):  # type: ignore[no-untyped-def]
    """A 64-bit word as a float64 in [0, 1) with 53 random bits, as NumPy does it."""
    return (word >> _11) * (1.0 / 9007199254740992.0)


@compiled()
def write_seeds(keys, first, count, seeds):  # type: ignore[no-untyped-def]
    """Into seeds (k * count,): `count` seeds of each of k streams from number first[k] on, for keys (k, 2) of
    `seeding.stream_key`; what `seeding.sequence_seeds` gives for them one by one."""
    for k in range(keys.shape[0]):
        for n in range(count):
            number = first[k] + n
            # NumPy's generator counts before it draws: its first four words are those of counter 1.
            words = philox(keys[k, 0], keys[k, 1], np.uint64(number // 4 + 1), np.uint64(0))
            seeds[k * count + n] = words[number % 4]
