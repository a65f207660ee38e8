"""The tensors of a graph by the names that PyG has for them, without PyG, which loads for seconds.

What is given as a PyG ``Data`` is recognised here; nobody else asks.
"""

import sys
from typing import Any

from torch import Tensor


class GraphTensors(dict[str, Any]):
    """Tensors by name: ``tensors.x`` is ``tensors["x"]``. PyG's own is ``Data(**tensors)``.

    >>> import torch
    >>> tensors = GraphTensors(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=None)
    >>> list(tensors), tensors.x.shape
    (['x', 'edge_index'], torch.Size([2, 2]))
    """

    def __init__(self, tensors: Any = (), **more: Any) -> None:
        named = {**dict(tensors), **more}
        super().__init__({key: value for key, value in named.items() if value is not None})

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no tensor {name!r} (there are {', '.join(self)})") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    @property
    def num_nodes(self) -> int:
        """As given, else as PyG counts: the rows of the features."""
        return int(self["num_nodes"]) if "num_nodes" in self else len(self.x)

    def clone(self) -> "GraphTensors":
        """A copy of each tensor."""
        copies = {k: v.clone() if isinstance(v, Tensor) else v for k, v in self.items()}
        return GraphTensors(copies)


def is_graph_data(value: object) -> bool:
    """Whether a value is a PyG ``Data`` or tensors by name. Who has a ``Data`` has loaded PyG."""
    pyg = sys.modules.get("torch_geometric.data")
    return isinstance(value, GraphTensors) or (pyg is not None and isinstance(value, pyg.Data))


def as_tensors(data: Any) -> GraphTensors:
    """A PyG ``Data``, or a mapping, by names; itself where it is so already. Nothing is copied."""
    if isinstance(data, GraphTensors):
        return data
    return GraphTensors(data.to_dict() if is_graph_data(data) else data)
