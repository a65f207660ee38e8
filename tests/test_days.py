"""Stories of time, groups and weights, from files to an answer, in memory and on disk.

A table of sales in shops of several states over the years; the answer depends on all of them.
"""

import numpy as np
import pandas
import pytest

import longnn
from longnn.data import Source, load
from longnn.report import text_summary
from tests.commands import succeed, without_report

NODES = 300
SETTINGS = {"epochs": 12, "degree": 2, "placement": "features", "device": "cpu", "preset": "fast"}


@pytest.fixture(scope="module")
def shops(tmp_path_factory):
    """A folder with edges and nodes; later shops are the last rows."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("days") / "shops"
    folder.mkdir()
    size, state = rng.normal(size=NODES), rng.integers(10, size=NODES)
    year = np.sort(rng.integers(2014, 2024, size=NODES))
    sales = 3 * size + 0.3 * (year - 2014) + rng.normal(size=NODES) / 2
    nodes = pandas.DataFrame(
        {
            "id": [f"s{i}" for i in range(NODES)],
            "size": size.round(3),
            "state": [f"state {k}" for k in state],
            "town": [f"town {k}-{i % 2}" for i, k in enumerate(state)],
            "opened": [f"{y}-0{1 + i % 9}-01" for i, y in enumerate(year)],
            "year": year,
            "weight": rng.integers(0, 4, size=NODES),
            "sales": sales.round(3),
            "grows": np.where(sales > 1.5, "yes", "no"),
        }
    )
    nodes.to_csv(folder / "nodes.csv", index=False)
    ends = rng.integers(NODES, size=(2, 3 * NODES))
    edges = pandas.DataFrame({"source": ends[0], "target": ends[1]})[ends[0] != ends[1]]
    ("s" + edges.astype(str)).to_csv(folder / "edges.csv", index=False)
    return folder


@pytest.fixture(scope="module", params=["memory", "disk"])
def backing(request):
    return request.param


def trained(folder, backing, options, cache, **settings):
    source = Source.resolve(folder, options={"name": "shops", **options})
    memory = 1 << 10 if backing == "disk" else None
    return longnn.train(source, {**SETTINGS, **settings}, memory=memory, cache=cache)


def table_of(folder):
    return pandas.read_csv(folder / "nodes.csv", index_col="id", dtype={"year": int})


def sides(run, values, repeat=0):
    """The values of the nodes of each set of a repeat."""
    split = run.splits[repeat]
    return [set(values[mask.numpy()]) for mask in (split.train, split.val, split.test)]


@pytest.mark.parametrize(
    ("column", "at"), [("year", None), ("year", "2019,2021"), ("opened", "2020,2021-07")]
)
def test_sales_by_year(shops, backing, column, at, tmp_path):
    """The past trains, and what is learned and said of it is the same on both backings."""
    options = {"label_column": "sales", "time_column": column, "feature_columns": "size,town"}
    options |= {} if at is None else {"split_at": at}
    run = trained(shops, backing, options, tmp_path, repeat=2, known_answers="all")
    past, following, last = sides(run, table_of(shops)[column].to_numpy())
    assert max(past) < min(following)
    assert max(following) < min(last)
    if at == "2019,2021":
        assert (min(following), min(last)) == (2019, 2021)
    assert [split.sizes for split in run.splits] == [run.splits[0].sizes] * 2
    text = "\n".join(text_summary(run.record))
    assert "of 2 runs on one time-ordered split" in text
    assert "The split is by time" in text
    assert f"Split by time, column '{column}'" in "\n".join(run.record.data.notes)
    # Of a drift that validation nodes show, known answers of the past alone make up for much.
    plain = {one.name: one.summary["r2"].mean for one in run.record.baselines}["plain"]
    assert run.record.score("test").mean > plain
    assert {name for name, *_ in run.record.data.columns} == {"size", "town"}


def test_a_split_by_state(shops, backing, tmp_path):
    options = {"label_column": "grows", "group_column": "state", "drop_columns": "sales"}
    run = trained(shops, backing, options, tmp_path, repeat=3, baselines=False)
    states = table_of(shops)["state"].to_numpy()
    for repeat in range(3):
        assert sum(map(len, sides(run, states, repeat))) == 10
    assert len({tuple(sorted(sides(run, states, k)[2])) for k in range(3)}) > 1
    text = "\n".join(text_summary(run.record))
    assert "3 grouped splits" in text
    assert "The split is by groups" in text
    notes = "\n".join(run.record.data.notes)
    assert "values that no training node has (town)" in notes
    assert "No feature, unless feature_columns names it: 'state'" in notes
    again = [run.evaluate()[0][k]["test"] for k in range(3)]
    assert again == [pytest.approx(r.scores["test"]) for r in run.record.repeats]


def test_the_estimator_keeps_groups_together(shops):
    graph = load(shops, label_column="grows", group_column="state", feature_columns=["size"])
    states = table_of(shops)["state"].to_numpy()
    nodes = np.flatnonzero(states != "state 3")
    labels = table_of(shops)["grows"].to_numpy()[nodes]
    model = longnn.LONGNNClassifier(graph=graph, epochs=2, preset="fast").fit(nodes, labels)
    assert not {*states[model.train_mask_]} & {*states[model.val_mask_]}
    assert int((model.train_mask_ | model.val_mask_).sum()) == len(nodes)


def test_counties_that_come_later(shops, backing, tmp_path):
    """A run by time predicts next year's nodes, whose year and sales nobody knows yet."""
    table, new = table_of(shops), tmp_path / "new"
    new.mkdir()
    later = table.tail(3)[["size"]].rename(index=lambda name: f"new-{name}")
    later.to_csv(new / "nodes.csv")
    (new / "edges.csv").write_text(
        "source,target\n" + "".join(f"{name},s{k}\n" for k, name in enumerate(later.index))
    )
    options = {"label_column": "sales", "time_column": "year", "feature_columns": "size"}
    words = [word for pair in options.items() for word in ("--data", "{}={}".format(*pair))]
    given = [word for k, v in SETTINGS.items() for word in ("--set", f"{k}={v}")]
    disk = ["--memory", "1K"] if backing == "disk" else []
    with without_report():
        succeed(
            *("train", shops, *words, *given, "--set", "baselines=false", *disk, "--quiet"),
            *("--cache", tmp_path / "cache", "--output", tmp_path / "run"),
        )
    succeed("predict", tmp_path / "run", "--add", new, "--output", tmp_path / "new.csv")
    said = pandas.read_csv(tmp_path / "new.csv", index_col="id")
    assert list(said.index) == list(later.index)
