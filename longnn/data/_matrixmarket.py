"""Matrix Market files, each number looked at before SciPy's reader is.

That reader is compiled and trusts what it reads: a number such as ``1E`` ends the process, and a
size that the file does not hold is allocated. So the text is checked first.
"""

import re
from pathlib import Path
from typing import Any

import scipy.io

from longnn.data._errors import DataError

_BANNER = re.compile(
    rb"%%MatrixMarket[ \t]+matrix[ \t]+(coordinate|array)[ \t]+"
    rb"(real|double|integer|unsigned-integer|pattern|complex)[ \t]+"
    rb"(general|symmetric|skew-symmetric|hermitian)[ \t\r]*\n",
    re.IGNORECASE,
)
_COMMENTS = re.compile(rb"(?:[ \t\r]*\n|[ \t]*%[^\n]*\n)*")
_SIZES = re.compile(rb"[ \t]*(\d{1,18})[ \t]+(\d{1,18})(?:[ \t]+(\d{1,18}))?[ \t\r]*(?:\n|\Z)")
_NUMBER = rb"[-+]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][-+]?\d{1,6})?|[-+]?(?:nan|inf)"
_NO_NUMBER = re.compile(rb"(?<!\S)(?!(?:" + _NUMBER + rb")(?!\S))\S+", re.IGNORECASE)
#: What SciPy's reader raises for a text that is well formed but not right.
_RAISED = (ArithmeticError, LookupError, MemoryError, OSError, RuntimeError, TypeError, ValueError)


def read_matrix_market(path: Path) -> Any:
    """The matrix of a file, sparse or dense as it is written.

    Raises:
        DataError: naming the file, and the line of what is not a number.
    """
    content = path.read_bytes()
    if b"\0" in content:
        raise DataError("Expected a text file (got zero bytes in it).", path=path)
    banner = _BANNER.match(content)
    if banner is None:
        first = content[:60].split(b"\n")[0]
        raise DataError(
            "Expected a complete Matrix Market file that begins with '%%MatrixMarket matrix "
            f"coordinate real general' or the like (got {_shown(first)}).",
            path=path,
        )
    comments = _COMMENTS.match(content, banner.end())
    assert comments is not None  # it matches nothing, too
    sizes = _SIZES.match(content, comments.end())
    if sizes is None:
        raise DataError(
            "Expected a readable, complete mtx file with a line of sizes (got none).", path=path
        )
    _check_sizes(path, banner[1].lower() == b"coordinate", sizes, content)
    wrong = _NO_NUMBER.search(content, sizes.end())
    if wrong is not None:
        line = content.count(b"\n", 0, wrong.start()) + 1
        raise DataError(f"Expected a number (got {_shown(wrong[0])}).", path=path, row=line)
    try:
        return scipy.io.mmread(path)
    except _RAISED as error:
        raise DataError(
            f"Expected a readable, complete mtx file (got {type(error).__name__}: {error}).",
            path=path,
        ) from error


def is_called_symmetric(path: Path) -> bool:
    """Whether a file lists half of a matrix, the other half being the same.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".mtx") as file:
    ...     _ = Path(file.name).write_text("%%MatrixMarket matrix coordinate real symmetric\\n")
    ...     is_called_symmetric(Path(file.name))
    True
    """
    with path.open("rb") as file:
        banner = _BANNER.match(file.read(200))
    return banner is not None and banner[3].lower() in (b"symmetric", b"hermitian")


def _check_sizes(path: Path, sparse: bool, sizes: re.Match[bytes], content: bytes) -> None:
    """The number of values that the sizes promise, against the text that is there."""
    if sparse != (sizes[3] is not None):
        count = "rows, columns and entries" if sparse else "rows and columns"
        raise DataError(f"Expected {count} in the line of sizes.", path=path)
    rows, columns = int(sizes[1]), int(sizes[2])
    if not rows or not columns:
        raise DataError(
            f"Expected at least one row and one column (got {rows} and {columns}).", path=path
        )
    # An entry has a line of at least 4 characters; of a dense symmetric matrix half is listed.
    left = len(content) - sizes.end() + 1
    promised = int(sizes[3]) if sparse else rows * columns // 2
    most = left // 4 if sparse else left
    if promised > most:
        raise DataError(
            f"Expected as many values as the sizes promise (got {int(sizes[3] or rows * columns)} "
            f"in {left} bytes); the file may be truncated.",
            path=path,
        )


def _shown(text: bytes) -> str:
    return repr(text[:40].decode("latin1"))
