"""How much of a history is shown to a model: never cut silently, the newest kept. Ours."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memguard.schema.memory import Turn


@dataclass(frozen=True, kw_only=True)
class ShownHistory:
    """What is shown of a history."""

    turns: tuple[Turn, ...]
    """In the order they were said."""
    left_out: int
    """Turns that are not shown."""
    cut_short: bool = False
    """Whether one turn alone was too long, and only its end is shown."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a receipt should say."""
        whole = self.left_out + len(self.turns)
        left = f"the history was cut: {self.left_out} of {whole} turns were not shown, the newest"
        said = (f"{left} and the candidate's own were kept",) if self.left_out else ()
        short = "the history was cut: of one turn that is too long, only the end was shown"
        return (*said, short) if self.cut_short else said


def cut_history(
    turns: Sequence[Turn], *, named: Collection[str], most_turns: int, most_chars: int
) -> ShownHistory:
    """Choose what to show: the turns that the candidate rests on, then the newest.

    Args:
        turns: The history, oldest first.
        named: Ids of the turns that the candidate rests on.
        most_turns: Turns shown at most.
        most_chars: Characters shown at most. If not even one turn fits, its end is shown.
    """
    order = sorted(range(len(turns)), key=lambda i: (turns[i].id in named, i), reverse=True)
    kept: list[int] = []
    room = most_chars
    for index in order[:most_turns]:
        length = len(turns[index].content)
        if length > room:
            # Only what fits as a whole, and nothing older than the first that does not.
            if turns[index].id not in named:
                break
            continue
        kept.append(index)
        room -= length
    if not kept and turns:
        last = turns[order[0]]
        end = last.model_copy(update={"content": last.content[-most_chars:]})
        return ShownHistory(turns=(end,), left_out=len(turns) - 1, cut_short=True)
    return ShownHistory(
        turns=tuple(turns[index] for index in sorted(kept)), left_out=len(turns) - len(kept)
    )
