"""Chunks and shards as bytes, after the Zarr v3 specification, `sharding_indexed` with the index at the end.

    chunk  = zstd(little-endian C-order values) | crc32c of the compressed bytes (4 bytes)
    shard  = chunk 0 | chunk 1 | ... | index | crc32c of the index (4 bytes)
    index  = for each chunk (offset, size) as two uint64, both 2^64-1 for a chunk that is absent

Assembled here because that is eight times as fast as zarr-python's pipeline (docs/decisions/0002-own-shard-codec.md).

An episode that ends early leaves the rest of its images blank. Zstd writes blank data as blocks that repeat one byte
(RFC 8878, 3.1.1.2), four bytes for each 128 KiB, but reads all of it to find that out. What it writes for the data
before does not depend on how much follows, so that the blocks of a longer blank end can be put behind them, byte for
byte what the compressor would write. That holds for the versions of zstd known today, and is tried out once per process
and level; where it does not hold, data are compressed whole."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import google_crc32c
import numpy as np
import zstandard
from numpy.typing import NDArray

from s2rm_data.core.errors import DamagedStoreError

_BLOCK = 128 << 10  # the most that a block holds
_WINDOW = 512 << 10  # of low levels; a frame of more bytes has the header that is taken for granted here
_AHEAD = 2 * _BLOCK + 64  # how much of the blank end zstd gets to see: the rest of a block, one of zeros, and a bit
_HEADER = struct.Struct("<4sBBI")  # magic, descriptor, window, content size
_DESCRIPTOR = 0x80  # four bytes of content size, a window, neither checksum nor dictionary
_REPEATED = 1  # type of a block that repeats one byte


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
    # Only a whole block of zeros shows how the next one is written; less than 7 bytes are not compressed at all.
    if zeros < _BLOCK or 0 < rest < 7:
        return None
    sizes = [_BLOCK] * whole + [rest] * (rest > 0)
    lasts = [number == len(sizes) - 1 for number in range(len(sizes))]
    blocks = [struct.pack("<I", size << 3 | _REPEATED << 1 | last) for size, last in zip(sizes, lasts, strict=True)]
    head = _HEADER.pack(magic, descriptor, window, len(data))
    return b"".join((head, start[_HEADER.size : end], *blocks))


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


ABSENT = np.uint64(2**64 - 1)


class _Contexts(threading.local):
    """Of zstd, which are not thread-safe: every thread has its own."""

    def __init__(self) -> None:
        self.compressor = cache(lambda level: zstandard.ZstdCompressor(level=level))
        self.decompressor = zstandard.ZstdDecompressor()


_thread = _Contexts()


def _crc(data: bytes) -> bytes:
    return struct.pack("<I", google_crc32c.value(data))


def encode_chunk(values: NDArray[Any], level: int, used_nbytes: int | None = None) -> bytes:
    """One chunk's bytes; `values` has the chunk's full shape. Saying that only the first `used_nbytes` bytes may be
    other than zero saves time and changes nothing else."""
    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    data = little.data.cast("B") if little.size else memoryview(b"")
    compress = _thread.compressor(level).compress
    compressed = compress(data) if used_nbytes is None else compress_blank_tail(compress, level, data, used_nbytes)
    return compressed + _crc(compressed)


def check_chunk(data: bytes, nbytes: int, where: str) -> None:
    """Refuse a chunk whose checksum is wrong, or whose frame says that it holds other than `nbytes` bytes: what a frame
    declares is what a decompressor allocates, whatever limit it is given."""
    if len(data) < 4 or _crc(data[:-4]) != data[-4:]:
        raise DamagedStoreError(f"{where}: checksum does not match, the stored bytes have changed")
    try:
        declared = zstandard.get_frame_parameters(data[:-4]).content_size
    except zstandard.ZstdError as error:
        raise DamagedStoreError(f"{where}: cannot be decompressed ({error})") from None
    if declared != nbytes:
        amount = "an unknown number of" if declared == zstandard.CONTENTSIZE_UNKNOWN else f"{declared:,}"
        raise DamagedStoreError(f"{where}: says that it holds {amount} bytes where {nbytes:,} belong")


def decode_chunk(data: bytes, nbytes: int, where: str) -> bytes:
    """The chunk's raw values; `nbytes` is how many there must be, `where` names the chunk in an error."""
    check_chunk(data, nbytes, where)
    try:
        raw = _thread.decompressor.decompress(data[:-4], max_output_size=nbytes, allow_extra_data=False)
    except (zstandard.ZstdError, MemoryError) as error:
        raise DamagedStoreError(f"{where}: cannot be decompressed ({error or 'out of memory'})") from None
    if len(raw) != nbytes:
        raise DamagedStoreError(f"{where}: holds {len(raw)} bytes where {nbytes} belong")
    return raw


def assemble_shard(chunks: list[bytes], slots: int) -> list[bytes]:
    """A shard of `slots` chunks, of which the first `len(chunks)` are there; in pieces, which saves a copy."""
    index = np.full((slots, 2), ABSENT, dtype="<u8")
    sizes = np.array([len(chunk) for chunk in chunks], dtype="<u8")
    index[: len(chunks), 1] = sizes
    index[: len(chunks), 0] = np.cumsum(sizes) - sizes
    return [*chunks, table := index.tobytes(), _crc(table)]


def index_nbytes(slots: int) -> int:
    return 16 * slots + 4


def parse_index(data: bytes, where: str, *, chunks: int, nbytes: int) -> NDArray[np.uint64]:
    """(slots, 2) offsets and sizes from the last `index_nbytes(slots)` bytes of a shard. The first `chunks` slots must
    be filled, without gaps, by the `nbytes` bytes before the index, and no others."""
    if _crc(data[:-4]) != data[-4:]:
        raise DamagedStoreError(f"{where}: checksum of the chunk index does not match, the stored bytes have changed")
    index = np.frombuffer(data[:-4], dtype="<u8").reshape(-1, 2)
    absent = (index == ABSENT).all(axis=1)
    if absent[:chunks].any():
        raise DamagedStoreError(f"{where}: chunk {int(absent.argmax())} is not there")
    if not absent[chunks:].all():
        raise DamagedStoreError(f"{where}: has more than the {chunks} chunks that belong there")
    ends = np.cumsum(np.minimum(index[:chunks, 1], nbytes + 1), dtype=np.float64)  # floats cannot wrap around
    starts = np.concatenate([[0.0], ends[:-1]])
    if ends[-1] != nbytes or (index[:chunks, 0] != starts).any():
        raise DamagedStoreError(f"{where}: the chunk index does not fit the {nbytes:,} bytes before it")
    return index
