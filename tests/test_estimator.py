"""The scikit-learn face: conventions, labels of any kind, masks, saving, and what was learned."""

import json

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import longnn
from longnn import LONGNNClassifier, LONGNNRegressor
from longnn.data import DataError
from longnn.data._synthetic import csbm
from tests.helpers import changing

EPOCHS = 20


@pytest.fixture(scope="module")
def data():
    return csbm(phi=-0.7, num_nodes=120, num_features=16, degree=8.0).data


def classifier(**options):
    return LONGNNClassifier(**{"epochs": EPOCHS, "degree": 5, "device": "cpu", **options})


@pytest.fixture(scope="module")
def fitted(data):
    return classifier().fit(data)


@pytest.fixture(scope="module")
def smooth(data):
    """The graph with a number for each node."""
    data = data.clone()
    data.y = 10 + 3 * data.x[:, 0] + data.x[:, 1]
    return data


def words(data):
    return np.where(data.y.numpy() > 0, "plus", "minus")


def test_fitted_attributes(fitted, data):
    check_is_fitted(fitted)
    assert fitted.classes_.tolist() == [0, 1]
    assert fitted.n_features_in_ == 16
    assert 1 <= fitted.best_epoch_ <= fitted.n_epochs_ <= EPOCHS
    assert set(fitted.history_) >= {"train_loss", "val_loss", "val_score", "a", "b", "amplitude"}
    assert all(len(column) == fitted.n_epochs_ for column in fitted.history_.values())
    assert fitted.a_ == pytest.approx(fitted.history_["a"][fitted.best_epoch_ - 1], abs=1e-6)
    assert fitted.b_ > -1
    assert set(LONGNNClassifier().get_params().values()) == {None}
    assert not (fitted.train_mask_ & fitted.val_mask_).any()
    assert fitted.val_mask_.sum() == pytest.approx(0.2 * len(data.y), abs=2)
    assert fitted.score(data) > 0.8


def test_filter_response_is_that_of_the_model(fitted):
    grid, response = fitted.filter_response()
    assert grid[[0, -1]].tolist() == [0, 2]
    inner = fitted.model_.filters()[0]
    assert response.shape == (inner.channels, len(grid))
    _, there = fitted.filter_response([0.3, 1.7])
    expected = inner.response(torch.tensor([0.3, 1.7], dtype=torch.float64)).detach()
    np.testing.assert_allclose(there, expected)


def test_fitting_leaves_the_data_and_the_global_generator_alone(data):
    before, state = data.clone(), torch.random.get_rng_state()
    classifier(epochs=2).fit(data)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert data.keys() == before.keys()
    assert all(torch.equal(data[key], before[key]) for key in data.keys())  # noqa: SIM118


def test_labels_may_be_words_and_missing(fitted, data):
    labels = words(data)
    named = classifier().fit((data.x, data.edge_index, labels))
    assert named.classes_.tolist() == ["minus", "plus"]
    np.testing.assert_array_equal(named.predict_proba(), fitted.predict_proba())
    assert set(named.predict()) <= {"minus", "plus"}
    some = labels.astype(object)
    some[::4] = None
    partly = classifier().fit((data.x, data.edge_index, some))
    assert partly.classes_.tolist() == ["minus", "plus"]
    assert not (partly.train_mask_ | partly.val_mask_)[::4].any()
    assert len(partly.predict()) == 120
    known = np.arange(120) % 4 > 0
    right = (partly.predict() == labels)[known].mean()
    assert partly.score((data.x, data.edge_index, some)) == pytest.approx(right)


