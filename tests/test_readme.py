"""The code blocks of the README run as they stand."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.strip().splitlines()[-1][:40])
def test_python_block_runs(block):
    exec(compile(block, str(README), "exec"), {"__name__": "readme"})


def test_the_training_loop_is_short():
    loop = next(block for block in BLOCKS if "LONConv(" in block)
    assert len([line for line in loop.splitlines() if line.strip()]) < 25
