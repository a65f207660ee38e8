"""One reader: every flaw and oddity, in every format, in memory and on disk.

The same verdict, the same message with file, line, column and value, the same counts and notes. A
case is two tables as text; each is written in every format.
"""

import csv
import gzip
import io

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import torch

from longnn.data import DataError, load
from longnn.data._dataset import BESIDE
from longnn.store import prepare
from longnn.store._disk import load_stored

EDGES = "source,target\na,b\nb,c\nc,d\nd,a\na,c\n"
NODES = "id,size,hue,label\na,1,red,x\nb,2.5,blue,y\nc,4,red,x\nd,7,blue,\n"
NUMBERS = "source,target\n0,1\n1,2\n2,3\n3,0\n"

#: Five nodes and when, where and how often each was asked.
DAYS = (
    "id,size,year,month,state,w,label\n"
    "a,1,2019,2019-05,ny,1,x\nb,2,2021,2021-01,ny,2,y\nc,4,2020,2020-12,ca,0.5,x\n"
    "d,7,2019,2019-07-04,tx,3,y\ne,7,,,,,\n"
)
DAY_EDGES = EDGES + "d,e\n"
#: Name → edges, nodes, options, and words of the error, or None where there is none.
CASES = {
    "plain": (EDGES, NODES, {}, None),
    "without nodes": (EDGES, None, {}, None),
    "self loops and repeats": (EDGES + "a,a\na,b\nb,a\n", NODES, {}, None),
    "self loops are kept": (EDGES + "a,a\n", NODES, {"self_loops": True}, None),
    "white space around ids": (
        "source,target\n\u00a0a,b\u2003\n b,c\nc,d\nd,a\n",
        "id,size,label\na ,1,x\n\u3000b,2,y\nc\u00a0,4,x\nd,5,y\n",
        {},
        None,
    ),
    "isolated nodes": ("source,target\na,b\n", NODES, {}, None),
    "isolated nodes are dropped": (
        "source,target,weight\na,b,1\nd,d,1\nc,d,0\n",
        NODES,
        {"isolated": "drop"},
        None,
    ),
    "isolated nodes are dropped, but for loops": (
        "source,target\na,b\nd,d\n",
        NODES,
        {"isolated": "drop", "self_loops": True},
        None,
    ),
    "all nodes are isolated": (
        "source,target\na,a\n",
        NODES,
        {"isolated": "drop"},
        "Expected an edge between two nodes with isolated=drop",
    ),
    "identical rows": (
        EDGES,
        NODES + "b,2.5,blue,y\na,1,red,x\n",
        {"repeated_nodes": "merge"},
        None,
    ),
    "identical rows, and a flaw behind them": (
        EDGES,
        NODES.replace("c,4", "b,2.5,blue,y\nc,x4") + "e,1,red,x\n",
        {"repeated_nodes": "merge"},
        r"line {5}, column 'size': Expected a number \(got 'x4'\)",
    ),
    "rows of one id that differ": (
        EDGES,
        NODES + "b,2.5,red,y\n",
        {"repeated_nodes": "merge"},
        r"line {6}, column 'hue': Expected rows of one id to be identical .* first on line {3}, ",
    ),
    "gaps": (EDGES, NODES.replace("2.5", "NA").replace("blue,y", ",y"), {}, None),
    "gaps are errors": (
        EDGES,
        NODES.replace("2.5", "NA"),
        {"missing": "error"},
        r"line {3}, column 'size': Expected a value \(got 'NA'\)",
    ),
    "columns of a role are dropped": (
        EDGES,
        NODES.replace("label\n", "label,split\n")
        .replace("x\n", "x,exam\n")
        .replace("y\n", "y,\n")
        .replace("blue,\n", "blue,,\n"),
        {"drop_columns": ["split", "label"]},
        None,
    ),
    "dropped columns that may be absent": (
        EDGES,
        NODES,
        {"drop_columns": ["hue", "gone"], "optional_columns": ["drop_columns"]},
        None,
    ),
    "a label is dropped": (
        EDGES,
        NODES,
        {"drop_columns": ["label"], "label_column": ["label"]},
        r"Expected a label column that drop_columns keeps \(got 'label'\)",
    ),
    "dates and truth": (
        EDGES,
        "id,day,ok,label\na,2024-05-31,yes,x\nb,2024-06-01,no,y\nc,,yes,x\nd,2023-01-01,no,y\n",
        {},
        None,
    ),
    "names are left out": (
        EDGES,
        "id,f,name,one,label\na,1,ann,1,x\nb,2,bob,1,y\nc,3,cyd,1,x\nd,4,dan,1,y\n",
        {},
        None,
    ),
    "weights and types are refused": (
        EDGES.replace("\n", ",2,x\n").replace("target,2,x", "target,weight,edge_type"),
        NODES,
        {"weight_column": "none", "type_column": "none"},
        None,
    ),
    "features of degree": (EDGES, NODES, {"features": "degree"}, None),
    "chosen columns": (
        EDGES,
        NODES,
        {"feature_columns": ["hue"], "category_columns": ["size"]},
        None,
    ),
    "unknown numbers are added": (
        NUMBERS + "9,1\n5,9\n",
        "id,f,label\n0,1,x\n1,2,y\n2,3,x\n3,5,y\n",
        {"unknown_ids": "add"},
        None,
    ),
    "unknown source": (
        EDGES + "zed,b\n",
        NODES,
        {},
        r"edges\S+, line {7}, column 'source': .*"
        r"node in nodes\S* \(got 'zed'\); 1 of 6 edges has such an end.*unknown_ids=add",
    ),
    "unknown target": (EDGES + "b,zoe\nzoe,b\n", NODES, {}, r"line {8}, column 'source'.*'zoe'"),
    "unknown number": (
        NUMBERS + "1,9\n",
        "id,f,label\n0,1,x\n1,2,y\n2,3,x\n3,5,y\n",
        {},
        r"line {6}, column 'target': .*\(got '9'\)",
    ),
    "no id is known": (EDGES, NODES.replace("\n", "\nn")[:-1], {}, "no edge has two known ends"),
    "empty source": (EDGES + ",b\n", NODES, {}, r"line {7}, column 'source': .*empty cell"),
    "empty ends are counted": (
        EDGES + ",b\nb,\n,\n",
        NODES,
        {},
        r"line {7}, column 'source': .*empty cell\). 3 edges have such an end: .*empty_ends=drop",
    ),
    "empty ends are dropped": (EDGES + ",b\nb,\n,\na,b\n", NODES, {"empty_ends": "drop"}, None),
    "empty ends of unlisted nodes": (EDGES + ",b\nb,\n", None, {"empty_ends": "drop"}, None),
    "a near id": (
        "source,target\n1,2\n2,00024\n24,1\n",
        "id,f,label\n1,1,x\n2,2,y\n24,3,x\n",
        {},
        r"line {3}, column 'target': .*\(got '00024'\); it has '24'.*ids=numbers",
    ),
    "near ids are one": (
        "source,target\n1,2.0\n2,00024\n24.0,01\n",
        "id,f,label\n1,1,x\n2,2,y\n024,3,x\n",
        {"ids": "numbers"},
        None,
    ),
    "empty target": (EDGES + "b,\u00a0\n", NODES, {}, r"line {7}, column 'target': .*empty cell"),
    "empty id": (EDGES, NODES.replace("\nc,", "\n ,"), {}, r"line {4}, column 'id': .*empty cell"),
    "an id twice": (
        EDGES,
        NODES.replace("\nd,", "\nb,"),
        {},
        r"line {5}, column 'id': .*\(got 'b' again, first on line {3}( of \S+)?\)",
    ),
    "no number": (
        EDGES,
        NODES.replace("2.5", "old"),
        {"feature_columns": ["size"]},
        r"line {3}, column 'size': Expected a number \(got 'old'\).*missing_words",
    ),
    "mostly numbers": (
        EDGES,
        NODES.replace("4,red", "4x,red"),
        {},
        r"line {4}, column 'size': Expected a number \(got '4x'\)",
    ),
    "infinite": (EDGES, NODES.replace("2.5", "inf"), {}, r"line {3}, column 'size'.*'inf'"),
    "too large": (EDGES, NODES.replace("2.5", "1e300"), {}, r"line {3}, column 'size'.*float32"),
    "label is no number": (
        EDGES,
        NODES,
        {"task": "regression"},
        r"line {2}, column 'label': .*got 'x'",
    ),
    "endless label": (
        EDGES,
        NODES.replace(",y", ",inf").replace(",x", ",1.5"),
        {"task": "regression"},
        r"line {3}, column 'label': Expected a finite label \(got 'inf'",
    ),
    "a label of text among several": (
        EDGES,
        "id,f,p,q\na,1,0,x\nb,2,1,0\nc,3,0,1\nd,4,1,1\n",
        {"label_column": ["p", "q"]},
        r"line {2}, column 'q': Expected a finite number, true.*'x'",
    ),
    "a label of 2 among several": (
        EDGES,
        "id,f,p,q\na,1,0,2\nb,2,1,0\nc,3,0,1\nd,4,1,1\n",
        {"label_column": ["p", "q"], "task": "multilabel"},
        r"line {2}, column 'q': Expected 0, 1, .*\(got 2\)",
    ),
    "classes of several columns": (
        EDGES,
        NODES,
        {"label_column": ["size", "label"], "task": "classification"},
        r"one label column for class.*\(got size, label",
    ),
    "bad split": (
        EDGES,
        "id,f,label,split\na,1,x,train\nb,2,y,exam\nc,3,x,val\nd,4,y,test\n",
        {},
        r"line {3}, column 'split': Expected train, val, test or an empty cell \(got 'exam'\)",
    ),
    "missing column": (EDGES, NODES, {"label_column": ["team"]}, "label column 'team'"),
    "missing end": (EDGES, NODES, {"source_column": "who"}, "source column 'who'"),
    "one column": ("source\na\nb\n", NODES, {}, "a source and a target column"),
    "all edges dropped": (
        "source,target\nu,v\nv,w\n",
        NODES,
        {"unknown_ids": "drop"},
        r"got 'u'\); no edge has two known ends.*id_column",
    ),
    "no features": (
        EDGES,
        "id,one,label\na,x,x\nb,x,y\nc,x,x\nd,x,y\n",
        {"features": "columns"},
        None,
    ),
}
WEIGHTED = "source,target,weight\na,b,2\nb,c,0.5\nc,d,1\nd,a,3\na,b,4\nb,a,1\nc,c,2\na,c,0\n"
TYPED = "source,target,edge_type\na,b,friend\nb,c,work\nc,d,friend\nd,a,work\nb,a,work\na,b,work\n"
LONG = "id,feature,value\na,w2,1\nb,w1,0.5\na,w2,2\nd,w1,4\n"
WORDS = "id,note,label\na,red and green,x\nb,green tea,y\nc,red wine,x\nd,,\n"
CASES |= {
    "negative weight": (
        WEIGHTED + "d,c,-1\n",
        NODES,
        {},
        r"line {10}, column 'weight': Expected a weight >= 0 \(got -1\)",
    ),
    "weight that is none": (
        WEIGHTED.replace("0.5", "much"),
        NODES,
        {},
        r"line {3}, column 'weight': Expected a number \(got 'much'\)",
    ),
    "a gap among weights": (
        WEIGHTED.replace("0.5", ""),
        NODES,
        {},
        r"line {3}, column 'weight': Expected a finite number",
    ),
    "an unknown end comes before a weight": (
        WEIGHTED.replace("0.5", "-2") + "zed,a,1\n",
        NODES,
        {},
        r"line {10}, column 'source'.*'zed'",
    ),
    "arcs": (EDGES + "b,a\n", NODES, {"directed": True}, None),
    "arcs with weights": (WEIGHTED, NODES, {"directed": True, "features": "degree"}, None),
    "arcs are found": (EDGES, NODES, {"directed": "auto"}, None),
    "no arcs are found": (EDGES + "b,a\nc,b\nd,c\na,d\nc,a\n", NODES, {"directed": "auto"}, None),
    "weights make arcs": (
        "source,target,weight\na,b,1\nb,a,2\n",
        NODES,
        {"directed": "auto"},
        None,
    ),
    "types": (TYPED, NODES, {}, None),
    "types of arcs": (TYPED, NODES, {"directed": True}, None),
    "a type that is dropped": (TYPED + "a,zoe,other\n", NODES, {"unknown_ids": "drop"}, None),
    "one type": (TYPED.replace("work", "friend"), NODES, {}, None),
    "a gap among types": (
        TYPED + "a,d,\n",
        NODES,
        {},
        r"line {8}, column 'edge_type': Expected the type of an edge \(got an empty cell\)",
    ),
    "by year": (DAY_EDGES, DAYS, {"time_column": "year", "drop_columns": ["month"]}, None),
    "by month, from two on": (
        DAY_EDGES,
        DAYS,
        {"time_column": "month", "split_at": ["2020", "2021-01"]},
        None,
    ),
    "by group": (DAY_EDGES, DAYS, {"group_column": "state", "feature_columns": ["size"]}, None),
    "by weight": (
        DAY_EDGES,
        DAYS.replace("ca,0.5", "ca,0"),
        {"node_weight_column": "w", "feature_columns": ["size", "w"]},
        None,
    ),
    "by weight and time": (
        DAY_EDGES,
        DAYS.replace("ca,0.5", "ca,0"),
        {"node_weight_column": "w", "time_column": "month", "feature_columns": ["size"]},
        None,
    ),
    "a weight below zero": (
        DAY_EDGES,
        DAYS.replace("ny,2", "ny,-2"),
        {"node_weight_column": "w"},
        r"line {3}, column 'w': Expected a weight >= 0 \(got '?-2'?\)",
    ),
    "a word is no weight": (
        DAY_EDGES,
        DAYS.replace("ny,2", "ny,much"),
        {"node_weight_column": "w"},
        r"line {3}, column 'w': Expected a number \(got 'much'\)",
    ),
    "a labelled node without a weight": (
        DAY_EDGES,
        DAYS.replace("ny,2", "ny,"),
        {"node_weight_column": "w"},
        r"line {3}, column 'w': Expected a weight for every labelled node \(got an empty cell\)",
    ),
    "the weight of a node is none of an edge": (
        DAY_EDGES,
        DAYS,
        {"weight_column": "w"},
        r"Expected a weight column 'w' of edges \(got one of nodes\S*\).*node_weight_column",
    ),
    "a word is no time": (
        DAY_EDGES,
        DAYS.replace("2021-01", "spring"),
        {"time_column": "month"},
        r"line {3}, column 'month': Expected a date .* \(got 'spring'\); a time is a number, or",
    ),
    "a word among years is no time": (
        DAY_EDGES,
        DAYS.replace("2021,", "soon,"),
        {"time_column": "year"},
        r"line {3}, column 'year': Expected a number \(got 'soon'\). A time is a number, or a date",
    ),
    "a labelled node without a time": (
        DAY_EDGES,
        DAYS.replace("2020,", ","),
        {"time_column": "year"},
        r"line {4}, column 'year': Expected a time for every labelled node \(got an empty cell\)",
    ),
    "a labelled node without a group": (
        DAY_EDGES,
        DAYS.replace("ca", ""),
        {"group_column": "state"},
        r"line {4}, column 'state': Expected a group for every labelled node \(got an empty cell",
    ),
    "years for months": (
        DAY_EDGES,
        DAYS,
        {"time_column": "year", "split_at": ["2020-01-01", "2021-01-01"]},
        r"column 'year': Expected `split_at` as two numbers, as the column has",
    ),
    "a time without an end": (
        DAY_EDGES,
        DAYS,
        {"time_column": "year", "split_at": ["2020"]},
        r"Expected `split_at` beside time_column, as the two times .* \(got '2020'\)",
    ),
    "two ways to split": (
        DAY_EDGES,
        DAYS,
        {"time_column": "year", "group_column": "state"},
        r"Expected one of split_column, time_column, group_column \(got time_column and group_col",
    ),
    "words": (EDGES, WORDS, {"text_columns": ["note"]}, None),
    "a feature file": (EDGES, NODES, {}, None, LONG),
    "a feature file alone": (EDGES, "id,label\na,x\nb,y\nc,x\nd,\n", {}, None, LONG),
    "a feature of nobody": (
        EDGES,
        NODES,
        {},
        r"line {6}, column 'id': .*\(got 'zoe'\)",
        LONG + "zoe,w1,1\n",
    ),
    "a feature twice": (EDGES, NODES, {}, r"each feature once \(got 'size'", LONG + "a,size,1\n"),
}
#: Each case is read as CSV, as Parquet, and in one of the others; in the slow suite in two.
OTHERS = ("tsv", "txt", "csv.gz", "arrow", "parts")
FORMATS = [
    pytest.param(name, suffix, marks=marks)
    for k, name in enumerate(CASES)
    for suffix, marks in (
        ("csv", ()),
        ("parquet", ()),
        (OTHERS[k % len(OTHERS)], ()),
        (OTHERS[(k + 3) % len(OTHERS)], pytest.mark.slow),
    )
]


