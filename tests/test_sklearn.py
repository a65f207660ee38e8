"""scikit-learn for real: nodes as samples, its tools, copies, weights, figures and the report."""

import copy
import pickle

import matplotlib as mpl
import numpy as np
import pandas
import pytest
import torch
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from torch_geometric.data import Data

from longnn import LONGNNClassifier, LONGNNRegressor
from longnn.data import NodeDataset
from longnn.data._synthetic import csbm
from longnn.registry import MODELS
from longnn.training import Population
from tests.helpers import one_per_architecture

QUICK = {"epochs": 6, "degree": 3, "hidden_channels": 8, "device": "cpu"}
SIZE = 60


@pytest.fixture(scope="module")
def dataset():
    return csbm(phi=-0.7, num_nodes=SIZE, num_features=8, degree=6.0)


@pytest.fixture(scope="module")
def graph(dataset):
    return dataset.data


@pytest.fixture(scope="module")
def nodes():
    return np.random.default_rng(0).permutation(SIZE)


@pytest.fixture(scope="module")
def y(graph, nodes):
    return graph.y.numpy()[nodes]


@pytest.fixture(scope="module")
def numbers(graph, nodes):
    return (3 * graph.x[:, 0] + graph.x[:, 1]).numpy()[nodes]


@pytest.fixture(scope="module")
def fitted(graph, nodes, y):
    return classifier(graph=graph).fit(nodes[:40], y[:40])


def classifier(**options):
    return LONGNNClassifier(**{**QUICK, **options})


def regressor(**options):
    return LONGNNRegressor(**{**QUICK, **options})


# --- nodes as samples


def test_nodes_are_the_samples(fitted, graph, nodes, y):
    every = fitted.predict_proba()
    assert every.shape == (SIZE, 2)
    np.testing.assert_array_equal(fitted.predict_proba(nodes[40:]), every[nodes[40:]])
    np.testing.assert_array_equal(fitted.predict(nodes[:, None]), fitted.predict(nodes.tolist()))
    np.testing.assert_array_equal(fitted.predict_proba(graph), every)
    right = fitted.predict(nodes[40:]) == y[40:]
    assert fitted.score(nodes[40:], y[40:]) == pytest.approx(right.mean())
    weight = np.arange(1.0, 21)
    weighed = fitted.score(nodes[40:], y[40:], sample_weight=weight)
    assert weighed == pytest.approx((right * weight).sum() / weight.sum())
    mask = np.isin(np.arange(SIZE), nodes[40:])
    assert (
        fitted.score(graph, mask) == fitted.score(graph, mask=mask) == pytest.approx(right.mean())
    )
    spread = np.zeros(SIZE)
    spread[nodes[40:]] = weight
    assert fitted.score(graph, sample_weight=spread) == pytest.approx(weighed)


def test_only_given_labels_are_used(fitted, graph, nodes, y):
    """The graph's own labels and masks have no say: no fold sees the labels of another."""
    wrong = graph.clone()
    wrong.y = torch.zeros_like(wrong.y)
    wrong.train_mask = torch.ones(SIZE, dtype=torch.bool)
    again = classifier(graph=wrong).fit(nodes[:40], y[:40])
    np.testing.assert_array_equal(again.predict_proba(), fitted.predict_proba())
    used = np.zeros(SIZE, dtype=bool)
    used[nodes[:40]] = True
    np.testing.assert_array_equal(again.train_mask_ | again.val_mask_, used)
    share = [again.val_mask_[nodes[:40]][y[:40] == c].mean() for c in (0, 1)]
    assert share == pytest.approx([0.2, 0.2], abs=0.05)
    # The same nodes by a mask over the graph with its labels: the same training.
    masked = classifier().fit(graph, torch.from_numpy(used))
    np.testing.assert_array_equal(masked.predict_proba(), fitted.predict_proba())


