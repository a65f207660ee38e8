"""Graphs to explain on: one whose explanations are planted, and named ones."""

import dataclasses

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from longnn import data, training
from longnn.config import Config
from longnn.data import NodeDataset, Split, from_data, make_split
from longnn.graphs import GraphOperator
from longnn.training import Trained

PLANTED = "planted"
#: Middle nodes of a block, leaves of each, and features that are noise.
MIDDLES, LEAVES, NOISE = 3, 3, 8
#: Of a block: its centre, its middle nodes and all their leaves.
BLOCK = 1 + MIDDLES + MIDDLES * LEAVES


def planted(blocks: int, seed: int = 0) -> tuple[NodeDataset, np.ndarray]:
    """A graph where the class of each centre is written on one node two hops away.

    A block is a centre, three middle nodes and three leaves of each. One leaf, the informant, has
    a mark of one of two kinds, and that is the class of the centre. All nodes have noise, too.
    Random edges between leaves join the blocks. Only centres have a label.

    Returns:
        the graph, and the informant of every node, int64 (nodes,), -1 for those that are no centre.

    >>> graph, informant = planted(4)
    >>> graph.num_nodes, int((informant >= 0).sum())
    (52, 4)
    """
    rng = np.random.default_rng(seed)
    size = blocks * BLOCK
    centre = np.arange(blocks) * BLOCK
    middle = centre[:, None] + 1 + np.arange(MIDDLES)  # (blocks, middles)
    leaf = centre[:, None] + 1 + MIDDLES + np.arange(MIDDLES * LEAVES)  # (blocks, leaves)
    ends = [(np.repeat(centre, MIDDLES), middle.ravel())]
    ends.append((np.repeat(middle, LEAVES, axis=1).ravel(), leaf.ravel()))
    ends.append((rng.permutation(leaf.ravel()), leaf.ravel()))
    row, col = np.concatenate(ends, axis=1)
    edges = np.stack([np.r_[row, col], np.r_[col, row]])[:, np.r_[row != col, row != col]]
    edges = np.unique(edges, axis=1)
    told = leaf[np.arange(blocks), rng.integers(leaf.shape[1], size=blocks)]
    label = rng.integers(2, size=blocks)
    x = 0.3 * rng.standard_normal((size, 2 + NOISE))
    x[:, :2] = 0
    x[told, label] = 1
    y, informant = np.full(size, -1), np.full(size, -1)
    y[centre], informant[centre] = label, told
    graph = Data(
        x=torch.from_numpy(x).float(), edge_index=torch.from_numpy(edges), y=torch.from_numpy(y)
    )
    return from_data(graph, name=PLANTED), informant


@dataclasses.dataclass(frozen=True, eq=False)
class Subject:
    """A trained model and nodes of its test set to explain.

    Args:
        dataset, trained, split: of the training.
        test: accuracy on the test nodes.
        nodes: to explain: test nodes that are predicted right.
        informant: (nodes,), where explanations are planted.
    """

    dataset: NodeDataset
    trained: Trained
    split: Split
    test: float
    nodes: np.ndarray
    informant: np.ndarray | None

    def __post_init__(self) -> None:
        problem = self.trained.problem(self.dataset)
        x = self.trained.scaling.apply(self.dataset.data.x)
        dense = x.to_dense() if x.layout is not torch.strided else x
        predicted = self.trained.predict(problem).argmax(1)
        vars(self).update(x=dense.float(), operator=problem.operator, classes=predicted)

    x: Tensor = dataclasses.field(init=False)  # (nodes, features), as the model sees them
    operator: GraphOperator = dataclasses.field(init=False)
    classes: Tensor = dataclasses.field(init=False)  # (nodes,), predicted

    def scores(self, x: Tensor, operator: GraphOperator | None = None) -> Tensor:
        """The model on changed features, and perhaps a changed graph."""
        model = self.trained.models[0]
        assert not model.training, "dropout is on: curves would be noise"
        return model.scores(x, operator or self.operator)


def make_subject(
    name: str, config: Config, *, blocks: int, count: int, data_dir: str | None
) -> Subject:
    """Train LON-GNN in the paper's form and draw the nodes to explain."""
    informant = None
    if name == PLANTED:
        dataset, informant = planted(blocks)
    else:
        dataset = data.load(name, data_dir=data_dir)
    split = make_split(dataset, "stratified", config.seed)
    job = training.Job(dataset, [config], [split])
    fitted = job.run()
    trained = Trained.collect(dataset, job.scaling_of(0), fitted)
    right = fitted[0].predicted.argmax(1) == dataset.data.y
    test = float(right[split.test].double().mean())
    places = np.flatnonzero((split.test & right).numpy())
    drawn = np.random.default_rng(0).permutation(places)[:count]
    return Subject(dataset, trained, split, test, drawn, informant)
