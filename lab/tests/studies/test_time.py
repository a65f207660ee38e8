"""Table 5: every model is trained and timed, and the tables say on what."""

from lab.studies import Context, run_study
from lab.studies import time as timing
from longnn.data._synthetic import csbm


def test_every_model_is_timed(tmp_path, monkeypatch):
    small = csbm(num_nodes=80, num_features=12, seed=0)
    monkeypatch.setattr(Context, "load", lambda self, name: small)
    monkeypatch.setattr(timing, "EPOCHS", {True: 6})
    monkeypatch.setattr(timing, "TURN", 0.01)
    context = Context(tmp_path, device="cpu", quick=True, tell=lambda line: None)
    measured, printed = run_study("time", context)
    assert [row[0] for row in measured.rows] == list(timing.LABELS.values())
    assert all(float(row[1].split(" / ")[0]) > 0 for row in measured.rows)
    assert "threads" in measured.caption
    assert len(printed.rows) == 7
    cells = timing.read(tmp_path, "cpu")["csbm"]
    epoch = cells["textbook"]["epoch_ms"]
    total = epoch * cells["lon"]["epochs"] / 1e3
    assert measured.rows[-1][1] == f"{epoch:.2f} / {total:.1f}"
    assert (tmp_path / "figures" / "time.png").stat().st_size > 5000
