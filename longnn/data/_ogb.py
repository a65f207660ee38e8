"""ogbn-arxiv, read by the package ogb, which writes beside the files that it reads.

So it runs in a scratch folder whose raw files are links to the real ones: of what it would unpickle
there is nothing but what it has just written itself.
"""

import contextlib
import importlib
import io
import logging
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from longnn.data._errors import DataError, DatasetUnavailable

_LOG = logging.getLogger(__name__)
_NAME, _FOLDER = "ogbn-arxiv", "ogbn_arxiv"


def read_ogb(paths: Sequence[Path]) -> Data:
    """Read the files of ogbn-arxiv.

    Raises:
        DatasetUnavailable: if ogb is not installed.
        DataError: if the files cannot be read.
    """
    try:
        reader: Any = importlib.import_module("ogb.nodeproppred").NodePropPredDataset
    except ImportError as error:
        raise DatasetUnavailable(
            f"Dataset {_NAME!r} needs the optional package ogb: pip install ogb."
        ) from error
    folder = next(place for place in paths[0].parents if place.name == _FOLDER)
    with tempfile.TemporaryDirectory(prefix="longnn-") as scratch:
        for path in paths:
            _link(path, Path(scratch) / _FOLDER / path.relative_to(folder))
        try:
            with _quiet():
                return _read(reader(name=_NAME, root=scratch))
        except (Exception, SystemExit) as error:  # of pandas, gzip, torch: whatever ogb meets
            raise DataError(
                f"Expected the files of {_NAME!r} (got {type(error).__name__}: {error}); delete "
                "them to have them downloaded again.",
                path=folder,
            ) from error


def _read(dataset: Any) -> Data:
    graph, labels = dataset[0]
    data = Data(
        x=torch.from_numpy(graph["node_feat"]),
        edge_index=torch.from_numpy(graph["edge_index"]),
        y=torch.from_numpy(labels).reshape(-1),
    )
    nodes = dataset.get_idx_split()
    for key, subset in (("train_mask", "train"), ("val_mask", "valid"), ("test_mask", "test")):
        mask = torch.zeros(len(data.x), dtype=torch.bool)
        mask[torch.as_tensor(nodes[subset])] = True
        data[key] = mask
    return data


def _link(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        place.symlink_to(source.resolve())
    except OSError:  # a file system without links, or no right to make one
        shutil.copyfile(source, place)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """ogb's prints go to the log; its deprecations are not the user's concern."""
    said = io.StringIO()
    try:
        with (
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        for line in said.getvalue().splitlines():
            _LOG.info("%s", line)
