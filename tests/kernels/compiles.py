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
_DOUBLE = ("nodes", "transform", "beta", "slopes", "matrix", "numbers", "grad")
_EDGES = {"EDGES": 64, "CHANNELS": 8}
_BLOCKS = {"FIELDS": 4, "BLOCK": 1024}
#: Kernel, constants, pointers to float64; other arguments are as NUMBERS says, and the rest are
#: pointers to float32.
CASES = [
    *(
        (
            _basis._series,
            {"RAW": raw, "FACTORS": raw, "PAPER": raw, "WIDE": 16, "CHANNELS": 8},
            _DOUBLE,
        )
        for raw in (True, False)
    ),
    *(
        (_basis._gradient, {"FACTORS": factors, "WIDE": 16, "CHANNELS": 128}, _DOUBLE)
        for factors in (True, False)
    ),
    *(
        (_basis._summary, {"FACTORS": factors, "WIDE": 16, "CHANNELS": 128}, _DOUBLE)
        for factors in (True, False)
    ),
    *((_entropy._losses, {"HITS": hits, "ROWS": 1024, "CLASSES": 8}, ()) for hits in (True, False)),
    (_entropy._gradient, {"ROWS": 128, "CLASSES": 8}, ()),
    *(
        (
            _features._product,
            {"DROP": drop, "MOVED": drop, "MEMBERS": 8, "EDGES": 4, "COLUMNS": 64},
            (),
        )
        for drop in (True, False)
    ),
    (_rows._pass, {"ACTIVATE": True, "DROP": True, "ROWS": 16, "COLUMNS": 64}, ()),
    (_rows._gradient, {"DROP": True, "ROWS": 16, "COLUMNS": 64}, ()),
    *(
        (
            kernel,
            {
                "COLUMNS": 64,
                "PRECISION": precision,
                **{k: v for k, v in tile.items() if k.isupper()},
            },
            (),
        )
        for precision, tiles in _dense._TILES.items()
        for kernel, tile in zip((_dense._forward, _dense._backward), tiles, strict=True)
    ),
    *(
        (
            kernel,
            {"ROWS": 64, "CHANNELS": 64, "COLUMNS": 16, "PRECISION": precision},
            (),
        )
        for kernel in (_narrow._product, _narrow._gradient)
        for precision in ("bf16x6", "tf32")
    ),
    *(
        (
            _chebyshev._step,
            {"FIRST": on, "LAST": on, "GRADIENT": on, "ROWS": 2, "PIECES": 8, **_EDGES},
            ("beta",),
        )
        for on in (True, False)
    ),
    (_rows._normalize, {"CENTER": True, "ROWS": 16, "COLUMNS": 128}, ()),
    (_rows._normalize_gradient, {"CENTER": True, "ROWS": 16, "COLUMNS": 128}, ()),
    (_rows._add, {"RESIDUAL": True, "ROWS": 8, "COLUMNS": 128}, ()),
    (_rows._sums, {"ROWS": 8, "COLUMNS": 128}, ()),
    (
        _step._adam,
        {"b1": 0.9, "b2": 0.999, "epsilon": 1e-8, "log_b1": -0.1, "log_b2": -1e-3, **_BLOCKS},
        (),
    ),
    (_step._keep, _BLOCKS, ()),
    *((_step._stand, {"FALLING": by, "BY_LOSS": by, "BLOCK": 128}, ()) for by in (True, False)),
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
