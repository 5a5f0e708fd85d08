"""Counts the work of a function on a text, so that a test can hold how it grows with the text.

What is counted: every call, and the characters that string methods and compiled patterns are given.
What a pattern does with them is counted in `tests.regex_steps`. Time is never asserted.
"""

import re
import sys
from collections.abc import Callable, Iterable
from types import FrameType, ModuleType
from typing import Any

import pytest

# Methods that read their whole string; `find` and `endswith` may stop early.
_READING = {
    "count", "lower", "casefold", "split", "splitlines", "replace", "strip", "rstrip", "lstrip",
    "translate", "encode",
}  # fmt: skip


class _Counter:
    def __init__(self) -> None:
        self.count = 0


class _Counted:
    """A compiled pattern that adds the characters it is given."""

    def __init__(self, pattern: re.Pattern[str], counter: _Counter) -> None:
        self._pattern = pattern
        self._counter = counter

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._pattern, name)
        if name not in {"search", "match", "fullmatch", "finditer", "findall", "sub", "subn"}:
            return method

        def call(*args: Any, **keywords: Any) -> Any:
            text = args[1] if name in {"sub", "subn"} else args[0]
            span = args[1:3] if name in {"search", "finditer", "findall"} else ()
            start, end = (*span, *(0, len(text))[len(span) :])
            # An attempt at one place reads what matches, and that is read once.
            self._counter.count += 1 if name in {"match", "fullmatch"} else end - start
            return method(*args, **keywords)

        return call


def count_work(call: Callable[[str], object], text: str, *, modules: Iterable[ModuleType]) -> int:
    """The work of one call on a text; patterns are counted in these modules."""
    counter = _Counter()

    def profile(_frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            counter.count += 1
        elif event == "c_call":
            owner = getattr(argument, "__self__", None)
            reads = isinstance(owner, str) and argument.__name__ in _READING
            counter.count += 1 + (len(owner) if reads and isinstance(owner, str) else 0)

    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            for name, value in vars(module).copy().items():
                if isinstance(value, re.Pattern):
                    patch.setattr(module, name, _Counted(value, counter))
        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            call(text)
        finally:
            sys.setprofile(before)
    return counter.count
