"""Held-out evaluation of everything that runs without a language model."""
