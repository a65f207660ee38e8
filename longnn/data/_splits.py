"""Which nodes are for training, for validation and for testing.

Protocols are functions in one table; :func:`make_split` calls one, then checks the result: a split
that no model can learn from is an error that says what to do. Unlabelled nodes are in no set.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from longnn.data._dataset import MASKS, NodeDataset
from longnn.data._errors import DataError, few, have

CARVED = 0.2  # share of nodes that becomes a missing validation set, or is held out of a search
SHARES = (0.6, 0.8)  # where training and validation end, in shares of the labelled nodes
DRAWS = 20  # of the order of groups; the one whose shares are nearest is taken


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Three disjoint sets of nodes.

    Args:
        train, val, test: bool (nodes,).
        protocol: how they were made.
        seed: the seed, or the number of the fixed split.
        notes: sentences the user ought to read.
        test_notes: those of them that are about the test set.
    """

    train: Tensor
    val: Tensor
    test: Tensor
    protocol: str
    seed: int
    notes: tuple[str, ...] = ()
    test_notes: tuple[str, ...] = ()

    def without_test(self) -> "Split":
        """The split without its test nodes, and without the notes about them: for choosing."""
        notes = tuple(note for note in self.notes if note not in self.test_notes)
        nobody = torch.zeros_like(self.test)
        return replace(self, test=nobody, notes=notes, test_notes=())

    def of(self, places: np.ndarray) -> "Split":  # int64 (nodes,)
        """The split of some of the nodes."""
        sets = {name: getattr(self, name)[places] for name in ("train", "val", "test")}
        return replace(self, **sets)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The numbers of training, validation and test nodes."""
        return int(self.train.sum()), int(self.val.sum()), int(self.test.sum())

    def __repr__(self) -> str:
        train, val, test = self.sizes
        return f"Split({self.protocol!r}, seed={self.seed}, train={train}, val={val}, test={test})"


def make_split(dataset: NodeDataset, protocol: str | None = None, seed: int = 0) -> Split:
    """Split the labelled nodes of a dataset.

    Args:
        dataset: the dataset to split.
        protocol: ``"published"`` (training takes min(class size, round(0.6 n / C)) nodes of each
            class, validation round(0.2 n) of the rest, testing all others), ``"stratified"``
            (60/20/20 % of each class), ``"geom-gcn"`` or ``"fixed"`` (the masks that came with the
            dataset), ``"own"`` (the user's masks), ``"time"`` (the masks of past, next and last
            nodes), ``"group"`` (whole groups, drawn so that shares are near 60/20/20 %). Default:
            ``dataset.default_split``. Without classes the first two are a random 60/20/20 %.
        seed: seed of the generator; for masks, which of them (modulo their number).

    Raises:
        DataError: for one class only, a class without training node, or an empty set; the
            message says what to do.

    >>> from longnn.data import csbm
    >>> make_split(csbm(num_nodes=100, num_features=5), "stratified", seed=1)
    Split('stratified', seed=1, train=60, val=20, test=20)
    """
    chosen = protocol or dataset.default_split
    if chosen not in PROTOCOLS:
        raise DataError(
            f"Expected a split protocol among {', '.join(PROTOCOLS)} (got {chosen!r}).",
            value=chosen,
        )
    if seed < 0:
        raise DataError(f"Expected `seed` >= 0 (got {seed}).", value=seed)
    _check_classes(dataset)
    train, val, test, notes = PROTOCOLS[chosen](dataset, seed)
    if chosen in SHIPPED:
        _check_masks(dataset, train, val, test)
    sizes = f"train {int(train.sum())}, val {int(val.sum())}, test {int(test.sum())}"
    for name, mask in (("training", train), ("validation", val), ("test", test)):
        if not bool(mask.any()) and not (name == "test" and chosen in SHIPPED):
            raise DataError(f"Expected {name} nodes (got none: {sizes}); {_remedy(chosen)}.")
    notes += _check_training_classes(dataset, train, chosen)
    about_test = tuple(_test_notes(dataset, test))
    return Split(train, val, test, chosen, seed, (*notes, *about_test), about_test)


_Sets = tuple[Tensor, Tensor, Tensor, list[str]]


def _published(dataset: NodeDataset, seed: int) -> _Sets:
    """One permutation per class, in class order, then one over the rest."""
    if dataset.task != "classification":
        return _stratified(dataset, seed)
    generator = torch.Generator().manual_seed(seed)
    labelled = int(dataset.labelled.sum())
    quota = round(0.6 * labelled / dataset.num_classes)
    classes = [_shuffled(dataset.data.y == c, generator) for c in range(dataset.num_classes)]
    rest = torch.cat([nodes[quota:] for nodes in classes])
    rest = rest[torch.randperm(len(rest), generator=generator)]
    val, test = rest.tensor_split([round(0.2 * labelled)])
    train = torch.cat([nodes[:quota] for nodes in classes])
    return *_to_masks(dataset.num_nodes, train, val, test), []


def _stratified(dataset: NodeDataset, seed: int) -> _Sets:
    """60/20/20 of each class, rounded; each class gives at least one training node."""
    generator = torch.Generator().manual_seed(seed)
    sets: tuple[list[Tensor], ...] = ([], [], [])
    groups, least = [dataset.labelled], 0  # without classes
    if dataset.task == "classification":
        groups, least = [dataset.data.y == c for c in range(dataset.num_classes)], 1
    for group in groups:
        nodes = _shuffled(group, generator)
        first = max(least, round(0.6 * len(nodes)))
        second = max(first, round(0.8 * len(nodes)))
        for chosen, piece in zip(sets, nodes.tensor_split((first, second)), strict=True):
            chosen.append(piece)
    return *_to_masks(dataset.num_nodes, *(torch.cat(chosen) for chosen in sets)), []


def _shuffled(chosen: Tensor, generator: torch.Generator) -> Tensor:  # bool (nodes,) -> (chosen,)
    nodes = chosen.nonzero().view(-1)
    return nodes[torch.randperm(len(nodes), generator=generator)]


def _fixed(dataset: NodeDataset, seed: int) -> _Sets:
    if dataset.num_splits == 0:
        raise DataError(
            f"Expected {dataset.name!r} to come with masks (it has none); use the protocol "
            "'published' or 'stratified', or give the nodes a split column."
        )
    train, val, test = (_column(dataset, key, seed) for key in MASKS)
    return train, val, test, []


def _own(dataset: NodeDataset, seed: int) -> _Sets:
    """The user's masks; a missing validation set is carved out of the training nodes."""
    train, val, test, notes = _fixed(dataset, seed)
    if bool(val.any()) or not bool(train.any()):
        return train, val, test, notes
    val = _carve(dataset, train, seed)
    train = train & ~val
    whole = "in whole groups" if "node_group" in dataset.data else ""
    of_each = "20 % of each class" if dataset.task == "classification" else "20 %"
    notes.append(
        f"No validation nodes were given: {int(val.sum())} of the training nodes, "
        f"{whole or of_each} drawn with seed {seed}, are used for validation."
    )
    return train, val, test, notes


