"""How scores come about: what is trained together, what chooses, what no choice may see."""

import json

import numpy as np
import pytest

from lab.studies import Context, _search, ablation, accuracy, run_study
from lab.studies._search import search_space
from lab.studies._training import train_config
from longnn.config import Config
from longnn.data import csbm, make_split

SMALL = {
    **_search.PROTOCOL,
    "trials": 4,
    "repeats": 1,
    "finalists": 2,
    "confirmations": 1,
    "splits": 2,
    "epochs": 12,
}


def small_graph(**options):
    return csbm(num_nodes=120, num_features=16, seed=1, **options)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(_search, "QUICK", SMALL)
    monkeypatch.setattr(Context, "load", lambda self, name: small_graph())


def test_dropout_left_on_is_scored_beside_the_clean_score():
    config = Config.from_dict({"model": "lon", "placement": "output", "epochs": 40, "dropout": 0.8})
    dataset = small_graph()
    splits = [make_split(dataset, "stratified", seed) for seed in (0, 1)]
    row = train_config(dataset, config, splits, device="cpu", leave_dropout_on=True)
    assert row["test_dropout_on"] != row["test"]
    assert np.mean(row["test_dropout_on"]) < np.mean(row["test"]) + 0.02


@pytest.mark.slow
def test_accuracy_and_ablation_share_rows(tmp_path, quick):
    context = Context(
        tmp_path / "accuracy",
        device="cpu",
        quick=True,
        models=["lon", "lon-paper", "gcn"],
        tell=lambda line: None,
    )
    tables = run_study("accuracy", context)
    record = json.loads((tmp_path / "accuracy" / "records" / "csbm.json").read_text())
    cell = record["cells"]["lon"]
    assert len(cell["test"]) == SMALL["splits"]
    assert cell["search"]["trials"] == SMALL["trials"]
    finalists = cell["search"]["finalists"]
    confirmed = [np.mean(f["confirmed"]) for f in finalists]
    assert cell["search"]["chosen"] == int(np.argmax(confirmed))
    assert [row[0] for row in tables[0].rows] == ["LON-GNN", "LON-GNN, paper's form", "GCN"]
    told = []
    again = Context(
        tmp_path / "ablation",
        device="cpu",
        quick=True,
        models=["lon-paper", "penalty"],
        tell=told.append,
    )
    run_study("ablation", again)
    assert len(told) == 1
    assert "csbm, penalty" in told[0]
    cells = json.loads((tmp_path / "ablation" / "records" / "csbm.json").read_text())["cells"]
    assert cells["lon-paper"]["test"] == record["cells"]["lon-paper"]["test"]
    assert cells["penalty"]["config"]["penalty"] > 0
    assert cells["penalty"]["config"]["wd_coefficients"] == 0
    assert (tmp_path / "ablation" / "tables" / "dropout-on.md").is_file()


def test_every_row_can_be_searched():
    rows = (accuracy.ROWS, ablation.ROWS, ablation.FILTERED)
    for row in [row for of in rows for row in of.values()]:
        for form in row.forms if row.tuned else ():
            space = search_space(row, form, SMALL)
            assert space.fixed["epochs"] == SMALL["epochs"]
            for key, value in {**row.fixed, **form}.items():
                searched = isinstance(value, dict)
                assert key in space.search if searched else space.fixed[key] == value
