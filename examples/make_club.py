"""Make the files of ``club`` and ``newcomers``: two clubs whose members have friends and a team.

Run it in this folder. The same files come out every time.
"""

import csv
from pathlib import Path

import numpy as np

FIRST = [
    "Ada",
    "Aiko",
    "Alba",
    "Amir",
    "Anders",
    "Anouk",
    "Arjun",
    "Asha",
    "Axel",
    "Bea",
    "Boris",
    "Carla",
    "Cato",
    "Chen",
    "Clara",
    "Dara",
    "Diego",
    "Dina",
    "Elif",
    "Emil",
    "Esra",
    "Ewa",
    "Farid",
    "Fleur",
    "Frida",
    "Gita",
    "Hana",
    "Hugo",
    "Ida",
    "Ilse",
    "Iman",
    "Ines",
    "Ivan",
    "Jonas",
    "Jun",
    "Kaia",
    "Karim",
    "Lars",
    "Leila",
    "Lena",
    "Luca",
    "Maja",
    "Marco",
    "Mei",
    "Mila",
    "Nadia",
    "Nils",
    "Noor",
    "Olga",
    "Omar",
    "Otto",
    "Pia",
    "Rafa",
    "Rosa",
    "Sami",
    "Selma",
    "Tariq",
    "Tove",
    "Uma",
    "Yara",
]
LAST = ["Adler", "Baker", "Costa", "Duran", "Evans"]
TEAMS = ("chess", "rowing", "tennis")
#: Mean of age, of hours and of years by team, and how far members lie from it.
MEANS = np.array([[44.0, 3.2, 8.9], [29.0, 8.4, 4.5], [36.0, 4.0, 6.1]])
SPREAD = np.array([11.0, 2.6, 3.0])
#: Friends per member, and how many of them are of the same team.
FRIENDS, ALIKE = 6, 0.75


def make(rng, names, folder, labelled):
    """Write ``edges.csv`` and ``nodes.csv``; ``labelled`` of the members tell their team."""
    team = rng.integers(len(TEAMS), size=len(names))
    values = MEANS[team] + SPREAD * rng.standard_normal((len(names), 3))
    values = np.maximum(values, [16, 0.5, 1])
    edges = set()
    while len(edges) < FRIENDS * len(names) // 2:
        one, other = sorted(rng.choice(len(names), 2, replace=False).tolist())
        likely = ALIKE if team[one] == team[other] else (1 - ALIKE) / (len(TEAMS) - 1)
        if rng.random() < likely:
            edges.add((one, other))
    known = set(rng.permutation(len(names))[:labelled].tolist())
    with (folder / "nodes.csv").open("w", newline="") as file:
        write = csv.writer(file, lineterminator="\n").writerow
        write(["id", "age", "hours", "years", *(["label"] if labelled else [])])
        for i, (name, (age, hours, years)) in enumerate(zip(names, values, strict=True)):
            label = [TEAMS[team[i]] if i in known else ""] if labelled else []
            write([name, round(age), f"{hours:.1f}", round(years), *label])
    with (folder / "edges.csv").open("w", newline="") as file:
        write = csv.writer(file, lineterminator="\n").writerow
        write(["source", "target"])
        for one, other in sorted(edges):
            write([names[one], names[other]])


def main(folder: Path = Path(__file__).parent) -> None:
    """Write both folders."""
    rng = np.random.default_rng(5)
    club = sorted(f"{first} {last}" for first in FIRST for last in LAST)
    newcomers = sorted(f"{first} Novak" for first in FIRST[::3])
    for name, names, labelled in (("club", club, 240), ("newcomers", newcomers, 0)):
        (folder / name).mkdir(exist_ok=True)
        make(rng, names, folder / name, labelled)


if __name__ == "__main__":
    main()