def _by_group(dataset: NodeDataset, seed: int) -> _Sets:
    group = dataset.data.get("node_group")
    if group is None:
        raise DataError(
            "Expected groups for the split protocol 'group' (got none); name their column with "
            "group_column."
        )
    count = len(torch.unique(group[dataset.labelled]))
    if count < 3:
        raise DataError(
            "Expected at least three groups with labelled nodes: to train, to validate and to test "
            f"(got {count}); name another group_column."
        )
    sets = _draw_groups(dataset, dataset.labelled, SHARES, seed)
    return sets == 0, sets == 1, sets == 2, []


def _draw_groups(
    dataset: NodeDataset, nodes: Tensor, ends: Sequence[float], seed: int
) -> Tensor:  # int64 (nodes,)
    """The set of each of some nodes, -1 of the others, each of whole groups in random order.

    The first set is to train: of several draws those are preferred in which it has all classes, and
    then the one whose shares are nearest.
    """
    generator = torch.Generator().manual_seed(seed)
    _, group, counts = torch.unique(
        dataset.data.node_group[nodes], return_inverse=True, return_counts=True
    )
    y = dataset.data.y[nodes] if dataset.task == "classification" else torch.zeros(len(group))
    wanted, best = np.diff([0.0, *ends, 1.0]), None
    for _ in range(DRAWS):
        order = torch.randperm(len(counts), generator=generator)
        set_of = torch.empty_like(order)
        set_of[order] = torch.from_numpy(in_shares(counts[order].numpy(), ends))
        drawn = set_of[group]
        shares = np.bincount(drawn, minlength=len(wanted)) / len(drawn)
        off = (-len(torch.unique(y[drawn == 0])), float(np.abs(shares - wanted).sum()))
        if best is None or off < best[0]:
            best = off, drawn
    assert best is not None
    return torch.full(nodes.shape, -1).masked_scatter(nodes, best[1])


def in_shares(counts: np.ndarray, ends: Sequence[float]) -> np.ndarray:  # (values,) -> int64
    """The set of each value, in their order: sets end near these shares of all that is counted.

    No set is empty where there are values enough.

    >>> in_shares(np.array([5, 3, 1, 1, 9, 1]), (0.6, 0.8)).tolist()
    [0, 0, 0, 0, 1, 2]
    """
    sets, first, last = np.zeros(len(counts), dtype=np.int64), 0, len(counts) - len(ends)
    if last < 1:
        return np.arange(len(counts))
    reached = counts.cumsum() / counts.sum()
    for k, end in enumerate(ends):
        first += 1 + int(np.abs(reached[first : last + k] - end).argmin())
        sets[first:] += 1
    return sets


def _carve(dataset: NodeDataset, nodes: Tensor, seed: int) -> Tensor:
    """A fifth of some nodes, bool (nodes,): of each class alike, or of whole groups."""
    if "node_group" in dataset.data:
        return _draw_groups(dataset, nodes, (1 - CARVED,), seed) == 1
    generator = torch.Generator().manual_seed(seed)
    y = dataset.data.y if dataset.task == "classification" else torch.zeros(len(nodes))
    carved = torch.zeros_like(nodes)
    for c in torch.unique(y[nodes]):
        of_class = _shuffled(nodes & (y == c), generator)
        carved[of_class[: round(CARVED * len(of_class))]] = True
    return carved


