from memguard.journal.caches import ExtractionLog, LoggedExtraction
from memguard.journal.journal import Journal
from memguard.schema.memory import CandidateMemory

TEA = CandidateMemory(text="Ana likes tea.", namespace=("memories", "ana"), turn_ids=("t1",))
CAT = CandidateMemory(text="Ana has a cat.", namespace=("memories", "ana"), turn_ids=("t2",))
CHUNK = LoggedExtraction(
    conversation_key="c",
    writer_digest="w",
    turn_keys=("k1", "k2"),
    candidates=(TEA, CAT),
    run_id="run-1",
)


class TestExtractionLog:
    def test_finds_the_chunk_it_read_by_any_of_its_turns(self, journal: Journal):
        log = ExtractionLog(journal)
        assert log.record(CHUNK) == CHUNK
        for keys in (["k1"], ["k2", "k1"], ["other", "k2"]):
            assert log.of_turns(keys, writer_digest="w") == (CHUNK,)

    def test_finds_no_other(self, journal: Journal):
        log = ExtractionLog(journal)
        log.record(CHUNK)
        assert log.of_turns(["k3"], writer_digest="w") == ()
        assert log.of_turns(["k1"], writer_digest="other") == ()
        assert log.of_turns([], writer_digest="w") == ()

    async def test_the_first_answer_stands(self, journal: Journal):
        log = ExtractionLog(journal)
        await log.arecord(CHUNK)
        again = CHUNK.model_copy(update={"candidates": (TEA,), "run_id": "run-2"})
        assert await log.arecord(again) == CHUNK
        assert await log.aof_turns(["k1"], writer_digest="w") == (CHUNK,)

    async def test_a_conversation_that_grew(self, journal: Journal):
        log = ExtractionLog(journal)
        more = LoggedExtraction(conversation_key="c", writer_digest="w", turn_keys=("k3",))
        await log.arecord(CHUNK)
        await log.arecord(more)
        keys = [f"k{n}" for n in range(2000)]
        assert await log.aof_turns(keys, writer_digest="w") == (CHUNK, more)
