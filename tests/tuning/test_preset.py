"""A search without a model: from the members of the default preset, to what it gains over them."""

import dataclasses

import optuna
import pytest
import torch

from longnn.config import Config
from longnn.data import csbm
from longnn.data._splits import hold_out, make_split
from longnn.records import RunRecord, Summary
from longnn.training import complete, members_of
from longnn.tuning import _ledger as ledgers
from longnn.tuning import _tune as searches
from longnn.tuning import read_record, tune
from longnn.tuning._record import finding
from tests.commands import TINY, longnn, succeed, without_report
from tests.report.pagecheck import check_page
from tests.tuning.examples import finished, turn_over, values, with_masks

FEW = {"epochs": 8}


@pytest.fixture(scope="module")
def table():
    return csbm(num_nodes=90, num_features=12, seed=3)


def search(dataset, folder=None, **options):
    storage = optuna.storages.InMemoryStorage()
    given = {"trials": 14, "batch": 8, "fixed": FEW, "storage": storage, "device": "cpu", **options}
    return tune(dataset, folder=folder, **given)


def members(dataset):
    return members_of(complete({"preset": "default", **FEW}, dataset), dataset)


def gained(monkeypatch, low, high):
    """As if the comparison gave an interval."""
    summary = Summary((low + high) / 2, low, high, 0.0, 1)
    monkeypatch.setattr(searches, "ahead_on_nodes", lambda *given: summary)


def test_it_starts_with_the_members_and_goes_on_around_those_that_lead(table):
    record = search(table).record
    begun = members(table)
    first, further = record.trials[: len(begun)], record.trials[len(begun) :]
    assert [trial.params["member"] for trial in first] == [*begun]
    for trial, member in zip(first, begun.values(), strict=True):
        flat = member.to_dict()
        assert {k: flat[k] for k in trial.params if k != "member"}.items() <= trial.params.items()
        assert trial.state == "complete"
    ranked = sorted(first, key=lambda t: (-t.value, t.loss, t.place))
    leaders = {trial.params["member"] for trial in ranked[: ledgers.LEADERS]}
    assert {trial.params["member"] for trial in further} == leaders
    assert record.metric == "accuracy"


def test_the_verdict_is_of_nodes_that_nothing_was_chosen_by(table, monkeypatch):
    """Labels of test nodes change nothing; those of held out nodes the verdict alone."""
    masked = with_masks(table, 1)
    split = make_split(masked, "fixed", 0)
    held = hold_out(masked, split)
    assert not (held.test & split.test).any()
    assert torch.equal(held.train | held.val | held.test, split.train | split.val)
    first, other = search(masked), search(turn_over(masked))
    assert first.record.verdict.nodes == int(held.test.sum())
    assert values(first) == values(other)
    assert first.record.verdict == other.record.verdict
    monkeypatch.setattr(searches, "hold_out", lambda *given: held)  # each class gives its share
    data = masked.data.clone()
    data.y = torch.where(held.test, 1 - data.y, data.y)
    judged = search(dataclasses.replace(masked, data=data))
    assert values(judged) == values(first)
    assert judged.record.verdict.default != first.record.verdict.default


def test_where_nothing_is_gained_the_default_is_kept(table, tmp_path, monkeypatch):
    gained(monkeypatch, -0.01, 0.05)
    (tmp_path / "recipe.toml").write_text("of a shorter search")
    result = search(table, tmp_path)
    assert result.config == complete({"preset": "default", "scale": "none", **FEW}, table)
    assert not (tmp_path / "recipe.toml").exists()
    page = check_page((tmp_path / "tuning.html").read_text())
    assert "which may be chance: keep the default" in page.text
    assert "--config" not in page.text
    assert read_record(tmp_path) == result.record


def test_what_is_gained_is_a_recipe_that_trains(tmp_path, monkeypatch):
    gained(monkeypatch, 0.01, 0.05)
    sets = [word for key, value in FEW.items() for word in ("--set", f"{key}={value}")]
    given = (*TINY, *sets, "--trials", "14", "--device", "cpu", "--output", tmp_path / "search")
    printed = succeed("tune", *given)
    assert "a difference of +3.0 points (+1.0 to +5.0)" in printed
    recipe = tmp_path / "search" / "recipe.toml"
    config = Config.from_toml(recipe)
    assert [name for name in config.members if name.endswith(", tuned")]
    assert f"recipe: {recipe}" in printed
    with without_report():
        succeed("train", *TINY, "--config", recipe, "--output", tmp_path / "run")
    trained = RunRecord.read(tmp_path / "run").members
    assert {member.name for member in trained} == {*config.members}
    assert complete(config.to_dict(), csbm()) == config


def test_an_interrupted_search_goes_on_from_its_members(table):
    def stop(progress):
        if progress.done >= len(members(table)) and progress.training:
            raise KeyboardInterrupt

    storage = optuna.storages.InMemoryStorage()
    with pytest.raises(KeyboardInterrupt):
        search(table, storage=storage, on_progress=stop)
    result, whole = search(table, storage=storage), search(table)
    after, alone = finished(result), finished(whole)
    assert {place: t.params for place, t in after.items()} == {
        place: t.params for place, t in alone.items()
    }
    assert result.record.verdict == whole.record.verdict


def test_a_time_limit_ends_the_search_but_not_its_start(table):
    record = search(table, time_limit=1e-3).record
    assert {trial.params["member"] for trial in record.trials} == {*members(table)}
    assert len(record.trials) == len(members(table))
    assert finding(record).startswith("no time was left for trials")
    with pytest.raises(ValueError, match=r"`time_limit` > 0 and finite, in seconds \(got 0\)"):
        search(table, time_limit=0)


def test_settings_of_one_model_ask_for_one_model(tmp_path):
    few = ("--trials", "1", "--repeats", "1", "--finalists", "0", "--device", "cpu", "--quiet")
    assert longnn("tune", *TINY, *few, "--set", "degree=2", "--output", tmp_path).exit_code == 0
    assert read_record(tmp_path).model == "lon"
    with pytest.raises(
        ValueError, match=r"Expected `fixed` beside a preset alone \(got 'epochs'\)"
    ):
        search(csbm(), fixed={"epochs": 3}, model="lon")


def test_a_member_that_is_wrong_is_named():
    with pytest.raises(ValueError, match="member 'x': Unknown option `degre`"):
        Config(preset="default", members={"x": {"degre": 3}})
    assert Config(members={"x": {}}).members == {}, "one model has none"
