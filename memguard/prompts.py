"""Prompts as data: a text with named slots, a version, and a digest of what was really sent.

A prompt is a Markdown file with a front matter of `version` and `slots`. Its body has a system
part and a user part, separated by a line `---user---`. Slots are written `{{name}}`.
"""

import hashlib
import re
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from memguard.errors import ConfigurationError, ErrorCode
from memguard.schema.receipt import PromptStamp

_FRONT_MATTER = re.compile(r"\A---\nversion: (?P<version>\S+)\nslots: ?(?P<slots>[^\n]*)\n---\n")
_SLOT = re.compile(r"\{\{(\w+)\}\}")
_USER_PART = "\n---user---\n"


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A prompt whose slots are checked when it is created.

    Raises:
        ConfigurationError: If the text lacks a declared slot or has one that is not declared.
    """

    name: str
    """For example `consistency_gate/support`."""
    version: str
    """The author's version number; recorded with every verdict."""
    slots: frozenset[str]
    """The names of the values it needs."""
    system: str
    """The instruction; sent first and the same for every case, so that providers cache it. Empty
    for a prompt that is one message."""
    user: str
    """The template of the case to judge."""
    digest: str = field(init=False)
    """The first 12 hexadecimal digits of the SHA-256 of the text."""

    def __post_init__(self) -> None:
        """Check the slots and compute the digest."""
        used = frozenset(_SLOT.findall(self.system + self.user))
        if used != self.slots:
            msg = (
                f"prompt {self.name!r} must use exactly the slots {sorted(self.slots)}, "
                f"but its text uses {sorted(used)}: add or remove `{{{{slot}}}}` in the text"
            )
            raise ConfigurationError(msg, code=ErrorCode.PROMPT_SLOTS)
        text = f"{self.system}{_USER_PART}{self.user}"
        # The way to set a computed field of a frozen dataclass.
        object.__setattr__(self, "digest", hashlib.sha256(text.encode()).hexdigest()[:12])

    @property
    def stamp(self) -> PromptStamp:
        """What a receipt records of this prompt."""
        return PromptStamp(name=self.name, version=self.version, digest=self.digest)

    def render(self, **values: str) -> list[BaseMessage]:
        """The messages to send. Values are inserted unchanged: quote untrusted text first."""
        if values.keys() != self.slots:
            msg = f"prompt {self.name!r} needs {sorted(self.slots)}, got {sorted(values)}"
            raise ConfigurationError(msg, code=ErrorCode.PROMPT_SLOTS)

        def fill(text: str) -> str:
            # One pass, so that `{{...}}` inside a value is never filled in turn.
            return _SLOT.sub(lambda match: values[match.group(1)], text)

        system = [SystemMessage(fill(self.system))] if self.system else []
        return [*system, HumanMessage(fill(self.user))]


def parse_prompt(text: str, *, name: str) -> Prompt:
    """Read a prompt from the text of its Markdown file.

    Raises:
        ConfigurationError: If the front matter or the user part is missing.
    """
    front = _FRONT_MATTER.match(text)
    system, part, user = text[front.end() if front else 0 :].partition(_USER_PART)
    if front is None or not part:
        msg = (
            f"prompt {name!r} cannot be read: it needs a front matter with `version` and `slots` "
            "and a line `---user---` between its system and its user part"
        )
        raise ConfigurationError(msg, code=ErrorCode.PROMPT_SLOTS)
    return Prompt(
        name=name,
        version=front["version"],
        slots=frozenset(front["slots"].replace(",", " ").split()),
        system=system.strip(),
        user=user.strip(),
    )


def resolve_prompt(method: str, name: str, *, override: Prompt | None) -> Prompt:
    """The prompt that a method ships, or the user's replacement for it.

    Raises:
        ConfigurationError: If the replacement has other slots than the prompt it replaces.
    """
    shipped = load_prompt(method, name)
    if override is None:
        return shipped
    if override.slots != shipped.slots:
        msg = (
            f"prompt {override.name!r} has the slots {sorted(override.slots)}; to replace "
            f"{shipped.name!r} it needs {sorted(shipped.slots)}"
        )
        raise ConfigurationError(msg, code=ErrorCode.PROMPT_SLOTS)
    return override


@cache
def load_prompt(method: str, name: str) -> Prompt:
    """The prompt that a method ships: `memguard/methods/<method>/prompts/<name>.md`."""
    file = resources.files("memguard") / "methods" / method / "prompts" / f"{name}.md"
    return parse_prompt(file.read_text(encoding="utf-8"), name=f"{method}/{name}")
