"""Trains and measures the relevance of memories to a query."""
