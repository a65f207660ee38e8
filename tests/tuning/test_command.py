"""What ``longnn tune`` prints."""

from tests.commands import CLUB, TINY, fail, longnn, succeed

SHORT = (*("--trials", "1", "--repeats", "1", "--finalists", "0", "--space", "compact"),)
FAST = (*TINY, *SHORT, "--set", "epochs=2", "--device", "cpu")


def test_quiet_prints_nothing(tmp_path):
    result = longnn("tune", *FAST, "--split", "stratified", "--output", tmp_path, "--quiet")
    assert result.exit_code == 0
    assert result.output == ""
    assert (tmp_path / "tuning.html").exists()


def test_a_graph_that_stays_on_disk_is_not_searched(tmp_path):
    """Its rows have neither features nor edges here: the search would find chance."""
    succeed("prepare", CLUB, "--output", tmp_path / "prepared")
    arguments = (tmp_path / "prepared", *SHORT, "--output", tmp_path / "search")
    said = fail("tune", *arguments, "--memory", "1M")
    assert "Expected a graph in memory to search on" in said
    assert "give more --memory" in said
    assert not (tmp_path / "search").exists()
    succeed("tune", *arguments, "--set", "epochs=2", "--device", "cpu")
