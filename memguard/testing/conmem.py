"""A scripted model for ConMem: an outcome for each probe, or an answer for any call.

The same script drives a `ScriptedChatModel` and a `LoopbackModelServer`. It recognizes a call by
the heading of its prompt, so it needs no order of calls.
"""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from memguard.methods.conmem.config import ROLES, Frequency, ProbeRole
from memguard.testing.replies import ServerReply
from memguard.testing.scripted import ScriptedChatModel

ProbeOutcome: TypeAlias = Literal[
    "helpful", "harmful", "no_better", "unnecessary", "risk", "neutral", "inconsistent"
]
"""The outcome of a probe. In the first three the memory has utility, and the answer with it is
better, worse, or neither."""

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
"""The purpose of a call."""

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
# Index of the prompt among the messages: after the system message, and before the messages that
# ask a model to correct its answer.
_PROMPT_INDEX = 1
_TREATMENT_PREFIX = "Knowing what you told me: "
_PREFERENCES: dict[ProbeOutcome, Literal["treatment", "control", "tie"]] = {
    "helpful": "treatment",
    "harmful": "control",
    "risk": "control",
}


@dataclass(frozen=True, kw_only=True)
class ConMemCall:
    """One call, recognized by its prompt."""

    kind: CallKind
    """Its purpose."""
    role: ProbeRole | None
    """The probe it is about, if the script wrote that probe."""
    prompt: str
    """The text of its prompt, without the system message."""


def read_call(prompt: str) -> ConMemCall:
    """Recognize the call that a prompt of ConMem makes."""
    heading = _HEADING.search(prompt)
    # Only the arms have no heading: they must look like any request of a user.
    if heading is None:
        kind: CallKind = "treatment" if "<user_information>" in prompt else "control"
        return ConMemCall(kind=kind, role=_role_of(_quoted(prompt, "request")), prompt=prompt)
    kind = _HEADINGS[heading[1]]
    tag = {"repair": "role", "quality": "query", "audit": "query"}.get(kind)
    role = _role_of(_quoted(prompt, tag)) if tag else None
    return ConMemCall(kind=kind, role=role, prompt=prompt)


class ConMemScript:
    """Answers every call of a case by a script.

    ```python
    script = ConMemScript({"relevant": "helpful", "risk": "risk"})
    graph = create_conmem_graph(script.model())
    ```
    """

    def __init__(
        self,
        outcomes: Mapping[ProbeRole, ProbeOutcome] | None = None,
        *,
        answers: Mapping[str, Any] | None = None,
        store: bool = True,
        reason_type: str = "over_inference",
        frequency: Frequency = "common",
    ) -> None:
        """Create a script.

        Args:
            outcomes: The outcome of each probe; `neutral` for a probe that is not named.
            answers: Other answers, by kind of call (`"validation"`) or by kind and probe
                (`"treatment:risk"`): a text, an object, an error, a function of the messages, or a
                list of these. A list is used up in order; then the script answers by `outcomes`.
            store: Whether the tie-break judge stores the candidate.
            reason_type: The answer of the reason classifier.
            frequency: How often, for the validator, a request like the relevant one is made.
        """
        self.outcomes: dict[ProbeRole, ProbeOutcome] = {
            role: (outcomes or {}).get(role, "neutral") for role in ROLES
        }
        self.store = store
        self.reason_type = reason_type
        self.frequency: Frequency = frequency
        self.calls: list[ConMemCall] = []
        self._answers = {
            key: list(answer) if isinstance(answer, list) else answer
            for key, answer in (answers or {}).items()
        }
        self._lock = threading.Lock()
        # Numbers the requests, so that a request that is written again is a new one.
        self._answered = 0

    def model(self, **settings: Any) -> ScriptedChatModel:
        """A chat model that answers by the script."""
        return ScriptedChatModel(rules=[("", self)], **settings)

    def __call__(self, messages: Sequence[Any]) -> Any:
        """The answer to a call of a `ScriptedChatModel`."""
        return self.answer(str(messages[_PROMPT_INDEX].content))

    def serve(self, request: Mapping[str, Any]) -> str | ServerReply:
        """The answer to a request of a `LoopbackModelServer`."""
        answer = self.answer(str(request["messages"][_PROMPT_INDEX]["content"]))
        if isinstance(answer, str | ServerReply):
            return answer
        if isinstance(answer, Exception):
            return ServerReply.error(500, str(answer))
        return json.dumps(answer)

    def answer(self, prompt: str) -> Any:
        """The answer to a prompt."""
        call = read_call(prompt)
        # Probes are answered in parallel, and on several threads by the loopback server.
        with self._lock:
            self.calls.append(call)
            for key in (f"{call.kind}:{call.role}", call.kind):
                answer = self._answers.get(key)
                if isinstance(answer, list):
                    if answer:
                        return answer.pop(0)
                elif answer is not None:
                    return answer
            self._answered += 1
            return self._by_outcome(call)

    def count(self, kind: CallKind) -> int:
        """How many calls of a kind there were."""
        return sum(call.kind == kind for call in self.calls)

    def _by_outcome(self, call: ConMemCall) -> Any:
        outcome = self.outcomes[call.role] if call.role else "neutral"
        number, request = self._answered, _quoted(call.prompt, "request")
        decision = "STORE" if self.store else "DO_NOT_STORE"
        new_set = {role: f"{role} request {number}" for role in ROLES}
        answers: dict[CallKind, Any] = {
            "probe": new_set,
            "regenerate": new_set,
            "repair": {"query": f"{call.role} request {number}"},
            "reconstruct": new_set,
            "validation": validity(frequency=self.frequency),
            "control": f"The answer to {request}",
            "treatment": f"{_TREATMENT_PREFIX}the answer to {request}",
            "quality": comparison(call.prompt, prefer=_PREFERENCES.get(outcome, "tie")),
            "audit": attribution(outcome),
            "tie_break": {"reason": "the history bears it out", "decision": decision},
            "reason": {"reason_type": self.reason_type, "confidence": 0.9, "explanation": "why"},
        }
        return answers[call.kind]


