"""One worker of a search in a process of its own: STORAGE FOLDER TRIALS SECONDS_AN_EPOCH."""

import sys
import time

from tests.tuning.examples import FINE, graph, search

if __name__ == "__main__":
    storage, folder, trials, pause = sys.argv[1:]
    search(
        graph(),
        folder,
        FINE,
        trials=int(trials),
        batch=2,
        storage=storage,
        on_progress=lambda progress: time.sleep(float(pause)),
    )