@pytest.mark.parametrize("missing", [-1, np.nan])
def test_numbers_that_mean_unlabelled(data, missing):
    y = data.y.numpy().astype(float if missing != missing else int)
    y[:60] = missing
    estimator = classifier(epochs=2).fit((data.x, data.edge_index, y))
    assert estimator.classes_.tolist() == [0, 1]
    assert not (estimator.train_mask_ | estimator.val_mask_)[:60].any()
    numbers = data.x[:, 0].numpy().copy()
    numbers[:60] = np.nan
    estimator = LONGNNRegressor(epochs=2, degree=2, device="cpu")
    estimator.fit((data.x, data.edge_index, numbers))
    assert not (estimator.train_mask_ | estimator.val_mask_)[:60].any()
    assert np.isfinite(estimator.predict()).all()


def test_masks_given_or_from_the_data(data):
    train, val = torch.zeros(2, 120, dtype=torch.bool)
    train[:70], val[70:100] = True, True
    given = classifier().fit(data, train_mask=train, val_mask=val.numpy())
    np.testing.assert_array_equal(given.train_mask_, train)
    np.testing.assert_array_equal(given.val_mask_, val)
    own = data.clone()
    own.train_mask, own.val_mask = train, val
    np.testing.assert_array_equal(classifier().fit(own).predict_proba(), given.predict_proba())
    carved = classifier(epochs=2).fit(data, train_mask=train)
    np.testing.assert_array_equal(carved.train_mask_ | carved.val_mask_, train)
    with pytest.raises(ValueError, match=r"`val_mask` of shape \(120,\) \(got \(3,\)\)"):
        classifier().fit(data, train, [True, False, True])


def test_another_graph(fitted):
    other = csbm(phi=-0.7, num_nodes=50, num_features=16, degree=8.0, seed=3).data
    assert fitted.predict(other).shape == (50,)
    del other["y"]
    assert fitted.predict_proba(other).shape == (50, 2)
    with pytest.raises(ValueError, match="Expected labelled nodes to score on"):
        fitted.score(other)


