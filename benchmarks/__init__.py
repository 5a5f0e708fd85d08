"""Benchmarks that the project runs on itself; they are not part of the wheel."""
