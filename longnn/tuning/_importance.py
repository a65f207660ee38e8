"""Which settings decided whether a trial was good.

PED-ANOVA compares, setting by setting, the values of the best trials with those of all trials:
`"PED-ANOVA: Efficiently Quantifying Hyperparameter Importance in Arbitrary Subspaces"
<https://arxiv.org/abs/2304.10255>`_ (Watanabe et al., 2023). It uses ranks only, so stopped trials
count too: they rank below the finished ones, and the later stopped the higher.
"""

import math
import warnings
from collections.abc import Sequence

import optuna
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import FrozenTrial, TrialState, create_trial

#: With fewer trials the result would be noise.
LEAST = 20
#: The share of trials that counts as the best.
BEST = 0.2


def parameter_importance(trials: Sequence[FrozenTrial]) -> dict[str, float]:
    """The importance of each searched setting, in falling order; the values sum to one.

    Empty with fewer than :data:`LEAST` trials, or where all trials are equally good.

    >>> parameter_importance([])
    {}
    """
    ranked = [t for t in trials if t.state in (TrialState.COMPLETE, TrialState.PRUNED) and t.params]
    scores = [_standing(t) for t in ranked]
    levels = {score: float(level) for level, score in enumerate(sorted(set(scores)))}
    if len(ranked) < LEAST or len(levels) < 2:
        return {}
    search = optuna.create_study(direction="maximize")
    search.add_trials(
        [
            create_trial(params=t.params, distributions=t.distributions, value=levels[score])
            for t, score in zip(ranked, scores, strict=True)
        ]
    )
    evaluator = PedAnovaImportanceEvaluator(target_quantile=BEST)
    with warnings.catch_warnings():
        # Constant or conditional settings; the result is checked below.
        warnings.filterwarnings("ignore", module=r"optuna\.importance.*")
        try:
            found = get_param_importances(search, evaluator=evaluator)
        except (RuntimeError, ValueError):
            return {}
    merged: dict[str, float] = {}
    for name, value in found.items():  # "penalty?" and "penalty" are one setting
        key = name.removesuffix("?")
        merged[key] = merged.get(key, 0.0) + value
    if not merged or not all(map(math.isfinite, merged.values())):
        return {}
    return dict(sorted(merged.items(), key=lambda item: (-item[1], item[0])))


def _standing(trial: FrozenTrial) -> tuple[bool, int, float]:
    """The rank of a trial: finished above stopped, later stopped above earlier, then the score."""
    complete = trial.state == TrialState.COMPLETE
    score = trial.values[0] if trial.values else -math.inf
    return complete, 0 if complete else trial.last_step or 0, score
