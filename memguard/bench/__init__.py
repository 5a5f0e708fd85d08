"""Benchmarks and data sets; imports the public surface, and nothing imports it."""
