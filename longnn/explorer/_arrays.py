"""Arrays as what a page can read at once: base64 of little-endian numbers, with type and shape."""

import base64
from typing import Any

import numpy as np

#: How the page names the types: those of JavaScript's typed arrays.
KINDS = {"f4": "<f4", "f8": "<f8", "i4": "<i4", "u1": "|u1"}


def pack(array: Any, kind: str = "f4") -> dict[str, Any]:
    """An array as plain data.

    Args:
        array: of any shape.
        kind: ``f4``, ``f8``, ``i4`` or ``u1``.

    >>> pack(np.array([1, 2]), "i4")
    {'kind': 'i4', 'shape': [2], 'data': 'AQAAAAIAAAA='}
    """
    plain = np.ascontiguousarray(np.asarray(array), dtype=KINDS[kind])
    text = base64.b64encode(plain.tobytes()).decode("ascii")
    return {"kind": kind, "shape": list(plain.shape), "data": text}


def unpack(packed: dict[str, Any]) -> np.ndarray:
    """What :func:`pack` was given.

    >>> unpack(pack(np.array([[0.5, -2.0]])))
    array([[ 0.5, -2. ]], dtype=float32)
    """
    content = base64.b64decode(packed["data"])
    return np.frombuffer(content, dtype=KINDS[packed["kind"]]).reshape(packed["shape"])
