"""Laws of intervals and of sets of plausible classes: what they cover, and what moves them."""

import json
import math

import numpy as np
import pytest
import scipy.stats
import torch

from longnn._base.schema import Node, to_plain
from longnn.training._intervals import (
    FOLDS,
    KEPT,
    Errors,
    Intervals,
    Opinion,
    Spread,
    folds_of,
    honest_votes,
)

COVERAGES = (0.5, 0.8, 0.9, 0.95)


def draw(generator, nodes, *, calm=False):
    """Values, what they truly are, and signals, of which one says how large errors are."""
    noise = torch.zeros(nodes) if calm else torch.rand(nodes, generator=generator) * 2 - 1
    predicted = torch.randn(nodes, generator=generator)
    off = torch.randn(nodes, generator=generator).double() * (1.5 * noise).exp()
    signals = {"disagreement": noise.double(), "predicted": predicted.double()}
    return predicted, predicted + off, signals


def covered(task, interval, p, y, signals, coverage):
    if task == "regression":
        return (y - p).abs() <= interval.margin(p, signals, coverage)
    sets = interval.plausible(p, p.argmax(1), coverage)
    return sets.gather(1, y[:, None])[:, 0]


def probabilities(generator, nodes):
    """Probabilities that are too sure, and classes that are drawn from milder ones."""
    scores = torch.randn(nodes, 4, generator=generator, dtype=torch.float64)
    y = torch.multinomial(scores.softmax(1), 1, generator=generator)[:, 0]
    return (2 * scores).softmax(1), y


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("nodes", [30, 121])
def test_coverage_is_what_was_stated(task, nodes):
    """Over draws of calibration nodes and new ones, within four standard errors."""
    generator, draws, new = torch.Generator().manual_seed(1), 60, 200
    shares = {coverage: [] for coverage in COVERAGES}
    for _ in range(draws):
        if task == "regression":
            p, y, signals = draw(generator, nodes + new)
        else:
            (p, y), signals = probabilities(generator, nodes + new), {}
        parts = [
            {k: v[at] for k, v in signals.items()} for at in (slice(nodes), slice(nodes, None))
        ]
        interval = Intervals.fit(task, p[:nodes], y[:nodes], parts[0])
        for coverage, found in shares.items():
            hit = covered(task, interval, p[nodes:], y[nodes:], parts[1], coverage)
            found.append(float(hit.double().mean()))
    for coverage, found in shares.items():
        # The coverage of one calibration is beta distributed; its new nodes add binomial noise.
        error = np.sqrt(coverage * (1 - coverage) * (1 / (nodes + 2) + 1 / new) / draws)
        # A set that must name a class covers more where the most probable is right so often.
        more = 1 / (nodes + 1) if task == "regression" else 0.1
        assert -4 * error <= np.mean(found) - coverage <= more + 4 * error


def test_intervals_are_narrow_where_it_is_sure():
    generator = torch.Generator().manual_seed(0)
    p, y, signals = draw(generator, 2000)
    learned = Intervals.fit("regression", p, y, signals)
    flat = Intervals.fit("regression", p, y, {})
    new, _, there = draw(generator, 2000)
    margin, constant = learned.margin(new, there, 0.9), flat.margin(new, there, 0.9)
    assert margin.mean() < 0.9 * constant.mean()
    assert scipy.stats.spearmanr(margin, there["disagreement"]).statistic > 0.95
    (weight,) = [learned.errors[0].spread.weight[name] for name in ["disagreement"]]
    unit = there["disagreement"].std()
    assert weight == pytest.approx(1.5 * float(unit), rel=0.15)  # the spread that was drawn from


def test_a_spread_that_does_not_pay_is_left_out():
    """Gains of chance are no gains: where no signal helps, nearly all draws have one width."""
    generator, learned = torch.Generator().manual_seed(0), 0
    for _ in range(40):
        p, y, signals = draw(generator, 120, calm=True)
        signals["disagreement"] = torch.randn(120, generator=generator).double()
        learned += Intervals.fit("regression", p, y, signals).errors[0].spread is not None
    assert learned <= 6


def test_a_spread_is_the_most_likely_one():
    """Against scipy's minimum of the same likelihood."""
    generator = torch.Generator().manual_seed(0)
    p, y, signals = draw(generator, 200)
    errors = (y - p).abs()
    spread = Spread.fit(errors, signals)
    z = torch.stack([spread._units(name, v) for name, v in signals.items()], 1).numpy()
    u = (errors / errors.mean()).numpy()

    def cost(w):
        log = w[0] + z @ w[1:]
        return (u * np.exp(-log) + log).sum() + (w[1:] ** 2).sum() / 2

    best = scipy.optimize.minimize(cost, np.zeros(3), tol=1e-10).x
    assert list(spread.weight.values()) == pytest.approx(best[1:].tolist(), abs=1e-4)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_more_coverage_never_takes_away(task):
    generator = torch.Generator().manual_seed(0)
    if task == "regression":
        p, y, signals = draw(generator, 60)
    else:
        (p, y), signals = probabilities(generator, 60), {}
    interval = Intervals.fit(task, p, y, signals)
    sizes = []
    for coverage in np.linspace(0.01, 0.999, 50):
        if task == "regression":
            sizes.append(interval.margin(p, signals, coverage))
        else:
            sizes.append(interval.plausible(p, p.argmax(1), coverage).int())
    every = torch.stack(sizes)
    assert (every.diff(dim=0) >= 0).all()
    assert (every[-1] > every[0]).any()