def write(folder, stem, text, suffix):
    """A table as text in a file of a format; in Parquet an empty cell is a gap."""
    path = folder / f"{stem}.{suffix}"
    if suffix in ("parquet", "arrow"):
        head, *rows = (line.split(",") for line in text.splitlines())
        cells = zip(*rows, strict=True)
        table = {n: [c or None for c in column] for n, column in zip(head, cells, strict=True)}
        to = pyarrow.parquet.write_table if suffix == "parquet" else pyarrow.feather.write_feather
        to(pa.table(table), path)
    elif suffix == "parts":  # the first has two rows
        (folder / stem).mkdir()
        head, *rows = text.splitlines()
        for number, part in enumerate((rows[:2], rows[2:])):
            if part:
                (folder / stem / f"{number}.csv").write_text("\n".join([head, *part, ""]))
    elif suffix == "csv.gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text.replace(",", "," if suffix == "csv" else "\t"), encoding="utf-8")
    return path


def both(folder, options, output):
    """The verdict of both backings: the dataset, or the text of the error."""
    verdicts = []
    for read in (
        lambda: load(folder, **options),
        lambda: load_stored(prepare(folder, output=output, options=options).folder, rows=False),
    ):
        try:
            verdicts.append(read())
        except DataError as error:
            verdicts.append(str(error))
    return verdicts


