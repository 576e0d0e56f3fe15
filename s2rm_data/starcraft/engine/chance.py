"""Chance in a battle: one counter-based stream each, read by draw number; the same on every machine."""

from __future__ import annotations

import numpy as np

from s2rm_data.core.compiled import inner, kernel
from s2rm_data.core.philox import philox, to_unit
from s2rm_data.starcraft.engine import layout as at

DOMAIN = np.uint64(
    0x5343322D42415454
)  # "SC2-BATT": second word of the key, so that no other use of the seed repeats the stream

BEFORE_THE_BATTLE = 3  # fourth counter word of draws that set a battle up; shuffles have 0, bits 1, choices 2

# Columns of a battle's uint64 words: the seed, the number of the next draw, bits drawn but not used yet,
# and whether weapon periods vary.
SEED, NEXT_DRAW, SPARE, SPARE_BITS, JITTERS, WORDS = range(6)

_ZERO, _ONE, _TWO, _THREE, _SIXTY_FOUR = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(64)
_16, _32, _LOW16 = np.uint64(16), np.uint64(32), np.uint64(0xFFFF)


@inner
def two_bits(words):  # type: ignore[no-untyped-def]
    """A whole number 0..3, each as likely."""
    if words[SPARE_BITS] == _ZERO:
        words[SPARE] = philox(words[SEED], DOMAIN, words[NEXT_DRAW], _ONE)[0]
        words[NEXT_DRAW] += _ONE
        words[SPARE_BITS] = _SIXTY_FOUR
    value = words[SPARE] & _THREE
    words[SPARE] >>= _TWO
    words[SPARE_BITS] -= _TWO
    return np.int64(value)


@inner
def below(words, count):  # type: ignore[no-untyped-def]
    """A whole number 0..count-1; chances differ by less than count / 2**32."""
    word = philox(words[SEED], DOMAIN, words[NEXT_DRAW], _TWO)[0]
    words[NEXT_DRAW] += _ONE
    return np.int64(((word >> _32) * np.uint64(count)) >> _32)


@inner
def jitter(words):  # type: ignore[no-untyped-def]
    """What chance adds to a weapon's period: -1, 0, 1 or 2 loops, each as likely (units.PERIOD_JITTER_LOOPS)."""
    return two_bits(words) - 1.0 if words[JITTERS] == _ONE else 0.0


@inner
def shuffle(ints, count, words):  # type: ignore[no-untyped-def]
    """Shuffle the first `count` slots of the update queue; sixteen draws of 16 bits out of one call of the generator.
    The larger of two chances differs from the smaller by at most count / 65536, evenly for both sides."""
    last = count - 1
    while last > 0:
        draw = philox(words[SEED], DOMAIN, words[NEXT_DRAW], _ZERO)
        words[NEXT_DRAW] += _ONE
        for word in draw:
            for _ in range(4):
                if last <= 0:
                    break
                other = np.int64(((word & _LOW16) * np.uint64(last + 1)) >> _16)
                word >>= _16
                ints[at.QUEUE, last], ints[at.QUEUE, other] = ints[at.QUEUE, other], ints[at.QUEUE, last]
                last -= 1


@kernel
def setup_draws(seeds, number, drawn):  # type: ignore[no-untyped-def]
    """Into (B,): numbers in [0, 1), one for each seed, of those that set a battle up."""
    for b in range(seeds.shape[0]):
        drawn[b] = to_unit(philox(seeds[b], DOMAIN, np.uint64(number), np.uint64(BEFORE_THE_BATTLE))[0])
