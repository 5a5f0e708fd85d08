from memguard.schema.memory import CandidateMemory, Conversation, Turn
from memguard.stores.extractions import Extraction, ExtractionLog, conversation_key, turn_key
from memguard.stores.journal import Journal

TEA = CandidateMemory(text="Ana likes tea.", namespace=("memories", "ana"), turn_ids=("t1",))
CAT = CandidateMemory(text="Ana has a cat.", namespace=("memories", "ana"), turn_ids=("t2",))
CHUNK = Extraction(
    conversation_key="c",
    writer_digest="w",
    turn_keys=("k1", "k2"),
    candidates=(TEA, CAT),
    run_id="run-1",
)


class TestExtractionLog:
    def test_finds_the_chunk_it_read(self, journal: Journal):
        log = ExtractionLog(journal)
        assert log.record(CHUNK) == CHUNK
        assert log.find("c", writer_digest="w", turn_keys=["k1", "k2"]) == CHUNK

    def test_finds_no_other(self, journal: Journal):
        log = ExtractionLog(journal)
        log.record(CHUNK)
        assert log.find("c", writer_digest="w", turn_keys=["k1"]) is None
        assert log.find("c", writer_digest="w", turn_keys=["k2", "k1"]) is None
        assert log.find("c", writer_digest="other", turn_keys=["k1", "k2"]) is None
        assert log.find("other", writer_digest="w", turn_keys=["k1", "k2"]) is None

    async def test_the_first_answer_stands(self, journal: Journal):
        log = ExtractionLog(journal)
        await log.arecord(CHUNK)
        again = CHUNK.model_copy(update={"candidates": (TEA,), "run_id": "run-2"})
        assert await log.arecord(again) == CHUNK
        assert await log.alist("c", writer_digest="w") == (CHUNK,)
        assert await log.afind("c", writer_digest="w", turn_keys=("k1", "k2")) == CHUNK

    async def test_a_conversation_that_grew(self, journal: Journal):
        log = ExtractionLog(journal)
        more = Extraction(conversation_key="c", writer_digest="w", turn_keys=("k3",))
        await log.arecord(CHUNK)
        await log.arecord(more)
        assert await log.aread_turns("c", writer_digest="w") == {"k1", "k2", "k3"}
        assert await log.aread_turns("c", writer_digest="other") == frozenset()
        assert await log.alist("c", writer_digest="w") == (CHUNK, more)

    def test_without_a_loop(self, journal: Journal):
        log = ExtractionLog(journal)
        log.record(CHUNK)
        assert log.read_turns("c", writer_digest="w") == {"k1", "k2"}
        assert log.list("c", writer_digest="w") == (CHUNK,)


class TestKeys:
    def test_a_turn_that_was_edited_is_another(self):
        turn = Turn(id="t1", role="user", content="I like tea.")
        assert turn_key(turn) == turn_key(turn.model_copy())
        for change in (
            {"content": "No."},
            {"id": "t2"},
            {"role": "tool"},
            {"speaker": "A"},
        ):
            assert turn_key(turn.model_copy(update=change)) != turn_key(turn)

    def test_a_conversation_is_its_id_else_its_words(self):
        hello = Turn(id="1", role="user", content="Hello")
        longer = (hello, Turn(id="2", role="user", content="I like tea."))
        named = Conversation(id="chat-7", turns=(hello,))
        assert conversation_key(named) == conversation_key(Conversation(id="chat-7", turns=longer))
        assert conversation_key(Conversation(turns=(hello,))) == conversation_key(
            Conversation(turns=(hello,))
        )
        assert conversation_key(Conversation(turns=(hello,))) != conversation_key(
            Conversation(turns=longer)
        )
