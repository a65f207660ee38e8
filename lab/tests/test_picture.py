"""The picture of the README: well-formed, inside its frame, and of filters that differ."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from lab.picture import write_picture
from tests.commands import ROOT

SVG = "{http://www.w3.org/2000/svg}"


def curves(root):
    """Points of the two learned filters, (points, 2) each; y grows downwards."""
    paths = [p.get("d") for p in root.iter(f"{SVG}path") if p.get("class") == "curve"]
    return [np.array(re.findall(r"[-\d.]+", d), dtype=float).reshape(-1, 2) for d in paths]


@pytest.mark.parametrize("made", ["committed", "new"])
def test_it_shows_two_graphs_and_what_was_learned(tmp_path, made):
    path = ROOT / "docs" / "_static" / "filters.svg"
    if made == "new":
        path = write_picture(tmp_path / "picture.svg", options={"epochs": 60})
    root = ET.parse(path).getroot()
    _, _, width, height = map(float, root.get("viewBox").split())
    assert len(list(root.iter(f"{SVG}circle"))) == 2 * 240
    assert "prefers-color-scheme: dark" in root.find(f"{SVG}style").text
    assert max(width, height) < 900  # letters of 19 pixels are 9 on a phone
    low, high = curves(root)
    assert low[0, 1] < low[-1, 1]  # low frequencies pass
    assert high[0, 1] > high[-1, 1]
    for points in (low, high):
        assert points.min() >= 0
        assert points[:, 0].max() <= width
        assert points[:, 1].max() <= height
