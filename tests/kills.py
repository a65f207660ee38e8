"""Trainings that are killed at random moments and resumed: a program, and what it finds.

``python -m tests.kills --count 30 --seed 1`` trains in forked processes, each of which is killed by
SIGKILL: half of them after a random time, half at a random operation on a file of the run folder.
Each is resumed, perhaps killed again, and compared with the same training left alone.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import safetensors.torch
import torch

from longnn import report
from longnn.data import Source
from longnn.runs import resume, train

SOURCE = Source.resolve("csbm", options={"num_nodes": 60, "num_features": 8})
#: Long enough to be hit in the midst of it, and of every kind of work: repeats and baselines.
CONFIG = {"epochs": 12, "patience": 12, "degree": 3, "repeat": 2, "device": "cpu"}
#: Operations on files that Python announces.
OPERATIONS = ("open", "os.mkdir", "os.rename", "os.remove", "os.chmod", "os.link", "os.listdir")


def go_on(folder):
    """What a user would do: resume what was begun, else begin."""
    if (folder / "run.json").exists():
        resume(folder, checkpoint_every=0)
    else:
        train(SOURCE, CONFIG, folder, checkpoint_every=0)


def forked(work):
    """Start work in a forked process; it exits with 0 if the work ends well."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            warnings.simplefilter("ignore")
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return process


def finish(process):
    """The exit code of a forked process."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def kill_after(folder, seconds):
    """Go on, and be killed after a while; returns the exit code."""
    process = forked(lambda: go_on(folder))
    time.sleep(seconds)
    os.kill(process, signal.SIGKILL)
    return finish(process)


def kill_at(folder, operation):
    """Go on, and be killed just before the given operation on a file; returns the exit code."""

    def work():
        sys.addaudithook(Count(folder, lambda number: number == operation and end()))
        go_on(folder)

    def end():
        os.kill(os.getpid(), signal.SIGKILL)

    return finish(forked(work))


class Count:
    """Calls a function with the number of each operation on files of a folder."""

    def __init__(self, folder, call):
        self.folder, self.call, self.number = str(folder), call, 0

    def __call__(self, event, arguments):
        if event in OPERATIONS and any(self.folder in str(each) for each in arguments[:2]):
            self.number += 1
            self.call(self.number)


def outcome(folder):
    """All that must be the same to the last bit."""
    weights = safetensors.torch.load_file(folder / "weights.safetensors")
    record = json.loads((folder / "record.json").read_text())
    return {
        "weights": {name: weights[name].numpy().tobytes().hex() for name in sorted(weights)},
        "predictions": (folder / "predictions.csv").read_text(),
        "history": (folder / "history.csv").read_text(),
        "repeats": record["repeats"],
        "baselines": record["baselines"],
        "files": sorted(path.name for path in folder.iterdir()),
    }


def measure(folder):
    """Train without a kill; returns how long it took and how many operations there were."""
    counted = folder.parent / "operations"
    start = time.monotonic()

    def work():
        sys.addaudithook(Count(folder, lambda number: counted.write_text(str(number))))
        go_on(folder)

    if finish(forked(work)):
        raise RuntimeError("the training that nobody killed has failed")
    return time.monotonic() - start, int(counted.read_text())


def run_kills(count, seed):
    """Kill trainings until there were ``count`` kills; returns kills, runs and what was lost."""
    draw = random.Random(seed)
    kills, lost, runs = 0, [], 0
    with tempfile.TemporaryDirectory(prefix="longnn-kills-") as scratch:
        whole = Path(scratch, "whole")
        seconds, operations = measure(whole)
        expected = outcome(whole)
        while kills < count:
            folder, moments = Path(scratch, f"run-{runs}"), []
            runs += 1
            for _ in range(draw.choice((1, 1, 2))):
                if (kills + len(moments)) % 2:
                    moment = ("after", round(draw.uniform(0, seconds), 3))
                else:
                    moment = ("at", draw.randrange(1, operations + 1))
                kill = kill_after if moment[0] == "after" else kill_at
                code = kill(folder, moment[1])
                if code == 0:  # it was done before that
                    break
                moments.append((*moment, code))
            kills += len(moments)
            ended = code == 0 or finish(forked(lambda folder=folder: go_on(folder))) == 0
            found = outcome(folder) if ended else {}
            wrong = [key for key in expected if found.get(key) != expected[key]]
            strange = [moment for moment in moments if moment[2] != -signal.SIGKILL]
            if wrong or strange:
                lost.append({"run": runs - 1, "moments": moments, "wrong": wrong})
    return {"kills": kills, "runs": runs, "lost": lost}


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--count", type=int, default=3, help="how many kills")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--pages", action="store_true", help="with the page of each run")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if not chosen.pages:
        report.write_report = lambda record: None
    print(json.dumps(run_kills(chosen.count, chosen.seed)))


if __name__ == "__main__":
    main()