def test_sets_name_what_is_predicted():
    """Also where a threshold predicts a class that is not the most probable."""
    (p, y) = probabilities(torch.Generator().manual_seed(0), 50)
    interval = Intervals.fit("classification", p, y, {})
    for coverage in (0.01, 0.5, 0.99):
        for chosen in (p.argmax(1), p.argmin(1)):
            sets = interval.plausible(p, chosen, coverage)
            assert sets.gather(1, chosen[:, None]).all()


def test_several_labels_have_each_their_own_sets():
    generator = torch.Generator().manual_seed(0)
    p = torch.rand(4000, 2, generator=generator)
    y = (torch.rand(4000, 2, generator=generator) < p).float()
    y[:, 1] = (p[:, 1] > 0.5).float()  # the second label is never in doubt
    y[::3, 0] = torch.nan
    interval = Intervals.fit("multilabel", p[:2000], y[:2000], {})
    new, known = p[2000:], ~y[2000:].isnan()
    sets = interval.plausible(new, (new >= 0.5).long(), 0.8)  # (nodes, labels, no and yes)
    assert sets.any(2).all()
    hit = sets.gather(2, y[2000:].nan_to_num(0).long()[..., None])[..., 0]
    share = torch.tensor([hit[known[:, k], k].double().mean() for k in range(2)])
    assert share[0] == pytest.approx(0.8, abs=0.04)
    assert share[1] == 1
    assert sets[:, 0].sum(1).double().mean() > 1.1 > sets[:, 1].sum(1).double().mean()


def test_targets_have_each_their_own_width():
    generator = torch.Generator().manual_seed(0)
    off = torch.randn(999, 2, generator=generator) * torch.tensor([1.0, 100.0])
    off[:500, 1] = torch.nan
    zero = torch.zeros(999, 2)
    interval = Intervals.fit("regression", zero, off, {})
    margin = interval.margin(zero[:1], {}, 0.9)[0]
    assert [errors.count for errors in interval.errors] == [999, 499]
    assert margin[0] == pytest.approx(1.64, rel=0.1)
    assert margin[1] == pytest.approx(164, rel=0.1)


def test_the_order_of_nodes_does_not_matter():
    generator = torch.Generator().manual_seed(0)
    p, y, signals = draw(generator, 300)
    order = torch.randperm(300, generator=generator)
    moved = {name: v[order] for name, v in signals.items()}
    plain = Intervals.fit("regression", p, y, signals)
    other = Intervals.fit("regression", p[order], y[order], moved)
    assert plain.errors[0].spread is not None
    margins = [one.margin(p, signals, 0.9) for one in (plain, other)]
    assert torch.allclose(*margins, rtol=1e-5)


def test_units_of_numbers_do_not_matter():
    generator = torch.Generator().manual_seed(0)
    p, y, signals = draw(generator, 300)
    plain = Intervals.fit("regression", p, y, signals).margin(p, signals, 0.9)
    scaled = {**signals, "predicted": 1000 * signals["predicted"]}
    other = Intervals.fit("regression", 1000 * p, 1000 * y, scaled).margin(1000 * p, scaled, 0.9)
    assert torch.allclose(1000 * plain, other, rtol=1e-3)


def test_few_nodes_promise_what_they_can():
    """Nine errors: the largest covers 90 % at most, and is what a larger coverage gets."""
    errors = Errors.of(torch.arange(1, 10).double())
    assert errors.promised == 0.9
    assert errors.quantile(0.9) == errors.quantile(0.99) == 9
    assert errors.quantile(0.8) == 8


