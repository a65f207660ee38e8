"""Columns of every kind become features, as scikit-learn's transformers make them."""

import json

import numpy as np
import pyarrow as pa
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from longnn.data import DataError
from longnn.data._encoding import Encoding
from longnn.data._files import load_files
from longnn.data._tables import Table


def table(**columns):
    return Table({name: pa.array(cells) for name, cells in columns.items()}, frame="nodes")


def through_json(encoding):
    return Encoding.from_dict(json.loads(json.dumps(encoding.to_dict(), allow_nan=False)))


def dense(x):
    assert x is not None
    return x.to_dense().numpy()


WORDS = ["red apple pie", "green apple", "red car", "", "blue car and a pie", "green car"]


def messy(rng, rows):
    cells = {
        "age": [None if rng.random() < 0.2 else float(rng.normal()) for _ in range(rows)],
        "city": [None if rng.random() < 0.1 else "abcdefghij"[int(rng.geometric(0.4)) % 10]
                 for _ in range(rows)],
        "about": [WORDS[i] for i in rng.integers(len(WORDS), size=rows)],
    }  # fmt: skip
    text = {k: ["NA" if c is None else str(c) for c in v] for k, v in cells.items()}
    return table(**text), cells


def test_equals_scikit_learn_on_both_tables():
    rng = np.random.default_rng(0)
    first, raw = messy(rng, 60)
    second, other = messy(rng, 25)
    second.columns["city"] = pa.array(["zz", *second.columns["city"].to_pylist()[1:]])
    other["city"][0] = "zz"
    encoding, x = Encoding.fit(first, text_columns=["about"])
    imputer = SimpleImputer(strategy="median", add_indicator=True).fit(column(raw["age"]))
    onehot = OneHotEncoder(
        min_frequency=2, max_categories=50, handle_unknown="infrequent_if_exist"
    ).fit(np.array([[c] for c in raw["city"] if c is not None], dtype=object))
    words = TfidfVectorizer(max_features=2000, min_df=2).fit(raw["about"])
    for made, cells in ((dense(x), raw), (dense(through_json(encoding).apply(second)), other)):
        known = np.array([c is not None for c in cells["city"]])
        named = [c if c is not None else "a" for c in cells["city"]]
        expected = np.hstack(
            [
                imputer.transform(column(cells["age"])),
                onehot.transform(np.array(named, dtype=object)[:, None]).toarray() * known[:, None],
                ~known[:, None],
                words.transform(cells["about"]).toarray(),
            ]
        )
        np.testing.assert_allclose(made, expected, rtol=1e-6, atol=1e-7)
    assert np.array_equal(dense(encoding.apply(first)), dense(x))


@pytest.mark.parametrize(("kinds", "rows"), [(60, 400), (50, 3000), (49, 3000), (200, 900), (3, 9)])
def test_rare_values_are_those_of_scikit_learn(kinds, rows):
    cells = [f"v{k}" for k in np.random.default_rng(kinds).zipf(1.3, rows) % kinds]
    encoding, _ = Encoding.fit(table(city=cells), category_columns=["city"])
    onehot = OneHotEncoder(
        min_frequency=int(np.clip(np.ceil(0.01 * rows), 2, 10)), max_categories=50,
        handle_unknown="infrequent_if_exist",
    ).fit(np.array(cells)[:, None])  # fmt: skip
    expected = [name.replace("x0_", "city=") for name in onehot.get_feature_names_out()]
    expected = [name.replace("infrequent_sklearn", "(other)") for name in expected]
    assert list(encoding.feature_names) == expected


def column(cells):
    return np.array([[np.nan if c is None else c] for c in cells])


@pytest.mark.parametrize("word", ["", "NA", "n/a", "NaN", "NULL", "None", "?", "-", " na "])
def test_words_for_missing(word):
    encoding, x = Encoding.fit(table(f=["1", word, "4"], g=["x", "y", "x"]))
    assert encoding.feature_names[:2] == ("f", "f missing")
    assert dense(x)[:, :2].tolist() == [[1, 0], [2.5, 1], [4, 0]]
    after = encoding.apply(table(f=["7", "8"], g=["x", "x"]))  # no gap: the flag stays, zero
    assert dense(after)[:, :2].tolist() == [[7, 0], [8, 0]]


def test_a_gap_without_a_flag_is_filled():
    encoding, _ = Encoding.fit(table(f=["1", "2", "9"]))
    assert dense(encoding.apply(table(f=["", "5"]))).tolist() == [[2], [5]]


def test_booleans():
    encoding, x = Encoding.fit(
        table(
            a=["yes", "no", "YES", "no"],
            b=["True", "", "false", "true"],
            c=[True, None, True, False],
        )
    )
    assert [row[1] for row in encoding.rows()] == ["boolean"] * 3
    assert encoding.feature_names == ("a", "b", "b missing", "c", "c missing")
    assert dense(x)[1].tolist() == [0, 1, 1, 1, 1]
    assert dense(x)[2].tolist() == [1, 0, 0, 1, 0]
    with pytest.raises(
        DataError, match=r"nodes, row 2, column 'a': Expected true .* \(got 'maybe'"
    ):
        encoding.apply(table(a=["yes", "maybe"], b=["true", "true"], c=[True, True]))


