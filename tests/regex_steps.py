"""Counts the steps of a regular expression, so that a test can hold how they grow with the text.

The engine of `re` counts nothing, and time is never asserted. The checkers on PyPI do not serve:
`redoctor` may not be used commercially, `regexploit` imports modules that Python 3.13 removed, and
`dlint` finds exponential patterns only, while every fault that was found here was quadratic. So
`count_steps` matches the parsed pattern as `re` does, by backtracking, and counts what it visits;
`attacks` builds the texts on which a pattern of this form is slow.
"""

import re
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from re import _constants as sre  # pyright: ignore[reportAttributeAccessIssue]
from re import _parser as sre_parser  # pyright: ignore[reportAttributeAccessIssue]
from typing import Any

Then = Callable[[int], int]
"""Matches the rest of a pattern from an offset; the end of the match, or -1."""
Node = Callable[[int, Then], int]
"""Matches a part of a pattern from an offset, and then the rest."""

# A repeat of more is as good as endless for a test of a few hundred characters.
_LONG = 50
_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}
# What a class is filled with, if it takes it: what texts repeat, and what patterns are made of.
_FILLERS = 'a 1\n"-*A<{\u4e2d'


class OutOfStepsError(Exception):
    """A match takes more steps than the test allows."""


class _Matcher:
    """One pattern as functions that call what follows, as a backtracking engine does."""

    def __init__(self, text: str, *, flags: int, limit: int) -> None:
        self.text = text
        self.flags = flags
        self.limit = limit
        self.steps = 0
        self.groups: dict[int, tuple[int, int]] = {}

    def visit(self, count: int = 1) -> None:
        self.steps += count
        if self.steps > self.limit:
            raise OutOfStepsError

    def sequence(self, items: Any, flags: int) -> Node:
        nodes = [self.node(op, value, flags) for op, value in items]

        def match(at: int, then: Then) -> int:
            def rest(index: int) -> Then:
                return then if index == len(nodes) else lambda i: nodes[index](i, rest(index + 1))

            return rest(0)(at)

        return match

    def node(self, op: Any, value: Any, flags: int) -> Node:  # noqa: PLR0911  # one per kind
        if op in {sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN}:
            return self.one(char_test(op, value, flags))
        if op is sre.BRANCH:
            return self.branch([self.sequence(branch, flags) for branch in value[1]])
        if op is sre.SUBPATTERN:
            group, added, removed, inner = value
            return self.group(group, self.sequence(inner, (flags | added) & ~removed))
        if op in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}:
            return self.repeat(op, value, flags)
        if op is sre.ATOMIC_GROUP:
            return self.atomic(self.sequence(value, flags))
        if op in {sre.ASSERT, sre.ASSERT_NOT}:
            direction, inner = value
            back = inner.getwidth()[0] if direction < 0 else 0
            return self.look(self.sequence(inner, flags), back=back, wanted=op is sre.ASSERT)
        if op is sre.AT:
            return self.position(value, flags)
        if op is sre.GROUPREF:
            return self.reference(value, flags)
        if op is sre.FAILURE:
            return lambda _at, _then: -1
        raise NotImplementedError(op)

    def one(self, accepts: Callable[[str], bool]) -> Node:
        def match(at: int, then: Then) -> int:
            self.visit()
            return then(at + 1) if at < len(self.text) and accepts(self.text[at]) else -1

        return match

    def branch(self, branches: list[Node]) -> Node:
        def match(at: int, then: Then) -> int:
            return next((end for node in branches if (end := node(at, then)) >= 0), -1)

        return match

    def group(self, number: int | None, inner: Node) -> Node:
        def match(at: int, then: Then) -> int:
            def close(end: int) -> int:
                before = self.groups.get(number) if number is not None else None
                if number is not None:
                    self.groups[number] = (at, end)
                result = then(end)
                if result < 0 and number is not None and before is not None:
                    self.groups[number] = before
                return result

            return inner(at, close)

        return match

    def atomic(self, inner: Node) -> Node:
        def match(at: int, then: Then) -> int:
            end = inner(at, lambda i: i)
            return then(end) if end >= 0 else -1

        return match

    def look(self, inner: Node, *, back: int, wanted: bool) -> Node:
        def match(at: int, then: Then) -> int:
            self.visit()
            found = at >= back and inner(at - back, lambda i: i) >= 0
            return then(at) if found is wanted else -1

        return match

    def reference(self, number: int, flags: int) -> Node:
        def match(at: int, then: Then) -> int:
            start, end = self.groups.get(number, (0, -1))
            self.visit(max(1, end - start))
            word, here = self.text[start:end], self.text[at : at + end - start]
            if flags & re.IGNORECASE:
                word, here = word.lower(), here.lower()
            return then(at + len(word)) if end >= start and word == here else -1

        return match

    def position(self, kind: Any, flags: int) -> Node:
        pattern = {
            sre.AT_BEGINNING: r"^",
            sre.AT_BEGINNING_STRING: r"\A",
            sre.AT_END: r"$",
            sre.AT_END_STRING: r"\Z",
            sre.AT_BOUNDARY: r"\b",
            sre.AT_NON_BOUNDARY: r"\B",
        }[kind]
        test = re.compile(pattern, flags & re.MULTILINE)

        def match(at: int, then: Then) -> int:
            self.visit()
            return then(at) if test.match(self.text, at) else -1

        return match

    def repeat(self, op: Any, value: Any, flags: int) -> Node:
        least, most, inner = value
        if op is sre.POSSESSIVE_REPEAT:
            return self.atomic(self.repeat(sre.MAX_REPEAT, value, flags))
        if len(inner) == 1 and inner[0][0] in {sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN}:
            return self.run(
                char_test(inner[0][0], inner[0][1], flags), least, most, greedy=op is sre.MAX_REPEAT
            )
        body = self.sequence(inner, flags)

        def times(count: int, at: int, then: Then) -> int:
            def again(end: int) -> int:
                # A round that takes no character would go on for ever.
                return -1 if end == at and count >= least else times(count + 1, end, then)

            more = (lambda: body(at, again)) if count < most else (lambda: -1)
            if count < least:
                return more()
            first, second = (
                (more, lambda: then(at))
                if op is sre.MAX_REPEAT
                else (
                    lambda: then(at),
                    more,
                )
            )
            end = first()
            return end if end >= 0 else second()

        return lambda at, then: times(0, at, then)

    def run(self, accepts: Callable[[str], bool], least: int, most: int, *, greedy: bool) -> Node:
        def match(at: int, then: Then) -> int:
            end, stop = at, min(len(self.text), at + int(most))
            if not greedy:
                while True:
                    if end - at >= least and (result := then(end)) >= 0:
                        return result
                    self.visit()
                    if end >= stop or not accepts(self.text[end]):
                        return -1
                    end += 1
            while end < stop and accepts(self.text[end]):
                end += 1
            self.visit(end - at + 1)
            for last in range(end, at + least - 1, -1):
                if (result := then(last)) >= 0:
                    return result
            return -1

        return match


