"""Runs on arcs and on edges of several types, from the command line to the program of a run, on
graphs that only arcs or types explain."""

import dataclasses
import json

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from longnn import LONGNNClassifier, load_run
from longnn.config import Config
from longnn.data import DataError, from_data, from_networkx, load, make_split
from longnn.data._convert import undirected
from longnn.data._relations import Relation
from longnn.explain import explain_nodes
from longnn.report._filters import describe_cover_filter
from longnn.runs import train
from longnn.training import complete, fit, score

from .commands import fail, succeed, succeed_json

KINDS = ("arcs", "types")
#: How a folder of each kind is read, and the setting that a model needs to hear it.
READ = {"arcs": {"directed": True}, "types": {"type_column": "kind"}}
QUICK = {"epochs": 60, "degree": 3, "device": "cpu", "preset": "fast", "placement": "output"}
BRIEF = {"epochs": 4, "device": "cpu", "preset": "fast", "baselines": False}


def world(kind, nodes=240, seed=0):
    """Features, edges, their types and classes of a random graph that knows nothing of classes.

    Its arcs do: one between two classes goes from the first to the second, one within a class
    either way. Or its types: edges within classes are of one, those between of the other.
    """
    random = np.random.default_rng(seed)
    role = random.integers(0, 2, nodes)
    pairs = np.unique(np.sort(random.integers(0, nodes, (2, 6 * nodes)), axis=0), axis=1)
    pairs = pairs[:, pairs[0] != pairs[1]]
    same = role[pairs[0]] == role[pairs[1]]
    noise = random.standard_normal((nodes, 3))
    if kind == "types":
        x = np.c_[role + 2.0 * noise[:, 0], noise[:, 1:]]
        return x, pairs, (~same).astype(np.int64), role
    turned = np.where(same, random.random(pairs.shape[1]) < 0.5, role[pairs[0]] == 1)
    x = np.c_[np.ones(nodes), noise[:, 1:]]
    return x, np.where(turned, pairs[::-1], pairs), None, role


def data(kind, **sizes):
    x, edges, types, role = world(kind, **sizes)
    x, edges, role = (torch.from_numpy(values) for values in (x, edges, role))
    made = Data(x=x.float(), edge_index=edges, y=role)
    if types is not None:
        made.edge_type = torch.from_numpy(types)
    return made


def dataset(kind, **sizes):
    return from_data(data(kind, **sizes), directed=kind == "arcs")


def flags(table):
    return [word for k, v in table.items() for word in ("--set", f"{k}={str(v).lower()}")]


