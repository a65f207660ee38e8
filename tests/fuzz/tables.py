"""Tables as files: text in many forms, Parquet, long tables of features."""

import bz2
import functools
import gzip
import io
import lzma

import pyarrow as pa
import pyarrow.parquet as pq

from longnn.data import load
from tests.fuzz.cases import Case, fuzzed, learn
from tests.fuzz.draw import CELLS, mutate_bytes, mutate_rows

PACK = {
    "": lambda content: content,
    ".gz": lambda content: gzip.compress(content, 1),
    ".bz2": bz2.compress,
    ".xz": lambda content: lzma.compress(content, preset=0),
    ".zst": lambda content: pa.compress(content, codec="zstd", asbytes=True),
}
ENCODINGS = ("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252")


def graph_rows(draw):
    """Edges and nodes of a small graph, each with its header."""
    count = draw.randrange(8, 20)
    ids = [str(i) for i in range(count)] if draw.chance(0.5) else [f"n{i}" for i in range(count)]
    edges = [[ids[i], ids[(i + step) % count]] for i in range(count) for step in (1, 3)]
    header = ["source", "target"]
    if draw.chance(0.4):
        header.append("weight")
        edges = [[*edge, str(draw.randrange(1, 9) / 4)] for edge in edges]
    nodes = [["id", "size", "hue", "label"]]
    for i, key in enumerate(ids):
        label = draw.choice(("cat", "dog")) if i >= 6 else ("cat", "dog")[i % 2]
        nodes.append([key, str(i), draw.choice(("red", "green", "blue")), label])
    if draw.chance(0.3):
        column = draw.choice(("split", "when", "score"))
        values = {"split": ("train", "val", "test", ""), "when": ("2020-01-02", "2021-03-04", "")}
        nodes[0].append(column)
        for node in nodes[1:]:
            node.append(draw.choice(values.get(column, ("0.5", "1e3", ""))))
    return [header, *edges], nodes


def write_csv(folder, **tables):
    """Write plain tables; returns the names of their files."""
    for stem, rows in tables.items():
        (folder / f"{stem}.csv").write_text("\n".join(map(",".join, rows)) + "\n")
    return tuple(f"{stem}.csv" for stem in tables)


ARROW = (
    lambda draw, n: pa.array(range(n), pa.int8()),
    lambda draw, n: pa.array([str(i) for i in range(n)], pa.large_string()),
    lambda draw, n: pa.array([draw.choice(CELLS) for _ in range(n)]),
    lambda draw, n: pa.array([draw.choice((1e400, -0.0, 2.0**63, None)) for _ in range(n)]),
    lambda draw, n: pa.array([2**63 + i for i in range(n)], pa.uint64()),
    lambda draw, n: pa.nulls(n, draw.choice((pa.null(), pa.string(), pa.float64()))),
    lambda draw, n: pa.array([[1, 2]] * n),
    lambda draw, n: pa.array([{"a": 1}] * n),
    lambda draw, n: pa.array([b"\xff\x00"] * n),
    lambda draw, n: pa.array(["a", "b"] * n)[:n].dictionary_encode(),
    lambda draw, n: pa.array([10**18] * n).cast(pa.decimal128(38, 2)),
    lambda draw, n: pa.array([2**50] * n, pa.int64()).cast(pa.timestamp("s")),
    lambda draw, n: pa.array([5] * n, pa.int64()).cast(pa.duration("ns")),
    lambda draw, n: pa.array([5] * n, pa.int32()).cast(pa.time32("s")),
    lambda draw, n: pa.array([True, False] * n)[:n],
    lambda draw, n: pa.array([1.5] * n, pa.float16()),
)


def write_text(draw, path, rows):
    """A table as text of some form, perhaps packed; returns the file."""
    suffix, separator = draw.choice(((".csv", ","), (".csv", ";"), (".tsv", "\t"), (".txt", " ")))
    careful = draw.chance(0.7)

    def cell(text):
        if careful and any(mark in text for mark in (separator, '"', "\n", "\r")):
            return '"' + text.replace('"', '""') + '"'
        return text

    end = draw.choice(("\n", "\n", "\n", "\r\n", "\r"))
    text = end.join(separator.join(map(cell, row)) for row in rows) + draw.choice((end, end, ""))
    content = text.encode(draw.choice(ENCODINGS), errors="replace")
    packing = draw.choice(("", "", "", "", *PACK))
    content = PACK[packing](content)
    if draw.chance(0.4 if packing else 0.1):
        content = mutate_bytes(draw, content)
    path = path.with_name(path.name + suffix + packing)
    path.write_bytes(content)
    return path


def write_parquet(draw, path, rows):
    """A table as Parquet, a column perhaps of an odd type; returns the file."""
    names = rows[0][: min(map(len, rows))]
    arrays = [pa.array([row[i] for row in rows[1:]], pa.string()) for i in range(len(names))]
    if draw.chance(0.4) and arrays:
        arrays[draw.randrange(len(arrays))] = draw.choice(ARROW)(draw, len(rows) - 1)
    stream = io.BytesIO()
    table = pa.Table.from_arrays(arrays, names=names)
    pq.write_table(table, stream, compression=draw.choice(("snappy", "none", "zstd")))
    content = stream.getvalue()
    path = path.with_suffix(".parquet")
    path.write_bytes(mutate_bytes(draw, content) if draw.chance(0.3) else content)
    return path


def tables(wrong, draw, folder):
    """Edges, nodes and a long table of features, of which one is wrong and some may be missing."""
    edges, nodes = graph_rows(draw)
    values = [[draw.choice(nodes[1:])[0], f"w{draw.randrange(5)}", "1.5"] for _ in range(20)]
    every = {"edges": edges, "nodes": nodes, "features": [["id", "feature", "value"], *values]}
    names, options = [], {}
    for stem, rows in every.items():
        if stem == wrong:
            write = draw.choice((write_text, write_text, write_parquet))
            names.append(write(draw, folder / stem, mutate_rows(draw, rows)).name)
        elif stem == "edges" or draw.chance(0.7):
            names += write_csv(folder, **{stem: rows})
    if draw.chance(0.2):
        key = draw.choice(("label_column", "id_column", "feature_columns", "text_columns"))
        options = {key: draw.choice([*nodes[0], *nodes[0], "nowhere", ""])}
    return Case(functools.partial(load, folder, **options), learn, tuple(names), str(options))


for _stem in ("edges", "nodes", "features"):
    fuzzed(f"table-{_stem}")(functools.partial(tables, _stem))
