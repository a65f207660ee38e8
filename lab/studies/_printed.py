"""Data of studies in TOML files, and of these the numbers that are printed elsewhere.

``printed.toml`` has the paper's Tables 2 to 6 and the literature, ``rows.toml`` the rows that are
searched, ``labels.toml`` labels, ``captions.toml`` captions.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.bench import DATASETS


def read_toml(name: str) -> dict[str, Any]:
    """A file of data beside this one."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))


#: The ten graphs of the paper; and with the defective Cornell, which is the one that it has.
TEN = DATASETS
LEGACY = "cornell-legacy"
PAPER = (*TEN, LEGACY)
#: What a quick run looks at: bundled, so that it needs no files.
QUICK_DATASETS = ("csbm",)

_PRINTED = read_toml("printed")


def _of_ten(numbers: Sequence[float]) -> dict[str, float]:
    return dict(zip(TEN, numbers, strict=True))


#: Model -> graph -> accuracy in per cent, milliseconds per epoch, seconds in total.
ACCURACY, EPOCH_MS, TOTAL_S = (
    {model: _of_ten(numbers) for model, numbers in _PRINTED[table].items()}
    for table in ("accuracy", "epoch_ms", "total_s")
)
BEST_ANYWHERE = _of_ten(_PRINTED["best_anywhere"])
UNIFORM_SPLIT, FIXED_MASKS, DIRECTED_MASKS = (
    _PRINTED[table] for table in ("uniform_split", "fixed_masks", "directed_masks")
)
#: Model, or rate of a and b -> losses in the order of the filters.
FILTER_LOSSES, BASIS_RATE_LOSSES = _PRINTED["filter_losses"], _PRINTED["basis_rate_losses"]


def printed_cells(dataset: str) -> list[str]:
    """The paper's LON-GNN and the best found anywhere, in %, for a row of a table.

    Both are of the defective Cornell: the corrected one has none.

    >>> printed_cells("cora"), printed_cells("cornell")
    (['89.44', '90.82'], ['', ''])
    """
    if dataset == "cornell":
        return ["", ""]
    column = dataset.removesuffix("-legacy")
    return [f"{numbers[column]:.2f}" for numbers in (ACCURACY["lon"], BEST_ANYWHERE)]


def best_of_paper(dataset: str) -> float:
    """The highest accuracy of any model in the paper, in per cent.

    >>> best_of_paper("actor")
    41.79
    """
    return max(row[dataset] for row in ACCURACY.values())