def test_categories_rare_missing_and_unseen():
    cities = ["Paris"] * 5 + ["Rome"] * 4 + ["Oslo", "Lima", ""]
    encoding, x = Encoding.fit(table(city=cities))
    assert encoding.feature_names == ("city=Paris", "city=Rome", "city=(other)", "city missing")
    assert dense(x).sum(0).tolist() == [5, 4, 2, 1]
    new = dense(encoding.apply(table(city=["Bonn", "Rome", "?"])))
    assert new.tolist() == [[0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    without, _ = Encoding.fit(table(city=["Paris", "Rome"] * 3))
    assert dense(without.apply(table(city=["Bonn"]))).tolist() == [[0, 0]]


def test_numbers_are_categories_if_named_so():
    cells = table(zip=["1", "2", "1", "2", "2", ""], n=[1, 2, 1, 2, 1, 2])
    encoding, _ = Encoding.fit(cells, category_columns=["zip", "n"])
    assert encoding.feature_names == ("zip=1", "zip=2", "zip missing", "n=1", "n=2")
    assert Encoding.fit(cells)[0].feature_names == ("zip", "zip missing", "n")


def test_at_most_fifty_features_a_column():
    cells = [f"v{i:03}" for i in range(300) for _ in range(300 - i)]
    encoding, x = Encoding.fit(table(c=cells))
    assert len(encoding.feature_names) == 50
    assert encoding.feature_names[-1] == "c=(other)"
    assert "c=v000" in encoding.feature_names
    assert (dense(x).sum(1) == 1).all()


@pytest.mark.parametrize("kind", ["text", "date", "timestamp", "zone", "dots", "padded dots"])
def test_dates(kind):
    days = np.array(["1970-01-02", "2024-05-31", "2000-02-29"], dtype="datetime64[D]")
    cells = [str(d) for d in days]
    if kind == "date":
        cells = pa.array(days)
    elif kind == "timestamp":
        cells = pa.array(days.astype("datetime64[ns]"))
    elif kind == "dots":
        cells = [f"{d.day}.{d.month}.{d.year}" for d in days.tolist()]
    elif kind == "padded dots":
        cells = [f"{d:%d.%m.%Y} 00:00" for d in days.tolist()]
    elif kind == "zone":
        cells = [f"{d}T02:00:00+02:00" for d in days]
    encoding, x = Encoding.fit(table(d=cells))
    assert encoding.feature_names == ("d days", "d year sin", "d year cos")
    t = days.astype(np.int64)
    angle = 2 * np.pi * t / 365.2425
    np.testing.assert_allclose(dense(x), np.stack([t, np.sin(angle), np.cos(angle)], 1), atol=1e-5)


def test_times_and_gaps_of_dates():
    cells = ["2024-05-31 06:00", "", "2024-06-01T18:00:00"]
    encoding, x = Encoding.fit(table(d=cells))
    assert encoding.feature_names[3:] == ("d day sin", "d day cos", "d missing")
    np.testing.assert_allclose(dense(x)[[0, 2], 3], [1, -1], atol=1e-6)
    median = (np.datetime64("2024-06-01T00:00") - np.datetime64("1970-01-01")) / np.timedelta64(
        1, "D"
    )
    assert dense(x)[1, 0] == median
    assert dense(x)[1, -1] == 1


def test_what_is_left_out_and_why():
    cells = table(
        name=[f"Person {i}" for i in range(6)],
        f=list("123456"),
        same=["1", "2", "3", "4", "5", "6.0"],
        constant=["7"] * 6,
        empty=[""] * 6,
        nothing=[None] * 6,
        when=["12/31/2024", "1/1/2024", "1/2/2024", "1/3/2024", "1/4/2024", "1/5/2024"],
    )
    encoding, _ = Encoding.fit(cells)
    assert encoding.feature_names == ("f",)
    assert {name: done for name, kind, done in encoding.rows() if kind == "left out"} == {
        "name": "almost every value is different; to use its words: text_columns=name",
        "same": "the same as f",
        "constant": "constant",
        "empty": "empty",
        "nothing": "empty",
        "when": "to use its dates, write them as 2024-05-31",
    }
    assert encoding.note.startswith("Columns: left out: name (almost every value is different")
    assert encoding.note.endswith("; and 1 more.")
    assert through_json(encoding) == encoding


def test_constant_columns_stay_if_there_are_no_others():
    encoding, x = Encoding.fit(table(f=["3"], g=["5"]))
    assert dense(x).tolist() == [[3, 5]]
    assert encoding.note == ""


def test_text_is_sparse_where_it_is():
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(400)]
    texts = [" ".join(rng.choice(words, 12)) for _ in range(300)]
    encoding, x = Encoding.fit(
        table(about=texts, f=[str(i % 7) for i in range(300)]), text_columns=["about"]
    )
    assert x is not None
    assert x.layout is torch.sparse_csr
    reference = TfidfVectorizer(max_features=2000, min_df=2)
    expected = reference.fit_transform(texts).toarray()
    np.testing.assert_allclose(dense(x)[:, :-1], expected, rtol=1e-6)
    assert encoding.feature_names[0] == f"about: {reference.get_feature_names_out()[0]}"
    _, y = Encoding.fit(table(about=texts[:5], f=list("12345")), text_columns=["about"])
    assert y is not None
    assert y.layout is torch.strided


def test_text_without_shared_words_is_left_out():
    encoding, _ = Encoding.fit(table(t=["one", "two", ""], f=list("123")), text_columns=["t"])
    assert ("t", "left out", "no word occurs at two nodes") in encoding.rows()


def test_lists_of_numbers_with_gaps():
    lists = pa.array([[1.0, 2.0], None, [3.0, None], [5.0, 8.0]])
    encoding, x = Encoding.fit(Table({"v": lists}))
    assert encoding.feature_names == ("v[0]", "v[1]", "v missing")
    assert dense(x).tolist() == [[1, 2, 0], [3, 5, 1], [3, 5, 1], [5, 8, 0]]
    with pytest.raises(DataError, match="a list of 2 numbers"):
        encoding.apply(Table({"v": pa.array([[1.0, 2.0], [1.0]])}))


@pytest.mark.parametrize(
    ("cells", "message"),
    [



        (["2024-05-31", "2024-13-01", ""], r"row 2, column 'f': Expected a date such.*24-13-01'"),
        (["31.12.2024", "31.13.2024", ""], r"row 2, column 'f': Expected a date such.*31.13.2024'"),
        (["2024-05-31", "soon", "2024-06-01"], r"row 2, column 'f': Expected a date .*got 'soon'"),
        ([{"a": 1}, {"a": 2}], r"column 'f': Expected lists of numbers \(got struct"),
        ([b"\x00", b"\x01"], r"column 'f': Expected numbers, text, dates .*\(got binary\)"),
    ],
)  # fmt: skip
def test_cells_that_do_not_fit(cells, message):
    with pytest.raises(DataError, match=message):
        Encoding.fit(table(f=cells))


@pytest.mark.parametrize(
    "cells", [["1", "", "2"], ["a", "?", "a"], [1.0, None, 2.0], [1.0, np.nan, 2.0]]
)
def test_gaps_can_be_errors(cells):
    with pytest.raises(DataError, match=r"row 2, column 'f': Expected a value .*missing='fill'"):
        Encoding.fit(table(f=cells), missing="error")
    Encoding.fit(table(f=["1", "2"]), missing="error")


def test_apply_names_what_is_missing_and_ignores_what_is_new():
    encoding, _ = Encoding.fit(table(f=["1", "2"], g=["3", "5"]))
    assert dense(encoding.apply(table(h=["x"], g=["4"], f=["0"]))).tolist() == [[0, 4]]
    with pytest.raises(DataError, match=r"missing column 'g'; nodes has f, h"):
        encoding.apply(table(f=["1"], h=["2"]))
    with pytest.raises(DataError, match=r"Expected a number \(got 'x'\)"):
        encoding.apply(table(f=["x"], g=["2"]))


@pytest.mark.parametrize("fields", [{}, {"columns": [{"kind": "magic"}]}, {"columns": [{"x": 1}]}])
def test_refuses_what_is_no_encoding(fields):
    with pytest.raises(DataError, match="Expected an encoding of columns"):
        Encoding.from_dict(fields)


def test_options_name_columns(write):
    edges = write("e.csv", "source,target\na,b\nb,c\n")
    nodes = write("n.csv", "id,f,about,label\na,1,red car,x\nb,2,red pie,y\nc,3,blue pie,x\n")
    d = load_files(edges, nodes, feature_columns=["f"], text_columns=["about"])
    assert d.feature_names == ("f", "about: pie", "about: red")
    assert load_files(edges, nodes, text_columns="about").feature_names == d.feature_names
    cases = (
        ({"text_columns": ["nope"]}, "a text column 'nope'"),
        ({"category_columns": ["nope"]}, "a category column 'nope'"),
        ({"text_columns": ["label"]}, r"`text_columns` among the features .*'label'"),
        ({"text_columns": ["f"], "category_columns": ["f"]}, r"column 'f': .*got it in both"),
        ({"missing": "drop"}, r"`missing` to be one of \('fill', 'error'\) \(got 'drop'\)"),
    )
    for options, message in cases:
        with pytest.raises(DataError, match=message):
            load_files(edges, nodes, **options)
