"""Files with a structure that can lie: zip, .npy and safetensors; and pickles that would run code.

Their headers are written by hand here, so that any field can say what no library would write.
"""

import ast
import io
import json
import pickle
import struct
import warnings
import zipfile

import numpy as np

from tests.data.examples import Trap
from tests.fuzz.draw import finish_json, mutate_bytes, mutate_tree

#: What code that runs leaves in the folder of its input.
CANARY = "CANARY"
#: What a field in the header of an .npy may say instead.
HEADERS = {
    "descr": (
        *("'<f8'", "'>f8'", "'>i4'", "'<f16'", "'<c16'", "'|b1'", "'|O'", "'<U9'", "'|S0'"),
        *(
            "'<f2'",
            "'<u8'",
            "'|V8'",
            "[('a', '<i4'), ('b', '<f8')]",
            "'x'",
            "5",
            "None",
            "'<i1000'",
        ),
    ),
    "shape": (
        *("()", "(0,)", "(1,)", "(2,)", "(5, 0)", "(0, 5)", "(-1,)", "(3,", "(True,)", "(2.0,)"),
        *(
            "(1000000000,)",
            "(1000000, 1000000)",
            "(9223372036854775807,)",
            "(4611686018427387904, 4)",
        ),
        *("(1,) * 70", "'x'", "None", "((1, 2),)"),
    ),
    "fortran_order": ("True", "1", "None"),
}


def canary(folder, protocol=2):
    """A pickle that runs code."""
    return pickle.dumps(Trap(folder / CANARY), protocol=protocol)


def npy(array, folder=None):
    """An array as .npy; one of objects is a pickle that runs code in the folder."""
    stream = io.BytesIO()
    if array.dtype.hasobject:
        header = {"descr": "|O", "fortran_order": False, "shape": array.shape}
        np.lib.format.write_array_header_1_0(stream, header)
        return stream.getvalue() + canary(folder)
    np.lib.format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


def mutate_npy(draw, content):
    """Rewrite the header of an .npy, or its bytes."""
    if draw.chance(0.3):
        return mutate_bytes(draw, content)
    (size,) = struct.unpack("<H", content[8:10])
    fields = ast.literal_eval(content[10 : 10 + size].decode("latin-1"))
    texts = {key: repr(value) for key, value in fields.items()}
    key = draw.choice(tuple(HEADERS))
    texts[key] = draw.choice(HEADERS[key])
    text = "{" + ", ".join(f"{key!r}: {value}" for key, value in texts.items()) + "}"
    if draw.chance(0.15):
        text = draw.choice(
            ("", "{}", "[" * 500, "{'descr': __import__('os')}", text + "x", "1" * 99)
        )
    version = draw.choice((b"\1\0",) * 9 + (b"\0\0", b"\2\0", b"\377\0"))
    text = text.encode("latin-1").ljust(118) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + content[10 + size :]


def write_zip(members, method=zipfile.ZIP_DEFLATED):
    """A zip archive of (name, content) pairs; names may repeat."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", method) as archive:
        warnings.simplefilter("ignore", UserWarning)  # of names that repeat
        for name, content in members:
            archive.writestr(name, content)
    return stream.getvalue()


#: Fields of a member's header in the directory: offset, width, and values that are telling. Its
#: header before the data repeats them two bytes earlier.
_FIELDS = (
    (8, 2, (1, 9, 0x41, 0x800)),  # flags
    (10, 2, (0, 1, 8, 9, 12, 14, 93, 99)),  # method
    *((offset, 4, ()) for offset in (16, 20, 24)),  # checksum and sizes
    *((offset, 2, ()) for offset in (28, 30)),  # lengths of the name and of what is extra
)


def mutate_zip(draw, content):
    """Rewrite a field of a member's headers, in one place or both."""
    content = bytearray(content)
    for _ in range(draw.times()):
        offset, width, values = draw.choice(_FIELDS)
        value = draw.choice(values or (0, 1, 7, 100, 65535, 2**31, 2**32 - 1)) % 2 ** (8 * width)
        for mark, start in ((b"PK\x01\x02", offset), (b"PK\x03\x04", offset - 2)):
            if draw.chance(0.8):
                at = content.find(mark) + start
                content[at : at + width] = value.to_bytes(width, "little")
    return bytes(content)


def mutate_safetensors(draw, content):
    """Change the header, JSON inside its metadata, or tensors."""
    (size,) = struct.unpack("<Q", content[:8])
    header, body = json.loads(content[8 : 8 + size]), content[8 + size :]
    metadata = header.get("__metadata__", {})
    held = [key for key, text in metadata.items() if text.startswith(("{", "["))]
    kind = draw.randrange(10)
    if kind == 0:
        return mutate_bytes(draw, content)
    if kind == 1:
        body = mutate_bytes(draw, body).ljust(len(body), b"\0")[: len(body)]
    elif kind <= 3:
        names = [name for name in header if name != "__metadata__"]
        name, other = draw.choice(names), draw.choice(names)
        header[name], header[other] = header[other], header[name]
    elif kind <= 7 and held:
        key = draw.choice(held)
        inner = json.loads(metadata[key])
        mutate_tree(draw, inner)
        metadata[key] = finish_json(inner)
    else:
        mutate_tree(draw, header)
    text = finish_json(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def mutate_json(draw, content):
    """Change a JSON file, mostly as JSON."""
    if draw.chance(0.15):
        return mutate_bytes(draw, content)
    tree = json.loads(content)
    mutate_tree(draw, tree)
    return finish_json(tree).encode()
