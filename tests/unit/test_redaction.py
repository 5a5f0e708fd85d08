"""Secrets are recognized, ordinary numbers and sentences are not."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memguard.llm.failures import redact as redact_for_errors
from memguard.redaction import (
    find_sensitive,
    is_secret,
    redact,
    redact_error,
    redact_values,
    sensitive_kinds,
)

CASES = json.loads((Path(__file__).parents[1] / "data" / "secrets.json").read_text("utf-8"))

words = st.sampled_from(
    ["password", "is", "hunter2", ":", "PIN", "4821", "sk-abc", "[password]", '"', "key", "=",
     "4111 1111 1111 1111", "://a:b@", "Bearer", "\u0430", "\u200b", "x" * 30 + "1", "\n"]
)  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), CASES["secret"])
def test_a_secret_is_recognized_and_removed(kind: str, text: str) -> None:
    assert sensitive_kinds(text) == (kind,)
    (finding,) = find_sensitive(text)
    secret = text[finding.start : finding.end]
    assert secret not in redact(text)
    assert f"[{kind}]" in redact(text)
    assert is_secret(finding.kind)


@pytest.mark.parametrize("text", CASES["ordinary"])
def test_an_ordinary_text_stays(text: str) -> None:
    assert find_sensitive(text) == ()
    assert redact(text) == text


def test_the_sets_are_large_enough() -> None:
    assert len(CASES["secret"]) >= 40
    assert len(CASES["ordinary"]) >= 40


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("e-mail address", "Write to ana.b+work@mail.example.co.uk soon."),
        ("phone number", "Her number is +49 151 23456789."),
        ("phone number", "Call (555) 234-9876 after six."),
        ("phone number", "His mobile is 0151 2345678."),
        ("street address", "The user lives at 12 Baker Street."),
        ("street address", "Die Nutzerin wohnt in der Hauptstraße 5."),
        ("street address", "J'habite 5 rue de la Paix"),
        ("identity number", "Her number is 123-45-6789."),
    ],
)
def test_personal_data_is_looked_for_only_where_asked(kind: str, text: str) -> None:
    assert sensitive_kinds(text) == ()
    assert sensitive_kinds(text, screen="personal") == (kind,)
    assert sensitive_kinds(text, screen="nothing") == ()
    assert f"[{kind}]" in redact(text, screen="personal")


@pytest.mark.parametrize(
    "text",
    [
        "The user was born in 1984 and moved in 2019.",
        "The order 2024-000123 has 3 items.",
        "The user ran 10 km on Sunday.",
        "The user likes the Golden Gate.",
        "The handle is @ana on the forum.",
    ],
)
def test_ordinary_texts_are_no_personal_data(text: str) -> None:
    assert sensitive_kinds(text, screen="personal") == ()


def test_a_secret_in_look_alike_characters_is_recognized() -> None:
    text = "My p\u0430ssword is hunter2."
    assert sensitive_kinds(text) == ("password",)
    assert redact(text) == "My password is [password]."


@given(st.lists(words, max_size=12).map(" ".join))
def test_a_redacted_text_has_no_secret(text: str) -> None:
    once = redact(text)
    assert sensitive_kinds(once) == ()
    assert redact(once) == once


def test_values_keep_their_shape() -> None:
    value = {"content": ["PIN is 4821", 7, None], "k": ("x", {"password": "hunter2"})}
    assert redact_values(value) == {
        "content": ["PIN is [password]", 7, None],
        "k": ("x", {"password": "[password]"}),
    }


def test_messages_of_providers_use_the_same_rules() -> None:
    for _, text in CASES["secret"]:
        (finding,) = find_sensitive(text)
        assert text[finding.start : finding.end] not in redact_error(text)
    assert redact_for_errors("key sk-abc***xyz1 and own", ("own",)) == "key [key] and [key]"
