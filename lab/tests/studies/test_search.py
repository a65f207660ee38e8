"""The timed search: what it records, and that its winner is what is tested."""

import json

from lab.studies import Context, run_study, search
from lab.studies._core._evaluation import train_splits
from longnn.config import Config
from longnn.data._synthetic import csbm


def test_search_is_recorded_and_its_winner_tested(tmp_path, monkeypatch):
    small = csbm(num_nodes=100, num_features=12, seed=1)
    monkeypatch.setattr(search.data, "load", lambda name, data_dir=None: small)
    monkeypatch.setattr(search, "QUICK", search.Plan(trials=3, repeats=1, epochs=6, splits=2))
    told = []
    context = Context(tmp_path, device="cpu", quick=True, tell=told.append)
    (table,) = run_study("search", context)
    file = tmp_path / "records" / "csbm.json"
    cells = json.loads(file.read_text())["cells"]
    assert cells["search"]["finished"] == 3
    config = Config.from_dict(cells["search"]["config"])
    assert config.options["weight"] == "paper"  # the paper's form
    (row,) = train_splits(small, [config], range(2), device="cpu")
    assert row.test == cells["winner"]["test"]
    assert table.rows[0][1].startswith("3 (")
    # Killed between the two, only what is missing is done.
    record = json.loads(file.read_text())
    del record["cells"]["winner"]
    file.write_text(json.dumps(record))
    run_study("search", context)
    again = json.loads(file.read_text())["cells"]
    assert again["search"] == cells["search"]
    assert again["winner"]["test"] == cells["winner"]["test"]
    before = file.read_bytes()
    run_study("search", context)
    assert file.read_bytes() == before  # nothing is done twice
