"""Settings of the writer."""

from typing import Annotated, Literal

from pydantic import Field

from memguard.redaction import Screen
from memguard.schema.base import Frozen
from memguard.schema.memory import SourceRole


class Writer(Frozen):
    """Settings of the writer: how candidates are extracted from a conversation."""

    turns_per_chunk: Annotated[int, Field(ge=1, le=500)] = 20
    """New turns read in one pass."""
    # In characters rather than tokens, which every model counts differently.
    chars_per_chunk: Annotated[int, Field(ge=200)] = 24_000
    """Characters of new turns read in one pass; a longer turn is split, never truncated."""
    context_turns: Annotated[int, Field(ge=0, le=100)] = 4
    """Earlier turns shown for understanding; nothing is extracted from them again."""
    sources: Annotated[tuple[SourceRole, ...], Field(min_length=1)] = ("user",)
    """Whose words candidates may rest on: `user`, and by choice `tool` and `document`, whose turns
    are then read too. Their candidates are stored as said by a tool or a document."""
    prompts: Literal["memguard", "paper"] = "memguard"
    """The wording of the writer's request: ours, or as the ConsistencyGate paper prints it (its
    Appendix C). That one shows no earlier turns and asks for no turns behind a fact."""
    max_candidate_chars: Annotated[int, Field(ge=10)] = 2_000
    """A longer candidate is refused: a memory is one fact."""
    screen: Screen = "secrets"
    """What keeps a candidate in quarantine, unjudged: `secrets`, `personal` for personal data as
    well, or `nothing`."""

    @classmethod
    def preset(cls, name: str) -> "Writer":
        """The settings of a preset; see `WRITER_PRESETS`.

        Raises:
            KeyError: If there is no preset of that name.
        """
        return WRITER_PRESETS[name]


WRITER_PRESETS: dict[str, Writer] = {"default": Writer(), "paper": Writer(prompts="paper")}
"""`paper`: the extraction prompt of arXiv 2607.22962, Appendix C."""
