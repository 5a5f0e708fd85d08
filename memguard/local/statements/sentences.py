"""Splits a turn into sentences."""

import re

_SENTENCE = re.compile(
    "[^.!?\u2026\u3002\uff01\uff1f\\n]+(?:[.!?\u2026\u3002\uff01\uff1f]+[)\"'\u201d\u00bb]{0,2}|\\n|$)"
)
_TITLE = re.compile(
    r"\b(?:mr|mrs|ms|dr|prof|st|vs|approx|e\.g|i\.e|z\.b|bzw|sra?|mme)\.$", re.IGNORECASE
)
# More characters than the longest title or abbreviation has, with the one before it.
_TAIL = 10
# Enough to see whether a month follows.
_HEAD = 6
_ABBREVIATION = re.compile(r"\b(?:[a-z]|no|etc|a\.m|p\.m|ca|nr)\.$", re.IGNORECASE)
_ORDINAL = re.compile(r"\b\d{1,2}\.$")
_MONTH = re.compile(r"(?:jan|feb|m\u00e4r|apr|mai|jun|jul|aug|sep|okt|nov|dez)", re.IGNORECASE)
_QUOTED_LINE = re.compile(r"^[^\S\n]*>.*$", re.MULTILINE)
_STAGE_DIRECTION = re.compile(r"\*[^*\n]+\*")
_CODE = re.compile(r"```.*?(?:```|$)", re.DOTALL)


def opens_with_stage_direction(text: str) -> bool:
    """Whether a turn opens with a stage direction, such as `*smiles*`, and so is role play."""
    return _STAGE_DIRECTION.match(text.lstrip()) is not None


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
        following = plain[match.end() : match.end() + _HEAD]
        if not part.endswith("\n") and (in_quotation or _goes_on(tail, following)):
            continue
        sentences.append("".join(parts).strip())
        parts, straight, opened = [], 0, 0
    return tuple(sentence for sentence in (*sentences, "".join(parts).strip()) if sentence)


def _goes_on(tail: str, following: str) -> bool:
    """Whether a sentence continues after its last characters; `following` comes next."""
    if tail[-2:-1].isdigit() and tail.endswith(".") and following[:1].isdigit():
        return True
    after = following.strip()
    if not after or _TITLE.search(tail):
        return bool(after)
    # German writes "am 14. März", and any language lists its points with numbers.
    if _ORDINAL.search(tail) and (_MONTH.match(after) or after[0].islower()):
        return True
    # After "4 a.m." a capital begins a new sentence, and a small letter continues this one.
    return not after[0].isupper() and _ABBREVIATION.search(tail) is not None
