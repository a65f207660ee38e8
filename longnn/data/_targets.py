"""The labels and masks of a graph, each brought to one type."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor

from longnn.data._dataset import BESIDE, MASKS, TASKS, UNLABELLED, Task, known_labels
from longnn.data._errors import DataError, counted, have, was
from longnn.data._features import form, plain_tensor
from longnn.data._tensors import GraphTensors

#: More distinct whole numbers than this may be classes or a quantity: a note names the other.
MANY_CLASSES = 20


class Answers(NamedTuple):
    """What is asked of the nodes, in the form of a dataset; ``notes`` are about its classes."""

    y: Tensor
    task: Task
    classes: tuple[str, ...]
    beside: dict[str, Tensor]  # masks, groups and weights
    notes: tuple[str, ...] = ()
    mask_notes: tuple[str, ...] = ()

    @property
    def default_split(self) -> str:
        """The protocol of splits that these ask for."""
        if any(key in self.beside for key in MASKS):
            return "own"
        return "group" if "node_group" in self.beside else "stratified"

    @property
    def labelled(self) -> Tensor:
        """Which nodes have a label, bool (nodes,)."""
        return known_labels(self.y, self.task)


def read_answers(
    data: GraphTensors, task: Task | None, classes: Sequence[str] | None, nodes: int
) -> Answers:
    """Labels ``y``, masks, groups and weights of a graph, which needs neither features nor edges.

    Args:
        data: ``y``, masks, ``node_group`` and ``node_weight``, each of them perhaps absent. A node
            of weight 0 loses its label.
        task: by default classification for whole numbers.
        classes: names of the classes; by default the numbers that occur.
        nodes: their number.
    """
    guessed, notes = task is None, []
    y, task = read_labels(data.get("y"), task, nodes)
    beside: dict[str, Tensor] = {}
    for key, kind in BESIDE.items():
        values = data.get(key)
        if values is not None:
            if not isinstance(values, Tensor) or values.shape != (nodes,):
                raise DataError(f"Expected `{key}` as a tensor ({nodes},) (got {form(values)}).")
            beside[key] = plain_tensor(values, key).to_dense().to(kind)
    if "node_weight" in beside:
        y = without_labels(y, beside["node_weight"] == 0)
    if task == "classification" and classes is None:
        y, classes = code_classes(y)
        notes = many_classes_note("`y`", len(classes)) if guessed else []
    elif task == "multilabel" and classes is None:
        classes = [str(c) for c in range(y.shape[1])]
    masks, mask_notes = read_masks(data, known_labels(y, task))
    beside |= masks
    return Answers(y, task, tuple(classes or ()), beside, tuple(notes), tuple(mask_notes))


def without_labels(y: Tensor, nodes: Tensor) -> Tensor:  # bool (nodes,)
    """Labels without those of some nodes.

    >>> without_labels(torch.tensor([3.0, 4.0]), torch.tensor([True, False]))
    tensor([nan, 4.])
    """
    y = y.clone()
    y[nodes] = torch.nan if y.is_floating_point() else UNLABELLED
    return y


def read_labels(y: object, task: Task | None, nodes: int) -> tuple[Tensor, Task]:
    """The labels as whole numbers, -1 where unknown, or as floats; and what is to be done."""
    if task is not None and task not in TASKS:
        raise DataError(f"Expected `task` to be one of {', '.join(TASKS)} (got {task!r}).")
    if not isinstance(y, Tensor):
        y = torch.full((nodes,), UNLABELLED)
        return (y.float() * float("nan"), task) if task == "regression" else (y, "classification")
    y = plain_tensor(y, "y").to_dense()
    y = y.squeeze(1) if y.dim() == 2 and y.shape[1] == 1 and task != "multilabel" else y
    if y.dim() not in (1, 2) or len(y) != nodes or y.numel() == 0:
        raise DataError(
            f"Expected labels of each node, `y` of shape ({nodes},) or ({nodes}, targets) "
            f"(got {tuple(y.shape)})."
        )
    if y.dim() == 2 or task == "multilabel":
        if task == "classification":
            raise DataError(
                f"Expected one class per node (got `y` of shape {tuple(y.shape)}); for several "
                "labels of yes or no use task='multilabel'."
            )
        y = (y[:, None] if y.dim() == 1 else y).float()
        binary = bool(((y == 0) | (y == 1) | torch.isnan(y)).all())
        return y, task or ("multilabel" if binary else "regression")
    floating = y.is_floating_point()
    if task is None:
        task = "regression" if floating else "classification"
    if task == "regression":
        return y.float(), task
    if floating:
        whole = torch.isnan(y) | ((y == y.round()) & (y.abs() <= 2**53))
        if not bool(whole.all()):
            row = int((~whole).nonzero()[0])
            raise DataError(
                f"Expected whole numbers up to 2^53 as classes (got {float(y[row])}); use "
                "task='regression', or write classes as text.",
                row=row + 1,
                value=float(y[row]),
            )
        y = torch.nan_to_num(y, nan=float(UNLABELLED))
    return y.long(), cast(Task, task)


def code_classes(y: Tensor) -> tuple[Tensor, list[str]]:
    """Labels as numbers of the classes that occur, and the names of these.

    Labels 0, 1, ... stay as they are.

    >>> code_classes(torch.tensor([10**9, -1, 7]))
    (tensor([ 1, -1,  0]), ['7', '1000000000'])
    """
    known = y != UNLABELLED
    if bool((y < UNLABELLED).any()):
        row = int((y < UNLABELLED).nonzero()[0])
        raise DataError(
            f"Expected labels >= 0, or -1 where unknown (got {int(y[row])}).",
            row=row + 1,
            value=int(y[row]),
        )
    names, codes = torch.unique(y[known], return_inverse=True)
    made = torch.full_like(y, UNLABELLED)
    made[known] = codes
    return made, [str(name) for name in names.tolist()]


def many_classes_note(what: str, number: int) -> list[str]:
    """What to do where so many distinct whole numbers were taken for classes and are none.

    >>> many_classes_note("Column 'age'", 63)
    ["Column 'age' holds 63 distinct whole numbers and was taken for classes; use \
task='regression' if they are a quantity."]
    >>> many_classes_note("Column 'digit'", 10)
    []
    """
    if number <= MANY_CLASSES:
        return []
    return [
        f"{what} holds {number} distinct whole numbers and was taken for classes; use "
        "task='regression' if they are a quantity."
    ]


def read_masks(data: GraphTensors, labelled: Tensor) -> tuple[dict[str, Tensor], list[str]]:
    """The masks without unlabelled nodes: a node that is to be predicted is in none."""
    masks: dict[str, Tensor] = {}
    lost = torch.zeros_like(labelled)
    for key in MASKS:
        mask = data.get(key)
        if mask is None:
            continue
        if not isinstance(mask, Tensor):
            raise DataError(f"Expected `{key}` to be a tensor (got {type(mask).__name__}).")
        mask = plain_tensor(mask, key).to_dense().bool()
        if mask.dim() not in (1, 2) or len(mask) != len(labelled):
            raise DataError(
                f"Expected `{key}` of shape ({len(labelled)},) or ({len(labelled)}, splits) "
                f"(got {tuple(mask.shape)})."
            )
        known = labelled if mask.dim() == 1 else labelled[:, None]
        lost |= (mask & ~known).reshape(len(labelled), -1).any(dim=1)
        masks[key] = mask & known
    number = int(lost.sum())
    note = (
        f"{counted(number, 'node')} in a mask {have(number)} no label and {was(number)} left out."
    )
    return masks, [note] if number else []
