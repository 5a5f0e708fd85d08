"""A model for ConMem that follows a script: give each probe an outcome, and any call an answer.

The same script drives a `ScriptedChatModel` and a `LoopbackModelServer`.
"""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from memguard.methods.conmem.config import ROLES, ProbeRole
from memguard.testing.replies import ServerReply
from memguard.testing.scripted import ScriptedChatModel

Outcome: TypeAlias = Literal[
    "helpful", "harmful", "no_better", "unnecessary", "risk", "neutral", "inconsistent"
]
"""What a probe comes to: the first three are a utility whose answer is better, worse or neither."""

CallKind: TypeAlias = Literal[
    "probe",
    "regenerate",
    "repair",
    "reconstruct",
    "validation",
    "control",
    "treatment",
    "quality",
    "audit",
    "tie_break",
    "reason",
]
"""What a call is for."""

_HEADINGS: dict[str, CallKind] = {
    "future probes": "probe",
    "future probes, again": "regenerate",
    "one future probe": "repair",
    "future probes, from the beginning": "reconstruct",
    "probe validation": "validation",
    "blind comparison": "quality",
    "attribution audit": "audit",
    "tie-break": "tie_break",
    "reason": "reason",
}
_HEADING = re.compile(r"^## Task: (.+)$", re.MULTILINE)
_PROMPT = 1
"""Place of the prompt among the messages, after the standing instruction; a model that is asked to
repair its answer gets more messages behind it."""
_WITH = "Knowing what you told me: "
_PREFERS: dict[Outcome, Literal["treatment", "control", "tie"]] = {
    "helpful": "treatment",
    "harmful": "control",
    "risk": "control",
}


@dataclass(frozen=True, kw_only=True)
class ConMemCall:
    """One call, understood from its prompt."""

    kind: CallKind
    """What it is for."""
    role: ProbeRole | None
    """The probe it is about, where it is about one of a script's own."""
    prompt: str
    """The text of its prompt, without the standing instruction."""


def read_call(prompt: str) -> ConMemCall:
    """What a prompt of ConMem asks for."""
    heading = _HEADING.search(prompt)
    if heading is None:
        kind: CallKind = "treatment" if "<user_information>" in prompt else "control"
        return ConMemCall(kind=kind, role=_role_of(_quoted(prompt, "request")), prompt=prompt)
    kind = _HEADINGS[heading[1]]
    about = {"repair": "role", "quality": "query", "audit": "query"}.get(kind)
    role = _role_of(_quoted(prompt, about)) if about else None
    return ConMemCall(kind=kind, role=role, prompt=prompt)


