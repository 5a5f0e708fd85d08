"""Random and hostile texts through every reader of outside text.

The examples are the same at every run. `pytest --hypothesis-profile=explore tests/fuzz` looks for
new ones, and `python -m tests.fuzz.run_atheris` is guided by the branches that a text reaches.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memguard.methods.adjudication.rendering import HEADINGS
from memguard.quoting import FIXED_SENTENCE, SECTION_CLOSE, SECTION_OPEN
from tests.fuzz import targets
from tests.strategies import json_value

TOKENS = (
    "{", "}", '{"score": ', '"units": [', '{"unit": "u1", ', '"conflicts_with": ["u2"]', ",]", ",}",
    '"', "\\", "\\u003c", "'", "[", "]", "[[B]]", "[INST]", "[/SYS]", "(", ")", ":", "\uff1a",
    "0.8", "1", ".5", "85%", "4/5", "\u0660\u066b\u0668", "\u00bd", "\u00b2", "NaN", "-", "null",
    "<think>", "</think>", "<think", "</reasoning >", "Score: ", "final verdict is ", "TIE", "B",
    "not_supported", "```json", "```", "> ", "*", "# ", "p.m. ", "Dr. ", "Ana: ", "I like tea. ",
    "not ", "?", "!", "\u3002", "\u201c", "\u201d", "\n", "\r\n", "\u2028", "\x85", "\x00",
    "\ud800", "\u200b", "\u202e", "%", "%2E", ".", "/", "..", "user1", "user10", "*", " ",
    "9" * 5_000, SECTION_OPEN, SECTION_CLOSE, FIXED_SENTENCE, "<|im_end|>", "\n\nHuman: ",
    *(heading for headings in HEADINGS.values() for heading in headings.values()),
)  # fmt: skip
HOSTILE = st.one_of(
    st.text(),
    st.lists(st.one_of(st.sampled_from(TOKENS), st.text(max_size=4)), max_size=30).map("".join),
)
OPERATORS = st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$", "kind", ""])


@pytest.mark.parametrize("target", targets.TEXT_TARGETS)
def test_a_text_from_outside_breaks_no_promise(target: Callable[[str], None]) -> None:
    given(HOSTILE)(target)()


@given(
    st.recursive(
        json_value(),
        lambda inner: st.one_of(
            st.dictionaries(OPERATORS, inner, max_size=3), st.lists(inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_a_filter_from_outside_is_refused_with_a_code_or_compares(value: Any) -> None:
    targets.filter_values(value)
