"""Generated graphs have the homophily, degrees and labels that were asked for, and repeat."""

import numpy as np
import pytest

from lab.blockmodel import BlockModel
from lab.generator import generate
from lab.tests.commands import fail, run
from longnn.data import DataError
from longnn.store import prepare

SMALL = {"nodes": 2000, "edges": 10_000, "features": 6, "classes": 4}


@pytest.mark.parametrize("homophily", [0.0, 0.3, 1.0])
def test_homophily_is_what_was_asked_for(homophily):
    model = BlockModel(**{**SMALL, "edges": 100_000}, homophily=homophily)
    ends = zip(*map(model.edges_of, range(model.edge_chunks)), strict=True)
    source, target = (model.labels[np.concatenate(of)] for of in ends)
    assert (source == target).mean() == pytest.approx(homophily, abs=0.01)


def test_degrees_have_the_tail_of_their_exponent():
    """Hill's estimate of the exponent, and the largest degree at the cutoff."""
    model = BlockModel(nodes=50_000, edges=1_000_000, classes=2, exponent=2.5)
    ends = np.concatenate(model.edges_of(0))
    degree = np.sort(np.bincount(ends, minlength=model.nodes))[::-1]
    top = degree[200:1500].astype(float)  # below the cutoff, above the bulk
    slope = np.polyfit(np.log(np.arange(200, 1500)), np.log(top), 1)[0]
    assert slope == pytest.approx(-1 / (model.exponent - 1), abs=0.1)  # d ~ rank^(-1/(gamma-1))
    assert degree[0] == pytest.approx(np.sqrt(2 * model.edges), rel=0.15)
    assert degree[0] > 10 * degree.mean()


def test_features_are_class_means_and_noise():
    model = BlockModel(**{**SMALL, "features": 50}, signal=3.0)
    x = model.features_of(0)
    means = np.stack([x[model.labels == c].mean(0) for c in range(4)])
    assert np.linalg.norm(means, axis=1) == pytest.approx(3.0, rel=0.4)
    assert (x - means[model.labels]).std() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(("labelled", "count"), [(0.25, 500), (30, 30), (1.0, 2000)])
def test_so_many_nodes_are_labelled(labelled, count):
    assert BlockModel(**SMALL, labelled=labelled).labelled_nodes.sum() == count


def test_files_prepare_to_the_graph_of_the_model(tmp_path, monkeypatch):
    """Of several chunks, and the seed decides everything."""
    monkeypatch.setattr("lab.blockmodel.CHUNK", 600)
    options = {**SMALL, "labelled": 0.5}
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        generate(tmp_path / name, **options, seed=seed)
    assert len([*(tmp_path / "a" / "edges").iterdir()]) == 17
    a, b, c = (prepare(tmp_path / x, output=tmp_path / f"{x}-graph") for x in "abc")
    for name in ("offsets", "neighbours", "features", "y"):
        first, same, other = (g.manifest.array(g.folder, f"{name}.npy") for g in (a, b, c))
        assert np.array_equal(first, same)
        assert not np.array_equal(first, other)
    model = BlockModel(**options, seed=3)
    np.testing.assert_array_equal(a.answers["y"], np.where(model.labelled_nodes, model.labels, -1))
    np.testing.assert_array_equal(a.features[: model.rows], model.features_of(0))
    with pytest.raises(DataError, match="empty folder"):
        generate(tmp_path / "a", **options)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"classes": 1}, "`classes` >= 2"),
        ({"nodes": 7}, r"`nodes` within 8\.\.2\^31 - 1"),
        ({"edges": 0}, "`edges` >= 1"),
        ({"features": 0}, "`features` >= 1"),
        ({"homophily": 1.5}, r"`homophily` within 0\.\.1 \(got 1.5\)"),
        ({"labelled": 0}, "`labelled` a share"),
        ({"signal": -1}, "`signal` >= 0"),
        ({"exponent": 2}, "`exponent` > 2"),
        ({"seed": -1}, "`seed` >= 0"),
    ],
    ids=str,
)
def test_options_out_of_range(tmp_path, wrong, message):
    with pytest.raises(DataError, match=f"Expected .*{message}"):
        generate(tmp_path, **{**SMALL, **wrong})


def test_the_command_ends_with_the_next_step(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = ("--nodes", "1_00", "--edges", "300", "--features", 3, "--homophily", "0.3")
    result = run("generate", *small, "--output", "parts")
    assert result.stderr.splitlines() == ["next: longnn prepare parts --output DIR"]


def test_mistakes_are_one_line():
    small = ("--nodes", 100, "--edges", 300)
    assert "`homophily` within" in fail("generate", *small, "--homophily", 2)
