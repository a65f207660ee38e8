"""Runs on arcs, from the command line to the program of a run, on a graph only arcs explain."""

import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from longnn import LONGNNClassifier, load_run
from longnn.config import Config
from longnn.data import DataError, from_data, load, make_split
from longnn.data._convert import undirected
from longnn.report import describe_cover_filter
from longnn.runs import resume, train
from longnn.training import complete, fit, predict, score

from .commands import fail, longnn, succeed, succeed_json

QUICK = (
    *("--device", "cpu", "--set", "epochs=60", "--set", "degree=3"),
    *("--set", "baselines=false", "--set", "placement=output"),
)


def flow(nodes=240, seed=0):
    """A random graph that knows nothing of the classes; only its arcs do.

    An edge between two classes goes from the first to the second, one within a class either way.
    The features say nothing.
    """
    random = np.random.default_rng(seed)
    role = random.integers(0, 2, nodes)
    pairs = np.unique(np.sort(random.integers(0, nodes, (2, 6 * nodes)), axis=0), axis=1)
    pairs = pairs[:, pairs[0] != pairs[1]]
    tie = random.random(pairs.shape[1]) < 0.5
    turned = np.where(role[pairs[0]] == role[pairs[1]], tie, role[pairs[0]] == 1)
    arcs = np.where(turned, pairs[::-1], pairs)
    x = np.c_[np.ones(nodes), random.standard_normal((nodes, 2))]
    return x, arcs, role


