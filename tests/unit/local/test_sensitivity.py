"""Which memories are not for a group, by their words, in five languages."""

import json
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memguard.local.sensitivity import is_unread, sensitive_topic

DATA = Path(__file__).parents[2] / "data" / "sensitivity.jsonl"
CASES = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]


def test_the_set_has_traps_in_every_language() -> None:
    counts: dict[tuple[str, bool], int] = defaultdict(int)
    for case in CASES:
        counts[case["language"], case["topic"] is not None] += 1
    assert len(CASES) >= 120
    assert all(
        counts[language, sensitive] >= 10
        for language in ("en", "de", "es", "fr", "zh")
        for sensitive in (True, False)
    )


@pytest.mark.parametrize("case", [case for case in CASES if case["topic"]], ids=str)
def test_what_is_sensitive_is_recognised(case: dict[str, str]) -> None:
    assert sensitive_topic(case["text"]) == case["topic"]


@pytest.mark.parametrize("case", [case for case in CASES if not case["topic"]], ids=str)
def test_what_only_sounds_so_is_not(case: dict[str, str]) -> None:
    assert sensitive_topic(case["text"]) is None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_five_languages_are_read(case: dict[str, str]) -> None:
    assert not is_unread(case["text"])


@pytest.mark.parametrize(
    "text",
    [
        "Mijn zus heeft een nieuwe baan gevonden in de stad.",
        "O utilizador não gosta muito de sair à noite com os colegas dele.",
        "ユーザーは京都に住んでいます。",
        "Пользователь живёт в Москве и любит кофе.",
    ],
)
def test_another_language_is_not_read(text: str) -> None:
    assert is_unread(text)


_SENSITIVE = st.sampled_from([case["text"] for case in CASES if case["topic"]])
_PLAIN = st.sampled_from([case["text"] for case in CASES if not case["topic"]])


@given(_SENSITIVE, _PLAIN, st.booleans())
def test_a_part_is_enough(sensitive: str, plain: str, first: bool) -> None:
    text = f"{sensitive} {plain}" if first else f"{plain} {sensitive}"
    assert sensitive_topic(text) is not None


@given(_SENSITIVE)
def test_capitals_and_full_width_letters_conceal_nothing(text: str) -> None:
    assert sensitive_topic(text.upper()) is not None
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)
    assert sensitive_topic(wide) is not None


@given(st.text(max_size=300))
def test_every_text_is_answered(text: str) -> None:
    assert sensitive_topic(text) in {None, "health", "family", "money", "job_search"}
