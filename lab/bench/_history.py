r"""What nothing measures again: ceilings, stacks, ensembles, large graphs, one of them on paper.

These are views, written for the records that there are. A graph that was too large to run is
computed from the rates of one that was run. Propagation has two costs: products, per number
gathered, and writing, per byte of the terms.

.. math:: t = r_g \cdot E\, c\, K + r_w \cdot N\, c\, (K+1)\, 2, \qquad
    r_g = t_\text{products} / (E\, c\, K),\quad r_w = (t - t_\text{products}) / \text{bytes}

The other stages grow with the bytes that they read and write. On a GPU a gather of the same rows
stands for the products.
"""

import statistics
from collections.abc import Mapping
from typing import Any

from lab.bench._record import Record, cells, hardware, values
from lab.bench._tables import Table, number, spread
from longnn._base.memory import in_words

DEEP_LABELS = {
    "deep": "lon-deep",
    "deep_population": "lon-deep population",
    "gcn_deep": "gcn-deep",
    "pyg_sparse": "PyG GCN, sparse matrix",
    "pyg_edges": "PyG GCN, list of edges",
}
SCALE_LABELS = {
    "propagate": "longnn, terms of all degrees, written to disk in float16",
    "products": "longnn, the products alone, nothing kept",
    "gather": "gather of the same rows, in memory",
    "sign": "PyG SIGN, powers of all degrees, in memory",
    "sgc": "PyG SGConv, the last power, in memory",
}


#: Timed: a large copy (memory), a small copy (cache), a matrix product. The bytes of an epoch
#: were counted, its filter and its feature product timed alone.
_CEILINGS = {
    "memory_gb_s": "memory, copy of a large buffer, read + written (GB/s)",
    "cache_gb_s": "cache, copy of a small buffer, read + written (GB/s)",
    "float32_gflop_s": "matrix product, float32 (GFLOP/s)",
    "tf32_gflop_s": "matrix product, tf32 (GFLOP/s)",
}


def ceiling_tables(record: Record) -> list[Table]:
    """What the machine can do, and how much of it the parts of an epoch reach."""
    measured = cells(record, "ceilings").get((None, None), {})
    machine = Table("Ceilings", "As measured on this machine.", ["ceiling", "measured"])
    machine.rows = [[text, spread(measured[k])] for k, text in _CEILINGS.items() if k in measured]
    note = (
        "Milliseconds per epoch of all models. Bytes are those that the algorithm must move, "
        "gathered rows included. A share above 100 % of memory means that the cache helped."
    )
    heads = ["dataset", "models", "epoch", "floor"]
    parts = ("filter", "features")  # that are timed alone
    for name in parts:
        heads += [f"{name} ms", f"{name} GB/s", "of memory", "of cache", "of arithmetic"]
    shares = Table("Shares of the ceilings", note, heads)
    bounds = Table("What limits an epoch", "", ["dataset", "models", "limit"], words=True)
    for graph, result in record["datasets"].items():
        for share in result.get("ceilings", []):
            if "error" in share:
                continue
            row = [graph, str(share["members"])]
            bounds.rows.append([*row, _say_bound(share)])
            row += [number(share["epoch_ms"]), number(share["floor_ms"])]
            for part in (share["parts"][name] for name in parts):
                row += [number(part["ms"]), number(part["gb_s"])]
                row += [f"{part[f'{c}_share']:.0%}" for c in ("memory", "cache", "arithmetic")]
            shares.rows.append(row)
    return [machine, shares, bounds]


def _say_bound(share: Mapping[str, Any]) -> str:
    """One sentence: which part takes most of the epoch, and what limits it."""
    products = {"filter": "filter product", "features": "feature product"}  # the timed parts
    parts, epoch_ms = share["parts"], share["epoch_ms"]
    shares = {name: parts[name]["ms"] / epoch_ms for name in products}
    rest = 1 - sum(shares.values())
    text = f"at the ceilings, bytes and operations would take {share['floor_ms'] / epoch_ms:.0%} "
    text += "of the epoch"
    first = max(shares, key=lambda name: shares[name])
    if rest > shares[first]:
        return (
            f"{text}; {rest:.0%} goes to neither filter nor feature product: small operations, "
            "their launches, activations and Adam"
        )
    limits = {name: parts[first][f"{name}_share"] for name in ("memory", "cache", "arithmetic")}
    near = max(limits, key=lambda name: limits[name])
    bound = (
        f"bound by {near} ({limits[near]:.0%} of its ceiling)"
        if limits[near] >= 0.5
        else f"far from every ceiling ({near} {limits[near]:.0%}): bound by latency and overhead"
    )
    return f"{text}; the {products[first]} takes {shares[first]:.0%} and is {bound}"


