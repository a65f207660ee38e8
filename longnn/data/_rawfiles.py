"""Raw files of a named dataset → tensors, without ever writing beside the raw files.

The result is kept as one file in the user's cache; a single rename puts it there, so that two
processes cannot spoil each other's work. Missing files are downloaded into a scratch folder,
checked there, and moved into place when all of them are there.
"""

import functools
import hashlib
import http.client
import importlib.resources
import logging
import os
import shutil
import ssl
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from longnn.data._catalog import NamedDataset
from longnn.data._errors import DataError, DatasetUnavailable
from longnn.data._tensors import GraphTensors
from longnn.matrices import check_sparse

LARGEST = 2**31  # bytes of one file: the largest that is known has 83 MB
_TIMEOUT = 60  # seconds without a byte
#: What a download can raise.
RAISED = (OSError, ValueError, http.client.HTTPException, zipfile.BadZipFile, zlib.error)


@functools.cache
def known_sums() -> Mapping[str, str]:
    """The SHA-256 sum of each published file that is known, by its path in the data folder."""
    text = importlib.resources.files("longnn.data").joinpath("sha256sums.txt").read_text("utf-8")
    pairs = (line.split(maxsplit=1) for line in text.splitlines() if line)
    return {name: digest for digest, name in pairs}


def fetch(url: str, place: Path, sha256: str | None) -> None:
    """Download a file; without a sum nothing but HTTPS vouches for it.

    Raises:
        ValueError: if the address is not HTTPS, also after a redirect, or the sum is another.
        OSError: if there is no answer, or its certificate is not valid.
    """
    _require_https(url)
    context = ssl.create_default_context()
    opener = urllib.request.build_opener(
        urllib.request.HTTPSHandler(context=context), _SecureRedirects()
    )
    digest, size = hashlib.sha256(), 0
    place.parent.mkdir(parents=True, exist_ok=True)
    with opener.open(url, timeout=_TIMEOUT) as answer, place.open("wb") as file:
        while piece := answer.read(2**20):
            size += len(piece)
            if size > LARGEST:
                raise ValueError(f"Expected at most {LARGEST} bytes from {url} (got more)")
            digest.update(piece)
            file.write(piece)
    if sha256 is not None and digest.hexdigest() != sha256:
        place.unlink()
        raise ValueError(
            f"Expected {url} to have the SHA-256 sum {sha256} (got {digest.hexdigest()}); it is "
            "not the published file, and was not kept"
        )


def fetch_archive(url: str, folder: Path, files: tuple[str, ...], sha256: str | None) -> None:
    """Download a ZIP archive and take these files out of the one folder that it holds.

    Raises:
        ValueError: as :func:`fetch` does, or if a file is not in it.
    """
    packed = folder / "archive.zip"
    fetch(url, packed, sha256)
    with zipfile.ZipFile(packed) as archive:
        members = {name.partition("/")[2]: name for name in archive.namelist()}
        for file in files:
            if file not in members:
                raise ValueError(f"Expected {file} in {url} (got none)")
            place = folder / file
            place.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(members[file]) as source, place.open("wb") as target:
                shutil.copyfileobj(source, target)
    packed.unlink()


