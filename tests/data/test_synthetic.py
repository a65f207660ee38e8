"""Generated and bundled graphs: their laws, their determinism, their limits."""

import math

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from longnn.data import DataError, load
from longnn.data._card import homophily
from longnn.data._catalog import list_bundled
from longnn.data._synthetic import csbm, digits


class TestCsbm:
    def test_same_seed_same_graph(self):
        assert csbm(seed=1).fingerprint() == csbm(seed=1).fingerprint()
        assert csbm(seed=1).fingerprint() != csbm(seed=2).fingerprint()

    @pytest.mark.parametrize("phi", [-1.0, -0.5, 0.0, 0.5, 1.0])
    def test_edges_follow_the_model(self, phi):
        """Mean degree d, and edge homophily (1 + lambda / sqrt d) / 2, within 5 sigma."""
        n, d, eps = 4000, 5.0, 3.25
        graph = csbm(phi=phi, num_nodes=n, num_features=2, degree=d, eps=eps)
        edges = n * d / 2
        assert abs(graph.num_edges - edges) < 5 * math.sqrt(edges) + d
        lam = math.sqrt(1 + eps) * math.sin(math.pi * phi / 2)
        expected = (1 + lam / math.sqrt(d)) / 2
        found = homophily(graph)[0]
        assert found is not None
        spread = math.sqrt(expected * (1 - expected) / edges)
        assert abs(found - expected) < 5 * spread + 1e-3
        assert int(graph.data.y.sum()) == n // 2

    @pytest.mark.parametrize("phi", [0.0, 0.6, 1.0])
    def test_features_follow_the_model(self, phi):
        """v^T X / n has mean sqrt(mu / n) u, |u|^2 ~ 1; the noise has variance 1 / f."""
        n, f, eps = 2000, 800, 3.25
        graph = csbm(phi=phi, num_nodes=n, num_features=f, eps=eps)
        sign = 2.0 * graph.data.y.double() - 1
        x = graph.data.x.double()
        centre = sign @ x / n
        mu = math.sqrt(n / f * (1 + eps)) * math.cos(math.pi * phi / 2)
        # |centre|^2 = mu / n |u|^2 + |noise|^2, of mean (mu + 1) / n
        assert float(centre @ centre) * n == pytest.approx(mu + 1, rel=0.25)
        noise = x - sign[:, None] * centre
        assert float(noise.var()) == pytest.approx(1 / f, rel=0.02)

    def test_pairs_are_drawn_evenly(self):
        """Over many seeds every pair of a class is hit equally often."""
        hits = np.zeros((8, 8))
        for seed in range(400):
            graph = csbm(phi=0.0, num_nodes=8, num_features=1, degree=3.0, eps=0.0, seed=seed)
            hits[tuple(graph.data.edge_index.numpy())] += 1
        rates = hits[np.triu_indices(8, 1)] / 400
        sigma = math.sqrt(3 / 8 * 5 / 8 / 400)
        assert np.abs(rates - 3 / 8).max() < 4.5 * sigma
        assert np.abs(rates.mean() - 3 / 8) < 4.5 * sigma / math.sqrt(28)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"phi": 1.5}, r"`phi` in \[-1, 1\] \(got 1.5\)"),
            ({"num_nodes": 1}, "num_nodes >= 2 and num_features >= 1 .got 1 and 320"),
            ({"degree": 0.0}, "degree > 0 and eps > -1 .got 0.0 and 3.25"),
            ({"eps": -1.0}, "eps > -1"),
            ({"eps": math.nan}, r"finite degree > 0 and eps > -1 \(got 5.0 and nan\)"),
            ({"degree": math.inf}, "finite degree > 0"),
            (
                {"num_nodes": 10**12},
                r"times degree, <= 100000000 \(got 1000000000000 nodes with 320",
            ),
            ({"num_nodes": 10**400}, "<= 100000000 .got 1000"),
            ({"num_features": 10**9}, r"<= 100000000 \(got 800 nodes with 1000000000 features"),
            ({"num_nodes": 10**7, "num_features": 1, "degree": 1e6}, r"degree 1e\+06\)"),
            ({"seed": -1}, r"`seed` >= 0 \(got -1\)"),
            ({"phi": 1.0, "degree": 2.0}, r"probabilities in \[0, 1\] .*raise `degree`"),
            ({"num_nodes": 4, "degree": 5.0}, r"probabilities in \[0, 1\]"),
        ],
    )
    def test_refuses(self, options, message):
        with pytest.raises(DataError, match=message):
            csbm(**options)


class TestDigits:
    def test_links_are_nearest_neighbours_either_way(self):
        graph = digits(neighbours=3)
        x = load_digits().data / 16
        assert torch.equal(graph.data.x, torch.from_numpy(x).float())
        gram = x @ x.T
        distance = np.diag(gram)[:, None] + np.diag(gram)[None] - 2 * gram
        np.fill_diagonal(distance, np.inf)
        third = np.sort(distance, axis=1)[:, 2]
        row, col = graph.data.edge_index.numpy()
        near = distance[row, col] <= np.maximum(third[row], third[col]) + 1e-9
        assert near.all()
        assert np.bincount(row).min() >= 3

    def test_classes_and_limits(self):
        graph = digits()
        assert graph.classes == tuple("0123456789")
        assert graph.num_nodes == 1797
        with pytest.raises(DataError, match=r"`neighbours` in 1..1796 \(got 0\)"):
            digits(neighbours=0)


def test_bundled_table_makes_what_it_names():
    for entry in list_bundled():
        assert entry.make().name == entry.name == load(entry.name).name
