"""Notes that save a day: each where it belongs, the same in memory and on disk, and no other."""

import csv
import io

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from longnn.data import load
from longnn.data._hints import _fewest_errors, _largest_r2
from tests.data.test_reader_suite import assert_alike, both

NODES = 120
RNG = np.random.default_rng(0)
AGE = RNG.integers(18, 80, NODES)
SIZE = RNG.normal(size=NODES).round(3)
CLASS = np.where(RNG.random(NODES) < 0.5, "cat", "dog")
PRICE = (100 + 20 * SIZE + RNG.normal(size=NODES) * 20).round(2)
STATE = RNG.choice(["ny", "ca", "tx"], NODES)


@pytest.mark.parametrize("seed", range(8))
def test_no_tree_is_better_than_its_bound(seed):
    """So a column that the bound clears needs no tree, and most columns do not."""
    rng = np.random.default_rng(seed)
    classes, levels = int(rng.integers(2, 5)), int(rng.choice([3, 20, 10**6]))
    x = rng.integers(levels, size=(200, int(rng.choice([1, 3])))).astype(float)
    y = (x[:, 0] * classes // levels + (rng.random(200) < 0.1)).astype(int)
    for leaves in (2, 2 * classes, 40):
        tree = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0).fit(x, y)
        assert _fewest_errors(x, y, leaves) <= (tree.predict(x) != y).sum()
    assert _fewest_errors(rng.random((200, 1)), rng.integers(2, size=200), 4) > 20
    best = DecisionTreeRegressor().fit(x, y).score(x, y)
    assert _largest_r2(x, y) == pytest.approx(best)


def write_table(folder, columns, header=None):
    rows = zip(range(NODES), *columns.values(), strict=True)
    text = io.StringIO()
    csv.writer(text).writerows([header or ["id", *columns], *rows])
    (folder / "nodes.csv").write_text(text.getvalue())
    lines = [f"{i},{(i + step) % NODES}" for i in range(NODES) for step in (1, 7)]
    (folder / "edges.csv").write_text("source,target\n" + "\n".join(lines) + "\n")


def with_cells(values, cell, rows):
    values = values.tolist()
    for row in rows:
        values[row] = cell
    return values


PLAIN = {"age": AGE, "size": SIZE, "state": STATE, "label": CLASS}
HINTS = {
    "nothing": (PLAIN, None),
    "numbers": ({**PLAIN, "label": PRICE}, None),
    "a copy of the label": ({**PLAIN, "kind": CLASS}, r"one column alone \(kind\).*drop_columns"),
    "a number that follows the label": (
        {**PLAIN, "score": np.where(CLASS == "cat", SIZE - 9, SIZE + 9)},
        r"one column alone \(score\)",
    ),
    "the target in another unit": (
        {**PLAIN, "cents": 100 * PRICE + 3, "label": PRICE},
        r"one column alone \(cents\)",
    ),
    "the target by another measure": (
        {**PLAIN, "log": np.exp(SIZE), "label": SIZE},
        r"one column alone \(size, log\)",
    ),
    "sentinels of the target": (
        {**PLAIN, "label": with_cells(PRICE, -9999, (3, 40, 77, 78, 79, 80, 81))},
        r"stand for gaps \(-9999 in label\)",
    ),
    "numbers that may be classes": (
        {**PLAIN, "label": RNG.choice([0.5, 1.5, 2.5], NODES)},
        "3 distinct numbers and was taken for a quantity.*task='classification'",
    ),
    "long numbers": (
        {**PLAIN, "customer": 10**14 + 977 * RNG.permutation(NODES)},
        r"seem to be ids \(customer\).*drop_columns",
    ),
    "row numbers": ({**PLAIN, "row": 5 + RNG.permutation(NODES)}, r"seem to be ids \(row\)"),
    "sentinels": (
        {**PLAIN, "age": with_cells(AGE, -999, (3, 40, 77))},
        r"stand for gaps \(-999 in age\).*missing_words=default,NUMBER",
    ),
    "an outlier of the target": (
        {**PLAIN, "label": with_cells(PRICE, 1e9, (5,))},
        r"1 value of 'label', such as 1e\+09, will decide every fit.*outliers=drop",
    ),
    "unseen values": (
        {
            **PLAIN,
            "state": np.where(np.arange(NODES) < 60, STATE, np.char.add("new", STATE)),
            "split": np.where(
                np.arange(NODES) < 40, "train", np.where(np.arange(NODES) < 60, "val", "test")
            ),
        },
        r"values that no training node has \(state\).*drop_columns",
    ),
}


@pytest.mark.parametrize("name", HINTS)
def test_a_note_where_it_belongs(name, tmp_path):
    columns, words = HINTS[name]
    write_table(tmp_path, columns)
    memory, disk = both(tmp_path, {}, tmp_path.parent / f"{tmp_path.name}-made")
    assert_alike(memory, disk)
    notes = [note for note in memory.notes if "two-way" not in note and "Columns:" not in note]
    if words is None:
        assert notes == []
    else:
        (note,) = notes
        with pytest.raises(AssertionError, match=words):
            raise AssertionError(note)


def test_what_the_notes_advise(tmp_path):
    """Each remedy works in both backings, and leaves no note."""
    columns = {
        **PLAIN,
        "kind": CLASS,
        "age": with_cells(AGE, -999, (3, 40, 77)),
        "label": with_cells(PRICE, 1e9, (5,)),
    }
    write_table(tmp_path, columns)
    options = {"drop_columns": "kind", "missing_words": "default,-999", "outliers": "drop"}
    made = tmp_path.parent / f"{tmp_path.name}-made"
    memory, disk = both(tmp_path, options, made)
    assert_alike(memory, disk)
    assert memory.data.y.isnan().nonzero().tolist() == [[5]]
    assert "age missing" in memory.feature_names
    assert not [name for name in memory.feature_names if name.startswith("kind")]
    notes = "\n".join(memory.notes)
    assert "Far from all others, and taken as unknown: 1 value of 'label', such as 1e+09." in notes
    assert "'-999' (3 in age)" in notes
    assert "drop_columns" not in notes
    memory, disk = both(tmp_path, {"drop_columns": "kin"}, made.with_name("again"))
    assert memory == disk
    assert "Expected a feature column 'kin'" in memory


def test_the_index_that_pandas_writes(tmp_path):
    """It is no feature, whatever the first row is called; other first columns are kept."""
    write_table(tmp_path, PLAIN)
    plain = load(tmp_path)
    for name in ("", "Unnamed: 0"):
        write_table(
            tmp_path,
            {"id": np.arange(NODES), **PLAIN},
            [name, "id", *PLAIN],
        )
        edges = (tmp_path / "edges.csv").read_text().splitlines()
        rows = [f"{name},a,b", *(f"{i},{edge}" for i, edge in enumerate(edges[1:]))]
        (tmp_path / "edges.csv").write_text("\n".join(rows) + "\n")
        memory, disk = both(tmp_path, {}, tmp_path.parent / f"{tmp_path.name}-made{len(name)}")
        assert_alike(memory, disk)
        assert memory.feature_names == plain.feature_names
        assert memory.data.edge_index.equal(plain.data.edge_index)
        notes = "\n".join(memory.notes)
        assert "left out: Unnamed: 0 (the index of a data frame)" in notes
        assert "Columns of edges.csv not used: Unnamed: 0" in notes
