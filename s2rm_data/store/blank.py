"""Zstd frames of data that end in zeros, without reading the zeros: byte for byte what the compressor would write.

An episode that ends early leaves the rest of its images blank. Zstd writes blank data as blocks that repeat one byte
(RFC 8878, 3.1.1.2), four bytes for each 128 KiB, but reads all of it to find that out. What it writes for the data
before does not depend on how much follows, so that the blocks of a longer blank end can be put behind them.

That holds for the versions of zstd known today, and is tried out once per process and level; where it does not hold,
data are compressed whole.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache

import zstandard

_BLOCK = 128 << 10  # the most that a block holds
_WINDOW = 512 << 10  # of low levels; a frame of more bytes has the header that is taken for granted here
_AHEAD = 2 * _BLOCK + 64  # how much of the blank end zstd gets to see: the rest of a block, one of zeros, and a bit
_HEADER = struct.Struct("<4sBBI")  # magic, descriptor, window, content size
_DESCRIPTOR = 0x80  # four bytes of content size, a window, neither checksum nor dictionary
_REPEATED = 1  # type of a block that repeats one byte
_SMALLEST = 7  # what is shorter is not compressed at all


def compress_blank_tail(compress: Callable[..., bytes], level: int, data: memoryview, used_nbytes: int) -> bytes:
    """`compress(data)`, where all but the first `used_nbytes` bytes of `data` are zero."""
    spliced = _spliced(compress, data, used_nbytes) if _holds(level) else None
    return compress(data) if spliced is None else spliced


def _spliced(compress: Callable[..., bytes], data: memoryview, used_nbytes: int) -> bytes | None:
    """None if the blank end is too short, or something is not as expected."""
    given = max(used_nbytes, _WINDOW) + _AHEAD
    if given > len(data):
        return None
    start = compress(data[:given])
    magic, descriptor, window, _ = _HEADER.unpack_from(start)
    end, zeros = _blank_end(start) if descriptor == _DESCRIPTOR else (0, 0)
    whole, rest = divmod(zeros + len(data) - given, _BLOCK)
    if zeros < _BLOCK or 0 < rest < _SMALLEST:  # only a whole block of zeros shows how the next one is written
        return None
    sizes = [_BLOCK] * whole + [rest] * (rest > 0)
    blocks = [_block(size, last=number == len(sizes) - 1) for number, size in enumerate(sizes)]
    head = _HEADER.pack(magic, descriptor, window, len(data))
    return b"".join((head, start[_HEADER.size : end], *blocks))


def _block(size: int, *, last: bool) -> bytes:
    """A block of zeros."""
    return struct.pack("<I", size << 3 | _REPEATED << 1 | last)


def _blank_end(frame: bytes) -> tuple[int, int]:
    """Where the blocks of zeros begin that end a frame, and how many zeros they stand for."""
    at, begin, zeros, last = _HEADER.size, 0, 0, False
    while not last:
        head = int.from_bytes(frame[at : at + 3], "little")
        last, kind, size = bool(head & 1), head >> 1 & 3, head >> 3
        if kind == _REPEATED and frame[at + 3] == 0:
            begin, zeros = (begin if zeros else at), zeros + size
        else:
            zeros = 0
        at += 3 + (1 if kind == _REPEATED else size)
    return begin, zeros


@cache
def _holds(level: int) -> bool:
    """Whether this version of zstd behaves as described, tried on sparse data with blank ends of several lengths."""
    compress = zstandard.ZstdCompressor(level=level).compress
    data = bytearray(14 * _BLOCK + 1000)
    used = 7 * _BLOCK + 12_345
    for at in range(0, used, 97):
        data[at] = at * at % 251
    views = [memoryview(data)[: len(data) - cut] for cut in (0, 1000, _BLOCK + 500)]
    return all(_spliced(compress, view, end) == compress(view) for view in views for end in (used, 8 * _BLOCK))
