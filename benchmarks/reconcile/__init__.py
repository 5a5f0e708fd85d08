"""Measures corrections, look-ups and audiences on sets that were written by hand."""
