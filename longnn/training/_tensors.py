"""Files of named tensors and texts (safetensors): reading one runs no code."""

import json
from collections.abc import Mapping
from pathlib import Path

import safetensors
import safetensors.torch
from torch import Tensor

from longnn._base.files import atomic_path, writing
from longnn.data import DataError

#: Bytes of the length that a file begins with; the header is filled up to a multiple of it.
_WORD = 8


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a file atomically; the same content gives the same bytes."""
    plain = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    content = memoryview(safetensors.torch.save(plain, metadata=dict(metadata)))
    end = _WORD + int.from_bytes(content[:_WORD], "little")
    header = json.loads(bytes(content[_WORD:end]))
    # The library writes metadata in an order that changes from call to call.
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _WORD)
    with writing(path), atomic_path(path) as temporary, temporary.open("wb") as file:
        file.write(len(text).to_bytes(_WORD, "little"))
        file.write(text)
        file.write(content[end:])


def read_tensors(path: Path, form: str, what: str) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata and tensors of a file.

    Args:
        path: the file.
        form: the format that its metadata must name.
        what: it is expected to be, for the message: "to hold weights".

    Raises:
        DataError: where it is damaged or of another format; names the file.
        FileNotFoundError: where there is none.
    """
    try:
        with safetensors.safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise
    except (safetensors.SafetensorError, OSError) as error:
        raise DataError(f"Expected {path} {what} (it is damaged: {error})") from error
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        # A type of numbers or a shape that torch does not have.
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"Expected {path} {what} (torch cannot read it: {reason})") from error
    if metadata.get("format") != form:
        raise DataError(f"Expected {path} {what} (got another file)")
    return metadata, tensors