def validity(
    *,
    relevant: bool = True,
    irrelevant: bool = True,
    risk: bool = True,
    leaks: bool = False,
    frequency: Frequency = "common",
) -> dict[str, Any]:
    """The validator's answer: which probes are valid. With `leaks`, the others leak instead.

    `frequency` is how often a request like the relevant one is made; with `unknown` the answer does
    not say it.
    """
    verdicts = {"relevant": relevant, "irrelevant": irrelevant, "risk": risk}
    answer: dict[str, Any] = {
        role: {
            # Golden prompts and receipts have these words.
            "reason": "does what it should" if valid else f"the {role} probe is no such thing",
            "valid": valid or leaks,
            "leaks": leaks and not valid,
        }
        for role, valid in verdicts.items()
    }
    if frequency != "unknown":
        answer["relevant"]["frequency"] = frequency
    return answer


def comparison(prompt: str, *, prefer: Literal["treatment", "control", "tie"]) -> dict[str, Any]:
    """The judge's answer that prefers an arm, whichever letter it is shown as."""
    if prefer == "tie":
        return {"reason": "both serve", "winner": "TIE"}
    # The judge is blind, but a script may look: treatments begin with a fixed text.
    a_is_treatment = _quoted(prompt, "response_a").startswith(_TREATMENT_PREFIX)
    letter = "A" if a_is_treatment == (prefer == "treatment") else "B"
    return {"reason": f"{letter} serves better", "winner": letter}


def attribution(outcome: ProbeOutcome) -> dict[str, Any]:
    """The auditor's answer."""
    labels = {"unnecessary": "unnecessary", "risk": "risk", "neutral": "neutral"}
    label = labels.get(outcome, "utility")
    changed = outcome not in {"neutral", "inconsistent"}
    return {"reason": f"seen as {label}", "used": changed, "changed": changed, "label": label}


def _quoted(prompt: str, tag: str) -> str:
    inner = prompt.partition(f"<{tag}>\n")[2].partition(f"\n</{tag}>")[0]
    # Most prompts quote a text as JSON, and some contain it as it is.
    try:
        return str(json.loads(inner))
    except ValueError:
        return inner


def _role_of(text: str) -> ProbeRole | None:
    return next((role for role in ROLES if text.startswith(role)), None)