SAME = ("task", "classes", "targets", "feature_names", "encoding", "default_split", "directed")
SAME += ("one_way", "open_features", "name", "ready")


def assert_alike(memory, disk):
    if isinstance(memory, str) or isinstance(disk, str):
        assert memory == disk
        return
    assert list(memory.ids) == list(disk.ids)
    assert torch.equal(memory.data.edge_index, disk.data.edge_index)
    weights = [each.data.get("edge_weight") for each in (memory, disk)]
    assert (weights[0] is None) == (weights[1] is None)
    assert weights[0] is None or torch.equal(*weights)
    assert len(memory.relations) == len(disk.relations)
    for one, other in zip(memory.relations, disk.relations, strict=True):
        assert one.name == other.name
        assert torch.equal(one.edge_index, other.edge_index)
    x = memory.data.x
    assert torch.equal(x if x.layout is torch.strided else x.to_dense(), disk.data.x)
    np.testing.assert_array_equal(memory.data.y.numpy(), disk.data.y.numpy())
    for name in SAME:
        assert getattr(memory, name) == getattr(disk, name), name
    *said, size = disk.notes
    assert list(memory.notes) == said
    assert "take about" in size
    for name in ("train_mask", "val_mask", "test_mask", *BESIDE):
        masks = [each.data.get(name) for each in (memory, disk)]
        assert (masks[0] is None) == (masks[1] is None)
        assert masks[0] is None or torch.allclose(*masks, equal_nan=True)


