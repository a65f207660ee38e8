"""What studies share: context, catalogue, protocol, evaluation, scores, tables, printed numbers."""
