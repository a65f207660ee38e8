"""The study of explanations: planted graphs, fair conditions, tables from a small run."""

import networkx
import numpy as np
import pytest

from lab.records import Record
from lab.studies import Context, run_study
from lab.studies.explanations import make_subject, methods, planted, probability
from longnn.config import Config


def test_the_class_of_a_centre_is_written_two_hops_away():
    dataset, informant = planted(30)
    graph = networkx.Graph(dataset.data.edge_index.T.tolist())
    centres = np.flatnonzero(informant >= 0)
    assert np.array_equal(centres, np.flatnonzero(dataset.labelled.numpy()))
    for i in centres:
        assert networkx.shortest_path_length(graph, i, informant[i]) == 2
        assert int(dataset.data.x[informant[i], :2].argmax()) == int(dataset.data.y[i])
    marked = np.flatnonzero(dataset.data.x[:, :2].sum(1).numpy())
    assert set(marked) == set(informant[centres])


@pytest.fixture(scope="module")
def subject():
    config = Config.from_dict({"model": "lon", "device": "cpu", "epochs": 30})
    return make_subject("planted", config, blocks=30, count=2, data_dir=None)


@pytest.mark.parametrize("name", methods(1))
def test_no_method_leaves_dropout_on(subject, name):
    """All share one model: what one leaves behind would be noise in the curves of the next."""
    node, everyone = int(subject.nodes[0]), np.ones(subject.dataset.num_nodes, dtype=bool)
    before = probability(subject, node, everyone)
    assert methods(3)[name](subject, node).shape == (subject.dataset.num_nodes,)
    assert not subject.trained.models[0].training
    assert [probability(subject, node, everyone) for _ in range(3)] == [before] * 3


def test_dropout_left_on_is_refused(subject):
    subject.trained.models[0].train()
    try:
        with pytest.raises(AssertionError, match="dropout is on"):
            subject.scores(subject.x)
    finally:
        subject.trained.models[0].eval()


def test_a_small_run(tmp_path):
    made = run_study("explanations", Context(tmp_path, quick=True, tell=lambda line: None))
    assert [table.name for table in made] == ["faithfulness", "sums"]
    record = Record(tmp_path / "records" / "record.json")
    cells = record.below("method/planted/")
    assert (
        len({tuple(cell["start"]) for cell in cells.values()}) == 1
    )  # one model, equal conditions
    assert len({tuple(cell["empty"]) for cell in cells.values()}) == 1
    sums = record["sums/planted"]
    assert max(sums["gap"], sums["feature_gap"]) < 1e-9
    assert sums["float32"] < 1e-5
    assert (tmp_path / "figures" / "curves.png").stat().st_size > 10_000
