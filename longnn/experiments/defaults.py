"""How good is LON-GNN untuned? The default configuration on the ten published graphs.

``python -m longnn.experiments.defaults --output results/defaults`` trains ten published splits of
each dataset as one population and adds it to the record; datasets that the record has are not
trained again. ``--table`` prints the table of a record.
Goal: within three points of the paper's LON-GNN on every one.
"""

import argparse
import datetime
import json
import time
from pathlib import Path
from typing import Any

from longnn import data, workflow
from longnn.config import Config
from longnn.files import write_json, write_text
from longnn.machine import describe_code, environment
from longnn.training import summarize
from longnn.workflow import Scaling

#: Accuracy of LON-GNN in the paper's Table 3, in per cent.
PAPER = {
    "cora": 89.44,
    "citeseer": 81.41,
    "pubmed": 90.98,
    "computers": 90.93,
    "photo": 94.66,
    "chameleon": 73.00,
    "squirrel": 60.61,
    "actor": 39.10,
    "texas": 87.54,
    "cornell": 84.47,
}
SPLITS = 10


def run_dataset(name: str, config: Config, data_dir: str | None) -> dict[str, Any]:
    """Ten published splits of one dataset, trained as one population."""
    dataset = data.load(name, data_dir=data_dir)
    problem = workflow.make_problem(dataset, config, Scaling("none"))
    configs = [config.replace(seed=seed) for seed in range(SPLITS)]
    splits = [data.make_split(dataset, "published", seed) for seed in range(SPLITS)]
    started = time.perf_counter()
    results = workflow.make_population(configs, problem, splits).run()
    seconds = time.perf_counter() - started
    sizes = (problem.features.shape[1], problem.outputs)
    scores: dict[str, list[float]] = {"val": [], "test": []}
    for c, split, result in zip(configs, splits, results, strict=True):
        model = workflow.trained_model(c, *sizes, result.state)
        predicted = workflow.predict(model, problem)
        for part, mask in (("val", split.val), ("test", split.test)):
            scores[part].append(workflow.score(predicted, dataset, mask)["accuracy"])
    return {
        "fingerprint": dataset.fingerprint(),
        "notes": list(dataset.notes),
        "epochs": [r.epochs for r in results],
        "seconds": seconds,
        "scores": scores,
        "summary": {part: summarize(values) for part, values in scores.items()},
    }


def run(path: Path, names: list[str], data_dir: str | None, device: str) -> dict[str, Any]:
    """The experiment as a record, written after every dataset."""
    config = Config.from_dict({"device": device})
    record: dict[str, Any] = {
        "experiment": "defaults",
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "protocol": "published splits, seeds 0 to 9; best weights by validation accuracy",
        "config": config.to_dict(),
        "datasets": {},
    }
    if path.exists():
        record = json.loads(path.read_text())
        if record["config"] != config.to_dict():
            raise ValueError(f"Expected the configuration of {path} (the defaults have changed)")
    for name in names:
        if name in record["datasets"]:
            continue
        entry = run_dataset(name, config, data_dir)
        entry["environment"] = environment(workflow.choose_device(device))
        entry["code"] = describe_code()
        record["datasets"][name] = entry
        write_json(path, record)
        test = entry["summary"]["test"]
        print(f"{name:<12}{100 * test['mean']:6.2f}  ({PAPER[name]:.2f})", flush=True)
    return record


def table(record: dict[str, Any]) -> str:
    """The record as a Markdown table."""
    lines = [
        "| dataset | test accuracy, % | 95 % interval | validation, % | paper's LON-GNN, % | "
        "difference | seconds for ten splits |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, paper in PAPER.items():
        entry = record["datasets"].get(name)
        if entry is None:
            lines.append(f"| {name} | not run | | | {paper:.2f} | | |")
            continue
        test, val = entry["summary"]["test"], entry["summary"]["val"]
        lines.append(
            f"| {name} | {100 * test['mean']:.2f} | {100 * test['low']:.2f} to "
            f"{100 * test['high']:.2f} | {100 * val['mean']:.2f} | {paper:.2f} | "
            f"{100 * test['mean'] - paper:+.2f} | {entry['seconds']:.1f} |"
        )
    where = {
        e["environment"]["gpu"] or e["environment"]["cpu"] for e in record["datasets"].values()
    }
    head = f"Untuned LON-GNN, ten published splits each; trained on {', '.join(sorted(where))}.\n\n"
    return head + "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("results/defaults"))
    parser.add_argument("--data-dir")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--datasets", default=",".join(PAPER))
    parser.add_argument("--table", action="store_true", help="print the table of a saved record")
    options = parser.parse_args()
    path = options.output / "record.json"
    if options.table:
        print(table(json.loads(path.read_text())), end="")
        return
    options.output.mkdir(parents=True, exist_ok=True)
    names = options.datasets.split(",")
    record = run(path, names, options.data_dir, options.device)
    write_text(options.output / "table.md", table(record))


if __name__ == "__main__":
    main()
