"""Tables as people have them, from end to end: one clear line for what cannot be read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from longnn.data import DataError
from longnn.data._files import load_files
from tests.data.examples import Write

EDGES = "source,target\na,b\nb,c\nc,d\n"


def rows(header: str, *lines: str) -> str:
    return "\n".join([header, *lines]) + "\n"


def test_several_columns_of_0_and_1_are_labels(write: Write) -> None:
    nodes = rows("id,f,red,round", "a,1,1,true", "b,2,0,", "c,4,,False", "d,3,,")
    d = load_files(write("e.csv", EDGES), write("n.csv", nodes), label_column=["red", "round"])
    assert d.task == "multilabel"
    assert d.classes == ("red", "round")
    assert d.targets == ()
    assert d.feature_names == ("f",)
    expected = torch.tensor([[1, 1], [0, torch.nan], [torch.nan, 0], [torch.nan, torch.nan]])
    torch.testing.assert_close(d.data.y, expected, equal_nan=True)
    assert d.labelled.tolist() == [True, True, True, False]
    as_numbers = load_files(
        write("e.csv", EDGES),
        write("n.csv", nodes),
        label_column=["red", "round"],
        task="regression",
    )
    assert as_numbers.task == "regression"
    assert as_numbers.targets == ("red", "round")


def test_several_columns_of_numbers_are_quantities(write: Write) -> None:
    nodes = rows("id;f;price;rent", "a;1;1,5;3", "b;2;;2", "c;4;0;NA", "d;3;1;1")
    d = load_files(write("e.csv", EDGES), write("n.csv", nodes), label_column=["price", "rent"])
    assert d.task == "regression"
    assert d.targets == ("price", "rent")
    assert d.classes == ()
    nan = float("nan")
    expected = torch.tensor([[1.5, 3], [nan, 2], [0, nan], [1, 1]])
    torch.testing.assert_close(d.data.y, expected, equal_nan=True)


def test_one_label_column_by_text_or_list(write: Write) -> None:
    edges, nodes = (
        write("e.csv", EDGES),
        write("n.csv", rows("id,f,k", *["a,1,x", "b,2,y", "c,3,"], "d,9,y")),
    )
    one, same = (load_files(edges, nodes, label_column=name) for name in ("k", ["k"]))
    assert one.classes == same.classes == ("x", "y")
    assert one.data.y.tolist() == [0, 1, -1, 1]
    single = rows("id,f,k", "a,1,1", "b,2,0", "c,3,", "d,9,1")
    yes_or_no = load_files(edges, write("m.csv", single), label_column="k", task="multilabel")
    assert yes_or_no.classes == ("k",)
    assert yes_or_no.data.y.shape == (4, 1)


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (["a,1,0,x"], {}, r"n\.csv, line 2, column 'q': Expected a finite number, true.*'x'"),
        (["a,1,0,nan"], {}, r"line 2, column 'q': Expected a finite number.*got 'nan'"),
        (["a,1,0,2"], {"task": "multilabel"}, r"line 2, column 'q': Expected 0, 1, .*\(got 2\)"),
        (["a,1,0,1"], {"task": "classification"}, r"one label column for class.*\(got p, q"),
        (["a,1,0,1"], {"label_column": ["p", "z"]}, r"a label column 'z' \(got the columns 'id'"),
    ],
)  # fmt: skip
def test_labels_that_do_not_fit(
    lines: list[str], options: dict[str, Any], message: str, write: Write
) -> None:
    nodes = rows("id,f,p,q", *lines, "b,2,1,0", "c,3,0,1", "d,4,1,1")
    options = {"label_column": ["p", "q"], **options}
    with pytest.raises(DataError, match=message) as caught:
        load_files(write("e.csv", EDGES), write("n.csv", nodes), **options)
    assert "\n" not in str(caught.value)


def test_optional_labels_are_all_there_or_none(write: Write) -> None:
    edges = write("e.csv", EDGES)
    nodes = write("n.csv", rows("id,f,p", "a,1,0", "b,2,1", "c,3,0", "d,4,1"))
    d = load_files(edges, nodes, label_column=["p", "q"], optional_columns=["label_column"])
    assert not d.labelled.any()


MESSY = {
    "typo": (
        ["a,1,x", "b,2,x", "c,abc,y", "d,4,y"],
        r"n\.csv, line 4, column 'f': Expected a number \(got 'abc'\)\. Correct it, or name",
    ),
    "infinite": (["a,1,x", "b,-inf,x", "c,3,y", "d,4,y"], r"line 3, column 'f': .*got '-inf'"),
    "broken date": (
        ["a,1,2024-01-01", "b,2,2024-02-30", "c,3,2024-03-01", "d,4,"],
        r"line 3, column 'g': Expected a date such as 2024-05-31, .*got '2024-02-30'",
    ),
    "commas in numbers": (
        ['a,1,"1,000"', 'b,2,"2,500"', 'c,3,"3,000"', "d,4,7"],
        r"line 2, column 'g': Expected a number \(got '1,000'\)",
    ),
    "nothing known": (
        ["a,,", "b,,", "c,NA,?", "d,,"],
        "Expected feature columns in n.csv .got none",
    ),
    "cut short": (["a,1,x", "b,2,x", "c,3"], r"line 4: Expected 3 columns \(got 2: 'c,3'\)"),
}


@pytest.mark.parametrize("case", MESSY)
def test_one_clear_line(case: str, write: Write) -> None:
    lines, message = MESSY[case]
    nodes = write("n.csv", rows("id,f,g", *lines))
    with pytest.raises(DataError, match=message) as caught:
        load_files(write("e.csv", EDGES), nodes, features="columns")
    assert "\n" not in str(caught.value)


def test_the_remedies_work(write: Write) -> None:
    edges = write("e.csv", EDGES)
    nodes = write("n.csv", rows("id,f,g", "a,1,5", "b,abc,6", "c,1,7", "d,1,8"))
    d = load_files(edges, nodes, category_columns=["f"])
    assert d.feature_names == ("f=1", "f=(other)", "g")
    assert load_files(edges, nodes, feature_columns=["g"]).feature_names == ("g",)
    gaps = write("m.csv", rows("id,f,g", "a,1,5", "b,,6", "c,1,7", "d,1,8"))
    with pytest.raises(
        DataError, match=r"m\.csv, line 3, column 'f': Expected a value \(got an em"
    ):
        load_files(edges, gaps, missing="error")
    assert load_files(edges, gaps, feature_columns=["g"], missing="error").num_features == 1


def test_ids_with_spaces_and_a_column_without_a_name(write: Write) -> None:
    edges = write("e.csv", "from;to\nNew York;San José\nSan José;Rome\n")
    nodes = write("n.csv", "city;pop;\nNew York;8,3;1\nSan José;1;2\n Rome ;2,8;4\n")
    d = load_files(edges, nodes, id_column="city")
    assert list(d.ids) == ["New York", "San José", "Rome"]
    assert d.feature_names == ("pop", "column_3")
    np.testing.assert_allclose(d.data.x[:, 0], [8.3, 1, 2.8], rtol=1e-6)


def test_one_note_for_all_columns(write: Write) -> None:
    """However many columns there are, the note stays short."""
    header = ",".join(["id", *(f"c{i}" for i in range(40)), "f"])
    lines = [",".join([name, *["7"] * 40, str(i)]) for i, name in enumerate("abcd")]
    d = load_files(write("e.csv", EDGES), write("n.csv", rows(header, *lines)))
    (note,) = [note for note in d.notes if note.startswith("Columns: ")]
    assert "c0 (constant)" in note
    assert note.endswith("and 35 more.")
    assert d.encoding is not None
    assert len(d.encoding.rows()) == 41
