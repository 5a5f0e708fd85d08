"""Settings of the writer."""

from typing import Annotated

from pydantic import Field

from memguard.redaction import Screen
from memguard.schema.base import Frozen


class Writer(Frozen):
    """Settings of the writer: how candidates are extracted from a conversation."""

    turns_per_chunk: Annotated[int, Field(ge=1, le=500)] = 20
    """New turns read in one pass."""
    # In characters rather than tokens, which every model counts differently.
    chars_per_chunk: Annotated[int, Field(ge=200)] = 24_000
    """Characters of new turns read in one pass; a longer turn is split, never truncated."""
    context_turns: Annotated[int, Field(ge=0, le=100)] = 4
    """Earlier turns shown for understanding; nothing is extracted from them again."""
    max_candidate_chars: Annotated[int, Field(ge=10)] = 2_000
    """A longer candidate is refused: a memory is one fact."""
    screen: Screen = "secrets"
    """What keeps a candidate in quarantine, unjudged: `secrets`, `personal` for personal data as
    well, or `nothing`."""