def data(**sizes):
    x, arcs, role = flow(**sizes)
    return Data(
        x=torch.from_numpy(x).float(), edge_index=torch.from_numpy(arcs), y=torch.from_numpy(role)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two graphs in files: one to train on, one to predict on."""
    root = tmp_path_factory.mktemp("flow")
    for name, seed in (("old", 0), ("new", 1)):
        x, arcs, role = flow(seed=seed)
        place = root / name
        place.mkdir()
        rows = [f"n{u},n{v}" for u, v in arcs.T]
        (place / "edges.csv").write_text("\n".join(["source,target", *rows]) + "\n")
        lines = [
            f"n{i},{a:.0f},{b:.4f},{c:.4f},{['out', 'in'][r]}"
            for i, ((a, b, c), r) in enumerate(zip(x, role, strict=True))
        ]
        (place / "nodes.csv").write_text("\n".join(["id,one,f,g,label", *lines]) + "\n")
    return root


@pytest.fixture(scope="module")
def run(folder):
    out = folder / "run"
    succeed("train", folder / "old", "--data", "directed=auto", *QUICK, "--output", out)
    return out


def test_direction_tells_what_the_undirected_graph_hides():
    """The same data and settings; only the arcs differ."""
    kept = from_data(data(), directed=True)
    table = {"epochs": 100, "degree": 3, "device": "cpu", "placement": "hidden", "preset": "fast"}
    table |= {"input_dropout": 0.0, "filter_dropout": 0.0}
    split = make_split(kept, "stratified", 0)
    found = {}
    for direction in ("cover", "none"):
        config = Config.from_dict({**table, "direction": direction})
        (one,) = fit(kept, [config], [split])
        found[direction] = score(one.predicted, kept, split.test)["accuracy"]
    assert found["cover"] > 0.85, found
    assert found["none"] < 0.7, found
    plain = Config.from_dict(table)
    (as_ever,) = fit(undirected(kept), [plain], [split])
    again = score(as_ever.predicted, kept, split.test)["accuracy"]
    assert again == found["none"]


def test_a_run_keeps_arcs_to_the_end(folder, run):
    """info, train, evaluate, predict on its own and on a new graph."""
    card = succeed_json("info", folder / "old", "--data", "directed=true")
    assert card["directed"]
    text = succeed("info", folder / "old", "--data", "directed=true")
    assert "spectrum of the double cover" in text
    assert "smooth" not in text
    record = json.loads((run / "record.json").read_text())
    assert record["config"]["direction"] == "cover"
    assert record["data"]["source"]["options"] == {"directed": True}
    assert record["data"]["card"]["directed"]
    accuracy = record["summary"]["test"]["accuracy"]["mean"]
    assert accuracy > 0.9
    scores = succeed_json("evaluate", run)
    assert accuracy == pytest.approx(scores["summary"]["test"]["accuracy"]["mean"])
    succeed("predict", run, folder / "new", "--output", folder / "new.csv")
    new = load(folder / "new", directed=True)
    rows = (folder / "new.csv").read_text().splitlines()[1:]
    said = np.array([line.split(",")[1].strip('"') for line in rows])
    truth = np.array(new.classes)[new.data.y.numpy()]
    assert (said == truth).mean() > 0.9


def test_the_report_speaks_of_the_cover(run):
    page = (run / "report.html").read_text()
    words = json.loads((run / "record.json").read_text())["repeats"][0]["filters"][0]["words"]
    assert "common targets or sources" in words or "along arcs" in words
    assert words in page
    for wrong in ("low-pass", "high-pass", "neighbours share", "(smooth)"):
        assert wrong not in page
    assert "double cover" in page
    assert "arcs without a reverse" in page


def test_a_new_graph_must_keep_its_arcs_too(folder, run):
    message = fail("predict", run, folder / "new", "--data", "directed=false")
    assert "Expected a graph that keeps its arcs for direction='cover'" in message
    assert "load it with directed=true" in message
    loaded = load_run(run)
    with pytest.raises(DataError, match="keeps its arcs"):
        loaded.predict(load(folder / "new"))
    plain = train(load(folder / "old"), {"epochs": 2, "preset": "fast", "baselines": False})
    with pytest.raises(DataError, match="Expected an undirected graph, as the models were trained"):
        plain.predict(load(folder / "new", directed=True))
    message = fail(
        *("train", folder / "old", "--set", "direction=cover", *QUICK),
        *("--output", folder / "never"),
    )
    assert "got the undirected 'old'" in message
    assert not (folder / "never").exists()


def test_an_interrupted_run_goes_on_with_its_arcs(folder, tmp_path, no_report):
    source = load(folder / "old", directed="auto").source
    table = {"epochs": 6, "preset": "fast", "baselines": False, "device": "cpu"}
    train(source, table, tmp_path / "whole")

    def stop(population):
        if population.epoch == 3:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        train(source, table, tmp_path / "cut", on_epoch=stop, checkpoint_every=0.0)
    resume(tmp_path / "cut")
    whole, cut = (load_run(tmp_path / name).trained for name in ("whole", "cut"))
    assert cut.directed
    assert cut.config == whole.config
    for name, weight in whole.states[0].items():
        assert torch.equal(cut.states[0][name], weight)


@pytest.mark.parametrize(
    "table",
    [
        {"direction": "cover"},
        {"model": "gcn"},
        pytest.param({"preset": "default", "epochs": 2}, marks=pytest.mark.slow),
    ],
)
def test_the_program_of_a_run_takes_arcs(table, tmp_path):
    kept = from_data(data(nodes=60), directed=True)
    quick = {"epochs": 4, "preset": "fast", "baselines": False, "device": "cpu"}
    made = train(kept, {**quick, "precision": "float64", **table})
    path = made.export(tmp_path / "model.pt2")
    program = torch.export.load(path).module()
    other = from_data(data(nodes=41, seed=3), directed=True)
    weight = torch.ones(other.num_edges)
    found = program(other.data.x, other.data.edge_index, weight)
    expected = made.trained.predict(made.trained.problem(other))
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


def test_the_estimator_keeps_arcs(tmp_path):
    graph, other = data(), data(seed=1)
    x, arcs, y = graph.x.numpy(), graph.edge_index.numpy(), graph.y.numpy()
    options = {"epochs": 80, "degree": 3, "model_options": {"placement": "hidden"}}
    kept = LONGNNClassifier(directed=True, **options).fit(x, arcs, y)
    assert kept.trained_.directed
    # A new graph is read as that of the training was, also after saving and loading.
    new = (other.x.numpy(), other.edge_index.numpy())
    assert (kept.predict(new) == other.y.numpy()).mean() > 0.9
    kept.save(tmp_path / "kept.safetensors")
    loaded = LONGNNClassifier.load(tmp_path / "kept.safetensors")
    assert loaded.directed is True
    np.testing.assert_array_equal(loaded.predict(new), kept.predict(new))
    assert "double cover" in kept.plot_filter().get_xlabel()
    # By nodes of a graph, with the arcs found in it, or set aside.
    nodes = np.arange(200)
    for direction, directed in ((None, True), ("none", False)):
        options = {"directed": "auto", "direction": direction, "epochs": 5}
        found = LONGNNClassifier(graph=(x, arcs), **options).fit(nodes, y[:200])
        assert found.trained_.directed == directed
        assert found.predict_proba(np.arange(240)).shape == (240, 2)
    with pytest.warns(UserWarning, match="listed one way; each was made two-way; directed=True"):
        plain = LONGNNClassifier(epochs=2).fit(x, arcs, y)
    assert not plain.trained_.directed


def test_portfolios_share_the_direction():
    kept = from_data(data(nodes=60), directed=True)
    config = complete({"epochs": 2, "device": "cpu"}, kept)
    assert (config.preset, config.direction) == ("default", "cover")
    (one,) = fit(kept, [config], [make_split(kept, "stratified", 0)])
    assert {m.fitted.config.direction for m in one.members} == {"cover"}


def test_words_for_filters_on_a_cover():
    lam = np.linspace(0, 2, 101)
    assert describe_cover_filter(lam, np.zeros(101)) == "zero: nothing passes"
    assert describe_cover_filter(lam, np.full(101, np.nan)) == "not finite: training diverged"
    even = describe_cover_filter(lam, np.ones((3, 101)))
    assert even == "100 % even (common targets or sources), height 1"
    middle = describe_cover_filter(lam, np.exp(-20 * (lam - 1) ** 2))
    assert middle.startswith("100 % even (common targets or sources), peak at singular value 0,")


def test_predictions_do_not_depend_on_the_copy(folder):
    """A problem has one row per node wherever it is looked at."""
    kept = load(folder / "old", directed=True)
    made = train(kept, {"epochs": 2, "preset": "fast"})
    problem = made.trained.problem(kept)
    assert problem.num_nodes == kept.num_nodes
    assert predict(made.trained.models[0], problem).shape == (kept.num_nodes, 2)
    assert made.predictions().num_rows == kept.num_nodes


def test_a_run_on_arcs_is_explained(folder, run):
    """By node, by way, on its own graph and on a new one; the sums are printed."""
    result = longnn("explain", run, "n0", "--top", 3)
    assert result.exit_code == 0, result.output
    for piece in ("lon: exact", "by way", "along its arcs", "common sources", "sum: constant"):
        assert piece in result.stdout
    assert "distances count arcs along and against" in " ".join(result.stderr.split())
    found = succeed_json("explain", run, "n0")
    total = sum(row["contribution"] for row in found["ways"])
    [row] = found["summary"]
    assert total == pytest.approx(row["contributions"], abs=1e-9)
    assert abs(row["gap"]) < 1e-9
    scores = load_run(run).predictions().to_pylist()[0]
    assert row["predicted"] == scores["predicted"]
    new = succeed_json("explain", run, "n1", "--graph", folder / "new")
    assert abs(new["summary"][0]["gap"]) < 1e-9
    assert "share by distance" in succeed("explain", run)


@pytest.mark.parametrize(
    "options", [{}, {"model": "lon-deep", "blocks": 2, "hidden_channels": 8}], ids=["lon", "deep"]
)
def test_repeats_are_trained_together_as_alone(options):
    kept = from_data(data(nodes=60), directed=True)
    table = {"epochs": 5, "device": "cpu", "preset": "fast", "precision": "float64", **options}
    table["direction"] = "cover"
    configs = [Config.from_dict({**table, "seed": seed}) for seed in (0, 1)]
    splits = [make_split(kept, "stratified", seed) for seed in (0, 1)]
    together = fit(kept, configs, splits)
    for one, config, split in zip(together, configs, splits, strict=True):
        (alone,) = fit(kept, [config], [split])
        torch.testing.assert_close(alone.predicted, one.predicted, atol=1e-9, rtol=1e-9)


def test_configurations_of_undirected_graphs_have_no_word_on_arcs():
    """So that their records are what they were."""
    assert "direction" not in Config().to_dict()
    chosen = Config.from_dict({"direction": "cover"})
    assert chosen.to_dict()["direction"] == "cover"
    assert Config.from_dict(chosen.to_dict()) == chosen
    with pytest.raises(ValueError, match="Expected `direction` to be one of auto, cover, none"):
        Config.from_dict({"direction": "both"})


def test_a_portfolio_by_command_line_with_a_setting_of_arcs(folder):
    flags = ("--data", "directed=true", "--set", "epochs=2", "--set", "direction=none")
    succeed("train", folder / "old", *flags, "--device", "cpu", "--output", folder / "both")
    record = json.loads((folder / "both" / "record.json").read_text())
    assert record["config"]["direction"] == "none"
    assert len(record["portfolio"]) == 8
    scores = succeed_json("evaluate", folder / "both")
    assert scores["summary"]["test"]["accuracy"]["mean"] == pytest.approx(
        record["summary"]["test"]["accuracy"]["mean"]
    )
