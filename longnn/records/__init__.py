"""The schema of saved results: a run and a study, each written and read by one typed class."""

from longnn.records._run import History, LearnedFilter, Repeat, Run, Summary, load_run

__all__ = ["History", "LearnedFilter", "Repeat", "Run", "Summary", "load_run"]
