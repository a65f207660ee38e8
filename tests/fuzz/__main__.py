"""The fuzzer by hand: ``python -m tests.fuzz --count 1000 --seed 7``."""

import argparse
import collections
import os
import sys
import tempfile
from pathlib import Path

# Before NumPy, Arrow and torch are loaded: one thread each, and no address space in reserve.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
os.environ |= {"ARROW_DEFAULT_MEMORY_POOL": "system", "MPLBACKEND": "agg"}


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many inputs")
    parser.add_argument("--seed", type=int, default=0, help="seed of all inputs")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--only", metavar="FORMAT", help="inputs of one format alone")
    parser.add_argument("--keep", metavar="FOLDER", help="where inputs of failures are kept")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument(
        "--differential", metavar="COUNT", type=int, help="random graphs, in memory and on disk"
    )
    chosen = parser.parse_args()

    import torch  # only now: the environment is set

    from tests import differential
    from tests.fuzz.campaign import GOOD, choose, command_of, run_campaign

    torch.set_num_threads(1)
    if chosen.differential:
        seeds = range(chosen.first, chosen.first + chosen.differential)
        with tempfile.TemporaryDirectory() as folder:
            differences, kinds = differential.campaign(seeds, Path(folder), on_difference=print)
        print(f"{len(seeds)} graphs, {len(differences)} differences; {dict(kinds)}")
        return 1 if differences else 0
    try:
        inputs = choose(chosen.count, chosen.first, chosen.only)
    except ValueError as error:
        parser.error(str(error))
    counts, failures = collections.defaultdict(collections.Counter), 0
    for name, number, verdict in run_campaign(
        inputs, chosen.seed, keep=chosen.keep, jobs=chosen.jobs
    ):
        counts[name][verdict.kind] += 1
        if verdict.kind not in GOOD:
            failures += 1
            print(f"{verdict.kind}: {verdict.reason}\n  {command_of(name, number, chosen.seed)}")
    for name, kinds in sorted(counts.items()):
        print(f"{name:>16}: " + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())))
    print(f"\n{len(inputs)} inputs, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
