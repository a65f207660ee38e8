r"""From edges to a checked, normalised operator on node signals.

:class:`GraphOperator` is the propagation matrix :math:`P = D^{-1/2} A D^{-1/2} = I - L` of an
undirected graph: symmetric, eigenvalues in [-1, 1]. (The paper prints :math:`D^{1/2} A D^{-1/2}`;
that matrix is not symmetric.) Everything a user can get wrong about a graph is checked here,
once; nothing below or above checks again. The random-walk form :math:`D^{-1} A` is similar to
it, :math:`D^{-1/2} P D^{1/2}`, and is kept as P with two diagonal scalings.

Arcs become a symmetric operator, too. A filter needs a symmetric matrix with eigenvalues in
[-1, 1]; the adjacency A of arcs is none. The *double cover* is one: with
:math:`N = D_{out}^{-1/2} A D_{in}^{-1/2}`,

.. math:: B = \begin{pmatrix} 0 & N \\ N^T & 0 \end{pmatrix}.

Every node is there twice, so that signals have 2n rows: its first copy is the node as a source of
arcs, the second the node as a target. With the singular values :math:`N = U S V^T`, the eigenvalues
of B are :math:`\pm S`, and an even and an odd polynomial are
:math:`g(B) = \mathrm{diag}(U g(S) U^T, V g(S) V^T)`, and with :math:`U g(S) V^T` off the diagonal:
even powers stay on a copy (:math:`N N^T` joins nodes that point to the same targets), odd ones
cross to the other, along the arcs. On a graph whose edges go both ways N is P.
"""

import dataclasses
import importlib.metadata
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast, get_args

import numpy as np
import safetensors.torch
import scipy.sparse
import torch
from torch import Tensor

from longnn.graphs._adjacency import (
    Duplicates,
    SelfLoops,
    check_symmetric,
    edge_weight_of,
    read_adjacency,
    refuse_gradient,
    with_self_loops,
)
from longnn.graphs._weighted import weighted_filter
from longnn.matrices import SparseMatrix, check_compressed, check_operand, check_sparse

Normalization = Literal["symmetric", "random_walk"]
#: What an operator makes of arcs: nothing (the graph is undirected), or two copies of every node.
Direction = Literal["none", "cover"]


