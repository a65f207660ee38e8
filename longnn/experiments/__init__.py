"""Experiments: each a configuration in, a record out; tables are made from records alone."""
