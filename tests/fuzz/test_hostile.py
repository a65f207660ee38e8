"""Hostile inputs for everything that longnn reads: fine, or one clear error that names the file."""

import re
import sys

import pytest

from tests.fuzz.test_fuzzer import start

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


def put_through(count, seed, keep):
    """What ``python -m tests.fuzz`` prints; the inputs of failures are left in a folder."""
    done = start("tests.fuzz", "--count", count, "--seed", seed, "--keep", keep)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nkept in {keep}"
    assert re.search(rf"^{count} inputs, 0 failures$", done.stdout, re.MULTILINE)
    return done.stdout


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_hostile_inputs_of_every_format(count, tmp_path):
    text = put_through(count, 7, tmp_path)
    fine = sum(int(number) for number in re.findall(r"(\d+) fine", text))
    assert fine > 0.15 * count, "most mutations are small: some inputs are still read to the end"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 105))
def test_ten_thousand_hostile_inputs(seed, tmp_path):
    put_through(2000, seed, tmp_path)