def expected_words(words, suffix):
    """``line {7}`` is the row of a file without a header line; of parts, the line of the second."""
    for number in range(2, 11):
        line = number - 1 if suffix in ("parquet", "arrow") else number
        line = number - 2 if suffix == "parts" and number > 3 else line
        words = words.replace(f"{{{number}}}", str(line))
    return words


@pytest.mark.parametrize(("name", "suffix"), FORMATS)
def test_both_backings_have_one_verdict(name, suffix, tmp_path):
    edges, nodes, options, words, *more = CASES[name]
    folder = tmp_path / "graph"
    folder.mkdir()
    write(folder, "edges", edges, suffix)
    if nodes is not None:
        write(folder, "nodes", nodes, suffix)
    if more:
        write(folder, "features", more[0], suffix)
    memory, disk = both(folder, options, tmp_path / "made")
    assert_alike(memory, disk)
    assert isinstance(memory, str) == (words is not None), memory
    if words is None:
        return
    assert "\n" not in memory
    with pytest.raises(DataError, match=expected_words(words, suffix)):
        raise DataError(memory)


#: What is wrong with text itself: content of the edges, and words of the error or None.
TEXTS = {
    "unclosed quote": (
        'source,target\na,b\nb,"c\nc,d\nd,a\n',
        r"edges.csv, line 3, column 'target': Expected a closing quote for the one that begins",
    ),
    "unclosed quote far from the end": (
        'source,target\na,b\nb,"c\n' + "c,d\n" * 1_500_000,
        "line 3, column 'target': Expected a closing quote",
    ),
    "unclosed first cell": (
        'source,target\na,b\n"b,c\nc,d\n',
        "line 3, column 'source': Expected a closing quote",
    ),
    "too few cells": (EDGES + "b\n", r"line 7: Expected 2 columns \(got 1: 'b'\)"),
    "too many cells": (EDGES + "b,c,d\n", "line 7: Expected 2 columns"),
    "flaw after blank lines and quoted breaks": (
        'source,target,what\n\na,b,"two\nlines"\n\nb,zed,x\n',
        "line 6, column 'target'.*'zed'",
    ),
    "cells after blank lines and quoted breaks": (
        'source,target,what\n\na,b,"two\nlines"\n\nb\n',
        "line 6: Expected 3 columns",
    ),
    "another separator": (EDGES.replace(",", ";"), None),
    "no header": ("a,b\nb,c\nc,d\n", None),
    "old line breaks": (EDGES.replace("\n", "\r\n"), None),
    "no last line break": (EDGES.rstrip(), None),
    "nothing": ("", "Expected rows"),
    "blank": ("\n\n\n", "Expected rows"),
    "a header alone": ("source,target\n", "Expected at least one row|Expected rows"),
    "a workbook": ("PK\x03\x04", "seems to be an Excel workbook"),
    "binary": ("source,target\na\0,b\n", "a binary file, or UTF-16"),
    "spaces and comments": ("# Nodes: 3\n# From To\na  b\nb c\n c   d\n", None),
    "one space too many": ("u v\na b\n", r"columns 'u v'; the separator seems to be a space: save"),
    "a column twice": (EDGES.replace("et\n", "et,target\n"), "column 'target': Expected each"),
    "quoted ids": (EDGES.replace("a,b", '"a","b"'), None),
}


