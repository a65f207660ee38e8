"""Stories of time, groups and weights, from files to an answer, in memory and on disk.

A table of sales in shops of several states over the years; the answer depends on all of them.
"""

import numpy as np
import pandas
import pytest
from sklearn.metrics import balanced_accuracy_score, r2_score

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
    sales = 3 * size + 0.3 * (year - 2014) + 2 * np.sin(np.arange(NODES) / 8)
    sales += rng.normal(size=NODES) / 4
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
    pairs = [(f"s{i}", f"s{i + k}") for k in (1, 2, 3) for i in range(NODES - k)]
    pandas.DataFrame(pairs, columns=["source", "target"]).to_csv(folder / "edges.csv", index=False)
    return folder


@pytest.fixture(scope="module", params=["memory", "disk"])
def backing(request):
    return request.param


def trained(folder, backing, options, cache, **settings):
    source = Source.resolve(folder, options={"name": "shops", **options})
    memory = 1 << 10 if backing == "disk" else None
    table = {k: v for k, v in {**SETTINGS, **settings}.items() if v is not None}
    return longnn.train(source, table, memory=memory, cache=cache)


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
    assert {name for name, *_ in run.record.data.columns} == {"size", "town"}


def test_a_split_by_state(shops, backing, tmp_path):
    options = {"label_column": "sales", "group_column": "state", "drop_columns": "grows"}
    run = trained(
        shops, backing, options, tmp_path, repeat=3, known_answers="all", epochs=40, baselines=False
    )
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
    # Nodes to predict hear of none of their own state, so validation nodes hear of none, either.
    told = [(one, split) for one, split in zip(run.trained.told, run.splits, strict=True) if one]
    assert told
    for one, split in told:
        assert {*one.ids} == {f"s{i}" for i in np.flatnonzero(split.train.numpy())}
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


def survey(shops, folder, change):
    """The same shops with other cells."""
    folder.mkdir()
    (folder / "edges.csv").write_text((shops / "edges.csv").read_text())
    table = pandas.read_csv(shops / "nodes.csv")
    change(table)
    table.to_csv(folder / "nodes.csv", index=False)
    return folder


@pytest.mark.parametrize("label", ["sales", "grows"])
def test_weighted_survey_rows(shops, backing, label, tmp_path):
    """Scores are those of rows that are repeated so often; weight 0 is no label, 1 no weight."""
    options = {"label_column": label, "feature_columns": "size,state", "time_column": "year"}
    weighed = {**options, "node_weight_column": "weight"}
    settings = {"known_answers": "all", "epochs": 8, "baselines": label == "sales"}
    if (label, backing) == ("sales", "memory"):  # of a portfolio everything is weighed
        settings |= {"preset": "default", "degree": None, "placement": None}
    run = trained(shops, backing, weighed, tmp_path, **settings)
    weight, test = table_of(shops)["weight"].to_numpy(), run.splits[0].test.numpy()
    assert not (weight[test] == 0).any()
    assert "of weight 0 have no label" in "\n".join(run.record.data.notes)
    said, scores = run.predictions().to_pandas().set_index("id"), run.record.repeats[0].scores
    said = said.loc[[f"s{i}" for i in np.repeat(np.flatnonzero(test), weight[test])]]
    if label == "sales":
        found, expected = scores["test"]["r2"], r2_score(said["label"], said["predicted"])
        constant = run.record.baselines[0].scores[0]["test"]["rmse"]
        told = np.repeat(*(v[run.splits[0].train.numpy()] for v in (sales_of(shops), weight)))
        assert constant == pytest.approx(np.sqrt(np.square(said["label"] - told.mean()).mean()))
    else:
        found = scores["test"]["balanced_accuracy"]
        expected = balanced_accuracy_score(said["label"], said["predicted"])
    assert found == pytest.approx(expected, abs=1e-5)

    settings["baselines"] = False

    def forget(table):
        table.loc[table["weight"] == 0, label] = None

    same = trained(survey(shops, tmp_path / "gaps", forget), backing, weighed, tmp_path, **settings)
    assert_equal_predictions(run, same)

    def equal(table):
        table["weight"] = 3.5

    alike = survey(shops, tmp_path / "equal", equal)
    ones = trained(alike, backing, weighed, tmp_path, **settings)
    none = trained(alike, backing, options, tmp_path, **settings)
    assert_equal_predictions(ones, none)
    assert not np.array_equal(*(each.predicted[0].numpy()[:9] for each in (run, none)))


def sales_of(folder):
    return table_of(folder)["sales"].to_numpy()


def assert_equal_predictions(one, other):
    for a, b in zip(one.predicted, other.predicted, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


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
