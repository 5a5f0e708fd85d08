"""Evaluation of the local adjudicator on labels that need no model."""
