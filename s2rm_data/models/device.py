"""Which device a model runs on, and full precision for what a state or a border depends on: no autocast, no TF32."""

import contextlib

import torch
from torch import Tensor

from s2rm_data.core.errors import UsageError


def choose_device(asked: str | None, local_rank: int = 0) -> torch.device:
    """`asked`, or the GPU if there is one, or the CPU."""
    if asked is None:
        return torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
    try:
        device = torch.device(asked)
    except RuntimeError:
        raise UsageError(f"no device {asked!r}; the choices are cpu, cuda and cuda:0, cuda:1, ...") from None
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"device {asked!r} is not supported; the choices are cpu and cuda")
    if device.type == "cpu":
        return device
    if not torch.cuda.is_available():
        built = "this torch is built without CUDA" if torch.version.cuda is None else "no GPU is visible"
        raise UsageError(f"--device {asked} was asked for, but {built}; leave --device out, or take --device cpu")
    index = local_rank if device.index is None else device.index
    if index >= torch.cuda.device_count():
        raise UsageError(f"--device cuda:{index}: this machine has {torch.cuda.device_count()} GPU(s), from cuda:0")
    return torch.device("cuda", index)


FULL = "highest"
_full = {FULL}  # settings of `float32_matmul_precision` that keep to float32 on this machine

_ONEDNN = "medium"  # asks oneDNN for products, which may then round their factors to bfloat16 where that is faster
_SHAPES = (((3200, 128), (128, 128)), ((128, 3200), (3200, 128)), ((10, 40, 64), (10, 64, 192)), ((40, 50), (50, 10)))
_ERROR = 1e-5  # of a product of K normal numbers each, by sqrt(K); factors rounded to bfloat16 give 2e-3


def use_onednn() -> bool:
    """Let oneDNN multiply on the CPU where that is float32; called once, before training.
    torch has no setting that says so. Where it is asked to be fast, oneDNN rounds to bfloat16 on processors with AMX;
    on those with AVX512-BF16 alone it computes in float32, more than twice as fast as MKL does on AMD's. So it is asked
    only on these, and measured."""
    able = torch.backends.mkldnn.is_available() and torch.cpu._is_avx512_bf16_supported()
    if not able or torch.cpu._is_amx_tile_supported() or torch.cuda.is_available():
        return False
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(_ONEDNN)
    if all(_product_error(*shapes) < _ERROR for shapes in _SHAPES):
        _full.add(_ONEDNN)
        return True
    torch.set_float32_matmul_precision(before)
    return False


def _product_error(of_x: tuple[int, ...], of_y: tuple[int, ...]) -> float:
    random = torch.Generator().manual_seed(0)
    x, y = (torch.randn(shape, generator=random, device="cpu") for shape in (of_x, of_y))
    return float((x @ y - x.double() @ y.double()).abs().max()) / of_y[-2] ** 0.5


def full_precision(like: Tensor) -> torch.autocast:
    """Autocast off; what autocast is for, the encoder's and decoder's convolutions, lies outside."""
    return torch.autocast(like.device.type, enabled=False)


def full_products() -> contextlib.AbstractContextManager[None]:
    """TF32 off, for the whole process, while it is entered.
    Compiled code cannot set this; whoever calls it does (`WorldModel.unroll` for a compiled step). Backward passes run
    later: training sets full precision for all of the process."""
    if torch.compiler.is_compiling() or torch.get_float32_matmul_precision() in _full:
        return contextlib.nullcontext()
    return _FullProducts()


class _FullProducts(contextlib.AbstractContextManager[None]):
    def __enter__(self) -> None:
        self._before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision(FULL)

    def __exit__(self, *error: object) -> None:
        torch.set_float32_matmul_precision(self._before)
