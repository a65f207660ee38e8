"""Where nodes lie, if two columns of their table surely say so: a map is read at a glance."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longnn.data._columns import Number
from longnn.matrices import take_columns

if TYPE_CHECKING:
    from longnn.data._dataset import NodeDataset

#: Names of columns, to the right and upwards, in small letters; degrees on the globe first.
DEGREES = [(x, y) for x in ("longitude", "lon", "lng", "long") for y in ("latitude", "lat")]
PAIRS = [*DEGREES, ("easting", "northing"), ("x", "y")]


class Coordinates(NamedTuple):
    """Places of nodes."""

    x_name: str
    y_name: str
    xy: np.ndarray  # (nodes, 2), to the right and upwards
    aspect: float  # how long a unit upwards is, compared with one to the right


def coordinates_of(dataset: "NodeDataset") -> Coordinates | None:
    """The places of the nodes; None where no pair of columns is surely meant so.

    Both must be columns of numbers that vary, and degrees must be possible.
    """
    encoded = () if dataset.encoding is None else dataset.encoding.columns
    numbers = [column for column in encoded if isinstance(column, Number) and not column.many]
    named = {column.column.strip().lower(): column.column for column in numbers}
    pair = next((pair for pair in PAIRS if named.keys() >= set(pair)), None)
    features = None if pair is None else dataset.backing.features()
    if pair is None or features is None or dataset.encoding is None:
        return None
    x_name, y_name = (named[name] for name in pair)
    places = [dataset.encoding.feature_names.index(name) for name in (x_name, y_name)]
    columns = take_columns(features, places)
    xy = (columns.to_dense() if columns.is_sparse_csr else columns).double().numpy()
    xy, aspect = xy[dataset.backing.places()], 1.0
    if not np.ptp(xy, axis=0).all():
        return None
    if pair in DEGREES:
        if (np.abs(xy) > [360, 90]).any():
            return None
        aspect = 1 / max(float(np.cos(np.radians(xy[:, 1].mean()))), 0.1)
    return Coordinates(x_name, y_name, xy, aspect)
