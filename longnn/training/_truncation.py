"""How many products a trained model really needs: its scores with shorter filters.

Every filter is truncated to the least degree that keeps a share of its squared norm; the rest of
the model stays as it is, and nothing is trained again.
"""

import dataclasses
from collections.abc import Sequence

from longnn.data import NodeDataset, Split
from longnn.nn import Model, count_products, truncate_filters
from longnn.training._fit import predict, score
from longnn.training._problem import Problem
from longnn.training._readout import Readout

#: Shares of the squared norm at which a model is measured.
SHARES = (1.0, 0.9999, 0.999, 0.99, 0.97, 0.95, 0.9, 0.8, 0.5)


@dataclasses.dataclass(frozen=True)
class TruncatedScore:
    """A model with truncated filters: what was kept, what it costs, how well it predicts."""

    share: float  # of each filter's squared norm
    degrees: tuple[int, ...]  # of the filters, in the order of the blocks
    products: int  # with the graph, in all: the sum of the degrees
    val: dict[str, float]  # scores on the validation nodes
    test: dict[str, float]


def truncation_curve(
    model: Model,
    problem: Problem,
    dataset: NodeDataset,
    split: Split,
    readout: Readout | None = None,
    *,
    shares: Sequence[float] = SHARES,
) -> list[TruncatedScore]:
    """The scores of a trained model against the number of products, from all filters to short ones.

    Args:
        model: trained, with filters in orthonormal bases.
        problem, dataset, split: what it was trained on.
        readout: how its outputs become predictions.
        shares: of each filter's squared norm to keep.

    Raises:
        ValueError: as :func:`~longnn.nn.truncate_filters`.

    >>> from longnn.config import Config
    >>> from longnn.data import csbm, make_split
    >>> from longnn.training import Job
    >>> data = csbm(num_nodes=40, num_features=8)
    >>> table = {"model": "lon-deep", "blocks": 2, "degree": 3, "epochs": 3, "device": "cpu"}
    >>> job = Job(data, [Config.from_dict(table)], [make_split(data, None, 0)])
    >>> (one,) = job.run()
    >>> curve = truncation_curve(one.model, job.problem_of(0), data, one.split, one.readout)
    >>> curve[0].products, curve[0].products > curve[-1].products
    (6, True)
    """
    points = []
    for share in shares:
        shorter = truncate_filters(model, share)
        predicted = predict(shorter, problem, readout)
        val, test = (score(predicted, dataset, mask, readout) for mask in (split.val, split.test))
        degrees = tuple(f.degree for f in shorter.filters())
        points.append(TruncatedScore(share, degrees, count_products(shorter), val, test))
    return points
