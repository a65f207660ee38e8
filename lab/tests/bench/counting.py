"""Counts that only tests need: products of the filter, tensors kept for the backward pass."""

from torch.autograd.graph import saved_tensors_hooks

#: The operator in which a polynomial filter is applied, forward or backward.
FILTER = "longnn::chebyshev_filter"


def filter_products(counts):
    """Products with the operator of the graph inside polynomial filters."""
    prefix = "product in " + FILTER
    return sum(n for name, n in counts.items() if name.startswith(prefix))


def saved_shapes(call):
    """Shapes of the tensors that a forward pass stores for its backward pass."""
    shapes = []

    def keep(tensor):
        shapes.append(tuple(tensor.shape))
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        call()
    return shapes
