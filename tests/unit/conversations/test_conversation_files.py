"""Conversations from files as people have them, and from files that are not what they seem."""

import json
from pathlib import Path
from typing import Any

import pytest

from memguard.conversations import load_conversation, read_conversation
from memguard.errors import ErrorCode, InvalidInputError

TALK = [
    {"role": "user", "content": "I live in Porto."},
    {"role": "assistant", "content": "Nice."},
    {"role": "user", "content": "I work as a nurse."},
]
LINES = "".join(json.dumps(message) + "\n" for message in TALK)
LOCOMO: dict[str, Any] = {
    "sample_id": "conv-1",
    "conversation": {
        "session_1": [{"speaker": "Ana", "dia_id": "D1:1", "text": "I live in Porto."}],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_2": [{"speaker": "Ben", "dia_id": "D2:1", "text": "I cook."}],
        "session_3": [],
    },
}


def contents(file: Path) -> list[str]:
    return [turn.content for part in load_conversation(file) for turn in part.turns]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "talk.jsonl"


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(LINES.encode(), id="plain"),
        pytest.param(b"\xef\xbb\xbf" + LINES.encode(), id="utf-8 with a mark"),
        pytest.param(LINES.replace("\n", "\r\n").encode(), id="crlf"),
        pytest.param(LINES.encode("utf-16"), id="utf-16"),
        pytest.param(LINES.replace("\n", "\n\n").encode(), id="blank lines"),
        pytest.param(json.dumps(TALK).encode(), id="a list"),
        pytest.param(json.dumps({"messages": TALK}).encode(), id="messages"),
        pytest.param(json.dumps({"conversation": TALK}).encode(), id="conversation"),
    ],
)
def test_one_conversation_in_many_formats(file: Path, raw: bytes) -> None:
    file.write_bytes(raw)
    assert contents(file) == [message["content"] for message in TALK]


@pytest.mark.parametrize("name", ["talk.jsonl", "talk.json"])
def test_a_file_of_one_message_is_a_conversation_of_one_turn(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(json.dumps(TALK[0]) + "\n", encoding="utf-8")
    assert contents(file) == ["I live in Porto."]
    assert load_conversation(file)[0].id == "talk"


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85"])
def test_a_separator_within_a_text_does_not_end_a_line(file: Path, separator: str) -> None:
    text = f"I live in Porto.{separator}I cook."
    message = json.dumps({"role": "user", "content": text}, ensure_ascii=False)
    file.write_text(f"{message}\n{message}\n", encoding="utf-8")
    assert len(contents(file)) == 2


def test_sessions_of_locomo_are_read_in_order(file: Path) -> None:
    file.write_text(json.dumps([LOCOMO]), encoding="utf-8")
    parts = load_conversation(file)
    assert [part.id for part in parts] == ["conv-1/session_1", "conv-1/session_2"]
    assert parts[0].turns[0].at is not None
    assert parts[1].turns[0].at is None


def changed(**fields: Any) -> dict[str, Any]:
    """LoCoMo's conversation with other fields in its first turn; `None` leaves one out."""
    turn = {**LOCOMO["conversation"]["session_1"][0], **fields}
    present = {name: value for name, value in turn.items() if value is not None}
    return {"sample_id": "c", "conversation": {"session_1": [present]}}


TWICE = LOCOMO["conversation"]["session_1"] * 2
NAMED = {"speaker": "Ana", "dia_id": "D1:1", "text": "I live in Porto."}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(changed(text=None), "turn 1 of session 1 has text None", id="no text"),
        pytest.param(changed(text=5), "turn 1 of session 1 has text 5", id="a number as text"),
        pytest.param(changed(speaker=None), "has speaker None", id="no speaker"),
        pytest.param(changed(dia_id=None), "has dia_id None", id="no id"),
        pytest.param({"conversation": {"session_1": "hi"}}, "session 1 is a str", id="text"),
        pytest.param({"conversation": {"session_1": ["hi"]}}, "turn 1 of session 1", id="turn"),
        pytest.param({"conversation": {"session_1": TWICE}}, "id 'D1:1' of another", id="twice"),
        pytest.param({"conversation": {"speaker_a": "A"}}, "no `session_1`", id="no session"),
        pytest.param(
            {"conversation": {"session_1": [NAMED], "session_1_date_time": "yesterday"}},
            "the time of session 1 is 'yesterday'",
            id="time",
        ),
        pytest.param({"conversation": "hi"}, "neither a list of messages", id="a text"),
        pytest.param([LOCOMO, LOCOMO], "['conv-1', 'conv-1']", id="two of one name"),
        pytest.param([LOCOMO, 5], "message 1", id="locomo and a number"),
        pytest.param({"id": "c"}, "message 1", id="a message without a role"),
        pytest.param([1, 2], "message 1", id="numbers"),
        pytest.param("I live in Porto.", "neither a list of messages", id="a string"),
        pytest.param(None, "neither a list of messages", id="nothing"),
    ],
)
def test_errors_name_the_file_and_the_problem(file: Path, body: Any, message: str) -> None:
    file.write_text(json.dumps(body), encoding="utf-8")
    with pytest.raises(InvalidInputError) as caught:
        load_conversation(file)
    assert caught.value.code == ErrorCode.FILE_UNREADABLE
    assert message in caught.value.message
    assert str(file) in caught.value.message


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        pytest.param(b"", "it is empty", id="empty"),
        pytest.param(b"[" * 100_000, "nested too deep", id="deep"),
        pytest.param(b"[" + b"9" * 5_000 + b"]", "not JSON", id="a number of 5,000 digits"),
        pytest.param(LINES.encode() + b'{"role":', "line 4 is not JSON", id="cut off"),
        pytest.param(b'{"role": "user", "content": "caf\xe9"}', "UTF-8", id="latin-1"),
        pytest.param(bytes(range(256)), "UTF", id="bytes"),
    ],
)
def test_bytes_that_are_not_a_conversation(tmp_path: Path, raw: bytes, message: str) -> None:
    file = tmp_path / "talk.json"
    file.write_bytes(raw)
    with pytest.raises(InvalidInputError, match=message) as caught:
        load_conversation(file)
    assert caught.value.code == ErrorCode.FILE_UNREADABLE


def test_one_conversation_of_several_is_picked_by_name(file: Path) -> None:
    file.write_text(json.dumps([LOCOMO, {**LOCOMO, "sample_id": "conv-2"}]), encoding="utf-8")
    assert load_conversation(file, name="conv-2")[0].id == "conv-2/session_1"
    with pytest.raises(InvalidInputError, match="no conversation was named"):
        load_conversation(file)
    with pytest.raises(InvalidInputError, match="it has no 'conv-9'"):
        load_conversation(file, name="conv-9")


@pytest.mark.parametrize("source", [None, 5, b"x", {"role": "user", "content": "x"}, {}], ids=repr)
def test_other_types_are_refused_by_name(source: Any) -> None:
    with pytest.raises(InvalidInputError, match=f"from a {type(source).__name__}") as caught:
        read_conversation(source)
    assert caught.value.code == ErrorCode.INPUT_INVALID


def test_text_blocks_of_both_protocols_are_read_and_pictures_are_not() -> None:
    blocks = [
        {"type": "text", "text": "a "},
        {"type": "image_url", "image_url": {"url": "data:"}},
        {"type": "input_text", "text": "b "},
        {"type": "output_text", "text": "c"},
    ]
    read = read_conversation([{"role": "user", "content": blocks}])
    assert read.turns[0].content == "a b c"