#: Edges, nodes, option, and whether each has a header.
HEADERS = {
    "ids that occur again": ("a,b\nb,c\nc,d\nd,a\n", NODES, "auto", (False, True)),
    "words in both": (
        "a,b\nb,c\nc,d\n",
        "a,1,red,x\nb,3,blue,y\nc,2,red,x\nd,7,red,y\n",
        "auto",
        (False, False),
    ),
    "names that no cell repeats": (
        EDGES.replace("source,target", "who,whom"),
        NODES.replace("id", "person"),
        "auto",
        (True, True),
    ),
    "a usual name that is an id, too": (
        EDGES + "source,a\n",
        NODES + "source,1,red,x\n",
        "auto",
        (True, True),
    ),
    "numbers in order are names": (
        EDGES,
        "person,0,1\na,0,1\nb,1,0\nc,1,0\nd,0,1\n",
        "auto",
        (True, True),
    ),
    "a word above numbers": (EDGES, "who,red\na,1\nb,2\nwho,3\nc,NA\nd,4\n", "auto", (True, True)),
    "as the user says": (
        "u,v\na,b\nb,c\nc,d\n",
        "u,f\nv,g\na,f\nb,g\nc,f\nd,g\n",
        "no",
        (False, False),
    ),
    "names that seem to be numbers": (
        "0,1\na,b\nb,c\nc,d\n",
        "0,1\na,1\nb,2\nc,4\nd,3\n",
        "yes",
        (True, True),
    ),
}


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("suffix", ["csv", "dat"])
def test_a_first_line_like_the_others_is_data(name, suffix, tmp_path):
    edges, nodes, header, has_header = HEADERS[name]
    write(tmp_path, "edges", edges, suffix)
    write(tmp_path, "nodes", nodes, suffix)
    options = {"header": header} if header != "auto" else {}
    memory, disk = both(tmp_path, options, tmp_path.parent / f"{tmp_path.name}-made")
    assert_alike(memory, disk)
    for stem, text, has in zip(("edges", "nodes"), (edges, nodes), has_header, strict=True):
        first = text.partition("\n")[0].replace(",", ", ")
        note = f"{stem}.{suffix} has no header: its first line was read as data ({first})"
        assert any(note in said for said in memory.notes) == (not has)
    assert len(memory.ids) == nodes.count("\n") - has_header[1]


