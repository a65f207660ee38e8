"""Random small graphs with flaws get one verdict and one answer, in memory and on disk.

More of them: ``python -m tests.fuzz --differential 5000``.
"""

import pytest

from tests.differential import campaign

#: As many as a few seconds allow.
COUNT, GROUPS = 40, 2


@pytest.mark.parametrize("group", range(GROUPS))
def test_memory_and_disk_agree(group, tmp_path):
    size = COUNT // GROUPS
    differences, kinds = campaign(range(group * size, (group + 1) * size), tmp_path)
    assert not differences
    assert kinds["predictions"] >= size // 3  # errors alone would prove little
    assert kinds["errors"]
