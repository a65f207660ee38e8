"""Files from the web, over HTTPS alone and checked before anyone reads them.

``sha256sums.txt`` holds the SHA-256 sum of each published file that is known, as ``sha256sum``
writes it, its path relative to the data folder. A download with another sum is refused. A file
without a sum there is checked for its form alone, by its reader. Files that a user put into the
data folder are not compared: they may be compressed in another way.
"""

import functools
import hashlib
import http.client
import importlib.resources
import shutil
import ssl
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LARGEST = 2**31  # bytes of one file: the largest that is known has 83 MB
_TIMEOUT = 60  # seconds without a byte
#: What a download can raise.
RAISED = (OSError, ValueError, http.client.HTTPException, zipfile.BadZipFile, zlib.error)


@functools.cache
def known_sums() -> Mapping[str, str]:
    """The SHA-256 sum of each published file that is known, by its path in the data folder.

    >>> known_sums()["Cora/raw/ind.cora.graph"][:8]
    '58f13302'
    """
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
