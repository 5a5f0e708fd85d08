"""Prompts as data: a text with named slots, a version, and a digest of what was really sent.

A prompt is a Markdown file with a front matter of `version` and `slots`. Its body has a system
part and a user part, parted by a line that holds `---user---`. Slots are written `{{name}}`.
"""

import hashlib
import re
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from memguard.errors import ConfigurationError, ErrorCode
from memguard.schema.receipt import PromptStamp

_FRONT_MATTER = re.compile(r"\A---\nversion: (?P<version>\S+)\nslots: (?P<slots>[^\n]*)\n---\n")
_SLOT = re.compile(r"\{\{(\w+)\}\}")
_USER_PART = "\n---user---\n"


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A prompt whose slots were checked when it was made.

    Raises:
        ConfigurationError: If the text lacks a declared slot or has one that is not declared.
    """

    name: str
    """For example `consistency_gate/support`."""
    version: str
    """As its author numbers it; goes on every verdict."""
    slots: frozenset[str]
    """The values it needs."""
    system: str
    """The standing instruction; sent first, the same for every case, so that providers cache it."""
    user: str
    """The case at hand."""
    digest: str = field(init=False)
    """Of the text, 12 hexadecimal digits."""

    def __post_init__(self) -> None:
        """Check the slots and take the digest."""
        used = frozenset(_SLOT.findall(self.system + self.user))
        if used != self.slots:
            msg = (
                f"prompt {self.name!r} must use exactly the slots {sorted(self.slots)}, "
                f"but its text uses {sorted(used)}: add or remove `{{{{slot}}}}` in the text"
            )
            raise ConfigurationError(msg, code=ErrorCode.PROMPT_SLOTS)
        text = f"{self.system}{_USER_PART}{self.user}"
        object.__setattr__(self, "digest", hashlib.sha256(text.encode()).hexdigest()[:12])

    @property
    def stamp(self) -> PromptStamp:
        """What a receipt records of this prompt."""
        return PromptStamp(name=self.name, version=self.version, digest=self.digest)

    def render(self, **values: str) -> list[BaseMessage]:
        """The messages to send. Values are put in as they are: quote untrusted text first."""
        if values.keys() != self.slots:
            msg = f"prompt {self.name!r} needs {sorted(self.slots)}, was given {sorted(values)}"
            raise ConfigurationError(msg, code=ErrorCode.PROMPT_SLOTS)

        def fill(text: str) -> str:
            # One pass, so that a value that holds `{{...}}` is never filled again.
            return _SLOT.sub(lambda match: values[match.group(1)], text)

        return [SystemMessage(fill(self.system)), HumanMessage(fill(self.user))]


def parse_prompt(text: str, *, name: str) -> Prompt:
    """Read a prompt from the text of its Markdown file.

    Raises:
        ConfigurationError: If the front matter or the user part is missing.
    """
    front = _FRONT_MATTER.match(text)
    system, part, user = text[front.end() if front else 0 :].partition(_USER_PART)
    if front is None or not part:
        msg = (
            f"prompt {name!r} is not readable: it needs a front matter with `version` and `slots` "
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


def prompt_or_own(method: str, name: str, *, override: Prompt | None) -> Prompt:
    """The prompt a method ships, or the user's own in its place.

    Raises:
        ConfigurationError: If the user's own has other slots than the one it replaces.
    """
    shipped = load_prompt(method, name)
    if override is None:
        return shipped
    if override.slots != shipped.slots:
        msg = (
            f"prompt {override.name!r} has the slots {sorted(override.slots)}, but in place of "
            f"{shipped.name!r} it needs {sorted(shipped.slots)}"
        )
        raise ConfigurationError(msg, code=ErrorCode.PROMPT_SLOTS)
    return override


@cache
def load_prompt(method: str, name: str) -> Prompt:
    """The prompt a method ships: `memguard/methods/<method>/prompts/<name>.md`.

    What methods share ships its prompts as `memguard/<package>/prompts/<name>.md`.
    """
    package = resources.files("memguard")
    home = package / "methods" / method
    file = (home if home.is_dir() else package / method) / "prompts" / f"{name}.md"
    return parse_prompt(file.read_text(encoding="utf-8"), name=f"{method}/{name}")
