"""The model of the ConMem benchmarks: scripted answers, optionally with the paper's latencies.

Run by `python -m memguard.testing.server --answer benchmarks.conmem_server:paper_answer`.
Answers and latencies follow from the prompt, so that every schedule of a case waits for the same
answers.
"""

import math
import random
import re
from collections.abc import Mapping
from typing import Any, Final

from memguard.testing.conmem import CallKind, ConMemScript, read_call, validity
from memguard.testing.replies import ServerReply

SCALE: Final = 0.06
"""Factor on the paper's latencies."""

_CASE: Final = re.compile(r"case (\d+)")

# arXiv 2610.33432, appendix C: answers 21 s; audits 26.85 s, p95 85.76; validation p95 104.52; the
# sum of a case 347.64 s. The other means are a split that fits that sum; p95 where none is
# published is 2.3 times the mean.
_MEANS: Final[dict[str, tuple[float, float]]] = {
    "probe": (25.0, 57.5),
    "validation": (35.0, 104.52),
    "arm": (21.0, 48.3),
    "quality": (24.3, 55.9),
    "audit": (26.85, 85.76),
    "tie_break": (25.0, 75.0),
}
_KINDS: Final[dict[CallKind, str]] = {
    "probe": "probe",
    "regenerate": "probe",
    "repair": "probe",
    "reconstruct": "probe",
    "validation": "validation",
    "control": "arm",
    "treatment": "arm",
    "quality": "quality",
    "audit": "audit",
    "tie_break": "tie_break",
    "reason": "quality",
}

TIES: Final = 0.1844
"""Share of cases with a tie (appendix C)."""

REGENERATED: Final = 0.0324
"""Share of cases whose first probes fail validation (appendix C)."""


def plain_answer(request: Mapping[str, Any]) -> str | ServerReply:
    """Answer without ties and regeneration, so that a case takes 14 calls."""
    return _script(request, ties=0.0, regenerated=0.0).serve(request)


def paper_answer(request: Mapping[str, Any]) -> ServerReply:
    """Answer with ties, regeneration and latencies as frequent and as long as in the paper."""
    answer = _script(request, ties=TIES, regenerated=REGENERATED).serve(request)
    text = answer if isinstance(answer, str) else answer.text
    return ServerReply(text=text, latency=waiting_time(_prompt(request)) * SCALE)


def waiting_time(prompt: str) -> float:
    """The paper's latency of a prompt in seconds, drawn from a lognormal by kind of call."""
    mean, p95 = _MEANS[_KINDS[read_call(prompt).kind]]
    # The smaller sigma of the two that have this mean and 95th percentile.
    z = 1.6448536269514722
    sigma = z - math.sqrt(z * z - 2 * math.log(p95 / mean))
    mu = math.log(mean) - sigma * sigma / 2
    return random.Random(prompt).lognormvariate(mu, sigma)


def _script(request: Mapping[str, Any], *, ties: float, regenerated: float) -> ConMemScript:
    prompt = _prompt(request)
    match = _CASE.search(prompt)
    case = int(match[1]) if match else 0
    kind = read_call(prompt).kind
    # Spread evenly over the cases, so that a few cases have about the same share as many.
    ties_here = math.floor((case + 1) * ties) > math.floor(case * ties)
    regenerates = math.floor((case + 0.5) * regenerated) > math.floor((case - 0.5) * regenerated)
    number = 2 if kind == "regenerate" else 1
    probes = {
        role: f"{role} request {number} of case {case}"
        for role in ("relevant", "irrelevant", "risk")
    }
    first = "risk request 1 of" in prompt
    answers: dict[str, Any] = {
        "probe": probes,
        "regenerate": probes,
        "validation": validity(risk=not (regenerates and first)),
        "control": f"An answer for case {case}. " * 8,
        "treatment": f"Knowing what you told me: an answer for case {case}. " * 8,
    }
    return ConMemScript({"relevant": "neutral" if ties_here else "helpful"}, answers=answers)


def _prompt(request: Mapping[str, Any]) -> str:
    return str(request["messages"][1]["content"])


def a_case(number: int, *, turns: int = 12) -> dict[str, Any]:
    """Input of one case; all cases have the same history, as in one conversation."""
    context = [
        {
            "id": str(n),
            "role": "user" if n % 2 == 0 else "assistant",
            "content": f"On day {n} we spoke at length about the garden, the boat and the trip "
            f"that she plans with her sister in week {n + 20}; nothing was settled.",
        }
        for n in range(turns)
    ]
    return {"candidate": f"The user plans case {number}.", "context": context}