def test_no_interval_is_infinite():
    """However far from all validation nodes a signal is, and if all errors are zero."""
    generator = torch.Generator().manual_seed(0)
    p, y, signals = draw(generator, 200)
    far = {name: torch.tensor([-1e30, 1e30]) for name in signals}
    learned = Intervals.fit("regression", p, y, signals)
    assert learned.errors[0].spread is not None
    margin = learned.margin(torch.zeros(2), far, 0.999)
    assert margin.isfinite().all()
    assert margin.max() < 100 * (y - p).abs().max()
    exact = Intervals.fit("regression", p, p, signals)
    assert (exact.margin(p, signals, 0.9) == 0).all()


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
def test_a_weight_is_a_share_of_what_is_covered(coverage):
    """Errors grow with the weight: unweighted quantiles would cover far less of it."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.rand(400, generator=generator).double() + 0.01
    off = weight + torch.rand(400, generator=generator) / 10
    said = torch.zeros(400).double()
    fitted = Intervals.fit("regression", said, off, {}, weight)
    margin = fitted.margin(said, {}, coverage)
    covered = float(weight[off <= margin].sum() / weight.sum())
    assert coverage - 1e-9 <= covered < coverage + 0.02
    plain = Intervals.fit("regression", said, off, {})
    assert weight[off <= plain.margin(said, {}, coverage)].sum() < 0.97 * (covered * weight.sum())
    same = Intervals.fit("regression", said, off, {}, torch.full((400,), 0.3))
    assert same == plain


def test_many_errors_are_kept_as_quantiles():
    """Rounded up: the kept error is never below the one that was asked for."""
    errors = torch.rand(50_000, generator=torch.Generator().manual_seed(0)).double()
    kept, ordered = Errors.of(errors), errors.sort().values
    assert len(kept.values) == KEPT
    for coverage in np.linspace(0.01, 0.9999, 99):
        exact = float(ordered[min(math.ceil(50_001 * coverage), 50_000) - 1])
        assert exact <= kept.quantile(coverage) <= exact + 0.003


def test_what_is_written_is_what_is_read():
    generator = torch.Generator().manual_seed(0)
    p, y, signals = draw(generator, 200)
    interval = Intervals.fit("regression", p, y, signals)
    text = json.dumps({"errors": to_plain(interval.errors)})
    again = Node.parse(text, file="f")["errors"].read(tuple[Errors, ...])
    assert interval.errors[0].spread is not None
    assert again == interval.errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 7}, "increasing numbers up to the count"),
        ({"ranks": [1, 1, 3]}, "increasing numbers up to the count"),
        ({"values": [1.0, 0.5, 2.0]}, "none below the one before"),
        ({"values": [1.0, 2.0]}, "a finite number for each rank"),
        ({"spread": {"low": {}}}, "an object"),
    ],
)
def test_damaged_errors_are_named(change, message):
    plain = {"count": 3, "ranks": [1, 2, 3], "values": [0.1, 0.2, 0.3], **change}
    with pytest.raises(ValueError, match=message):
        Node({"errors": plain}, file="f")["errors"].read(Errors)


def test_a_damaged_spread_is_named():
    (p, y, signals) = draw(torch.Generator().manual_seed(0), 200)
    spread = to_plain(Intervals.fit("regression", p, y, signals).errors[0].spread)
    for key, value in (("deviation", 0.0), ("weight", math.nan)):
        bad = {**spread, key: dict.fromkeys(spread[key], value)}
        with pytest.raises(ValueError, match="numbers"):
            Node({"spread": bad}, file="f")["spread"].read(Spread)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_node_has_no_part_in_its_own_votes(task):
    """Another answer of a node moves the votes on others, never what is honestly said of it."""
    generator = torch.Generator().manual_seed(0)
    if task == "regression":
        said = torch.randn(3, 40, generator=generator)
        y = said[0] + 0.5 * said[1]
        other = y.clone()
        other[7] += 50
    else:
        said = torch.randn(3, 40, 2, generator=generator).softmax(2)
        y = said[0].argmax(1)
        other = y.clone()
        other[7] = 1 - other[7]
    before, after = (honest_votes([said], labels, task) for labels in (y, other))
    fold = folds_of(*said.double().mean(0).reshape(40, -1).T)
    same = fold == fold[7]
    assert torch.equal(before[same], after[same])
    assert not torch.equal(before[~same], after[~same])


def test_folds_are_alike_in_what_they_are_sorted_by():
    values = torch.randn(103, generator=torch.Generator().manual_seed(0))
    fold = folds_of(values)
    assert fold.bincount().tolist() == [21, 21, 21, 20, 20]
    for k in range(FOLDS):
        assert values[fold == k].median() == pytest.approx(float(values.median()), abs=0.2)


def test_a_signal_that_is_not_there_is_at_its_mean():
    """Of a single model there is no disagreement, and elsewhere no known answer may be near."""
    p, y, signals = draw(torch.Generator().manual_seed(0), 500)
    spread = Spread.fit((y - p).abs(), signals)
    mean = {name: torch.full((1,), spread.mean[name]) for name in signals}
    assert float(spread.at({})) == pytest.approx(float(spread.at(mean)[0]))


def test_an_opinion_without_members_has_no_disagreement():
    alone = Opinion(torch.zeros(3)).signals(torch.tensor([0, 1, 5]))
    both = Opinion(torch.zeros(3), torch.ones(3)).signals(torch.tensor([0, 1, 5]))
    assert set(both) - set(alone) == {"disagreement"}
    assert alone["degree"].tolist() == pytest.approx([0, math.log(2), math.log(6)])
