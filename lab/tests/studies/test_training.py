"""How scores come about: what is trained together, what chooses, what no choice may see."""

import json

import numpy as np

from lab.studies import _search, ablation, accuracy
from lab.studies._search import search_space
from lab.studies._training import train_config
from longnn.config import Config
from longnn.data import csbm, make_split
from tests.commands import ROOT

SMALL = {**_search.PROTOCOL, "epochs": 12}


def test_dropout_left_on_is_scored_beside_the_clean_score():
    config = Config.from_dict({"model": "lon", "placement": "output", "epochs": 40, "dropout": 0.8})
    dataset = csbm(num_nodes=120, num_features=16, seed=1)
    splits = [make_split(dataset, "stratified", seed) for seed in (0, 1)]
    row = train_config(dataset, config, splits, device="cpu", leave_dropout_on=True)
    assert row["test_dropout_on"] != row["test"]
    assert np.mean(row["test_dropout_on"]) < np.mean(row["test"]) + 0.02


def test_every_recorded_choice_is_the_best_of_its_finalists():
    """By the mean of its confirmation, to the digits that are kept."""
    choices = 0
    for path in sorted((ROOT / "results").glob("a*/records/*.json")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"].values():
            search = cell.get("search") or {}
            means = [np.mean(finalist["confirmed"]) for finalist in search.get("finalists", ())]
            if means:
                assert means[search["chosen"]] > max(means) - 1e-6, path
                choices += 1
    assert choices > 290


def test_every_row_can_be_searched():
    rows = (accuracy.ROWS, ablation.ROWS, ablation.FILTERED)
    for row in [row for of in rows for row in of.values()]:
        for form in row.forms if row.tuned else ():
            space = search_space(row, form, SMALL)
            assert space.fixed["epochs"] == SMALL["epochs"]
            for key, value in {**row.fixed, **form}.items():
                searched = isinstance(value, dict)
                assert key in space.search if searched else space.fixed[key] == value
