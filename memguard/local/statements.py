"""Finds the declarative statements of a turn by rules, without a language model.

Without a model a memory cannot be phrased, but it can be picked: a sentence in which the speaker
states something as a fact. Left out are questions, hypotheticals, wishes, quotations, role play,
requests and small talk. The rules are for English. In other languages they leave out questions and
quotations, and keep the rest.
"""

import re
from functools import lru_cache

_SENTENCE = re.compile(r"[^.!?\u3002\uff01\uff1f\n]+(?:[.!?\u3002\uff01\uff1f]+|\n|$)")
_TITLE = re.compile(r"\b(?:mr|mrs|ms|dr|prof|st|vs|approx|e\.g|i\.e)\.$", re.IGNORECASE)
# More characters than the longest title or abbreviation has, with the one before it.
_TAIL = 10
_ABBREVIATION = re.compile(r"\b(?:[a-z]|no|etc|a\.m|p\.m)\.$", re.IGNORECASE)
_QUOTED = re.compile(
    '"[^"\\n]*"|\u201c[^\u201c\u201d\\n]*\u201d|\u00ab[^\u00ab\u00bb\\n]*\u00bb'
    "|\u201e[^\u201e\u201c\\n]*\u201c"
)
_QUOTED_LINE = re.compile(r"^[^\S\n]*>.*$", re.MULTILINE)
_STAGE_DIRECTION = re.compile(r"\*[^*\n]+\*")
_CODE = re.compile(r"```.*?(?:```|$)", re.DOTALL)

# Many questions in chats have no question mark, so that their first word decides.
_QUESTION = re.compile(
    r"^(?:so |and |but |well |ok(?:ay)?,? |hey,? |hi,? )*"
    r"(?:what|who|whom|whose|when|where|why|which|how|do|does|did|is|are|was|were|am|can|could|"
    r"will|would|should|shall|may|might|have you|has|any ideas?|right)\b"
    r"(?!.*\bis (?:why|how|what))",
    re.IGNORECASE,
)
_HYPOTHETICAL = re.compile(
    r"\b(?:if|suppose|supposing|imagine|assuming|unless|wish|hopefully|hypothetically|what if|"
    r"would|could|might|maybe|perhaps|probably)\b"
    r"|\b(?:i|we|he|she|they|you)['\u2019]d\b(?! (?:been|had))",
    re.IGNORECASE,
)
_ROLE_PLAY = re.compile(
    r"\b(?:pretend|role ?play|act as|you are now|you're now|let's say|in this (?:story|game|scene)|"
    r"my character|once upon)\b",
    re.IGNORECASE,
)
# Verbs that begin a request to the assistant.
_DEMAND = re.compile(
    r"^(?:please|kindly|remember|store|save|note|ignore|forget|disregard|tell|show|give|help|write|"
    r"make|let|put|add|remove|use|call|send|find|explain|describe|suggest|recommend|plan|answer|"
    r"output|say|repeat|translate|summari[sz]e|list|do not|don't|never mind|consider|check|look|"
    r"try|thanks|thank you|have (?:a|an|some|fun)|enjoy|(?:book|order|get|bring|buy) (?:me|us)|"
    r"compare|draft|create|generate|schedule|remind|choose|pick|wait|stop|go ahead|come on)\b",
    re.IGNORECASE,
)
# Somebody who writes about storing or scoring addresses the memory, as a prompt injection does.
_ABOUT_STORING = re.compile(
    r"\b(?:store|save|memori[sz]e|remember)\b.{0,40}\b(?:this|that|always|forever|it)\b|"
    r"\bscore\s{0,3}[:=]?\s{0,3}\d|\b(?:previous|prior|all|your) (?:rules|instructions)\b",
    re.IGNORECASE,
)
_SMALL_TALK = re.compile(
    r"^(?:hi|hey|hello|bye|goodbye|good (?:morning|evening|night)|thanks|thank you|ok(?:ay)?|sure|"
    r"yes|no|nope|yeah|yep|wow|great|cool|nice|interesting|lol|haha\w*|see you|take care|same here|"
    r"sounds (?:good|great)|that's (?:great|nice|cool|awesome|good))\b[^.]{0,25}[.!]*$",
    re.IGNORECASE,
)
_MIN_WORDS = 3
_WORD = re.compile(r"\w+")
_SPACELESS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]")
_MIN_SPACELESS = 5


# Cached, because every candidate of a run is compared with the statements of the same turns.
@lru_cache(maxsize=32)
def find_statements(text: str) -> tuple[str, ...]:
    """The sentences of a turn in which its speaker states a fact, verbatim and in order."""
    # A turn that opens with a stage direction, such as `*smiles*`, is role play.
    if _STAGE_DIRECTION.match(text.lstrip()):
        return ()
    return tuple(sentence for sentence in split_sentences(text) if is_statement(sentence))


def split_sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, without code, quoted lines and stage directions."""
    plain = _STAGE_DIRECTION.sub(" ", _QUOTED_LINE.sub("\n", _CODE.sub("\n", text)))
    sentences: list[str] = []
    parts: list[str] = []
    straight = opened = 0
    for match in _SENTENCE.finditer(plain):
        part = match[0]
        parts.append(part)
        # Counted part by part: a sentence of thousands of parts would be read as often.
        straight += part.count('"')
        opened += part.count("\u201c") - part.count("\u201d")
        in_quotation = straight % 2 == 1 or opened > 0
        # "a.m.", "Dr." and "3.5" end no sentence, and a quotation is not split.
        tail = "".join(parts[-_TAIL:])[-_TAIL:]
        following = plain[match.end() : match.end() + 2]
        if not part.endswith("\n") and (in_quotation or _goes_on(tail, following)):
            continue
        sentences.append("".join(parts).strip())
        parts, straight, opened = [], 0, 0
    return tuple(sentence for sentence in (*sentences, "".join(parts).strip()) if sentence)


def is_statement(sentence: str) -> bool:
    """Whether the speaker states a fact, and does not quote somebody else."""
    if _QUOTED.search(sentence) or sentence.rstrip("\"')").endswith(("?", "\uff1f")):
        return False
    # "Dogs too." says nothing without its context. Without spaces, characters are counted.
    words = _WORD.findall(sentence)
    if _SPACELESS.search(sentence):
        long = len("".join(words)) >= _MIN_SPACELESS
    else:
        long = len(words) >= _MIN_WORDS
    if not long:
        return False
    if any(pattern.match(sentence) for pattern in (_QUESTION, _DEMAND, _SMALL_TALK)):
        return False
    anywhere = (_HYPOTHETICAL, _ROLE_PLAY, _ABOUT_STORING)
    return not any(pattern.search(sentence) for pattern in anywhere)


def _goes_on(tail: str, following: str) -> bool:
    """Whether a sentence continues after its last characters; `following` is the next two."""
    if tail[-2:-1].isdigit() and tail.endswith(".") and following[:1].isdigit():
        return True
    after = following.strip()
    if not after or _TITLE.search(tail):
        return bool(after)
    # After "4 a.m." a capital begins a new sentence, and a small letter continues this one.
    return not after[0].isupper() and _ABBREVIATION.search(tail) is not None
