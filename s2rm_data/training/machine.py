"""What the machine offers and how it is set up for training: device, threads, memory allocator, precision."""

import ctypes
import importlib.metadata
import platform
import sys
from typing import Any

import torch

import s2rm_data
from s2rm_data.core.machine import available_cores
from s2rm_data.models.device import FULL, use_onednn

# malloc.h of glibc
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4


def tune_allocator() -> bool:
    """Make glibc's malloc keep the large buffers of a training step instead of giving them back to the system.
    By default each buffer of more than 32 MB, and often smaller ones, is mapped anew at every step and faulted in page
    by page. True if the C library is glibc and took the settings."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # another C library
        return False
    kept = [(_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, 2**31 - 1), (_M_TOP_PAD, 64 * 2**20)]
    return all(mallopt(option, value) == 1 for option, value in kept)


def set_up(device: torch.device, threads: int) -> None:
    """Process-wide settings that measure better; called once before anything is allocated."""
    torch.set_num_threads(threads)
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.backends.cudnn.benchmark = True
        # float32 is float32: without this, products and convolutions may round their factors to ten bits (TF32).
        torch.set_float32_matmul_precision(FULL)
        torch.backends.cudnn.allow_tf32 = False
    else:
        tune_allocator()
        use_onednn()


def products() -> str:
    return "torch's own" if torch.get_float32_matmul_precision() == FULL else "oneDNN, measured to keep to float32"


def peak_memory_nbytes(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    import resource  # not on Windows, where runs are refused

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def environment(device: torch.device) -> dict[str, Any]:
    """What a reader of the run needs to judge its speed and to repeat it."""
    packages = {}
    for name in ("torch", "numpy", "numba", "safetensors", "tensorboard"):
        try:
            packages[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            packages[name] = "not installed"
    return {
        "s2rm_data": s2rm_data.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": available_cores(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "cuda": torch.version.cuda,
        "float32_products": products(),
        "packages": packages,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123
            return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        return platform.processor()
