"""One worker of a search in a process of its own: STORAGE TRIALS SECONDS_AN_EPOCH."""

import sys
import time

from tests.tuning.examples import FINE, KILLED, graph, search

if __name__ == "__main__":
    storage, trials, pause = sys.argv[1:]
    said = []

    def wait(progress):
        if progress.training and not said:
            said.append(print("at work", flush=True))
        time.sleep(float(pause))

    options = {**KILLED, "trials": int(trials), "storage": storage, "on_progress": wait}
    search(graph(), None, FINE, **options)
