"""Table 5: every model is trained and timed, and the tables say on what."""

import json

from lab.studies import Context, run_study
from lab.studies import time as timing
from longnn.data._synthetic import csbm


def test_every_model_is_timed(tmp_path, monkeypatch):
    small = csbm(num_nodes=80, num_features=12, seed=0)
    monkeypatch.setattr(timing.data, "load", lambda name, data_dir=None: small)
    monkeypatch.setattr(timing, "EPOCHS", {True: 6})
    monkeypatch.setattr(timing, "TURN", 0.01)
    context = Context(tmp_path, device="cpu", quick=True, tell=lambda line: None)
    measured, printed = run_study("time", context)
    assert [row[0] for row in measured.rows] == list(timing.LABELS.values())
    assert all(float(row[1].split(" / ")[0]) > 0 for row in measured.rows)
    assert "threads" in measured.caption
    assert len(printed.rows) == 7
    cells = timing._read(tmp_path, "cpu")["csbm"].all(timing.TimeCell)
    textbook, ours = cells["textbook"], cells["lon"]
    total = textbook.epoch_ms * ours.epochs / 1e3
    assert measured.rows[-1][1] == f"{textbook.epoch_ms:.2f} / {total:.1f}"
    assert (tmp_path / "figures" / "time.png").stat().st_size > 5000


def test_a_gpu_has_records_and_a_table_of_its_own(tmp_path):
    (tmp_path / "records").mkdir()
    cell = {"epoch_ms": 1.25, "total_s": 0.5, "epochs": 400}
    for name, gpu in (("cora.json", None), ("cora-cuda.json", "H200")):
        machine = {"gpu": gpu, "cpu": "EPYC"}
        plan = {"epochs": 1000, "threads": 2}
        record = {"plan": plan, "machines": [machine], "cells": {"lon": cell}}
        (tmp_path / "records" / name).write_text(json.dumps(record))
    cpu, gpu, printed = timing.tables(tmp_path)
    assert [t.name for t in (cpu, gpu, printed)] == ["time", "time-gpu", "time-paper"]
    assert "on EPYC, 2 threads." in cpu.caption
    assert "on H200." in gpu.caption
    assert gpu.rows == [["LON-GNN", "1.25 / 0.5"]]
    assert printed.columns == ["model", "cora"]
