r"""A graph that was not run, on paper, from the rates of one that was.

Propagation has two costs: products, per number gathered, and writing, per byte of the terms.

.. math:: t = r_g \cdot E\, c\, K + r_w \cdot N\, c\, (K+1)\, 2, \qquad
    r_g = t_\text{products} / (E\, c\, K),\quad r_w = (t - t_\text{products}) / \text{bytes}

The other stages grow with the bytes that they read and write. On a GPU a gather of the same rows
stands for the products.
"""

from dataclasses import dataclass

from lab.bench._scalerecord import ScaleRecord, Stage
from lab.bench._tables import Table
from longnn._base.memory import in_words

#: Bytes of a number of the terms, in float16; and columns of a block on a CPU.
HALF, BLOCK = 2, 16


@dataclass(frozen=True)
class Shape:
    """What is to be run.

    Args:
        name: in words.
        nodes, edges, features: of the graph; edges count once.
        degree: K.
        labelled: rows to train on.
    """

    name: str
    nodes: int
    edges: int
    features: int
    degree: int
    labelled: int

    @property
    def entries(self) -> int:
        """Stored neighbours: both directions."""
        return 2 * self.edges

    @property
    def graph_bytes(self) -> int:
        """Neighbours and offsets."""
        return 4 * self.entries + 8 * self.nodes

    @property
    def prepared_bytes(self) -> int:
        """On disk: the graph, float32 features, labels."""
        return self.graph_bytes + 4 * self.nodes * self.features + 4 * self.nodes

    def terms_bytes(self, rows: int) -> int:
        """On disk: all terms of some rows."""
        return rows * self.features * (self.degree + 1) * HALF

    def memory(self, columns: int = BLOCK) -> int:
        """The graph, the degrees and two arrays of a block of columns; the terms of the block go
        to a scratch file."""
        return self.graph_bytes + 4 * self.nodes + 8 * columns * self.nodes


PAPERS = Shape("ogbn-papers100M", 111_059_956, 1_615_685_872, 128, 10, 1_546_782)


def propagate_seconds(shape: Shape, record: ScaleRecord) -> float:
    """Seconds for all terms of all rows, at the rates of a record.

    Args:
        shape: what is to be run.
        record: of a machine.
    """
    products = record.seconds.get("products", record.seconds["gather"]).median
    gathered = record.entries * record.columns * record.steps
    written = record.nodes * record.columns * (record.steps + 1) * HALF
    per_byte = max(record.seconds["propagate"].median - products, 0.0) / written
    work = shape.entries * shape.features * shape.degree
    return products / gathered * work + per_byte * shape.terms_bytes(shape.nodes)


def stage_seconds(shape: Shape, name: str, stage: Stage) -> float:
    """Seconds of another stage, in proportion to its bytes."""
    rows = {"train": shape.labelled, "predict": shape.nodes}
    if name == "ingest":
        work, done = shape.prepared_bytes, stage.written
    else:
        work, done = shape.terms_bytes(rows[name]), stage.read
    return stage.seconds * work / done


def forecast_table(
    shape: Shape, cpu: ScaleRecord, gpu: ScaleRecord | None = None, block: ScaleRecord | None = None
) -> Table:
    """Memory, disk and time of a shape on this CPU, on a GPU, and on four machines like this.

    Args:
        shape: what is to be run.
        cpu: the record of a CPU, with stages.
        gpu: the record of a GPU; None leaves its column empty.
        block: one block of columns that was run on the CPU, to check the forecast by.
    """
    title = f"{shape.name}, on paper"
    note = (
        f"{shape.nodes:,} nodes, {shape.edges:,} edges, {shape.features} features, degree "
        f"{shape.degree}, terms in float16. Computed from the rates of these records; not run. "
        "Four machines share the columns of propagation, each with a disk of its own; the other "
        "stages run on one of them."
    )
    heads = ["", cpu.machine.name, gpu.machine.name if gpu else "GPU", "four machines"]
    table = Table(title, note, heads, words=True)
    memory, terms = in_words(shape.memory()), shape.terms_bytes(shape.nodes)
    table.rows.append(["memory to propagate", memory, "the same, of the GPU", f"{memory} each"])
    table.rows.append(["disk, graph and features", *[in_words(shape.prepared_bytes)] * 3])
    each = f"{in_words(terms / 4)} each"
    table.rows.append(["disk, terms of all rows", in_words(terms), in_words(terms), each])
    labelled = in_words(shape.terms_bytes(shape.labelled))
    table.rows.append(["disk, terms of labelled rows alone", *[labelled] * 3])
    one = propagate_seconds(shape, cpu)
    on_gpu = duration(propagate_seconds(shape, gpu)) if gpu else "-"
    table.rows.append(["propagate", duration(one), on_gpu, duration(one / 4)])
    words = {"ingest": "ingest", "train": "one epoch on labelled rows", "predict": "predict all"}
    for name, text in words.items():
        took = duration(stage_seconds(shape, name, cpu.stages[name]))
        table.rows.append([text, took, "-", took])
    if block is not None:
        edges = block.entries // 2
        like = Shape("", block.nodes, edges, block.columns, block.steps, labelled=1)
        told = duration(propagate_seconds(like, cpu))
        took = duration(block.seconds["propagate"].median)
        text = f"{took} measured, {told} on paper"
        table.rows.append([f"check, one block: {block.size}", text, "-", "-"])
    return table


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(42), duration(600), duration(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
