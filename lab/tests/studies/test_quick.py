"""A small version of every study that can be computed: it runs, and nothing is computed twice."""

import pytest

from lab.studies import Context, get_study, is_history, run_study, study_names

#: Those that search or train portfolios take minutes, even small.
SLOW = {"accuracy", "ablation", "weights", "practice", "strangers"}


def computed():
    names = [name for name in study_names() if not is_history(get_study(name))]
    return [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in names]


@pytest.mark.parametrize("name", computed())
def test_it_runs_and_is_not_computed_again(name, tmp_path, monkeypatch):
    if name == "time":
        monkeypatch.setattr("lab.studies.time.TURN", 0.01)
        monkeypatch.setattr("lab.studies.time.EPOCHS", {True: 4})
    told, folder = [], tmp_path / name
    models = ["gpr"] if name == "overpassing" else None  # one says enough
    context = Context(folder, device="cpu", quick=True, models=models, tell=told.append)
    tables = run_study(name, context)
    assert told
    assert tables
    assert all(table.rows for table in tables)
    records = {path: path.read_bytes() for path in (folder / "records").iterdir()}
    assert not [path for path, text in records.items() if str(tmp_path).encode() in text]
    count = len(told)
    again = run_study(name, context)
    assert len(told) == count
    assert [table.rows for table in again] == [table.rows for table in tables]
    assert records == {path: path.read_bytes() for path in records}
