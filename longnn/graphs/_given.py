"""What a layer is given as its graph becomes an operator, in plain calls and under a compiler.

Under ``torch.compile`` an edge list is checked and normalised by one torch operator, which the
compiler does not look into: a model on edges compiles whole.
"""

from typing import Any, cast

import torch
from torch import Tensor

from longnn.graphs._adjacency import Duplicates, SelfLoops, refuse_gradient
from longnn.graphs._operator import GraphOperator, Normalization, refuse_tracing
from longnn.matrices import SparseMatrix


def as_operator(
    graph: GraphOperator | Tensor,
    edge_weight: Tensor | None = None,
    num_nodes: int | None = None,
    **options: Any,
) -> GraphOperator:
    """What a layer is given as its graph, as an operator.

    A :class:`GraphOperator` passes unchanged; a torch sparse adjacency or an edge list becomes
    one with the given options.

    >>> as_operator(torch.tensor([[0, 1], [1, 0]]), num_nodes=3).num_nodes
    3
    """
    refuse_tracing()
    if isinstance(graph, GraphOperator):
        if edge_weight is not None:
            raise ValueError("Expected no `edge_weight` beside a GraphOperator, which has its own")
        return graph
    if not isinstance(graph, Tensor):
        raise TypeError(
            "Expected the graph as an edge_index, a torch sparse adjacency or a GraphOperator "
            f"(got {type(graph).__name__})"
        )
    if graph.layout is not torch.strided:
        return GraphOperator.from_torch_sparse(graph, **options)
    if torch.compiler.is_compiling() and num_nodes is not None:
        return _compiled(graph, edge_weight, num_nodes, **options)
    return GraphOperator.from_edge_index(graph, edge_weight, num_nodes, **options)


def _compiled(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    num_nodes: int,
    *,
    normalization: Normalization = "symmetric",
    self_loops: SelfLoops = "keep",
    symmetrize: bool = False,
    duplicates: Duplicates = "sum",
    dtype: torch.dtype = torch.float32,
) -> GraphOperator:
    """:meth:`GraphOperator.from_edge_index` as one operator of a compiled graph."""
    refuse_gradient(edge_weight)
    choices = (normalization, self_loops, symmetrize, duplicates, dtype)
    crow, col, values, root = normalized_csr(edge_index, edge_weight, num_nodes, *choices)
    matrix = SparseMatrix(crow, col, values, crow, col, None, values)
    return GraphOperator(matrix, root if normalization == "random_walk" else None)


@torch.library.custom_op("longnn::normalized_csr", mutates_args=())
def normalized_csr(
    edge_index: Tensor,  # (2, edges)
    edge_weight: Tensor | None,  # (edges,)
    num_nodes: int,
    normalization: str,
    self_loops: str,
    symmetrize: bool,
    duplicates: str,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The arrays crow, col and values of an operator and its root degree (empty if it has none)."""
    operator = GraphOperator.from_edge_index(
        edge_index,
        edge_weight,
        num_nodes,
        normalization=cast("Normalization", normalization),
        self_loops=cast("SelfLoops", self_loops),
        symmetrize=symmetrize,
        duplicates=cast("Duplicates", duplicates),
        dtype=dtype,
    )
    matrix, root = operator.matrix, operator.root_degree
    index = _index_dtype(edge_index.shape[1], num_nodes)
    empty = matrix.values.new_empty(0)
    return (
        matrix.crow.to(index),
        matrix.col.to(index),
        matrix.values,
        empty if root is None else root,
    )


def _index_dtype(edges: int, nodes: int) -> torch.dtype:
    """The type of indices, from what is known before the edges are looked at."""
    return torch.int32 if 2 * edges + nodes < 2**31 else torch.int64  # both ways, and self loops


@normalized_csr.register_fake
def _(edge_index, edge_weight, num_nodes, normalization, self_loops, symmetrize, duplicates, dtype):  # type: ignore[no-untyped-def]
    index = _index_dtype(edge_index.shape[1], num_nodes)
    entries = torch.library.get_ctx().new_dynamic_size()
    values = edge_index.new_empty(entries, dtype=dtype)
    return (
        edge_index.new_empty(num_nodes + 1, dtype=index),
        edge_index.new_empty(entries, dtype=index),
        values,
        values.new_empty(num_nodes if normalization == "random_walk" else 0),
    )
