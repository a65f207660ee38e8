"""A fuzzer: hostile inputs for everything that longnn reads, each in limits of time and memory.

By hand::

    python -m tests.fuzz --count 1000 --seed 7 --keep failures
    python -m tests.fuzz --only npz-matrix --seed 7 --first 12 --count 1   # repeats one input

An input is fine, or a clean error that names its file. Anything else is a failure: an exception
that longnn did not raise itself, a crash, more than ten seconds, more than two gigabytes, code that
ran, or an error that names no file. Inputs of failures are kept with their traceback.
"""
