"""What is wrong with a request, found by comparing texts: no model is asked, and no arm is wasted.

Our own rule. Requests are compared in a normal form: NFKC, without case, letters and digits only.
It finds copies and the candidate's own words; other paraphrases are the validator's part.
"""

import unicodedata
from collections.abc import Collection, Mapping

from memguard.local.pieces import adds_words
from memguard.methods.conmem.config import ProbeRole
from memguard.methods.conmem.log import ProbeAudit

MAX_SHARED = 0.8
"""The share of the candidate's runs of five characters from which on a request names it.

"I am vegetarian, where can I eat?" shares 0.39 of "The user is vegetarian."; a request that
contains a candidate shares 1.
"""

_RUN = 5
"""Characters of a run. Runs need no word boundaries, which many scripts do not write."""

_KEPT_CATEGORIES = "LMN"
"""Letters, marks and numbers; in many scripts a mark makes another word."""


def normal_form(text: str) -> str:
    """A text for comparison: NFKC, without case, with one space for anything but words."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(ch if unicodedata.category(ch)[0] in _KEPT_CATEGORIES else " " for ch in plain)
    return " ".join(words.split())


def shared_runs(candidate: str, request: str) -> float:
    """The share of the candidate's runs of characters that are in the request, in [0, 1]."""
    whole = normal_form(candidate)
    # A candidate that is shorter than a run is one run.
    size = min(_RUN, len(whole))
    runs = _runs(whole, size=size)
    return len(runs & _runs(normal_form(request), size=size)) / len(runs) if runs else 0.0


def _runs(text: str, *, size: int) -> frozenset[str]:
    return frozenset(text[i : i + size] for i in range(len(text) - size + 1) if size)


def names_candidate(request: str, *, role: ProbeRole, candidate: str) -> bool:
    """Whether a request contains the candidate.

    A risk request may say what has changed, and so share words with the candidate: it is at fault
    only if it contains all of it. The others may share less than `MAX_SHARED`, and a relevant
    request may not have every word of content of the candidate.
    """
    if role == "risk":
        whole = normal_form(candidate)
        return bool(whole) and whole in normal_form(request)
    if shared_runs(candidate, request) >= MAX_SHARED:
        return True
    # An irrelevant request may have the same word in another sense: "The user runs.", to run code.
    return role == "relevant" and _has_content_of(candidate, request)


def _has_content_of(candidate: str, request: str) -> bool:
    wanted, text = (unicodedata.normalize("NFKC", each) for each in (candidate, request))
    has_content = bool(adds_words(wanted, source=""))
    return has_content and not adds_words(wanted, source=text)


def screen(
    requests: Mapping[ProbeRole, str],
    *,
    candidate: str,
    current: Mapping[ProbeRole, str],
    rejected: Collection[str] = (),
) -> dict[ProbeRole, ProbeAudit]:
    """The faults of new requests, by role; a request without a fault is not in it.

    Args:
        requests: The new requests by role, in the order of the roles.
        candidate: The memory that they test.
        current: Valid requests of the other roles. Of two equal new requests, the second is wrong.
        rejected: Requests of earlier rounds that were not valid.
    """
    faults: dict[ProbeRole, ProbeAudit] = {}
    roles = {normal_form(request): role for role, request in current.items()}
    invalid = {normal_form(request) for request in rejected}
    for role, request in requests.items():
        normal = normal_form(request)
        leaks = names_candidate(request, role=role, candidate=candidate)
        if leaks:
            reason = "the request contains the candidate"
        elif normal in roles:
            reason = f"the request is the same as the {roles[normal]} one"
        elif normal in invalid:
            reason = "the request was not valid before and is the same again"
        else:
            roles[normal] = role
            continue
        faults[role] = ProbeAudit(role=role, valid=False, leaks=leaks, reason=reason, by_rule=True)
    return faults
