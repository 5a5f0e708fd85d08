"""Which memories stay out of the prompt where others read the answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.reconcile.sets import SensitiveMemory


@dataclass(frozen=True, kw_only=True)
class AudienceResult:
    """What the rule says about one memory."""

    memory: SensitiveMemory
    topic: str | None

    @property
    def is_withheld(self) -> bool:
        """Whether it is kept from a group."""
        return self.topic is not None

    @property
    def has_right_topic(self) -> bool:
        """Whether the rule names the labelled topic."""
        return self.memory.label == self.topic


async def measure_audience(memories: Sequence[SensitiveMemory]) -> list[AudienceResult]:
    """Apply the rule to every memory."""
    from memguard.local.sensitivity import sensitive_topic

    return [
        AudienceResult(memory=memory, topic=sensitive_topic(memory.text)) for memory in memories
    ]
