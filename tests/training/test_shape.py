"""Members of equal shape may be trained together: each gives the result that it gives alone."""

import pytest
import torch

from longnn.config import Config
from longnn.config._config import RATES, explain_options, explain_settings
from longnn.registry import NETWORKS, model_options
from longnn.training import VARYING, make_model, shape_of
from tests.helpers import one_per_architecture
from tests.training.test_population import config, dataset, population  # noqa: F401

#: Another value for every key that may vary, far enough from the default to change the result.
OTHERS = {
    **{key: 0.11 if key.startswith("lr") else 0.3 for key in RATES},
    "penalty": 0.1,
    "degree_penalty": 0.1,
    "input_dropout": 0.35,
    "dropout": 0.35,
    "filter_dropout": 0.35,
    "a": 0.6,
    "b": 0.3,
    "gamma": 0.7,
    "restart": 0.4,
}
#: Another value for what says where, how often and what for to train.
CIRCUMSTANCES = {
    "seed": 4,
    "repeat": 3,
    "device": "cuda",
    "split": "stratified",
    "preset": "default",
    "time_limit": 5.0,
    "calibrate": False,
    "frequencies": "train",
    "threshold": 0.2,
    "baselines": False,
}


#: Values of keys that have no list of choices.
WORDS = {"class_weight": {"balanced"}, "model": {"gcn", "mlp"}, "basis": {"legendre", "monomial"}}


def another(key, value):
    """Another value for any other key of a configuration."""
    explained = [*explain_settings(), *(o for name in NETWORKS for o in explain_options(name))]
    choices = {choice for e in explained if e.name == key for choice in e.choices}
    choices |= WORDS.get(key, set())
    if choices:
        return min(choices - {value})
    return not value if isinstance(value, bool) else value + 1


def base_of(name):
    """A short training in which every option acts: factors of coefficients, hidden units."""
    wanted = {"degree": 3, "coefficients": "pcd", "transform": "mlp"}
    keys = {key: value for key, value in wanted.items() if key in model_options(name)}
    return config(model=name, epochs=4, **keys)


def varying_keys(base):
    """The names of VARYING that act on a model."""
    model = make_model(base, 3, 2)
    roles = {role for role, group in model.parameter_groups().items() if group}
    acting = {key for key in RATES if key.partition("_")[2] in roles}
    acting |= VARYING & set(base.options)
    if any(f.kind != "fixed" for f in model.filters()):
        acting.add("penalty")
    if model.filters() and all(f.basis.is_orthonormal for f in model.filters()):
        acting.add("degree_penalty")
    return sorted(acting)


def test_everything_that_may_vary_is_tried():
    assert set(OTHERS) == VARYING
    assert set().union(*(varying_keys(base_of(name)) for name in NETWORKS)) == VARYING


@pytest.mark.parametrize("name", one_per_architecture(NETWORKS))
def test_members_that_differ_in_one_value_give_what_they_give_alone(dataset, name):  # noqa: F811
    """A seed is a split and weights of its own."""
    base = base_of(name)
    others = {"seed": 3, **{key: OTHERS[key] for key in varying_keys(base)}}
    configs = [base, *(base.replace(**{key: value}) for key, value in others.items())]
    together = population(dataset, configs).run()
    for key, member, result in zip(["none", *others], configs, together, strict=True):
        (alone,) = population(dataset, [member]).run()
        for field in ("train_loss", "val_loss"):
            torch.testing.assert_close(
                result.history[field], alone.history[field], rtol=1e-11, atol=1e-13, msg=key
            )
        assert result.best_epoch == alone.best_epoch
        for part, value in alone.state.items():
            torch.testing.assert_close(result.state[part], value, rtol=1e-11, atol=1e-13)
        if key != "none":
            same = all(torch.equal(value, together[0].state[p]) for p, value in alone.state.items())
            assert not same, f"{key} changes nothing: the test would not see a member's own value"


@pytest.mark.parametrize("name", NETWORKS)
def test_a_varying_value_does_not_change_the_shape(name):
    base = base_of(name)
    for key in varying_keys(base):
        own_basis = base.options.get("learn_basis") or base.options.get("orthonormal")
        if key == "penalty" and "a" in base.options and not own_basis:
            continue  # see below
        assert shape_of(base.replace(**{key: OTHERS[key]})) == shape_of(base), key
    for key, value in CIRCUMSTANCES.items():
        assert shape_of(base.replace(**{key: value})) == shape_of(base), key


@pytest.mark.parametrize("name", NETWORKS)
def test_every_other_value_changes_the_shape(name):
    base = base_of(name)
    for key, value in base.to_dict().items():
        if key not in VARYING and key not in CIRCUMSTANCES:
            assert shape_of(base.replace(**{key: another(key, value)})) != shape_of(base), key


def test_a_default_spelled_out_is_the_same_shape():
    base = Config()
    assert shape_of(base.replace(degree=base.options["degree"])) == shape_of(base)


def test_a_penalized_fixed_basis_belongs_to_the_shape():
    """Its norm depends on a and b, and a population computes it with one pair for all."""
    jacobi = Config(model="jacobi")
    assert shape_of(jacobi.replace(a=0.5)) == shape_of(jacobi)
    penalized = jacobi.replace(penalty=0.1)
    assert shape_of(penalized.replace(a=0.5)) != shape_of(penalized)
    learned = Config(model="lon").replace(penalty=0.1)
    assert shape_of(learned.replace(a=0.5)) == shape_of(learned)
