"""What is written as JSON is read back, and a wrong file is one sentence that names the place."""

import json
import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pytest

from longnn._base.schema import Node, Points, Shape, from_plain, stored, to_plain


@dataclass(frozen=True, eq=False)
class Curve:
    name: Literal["low", "high"]
    x: Points
    y: Points
    table: Annotated[np.ndarray, Shape("points", 2, whole=True)]
    score: float
    pair: tuple[int, float]
    value: int | str | None = stored(null=True, default=None)
    tags: tuple[str, ...] = stored(empty=False, default=())


CURVE = Curve(
    "low", np.arange(3.0), np.array([0.5, np.nan, 1.0]), np.ones((3, 2)), math.nan, (1, 2.0)
)


def test_what_is_written_is_read():
    plain = json.loads(json.dumps(to_plain(CURVE), allow_nan=False))
    assert plain["y"] == [0.5, None, 1.0]
    assert plain["table"] == [[1, 1]] * 3
    assert plain["value"] is None
    assert "tags" not in plain
    read = from_plain(Curve, plain)
    np.testing.assert_array_equal(read.y, CURVE.y)
    assert math.isnan(read.score)
    assert to_plain(read) == plain
    assert from_plain(Curve, {**plain, "value": 3, "tags": ["a"]}).value == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "middle"}, r"'curves\[0\].name' to be one of low, high \(got 'middle'\)"),
        ({"y": [1.0, 2.0]}, r"'curves\[0\].y' to be a list of numbers of shape 3 \("),
        ({"table": [[1, 2]]}, r"\.table' to be a list of numbers of shape 3 x 2"),
        ({"pair": [1]}, r"\.pair' to be a list of 2 "),
        ({"pair": [1.5, 1]}, r"\.pair\[0\]' to be a whole number \(got 1\.5\)"),
        ({"score": True}, r"\.score' to be a number \(got True\)"),
        ({"value": []}, r"\.value' to be text"),
        ({"other": 1}, r"without 'other'"),
    ],
)
def test_errors_name_file_and_place(change, message):
    node = Node({"curves": [{**to_plain(CURVE), **change}]}, file="curves.json")
    with pytest.raises(ValueError, match=rf"^curves\.json: Expected .*{message}"):
        node["curves"].read(list[Curve])