def test_the_forms_of_a_graph(fitted, dataset, graph, nodes, y):
    for form in (
        (graph.x, graph.edge_index),
        [graph.x.numpy(), graph.edge_index.numpy(), None],
        Data(x=graph.x, edge_index=graph.edge_index),
    ):
        other = classifier(graph=form).fit(nodes[:40], y[:40])
        np.testing.assert_array_equal(other.predict_proba(), fitted.predict_proba())
    whole = classifier().fit((graph.x, graph.edge_index, graph.y)).predict_proba()
    arrays = (graph.x.numpy(), graph.edge_index.numpy(), graph.y.numpy())
    np.testing.assert_array_equal(classifier().fit(*arrays).predict_proba(), whole)
    by_name = classifier().fit(arrays[0], arrays[2], edge_index=arrays[1])
    np.testing.assert_array_equal(by_name.predict_proba(arrays[:2]), whole)
    ready = classifier(graph=dataset).fit(nodes[:40], y[:40])
    assert ready.trained_.scaling.kind == "none"
    numbered = LONGNNRegressor(graph=dataset, **QUICK).fit(nodes[:40], y[:40] * 1.5)
    assert numbered.predict(nodes[:3]).shape == (3,)


def test_text_ids_and_positions(dataset, nodes, y):
    names = [f"person {i}" for i in range(SIZE)]
    named = NodeDataset("people", dataset.data, classes=("a", "b"), ids=names)
    by_name = classifier(graph=named).fit(np.array(names)[nodes[:40]], y[:40])
    by_place = classifier(graph=named).fit(nodes[:40], y[:40])
    np.testing.assert_array_equal(by_name.predict_proba(), by_place.predict_proba())
    np.testing.assert_array_equal(by_name.predict(["person 7"]), by_name.predict([7]))
    objects = np.array(names, dtype=object)[:, None]
    np.testing.assert_array_equal(by_name.predict(objects), by_name.predict())
    with pytest.raises(ValueError, match=r"Expected ids .*got 'nobody'.; the first is 'person 0'"):
        by_name.predict(["nobody"])


def test_numbers_are_ids_where_the_ids_are_numbers(dataset, nodes, y):
    ids = [1000 - i for i in range(SIZE)]
    numbered = NodeDataset("people", dataset.data, classes=("a", "b"), ids=ids, ready=True)
    by_id = classifier(graph=numbered).fit(1000 - nodes[:40], y[:40])
    by_place = classifier(graph=dataset).fit(nodes[:40], y[:40])
    np.testing.assert_array_equal(by_id.predict_proba(), by_place.predict_proba())
    np.testing.assert_array_equal(by_id.predict([1000.0, 993]), by_place.predict([0, 7]))
    with pytest.raises(ValueError, match=r"Expected ids .*got 3.; the first is '1000'"):
        by_id.predict([3])


def test_what_cannot_be_fitted(graph, nodes, y):
    with pytest.raises(
        ValueError, match=r"graph=g\).fit\(nodes, y\), fit\(data\).* fit\(X, edge_i"
    ):
        classifier().fit(graph.x.numpy(), graph.y.numpy())
    here = classifier(graph=graph)
    for wrong, message in (
        (graph.x.numpy(), r"positions or ids, of shape .n,. or .n, 1. \(got shape \(60, 8\)\)"),
        (np.full(60, 0.5), r"Expected positions or ids of nodes \(got 0.5\)"),
        (np.full(60, 60), r"Expected positions of nodes in 0..59 \(got 60\)"),
        (np.full(60, True), "got a mask"),
        (nodes[:9], "Expected one label per node, 9 .got 60."),
        (np.zeros(60, int), "Expected one label per node .got two for node 0."),
    ):
        with pytest.raises(ValueError, match=message):
            here.fit(wrong, y)
    with pytest.raises(ValueError, match=r"Expected labels: fit\(nodes, y\)"):
        here.fit(nodes)
    with pytest.raises(ValueError, match=r"got a third argument\); weights and masks by name"):
        here.fit(nodes, y, np.ones(60))
    with pytest.raises(ValueError, match="Input y contains NaN"):
        here.fit(nodes, np.where(nodes == 3, np.nan, y))
    with pytest.raises(ValueError, match=r"Expected `train_mask` to be true or false .*got int64"):
        classifier().fit(graph, graph.y)
    with pytest.raises(ValueError, match=r"Expected `sample_weight` of shape \(60,\) \(got \(2,\)"):
        here.fit(nodes, y, sample_weight=[1, 2])
    for weights, message in ((-np.ones(60), "finite and >= 0"), (np.zeros(60), "weights are zero")):
        with pytest.raises(ValueError, match=message):
            here.fit(nodes, y, sample_weight=weights)
    with pytest.raises(ValueError, match=r"several labels of 0 and 1 \(got 2 in"):
        here.fit((graph.x, graph.edge_index, np.stack([nodes * 0, nodes * 0 + 2], 1)))


