"""The sets of corrections, look-ups and audiences: their form, and how they are counted."""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import ValidationError

from benchmarks.reconcile import lookups, pairs, policy, scripts, sets
from memguard.chroma.store import ChromaStore
from memguard.schema.decision import Inconclusive
from memguard.schema.memory import CandidateMemory, Lifecycle
from memguard.schema.read import UnitVerdict
from memguard.schema.receipt import Receipt
from memguard.schema.units import Permission, Unit

LANGUAGES = {"en", "de", "es", "fr", "zh"}
CASES = {case.id: case for case in sets.policy_cases()}
AT = datetime(2026, 1, 1, tzinfo=UTC)
SET_MIN = {
    "pairs_held_out": 200,
    "pairs_second": 200,
    "pairs_third": 150,
    "lookups": 75,
    "audience": 40,
}


# -- the sets ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["policy_cases", *SET_MIN])
def test_every_line_is_json_and_ids_are_unique(name: str) -> None:
    lines = (sets.DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ids = [json.loads(line)["id"] for line in lines]
    assert len(set(ids)) == len(ids) >= SET_MIN.get(name, 90)


def test_the_policy_cases_cover_five_languages_and_cross_them() -> None:
    counts = Counter(case.language for case in CASES.values())
    assert set(counts) == LANGUAGES
    assert min(counts.values()) >= 14
    crossing = [case for case in CASES.values() if len(set(case.languages)) == 2]
    assert len(crossing) >= 6
    assert {case.kind for case in crossing} >= {"correction", "duplicate"}


def test_the_policy_cases_cover_what_must_never_supersede() -> None:
    never = {
        "forwarded_mail",
        "pasted_chat",
        "tool_output",
        "hearsay",
        "role_play",
        "temporary",
        "late_import",
        "other_person",
        "second_value",
        "plan",
    }
    kinds = Counter(case.kind for case in CASES.values())
    assert never | {"event_time", "chain", "back_to_old", "contradiction"} <= set(kinds)
    for case in CASES.values():
        if case.kind in never:
            assert not any("superseded" in memory.after for memory in case.memories), case.id


def test_every_policy_case_is_possible() -> None:
    for case in CASES.values():
        cited = {t.role for t in case.candidate.turns if t.id in case.candidate.turn_ids}
        assert cited == {case.candidate.said_by}, case.id
        assert len({memory.text for memory in case.memories}) == len(case.memories)
        # Something is current afterwards, whatever the policy does where it is free.
        assert case.current or case.candidate.after != ("not_stored",), case.id
        if case.candidate.after == ("not_stored",):
            assert any("confirmed" in memory.after for memory in case.memories), case.id
        if any(memory.after == ("superseded",) for memory in case.memories):
            assert case.candidate.said_by == "user", case.id


@pytest.mark.parametrize("name", sets.PAIR_SETS)
def test_half_of_the_pairs_are_traps(name: sets.PairSet) -> None:
    rows = sets.pairs(name)
    assert {row.language for row in rows} == LANGUAGES
    assert 0.4 <= sum(row.trap for row in rows) / len(rows) <= 0.6
    counts = Counter(row.label for row in rows)
    assert set(counts) == {"duplicate", "refines", "supersedes", "contradicts", "coexists"}
    assert counts["duplicate"] >= 40
    assert counts["supersedes"] >= 30
    assert not any(row.trap for row in rows if row.label in ("duplicate", "supersedes"))


def test_the_third_set_of_pairs_is_the_same_mix_in_every_language() -> None:
    counts = Counter((row.language, row.label) for row in sets.pairs("third"))
    mix = {"duplicate": 9, "supersedes": 6, "refines": 3, "contradicts": 2, "coexists": 10}
    assert counts == {
        (language, label): count for language in LANGUAGES for label, count in mix.items()
    }


def test_the_sets_of_pairs_share_no_pair() -> None:
    rows = [row for name in sets.PAIR_SETS for row in sets.pairs(name)]
    assert len({(row.stored, row.new) for row in rows}) == len(rows)


def test_look_ups_have_labels_that_fit() -> None:
    rows = sets.lookups()
    assert {row.language for row in rows} == LANGUAGES
    assert sum(row.is_lookup for row in rows) >= 60
    kinds = Counter(row.kind for row in rows)
    assert kinds["stale"] >= 15
    assert kinds["not_lookup"] >= 10
    for row in rows:
        assert len({memory.text for memory in row.memories}) == len(row.memories), row.id
        assert row.is_lookup == any(m.label == "must" for m in row.memories) or row.kind == "stale"
        for memory in row.memories:
            assert memory.said_at is not None
            assert memory.said_at < sets.NOW
            assert all(index < len(row.memories) for index in memory.conflicts_with)
            if memory.label == "must" and memory.shown == "past":
                assert memory.superseded_by is not None


def test_sensitive_memories_have_traps_in_every_language() -> None:
    rows = sets.audience()
    for language in LANGUAGES:
        counts = Counter(row.label for row in rows if row.language == language)
        assert set(counts) == {"health", "family", "money", "job_search", "none"}
        assert counts["none"] >= 4


def test_a_case_with_a_name_that_is_not_there_is_refused() -> None:
    case = CASES["en-01"]
    memory = case.memories[0].model_copy(update={"superseded_by": "nobody"})
    with pytest.raises(ValidationError, match="do not fit"):
        sets.PolicyCase.model_validate({**case.model_dump(), "memories": [memory.model_dump()]})


# -- what follows from right answers ----------------------------------------------------------


@pytest.mark.parametrize("case_id", sorted(CASES))
async def test_a_policy_case_ends_as_labelled(case_id: str) -> None:
    case = CASES[case_id]
    result = await policy.run_case(case)
    assert result.wrong == ()
    assert case.current <= result.current
    ended = {memory.name for memory in case.memories if memory.after == ("superseded",)}
    assert not ended & result.current


async def test_a_correction_ends_the_old_value_when_the_event_happened() -> None:
    case = CASES["en-16"]
    result = await policy.run_case(case)
    after = result.lifecycles["m1"]
    assert after.ended_as == "superseded"
    assert after.valid_until == sets.start_of_day(case.candidate.event_at)
    assert after.reason


@pytest.mark.parametrize("case_id", ["en-01", "de-16", "x-04", "fr-18", "zh-12"])
async def test_a_policy_case_ends_the_same_on_chroma(case_id: str) -> None:
    async with ChromaStore.memory(embed=scripts.OneDirection()) as store:
        result = await policy.run_case(CASES[case_id], store=store)
    assert result.wrong == ()


async def test_look_ups_with_an_exact_adjudicator_get_what_they_need() -> None:
    rows = [row for row in sets.lookups() if row.language in ("en", "zh")]
    results = await lookups.measure_lookups(rows, adjudicator="exact")
    answers = lookups.answers_wholly(results)
    # A code that reads like a password is shown without its figures.
    assert sum(answers.values()) >= 0.95 * len(answers)
    assert not any(r.is_present for r in results if r.memory.label == "must_not")


# -- how they are counted ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        (Lifecycle(), Lifecycle(), "unchanged"),
        (Lifecycle(), Lifecycle(ended_as="superseded", superseded_by="k"), "superseded"),
        (Lifecycle(), Lifecycle(conflicts_with=("k",)), "conflicting"),
        (Lifecycle(conflicts_with=("k",)), Lifecycle(conflicts_with=("k",)), "unchanged"),
        (Lifecycle(conflicts_with=("k",)), Lifecycle(), "unchanged"),
        (Lifecycle(), Lifecycle(confirmed_at=AT), "confirmed"),
        (Lifecycle(superseded_by="a"), Lifecycle(superseded_by="b"), "unchanged"),
    ],
)
def test_the_state_of_a_memory_is_what_changed(
    before: Lifecycle, after: Lifecycle, state: sets.MemoryState
) -> None:
    assert policy.memory_state(before, after) == state