@dataclasses.dataclass(frozen=True, eq=False)
class GraphOperator:
    """A normalised adjacency matrix; ``operator @ signal`` multiplies by it.

    Build one with :meth:`from_edge_index`, :meth:`from_data`, :meth:`from_torch_sparse` or
    :meth:`from_scipy`; all take the same options:

    Args:
        normalization: ``"symmetric"`` for :math:`D^{-1/2} A D^{-1/2}`, ``"random_walk"`` for
            :math:`D^{-1} A`.
        self_loops: ``"keep"`` them as they are, ``"add"`` one of weight 1 where a node has none
            (as GCN does), or ``"remove"`` them.
        symmetrize: make a directed graph undirected, each edge with the larger of its two
            weights; without it a directed graph is an error.
        duplicates: ``"sum"`` the weights of an edge listed twice, or make it an ``"error"``.
        dtype: of the values; they are computed in float64 and rounded once.

    An operator of arcs, made by :func:`~longnn.graphs.directed_operator`, has two rows per node:
    its signals have 2 x nodes rows, and its ``direction`` is ``"cover"``.

    Weights that require a gradient make a ``trainable`` operator: filters on it are differentiable
    in them (once).
    """

    matrix: SparseMatrix
    root_degree: Tensor | None = None  # (nodes,) D^{1/2} (1 where isolated), random walk only
    direction: Direction = "none"
    trainable: bool = False  # whether gradients go on into the values
    types: tuple["GraphOperator", ...] = ()  # one per type of edges; the matrix is of them all

    by_rows: ClassVar[bool] = False  # it has all nodes, not rows of terms that were computed before

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        num_nodes: int | None = None,
        *,
        normalization: Normalization = "symmetric",
        self_loops: SelfLoops = "keep",
        symmetrize: bool = False,
        duplicates: Duplicates = "sum",
        dtype: torch.dtype = torch.float32,
    ) -> Self:
        """From PyG's edge list, shape (2, edges), and optional weights, shape (edges,).

        >>> GraphOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]), num_nodes=3)
        GraphOperator(nodes=3, edges=1, normalization='symmetric', dtype=float32, device=cpu)
        """
        learned = isinstance(edge_weight, Tensor) and edge_weight.requires_grad
        fixed = edge_weight.detach() if edge_weight is not None and learned else edge_weight

        def adjacency_of(weight: Tensor | None) -> scipy.sparse.csr_matrix:
            adjacency = read_adjacency(edge_index, weight, num_nodes, duplicates, dtype)
            if symmetrize:
                adjacency = adjacency.maximum(adjacency.T).tocsr()
            check_symmetric(adjacency)
            return with_self_loops(adjacency, self_loops)

        operator = cls._normalized(adjacency_of(fixed), normalization, dtype)
        if not learned:
            return operator.to(edge_index.device)
        assert edge_weight is not None
        options = {"symmetrize": symmetrize, "add_loops": self_loops == "add"}
        pattern = adjacency_of(None)  # an edge of weight zero has a gradient, too
        return cls._learned(pattern, edge_index, edge_weight, normalization, dtype, options)

    @classmethod
    def _learned(
        cls,
        pattern: scipy.sparse.csr_matrix,
        edge_index: Tensor,
        edge_weight: Tensor,
        normalization: Normalization,
        dtype: torch.dtype,
        options: dict[str, bool],
    ) -> Self:
        """The operator with its values as functions of the weights, which were checked."""
        values, root = learned_values(pattern, edge_index, edge_weight, **options)
        matrix = SparseMatrix.from_scipy(pattern, symmetric=True, dtype=dtype)
        matrix = matrix.to(edge_index.device).with_values(values.to(edge_index.device, dtype))
        scale = root.to(edge_index.device, dtype) if normalization == "random_walk" else None
        return cls(matrix, scale, trainable=True)

    @classmethod
    def from_data(cls, data: Any, **options: Any) -> Self:
        """From a PyG ``Data`` (or ``Batch``): its edge_index, weights and num_nodes.

        The weights are its edge_weight, else an edge_attr with one value per edge.
        """
        index = getattr(data, "edge_index", None)
        if index is None:
            raise ValueError("Expected a PyG Data object with an `edge_index` (got none)")
        try:
            nodes = data.num_nodes
        except (IndexError, TypeError, ValueError) as error:  # of what PyG counts them by
            raise ValueError(
                f"Expected a PyG Data object that counts its nodes ({error})"
            ) from error
        return cls.from_edge_index(index, edge_weight_of(data), nodes, **options)

    @classmethod
    def from_torch_sparse(cls, adjacency: Tensor, **options: Any) -> Self:
        """From a square torch sparse tensor (COO, CSR or CSC), entry (i, j) = edge i-j."""
        if not isinstance(adjacency, Tensor) or adjacency.layout is torch.strided:
            got = "a dense one" if isinstance(adjacency, Tensor) else type(adjacency).__name__
            raise TypeError(f"Expected a torch sparse tensor (got {got})")
        if adjacency.dim() != 2 or adjacency.shape[0] != adjacency.shape[1]:
            raise ValueError(f"Expected a square matrix (got shape {tuple(adjacency.shape)})")
        check_sparse(adjacency)
        coo = adjacency.detach().to_sparse_coo()
        # Duplicates are kept apart, so that the option `duplicates` sees them.
        index, value = coo._indices(), coo._values()
        return cls.from_edge_index(index, value, adjacency.shape[0], **options)

    @classmethod
    def from_scipy(cls, adjacency: Any, **options: Any) -> Self:
        """From a square SciPy sparse matrix or array."""
        if not scipy.sparse.issparse(adjacency):
            raise TypeError(f"Expected a SciPy sparse matrix (got {type(adjacency).__name__})")
        if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
            raise ValueError(f"Expected a square matrix (got shape {adjacency.shape})")
        if adjacency.dtype.kind not in "biuf":
            raise TypeError(f"Expected real weights (got {adjacency.dtype})")
        try:
            if adjacency.format in ("csr", "csc"):  # compiled code trusts their indices
                pointers, indices = adjacency.indptr, adjacency.indices
                check_compressed(pointers, indices, len(adjacency.data), adjacency.shape)
            elif hasattr(adjacency, "check_format"):
                adjacency.check_format(full_check=True)
            coo = adjacency.tocoo()
        except (ValueError, TypeError) as error:
            raise ValueError(f"Expected a valid sparse matrix ({error})") from error
        index = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
        weight = torch.from_numpy(np.asarray(coo.data, dtype=np.float64))
        return cls.from_edge_index(index, weight, adjacency.shape[0], **options)

    @classmethod
    def _normalized(
        cls, adjacency: scipy.sparse.csr_matrix, normalization: str, dtype: torch.dtype
    ) -> Self:
        """D^{-1/2} A D^{-1/2}, with 0 for the inverse degree of an isolated node."""
        if normalization not in ("symmetric", "random_walk"):
            raise ValueError(
                "Expected `normalization` to be 'symmetric' or 'random_walk' "
                f"(got {normalization!r})"
            )
        degree = np.asarray(adjacency.sum(axis=1)).ravel()
        root = np.sqrt(np.where(degree > 0, degree, 1.0))
        rows = np.repeat(np.arange(len(degree)), np.diff(adjacency.indptr))
        values = adjacency.data / (root[rows] * root[adjacency.indices])
        matrix = scipy.sparse.csr_matrix(
            (values, adjacency.indices, adjacency.indptr), adjacency.shape
        )
        scale = torch.from_numpy(root).to(dtype) if normalization == "random_walk" else None
        return cls(SparseMatrix.from_scipy(matrix, symmetric=True, dtype=dtype), scale)

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self.matrix.shape[0] // self.copies

    @property
    def copies(self) -> int:
        """Rows that every node has: two in an operator of arcs."""
        return 1 if self.direction == "none" else 2

    @property
    def num_edges(self) -> int:
        """Undirected edges, each counted once, a self loop as one; in a double cover the arcs."""
        if self.direction == "cover":
            return self.matrix.nnz // 2
        loops = _row_indices(self.matrix) == self.matrix.col
        return (self.matrix.nnz + int(loops.sum())) // 2

    @property
    def normalization(self) -> Normalization:
        """How the adjacency is normalised."""
        return "symmetric" if self.root_degree is None else "random_walk"

    @property
    def dtype(self) -> torch.dtype:
        """The type of the values."""
        return self.matrix.dtype

    @property
    def device(self) -> torch.device:
        """Where the values are."""
        return self.matrix.device

    def scale_in(self, signal: Tensor) -> Tensor:
        """D^{1/2} H for the random walk, else H: what P is applied to."""
        if self.root_degree is None:
            return signal
        return signal * self.root_degree[:, None].to(signal.dtype)

    def scale_out(self, signal: Tensor) -> Tensor:
        """D^{-1/2} H for the random walk, else H: what becomes of P's result."""
        if self.root_degree is None:
            return signal
        return signal / self.root_degree[:, None].to(signal.dtype)

    def __matmul__(self, signal: Tensor) -> Tensor:
        refuse_tracing()
        if not self.trainable:
            return self.scale_out(self.matrix @ self.scale_in(signal))
        check_operand(self.matrix, signal)
        row = (1, signal.shape[1])  # filled on the device: a CUDA graph takes no copy from the host
        first = torch.cat([signal.new_zeros(row), signal.new_ones(row)])  # T_1 = P
        arrays = (self.matrix.crow, self.matrix.col, self.matrix.values)
        return self.scale_out(weighted_filter(*arrays, self.scale_in(signal), first))

    def to(self, target: torch.device | torch.dtype | str) -> Self:
        """The operator on another device, or with values of another type.

        Rounding float64 to float32 is exact to half a digit; widening float32 to float64 does
        not bring the lost digits back: build with ``dtype=torch.float64`` for those.
        """
        scale = None if self.root_degree is None else self.root_degree.to(target)
        types = tuple(operator.to(target) for operator in self.types)
        matrix = self.matrix.to(target)
        return type(self)(matrix, scale, self.direction, self.trainable, types)

    def to_dense(self) -> Tensor:
        """The dense matrix, shape (nodes, nodes), or twice that for arcs: for small graphs."""
        return self.scale_out(self.scale_in(self.matrix.to_dense().T).T)

    def save(self, path: str | Path) -> None:
        """Write the operator as safetensors: plain numbers, no pickle."""
        tensors = {"crow": self.matrix.crow, "col": self.matrix.col, "values": self.matrix.values}
        if self.root_degree is not None:
            tensors["root_degree"] = self.root_degree
        metadata = {"format": _FORMAT}
        if self.direction != "none":
            metadata["direction"] = self.direction
        safetensors.torch.save_file(tensors, str(path), metadata=metadata)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an operator written by :meth:`save`."""
        try:
            with safetensors.safe_open(str(path), framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except safetensors.SafetensorError as error:
            raise ValueError(f"Expected {path} to be a saved GraphOperator ({error})") from error
        if metadata.get("format") != _FORMAT or not {"crow", "col", "values"} <= set(tensors):
            raise ValueError(f"Expected {path} to be a saved GraphOperator (got another file)")
        crow, col, values = tensors["crow"], tensors["col"], tensors["values"]
        _check_saved(path, crow, col, values, tensors.get("root_degree"))
        direction = metadata.get("direction", "none")
        if direction not in get_args(Direction) or (direction != "none" and len(crow) % 2 == 0):
            raise ValueError(f"Expected {path} to be a saved GraphOperator (got another direction)")
        matrix = SparseMatrix(crow, col, values, crow, col, None, values)
        return cls(matrix, tensors.get("root_degree"), direction)

    def __repr__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        kind = f"normalization={self.normalization!r}"
        if self.direction != "none":
            kind = f"direction={self.direction!r}"
        return (
            f"GraphOperator(nodes={self.num_nodes}, edges={self.num_edges}, {kind}, "
            f"dtype={dtype}, device={self.device})"
        )


_FORMAT = "longnn.GraphOperator/1"


def _check_saved(
    path: str | Path, crow: Tensor, col: Tensor, values: Tensor, root: Tensor | None
) -> None:
    """The arrays of a saved operator, before compiled code sees them."""
    nodes = len(crow) - 1 if crow.dim() == 1 else -1
    right = nodes >= 0 and values.dim() == 1 and values.is_floating_point()
    if not right or (root is not None and root.shape != (nodes,)):
        raise ValueError(
            f"Expected {path} to be a saved GraphOperator (got arrays of other shapes)"
        )
    try:
        check_compressed(crow.numpy(), col.numpy(), len(values), (nodes, nodes))
    except (TypeError, ValueError) as error:
        raise ValueError(f"Expected {path} to be a saved GraphOperator ({error})") from error


def _row_indices(matrix: SparseMatrix) -> Tensor:
    counts = (matrix.crow[1:] - matrix.crow[:-1]).long()
    return torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)


#: Whether torch.compile tells an export from a program that is compiled.
_TELLS_EXPORTS = tuple(map(int, importlib.metadata.version("torch").split(".")[:2])) >= (2, 13)


def refuse_tracing() -> None:
    """Raise where a program is being recorded that would hold this one graph for ever."""
    jit: Any = torch.jit
    compiling = torch.compiler.is_compiling()
    # Older versions of torch.compile take what they record themselves for an export, too.
    told = _TELLS_EXPORTS or not torch.compiler.is_dynamo_compiling()
    exporting = told and torch.compiler.is_exporting()
    if exporting or (not compiling and jit.is_tracing()):
        raise ValueError(
            "Expected no torch.export or torch.jit.trace of a model with its graph: the program "
            "would serve this graph alone. Export a run as a function of features and graph with "
            "`longnn export RUN`, or Run.export"
        )


def learned_values(
    pattern: scipy.sparse.csr_matrix,  # (nodes, nodes), sorted, symmetric where it has entries
    edge_index: Tensor,  # (2, edges)
    edge_weight: Tensor,  # (edges,)
    *,
    symmetrize: bool,
    add_loops: bool,
) -> tuple[Tensor, Tensor]:
    r"""The entries of :math:`D^{-1/2} A D^{-1/2}` as a differentiable function of the weights:
    values at the entries of a pattern (entries,), and the root degrees (nodes,), float64.

    The weights of an edge listed twice are added; what is listed and not in the pattern is left
    out.
    """
    n = pattern.shape[0]
    row = np.repeat(np.arange(n), np.diff(pattern.indptr))
    col = pattern.indices.astype(np.int64)
    key = row * n + col  # ascending
    ends = edge_index.detach().cpu().numpy().astype(np.int64)
    wanted = ends[0] * n + ends[1]
    position = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))
    stored = np.flatnonzero(key[position] == wanted) if len(key) else np.zeros(0, dtype=np.int64)
    device = edge_weight.device
    rows, cols, at, listed, back = (
        torch.from_numpy(t).to(device)
        for t in (row, col, position[stored], stored, np.argsort(col * n + row, kind="stable"))
    )
    weight = edge_weight.double().reshape(-1)
    A = weight.new_zeros(len(key)).index_add(0, at, weight[listed])
    if symmetrize:
        A = torch.maximum(A, A[back])  # the entry (j, i) of each (i, j)
    if add_loops:
        A = torch.where((rows == cols) & (A == 0), 1.0, A)
    degree = A.new_zeros(n).index_add(0, rows, A)
    root = torch.where(degree > 0, degree, 1.0).sqrt()
    return A / (root[rows] * root[cols]), root


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
    """:meth:`GraphOperator.from_edge_index` as one operator of a compiled graph, which the compiler
    does not look into: a model on edges compiles whole."""
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


def directed_operator(
    edge_index: Tensor,
    edge_weight: Tensor | None = None,
    num_nodes: int | None = None,
    *,
    self_loops: SelfLoops = "keep",
    duplicates: Duplicates = "sum",
    dtype: torch.dtype = torch.float32,
) -> GraphOperator:
    r"""The double cover of a directed graph: an operator on two copies of every node.

    Args:
        edge_index: arcs, shape (2, arcs), from the first row to the second.
        edge_weight: of the arcs, shape (arcs,), finite and >= 0.
        num_nodes: n; by default one more than the largest index.
        self_loops: as in :class:`GraphOperator`. An added loop joins the two copies of a node, so
            that words such as A A are reached, too.
        duplicates, dtype: as in :class:`GraphOperator`.

    Raises:
        ValueError: for a bad graph or option, naming it.

    >>> arc = torch.tensor([[0], [1]])
    >>> B = directed_operator(arc)
    >>> B
    GraphOperator(nodes=2, edges=1, direction='cover', dtype=float32, device=cpu)
    >>> B @ torch.tensor([[1.0], [2.0], [3.0], [4.0]])  # node 0 as a source, node 1 as a target
    tensor([[4.], [0.], [0.], [1.]])
    """
    adjacency = read_adjacency(edge_index, edge_weight, num_nodes, duplicates, dtype)
    adjacency = with_self_loops(adjacency, self_loops)
    into, out = (np.asarray(adjacency.sum(axis=axis)).ravel() for axis in (0, 1))
    left, right = (
        scipy.sparse.diags_array(np.where(degree > 0, degree, 1.0) ** -0.5)
        for degree in (out, into)
    )
    N = left @ adjacency @ right
    cover = scipy.sparse.csr_matrix(scipy.sparse.block_array([[None, N], [N.T, None]]))
    sparse = SparseMatrix.from_scipy(cover, symmetric=True, dtype=dtype)
    return GraphOperator(sparse, direction="cover").to(edge_index.device)


def typed_operator(
    edge_index: Tensor,
    edge_type: Tensor,
    edge_weight: Tensor | None = None,
    num_nodes: int | None = None,
    *,
    types: int | None = None,
    directed: bool = False,
    **options: Any,
) -> GraphOperator:
    r"""The operators :math:`P_1, \dots, P_R` of the types of edges, behind that of all edges.

    What does not ask for types sees the operator of all edges; a
    :class:`~longnn.nn.TypedFilter` takes ``operator.types``. Each is normalised by its own degrees.

    Args:
        edge_index: shape (2, edges).
        edge_type: the type of each edge, whole numbers in 0..R-1, shape (edges,).
        edge_weight: shape (edges,).
        num_nodes: by default one more than the largest index.
        types: R; by default one more than the largest type.
        directed: whether edges are arcs: operators of :func:`directed_operator`.
        options: of that, or of :meth:`GraphOperator.from_edge_index`.

    Raises:
        ValueError: for types that are not such numbers, or what is wrong with the graph.

    >>> edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> [P.num_edges for P in typed_operator(edges, torch.tensor([0, 0, 1, 1])).types]
    [1, 1]
    """
    count = int(edge_type.max()) + 1 if edge_type.numel() else 0
    count = count if types is None else types
    whole = not edge_type.is_floating_point() and not edge_type.is_complex()
    if not whole or edge_type.shape != edge_index.shape[1:]:
        raise ValueError(
            f"Expected `edge_type` of whole numbers, shape ({edge_index.shape[1]},) (got "
            f"{edge_type.dtype} {tuple(edge_type.shape)})"
        )
    outside = edge_type[(edge_type < 0) | (edge_type >= count)]
    if len(outside):
        raise ValueError(f"Expected types of edges in 0..{count - 1} (got {int(outside[0])})")
    make: Any = directed_operator if directed else GraphOperator.from_edge_index
    nodes = num_nodes
    if nodes is None:
        nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0

    def of(chosen: Tensor) -> GraphOperator:
        weight = None if edge_weight is None else edge_weight[chosen]
        operator: GraphOperator = make(edge_index[:, chosen], weight, nodes, **options)
        return operator

    every = of(torch.ones_like(edge_type, dtype=torch.bool))
    return dataclasses.replace(every, types=tuple(of(edge_type == r) for r in range(count)))