# --- the tools of scikit-learn


def test_cross_validation_is_that_by_hand(graph, nodes, y):
    """Each score is that of a model of its own folds, masks over the graph by hand."""
    folds = list(StratifiedKFold(2).split(nodes, y))
    scores = cross_val_score(classifier(graph=graph), nodes, y, cv=folds)
    each = []
    for train, test in folds:
        mask = np.isin(np.arange(SIZE), nodes[train])
        alone = classifier().fit(graph, mask)
        each.append(accuracy_score(y[test], alone.predict()[nodes[test]]))
    np.testing.assert_allclose(scores, each)
    search = GridSearchCV(classifier(graph=graph), {"degree": [1, 3]}, cv=folds, scoring="roc_auc")
    best = search.fit(nodes, y).best_estimator_
    assert best.graph is graph
    assert best.trained_.config.options["degree"] == search.best_params_["degree"]


def test_pipelines_and_ensembles(fitted, graph, nodes, y):
    pipe = make_pipeline(FunctionTransformer(), "passthrough", classifier(graph=graph))
    pipe.fit(nodes[:40], y[:40])
    np.testing.assert_array_equal(pipe.predict_proba(nodes), fitted.predict_proba(nodes))
    two = [("a", classifier(graph=graph)), ("b", classifier(graph=graph, seed=1))]
    vote = VotingClassifier(two, voting="soft").fit(nodes[:40], y[:40])
    mean = np.mean([one.predict_proba(nodes) for one in vote.estimators_], axis=0)
    np.testing.assert_allclose(vote.predict_proba(nodes), mean)
    np.testing.assert_array_equal(vote.estimators_[0].predict_proba(), fitted.predict_proba())
    calibrated = CalibratedClassifierCV(classifier(graph=graph), cv=2).fit(nodes, y)
    np.testing.assert_allclose(calibrated.predict_proba(nodes).sum(1), 1)


# --- copies


def test_cloning_shares_the_graph(fitted, graph):
    bare = clone(fitted)
    assert bare.graph is graph
    with config_context(enable_metadata_routing=True):
        asking = clone(classifier(graph=graph).set_fit_request(sample_weight=True))
        assert asking.get_metadata_routing().fit.requests["sample_weight"] is True
    assert not hasattr(bare, "trained_")
    assert bare.get_params() == fitted.get_params()
    options = {"a": 0.5}
    other = clone(classifier(graph=graph, model_options=options))
    assert other.model_options == options
    assert other.model_options is not options
    assert bare.set_params(degree=2, graph=None).graph is None
    assert fitted.graph is graph


@pytest.mark.parametrize("again", [lambda e: pickle.loads(pickle.dumps(e)), copy.deepcopy])
def test_copies_predict_the_same_bits(again, fitted, graph, nodes, y):
    unfitted = again(classifier(graph=graph))
    assert not hasattr(unfitted, "trained_")
    refitted = unfitted.fit(nodes[:40], y[:40])
    np.testing.assert_array_equal(refitted.predict_proba(), fitted.predict_proba())
    copied = again(fitted)
    assert copied.graph is not graph
    np.testing.assert_array_equal(copied.predict_proba(nodes), fitted.predict_proba(nodes))
    # Through the models made again, and not by what was kept.
    np.testing.assert_array_equal(copied.predict_proba(graph), fitted.predict_proba(graph))
    np.testing.assert_array_equal(copied.filter_response()[1], fitted.filter_response()[1])


