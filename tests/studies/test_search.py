"""The timed search: what it records, and that its winner is what is tested."""

import json

from longnn.config import Config
from longnn.data import csbm
from longnn.studies import _paper as paper
from longnn.studies import _search as search
from longnn.studies._evaluation import train_splits


def test_search_is_recorded_and_its_winner_tested(tmp_path, monkeypatch):
    small = csbm(num_nodes=100, num_features=12, seed=1)
    monkeypatch.setattr(search.data, "load", lambda name, data_dir=None: small)
    settings = {"trials": 3, "repeats": 1, "epochs": 6, "splits": 2}
    monkeypatch.setattr(search, "QUICK", settings)
    told = []
    context = paper.Context(tmp_path, device="cpu", quick=True, tell=told.append)
    (table,) = paper.run_experiment("search", context)
    parts = json.loads((tmp_path / "csbm.json").read_text())["parts"]
    assert parts["search"]["finished"] == 3
    config = Config.from_dict(parts["search"]["config"])
    assert config.options["weight"] == "paper"  # the published form
    (row,) = train_splits(small, [config], range(2), device="cpu")
    assert row["test"] == parts["winner"]["test"]
    assert table.rows[0][1].startswith("3 (")
    # Killed between the two, only what is missing is done.
    record = json.loads((tmp_path / "csbm.json").read_text())
    del record["parts"]["winner"]
    (tmp_path / "csbm.json").write_text(json.dumps(record))
    paper.run_experiment("search", context)
    again = json.loads((tmp_path / "csbm.json").read_text())["parts"]
    assert again["search"] == parts["search"]
    assert again["winner"]["test"] == parts["winner"]["test"]
    before = (tmp_path / "csbm.json").read_bytes()
    paper.run_experiment("search", context)
    assert (tmp_path / "csbm.json").read_bytes() == before  # nothing is done twice
