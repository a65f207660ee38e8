"""Trainings that are killed at random moments and resumed.

Each trains in a forked process that is killed by SIGKILL: half of them after a random time, half at
a random operation on a file of the run folder. It is resumed, perhaps killed again, and compared
with the same training left alone.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
import warnings

import safetensors.torch
import torch

from longnn.runs import resume

#: Operations on files that Python announces.
OPERATIONS = ("open", "os.mkdir", "os.rename", "os.remove", "os.chmod", "os.link", "os.listdir")


def forked(work):
    """Start work in a forked process; it exits with 0 if the work ends well."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            warnings.simplefilter("ignore")
            torch.set_num_threads(1)  # threads of the parent are not there after a fork
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


class Kills:
    """Kills trainings that ``begin(folder)`` begins."""

    def __init__(self, begin, scratch):
        self.begin, self.scratch = begin, scratch

    def go_on(self, folder):
        """What a user would do: resume what was begun, else begin."""
        if (folder / "run.json").exists():
            resume(folder, checkpoint_every=0)
        else:
            self.begin(folder)

    def after(self, folder, seconds):
        """Go on, and be killed after a while; returns the exit code."""
        process = forked(lambda: self.go_on(folder))
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)
        return finish(process)

    def at(self, folder, operation):
        """Go on, and be killed just before an operation on a file; returns the exit code."""

        def end(number):
            if number == operation:
                os.kill(os.getpid(), signal.SIGKILL)

        return self._counted(folder, end)

    def _counted(self, folder, call):
        """Go on, and call a function with the number of each operation on files of the folder."""
        numbers = iter(range(1, 10**6))

        def hook(event, arguments):
            if event in OPERATIONS and any(str(folder) in str(each) for each in arguments[:2]):
                call(next(numbers))

        def work():
            sys.addaudithook(hook)
            self.go_on(folder)

        return finish(forked(work))

    def run(self, count, seed):
        """Kill trainings until there were ``count`` kills; returns kills and what was lost."""
        draw, kills, lost, runs = random.Random(seed), 0, [], 0
        whole, counted = self.scratch / "whole", self.scratch / "operations"
        start = time.monotonic()
        assert self._counted(whole, lambda number: counted.write_text(str(number))) == 0
        seconds, operations = time.monotonic() - start, int(counted.read_text())
        expected = outcome(whole)
        while kills < count:
            folder, moments = self.scratch / f"run-{runs}", []
            runs += 1
            for _ in range(draw.choice((1, 1, 2))):
                if (kills + len(moments)) % 2:
                    moment = ("after", round(draw.uniform(0, seconds), 3))
                else:
                    moment = ("at", draw.randrange(1, operations + 1))
                code = getattr(self, moment[0])(folder, moment[1])
                if code == 0:  # it was done before that
                    break
                moments.append((*moment, code))
            kills += len(moments)
            ended = code == 0 or finish(forked(lambda folder=folder: self.go_on(folder))) == 0
            result = outcome(folder) if ended else {}
            wrong = [key for key in expected if result.get(key) != expected[key]]
            strange = [moment for moment in moments if moment[2] != -signal.SIGKILL]
            if wrong or strange:
                lost.append({"run": runs - 1, "moments": moments, "wrong": wrong})
        return kills, lost


def outcome(folder):
    """All that must be the same to the last bit."""
    weights = safetensors.torch.load_file(folder / "weights.safetensors")
    record = json.loads((folder / "record.json").read_text())
    return {
        "weights": {name: weights[name].numpy().tobytes() for name in sorted(weights)},
        "predictions": (folder / "predictions.parquet").read_bytes(),
        "history": (folder / "history.csv").read_text(),
        "repeats": record["repeats"],
        "baselines": record.get("baselines"),
        "files": sorted(path.name for path in folder.iterdir()),
    }