@pytest.mark.parametrize("name", one_per_architecture(MODELS))
def test_every_model_can_be_pickled(name, graph):
    options = {k: v for k, v in QUICK.items() if k != "degree"}
    estimator = LONGNNClassifier(model=name, **{**options, "epochs": 2}).fit(graph)
    loaded = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(loaded.predict_proba(graph), estimator.predict_proba(graph))
    model = pickle.loads(pickle.dumps(estimator.model_))
    weights = model.state_dict()
    for key, value in estimator.model_.state_dict().items():
        torch.testing.assert_close(weights[key], value, rtol=0, atol=0)


def test_a_loaded_estimator_may_be_given_a_graph(fitted, graph, nodes, tmp_path):
    fitted.save(tmp_path / "m.safetensors")
    loaded = LONGNNClassifier.load(tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match=r"set_params\(graph=...\)"):
        loaded.predict(nodes)
    loaded.set_params(graph=graph)
    np.testing.assert_array_equal(loaded.predict_proba(nodes), fitted.predict_proba(nodes))


# --- weights, seeds, names


def test_weights_count_as_repetition(graph, nodes, y):
    """A node of weight two is a node that is given twice; one of weight zero is not there."""
    weight = np.where(np.arange(40) % 4 == 0, 2.0, 1.0)
    weight[-5:] = 0
    weighed = classifier(graph=graph).fit(nodes[:40], y[:40], sample_weight=weight)
    twice = np.concatenate([np.arange(35), np.arange(0, 35, 4)])
    repeated = classifier(graph=graph).fit(nodes[twice], y[twice])
    np.testing.assert_allclose(weighed.predict_proba(), repeated.predict_proba(), atol=1e-6)
    plain = classifier(graph=graph).fit(nodes[:35], y[:35])
    assert np.abs(plain.predict_proba() - weighed.predict_proba()).max() > 1e-4
    same = classifier(graph=graph).fit(nodes[:35], y[:35], sample_weight=np.full(35, 3.0))
    np.testing.assert_array_equal(same.predict_proba(), plain.predict_proba())
    # The same through the graph and its masks.
    mask, spread = np.zeros(SIZE, dtype=bool), np.ones(SIZE)
    mask[nodes[:40]], spread[nodes[:40]] = True, weight
    whole = classifier().fit(graph, mask, sample_weight=spread)
    np.testing.assert_allclose(whole.predict_proba(), weighed.predict_proba(), atol=1e-6)


def test_weights_of_classes(graph, nodes, y):
    words = np.array(["no", "yes"])[y]
    assert classifier(class_weight="balanced").config().settings.class_weight == "balanced"
    heavy = classifier(graph=graph, class_weight={"yes": 9.0}, epochs=30).fit(nodes, words)
    light = classifier(graph=graph, class_weight={"yes": 0.1}, epochs=30).fit(nodes, words)
    assert heavy.predict_proba()[:, 1].mean() > light.predict_proba()[:, 1].mean()
    by_sample = classifier(graph=graph, epochs=30)
    by_sample.fit(nodes, words, sample_weight=np.where(y == 1, 9.0, 1.0))
    # Samples count in validation and for the temperature, too; classes in the loss alone.
    assert by_sample.predict_proba()[:, 1].mean() > light.predict_proba()[:, 1].mean()
    with pytest.raises(ValueError, match="`class_weight` to name classes among no, yes"):
        classifier(graph=graph, class_weight={"maybe": 2}).fit(nodes, words)