def _receipt(outcome: str, reason: str = "supported", **fields: object) -> Receipt:
    return Receipt.model_validate(
        {
            "id": "r",
            "at": AT,
            "run_id": "run",
            "candidate": CandidateMemory(text="I live in Porto."),
            "namespace": ("memories",),
            "decision": {"outcome": outcome, "reason": reason, "explanation": ""},
            "lifecycle": Lifecycle.model_validate(fields),
        }
    )


@pytest.mark.parametrize(
    ("receipt", "state"),
    [
        (_receipt("admit"), "current"),
        (_receipt("admit", detail_of="k"), "detail"),
        (_receipt("admit", conflicts_with=("k",)), "conflicting"),
        (_receipt("admit", superseded_by="k", ended_as="superseded"), "superseded"),
        (_receipt("reject", "duplicate"), "not_stored"),
        (_receipt("quarantine", "inconclusive"), "held"),
    ],
)
def test_the_state_of_a_candidate_is_on_its_receipt(
    receipt: Receipt, state: sets.CandidateState
) -> None:
    assert policy.candidate_state(receipt) == state


def test_a_policy_result_says_what_is_wrong() -> None:
    case = CASES["en-10"]
    result = policy.PolicyResult(
        case=case,
        memories={"m1": "superseded"},
        candidate="current",
        current=frozenset({"new"}),
        recalled=frozenset({"m1"}),
        lifecycles={},
    )
    assert result.wrong == ("m1 is superseded, not unchanged",)
    assert result.wrongly_superseded == ("m1",)
    assert case.current == {"m1", "new"}


