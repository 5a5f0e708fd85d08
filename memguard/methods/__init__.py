"""Admission methods, one folder each; none imports another."""