def test_seed_and_random_state_are_one(graph, nodes, y):
    seeded = classifier(graph=graph, seed=3).fit(nodes, y).predict_proba()
    stated = classifier(graph=graph, random_state=np.int64(3)).fit(nodes, y)
    np.testing.assert_array_equal(stated.predict_proba(), seeded)
    assert classifier(seed=3, random_state=3).config().seed == 3
    with pytest.raises(ValueError, match=r"Expected one of `seed` and `random_state` .got 3 and 4"):
        classifier(graph=graph, seed=3, random_state=4).fit(nodes, y)
    with pytest.raises(ValueError, match=r"integer >= 0 or a RandomState .got 'x'"):
        classifier(random_state="x").config()
    drawing = classifier(graph=graph, random_state=np.random.RandomState(0))
    seed = drawing.config().seed
    assert drawing.config().seed == seed
    assert drawing.fit(nodes, y).trained_.config.seed == seed
    assert drawing.fit(nodes, y).trained_.config.seed != seed


def test_classes_keep_their_type(dataset, graph, nodes, y):
    for labels in (y, y.astype(np.int8), np.array(["no", "yes"])[y], y == 1, y * 2.0):
        found = classifier(graph=graph).fit(nodes, labels)
        assert found.classes_.dtype == labels.dtype
        assert found.predict(nodes).dtype == labels.dtype
        assert found.classes_.tolist() == np.unique(labels).tolist()
    assert classifier().fit(dataset).classes_.tolist() == ["minus", "plus"]
    numbered = NodeDataset("n", graph, classes=("7", "-1"))
    assert classifier().fit(numbered).classes_.tolist() == [7, -1]
    text = NodeDataset("n", graph, classes=("z", "a"))
    assert classifier().fit(text).classes_.tolist() == ["z", "a"]
    # Names in another order than the alphabet's: labels of another graph still find theirs.
    words = np.array(["z", "a"])[graph.y]
    ordered = classifier().fit(text)
    score = ordered.score((graph.x, graph.edge_index, words))
    assert score == pytest.approx(np.mean(ordered.predict() == words))


def test_names_of_features(fitted, graph, nodes, y):
    frame = pandas.DataFrame(graph.x.numpy()).add_prefix("f")
    named = classifier(graph=(frame, graph.edge_index)).fit(nodes, y)
    assert named.feature_names_in_.tolist() == [*frame.columns]
    assert named.n_features_in_ == 8
    assert named.n_iter_ == named.n_epochs_ == 6
    assert not hasattr(fitted, "feature_names_in_")
    named.set_params(graph=graph).fit(nodes, y)
    assert not hasattr(named, "feature_names_in_")


def test_representations_are_short(fitted, graph, dataset):
    text = fitted._repr_html_()
    assert "user-set" in text
    assert "degree" in text
    assert len(text) < 100_000
    assert "graph=<60 nodes, " in repr(fitted)
    assert f"graph=<{dataset.name}: 60 nodes>" in repr(classifier(graph=dataset))
    assert "graph=<str>" in repr(classifier(graph="cora"))
    big = (np.random.default_rng(0).random((900, 900)), graph.edge_index)
    assert len(repr(classifier(graph=big))) < 200
    assert len(classifier(graph=big)._repr_html_()) < 100_000


def test_progress_is_printed_when_asked(graph, capsys):
    classifier(epochs=2).fit(graph)
    assert capsys.readouterr().out == ""
    classifier(epochs=205, patience=205, hidden_channels=4, verbose=1).fit(graph)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:2]] == ["epoch 100 of 205", "epoch 200 of 205"]
    assert lines[2].startswith("stopped after 205 epochs (epochs), kept epoch ")
    assert len(lines) == 3


# --- several outputs


def test_several_labels(graph, nodes, y):
    labels = np.stack([y, 1 - y, (graph.x[nodes, 0] > 0).numpy()], axis=1)
    found = classifier(graph=graph, epochs=60).fit(nodes[:40], labels[:40])
    probabilities = found.predict_proba(nodes[40:])
    assert probabilities.shape == (20, 3)
    predicted = found.predict(nodes[40:])
    assert set(np.unique(predicted)) <= {0, 1}
    assert found.score(nodes[40:], labels[40:]) == np.mean((predicted == labels[40:]).all(1))
    assert (found.predict(nodes[:40]) == labels[:40]).mean() > 0.7
    assert found.classes_.tolist() == [0, 1, 2]
    whole = np.full((SIZE, 3), np.nan)
    whole[nodes[:40]] = labels[:40]
    same = classifier(epochs=60).fit(graph.x, graph.edge_index, whole)
    np.testing.assert_array_equal(same.predict_proba(), found.predict_proba())
    assert same.score((graph.x, graph.edge_index, whole)) == found.score(nodes[:40], labels[:40])
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(found)).predict_proba(graph), found.predict_proba()
    )


