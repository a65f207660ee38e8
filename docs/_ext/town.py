"""A town for the pages on known answers: houses on a map, what they cost, and who is near whom."""

import numpy as np
import pyarrow
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from scipy.spatial import cKDTree

from longnn.data import NodeDataset, from_pandas

#: Neighbours of a house, and the price that has the deepest colour.
NEAR, DEEP = 6, 120
COLOURS = LinearSegmentedColormap.from_list("town", ["#12305f", "#e3e5e8", "#d1600a"])


def town(houses: int = 900, seed: int = 1) -> tuple[NodeDataset, np.ndarray]:
    """A graph of houses and where they are (houses, 2).

    A price, in thousands, hangs on the area, the age, and on where the house is: dear at the lake
    and around the station, cheap at the motorway. No column knows where.
    """
    rng = np.random.default_rng(seed)
    place = rng.random((houses, 2))
    area, age = rng.uniform(50, 200, houses), rng.uniform(0, 80, houses)

    def near(x: float, y: float, reach: float) -> np.ndarray:
        return np.exp(-((place - [x, y]) ** 2).sum(1) / reach**2)

    where = 150 * near(0.2, 0.25, 0.25) + 110 * near(0.7, 0.75, 0.2) - 120 * near(0.8, 0.2, 0.3)
    price = 150 + 2.0 * area - 1.5 * age + where + rng.normal(0, 20, houses)
    _, nearest = cKDTree(place).query(place, NEAR + 1)
    ids = np.array([f"house {i}" for i in range(houses)])
    edges = {"source": ids.repeat(NEAR), "target": ids[nearest[:, 1:].ravel()]}
    columns = {"id": ids, "area": area, "age": age, "label": price}
    return from_pandas(
        pyarrow.table(edges), pyarrow.table(columns), name="town", task="regression"
    ), place


def draw(axes: Axes, place: np.ndarray, value: np.ndarray, title: str) -> None:
    """Houses on the map: orange where a value is high, blue where it is low, faint where none."""
    there = ~np.isnan(value)
    axes.scatter(*place[~there].T, s=4, color="#d5d9df", linewidths=0)
    axes.scatter(
        *place[there].T, c=value[there], s=18, cmap=COLOURS, vmin=-DEEP, vmax=DEEP, linewidths=0
    )
    axes.set_title(title, fontsize=9.5)
    axes.set_aspect("equal")
    axes.axis("off")
