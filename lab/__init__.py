"""The laboratory: studies, benchmarks, rivals. It uses longnn and is not part of its wheel."""
