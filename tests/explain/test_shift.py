"""Explanations of a run whose probabilities follow the validation nodes."""

import dataclasses

import numpy as np
import pytest

import longnn
from longnn.explain import explain_nodes
from longnn.training import Readout
from tests.explain.cases import HERE, make_ensemble, make_trained
from tests.shifted import shifted_graph

SHIFT = (2.0, -1.0, 0.0)


def shifted(trained, **values):
    """The same with a shift of every repeat; ``values`` replace others of its readout."""
    own = Readout("classification", temperature=1.5, shift=SHIFT, **values)
    return dataclasses.replace(trained, readouts=(own,) * trained.repeats)


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("make", [lambda n: make_trained("lon", repeats=n), make_ensemble])
def test_the_sentence_is_there_where_the_class_is_another(make, repeats):
    plain = make(repeats) if make is not make_ensemble else make("lon", "mlp", repeats=repeats)
    trained = shifted(plain)
    without = dataclasses.replace(
        trained, readouts=(Readout("classification", temperature=1.5),) * repeats
    )
    problem = trained.problem(HERE)
    p, q = (t.predict(problem).double() for t in (trained, without))
    found = explain_nodes(trained, HERE, range(HERE.num_nodes))
    names = trained.classes
    for i, e in enumerate(found.nodes):
        ours, other = int(p[i].argmax()), int(q[i].argmax())
        assert (e.predicted, e.output) == (names[ours], names[ours])
        assert e.probability == pytest.approx(float(p[i, ours]), abs=1e-6)
        assert e.without == ("" if ours == other else names[other])
        assert ("The scores alone would say" in found.why(i)) == (ours != other)
        assert abs(e.gap) < 1e-9
        if ours != other:
            odds = (p[i, ours] / p[i, other]).log() - (q[i, ours] / q[i, other]).log()
            assert e.shift == pytest.approx(float(odds), abs=1e-4)
            said = f"adds {odds:.2f} to the log-odds of {names[ours]} against {names[other]}."
            assert said in found.why(i)
            if repeats == 1:
                assert e.shift == pytest.approx(SHIFT[ours] - SHIFT[other], abs=1e-4)
    assert sum(bool(e.without) for e in found.nodes) > 0
    (note,) = [note for note in found.notes if "class frequencies" in note]
    part = "no part of what is explained" if repeats == 1 else "part of the constant"
    assert note.endswith(part) or part in note
    assert ("before calibration" in found.what) == (repeats == 1 and make is make_ensemble)


def test_a_fitted_threshold_makes_up_for_the_shift_a_given_one_does_not():
    fitted = shifted(make_trained("lon", repeats=1, outputs=2), threshold=0.5)
    fitted = dataclasses.replace(
        fitted, readouts=(dataclasses.replace(fitted.readouts[0], shift=(3.0, -3.0)),)
    )
    given = dataclasses.replace(fitted, config=fitted.config.replace(threshold=0.5))
    said = [
        [e.without for e in explain_nodes(t, HERE, range(HERE.num_nodes)).nodes]
        for t in (fitted, given)
    ]
    assert set(said[0]) == {""}
    assert any(said[1])


def test_a_run_is_explained_as_it_predicts():
    graph = shifted_graph()
    run = longnn.train(graph, {"epochs": 5, "preset": "fast", "baselines": False})
    assert run.trained.readouts[0].shift
    table = run.predictions().to_pydict()
    found = run.explain(list(range(40)))
    assert [e.predicted for e in found.nodes] == table["predicted"][:40]
    p = np.array([table[f"p_{name}"] for name in graph.classes]).max(0)
    assert [e.probability for e in found.nodes] == pytest.approx(p[:40].tolist(), abs=1e-6)
