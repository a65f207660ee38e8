r"""What the page needs of one trained model: its filter, its scores, and how they belong together.

A model whose filter is the last thing it does, up to a linear map, gives a node a sum over nodes,

.. math:: s_{ic} = r_c + \sum_v \sum_h g_h(P)_{iv}\, t_{vh}\, W_{hc},

with the signal t that the filter is applied to, and :math:`W = I`, r = 0 in the paper's form. Then
contributions of nodes are exact. Where something bent follows the filter, only its row
:math:`g(P)_{iv}` is shown, which says what the filter takes from where; no more than that holds.

On arcs every node has two copies: the signal has a row for each, and r counts twice.
"""

import dataclasses
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn.explorer._arrays import pack
from longnn.explorer._graph import rows_of
from longnn.filters import PolynomialFilter
from longnn.graphs import GraphOperator
from longnn.matrices import DenseMatrix, LiftedMatrix, SparseMatrix
from longnn.nn import Directed, Model, SpectralGNN
from longnn.polynomials import Jacobi
from longnn.training import Problem

#: Why a model's scores are no sums over nodes.
BENT = (
    "Something that is not linear follows the filter of this model. So its score is not a sum over "
    "nodes. The weights below say how much the filter takes from each node, no more."
)
TWICE = (
    "This model filters more than once, with something that is not linear in between. So its score "
    "is not a sum over nodes. The weights below are those of its first filter, no more."
)
NO_FILTER = "This model has no polynomial filter. So there is no sum over nodes to show."


@dataclasses.dataclass(frozen=True, eq=False)
class SumForm:
    """The numbers of a score that is a sum over nodes."""

    signal: Tensor  # (copies nodes, channels): t
    mix: Tensor | None  # (channels, outputs): W; None for the identity
    base: Tensor  # (outputs,): r


def operator_of(model: Model, problem: Problem) -> GraphOperator:
    """The operator under the model's treatment of self loops."""
    return problem.variants.get(model.self_loops, problem.operator)


@torch.no_grad()
def sum_form(model: Model, problem: Problem) -> SumForm | None:
    """The model as a sum over nodes, or None where it is none.

    Args:
        model: in evaluation mode.
        problem: the graph and its features.
    """
    copies = 1
    x: SparseMatrix | DenseMatrix | LiftedMatrix = problem.features
    if isinstance(model, Directed) and model.model.copies == 1:
        model, copies = model.model, problem.operator.copies
        x = LiftedMatrix(problem.features)
    if not isinstance(model, SpectralGNN) or not isinstance(model.filter, PolynomialFilter):
        return None
    bent = model.activate_after or (model.normalize and model.readout is not None)
    if bent or model.output_filter is not None:
        return None
    t = model.transform(x)
    t = torch.relu(t) if model.activate_before else t
    if model.readout is None:
        return SumForm(t, None, t.new_zeros(model.out_channels))
    W, r = model.readout.weight, model.readout.bias
    assert r is not None
    if model.filter.channels == 1:  # one filter for all channels: g(P) t W = g(P) (t W)
        return SumForm(t @ W, None, copies * r)
    return SumForm(t, W, copies * r)


def _why(model: Model) -> str:
    filters = model.filters()
    return NO_FILTER if not filters else TWICE if len(filters) > 1 else BENT


@torch.no_grad()
def describe_model(
    model: Model, problem: Problem, shown: np.ndarray, kind: str = ""
) -> dict[str, Any]:
    """A model as plain data for the nodes that are shown.

    Args:
        model: in evaluation mode.
        problem: the graph and its features.
        shown: (nodes on the page,) their places in the graph.
        kind: what the operators of the run are called, before the treatment of self loops.
    """
    model = model.eval().to(problem.device, problem.dtype)
    operator = operator_of(model, problem)
    scores = model.scores(problem.features, operator)  # (nodes, outputs)
    form = sum_form(model, problem)
    return {
        "operator": kind + model.self_loops,
        "scores": pack(scores.cpu().numpy()[shown]),
        "filter": describe_filter(model.filters()[0]) if model.filters() else None,
        "form": None if form is None else _form(form, rows_of(operator, shown)),
        "alone": not model.uses_graph,  # the score of a node is its own
        "why": "" if form is not None else _why(model),
    }


def _form(form: SumForm, rows: np.ndarray) -> dict[str, Any]:
    return {
        "signal": pack(form.signal.cpu().numpy()[rows]),
        "mix": None if form.mix is None else pack(form.mix.cpu().numpy()),
        "base": pack(form.base.cpu().numpy()),
    }


def describe_filter(f: PolynomialFilter) -> dict[str, Any]:
    """A filter as plain data: Chebyshev coefficients (K+1, channels), and a and b of its basis.

    >>> found = describe_filter(PolynomialFilter("jacobi", degree=2))
    >>> found["basis"], found["degree"], found["a"], found["weight"]
    ('jacobi', 2, 0.0, 'paper')
    """
    numbers = {name: v for name, v in f.basis_parameters().items() if v.dim() == 0}
    jacobi = isinstance(f.basis, Jacobi) and f.basis.is_orthonormal
    return {
        "basis": f.basis.name,
        "orthonormal": jacobi,
        "degree": f.degree,
        "weight": f.basis.weight if isinstance(f.basis, Jacobi) else "probability",
        "learned": f.learn_basis,
        "a": float(numbers["a"]) if jacobi else 0.0,
        "b": float(numbers["b"]) if jacobi else 0.0,
        "beta": pack(f.chebyshev_coefficients().detach().cpu().numpy(), "f8"),
    }