def _pair(label: str, stored: str, new: str, *, trap: bool = False) -> pairs.PairResult:
    pair = sets.TextPair.model_validate(
        {
            "id": "p",
            "language": "en",
            "label": label,
            "trap": trap,
            "stored": "a",
            "stored_at": AT,
            "new": "b",
            "new_at": AT,
        }
    )
    return pairs.PairResult(
        pair=pair,
        stored=stored,  # pyright: ignore[reportArgumentType]
        new=new,  # pyright: ignore[reportArgumentType]
    )


def test_figures_of_pairs_count_each_in_its_own_whole() -> None:
    figures = pairs.pair_figures(
        [
            _pair("supersedes", "superseded", "current"),
            _pair("supersedes", "conflicting", "conflicting"),
            _pair("duplicate", "confirmed", "not_stored"),
            _pair("duplicate", "unchanged", "current"),
            _pair("coexists", "confirmed", "not_stored", trap=True),
            _pair("contradicts", "superseded", "current", trap=True),
            _pair("coexists", "unchanged", "current", trap=True),
        ]
    )
    assert sum(figures.wrongly_superseded) == 1
    assert len(figures.wrongly_superseded) == 7
    assert figures.supersedes_found == [True, False]
    assert figures.duplicates_found == [True, False]
    assert figures.duplicates_right == [True, False]
    assert figures.traps_safe == [False, False, True]


def _verdict(
    permission: Permission, *, superseded: bool = False, shown: bool = True
) -> UnitVerdict:
    return UnitVerdict(
        unit=Unit(id="u", memory_id="m", text="t", superseded=superseded),
        permission=permission,
        row="row",
        withheld=None if shown else "denied",
    )


@pytest.mark.parametrize(
    ("verdicts", "presence"),
    [
        ((), "absent"),
        ((_verdict("DENY", shown=False),), "absent"),
        ((_verdict("CONTEXT"),), "certain"),
        ((_verdict("CONTEXT_UNCERTAIN"),), "uncertain"),
        ((_verdict("CONTEXT_UNCERTAIN"), _verdict("CONTEXT")), "certain"),
        ((_verdict("CONTEXT", superseded=True),), "past"),
        ((_verdict("CONTEXT"), _verdict("DENY", shown=False)), "certain"),
    ],
)
def test_a_memory_is_in_the_prompt_as_its_strongest_piece(
    verdicts: Sequence[UnitVerdict], presence: lookups.Presence
) -> None:
    assert lookups.presence_of(verdicts) == presence


def test_a_piece_without_the_figures_of_a_memory_does_not_count() -> None:
    verdicts = [_verdict("CONTEXT")]
    assert lookups.presence_of(verdicts, text="t") == "certain"
    assert lookups.presence_of(verdicts, text="t 4711") == "absent"


def test_a_look_up_is_whole_only_if_every_memory_is_right() -> None:
    lookup = next(row for row in sets.lookups() if row.id == "en-05")
    results = [
        lookups.LookupResult(
            lookup=lookup,
            memory=memory,
            presence=presence,
            is_recalled=True,
            explanation="",
        )
        for memory, presence in zip(lookup.memories, ("uncertain", "certain"), strict=True)
    ]
    assert [result.is_right for result in results] == [True, False]
    assert lookups.answers_wholly(results) == {"en-05": False}
    assert lookups.answers_wholly(results[:1]) == {"en-05": True}


def test_the_exact_reader_answers_what_is_labelled() -> None:
    case = CASES["en-22"]
    assert isinstance(case.memories[0].relation, Inconclusive)
    case = CASES["en-16"]
    text = case.memories[0].text
    prompt = (
        f"<stored_memories>\n[m1] said 2024-11-20 by user: {json.dumps(text)}\n"
        '[m2] said 2025-01-01 by user "Ana \\"A\\"": "Something else."\n</stored_memories>'
    )
    answer = json.loads(str(scripts.exact_reader(case).invoke(prompt).content))
    assert [row["relation"] for row in answer["relations"]] == ["supersedes", "coexists"]
    assert answer["event_at"] == "2025-04-15"
    assert answer["assertion"] == "plain"


def test_the_sets_say_how_they_came_about() -> None:
    page = Path(sets.__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")
    assert "python -m benchmarks.reconcile" in page
