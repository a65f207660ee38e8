"""What ``longnn tune`` prints."""

import pytest

from longnn.tuning import read_record
from tests.commands import TINY, longnn, succeed

SHORT = (*("--trials", "1", "--repeats", "1", "--finalists", "0", "--space", "compact"),)
FAST = (*TINY, *SHORT, "--set", "epochs=2", "--device", "cpu")


def test_the_score_is_in_per_cent_as_everywhere(tmp_path):
    printed = succeed("tune", *FAST, "--output", tmp_path)
    value = read_record(tmp_path).value
    assert f"validation accuracy {100 * value:.2f} %, " in printed


@pytest.mark.parametrize("masks", [(), ("--split", "stratified")])
def test_quiet_prints_nothing(tmp_path, masks):
    result = longnn("tune", *FAST, *masks, "--output", tmp_path, "--quiet")
    assert result.exit_code == 0
    assert result.output == ""
    assert (tmp_path / "tuning.html").exists()