def char_test(op: Any, value: Any, flags: int) -> Callable[[str], bool]:
    """Whether a character is what one item of a parsed pattern takes."""
    if op is sre.ANY:
        return (lambda _: True) if flags & re.DOTALL else (lambda char: char != "\n")
    items = value if op is sre.IN else [(sre.LITERAL, value)]
    parts: list[str] = []
    for kind, item in items:
        if kind is sre.NEGATE:
            parts.append("^")
        elif kind is sre.LITERAL:
            parts.append(re.escape(chr(item)))
        elif kind is sre.RANGE:
            parts.append(f"{re.escape(chr(item[0]))}-{re.escape(chr(item[1]))}")
        else:
            parts.append(_CATEGORIES[item])
    negated = "^" if op is sre.NOT_LITERAL else ""
    test = re.compile(f"[{negated}{''.join(parts)}]", flags & (re.IGNORECASE | re.ASCII))
    known: dict[str, bool] = {}

    def accepts(char: str) -> bool:
        if char not in known:
            known[char] = test.match(char) is not None
        return known[char]

    return accepts


def count_steps(
    pattern: re.Pattern[str], text: str, *, anchored: bool = False, limit: int = 10**7
) -> int:
    """Steps of finding all matches in a text, or of one attempt at its start if `anchored`.

    Raises:
        OutOfStepsError: If there are more than `limit`.
    """
    matcher = _Matcher(text, flags=pattern.flags, limit=limit)
    whole = matcher.sequence(sre_parser.parse(pattern.pattern, pattern.flags), pattern.flags)
    at = 0
    with _deep_calls():
        while at <= len(text):
            matcher.visit()
            end = whole(at, lambda i: i)
            if anchored:
                break
            at = end if end > at else at + 1
    return matcher.steps