ROWS = """id,a,b,c,d,e,f,g,h,i,label
n1,"1,234",12 %,"$3,400.00",yes,Rome,1,1 234 €,1'234,12 USD,x
n2,"5,678",7 %,$12,Y,rome,0.5,7 €,12,(4 USD),X
n3,"12,001",30 %,"($1,000)",No,ROME,2,12 000 €,1'234'000,3 USD,y
n4,"2,000",NA,$7,n,Oslo,\\N,8 €,2,-2 USD,nan
n5,"3,000",1 %,$9,yes,Oslo,3,9 €,-7,5 USD,NA
n6,"4,000",2 %,$5,no,Rome,4,6 €,NA,6 USD,.
"""
RING = "source,target\n" + "".join(f"n{1 + k},n{1 + (k + 1) % 6}\n" for k in range(6))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "de.csv"])
def test_cells_as_people_write_them(suffix, tmp_path):
    """Units, thousands, gaps and spellings; one reading of each column, which notes tell."""
    (tmp_path / "edges.csv").write_text(RING)
    rows = list(csv.reader(io.StringIO(ROWS)))
    if suffix == "parquet":
        columns = {head: list(cells) for head, *cells in zip(*rows, strict=True)}
        pyarrow.parquet.write_table(pa.table(columns), tmp_path / "nodes.parquet")
    elif suffix == "csv":
        (tmp_path / "nodes.csv").write_text(ROWS)
    else:
        cells = [[c.replace(".", "#").replace(",", ".").replace("#", ",") for c in r] for r in rows]
        text = "\n".join(";".join(row) for row in cells)
        (tmp_path / "nodes.csv").write_text(text.replace(";,", ";."))
    memory, disk = both(tmp_path, {}, tmp_path.parent / f"{tmp_path.name}-made")
    assert_alike(memory, disk)
    assert not isinstance(memory, str), memory
    x = dict(zip(memory.feature_names, memory.data.x.T.tolist(), strict=True))
    assert x["b"] == [12, 7, 30, 7, 1, 2]
    assert x["c"] == [3400, 12, -1000, 7, 9, 5]
    assert x["i"] == [12, -4, 3, -2, 5, 6]
    assert x["d"] == [1, 1, 0, 0, 1, 0]
    assert x["g"] == [1234, 7, 12000, 8, 9, 6]
    assert x["h"] == [1234, 12, 1234000, 2, -7, 12]
    assert x["e=Rome"] == [1, 1, 1, 0, 0, 1]
    assert x["f"] == [1, 0.5, 2, 2, 3, 4]
    assert memory.classes == ("X", "y")
    assert memory.data.y.tolist() == [0, 0, 1, -1, -1, -1]
    notes = "\n".join(memory.notes)
    assert r"'NA' (1 in label, 1 in b, 1 in h)" in notes
    assert "missing_words" in notes
    assert "'rome' and 'Rome' in e" in notes
    assert "b ('12 %')" in notes
    if suffix == "parquet":  # nothing says whether 1,234 is more than two
        assert "a" not in x
        assert "can be read in two, were left out in nodes.parquet: a ('1,234')" in notes
    elif suffix == "csv":  # beside semicolons, 1.234 stays a number with a point
        assert x["a"] == [1234, 5678, 12001, 2000, 3000, 4000]


