"""What holds for the relations of any two texts."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from memguard.local.corrections import read_relations
from memguard.local.event_times import event_time
from memguard.schema.memory import CandidateMemory, SaidBy
from memguard.schema.relations import Neighbour, RelationVerdict

NOW = datetime(2026, 12, 1, tzinfo=UTC)
VOCABULARY = """
I my we not no longer live lives moved in to Porto Lisbon work at Bosch smoke quit 34 20 mg euros
rent is now sister dog Rex and but from ich wohne nicht mehr jetzt in Köln Auto habe vivo en ya no
fumo ahora tengo años j'habite à ne plus maintenant 我 住在 北京 不再 搬到 上海 了
. , ? ; : " 5 Monday on March since 2019 last spring for two weeks might if
"""
AUTHORS: tuple[SaidBy, ...] = ("document", "tool", "assistant")
PIECES = st.lists(st.sampled_from(VOCABULARY.split()), min_size=1, max_size=14).map(" ".join)
TEXTS = st.one_of(PIECES, st.text(min_size=1, max_size=80)).filter(str.strip)
FRAMES = (
    "My rent is {} euros.",
    "I take {} mg of metformin.",
    "I have {} cats.",
    "Ich bin {} Jahre alt.",
    "Tengo {} hijos.",
    "J'ai {} chats.",
    "我有{}只猫。",
)


def verdict(candidate: str, neighbour: str, *, said_by: SaidBy = "user") -> RelationVerdict:
    reading = read_relations(
        CandidateMemory(text=candidate, said_by=said_by),
        [Neighbour(namespace=("ana",), key="key", text=neighbour)],
        now=NOW,
    )
    (one,) = reading.verdicts
    return one


@given(TEXTS, TEXTS)
def test_any_two_texts_have_a_relation(first: str, second: str) -> None:
    assert verdict(first, second).key == "key"


@given(TEXTS)
def test_a_text_repeats_itself(text: str) -> None:
    assert verdict(text, text).relation == "duplicate"


@given(TEXTS, TEXTS)
def test_duplicates_are_symmetrical(first: str, second: str) -> None:
    there, back = verdict(first, second), verdict(second, first)
    assert (there.relation == "duplicate") == (back.relation == "duplicate")


@given(st.sampled_from(FRAMES), st.integers(2, 9_999), st.integers(2, 9_999))
def test_another_number_is_never_a_duplicate(frame: str, first: int, second: int) -> None:
    found = verdict(frame.format(first), frame.format(second))
    assert (found.relation == "duplicate") == (first == second)


@given(TEXTS, TEXTS, st.sampled_from(AUTHORS))
def test_another_author_replaces_nothing_for_certain(
    first: str, second: str, author: SaidBy
) -> None:
    found = verdict(first, second, said_by=author)
    assert not (found.relation == "supersedes" and found.certain)


@given(TEXTS, st.one_of(st.none(), st.datetimes(timezones=st.just(UTC))))
def test_an_event_has_a_time_in_utc_or_none(text: str, said_at: datetime | None) -> None:
    found = event_time(text, said_at=said_at)
    assert found is None or found.tzinfo is UTC
