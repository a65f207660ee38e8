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


def render(draw, rows, separator):
    """Rows as text, quoted where a writer would, or not at all."""
    careful = draw.chance(0.7)

    def cell(text):
        if careful and any(mark in text for mark in (separator, '"', "\n", "\r")):
            return '"' + text.replace('"', '""') + '"'
        return text

    end = draw.choice(("\n", "\n", "\n", "\r\n", "\r"))
    return end.join(separator.join(map(cell, row)) for row in rows) + draw.choice((end, end, ""))


def write_text(draw, folder, stem, rows):
    """Write a table as text of some form; returns the file."""
    suffix, separator = draw.choice(((".csv", ","), (".csv", ";"), (".tsv", "\t"), (".txt", " ")))
    text = render(draw, rows, separator)
    content = text.encode(draw.choice(ENCODINGS), errors="replace")
    if draw.chance(0.1):
        content = mutate_bytes(draw, content)
    packing = draw.choice(("", "", "", "", *PACK))
    packed = PACK[packing](content)
    if packing and draw.chance(0.4):
        packed = mutate_bytes(draw, packed)
    path = folder / f"{stem}{suffix}{packing}"
    path.write_bytes(packed)
    return path


def columns(draw, header):
    """Options that name columns, right or wrong."""
    if not draw.chance(0.25):
        return {}
    key = draw.choice(("label", "id", "feature", "text", "category"))
    plural = "" if key in ("label", "id") else "s"
    return {f"{key}_column{plural}": draw.choice([*header, *header, "nowhere", ""])}


@fuzzed("text-nodes")
def text_nodes(draw, folder):
    edges, nodes = graph_rows(draw)
    write_csv(folder, edges=edges)
    path = write_text(draw, folder, "nodes", mutate_rows(draw, nodes))
    options = columns(draw, nodes[0])
    read = functools.partial(load, folder, **options)
    return Case(read, learn, (path.name, "edges.csv"), str(options))


@fuzzed("text-edges")
def text_edges(draw, folder):
    edges, nodes = graph_rows(draw)
    path = write_text(draw, folder, "edges", mutate_rows(draw, edges))
    names = write_csv(folder, nodes=nodes) if draw.chance(0.6) else ()
    return Case(functools.partial(load, folder), learn, (path.name, *names))


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


@fuzzed("parquet")
def parquet(draw, folder):
    edges, nodes = graph_rows(draw)
    which = draw.choice(("edges", "nodes"))
    rows = {"edges": edges, "nodes": nodes}[which]
    if draw.chance(0.4):
        rows = mutate_rows(draw, rows)
    width = min(map(len, rows))
    names = rows[0][:width]
    arrays = [pa.array([row[i] for row in rows[1:]], pa.string()) for i in range(width)]
    kind = draw.randrange(6)
    if kind <= 1 and arrays:
        arrays[draw.randrange(width)] = draw.choice(ARROW)(draw, len(rows) - 1)
    elif kind == 2:
        keep = draw.randrange(width + 1)
        names, arrays = names[:keep], arrays[:keep]
    table = pa.Table.from_arrays(arrays, names=names)
    stream = io.BytesIO()
    pq.write_table(table, stream, compression=draw.choice(("snappy", "none", "zstd")))
    content = mutate_bytes(draw, stream.getvalue()) if kind >= 4 else stream.getvalue()
    (folder / f"{which}.parquet").write_bytes(content)
    other = write_csv(folder, **({"nodes": nodes} if which == "edges" else {"edges": edges}))
    return Case(functools.partial(load, folder), learn, (f"{which}.parquet", *other))


@fuzzed("feature-table")
def feature_table(draw, folder):
    """A long table: id, feature, value."""
    edges, nodes = graph_rows(draw)
    names = write_csv(folder, edges=edges, nodes=nodes)
    rows = [["id", "feature", "value"]]
    rows += [[draw.choice(nodes[1:])[0], f"w{draw.randrange(5)}", "1.5"] for _ in range(20)]
    path = write_text(draw, folder, "features", mutate_rows(draw, rows))
    return Case(functools.partial(load, folder), learn, (path.name, *names))