def depth_tables(record: Record) -> list[Table]:
    """Times of stacks of blocks."""
    work = record["settings"]
    note = (
        f"{work['blocks']} blocks or layers of {work['hidden']} channels, degree {work['degree']} "
        f"in lon-deep, dropout {work['dropout']:g}. Milliseconds per model and epoch, training and "
        "evaluation: median [quartiles] over the rounds, in which all take turns. Ratio: to the "
        "faster PyG GCN of the same precision, over the rounds that both have."
    )
    heads = ["contender", "graph", "precision", "models", "rounds", "ms", "ratio"]
    times = [
        [DEEP_LABELS[cell["contender"]["value"]], graph]
        + [str(cell[metric]["value"]) for metric in ("precision", "models", "rounds")]
        + [spread(cell["ms"]), spread(cell["ratio"])]
        for (graph, _), cell in cells(record, "times").items()
    ]
    return [Table("", note, heads, times)]


def ensemble_tables(record: Record) -> list[Table]:
    """Predictions of portfolios, one member after the other and in passes."""
    heads = ["graph", "preset", "members", "one by one, ms", "passes", "in passes, ms", "gain"]
    note = "All members of a portfolio; gain: one by one / in passes."
    times = [
        [
            *(graph, preset, str(cell["members"]["value"]), spread(cell["apart"])),
            *(str(cell["passes"]["value"]), spread(cell["together"]), spread(cell["ratio"], True)),
            spread(cell["difference"]),
        ]
        for (graph, preset), cell in cells(record, "times").items()
    ]
    return [Table("", note, [*heads, "difference"], times)]


def scale_tables(record: Record, sweeps: Table) -> list[Table]:
    """Large graphs; ``sweeps`` say how the time of their stages grows."""
    parts = (_propagation, _stages, lambda record: sweeps, _ranks, _orders, _contests, _machine)
    return [part(record) for part in parts]


def _propagation(record: Record) -> Table:
    note = f"{record['size']}. Rows read per second: float32 rows of neighbours, GB/s."
    heads = ["contender", "seconds [quartiles]", "times as long", "rows read", "peak MiB"]
    ratios, memory = cells(record, "ratios"), cells(record, "memory_mib")
    gigabytes = 4.0 * record["entries"] * record["columns"] * record["steps"] / 1e9
    table = Table("Propagation", note, heads)
    for key, cell in cells(record, "seconds").items():
        seconds, ratio = cell["seconds"], ratios.get(key, {}).get("ratios")
        row = [SCALE_LABELS[key[1]], spread(seconds), spread(ratio, True)]
        row += [number(gigabytes / seconds["value"])]
        table.rows.append([*row, spread(memory.get(key, {}).get("memory_mib"))])
    return table


def _stages(record: Record) -> Table:
    note = (
        f"{record['stage_size']}; training is one epoch on rows. Shares: the time that the "
        "measured disk, or a copy in memory, would need for the same bytes. Files that were just "
        "written are read from memory, so a share of the disk can exceed 100 %."
    )
    heads = ["stage", "seconds", "read", "written", "share of disk", "share of memory"]
    table = Table("Stages", note, heads)
    for stage in values(record, "stages"):
        read, written, seconds = stage["read"], stage["written"], stage["seconds"]
        disk = read / record["read_gb_s"] + written / record["disk_gb_s"]
        shares = [disk, stage["moved"] / record["memory_gb_s"]]
        row = [stage["contender"], number(seconds)]
        row += [f"{size / 1e9:.2f} GB" for size in (read, written)]
        table.rows.append([*row, *(f"{share / 1e9 / seconds:.0%}" for share in shares)])
    return table


