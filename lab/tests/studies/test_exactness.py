"""The core is exact: a small version of the study finds errors near rounding."""

from lab.records import Record
from lab.studies import Context, exactness, run_study


def test_errors_are_near_rounding(tmp_path):
    context = Context(tmp_path, quick=True, tell=lambda line: None)
    (table,) = run_study("exactness", context)
    record = Record(tmp_path / "records" / "record.json")
    found = {key: record[key]["value"] for key in record}
    for a, b in exactness.PAIRS + exactness.EDGE:  # errors grow near the edge of the domain
        assert found[f"gram/{a:g}/{b:g}"] < (1e-11 if (a, b) in exactness.PAIRS else 1e-9)
    assert found["filter/float64"] < 1e-13
    assert 1e-9 < found["filter/float32"] < 1e-5
    assert found["memory/100"] >= 0
    assert len(table.rows) == len(found)
    assert table.rows[-1][1].endswith(" MiB")
