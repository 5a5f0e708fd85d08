"""Which language a short text is in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memguard.local.languages import language_of

TEXTS = {
    "en": (
        "I am allergic to peanuts.",
        "My fiancé lives in Köln.",
        "Cinnamon makes porridge better.",
        "Jazz trios are my favourite",
        "i dont drink coffee lol",
        "Tomas eats meat",
    ),
    "de": (
        "Ich wohne seit 2019 in Köln.",
        "Bin Vegetarierin.",
        "Wir haben zwei Katzen",
        "Nüsse vertrage ich nicht",
    ),
    "es": (
        "Soy alérgica a los cacahuetes.",
        "Vivo en Madrid desde 2019",
        "No como carne",
        "Me gusta el café",
    ),
    "fr": (
        "Je suis allergique aux arachides.",
        "J'habite à Paris",
        "On a deux chats",
    ),
    "zh": ("我对花生过敏。", "我用Python写代码"),
    "other": (
        "Sono allergico alle noccioline.",
        "Vivo a Roma con mia moglie",
        "Eu moro em Lisboa há dois anos.",
        "Ik woon in Utrecht.",
        "Jag bor i Stockholm.",
        "私は東京に住んでいます。",
        "Я живу в Москве.",
        "저는 서울에 살아요",
        "Mam dwa koty i psa.",
    ),
}


@pytest.mark.parametrize(
    ("language", "text"), [(code, text) for code, texts in TEXTS.items() for text in texts]
)
def test_language_of_short_texts(language: str, text: str) -> None:
    assert language_of(text) == language


def test_without_a_function_word_the_text_around_decides() -> None:
    assert language_of("Lyon.", default="fr") == "fr"
    assert language_of("42", default="de") == "de"


@given(st.text(max_size=80))
def test_every_text_has_a_language(text: str) -> None:
    assert language_of(text) in {"en", "de", "es", "fr", "zh", "other"}
