"""Compile kernels for a GPU on a machine without one: ``python -m tests.kernels.compiles``.

The interpreter checks what a kernel computes, not that it compiles. Triton brings its own
assembler, so that much can be seen anywhere. Run without ``TRITON_INTERPRET``.
"""

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from longnn.kernels import (
    _basis,
    _chebyshev,
    _dense,
    _entropy,
    _features,
    _narrow,
    _rows,
    _step,
)

#: An H200.
TARGET = GPUTarget("cuda", 90, 32)
_TILE = {"ROWS": 2, "PIECES": 8, "EDGES": 64, "CHANNELS": 8}
_ADAM = {"b1": 0.9, "b2": 0.999, "epsilon": 1e-8, "log_b1": -0.1, "log_b2": -1e-3}
_DOUBLE = ("nodes", "transform", "beta", "slopes", "matrix", "numbers", "grad")


def case(kernel, *, on=(), double=(), **constants):
    """A kernel, its constants, of which these are true, and its pointers to float64."""
    return kernel, {**constants, **dict.fromkeys(on, True)}, double


def both(kernel, flags, **rest):
    """A kernel with its flags up, and with them down."""
    return case(kernel, on=flags, **rest), case(kernel, **dict.fromkeys(flags, False), **rest)


#: Other arguments are as NUMBERS says, and the rest are pointers to float32.
CASES = [
    *both(_basis._series, ("RAW", "FACTORS", "PAPER"), double=_DOUBLE, WIDE=16, CHANNELS=8),
    *both(_basis._gradient, ("FACTORS",), double=_DOUBLE, WIDE=16, CHANNELS=128),
    *both(_basis._summary, ("FACTORS",), double=_DOUBLE, WIDE=16, CHANNELS=128),
    *both(_entropy._losses, ("HITS",), ROWS=1024, CLASSES=8),
    case(_entropy._gradient, ROWS=128, CLASSES=8),
    *both(_features._product, ("DROP", "MOVED"), MEMBERS=8, EDGES=4, COLUMNS=64),
    case(_rows._pass, on=("ACTIVATE", "DROP"), ROWS=16, COLUMNS=64),
    case(_rows._gradient, on=("DROP",), ROWS=16, COLUMNS=64),
    *(
        case(kernel, COLUMNS=64, PRECISION=name, **{k: v for k, v in tile.items() if k.isupper()})
        for name, tiles in _dense._TILES.items()
        for kernel, tile in zip((_dense._forward, _dense._backward), tiles, strict=True)
    ),
    *(
        case(kernel, ROWS=64, CHANNELS=64, COLUMNS=16, PRECISION=precision)
        for kernel in (_narrow._product, _narrow._gradient)
        for precision in ("bf16x6", "tf32")
    ),
    *both(
        _chebyshev._step,
        ("FIRST", "LAST", "GRADIENT"),
        double=("beta",),
        **_TILE,
    ),
    case(_rows._normalize, on=("CENTER",), ROWS=16, COLUMNS=128),
    case(_rows._normalize_gradient, on=("CENTER",), ROWS=16, COLUMNS=128),
    case(_rows._add, on=("RESIDUAL",), ROWS=8, COLUMNS=128),
    case(_rows._sums, ROWS=8, COLUMNS=128),
    case(_step._adam, **_ADAM, FIELDS=4, BLOCK=1024),
    case(_step._keep, FIELDS=4, BLOCK=1024),
    *both(_step._stand, ("FALLING", "BY_LOSS"), BLOCK=128),
]
SIZES = ("size", "channels", "pairs", "rows", "columns", "piece", "members", "patience", "step")
STRIDES = tuple(f"{of}{axis}" for of in "srgxw" for axis in "mrc")
NUMBERS = {
    "epsilon": "fp32",
    **dict.fromkeys((*SIZES, *STRIDES), "i32"),
    **dict.fromkeys(("count", "classes", "sn", "site", "first", "nodes", "features"), "i32"),
    **dict.fromkeys(("part", "om", "orow", "oc", "dm", "df", "dc", "on", "gn", "op", "of"), "i32"),
    **dict.fromkeys(("crow", "col", "pointer"), "*i32"),
    **dict.fromkeys(("stream", "blocks", "epoch", "best_epoch", "stop_epoch"), "*i64"),
    **dict.fromkeys(("picked", "labels", "position"), "*i64"),
    **dict.fromkeys(("alive", "diverged", "better"), "*i1"),
}


def compile_all() -> list[str]:
    """The names of the kernels, each compiled to machine code."""
    names = []
    for kernel, constants, doubles in CASES:
        signature = {name: NUMBERS.get(name, "*fp32") for name in kernel.arg_names}
        signature |= {name: "*fp64" for name in doubles if name in signature}
        signature |= dict.fromkeys(constants, "constexpr")
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
        assert triton.compile(source, target=TARGET).asm["cubin"]
        names.append(kernel.fn.__name__)
    return names


if __name__ == "__main__":
    print(*compile_all())