def read(kind):
    return [word for k, v in READ[kind].items() for word in ("--data", f"{k}={str(v).lower()}")]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Of each kind two graphs in files, one to train on and one to predict on, and a run."""
    root = tmp_path_factory.mktemp("relations")
    for kind in KINDS:
        for name, seed in (("old", 0), ("new", 1)):
            x, edges, types, role = world(kind, seed=seed)
            folder = root / kind / name
            folder.mkdir(parents=True)
            names = (
                [""] * edges.shape[1] if types is None else np.array([",friend", ",rival"])[types]
            )
            rows = [f"n{u},n{v}{t}" for (u, v), t in zip(edges.T, names, strict=True)]
            head = "source,target" + ",kind" * (kind == "types")
            (folder / "edges.csv").write_text("\n".join([head, *rows]) + "\n")
            lines = [
                f"n{i},{a:.4f},{b:.4f},{c:.4f},{['out', 'in'][r]}"
                for i, ((a, b, c), r) in enumerate(zip(x, role, strict=True))
            ]
            (folder / "nodes.csv").write_text("\n".join(["id,e,f,g,label", *lines]) + "\n")
        settings = flags({**QUICK, "baselines": False})
        folder = root / kind
        succeed("train", folder / "old", *read(kind), *settings, "--output", folder / "run")
    return root


@pytest.mark.parametrize("kind", KINDS)
def test_they_tell_what_the_plain_graph_hides(kind):
    """The same data and settings; only arcs or types differ."""
    whole = dataset(kind)
    plain = undirected(whole) if kind == "arcs" else dataclasses.replace(whole, relations=())
    split, scores = make_split(whole, "stratified", 0), []
    table = {**QUICK, "input_dropout": 0.0, "filter_dropout": 0.0}
    for graph, options in ((whole, {}), (plain, {}), (whole, {"direction": "none"})):
        (fitted,) = fit(graph, [complete({**table, **options}, graph)], [split])
        scores.append(score(fitted.predicted, graph, split.test)["accuracy"])
    assert scores[0] > 0.85
    assert scores[1] < 0.75
    assert kind == "types" or scores[2] == scores[1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_keeps_them_to_the_end(folders, kind):
    """info, train, evaluate, predict on its own and on a new graph; what the report says."""
    folder = folders / kind
    run = folder / "run"
    card = succeed_json("info", folder / "old", *read(kind))
    text = succeed("info", folder / "old", *read(kind))
    record = json.loads((run / "record.json").read_text())
    page, filters = (run / "report.html").read_text(), record["repeats"][0]["filters"]
    if kind == "arcs":
        assert card["directed"]
        assert "spectrum of the double cover" in text
        assert "smooth" not in text
        assert record["config"]["direction"] == "cover"
        assert record["data"]["source"]["options"] == {"directed": True}
        assert record["data"]["card"]["directed"]
        words = filters[0]["words"]
        assert "common targets or sources" in words or "along arcs" in words
        for right in (words, "double cover", "arcs without a reverse"):
            assert right in page
        for wrong in ("low-pass", "high-pass", "neighbours share", "(smooth)"):
            assert wrong not in page
    else:
        assert set(card["edge_types"]) == {"friend", "rival"}
        assert "edge types" in text
        assert f"friend: {card['edge_types']['friend'] // 2:,}" in text
        assert [f["edge_type"] for f in filters] == ["friend", "rival"]
        for name in ("friend", "rival"):
            assert f"or edges of type {name} it " in page
        assert "the eigenvalues of the graph of all edges, of whatever type, are" in page
    accuracy = record["summary"]["test"]["accuracy"]["mean"]
    assert accuracy > 0.85
    scores = succeed_json("evaluate", run)["summary"]["test"]["accuracy"]["mean"]
    assert scores == pytest.approx(accuracy)
    succeed("predict", run, folder / "new", "--output", folder / "new.csv")
    new = load(folder / "new", **READ[kind])
    rows = (folder / "new.csv").read_text().splitlines()[1:]
    said = np.array([line.split(",")[1].strip('"') for line in rows])
    assert (said == np.array(new.classes)[new.data.y.numpy()]).mean() > 0.85


def test_a_new_graph_must_keep_its_arcs_too(folders, no_report):
    folder, run = folders / "arcs", folders / "arcs" / "run"
    message = fail("predict", run, folder / "new", "--data", "directed=false")
    assert "Expected a graph that keeps its arcs for direction='cover'" in message
    assert "load it with directed=true" in message
    with pytest.raises(DataError, match="keeps its arcs"):
        load_run(run).predict(load(folder / "new"))
    plain = train(load(folder / "old"), {**BRIEF, "epochs": 2})
    with pytest.raises(DataError, match="Expected an undirected graph, as the models were trained"):
        plain.predict(load(folder / "new", directed=True))
    settings = flags({**BRIEF, "direction": "cover"})
    message = fail("train", folder / "old", *settings, "--output", folder / "never")
    assert "got the undirected 'old'" in message
    assert not (folder / "never").exists()
    settings = flags({**BRIEF, "direction": "none"})
    small = ("--memory", "1K", "--cache", folder / "cache", "--output", folder / "never")
    message = fail("train", folder / "old", *read("arcs"), *settings, *small)
    assert "on disk with its arcs (got 'none'); load it with directed=false" in message
    record = succeed_json(
        "train", folder / "old", *read("arcs"), *settings, "--output", folder / "set"
    )
    assert record["config"]["direction"] == "none"
    assert succeed_json("evaluate", folder / "set")["summary"]["test"]["accuracy"]["mean"] == (
        pytest.approx(record["summary"]["test"]["accuracy"]["mean"])
    )


def test_a_new_graph_has_the_types_of_training(folders):
    folder, run = folders / "types", load_run(folders / "types" / "run")
    trained = run.trained
    assert trained.edge_types == ("friend", "rival")
    with pytest.raises(DataError, match=r"Expected edges of the types friend, rival.*type_column"):
        trained.problem(load(folder / "old"))
    other = load(folder / "old", type_column="kind")
    friend = tuple(r for r in other.relations if r.name == "friend")
    few = trained.problem(dataclasses.replace(other, relations=friend))
    assert [t.num_edges for t in few.operator.types][1] == 0
    odd = (*friend, Relation("enemy", friend[0].edge_index))
    with pytest.raises(DataError, match="got 'enemy'"):
        trained.problem(dataclasses.replace(other, relations=odd))
    assert "got 2 types of edges" in fail("export", folder / "run")
    with pytest.raises(DataError, match="all alike, to explain it"):
        explain_nodes(trained, other, [0])
    untyped = train(load(folder / "old"), {**BRIEF, "epochs": 1}).trained
    assert untyped.problem(other).operator.types == ()


def test_the_estimator_keeps_arcs(tmp_path):
    graph, other = data("arcs"), data("arcs", seed=1)
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
        by_node = LONGNNClassifier(graph=(x, arcs), **options).fit(nodes, y[:200])
        assert by_node.trained_.directed == directed
        assert by_node.predict_proba(np.arange(240)).shape == (240, 2)
    with pytest.warns(UserWarning, match="listed one way; each was made two-way; directed=True"):
        plain = LONGNNClassifier(epochs=2).fit(x, arcs, y)
    assert not plain.trained_.directed


def test_portfolios_share_the_direction():
    kept = dataset("arcs", nodes=60)
    for options, direction in (({}, "cover"), ({"direction": "none"}, "none")):
        config = complete({"epochs": 2, "device": "cpu", **options}, kept)
        assert (config.preset, config.direction) == ("default", direction)
        (voted,) = fit(kept, [config], [make_split(kept, "stratified", 0)])
        assert {m.fitted.config.direction for m in voted.members} == {direction}


def test_words_for_filters_on_a_cover():
    lam = np.linspace(0, 2, 101)
    assert describe_cover_filter(lam, np.zeros(101)) == "zero: nothing passes"
    assert describe_cover_filter(lam, np.full(101, np.nan)) == "not finite: training diverged"
    even = describe_cover_filter(lam, np.ones((3, 101)))
    assert even == "100 % even (common targets or sources), height 1"
    middle = describe_cover_filter(lam, np.exp(-20 * (lam - 1) ** 2))
    assert middle.startswith("100 % even (common targets or sources), peak at singular value 0,")


def test_configurations_of_undirected_graphs_have_no_word_on_arcs():
    """So that their records are what they were."""
    assert "direction" not in Config().to_dict()
    chosen = Config.from_dict({"direction": "cover"})
    assert chosen.to_dict()["direction"] == "cover"
    assert Config.from_dict(chosen.to_dict()) == chosen
    with pytest.raises(ValueError, match="Expected `direction` to be one of auto, cover, none"):
        Config.from_dict({"direction": "both"})


def test_a_dataset_keeps_types_beside_the_graph():
    graph = data("types", nodes=30)
    pair = graph.edge_index[:, :1]
    graph.edge_index = torch.cat([graph.edge_index, pair], 1)  # the same pair, another type
    graph.edge_type = torch.cat([graph.edge_type, 1 - graph.edge_type[:1]])
    dataset = from_data(graph, edge_types=["friend", "rival"], directed=True)
    assert [r.name for r in dataset.relations] == ["friend", "rival"]
    sizes = [r.edge_index.shape[1] for r in dataset.relations]
    assert sum(sizes) == dataset.num_edges + 1
    assert "Edges have 2 types: friend (" in " ".join(dataset.notes)
    both = undirected(dataset)
    assert [r.edge_index.shape[1] for r in both.relations] == [2 * size for size in sizes]
    plain = data("types", nodes=30)
    del plain.edge_type
    prints = {d.fingerprint() for d in (from_data(plain), from_data(data("types", nodes=30)))}
    assert len(prints) == 2
    listed = data("types", nodes=30)
    listed.edge_index = torch.cat([listed.edge_index, listed.edge_index.flip(0)], 1)
    listed.edge_type = listed.edge_type.repeat(2)
    made = LONGNNClassifier(epochs=2, device="cpu").fit(listed)
    assert made.trained_.edge_types == ("0", "1")
    assert made.predict(listed).shape == (30,)


def test_edges_from_elsewhere_have_types(tmp_path):
    graph = nx.Graph()
    graph.add_edge("a", "b", kind="road")
    graph.add_edge("b", "c", kind="rail")
    for node in graph:
        graph.nodes[node]["label"] = node
    assert [r.name for r in from_networkx(graph, type_column="kind").relations] == ["rail", "road"]
    torch.save(data("types", nodes=30).to_dict(), tmp_path / "graph.pt")
    assert [r.name for r in load(tmp_path / "graph.pt").relations] == ["0", "1"]
    assert load(tmp_path / "graph.pt", type_column="none").relations == ()
    named = "source,target,edge_type\na,b,x\nb,c,y\n"
    (tmp_path / "edges.csv").write_text(named)
    assert [r.name for r in load(tmp_path / "edges.csv").relations] == ["x", "y"]
    refused = load(tmp_path / "edges.csv", type_column="none")
    assert refused.relations == ()
    assert any("not used: edge_type" in note for note in refused.notes)
    (tmp_path / "edges.csv").write_text(named.replace(",y", ",x"))
    alike = load(tmp_path / "edges.csv")
    assert alike.relations == ()
    assert "All edges are of one type, which tells nothing." in alike.notes


def test_bad_types_are_named(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    with pytest.raises(DataError, match="type"):
        load(tmp_path / "edges.csv", type_column="kind")
    with pytest.raises(DataError, match="types of edges in a column of their own"):
        load(tmp_path / "edges.csv", type_column="target")
    many = "".join(f"a,b,{i}\n" for i in range(70))
    (tmp_path / "edges.csv").write_text(f"source,target,kind\n{many}")
    with pytest.raises(DataError, match=r"Expected at most 64 types of edges \(got 70\)"):
        load(tmp_path / "edges.csv", type_column="kind")
    for wrong, message in (
        (torch.zeros(3), r"Expected `edge_type` of shape"),
        (
            torch.full_like(data("types", nodes=30).edge_type, -1),
            r"Expected `edge_type` >= 0 \(got -1\)",
        ),
        (data("types", nodes=30).edge_type + 0.5, "Expected whole numbers in `edge_type`"),
        (torch.arange(data("types", nodes=30).num_edges), "is that column one of ids"),
    ):
        graph = data("types", nodes=30)
        graph.edge_type = wrong
        with pytest.raises(DataError, match=message):
            from_data(graph)
    graph = data("types", nodes=30)
    with pytest.raises(DataError, match="Expected names of 2 types of edges"):
        from_data(graph, edge_types=["one"])
