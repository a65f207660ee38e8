"""What is searched: one space for equal budgets, and spaces made for a kind of graph. Data only."""

from lab.studies._core._protocol import Space
from longnn.registry import FEATURES_FORM

#: What is searched of every stack. Shapes are few: populations share what they can.
STACK: Space = {
    "hidden_channels": 128,
    "patience": 150,
    "lr_transform": {"choices": [1e-3, 3e-3, 0.01]},
    "blocks": {"choices": [4, 8, 12]},
    "dropout": {"choices": [0.0, 0.2, 0.4, 0.6]},
    "input_dropout": {"choices": [0.0, 0.3, 0.6]},
}
#: Of a stack of filters: its filters, too.
FILTERS: Space = {
    **STACK,
    "degree": {"choices": [2, 4]},
    "lr_coefficients": {"choices": [5e-3, 0.02]},
    "restart": {"choices": [0.2, 0.5]},
}
#: What longer searches leave as it starts: they spend their draws on the rest.
START: Space = {"a": 0.5, "b": 1.0, "lr_basis": 0.002, "wd_coefficients": 0.0}
#: Longer searches. Grids and crowds: many narrow blocks, a few features dropped.
NARROW: Space = {
    **START,
    "patience": 300,
    "hidden_channels": 64,
    "blocks": {"choices": [8, 12]},
    "degree": {"choices": [2, 3]},
    "norm": {"choices": ["rms", "layer", "none"]},
    "lr_transform": {"choices": [2e-3, 3e-3, 5e-3]},
    "lr_coefficients": {"choices": [5e-3, 0.02]},
    "dropout": {"choices": [0.2, 0.3, 0.4]},
    "input_dropout": {"choices": [0.1, 0.2, 0.3]},
    "wd_transform": 0.0,
    "restart": 0.5,
}
#: Products bought together: few wide blocks, most features dropped.
WIDE: Space = {
    "patience": 200,
    "hidden_channels": {"choices": [256, 512]},
    "blocks": {"choices": [2, 3]},
    "norm": {"choices": ["rms", "layer"]},
    "lr_transform": {"choices": [1e-3, 3e-3]},
    "dropout": {"choices": [0.5, 0.7]},
    "input_dropout": {"choices": [0.5, 0.7]},
    "wd_transform": {"choices": [0.0, 5e-5, 5e-4]},
}
WIDE_FILTERS: Space = {
    **START,
    **WIDE,
    "degree": {"choices": [1, 2, 4]},
    "lr_coefficients": {"choices": [2e-3, 0.01]},
    "restart": {"choices": [0.1, 0.3]},
}
#: Pages that link: a filter per hidden unit on the words, which are many and mostly dropped.
WORDS: Space = {
    **START,
    "patience": 200,
    "self_loops": "remove",
    "lr_transform": {"choices": [3e-3, 5e-3, 0.01]},
    "lr_coefficients": {"choices": [5e-3, 0.01]},
    "dropout": {"choices": [0.0, 0.3, 0.5]},
    "input_dropout": {"choices": [0.5, 0.7, 0.8]},
    "wd_transform": {"choices": [5e-4, 2e-3, 5e-3]},
    "restart": {"choices": [0.3, 0.5, 0.8]},
}
ONE_WORDS: Space = {
    **WORDS,
    **FEATURES_FORM,
    "shared": False,
    "coefficients": "free",
    "filter_dropout": 0.4,
    "hidden_channels": {"choices": [128, 256]},
    "degree": {"choices": [10, 16]},
}
TWO_WORDS: Space = {
    **WORDS,
    "hidden_channels": 128,
    "blocks": 2,
    "degree": 10,
    "norm": "rms",
    "jump": "cat",
    "residual": False,
    "lr_transform": {"choices": [2e-3, 5e-3]},
}
#: The same with more units and products, trained for longer.
WIDER_WORDS: Space = {
    **ONE_WORDS,
    "patience": 300,
    "hidden_channels": {"choices": [256, 512]},
    "degree": {"choices": [16, 24]},
    "lr_transform": {"choices": [2e-3, 3e-3, 5e-3]},
    "lr_coefficients": 5e-3,
    "dropout": {"choices": [0.3, 0.5]},
    "wd_transform": {"choices": [5e-4, 2e-3]},
    "restart": {"choices": [0.5, 0.8]},
}
#: Several blocks of one or two hops each, all of which the last map sees.
HOPS: Space = {
    **TWO_WORDS,
    "blocks": {"choices": [3, 4, 5]},
    "degree": {"choices": [1, 2]},
    "norm": {"choices": ["rms", "none"]},
    "jump": {"choices": ["cat", "max"]},
    "lr_transform": {"choices": [3e-3, 5e-3, 0.01]},
    "lr_coefficients": 5e-3,
    "dropout": {"choices": [0.0, 0.3]},
    "input_dropout": {"choices": [0.0, 0.5, 0.8]},
    "wd_transform": {"choices": [0.0, 5e-4, 2e-3]},
}
#: The graphs of the paper. Papers that cite: a few narrow blocks, much dropped.
CITED: Space = {
    **START,
    "patience": 150,
    "hidden_channels": 64,
    "blocks": {"choices": [1, 2, 3]},
    "degree": {"choices": [3, 8]},
    "norm": {"choices": ["rms", "layer", "none"]},
    "lr_transform": {"choices": [3e-3, 0.01, 0.03]},
    "lr_coefficients": {"choices": [2e-3, 0.01]},
    "dropout": {"choices": [0.5, 0.7, 0.8]},
    "input_dropout": {"choices": [0.3, 0.5, 0.7, 0.8]},
    "wd_transform": {"choices": [2e-4, 1e-3, 5e-3, 0.02]},
    "restart": {"choices": [0.1, 0.3, 0.6, 0.9]},
}
#: The same with many nodes to learn from: little dropped.
CITED_OFTEN: Space = {
    **CITED,
    "blocks": {"choices": [1, 2]},
    "dropout": {"choices": [0.1, 0.3, 0.5]},
    "input_dropout": {"choices": [0.1, 0.3, 0.5]},
    "wd_transform": {"choices": [5e-5, 2e-4, 1e-3]},
}
#: Edges that say little: filters that start near the identity and hardly move.
WEAK: Space = {
    **CITED,
    "hidden_channels": {"choices": [64, 128]},
    "blocks": {"choices": [1, 2]},
    "degree": {"choices": [2, 5]},
    "norm": {"choices": ["rms", "none"]},
    "lr_transform": {"choices": [0.01, 0.03, 0.05]},
    "lr_coefficients": {"choices": [1e-6, 2e-3, 0.01]},
    "dropout": {"choices": [0.3, 0.5, 0.7, 0.8]},
    "restart": {"choices": [0.5, 0.9, 1.0]},
}
#: Papers that cite, and share a class with those: neighbours vote, by a filter on the scores. The
#: filters start as PageRank and move little, and the loss stops the training: it has no ties.
CITED_SCORES: Space = {
    **START,
    "patience": 150,
    "monitor": "loss",
    "hidden_channels": 64,
    "blocks": {"choices": [1, 2]},
    "degree": 2,
    "output_degree": {"choices": [5, 10]},
    "shared": True,
    "norm": "rms",
    "lr_transform": {"choices": [5e-3, 0.01]},
    "lr_coefficients": {"choices": [1e-6, 2e-3]},
    "dropout": {"choices": [0.5, 0.8]},
    "input_dropout": {"choices": [0.6, 0.8]},
    "wd_transform": {"choices": [1e-3, 5e-3]},
    "restart": {"choices": [0.2, 0.3]},
}
#: Fewer nodes than words: filters that all channels share and that start as the identity.
FEW: Space = {
    **CITED_SCORES,
    "monitor": {"choices": ["loss", "accuracy"]},
    "output_degree": {"choices": [0, 5]},
    "norm": {"choices": ["rms", "none"]},
    "self_loops": "keep",
    "lr_transform": 0.01,
    "lr_coefficients": {"choices": [1e-6, 5e-4, 5e-3]},
    "dropout": {"choices": [0.5, 0.7]},
    "wd_transform": {"choices": [5e-4, 5e-3]},
    "restart": 1.0,
}
#: Products: as in the longer searches, not as wide.
BOUGHT: Space = {
    **WIDE_FILTERS,
    "hidden_channels": 256,
    "blocks": {"choices": [1, 2, 3]},
    "degree": {"choices": [2, 4]},
    "dropout": {"choices": [0.3, 0.5, 0.7]},
    "input_dropout": {"choices": [0.3, 0.5, 0.7]},
}
#: Pages that link, with edges both ways.
LINKED: Space = {
    **TWO_WORDS,
    "self_loops": "keep",
    "hidden_channels": 256,
    "blocks": {"choices": [1, 2]},
    "degree": {"choices": [10, 16]},
    "residual": {"choices": [True, False]},
    "lr_coefficients": 0.01,
    "wd_transform": {"choices": [5e-4, 2e-3]},
    "restart": {"choices": [0.3, 0.8]},
}
