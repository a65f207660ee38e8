"""Files with a structure that can lie: zip, .npy and safetensors; and pickles that would run code.

Each is written by hand here, so that any field can say what no library would write.
"""

import functools
import io
import json
import os
import pickle
import struct
import warnings
import zipfile
import zlib

import numpy as np

from tests.fuzz.draw import finish_json, mutate_bytes, mutate_tree

#: What code that runs leaves in the folder of its input.
CANARY = "CANARY"
_DESCRS = (
    *("'<f8'", "'>f8'", "'>i4'", "'<f16'", "'<c16'", "'|b1'", "'|O'", "'<U9'", "'|S0'", "'<M8[s]'"),
    *("'<f2'", "'<u8'", "'|V8'", "[('a', '<i4'), ('b', '<f8')]", "'x'", "5", "None", "'<i1000'"),
)
_SHAPES = (
    *("()", "(0,)", "(1,)", "(2,)", "(5, 0)", "(0, 5)", "(-1,)", "(3,", "(True,)", "(2.0,)"),
    *("(1000000000,)", "(1000000, 1000000)", "(9223372036854775807,)", "(4611686018427387904, 4)"),
    *("(1,) * 70", "'x'", "None", "((1, 2),)"),
)


class Bomb:
    """Unpickled, it makes a folder: what a real attack would use for something worse."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return os.mkdir, (self.place,)


def canary(folder, protocol=2):
    """A pickle that runs code."""
    return pickle.dumps(Bomb(str(folder / CANARY)), protocol=protocol)


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
    kind = draw.randrange(8)
    if kind == 0:
        return mutate_bytes(draw, content)
    if kind == 1:
        return content[: draw.randrange(len(content))]
    if kind == 2:
        return content[:6] + bytes([draw.choice((0, 1, 2, 3, 4, 255)), 0]) + content[8:]
    (size,) = struct.unpack("<H", content[8:10])
    header, body = content[10 : 10 + size].decode("latin-1"), content[10 + size :]
    fields = header.strip().strip("{}")
    descr = fields.split("'descr': ")[1].split(", 'fortran")[0]
    shape = fields.split("'shape': ")[1].rstrip(", ")
    order = "False"
    if kind in (3, 4):
        shape = draw.choice(_SHAPES)
    elif kind == 5:
        descr = draw.choice(_DESCRS)
    elif kind == 6:
        order = draw.choice(("True", "1", "None"))
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"
    if kind == 7:
        text = draw.choice(
            ("", "{}", "[" * 500, "{'descr': __import__('os')}", text + "x", "1" * 99)
        )
    text = text.encode("latin-1").ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


def write_zip(members, method=zipfile.ZIP_DEFLATED):
    """A zip archive of (name, content) pairs; names may repeat."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", method) as archive:
        warnings.simplefilter("ignore", UserWarning)  # of names that repeat
        for name, content in members:
            archive.writestr(name, content)
    return stream.getvalue()


def read_zip(content):
    """The (name, content) pairs of a zip archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


#: Fields of the headers of a member: offset and width in the local one and in the directory's.
_FIELDS = {
    "flags": ((6, 2), (8, 2)),
    "method": ((8, 2), (10, 2)),
    "crc": ((14, 4), (16, 4)),
    "compressed": ((18, 4), (20, 4)),
    "size": ((22, 4), (24, 4)),
    "name": ((26, 2), (28, 2)),
    "extra": ((28, 2), (30, 2)),
    "offset": (None, (42, 4)),
}


def mutate_zip(draw, content):
    """Rewrite a field of a member's headers, in one place or both."""
    content = bytearray(content)
    local, central = _find(content, b"PK\x03\x04"), _find(content, b"PK\x01\x02")
    for _ in range(draw.times()):
        field = draw.choice(tuple(_FIELDS))
        member = draw.randrange(min(len(local), len(central)))
        values = {"flags": (1, 9, 0x41, 0x800), "method": (0, 1, 8, 9, 12, 14, 93, 99)}
        value = draw.choice(values.get(field, (0, 1, 7, 100, 65535, 2**31, 2**32 - 1)))
        both = draw.chance(0.6)
        for place, start in zip(_FIELDS[field], (local[member], central[member]), strict=True):
            if place is not None and (both or draw.chance(0.5)):
                offset, width = place
                content[start + offset : start + offset + width] = (
                    value % 2 ** (8 * width)
                ).to_bytes(width, "little")
    return bytes(content)


