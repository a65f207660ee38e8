"""From trained models to the record of a run: scores, baselines, filters in numbers and words.

Knows nothing of folders: it computes, :mod:`longnn.records` holds and :mod:`longnn.runs` writes.
"""

from longnn.description._baselines import describe_baselines, mlp_config
from longnn.description._record import describe_run, masks_of, score_sets

__all__ = ["describe_baselines", "describe_run", "masks_of", "mlp_config", "score_sets"]
