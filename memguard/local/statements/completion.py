"""Completes a sentence from the one before, where only one reading is possible."""

from collections.abc import Sequence

from memguard.local.statements.changes import Spoken


def complete_subjects(rows: Sequence[Spoken]) -> list[Spoken]:
    return list(rows)