def test_several_numbers(graph, nodes, numbers):
    targets = np.stack([numbers, 100 - 7 * numbers], axis=1)
    found = regressor(graph=graph, epochs=80, dropout=0.0, input_dropout=0.0)
    found.fit(nodes[:40], targets[:40])
    predicted = found.predict(nodes)
    assert predicted.shape == (SIZE, 2)
    assert found.score(nodes, targets) == pytest.approx(r2_score(targets, predicted))
    assert found.score(nodes[:40], targets[:40]) > 0.5
    assert cross_val_score(regressor(graph=graph), nodes, targets, cv=2).shape == (2,)


# --- figures and the report


def test_divergence_is_no_secret(graph, nodes, y):
    """At once it is an error, as of the command; later the best epoch is kept, with a warning."""
    wild = classifier(graph=graph, lr_transform=1e30)
    with pytest.raises(ValueError, match=r"Expected training to stay finite \(with seed 0 it div"):
        wild.fit(nodes, y)
    assert not hasattr(wild, "trained_")
    real, seen = Population._epoch, []

    def break_down(population):
        seen.append(population.epoch)
        real(population)
        if len(seen) == 3:
            for p in population.parameters.values():
                p.detach().fill_(torch.nan)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Population, "_epoch", break_down)
        with pytest.warns(ConvergenceWarning, match=r"diverged in epoch 4, and epoch \d was kept"):
            fitted = classifier(graph=graph).fit(nodes, y)
    assert 0 < fitted.best_epoch_ < 4
    assert np.isfinite(fitted.predict_proba()).all()


@pytest.mark.parametrize("factor", [1e16, 1e-17])
def test_numbers_that_32_bits_cannot_square(factor, graph, nodes, numbers):
    """Their predictions were infinite, or nonsense."""
    with pytest.raises(ValueError, match=r"Expected values to predict below 1e\+15 that spread"):
        regressor(graph=graph).fit(nodes, np.asarray(numbers, float) * factor)


def test_figures(fitted, graph):
    with mpl.rc_context({"backend": "agg"}):
        axes = fitted.plot_filter()
        assert axes.get_title(loc="left") == "Learned filter of lon, degree 3"
        assert "eigenvalue" in axes.get_xlabel()
        grid, response = fitted.filter_response()
        np.testing.assert_array_equal(axes.lines[0].get_xydata(), np.stack([grid, response[0]], 1))
        assert fitted.plot_training(ax=axes) is axes
        losses = [line for line in axes.lines if line.get_label() == "validation nodes"]
        np.testing.assert_array_equal(losses[0].get_ydata(), fitted.history_["val_loss"])
        assert axes.get_ylabel() == "loss (cross entropy)"
        mpl.pyplot.close("all")
    elsewhere = LONGNNClassifier.from_trained(fitted.trained_)
    with pytest.raises(ValueError, match="Expected an estimator with a history"):
        elsewhere.plot_training()
    with pytest.raises(ValueError, match="Expected an estimator that was fitted here"):
        elsewhere.report("page.html")


def test_the_report_is_one_page(fitted, nodes, y, tmp_path):
    loaded = pickle.loads(pickle.dumps(fitted))
    path = loaded.report(tmp_path / "mine.html", nodes[40:], y[40:])
    page = path.read_text()
    assert [p.name for p in tmp_path.iterdir()] == ["mine.html"]
    assert "What was learned" in page
    assert "test accuracy" in page
    assert "logistic regression" in page
    assert f"{100 * fitted.score(nodes[40:], y[40:]):.1f}" in page
    with pytest.raises(ValueError, match="Expected nodes that were not fitted on"):
        fitted.report(tmp_path / "no.html", nodes, y)