def hold_out(dataset: NodeDataset, split: Split) -> Split:
    """The split without its test nodes, in whose place stands a fifth of the others.

    What is chosen on it can be judged by nodes that it was not chosen by, before anybody looks at
    the test nodes.

    >>> from longnn.data import csbm
    >>> graph = csbm(num_nodes=100, num_features=5)
    >>> hold_out(graph, make_split(graph, "stratified", seed=1))
    Split('stratified', seed=1, train=48, val=16, test=16)
    """
    held = _carve(dataset, split.train, split.seed) | _carve(dataset, split.val, split.seed)
    return replace(
        split.without_test(), train=split.train & ~held, val=split.val & ~held, test=held
    )


SHIPPED = ("geom-gcn", "fixed", "own", "time")  # masks that came with the data
PROTOCOLS: dict[str, Callable[[NodeDataset, int], _Sets]] = {
    "published": _published,
    "stratified": _stratified,
    "geom-gcn": _fixed,
    "fixed": _fixed,
    "own": _own,
    "time": _fixed,
    "group": _by_group,
}


def _column(dataset: NodeDataset, key: str, seed: int) -> Tensor:
    mask = dataset.data.get(key)
    if mask is None:
        return torch.zeros(dataset.num_nodes, dtype=torch.bool)
    return (mask if mask.dim() == 1 else mask[:, seed % mask.shape[1]]).clone()


def _to_masks(size: int, *sets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    train, val, test = torch.zeros(3, size, dtype=torch.bool)
    for mask, nodes in zip((train, val, test), sets, strict=True):
        mask[nodes] = True
    return train, val, test


def _check_classes(dataset: NodeDataset) -> None:
    if not bool(dataset.labelled.any()):
        raise DataError(
            f"Expected labelled nodes in {dataset.name!r} (got none); name the label column."
        )
    if dataset.task != "classification":
        return
    present = torch.unique(dataset.data.y[dataset.labelled]).tolist()
    if len(present) < 2:
        only = dataset.classes[present[0]]
        raise DataError(
            f"Expected at least two classes among the labelled nodes (got only {only!r}); "
            "label nodes of another class, or check the label column.",
            value=only,
        )


def _check_masks(dataset: NodeDataset, train: Tensor, val: Tensor, test: Tensor) -> None:
    double = (train & val) | (train & test) | (val & test)
    if bool(double.any()):
        node = dataset.ids[int(double.nonzero()[0])]
        raise DataError(
            f"Expected each node in one set (got node {node!r} in two); correct the masks."
        )
    hidden = (train | val | test) & ~dataset.labelled
    if bool(hidden.any()):
        node = dataset.ids[int(hidden.nonzero()[0])]
        raise DataError(
            f"Expected a label for each node in a mask (got none for node {node!r}); label it "
            "or take it out of the mask."
        )


def _remedy(protocol: str) -> str:
    if protocol == "time":
        return "three different times are needed at least; choose where sets begin with split_at"
    if protocol == "group":
        return "label more nodes, or name another group_column"
    if protocol in SHIPPED:
        return "correct the masks or the split column, or use the protocol 'stratified'"
    return "label more nodes, or choose the sets with a split column"


def _absent_classes(dataset: NodeDataset, chosen: Tensor) -> tuple[list[str], int]:
    """The classes that have labelled nodes but none among the chosen, and how many have any."""
    y, classes = dataset.data.y, dataset.num_classes
    there = torch.bincount(y[dataset.labelled], minlength=classes) > 0
    absent = there & (torch.bincount(y[chosen], minlength=classes) == 0)
    return [dataset.classes[c] for c in absent.nonzero().view(-1).tolist()], int(there.sum())


def _check_training_classes(dataset: NodeDataset, train: Tensor, protocol: str) -> list[str]:
    if dataset.task != "classification":
        return []
    absent, _ = _absent_classes(dataset, train)
    if not absent:
        return []
    names = ", ".join(map(repr, absent))
    # Texas: a class of one node, often not in train. Others come later, or are of one group.
    if protocol in ("geom-gcn", "fixed", "time", "group"):
        return [f"No training node has class {names}: it cannot be learned in this split."]
    raise DataError(
        f"Expected a training node of each class (got none of {names}); {_remedy(protocol)}."
    )


def _test_notes(dataset: NodeDataset, test: Tensor) -> list[str]:
    """What the test scores do not say."""
    if not bool(test.any()):
        return ["There are no test nodes: no test score can be given."]
    if dataset.task != "classification":
        return []
    absent, classes = _absent_classes(dataset, test)
    if not absent:
        return []
    them = "it" if len(absent) == 1 else "them"
    return [
        f"{len(absent)} of {classes} classes {have(len(absent))} no test node: {few(absent)}; "
        f"scores say nothing about {them}."
    ]