class ConMemScript:
    """Answers every call of a case as a script says.

    ```python
    script = ConMemScript({"relevant": "helpful", "risk": "risk"})
    graph = create_conmem_graph(script.model())
    ```
    """

    def __init__(
        self,
        outcomes: Mapping[ProbeRole, Outcome] | None = None,
        *,
        answers: Mapping[str, Any] | None = None,
        store: bool = True,
        reason_type: str = "over_inference",
    ) -> None:
        """Take a script.

        Args:
            outcomes: What each probe comes to; `neutral` where nothing is said.
            answers: Other answers, by kind of call (`"validation"`) or by kind and probe
                (`"treatment:risk"`): a text, an object, an error, a function of the messages, or a
                list of these, used up in order before the script goes on by itself.
            store: What the tie-break judge says.
            reason_type: What the reason classifier says.
        """
        self.outcomes: dict[ProbeRole, Outcome] = {
            role: (outcomes or {}).get(role, "neutral") for role in ROLES
        }
        self.store = store
        self.reason_type = reason_type
        self.calls: list[ConMemCall] = []
        self._answers = {
            key: list(said) if isinstance(said, list) else said
            for key, said in (answers or {}).items()
        }
        self._lock = threading.Lock()
        self._written = 0

    def model(self, **settings: Any) -> ScriptedChatModel:
        """A chat model that plays the script."""
        return ScriptedChatModel(rules=[("", self)], **settings)

    def __call__(self, messages: Sequence[Any]) -> Any:
        """The answer to a call of a `ScriptedChatModel`."""
        return self.answer(str(messages[_PROMPT].content))

    def serve(self, request: Mapping[str, Any]) -> str | ServerReply:
        """The answer to a request of a `LoopbackModelServer`."""
        said = self.answer(str(request["messages"][_PROMPT]["content"]))
        if isinstance(said, str | ServerReply):
            return said
        if isinstance(said, Exception):
            return ServerReply.error(500, str(said))
        return json.dumps(said)

    def answer(self, prompt: str) -> Any:
        """What is said to a prompt."""
        call = read_call(prompt)
        with self._lock:
            self.calls.append(call)
            for key in (f"{call.kind}:{call.role}", call.kind):
                said = self._answers.get(key)
                if isinstance(said, list):
                    if said:
                        return said.pop(0)
                elif said is not None:
                    return said
            self._written += 1
            return self._by_itself(call)

    def count(self, kind: CallKind) -> int:
        """How many calls of a kind there were."""
        return sum(call.kind == kind for call in self.calls)

    def _by_itself(self, call: ConMemCall) -> Any:
        outcome = self.outcomes[call.role] if call.role else "neutral"
        number, request = self._written, _quoted(call.prompt, "request")
        decision = "STORE" if self.store else "DO_NOT_STORE"
        new_set = {role: f"{role} request {number}" for role in ROLES}
        said: dict[CallKind, Any] = {
            "probe": new_set,
            "regenerate": new_set,
            "repair": {"query": f"{call.role} request {number}"},
            "reconstruct": new_set,
            "validation": validity(),
            "control": f"The answer to {request}",
            "treatment": f"{_WITH}the answer to {request}",
            "quality": comparison(call.prompt, prefer=_PREFERS.get(outcome, "tie")),
            "audit": attribution(outcome),
            "tie_break": {"reason": "the history bears it out", "decision": decision},
            "reason": {"reason_type": self.reason_type, "confidence": 0.9, "explanation": "why"},
        }
        return said[call.kind]


def validity(
    *, relevant: bool = True, irrelevant: bool = True, risk: bool = True, leaks: bool = False
) -> dict[str, Any]:
    """What the probe auditor says: which probes are valid; an invalid one may leak instead."""
    found = {"relevant": relevant, "irrelevant": irrelevant, "risk": risk}
    return {
        role: {
            "reason": "does what it should" if valid else f"the {role} probe is no such thing",
            "valid": valid or leaks,
            "leaks": leaks and not valid,
        }
        for role, valid in found.items()
    }


def comparison(prompt: str, *, prefer: Literal["treatment", "control", "tie"]) -> dict[str, Any]:
    """What the blind judge says, so that the arm named is preferred however they are shown."""
    if prefer == "tie":
        return {"reason": "both serve", "winner": "TIE"}
    a_knows = _quoted(prompt, "response_a").startswith(_WITH)
    letter = "A" if a_knows == (prefer == "treatment") else "B"
    return {"reason": f"{letter} serves better", "winner": letter}


def attribution(outcome: Outcome) -> dict[str, Any]:
    """What the attribution auditor says."""
    labels = {"unnecessary": "unnecessary", "risk": "risk", "neutral": "neutral"}
    label = labels.get(outcome, "utility")
    acted = outcome not in {"neutral", "inconsistent"}
    return {"reason": f"seen as {label}", "used": acted, "changed": acted, "label": label}


def conmem_answer(request: Mapping[str, Any]) -> str:
    """Answers for a server process of its own: every candidate helps where it should."""
    said = ConMemScript({"relevant": "helpful"}).serve(request)
    return said if isinstance(said, str) else ""


def _quoted(prompt: str, tag: str) -> str:
    inner = prompt.partition(f"<{tag}>\n")[2].partition(f"\n</{tag}>")[0]
    try:
        return str(json.loads(inner))
    except ValueError:
        return inner


def _role_of(text: str) -> ProbeRole | None:
    return next((role for role in ROLES if text.startswith(role)), None)
