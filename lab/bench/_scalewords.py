"""What the record of large graphs says, in sentences: the page takes its numbers from here."""

import statistics

from lab.bench._scalerecord import Contest, ScaleRecord

#: Whom the sentence on models names.
MODELS = ("learned filter", "learned filter per unit", "SGC", "SIGN")


def scale_words(record: ScaleRecord) -> list[str]:
    """A sentence or two on each part that the record has."""
    parts = [_where(record), _rate(record), _rivals(record), _growth(record), _ranks(record)]
    return [text for text in [*parts, _orders(record), contest_sentence(record)] if text]


def _where(record: ScaleRecord) -> str:
    machine = record.machine
    load = "" if machine.load is None else f", load {machine.load:.1f} on {machine.cores} cores"
    return f"Measured on {machine.name}{load}. Other work on the machine makes times longer."


def _rate(record: ScaleRecord) -> str:
    if "products" not in record.seconds:
        return ""
    share = record.seconds["gather"].median / record.seconds["products"].median
    whole = record.seconds["gather"].median / record.seconds["propagate"].median
    return (
        f"On {record.size}, products run at {share:.0%} of the rate of a plain gather of the same "
        f"rows in memory; with the terms written to disk, {whole:.0%}."
    )


def _rivals(record: ScaleRecord) -> str:
    own, text = record.memory_mib.get("propagate"), []
    for key, name in (("sign", "PyG's SIGN transform"), ("sgc", "the loop of PyG's SGConv")):
        if key in record.ratios:
            memory = record.memory_mib[key]
            times = f" and {memory / own:.1f} times the memory" if memory and own else ""
            text.append(f"{name} takes {record.ratios[key].median:.2f} times as long{times}")
    if not text:
        return ""
    joined = ", ".join(text)
    return f"{joined[0].upper()}{joined[1:]}; both write nothing to disk."


def _growth(record: ScaleRecord) -> str:
    if not record.sweeps:
        return ""
    most = max(record.sweeps, key=lambda sweep: sweep.exponent)
    return (
        f"Over all stages and sizes the largest exponent of growth is {most.exponent:.2f} "
        f"({most.what} with {most.axis})."
    )


def _ranks(record: ScaleRecord) -> str:
    if record.ranks is None:
        return ""
    times = record.ranks.ratio.median
    return f"Two ranks on two cores are {times:.2f} times as fast as one rank on one core."


def _orders(record: ScaleRecord) -> str:
    text = []
    for graph, orders in record.orders.items():
        first = next(iter(orders.values())).product_s
        name, best = min(orders.items(), key=lambda item: item[1].product_s)
        gain, own = first / best.product_s, first - best.product_s
        if name == "as it is":
            text.append(f"On {graph} no order of the nodes makes a product faster.")
            continue
        pays = best.find_s / own
        text.append(
            f"On {graph} the best order of the nodes ({name}) makes a product {gain:.2f} times as "
            f"fast and pays after {pays:,.0f} products of 16 columns."
        )
    return " ".join(text)


def contest_sentence(record: ScaleRecord) -> str:
    """For each kind of labels: what learned filters have beside their rivals, and in what time."""
    text = []
    for graph in dict.fromkeys(one.graph for one in record.contests):
        found = {one.model: one for one in record.contests if one.graph == graph}
        one, several, sgc, sign = (_told(found[key]) for key in MODELS)
        text.append(
            f"On {graph} one learned filter has {one}, one per hidden unit {several}, SGC {sgc} "
            f"and SIGN {sign}."
        )
    return " ".join(text)


def _told(contest: Contest) -> str:
    score, seconds = statistics.mean(contest.scores), statistics.mean(contest.seconds)
    return f"{100 * score:.1f} % in {seconds:.1f} s"
