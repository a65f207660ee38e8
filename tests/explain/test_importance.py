"""Which columns count: a planted one does, noise does not, in memory and on disk."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import longnn
from longnn.explain._importance import column_importance, shuffled
from longnn.matrices import csr_from_scipy, csr_to_scipy
from longnn.runs import load_run, train
from tests.commands import succeed, succeed_json
from tests.test_known import SETTINGS, answers, write

NODES = 240
QUICK = {"preset": "fast", "epochs": 40, "baselines": False, "seed": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A ring of people whose answer is that of their team; height is noise."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("planted")
    team = rng.choice(["red", "green", "blue"], NODES)
    answer = np.where(team == "red", "yes", np.where(team == "blue", "no", "maybe"))
    height = rng.normal(170, 10, NODES)
    rows = [f"p{i},{height[i]:.1f},{team[i]},{answer[i]}" for i in range(NODES)]
    (folder / "nodes.csv").write_text("\n".join(["id,height,team,label", *rows]))
    edges = [f"p{i},p{(i + step) % NODES}" for i in range(NODES) for step in (1, 2)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]))
    return folder


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    return train(folder, QUICK, tmp_path_factory.mktemp("runs") / "run")


def test_a_planted_column_is_first_and_noise_is_worth_nothing(run):
    assert list(run.record.importance) == ["team", "height"]  # three features are one column
    assert run.record.importance["team"].low > 0.3
    assert abs(run.record.importance["height"].mean) < 0.05
    assert load_run(run.folder).column_importance() == run.record.importance
    page = (run.folder / "report.html").read_text()
    assert "What counts most: team. Where team is shuffled, the score loses" in page


def test_the_score_lost_is_that_of_a_file_with_shuffled_cells(run, folder, tmp_path):
    first = run.column_importance(1)["team"]
    order = np.random.default_rng(0).permutation(NODES)
    head, *lines = (folder / "nodes.csv").read_text().splitlines()
    cells = [line.split(",") for line in lines]
    teams = [row[2] for row in cells]
    for row, place in zip(cells, order, strict=True):
        row[2] = teams[place]
    (tmp_path / "nodes.csv").write_text("\n".join([head, *map(",".join, cells)]))
    (tmp_path / "edges.csv").write_text((folder / "edges.csv").read_text())
    succeed("predict", run.folder, tmp_path, "--output", tmp_path / "said.csv")
    said = np.genfromtxt(tmp_path / "said.csv", delimiter=",", names=True, dtype=None)
    test = run.splits[0].test.numpy()
    right = np.mean((said["predicted"] == said["label"])[test])
    before = run.record.repeats[0].scores["test"]["accuracy"]
    assert first.mean == pytest.approx(before - right, abs=1e-6)


def test_known_answers_correct_as_in_the_run(tmp_path):
    """Columns of chance, an answer that neighbours know: it is found, whatever is shuffled."""
    made = longnn.train(write(tmp_path / "street", answers()), SETTINGS)
    assert made.trained.known[0].used
    score = made.record.repeats[0].scores["test"]["r2"]
    assert score > 0.5
    assert max(lost.mean for lost in made.column_importance().values()) < score / 4


def test_on_disk_it_is_computed_when_asked_for_and_is_the_same(run, folder, tmp_path):
    stored = train(folder, QUICK, tmp_path / "run", memory=1, cache=tmp_path)
    assert stored.record.importance == {}
    assert "Which columns count was not computed" in (tmp_path / "run/report.html").read_text()
    whole = column_importance(stored.trained, run.dataset, stored.splits, stored.record.metric)
    found = stored.column_importance()
    assert list(found) == list(whole) == ["team", "height"]
    for column, lost in found.items():
        assert lost.mean == pytest.approx(whole[column].mean, abs=1e-6)


def test_explain_shows_it(run):
    shown = succeed("explain", run.folder)
    assert "what the test score loses where they are shuffled: team 0." in shown
    table = succeed_json("explain", run.folder)["importance"]
    assert table[0]["column"] == "team"
    assert run.explain().importance["column"][0] == "team"


def test_words_are_shuffled_as_numbers_are():
    rng = np.random.default_rng(0)
    dense = (rng.random((30, 6)) < 0.3) * rng.random((30, 6))
    order = rng.permutation(30)
    mixed = shuffled(csr_from_scipy(sp.csr_array(dense)), [1, 2, 4], order)
    expected = shuffled(torch.from_numpy(dense).float(), [1, 2, 4], order)
    assert torch.equal(mixed.to_dense(), expected)
    assert csr_to_scipy(mixed).has_canonical_format
