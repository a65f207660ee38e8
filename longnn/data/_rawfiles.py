"""Raw files of a named dataset → tensors, without ever writing beside the raw files.

PyG writes ``processed/`` next to ``raw/``. So it runs in a scratch folder whose raw files are links
to the real ones. The result is kept as one file in the user's cache; a single rename puts it there,
so that two processes cannot spoil each other's work. Missing files are downloaded by PyG into a
scratch folder and moved into place when all of them are there.
"""

import contextlib
import hashlib
import io
import logging
import os
import pickle
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import torch_geometric
from torch_geometric.data import Data

from longnn.data._errors import DataError, DatasetUnavailable

_LOG = logging.getLogger(__name__)
_FORMAT = 1  # of the cached file: raise it when the content changes
_SPARSE_BELOW = 0.25  # share of nonzero features under which they are cached sparse


@dataclass(frozen=True)
class RawFiles:
    """The files of a dataset, and the function that reads them.

    Args:
        name: name of the dataset.
        folder: where the files are, relative to the data folder.
        files: their paths relative to ``folder``.
        read: reads them, given a data folder it may write to; downloads what is missing.
        downloadable: whether ``read`` can download exactly this dataset.
    """

    name: str
    folder: str
    files: tuple[str, ...]
    read: Callable[[Path], Data]
    downloadable: bool = True

    def missing_in(self, data_dir: Path) -> list[str]:
        return [file for file in self.files if not (data_dir / self.folder / file).is_file()]


def cache_root() -> Path:
    """The user's cache: ``$XDG_CACHE_HOME/longnn``, else ``~/.cache/longnn``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "longnn"


def data_root(data_dir: str | Path | None = None) -> Path:
    """The data folder: the argument, else ``$LONGNN_DATA``, else one in the user's cache.

    >>> data_root("data").name
    'data'
    """
    chosen = data_dir or os.environ.get("LONGNN_DATA")
    return Path(chosen).expanduser() if chosen else cache_root() / "data"


def load_raw(raw: RawFiles, data_dir: str | Path | None = None) -> Data:
    """The PyG ``Data`` of a dataset, from the cache, the raw files or a download.

    Raises:
        DatasetUnavailable: if files are missing and cannot be downloaded.
        DataError: if the files are there but cannot be read.
    """
    wanted = data_root(data_dir)
    folders = [wanted, cache_root() / "data"]
    found = next((folder for folder in folders if not raw.missing_in(folder)), None)
    if found is None:
        found = _download(raw, wanted)
    store = cache_root() / "processed" / f"{raw.name}-{_key(raw, found)}.pt"
    cached = _read_cached(store)
    if cached is not None:
        return cached
    data = _process(raw, found)
    _write_cached(store, data)
    return data


def _key(raw: RawFiles, data_dir: Path) -> str:
    """Changes with the place, size or time of any raw file, and with PyG's version."""
    folder = (data_dir / raw.folder).resolve()
    parts = [str(folder), torch_geometric.__version__, str(_FORMAT)]
    for file in raw.files:
        stat = (folder / file).stat()
        parts.append(f"{file} {stat.st_size} {stat.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _process(raw: RawFiles, data_dir: Path) -> Data:
    source = data_dir / raw.folder
    with tempfile.TemporaryDirectory(prefix="longnn-") as scratch:
        for file in raw.files:
            _link(source / file, Path(scratch) / raw.folder / file)
        try:
            with _quiet():
                return raw.read(Path(scratch))
        except DatasetUnavailable:
            raise
        except Exception as error:  # PyG's readers raise whatever their parser raises
            raise DataError(
                f"Expected the files of {raw.name!r} (got "
                f"{type(error).__name__}: {error}); delete them to have them downloaded again.",
                path=source,
            ) from error


def _download(raw: RawFiles, data_dir: Path) -> Path:
    """Fetch all files, move them into the data folder (else the cache); returns which."""
    if not raw.downloadable:
        raise _unavailable(raw, data_dir, "it cannot be downloaded")
    reason = "no folder can be written"
    for target in (data_dir, cache_root() / "data"):
        try:
            _check_writable(target)
            target.mkdir(parents=True, exist_ok=True)
            scratch = tempfile.TemporaryDirectory(prefix=".longnn-", dir=target)
        except OSError as error:
            reason = f"{type(error).__name__}: {error}"
            continue
        with scratch as folder:
            try:
                with _quiet():
                    raw.read(Path(folder))
            except DatasetUnavailable:
                raise
            except (Exception, SystemExit) as error:  # any of urllib, aiohttp, ssl, zip, ogb
                reason = f"{type(error).__name__}: {error}"
            if raw.missing_in(Path(folder)):
                raise _unavailable(raw, data_dir, f"the download failed ({reason})")
            for file in raw.files:
                place = target / raw.folder / file
                place.parent.mkdir(parents=True, exist_ok=True)
                os.replace(Path(folder) / raw.folder / file, place)
        return target
    raise _unavailable(raw, data_dir, f"the download failed ({reason})")


def _check_writable(folder: Path) -> None:
    """A folder marked read-only is left alone, even by a superuser who could write to it."""
    existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not existing.stat().st_mode & 0o222 or not os.access(existing, os.W_OK):
        raise PermissionError(f"{existing} is read-only")


def _unavailable(raw: RawFiles, data_dir: Path, why: str) -> DatasetUnavailable:
    return DatasetUnavailable(
        f"Dataset {raw.name!r} is not on disk and {why}: expected the files "
        f"{', '.join(raw.missing_in(data_dir))} in {data_dir / raw.folder} (the data folder is "
        "set by data_dir, --data-dir or LONGNN_DATA)."
    )


def _link(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        place.symlink_to(source.resolve())
    except OSError:  # a file system without links, or no right to make one
        shutil.copyfile(source, place)


def _read_cached(store: Path) -> Data | None:
    if not store.is_file():
        return None
    try:
        fields: dict[str, torch.Tensor] = torch.load(store, weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        _LOG.info("rebuilding the damaged %s: %s", store, error)
        return None
    fields["x"] = fields["x"].to_dense()
    return Data.from_dict(fields)


def _write_cached(store: Path, data: Data) -> None:
    """Write the cache if possible: one that cannot be written costs time, not correctness."""
    fields = {key: value for key, value in data.to_dict().items() if torch.is_tensor(value)}
    x = fields["x"]
    if x.layout == torch.strided and int(x.count_nonzero()) < _SPARSE_BELOW * x.numel():
        fields["x"] = x.to_sparse()
    try:
        store.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".write-", dir=store.parent) as scratch:
            torch.save(fields, Path(scratch) / store.name)
            os.replace(Path(scratch) / store.name, store)
    except (OSError, RuntimeError) as error:  # torch.save reports a full disk as RuntimeError
        _LOG.info("cannot cache %s: %s", store, error)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """PyG's and ogb's prints go to the log; their deprecations are not the user's concern."""
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
