"""Development tables and candidates: what each promises, and a small version of the study."""

import numpy as np
import pytest

from lab.records import StudyRecord
from lab.studies import Context, run_study
from lab.studies.presets._candidates import CHANGES, LABELS, candidates
from lab.studies.presets._data import DEVELOPMENT
from lab.studies.presets._run import KEY, HoldoutCell
from lab.studies.presets._show import TIE, changes_of, mean_score, read
from lab.studies.tables._data import HELD_BACK, STORIES
from longnn.config import Config
from longnn.data import make_split
from longnn.data._card import homophily
from longnn.metrics import headline, summarize
from longnn.training import data_defaults
from tests.commands import ROOT

PAGES = ROOT / "docs" / "results"


def text_of(page):
    return " ".join((PAGES / page).read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def results():
    return read(ROOT / "results" / "presets")


@pytest.fixture(scope="module")
def datasets():
    return {name: make() for name, make in DEVELOPMENT.items()}


def test_no_table_is_one_that_tests_the_choice(datasets):
    tested = {make().fingerprint() for make in (*STORIES.values(), *HELD_BACK.values())}
    assert not tested & {dataset.fingerprint() for dataset in datasets.values()}


def test_tables_are_the_same_each_time(datasets):
    for name in ("house", "fraud", "onehot"):
        assert DEVELOPMENT[name]().fingerprint() == datasets[name].fingerprint()


def test_graphs_are_as_their_stories_say(datasets):
    assert homophily(datasets["heterophilic"])[0] == pytest.approx(0.08, abs=0.03)
    assert homophily(datasets["onehot"])[0] == pytest.approx(0.5, abs=0.05)
    assert homophily(datasets["xor"])[0] == pytest.approx(0.5, abs=0.05)
    assert float((datasets["fraud"].data.y == 1).float().mean()) == pytest.approx(0.05, abs=0.02)
    found = {name: headline(d.data.y, d.task)[0] for name, d in datasets.items()}
    assert found["diabetes"] == "r2"
    assert found["fraud"] == "average_precision"
    assert found["xor"] == "accuracy"


def test_candidates_differ_from_the_preset_in_what_they_are_called(datasets):
    for name in ("diabetes", "cancer"):
        made = candidates(datasets[name], {"epochs": 7})
        chosen = made["preset"].to_dict()
        assert {key: chosen[key] for key in data_defaults(datasets[name])} == data_defaults(
            datasets[name]
        )
        assert made["defaults"] == Config.from_dict({"epochs": 7})
        differing = {
            candidate: {k for k, v in made[candidate].to_dict().items() if chosen[k] != v}
            for candidate in CHANGES
            if candidate in made
        }
        assert differing["no-penalty"] == differing["triple-penalty"] == {"degree_penalty"}
        assert differing["half-dropout"] == {"input_dropout", "dropout"}
        assert differing["usual-dropout"] == {"input_dropout", "dropout", "filter_dropout"}
        assert differing["output"] == {"placement"}
        assert differing["other-sharing"] == {"shared"}
        assert differing["slow-filter"] == {"lr_coefficients"}
        assert differing["no-dropout"] == differing["some-dropout"] == {"dropout"}
        assert differing.get("other-monitor", {"monitor"}) == {"monitor"}
        assert ("other-monitor" in made) == (name == "cancer")


def test_a_change_is_measured_where_it_was_trained():
    one = HoldoutCell("", "r2", {}, {"preset": [0.5, 0.7], "output": [0.4, 0.6]}, {}, {})
    other = HoldoutCell("", "r2", {}, {"preset": [0.5]}, {}, {})
    assert changes_of({"a": one, "b": other}, "output") == {"a": pytest.approx(-10.0)}


def test_the_record_is_of_these_tables_and_of_a_clean_commit(results, datasets):
    assert list(results) == list(DEVELOPMENT)
    for name, cell in results.items():
        assert cell.fingerprint == datasets[name].fingerprint()
        assert cell.configs["preset"] == data_defaults(datasets[name])
        made = StudyRecord.load(ROOT / "results/presets/records" / f"{name}.json").made(KEY)
        assert made.dirty is False


@pytest.mark.parametrize(
    ("candidate", "table", "claim"),
    [
        ("defaults", "neighbours", "by up to 58.7"),
        ("defaults", "diabetes", "diabetes by 2.9 points"),
        ("defaults", "heterophilic", "heterophilic by 0.8"),
        ("defaults", None, "by 15.0 points on average"),
        ("usual-dropout", None, "The dropouts of the usual defaults cost 9.7 points on average"),
        ("usual-dropout", "house", "12.8 to 41.6"),
        ("usual-dropout", "neighbours", "41.6 where a smooth function"),
        ("no-dropout", None, "No dropout of hidden units at all costs 2.1 on average"),
        ("other-sharing", "neighbours", "One filter for all units costs 32.2 points"),
        ("other-sharing", "house", "and 4.4 on house"),
        ("other-sharing", "fraud", "one filter per unit costs 13.8 points on fraud"),
        ("other-sharing", "onehot", "and 3.8 on onehot"),
        ("output", "neighbours", "loses 30.8 points on neighbours"),
        ("output", "house", "and 3.1 on house"),
        ("output", "heterophilic", "gains 2.2 on heterophilic"),
        ("slow-filter", "fraud", "0.002 loses 10.5 points on fraud"),
        ("slow-filter", "onehot", "4.4 on onehot"),
        ("no-penalty", None, "the mean changes by -0.1 points"),
        ("no-penalty", "friedman", "It gains 1.0 on friedman"),
        ("no-penalty", "moons", "it loses 1.3 on moons"),
        ("triple-penalty", "house", "costs 1.9 points on house"),
        ("triple-penalty", "fraud", "3.3 on fraud"),
        ("other-monitor", "fraud", "fraud gains 3.3 points"),
        ("other-monitor", "xor", "xor 2.2"),
        ("other-monitor", "heterophilic", "heterophilic loses 3.6"),
    ],
)
def test_differences_of_the_page_are_those_of_the_record(results, candidate, table, claim):
    found = changes_of(results, candidate)
    value = found[table] if table else np.mean(list(found.values()))
    assert f"{abs(value):.1f}" in claim
    assert (value > 0) == (table in ("diabetes", "heterophilic", "moons"))
    assert claim in text_of("presets.md")


def test_findings_of_the_page_are_those_of_the_record(results):
    gains = {name: changes_of(results, name) for name in ("defaults", *CHANGES)}
    assert sum(d < -TIE for d in gains["defaults"].values()) == 7
    assert {t for t, d in gains["defaults"].items() if d > 0} == {"diabetes", "heterophilic"}
    assert min(gains["defaults"], key=gains["defaults"].get) == "neighbours"
    assert abs(gains["no-penalty"]["xor"]) < 0.05
    assert max(np.mean(list(found.values())) for found in gains.values()) < 0
    assert max(sum(d > TIE for d in found.values()) for found in gains.values()) == 4
    intervals = {name: summarize(list(found.values())) for name, found in gains.items()}
    clear = {name for name, s in intervals.items() if s["high"] < 0 or s["low"] > 0}
    assert clear == {"defaults", "half-dropout", "usual-dropout", "other-sharing", "no-dropout"}


@pytest.mark.parametrize("page", ["presets.md", "tables.md"])
def test_weak_tables_are_told_by_the_record(results, page):
    shown = [("diabetes", "linear"), ("diabetes", "preset"), ("diabetes", "mlp")]
    shown += [("xor", "histogram-boosting"), ("xor", "preset")]
    for table, candidate in shown:
        assert f"{mean_score(results[table], candidate):.1f} %" in text_of(page)


def test_dropping_half_stays_below_ridge_regression(results):
    diabetes = results["diabetes"]
    assert f"{mean_score(diabetes, 'half-dropout'):.1f} %, still below" in text_of("presets.md")
    assert mean_score(diabetes, "half-dropout") < mean_score(diabetes, "linear")


def test_sizes_of_the_holdout(datasets):
    sizes = [int(make_split(d, "stratified", 100).test.sum()) for d in datasets.values()]
    assert f"{min(sizes)} to {max(sizes)} nodes" in text_of("presets.md")


def test_small_version(tmp_path):
    context = Context(tmp_path, quick=True, device="cpu", tell=lambda line: None)
    scores, changes = run_study("presets", context)
    cell = read(tmp_path)["diabetes"]
    assert set(cell.holdout) == set(LABELS) - {"other-monitor"}  # regression
    assert cell.configs["defaults"] == {}
    assert cell.configs["preset"] == data_defaults(DEVELOPMENT["diabetes"]())
    assert cell.best_epochs.keys() == cell.configs.keys()
    assert [row[0] for row in scores.rows] == ["diabetes"]
    assert [row[0] for row in changes.rows] == [LABELS[c] for c in ("defaults", *CHANGES)]
    assert changes.rows[-1][-1] == "–"
    assert (tmp_path / "figures" / "changes.png").is_file()
