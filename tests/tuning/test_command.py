"""What ``longnn tune`` prints."""

import json

from tests.commands import CLUB, TINY, longnn, succeed, succeed_json, without_report

SHORT = (*("--trials", "1", "--repeats", "1", "--finalists", "0", "--space", "compact"),)
FAST = (*TINY, *SHORT, "--set", "epochs=2", "--device", "cpu")


def test_quiet_prints_nothing(tmp_path):
    result = longnn("tune", *FAST, "--split", "stratified", "--output", tmp_path, "--quiet")
    assert result.exit_code == 0
    assert result.output == ""
    assert (tmp_path / "tuning.html").exists()


def test_a_graph_on_disk_is_searched_as_one_in_memory(tmp_path):
    """Its rows had neither features nor edges: the search found chance."""
    fixed = {"epochs": 40, "placement": "features", "degree": 3, "dropout": 0.0}
    settings = [w for key, value in fixed.items() for w in ("--set", f"{key}={value}")]
    given = ("tune", CLUB, *SHORT, *settings, "--device", "cpu")
    records = []
    for memory in ("1G", "1K"):
        place = ("--cache", tmp_path / "cache", "--output", tmp_path / memory)
        records.append(succeed_json(*given, "--memory", memory, *place))
    scores = [record["best"]["value"] for record in records]
    assert min(scores) > 0.6
    assert abs(scores[0] - scores[1]) < 0.1
    assert list((tmp_path / "cache" / "graphs").iterdir())
    run = tmp_path / "run"
    recipe = ("--config", tmp_path / "1K" / "recipe.toml", "--set", "baselines=false")
    place = ("--cache", tmp_path / "cache", "--output", run)
    with without_report():
        succeed("train", CLUB, *recipe, "--memory", "1K", *place)
    assert any(
        "from disk" in n for n in json.loads((run / "record.json").read_text())["data"]["notes"]
    )
