"""What kernels over dense signals share: results like their inputs, tiles, precision."""

import torch
import triton
from torch import Tensor

#: Elements of a tile.
BLOCK = 1024


def like(x: Tensor) -> tuple[Tensor, Tensor]:
    """x and an empty tensor of the same strides: those of a dense, permuted tensor are kept."""
    out = torch.empty_like(x)
    if out.stride() != x.stride():
        x = x.contiguous()
        out = torch.empty_like(x)
    return x, out


def tiles(x: Tensor) -> tuple[tuple[int, int, int], dict[str, int]]:
    """The grid over (members, rows, columns), and the sizes of a tile."""
    members, rows, columns = x.shape
    wide = min(triton.next_power_of_2(columns), 256)
    tall = BLOCK // wide
    grid = (triton.cdiv(rows, tall), members, triton.cdiv(columns, wide))
    return grid, {"ROWS": tall, "COLUMNS": wide}


def dot_precision(x: Tensor) -> str:
    """How Triton multiplies: in TF32 where torch does, else as exactly as float32."""
    if not x.is_cuda:
        return "ieee"  # the interpreter has no other
    return "bf16x6" if torch.get_float32_matmul_precision() == "highest" else "tf32"