def _find(content, mark):
    found, at = [], content.find(mark)
    while at >= 0:
        found.append(at)
        at = content.find(mark, at + 4)
    return found


def zip_bomb(name, head, size):
    """An archive of a few megabytes with one member that unpacks to ``head`` and ``size`` zeros."""
    first, zeros = zlib.compressobj(9, zlib.DEFLATED, -15), packed_zeros()
    start = first.compress(head) + first.flush(zlib.Z_FULL_FLUSH)
    packed = start + zeros * (size // _CHUNK) + b"\x03\x00"
    total = len(head) + size // _CHUNK * _CHUNK
    encoded = name.encode()
    shared = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, 0, len(packed), total, len(encoded), 0)
    local = b"PK\x03\x04" + shared + encoded + packed
    entry = b"PK\x01\x02" + struct.pack("<H", 20) + shared + struct.pack("<HHHII", 0, 0, 0, 0, 0)
    directory = entry + encoded
    end = struct.pack("<HHHHIIH", 0, 0, 1, 1, len(directory), len(local), 0)
    return local + directory + b"PK\x05\x06" + end


_CHUNK = 2**26


@functools.cache
def packed_zeros():
    """Zeros as a part of a deflate stream that can be repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(bytes(_CHUNK)) + packer.flush(zlib.Z_FULL_FLUSH)


def mutate_safetensors(draw, content):
    """Change tensors or metadata; JSON inside the metadata is changed as JSON."""
    (size,) = struct.unpack("<Q", content[:8])
    header, body = json.loads(content[8 : 8 + size]), content[8 + size :]
    kind = draw.randrange(10)
    if kind == 0:
        return mutate_bytes(draw, content)
    metadata = header.get("__metadata__", {})
    held = [key for key, text in metadata.items() if text.startswith(("{", "["))]
    if kind <= 5 and held:
        key = draw.choice(held)
        inner = json.loads(metadata[key])
        mutate_tree(draw, inner)
        metadata[key] = finish_json(json.dumps(inner))
    elif kind == 6 and metadata:
        value = draw.choice(("", "x", "-1", "9" * 30, "null", "[]", "{}", "nan"))
        metadata[draw.choice(list(metadata))] = value
    elif kind == 7:
        body = mutate_bytes(draw, body).ljust(len(body), b"\0")[: len(body)]
    elif kind == 8:
        names = [name for name in header if name != "__metadata__"]
        name, other = draw.choice(names), draw.choice(names)
        change = draw.randrange(5)
        if change == 0:
            header["unknown/0"] = header.pop(name)
        elif change == 1:
            header[name], header[other] = header[other], header[name]
        elif change == 2:
            header[name]["shape"] = [*header[name]["shape"], 1]
        elif change == 3:
            header[name]["shape"] = [int(np.prod(header[name]["shape"], dtype=np.int64))]
        else:
            header[name]["dtype"] = {"F32": "I32", "I64": "F64"}.get(header[name]["dtype"], "U8")
    else:
        mutate_tree(draw, header)
    text = finish_json(json.dumps(header)).encode()
    return struct.pack("<Q", len(text)) + text + body


def mutate_json(draw, content):
    """Change a JSON file, mostly as JSON."""
    if draw.chance(0.15):
        return mutate_bytes(draw, content)
    tree = json.loads(content)
    mutate_tree(draw, tree)
    return finish_json(json.dumps(tree)).encode()