def _ranks(record: Record) -> Table:
    note = f"Propagation of {record['size']}; each rank is held to one core."
    table = Table("Ranks", note, ["", "seconds [quartiles]", "times as fast"])
    if times := {key: cell["ranks"] for (_, key), cell in cells(record, "ranks").items()}:
        table.rows = [
            ["one rank on one core", spread(times["one"]), "1"],
            ["two ranks on two cores", spread(times["two"]), spread(times["ratio"], True)],
        ]
    return table


def _orders(record: Record) -> Table:
    note = (
        f"{record['order_size']}; nodes are numbered at random. Seconds. An order pays if all "
        f"products, {record['steps']} per block of columns, gain more than it costs."
    )
    heads = ["graph", "order", "to find it and renumber", "one product", "gain"]
    table = Table("Orders of the nodes", note, heads, words=True)
    first: dict[str, float] = {}  # graph -> seconds of a product in the order that it has
    for order in values(record, "orders"):
        graph, seconds = order["graph"], order["product_s"]
        gain = f"{first.setdefault(graph, seconds) / seconds:.2f}x"
        row = [graph, order["contender"], number(order["find_s"]), number(seconds), gain]
        table.rows.append(row)
    return table


def _contests(record: Record) -> Table:
    note = (
        f"{record['contest_size']}, 3 seeds: mean accuracy on test nodes with its standard "
        "deviation, mean seconds of training. All read the same stored terms, have the same "
        "hidden units and stop by the same rule."
    )
    heads = ["labels", "model", "accuracy %", "seconds", "weights"]
    table = Table("Does learning the filter pay?", note, heads, words=True)
    for contest in values(record, "contests"):
        scores, seconds = contest["scores"], statistics.mean(contest["seconds"])
        score = f"{100 * statistics.mean(scores):.1f} ± {100 * statistics.pstdev(scores):.1f}"
        row = [contest["graph"], contest["model"], score, f"{seconds:.1f}"]
        table.rows.append([*row, f"{contest['weights']:,}"])
    return table


def _machine(record: Record) -> Table:
    measured = {
        "a file written and synced": "disk_gb_s",
        "a file read from the disk": "read_gb_s",
        "a copy in memory, read plus written": "memory_gb_s",
    }
    rates = [[text, number(record[key])] for text, key in measured.items() if key in record]
    return Table("Machine", "", ["measured", "GB/s"], rates)


def scale_words(record: Record) -> list[str]:
    """A sentence or two on each part of the record of large graphs on a CPU."""
    machine, ratios, memory = record["machine"], record["ratios"], record["memory_mib"]
    seconds = {key: times["median"] for key, times in record["seconds"].items()}
    longer = [
        f"{name} takes {ratios[key]['median']:.2f} times as long and "
        f"{memory[key] / memory['propagate']:.1f} times the memory"
        for key, name in (("sign", "PyG's SIGN transform"), ("sgc", "the loop of PyG's SGConv"))
    ]
    steepest = max(record["sweeps"], key=lambda sweep: sweep["exponent"])
    hubs, ring = record["orders"]
    order, best = min(record["orders"][ring].items(), key=lambda item: item[1]["product_s"])
    plain = record["orders"][ring]["as it is"]["product_s"]
    pays = best["find_s"] / (plain - best["product_s"])
    contests: dict[str, dict[str, str]] = {}
    for contest in record["contests"]:
        score, took = (statistics.mean(contest[key]) for key in ("scores", "seconds"))
        text = f"{100 * score:.1f} % in {took:.1f} s"
        contests.setdefault(contest["graph"], {})[contest["model"]] = text
    return [
        f"Measured on {hardware(record)}, load {machine['load']:.1f} on {machine['cores']} cores. "
        "Other work on the machine makes times longer.",
        f"On {record['size']}, products run at {seconds['gather'] / seconds['products']:.0%} "
        "of the rate of a plain gather of the same rows in memory; with the terms written to "
        f"disk, {seconds['gather'] / seconds['propagate']:.0%}.",
        f"{', '.join(longer)}; both write nothing to disk.",
        "Over all stages and sizes the largest exponent of growth is "
        f"{steepest['exponent']:.2f} ({steepest['what']} with {steepest['axis']}).",
        f"Two ranks on two cores are {record['ranks']['ratio']['median']:.2f} times as fast as one "
        "rank on one core.",
        f"On {hubs} no order of the nodes makes a product faster. On {ring} the best "
        f"order of the nodes ({order}) makes a product {plain / best['product_s']:.2f} times as "
        f"fast and pays after {pays:,.0f} products of 16 columns.",
        " ".join(
            f"On {graph} one learned filter has {of['learned filter']}, one per hidden unit "
            f"{of['learned filter per unit']}, SGC {of['SGC']} and SIGN {of['SIGN']}."
            for graph, of in contests.items()
        ),
    ]


