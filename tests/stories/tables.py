"""Tables as people have them, made from a seed: files of a stranger who read the README."""

from pathlib import Path

import numpy as np
import pandas as pd

WORDS = {
    "physics": ["quantum", "field", "particle", "energy", "spin", "lattice", "boson", "photon"],
    "biology": ["cell", "protein", "gene", "enzyme", "tissue", "species", "membrane", "genome"],
    "law": ["court", "statute", "contract", "liability", "plaintiff", "appeal", "tort", "clause"],
}
COMMON = ["we", "study", "the", "effect", "of", "a", "new", "method", "and", "show", "results"]


def neighbours(points: np.ndarray, count: int) -> np.ndarray:  # (nodes, dimensions) -> (edges, 2)
    """Each point and its nearest others."""
    distance = ((points[:, None] - points[None]) ** 2).sum(-1)
    np.fill_diagonal(distance, np.inf)
    near = np.argsort(distance, axis=1)[:, :count]
    return np.stack([np.repeat(np.arange(len(points)), count), near.reshape(-1)], axis=1)


def fraud(nodes: int = 700, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Accounts and transfers between them; one in twenty belongs to a ring of frauds.

    Frauds send money around among themselves and look much like others: some are young accounts,
    some have no country. Cells are empty at random.
    """
    rng = np.random.default_rng(seed)
    bad = np.zeros(nodes, dtype=bool)
    bad[rng.choice(nodes, nodes // 20, replace=False)] = True
    crooks = np.flatnonzero(bad)
    plain = rng.integers(0, nodes, (4 * nodes, 2))
    rings = np.stack([rng.choice(crooks, 6 * len(crooks)), rng.choice(crooks, 6 * len(crooks))], 1)
    arcs = np.concatenate([plain, rings])
    arcs = arcs[arcs[:, 0] != arcs[:, 1]]
    name = np.array([f"acc-{i:04d}" for i in rng.permutation(nodes)])
    edges = pd.DataFrame(
        {
            "from": name[arcs[:, 0]],
            "to": name[arcs[:, 1]],
            "weight": rng.lognormal(3, 1, len(arcs)).round(2),
        }
    )
    age = rng.gamma(3, 300, nodes) * np.where(bad, 0.6, 1)
    table = pd.DataFrame(
        {
            "id": name,
            "opened": (pd.Timestamp("2026-01-01") - pd.to_timedelta(age, unit="D")).strftime(
                "%Y-%m-%d"
            ),
            "balance": rng.normal(1000, 400, nodes).round(2),
            "country": rng.choice(
                ["DE", "FR", "US", "NG", "VU"], nodes, p=[0.4, 0.3, 0.2, 0.09, 0.01]
            ),
            "verified": rng.choice(["yes", "no"], nodes),
            "label": np.where(bad, "fraud", "ok"),
        }
    )
    for column in ("balance", "country", "opened"):
        table[column] = table[column].astype(object)
        table.loc[rng.random(nodes) < 0.1, column] = None
    table.loc[rng.random(nodes) < 0.1, "label"] = None
    return edges, table


def houses(nodes: int = 600, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Houses near each other, and their prices: size, age and the quarter count."""
    rng = np.random.default_rng(seed)
    place = rng.random((nodes, 2))
    quarter = np.sin(5 * place[:, 0]) + np.cos(4 * place[:, 1]) + rng.normal(0, 0.1, nodes)
    size, age = rng.gamma(6, 20, nodes), rng.integers(0, 100, nodes).astype(float)
    rooms = (size / 25 + rng.normal(0, 0.5, nodes)).round().clip(1)
    price = 40 + size * (1 + 0.5 * quarter) - 0.2 * age + 30 * (age > 80) + rng.normal(0, 8, nodes)
    arcs = neighbours(place, 6)
    table = pd.DataFrame(
        {
            "id": np.arange(nodes),
            "size": size.round(1),
            "age": age,
            "rooms": rooms,
            "x": place[:, 0].round(4),
            "y_place": place[:, 1].round(4),
            "price": price.round(1),
        }
    )
    table.loc[rng.random(nodes) < 0.05, "age"] = np.nan
    return pd.DataFrame({"source": arcs[:, 0], "target": arcs[:, 1]}), table


def papers(nodes: int = 240, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Papers that cite each other; of an abstract, two words say the field and one misleads."""
    rng = np.random.default_rng(seed)
    fields = rng.choice([*WORDS], nodes)
    other = rng.choice([*WORDS], nodes)
    texts = [
        " ".join(
            rng.permutation(
                [*rng.choice(COMMON, 12), *rng.choice(WORDS[f], 2), rng.choice(WORDS[o])]
            )
        )
        for f, o in zip(fields, other, strict=True)
    ]
    arcs = rng.integers(0, nodes, (6 * nodes, 2))
    same = fields[arcs[:, 0]] == fields[arcs[:, 1]]
    arcs = arcs[(same | (rng.random(len(arcs)) < 0.15)) & (arcs[:, 0] != arcs[:, 1])]
    table = pd.DataFrame(
        {
            "id": [f"paper {i}" for i in range(nodes)],
            "abstract": texts,
            "year": rng.integers(1990, 2026, nodes),
            "label": fields,
        }
    )
    names = table["id"].to_numpy()
    return pd.DataFrame({"source": names[arcs[:, 0]], "target": names[arcs[:, 1]]}), table


def films(nodes: int = 300, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Films that the same people watched; each may be of several genres, some are unknown."""
    rng = np.random.default_rng(seed)
    taste = rng.normal(0, 1, (nodes, 3))
    genres = (taste + rng.normal(0, 0.3, taste.shape) > 0.3).astype(float)
    genres[rng.random(genres.shape) < 0.1] = np.nan
    arcs = neighbours(taste, 5)
    table = pd.DataFrame({"id": np.arange(nodes), "length": rng.normal(100, 15, nodes).round()})
    for k, name in enumerate(("laughs", "tears", "fights")):  # as few viewers counted them
        table[name] = rng.poisson(np.exp(0.5 * taste[:, k]))
    for k, name in enumerate(("comedy", "drama", "action")):
        table[name] = genres[:, k]
    return pd.DataFrame({"source": arcs[:, 0], "target": arcs[:, 1]}), table


def large(nodes: int = 50_000, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A graph of two kinds of nodes with dense columns, for Parquet."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, nodes)
    arcs = rng.integers(0, nodes, (4 * nodes, 2))
    arcs = arcs[(kind[arcs[:, 0]] == kind[arcs[:, 1]]) | (rng.random(len(arcs)) < 0.3)]
    columns = {f"f{k}": rng.normal(0.1 * kind, 1).astype(np.float32) for k in range(8)}
    label = np.where(kind == 1, "buyer", "visitor")
    return (
        pd.DataFrame({"source": arcs[:, 0], "target": arcs[:, 1]}),
        pd.DataFrame({"id": np.arange(nodes), **columns, "label": label}),
    )


def write(folder: Path, edges: pd.DataFrame, nodes: pd.DataFrame, **options: object) -> Path:
    """The two tables as CSV files in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    edges.to_csv(folder / "edges.csv", index=False, **options)  # type: ignore[call-overload]
    nodes.to_csv(folder / "nodes.csv", index=False, **options)  # type: ignore[call-overload]
    return folder