@contextmanager
def _deep_calls() -> Generator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def attacks(pattern: re.Pattern[str]) -> list[tuple[str, str, str]]:
    """Texts as (beginning, what is repeated, end) on which a pattern may be slow.

    For each long repeat: what leads to it, and what it takes. The end is what nothing takes, so
    that every way to divide the text is tried.
    """
    parsed = sre_parser.parse(pattern.pattern, pattern.flags)
    texts: dict[tuple[str, str, str], None] = {}
    whole = _sample(parsed, pattern.flags)
    for before, bodies in _repeats(parsed, pattern.flags, ""):
        for body in bodies:
            for end in ("", "\x00"):
                texts[(before, body, end)] = None
                texts[("", before + body, end)] = None
    if whole:
        texts[("", whole, "\x00")] = None
        texts[("", f"{whole} ", "\x00")] = None
        texts[("", whole[:-1] or whole, "\x00")] = None
    return list(texts)


def _repeats(items: Any, flags: int, before: str) -> Iterator[tuple[str, list[str]]]:
    """Each long repeat: a text that leads to it, and texts of one round."""
    for op, value in items:
        if op in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}:
            _, most, inner = value
            if most > _LONG:
                yield before, _bodies(inner, flags)
            yield from _repeats(inner, flags, before)
        elif op is sre.SUBPATTERN:
            yield from _repeats(value[3], (flags | value[1]) & ~value[2], before)
        elif op is sre.BRANCH:
            for branch in value[1]:
                yield from _repeats(branch, flags, before)
        elif op is sre.ASSERT or op is sre.ASSERT_NOT:
            yield from _repeats(value[1], flags, before)
        elif op is sre.ATOMIC_GROUP:
            yield from _repeats(value, flags, before)
        before += _sample([(op, value)], flags)


def _bodies(inner: Any, flags: int) -> list[str]:
    if len(inner) == 1 and inner[0][0] in {sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN}:
        test = char_test(inner[0][0], inner[0][1], flags)
        return [char for char in _FILLERS if test(char)][:5] or [_sample(inner, flags)]
    if len(inner) == 1 and inner[0][0] is sre.BRANCH:
        return [_sample(branch, flags) for branch in inner[0][1][1]]
    return [_sample(inner, flags)]


def _sample(items: Any, flags: int) -> str:
    """A short text that a parsed pattern takes, as far as its assertions allow."""
    return "".join(_sample_of(op, value, flags) for op, value in items)


def _sample_of(op: Any, value: Any, flags: int) -> str:  # noqa: PLR0911  # one per kind
    if op is sre.LITERAL:
        return chr(value)
    if op in {sre.NOT_LITERAL, sre.ANY, sre.IN}:
        test = char_test(op, value, flags)
        fillers = (
            [*_FILLERS, *(chr(item) for kind, item in value if kind is sre.LITERAL)]
            if (op is sre.IN)
            else list(_FILLERS)
        )
        return next((char for char in fillers if test(char)), "\u3042")
    if op is sre.BRANCH:
        return _sample(value[1][0], flags)
    if op is sre.SUBPATTERN:
        return _sample(value[3], flags)
    if op is sre.ATOMIC_GROUP:
        return _sample(value, flags)
    if op in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}:
        return _sample(value[2], flags) * max(1, int(value[0]))
    return ""