def _require_https(url: str) -> None:
    if not url.startswith("https://"):
        raise ValueError(f"Expected an address with https:// (got {url})")


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str
    ) -> Any:
        _require_https(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_LOG = logging.getLogger(__name__)
_FORMAT = 2  # of the cached file: raise it when the content changes
_SPARSE_BELOW = 0.25  # share of nonzero features under which they are cached sparse


def cache_root(cache: str | Path | None = None) -> Path:
    """The user's cache: the argument, else ``$LONGNN_CACHE``, else ``$XDG_CACHE_HOME/longnn``, else
    ``~/.cache/longnn``.
    """
    chosen = cache or os.environ.get("LONGNN_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "longnn"


def data_root(data_dir: str | Path | None = None) -> Path:
    """The data folder: the argument, else ``$LONGNN_DATA``, else one in the user's cache."""
    chosen = data_dir or os.environ.get("LONGNN_DATA")
    if "\0" in str(chosen):
        raise DataError(f"Expected a data folder without null bytes (got {str(chosen)!r}).")
    return Path(chosen).expanduser() if chosen else cache_root() / "data"


def load_raw(
    raw: NamedDataset,
    read: Callable[[Sequence[Path]], GraphTensors],
    data_dir: str | Path | None = None,
) -> GraphTensors:
    """The tensors of a dataset, from the cache, the raw files, which ``read`` reads, or a download.

    Raises:
        DatasetUnavailable: if files are missing and cannot be downloaded.
        DataError: if the files are there but cannot be read.
    """
    wanted = data_root(data_dir)
    folders = [wanted, cache_root() / "data"]
    found = next((folder for folder in folders if not _missing(raw, folder)), None)
    if found is None:
        found = _download(raw, wanted)
    folder = (found / raw.folder).resolve()
    states = [(file, (folder / file).stat()) for file in raw.files]
    state = [f"{file} {stat.st_size} {stat.st_mtime_ns}" for file, stat in states]
    key = hashlib.sha256("\n".join([str(folder), str(_FORMAT), *state]).encode()).hexdigest()
    store = cache_root() / "processed" / f"{raw.name}-{key[:16]}.pt"
    cached = _read_cached(store)
    if cached is not None:
        return cached
    data = read([found / raw.folder / file for file in raw.files])
    _write_cached(store, data)
    return data


def _missing(raw: NamedDataset, data_dir: Path) -> list[str]:
    return [file for file in raw.files if not (data_dir / raw.folder / file).is_file()]


def _download(raw: NamedDataset, data_dir: Path) -> Path:
    """Fetch all files, move them into the data folder (else the cache); returns which."""
    if not raw.urls:
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
                _fetch_all(raw, Path(folder) / raw.folder)
            except RAISED as error:
                why = f"the download failed ({type(error).__name__}: {error})"
                raise _unavailable(raw, data_dir, why) from error
            for file in raw.files:
                place = target / raw.folder / file
                place.parent.mkdir(parents=True, exist_ok=True)
                os.replace(Path(folder) / raw.folder / file, place)
        return target
    raise _unavailable(raw, data_dir, f"the download failed ({reason})")


def _fetch_all(raw: NamedDataset, folder: Path) -> None:
    sums = known_sums()
    if len(raw.urls) != len(raw.files):  # an archive
        (url,) = raw.urls
        fetch_archive(url, folder, raw.files, sums.get(f"{raw.folder}/{url.rpartition('/')[2]}"))
        return
    for file, url in zip(raw.files, raw.urls, strict=True):
        fetch(url, folder / file, sums.get(f"{raw.folder}/{file}"))


def _check_writable(folder: Path) -> None:
    """A folder marked read-only is left alone, even by a superuser who could write to it."""
    existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not existing.stat().st_mode & 0o222 or not os.access(existing, os.W_OK):
        raise PermissionError(f"{existing} is read-only")


def _unavailable(raw: NamedDataset, data_dir: Path, why: str) -> DatasetUnavailable:
    return DatasetUnavailable(
        f"Dataset {raw.name!r} is not on disk and {why}: expected the files "
        f"{', '.join(_missing(raw, data_dir))} in {data_dir / raw.folder} (the data folder is "
        "set by data_dir, --data-dir or LONGNN_DATA)."
    )


def _read_cached(store: Path) -> GraphTensors | None:
    if not store.is_file():
        return None
    try:
        fields: dict[str, torch.Tensor] = torch.load(store, weights_only=True)
        if fields["x"].layout is not torch.strided:
            check_sparse(fields["x"])
    except Exception as error:  # of torch: whatever a damaged file brings about
        _LOG.info("rebuilding the damaged %s: %s", store, error)
        return None
    fields["x"] = fields["x"].to_dense()
    return GraphTensors(fields)


def _write_cached(store: Path, data: GraphTensors) -> None:
    """Write the cache if possible: one that cannot be written costs time, not correctness."""
    fields = {key: value for key, value in data.items() if torch.is_tensor(value)}
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
