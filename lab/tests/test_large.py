"""Large graphs: what is run, and the page of its record."""

import pytest

from lab.large import PLAIN, STAGES, _commands, _run, exponents, page


def graph(nodes, epochs=6, **seconds):
    stages = {stage: seconds.get(stage, nodes / 1000) for stage in STAGES}
    costs = {
        stage: {"seconds": wall, "cpu_seconds": 2 * wall, "peak_gb": 1.5, "load": 3.2}
        for stage, wall in stages.items()
    }
    run = {"epochs": 6, "scores": {"test": {"accuracy": 0.515}}}
    machine = {"cpu": "a processor", "cores": 2, "longnn": "1.0"}
    return {"nodes": nodes, "memory": "1G", "epochs": epochs, "disk_gb": 2.0} | {
        "stages": costs,
        "run": run,
        "machine": machine,
    }


def test_growth_is_of_graphs_with_one_limit():
    """Twice the nodes take twice the time, and four times in prediction."""
    small, large = graph(1000, predict=1.0), graph(2000, predict=4.0)
    assert exponents([small, large], "seconds") == {
        "prepare": [1.0],
        "propagate": [1.0],
        "train": [1.0],
        "predict": [2.0],
    }
    text = page({"graphs": [graph(10_000, None), small, large]})
    assert "| predict | 2.00 (2.00) |" in text
    assert "| 10,000 | 100,000 | 1G | 10 (20) | 10 (20) | 10 (20) | 10 (20) | 40 (80) |" in text
    assert "Known answers" not in text
    assert "a processor, 2 cores, longnn 1.0" in text


def test_known_answers_are_what_training_without_them_saves(tmp_path):
    one = graph(1000, train=9.0)
    one["stages"][PLAIN] = one["stages"]["prepare"]
    assert "Known answers take 8 s (16 s) of the training of 1,000 nodes" in page({"graphs": [one]})
    for plain in (False, True):
        assert (PLAIN in _commands(one, tmp_path, plain)) == plain


def test_a_command_that_fails_is_an_error(tmp_path):
    with pytest.raises(RuntimeError, match="train failed"):
        _run("train", ["false"], tmp_path)
