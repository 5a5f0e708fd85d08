"""Which memories stay out of the prompt where others read the answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.reconcile.sets import SensitiveMemory


@dataclass(frozen=True, kw_only=True)
class AudienceResult:
    """What the rule says about one memory."""

    memory: SensitiveMemory
    topics: tuple[str, ...]

    @property
    def is_withheld(self) -> bool:
        """Whether it is kept from a group."""
        return bool(self.topics)

    @property
    def has_right_topic(self) -> bool:
        """Whether the labelled topic is among those that the rule names."""
        return self.memory.label in self.topics


async def measure_audience(memories: Sequence[SensitiveMemory]) -> list[AudienceResult]:
    """Apply the rule to every memory."""
    from memguard.local.sensitivity import sensitive_topics

    return [
        AudienceResult(memory=memory, topics=tuple(sensitive_topics(memory.text)))
        for memory in memories
    ]
