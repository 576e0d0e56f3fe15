"""What the machine offers and how it is set up for training: device, threads, memory allocator."""

from __future__ import annotations

import ctypes
import sys

# malloc.h of glibc
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4


def tune_allocator() -> bool:
    """Make glibc's malloc keep the large buffers of a training step instead of giving them back to the system.

    By default each buffer of more than 32 MB, and often smaller ones, is mapped anew at every step and faulted in page
    by page. True if the C library is glibc and took the settings.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # another C library
        return False
    kept = [(_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, 2**31 - 1), (_M_TOP_PAD, 64 * 2**20)]
    return all(mallopt(option, value) == 1 for option, value in kept)