def test_regression(smooth, tmp_path):
    estimator = LONGNNRegressor(epochs=60, degree=4, device="cpu", dropout=0.0, input_dropout=0.0)
    estimator.fit(smooth)
    predicted = estimator.predict()
    y = smooth.y.numpy()
    r2 = 1 - ((y - predicted) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert estimator.score(smooth) == pytest.approx(r2, abs=1e-5)
    assert r2 > 0.5
    assert not hasattr(estimator, "classes_")
    estimator.save(tmp_path / "r.safetensors")
    loaded = LONGNNRegressor.load(tmp_path / "r.safetensors")
    np.testing.assert_array_equal(loaded.predict(smooth), predicted)
    flat = smooth.clone()
    flat.y = torch.full((120,), 2.0)
    with pytest.raises(ValueError, match="labels that differ"):
        estimator.score(flat)


def test_save_and_load(fitted, data, tmp_path):
    path = tmp_path / "model.safetensors"
    fitted.save(path)
    loaded = LONGNNClassifier.load(path)
    assert loaded.get_params() == fitted.get_params()
    np.testing.assert_array_equal(loaded.predict_proba(data), fitted.predict_proba())
    assert (loaded.a_, loaded.b_, loaded.n_epochs_) == (fitted.a_, fitted.b_, fitted.n_epochs_)
    np.testing.assert_array_equal(loaded.history_["val_loss"], fitted.history_["val_loss"])
    with pytest.raises(ValueError, match="Expected the graph to predict on"):
        loaded.predict()
    with pytest.raises(ValueError, match=r"Expected a saved LONGNNRegressor \(got a LONGNNClass"):
        LONGNNRegressor.load(path)
    assert b"pickle" not in path.read_bytes()


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "m.safetensors"
    with pytest.raises(FileNotFoundError):
        LONGNNClassifier.load(path)
    torch.save({"a": torch.ones(2)}, path)
    for other in (path, tmp_path):
        with pytest.raises(ValueError, match="to hold weights"):
            LONGNNClassifier.load(other)
    for call in (
        classifier().predict,
        classifier().filter_response,
        lambda: classifier().save(path),
    ):
        with pytest.raises(NotFittedError, match="Expected a fitted LONGNNClassifier"):
            call()


def test_wrong_input(fitted, data):
    with pytest.raises(ValueError, match=r"Expected 16 features .* \(got 17\)"):
        fitted.predict((torch.ones(120, 17), data.edge_index, data.y))
    with pytest.raises(TypeError, match=r"NodeDataset or \(X, edge_index, y\) \(got str"):
        fitted.predict("cora")
    with pytest.raises(ValueError, match=r"\(X, edge_index, y\) \(got 2 entries\)"):
        classifier().fit((data.x, data.edge_index))
    with pytest.raises(ValueError, match="Expected labels `y` to fit on"):
        classifier().fit((data.x, data.edge_index, None))
    with pytest.raises(DataError, match="Expected finite features"):
        classifier().fit((data.x.numpy() * np.nan, data.edge_index, data.y))
    train = data.y == 0
    with pytest.raises(DataError, match="Expected a training node of each class"):
        classifier().fit(data, train_mask=train)


def test_any_model(data):
    estimator = classifier(model="gcn", degree=None, epochs=3).fit(data)
    with pytest.raises(ValueError, match="Unknown option `degree` of model 'gcn'"):
        classifier(model="gcn", degree=3).fit(data)
    assert estimator.a_ is None
    with pytest.raises(ValueError, match="Expected a model with a polynomial filter"):
        estimator.filter_response()
    with pytest.raises(ValueError, match="did you mean `lon`"):
        classifier(model="lonn").fit(data)
    with pytest.raises(TypeError, match="did you mean `epochs`"):
        classifier(epohcs=3)
    with pytest.raises(ValueError, match="did you mean `placement`"):
        classifier(model_options={"placment": "hidden"}).fit(data)


def test_names_of_the_package():
    """Every name is there when asked for; of what is loaded see ``test_startup.py``."""
    for name in longnn.__all__:
        assert getattr(longnn, name) is not None
        assert name in dir(longnn)
    assert longnn.LONGNNClassifier is LONGNNClassifier
    assert longnn.registry.MODELS["lon"].model is longnn.LONGNN
    with pytest.raises(AttributeError, match="no attribute 'LONGNNClasifier'"):
        _ = longnn.LONGNNClasifier


def test_one_way_edges_are_made_two_way_with_a_warning(data):
    """PyG graphs are directed by nature: what is changed is said. A loader's notes say it too."""
    row, col = data.edge_index
    once = data.edge_index[:, row < col]
    with pytest.warns(UserWarning, match=rf"{once.shape[1]} edges were listed one way"):
        one_way = classifier(epochs=3).fit((data.x, once, data.y))
    both = classifier(epochs=3).fit(data)
    np.testing.assert_array_equal(one_way.predict_proba(), both.predict_proba())


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("class", None, r"'about.extra.class' to be text \(got nothing\)"),
        ("parameters", [], r"'about.extra.parameters' to be an object"),
        ("parameters", {"graph": 5}, r"those of LONGNNClassifier, without 'graph'"),
        ("classes", [0], r"'about.extra.classes' to be a list of 2 classes \(got \[0\]\)"),
        ("classes", [[], {}], r"'about.extra.classes' to be a list of texts or numbers"),
        ("history", {"a": [1]}, r"'about.extra.history' to be losses by epoch"),
        ("history", {"train_loss": [1], "val_loss": [1, 2]}, r"to be one value of each kind per"),
        ("epochs", [1], r"'about.extra.epochs' to be two numbers"),
    ],
)
def test_files_with_wrong_members_are_refused(key, value, reason, fitted, tmp_path):
    path = tmp_path / "m.longnn"
    fitted.save(path)
    with changing(path) as (_, metadata):
        about = json.loads(metadata["about"])
        about["extra"] = {**about["extra"], key: value}
        if value is None:
            del about["extra"][key]
        metadata["about"] = json.dumps(about)
    with pytest.raises(DataError, match=reason):
        LONGNNClassifier.load(path)