# ogbn-papers100M: edges count once, the labelled rows are trained on.
NODES, EDGES, FEATURES, DEGREE, LABELLED = 111_059_956, 1_615_685_872, 128, 10, 1_546_782
#: Bytes of a number of the terms, in float16; and columns of a block on a CPU.
HALF, BLOCK = 2, 16
#: Neighbours in both directions and offsets; with float32 features and labels.
GRAPH_BYTES = 4 * 2 * EDGES + 8 * NODES
PREPARED_BYTES = GRAPH_BYTES + 4 * NODES * FEATURES + 4 * NODES


def _terms_bytes(rows: int) -> int:
    """On disk: all terms of some rows."""
    return rows * FEATURES * (DEGREE + 1) * HALF


def propagate_seconds(record: Record) -> float:
    """Seconds for all terms of all rows, at the rates of a record."""
    seconds, columns, steps = record["seconds"], record["columns"], record["steps"]
    nodes = int(record["size"].split()[0].replace(",", ""))
    products = seconds.get("products", seconds["gather"])["median"]
    per_number = products / (record["entries"] * columns * steps)
    written = nodes * columns * (steps + 1) * HALF
    per_byte = max(seconds["propagate"]["median"] - products, 0.0) / written
    return per_number * 2 * EDGES * FEATURES * DEGREE + per_byte * _terms_bytes(NODES)


def forecast_table(cpu: Record, gpu: Record) -> Table:
    """Memory, disk and time of the larger graph on this CPU, on a GPU, and on four machines."""
    note = (
        f"{NODES:,} nodes, {EDGES:,} edges, {FEATURES} features, degree {DEGREE}, terms in "
        "float16. Computed from the rates of these records; not run. Four machines share the "
        "columns of propagation, each with a disk of its own; the other stages run on one of them."
    )
    heads = ["", hardware(cpu), hardware(gpu), "four machines"]
    # The graph, the degrees and two arrays of a block; the terms of the block go to a scratch file.
    memory = in_words(GRAPH_BYTES + 4 * NODES + 8 * BLOCK * NODES)
    terms, labelled = _terms_bytes(NODES), in_words(_terms_bytes(LABELLED))
    seconds = propagate_seconds(cpu)
    on_gpu, on_four = duration(propagate_seconds(gpu)), duration(seconds / 4)
    stages: Mapping[str, Mapping[str, float]] = cpu["stages"]
    took = {
        "ingest": PREPARED_BYTES / stages["ingest"]["written"],
        "train": _terms_bytes(LABELLED) / stages["train"]["read"],
        "predict": terms / stages["predict"]["read"],
    }
    times = {name: duration(stages[name]["seconds"] * share) for name, share in took.items()}
    words = {"ingest": "ingest", "train": "one epoch on labelled rows", "predict": "predict all"}
    rows = [
        ["memory to propagate", memory, "the same, of the GPU", f"{memory} each"],
        ["disk, graph and features", *[in_words(PREPARED_BYTES)] * 3],
        ["disk, terms of all rows", *[in_words(terms)] * 2, f"{in_words(terms / 4)} each"],
        ["disk, terms of labelled rows alone", *[labelled] * 3],
        ["propagate", duration(seconds), on_gpu, on_four],
        *([text, times[name], "-", times[name]] for name, text in words.items()),
    ]
    return Table("ogbn-papers100M, on paper", note, heads, rows, words=True)


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(42), duration(600), duration(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