def test_words_for_gaps_can_be_named(tmp_path):
    """An empty list: only empty cells are gaps; a pair of + and - never is one."""
    rows = "id,f,sign,label\na,1,+,None\nb,?,-,cat\nc,3,+,None\nd,4,-,\n"
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "nodes.csv").write_text(rows)
    made = tmp_path.parent / f"{tmp_path.name}-made"
    memory, disk = both(tmp_path, {}, made)
    assert_alike(memory, disk)
    assert memory.classes == ("cat",)
    assert memory.data.x.shape[1] == 4
    memory, disk = both(tmp_path, {"missing_words": ["?"]}, made.with_name("again"))
    assert_alike(memory, disk)
    assert memory.classes == ("None", "cat")
    memory, disk = both(tmp_path, {"missing_words": ""}, made.with_name("none"))
    assert_alike(memory, disk)
    assert "line 3, column 'f': Expected a number (got '?')" in memory


ENCODINGS = ("utf-8-sig", "utf-16", "latin-1")
#: What it is does not show in other encodings, or it is too long to be read twice.
PLAIN = ("binary", "a workbook", "unclosed quote far from the end")


@pytest.mark.parametrize(
    ("name", "encoding"),
    [(name, "utf-8") for name in TEXTS]
    + [(name, ENCODINGS[k % 3]) for k, name in enumerate(TEXTS) if name not in PLAIN],
)
def test_flawed_text_has_one_verdict(name, encoding, tmp_path):
    text, words = TEXTS[name]
    (tmp_path / "edges.csv").write_bytes(text.encode(encoding) if text else b"")
    (tmp_path / "nodes.csv").write_bytes(NODES.replace("red", "grün").encode("latin-1"))
    memory, disk = both(tmp_path, {}, tmp_path.parent / f"{tmp_path.name}-made")
    assert_alike(memory, disk)
    if words is not None:
        with pytest.raises(DataError, match=words):
            raise DataError(memory)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_is_no_text(encoding, tmp_path):
    """Before a comment, and before the name of the first column."""
    edges = "# made by hand\nsource\ttarget\na\tb\nc\td\n"
    (tmp_path / "edges.txt").write_bytes(edges.encode(encoding))
    (tmp_path / "nodes.csv").write_bytes(NODES.replace("id,", "key,").encode(encoding))
    memory, disk = both(tmp_path, {"id_column": "key"}, tmp_path.parent / f"{tmp_path.name}-made")
    assert_alike(memory, disk)
    assert list(memory.ids) == list("abcd")
    assert memory.num_edges == 2


def test_a_foreign_letter_far_from_the_beginning(tmp_path):
    """The encoding is that of the whole file."""
    rows = "".join(f"n{i % 50},n{i % 49}\n" for i in range(200_000))
    (tmp_path / "edges.csv").write_bytes(("source,target\n" + rows + "n0,é\n").encode("latin-1"))
    memory, disk = both(tmp_path, {}, tmp_path.parent / f"{tmp_path.name}-made")
    assert_alike(memory, disk)
    assert memory.ids[-1] == "é"
