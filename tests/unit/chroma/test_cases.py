"""Failures of other products, as public reports describe them, on our store."""

import asyncio
import datetime as dt
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import chromadb
import pytest
from chromadb.config import Settings
from langgraph.store.base import PutOp

from memguard.errors import ErrorCode, InvalidInputError, StoreConfigurationError, StoreError
from memguard.stores import ChromaStore
from memguard.testing.embeddings import HashEmbeddings
from tests.cases import case_input


def open_store(path: Path, **options: Any) -> ChromaStore:
    options.setdefault("embed", HashEmbeddings(dims=8, name="e1"))
    return ChromaStore.local(path, shards=4, **options)


async def test_h03_users_are_apart() -> None:
    given = case_input("H-03")
    async with ChromaStore.memory(embed=HashEmbeddings(), shards=4) as store:
        for number, user in enumerate(given["users"]):
            await store.aput(("memories", user), "k", {"text": f"secret of {number}"})
        for number, user in enumerate(given["users"]):
            found = await store.asearch(("memories", user), query=given["query"], limit=given["k"])
            assert [each.value["text"] for each in found] == [f"secret of {number}"]
            assert len(await store.asearch(("memories", user), limit=given["k"])) == 1
            assert await store.acount(("memories", user)) == 1
        assert await store.adelete_namespace(("memories", "user1")) == 1
        left = await store.asearch(("memories",), limit=given["k"])
        assert len(left) == len(given["users"]) - 1
        assert ("memories", "user1") not in {each.namespace for each in left}
        for tenant in ("acme", "acme-corp"):
            await store.aput((tenant, "x"), "k", {"text": f"secret of {tenant}"})
        for tenant in ("acme", "acme-corp"):
            found = await store.asearch((tenant, "x"), query="secret", limit=given["k"])
            assert [each.namespace for each in found] == [(tenant, "x")]


def test_i01_values_equal_or_refused() -> None:
    special = {"<float nan>": math.nan, "<datetime.date 2026-05-01>": dt.date(2026, 5, 1)}
    embed = HashEmbeddings()
    with ChromaStore.memory(embed=embed, shards=2) as store:
        for number, row in enumerate(case_input("I-01")["metadata_rows"]):
            value = {
                key: special.get(each, each) if isinstance(each, str) else each
                for key, each in row.items()
            }
            spent = embed.embedded.total()
            if "when" in value:
                with pytest.raises(InvalidInputError) as caught:
                    store.put(("rows",), str(number), value)
                assert caught.value.code is ErrorCode.STORE_VALUE
                assert embed.embedded.total() == spent
                continue
            store.put(("rows",), str(number), value)
            item = store.get(("rows",), str(number))
            assert item is not None
            assert repr(item.value) == repr(value)


def test_i01_ids_and_re_adding() -> None:
    given = case_input("I-01")
    with ChromaStore.memory(embed=HashEmbeddings(), shards=2) as store:
        for number, ids in enumerate(given["id_rows"]):
            space = ("ids", str(number))
            store.batch([PutOp(space, key, {"text": f"{n}"}) for n, key in enumerate(ids)])
            assert store.count(space) == len(set(ids))
            last = store.get(space, ids[-1])
            assert last is not None
            assert last.value == {"text": str(len(ids) - 1)}
        again = given["re_add"]
        for text in (again["first"], again["second"]):
            store.put(("again",), again["id"], {"text": text})
        for text in (again["first"], again["second"]):
            asyncio.run(store.aput(("again",), again["id"], {"text": text}))
        item = store.get(("again",), again["id"])
        assert item is not None
        assert item.value == {"text": again["second"]}
        assert store.count(("again",)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 1, 5461, 5462])
def test_i01_batches_of_any_size(size: int) -> None:
    assert size in case_input("I-01")["batch_sizes"]
    with ChromaStore.memory(embed=HashEmbeddings(dims=4), shards=1) as store:
        ops = [PutOp(("many",), f"k{n}", {"text": f"item {n}"}) for n in range(size)]
        assert store.batch(ops) == [None] * size
        assert store.count(("many",)) == size


def test_i02_change_of_embedder(tmp_path: Path) -> None:
    assert len(case_input("I-02")["steps"]) == 5
    first = HashEmbeddings(dims=8, name="e1")
    with open_store(tmp_path, embed=first) as store:
        store.batch([PutOp(("m",), f"k{n}", {"text": f"fact {n}"}) for n in range(20)])
    for other in (HashEmbeddings(dims=16, name="e2"), HashEmbeddings(dims=8, name="e3")):
        with pytest.raises(StoreConfigurationError) as caught:
            open_store(tmp_path, embed=other)
        assert caught.value.code is ErrorCode.STORE_EMBEDDER
        for part in ("e1", other.name, "8", str(other.dims)):
            assert part in str(caught.value)
    with open_store(tmp_path, embed=first) as store:
        assert len(store.search(("m",), query="fact", limit=50)) == 20
        assert store.search(("m",), query='{"text": "fact 7"}')[0].key == "k7"


@pytest.mark.parametrize(
    ("row", "said"),
    [([math.nan] * 8, "NaN"), ([0.0] * 8, "zeros"), ([1.0] * 7, "7 numbers"), ([], "0 numbers")],
)
def test_i02_what_an_embedder_may_not_give(row: list[float], said: str) -> None:
    answers: list[list[list[float]]] = [[[1.0] * 8], [row]]

    def embed(texts: Any) -> list[list[float]]:
        assert len(texts) == 1
        return answers.pop(0)

    with ChromaStore.memory(index={"dims": 8, "embed": embed, "fields": ["text"]}) as store:
        store.put(("m",), "k", {"text": "good"})
        with pytest.raises(StoreError, match=said) as caught:
            store.put(("m",), "k", {"text": "bad"})
        assert caught.value.code is ErrorCode.EMBEDDER_OUTPUT
        item = store.get(("m",), "k")
        assert item is not None
        assert item.value == {"text": "good"}


def test_i03_existing_collection_with_another_metric(tmp_path: Path) -> None:
    assert case_input("I-03")["pre_existing_collection"]["space"].startswith("l2")
    for name in ("memguard", "memguard-03"):
        path = tmp_path / name
        client = chromadb.PersistentClient(str(path), settings=Settings(anonymized_telemetry=False))
        client.create_collection(name, embedding_function=None)
        client.close()  # pyright: ignore[reportAttributeAccessIssue]
        with pytest.raises(StoreConfigurationError) as caught:
            open_store(path)
        assert caught.value.code is ErrorCode.STORE_METRIC
        assert "'l2'" in str(caught.value)
        assert "'cosine'" in str(caught.value)


@pytest.mark.parametrize("cache_bytes", [0, 2**20])
def test_i03_cosine_from_the_start(cache_bytes: int) -> None:
    given = case_input("I-03")
    vectors = {**given["vectors"], "query": given["query"]}

    def embed(texts: Any) -> list[list[float]]:
        return [vectors[text] for text in texts]

    index = {"dims": 4, "embed": embed, "fields": ["text"]}
    with ChromaStore.memory(index=index, cache_bytes=cache_bytes) as store:
        for name in given["vectors"]:
            store.put(("m",), name, {"text": name})
        found = store.search(("m",), query="query", limit=2)
        assert [each.key for each in found] == given["want_cosine"]["order"]
        for each, distance in zip(found, given["want_cosine"]["distance"], strict=True):
            assert each.score == pytest.approx(1 - distance, abs=1e-6)
            assert each.score is not None
            assert each.score >= given["config"]["min_relevance"]


_B02_CHILD = """
import datetime as dt, sys
from memguard.stores import ChromaStore
moment = dt.datetime.fromisoformat(sys.argv[1])
with ChromaStore.memory(index=False, clock=lambda: moment) as store:
    store.put(("m",), "k", {"text": sys.argv[2]})
    item = store.get(("m",), "k")
    print(item.created_at.isoformat(), item.updated_at.isoformat(), item.created_at.utcoffset())
"""


@pytest.mark.slow
def test_b02_time_does_not_depend_on_the_zone() -> None:
    given = case_input("B-02")
    rows = [{"TZ": zone} for zone in given["env_TZ_rows"]] + [{"PYTHONTZPATH": ""}]
    said: set[str] = set()
    for row in rows:
        done = subprocess.run(
            [sys.executable, "-c", _B02_CHILD, given["frozen_utc"], given["candidate"]],
            env={**os.environ, **row},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        said.add(done.stdout)
    assert said == {"2026-07-25T02:00:00+00:00 2026-07-25T02:00:00+00:00 0:00:00\n"}


def test_b02_times_a_caller_gives() -> None:
    aware, shifted, naive = (
        dt.datetime.fromisoformat(text) for text in case_input("B-02")["caller_times"]
    )
    stored: list[dt.datetime] = []
    for moment in (aware, shifted):
        with ChromaStore.memory(index=False, clock=lambda moment=moment: moment) as store:
            store.put(("m",), "k", {})
            item = store.get(("m",), "k")
            assert item is not None
            stored.append(item.created_at)
    assert stored[0] == stored[1]
    with (
        ChromaStore.memory(index=False, clock=lambda: naive) as store,
        pytest.raises(InvalidInputError, match="aware"),
    ):
        store.put(("m",), "k", {})


_KILLED_CHILD = """
import sys
from memguard.stores import ChromaStore
from memguard.testing.embeddings import HashEmbeddings
index = {"dims": 8, "embed": HashEmbeddings(dims=8), "fields": ["text", "same"]}
store = ChromaStore.local(sys.argv[1], index=index, shards=2)
print("ready", flush=True)
for round in range(1_000_000):
    for key in range(10):
        text = f"round {round} key {key} " + "x" * 2000
        fields = {"text": text} if round % 2 else {"text": text, "same": text + "!"}
        store.put(("m", str(key % 3)), str(key), {"round": round, **fields})
        print(round, key, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.3, 1.0, 2.0])
def test_killed_process_loses_no_acknowledged_put(tmp_path: Path, seconds: float) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _KILLED_CHILD, str(tmp_path / "store")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(seconds)
    child.kill()
    acknowledged: dict[str, int] = {}
    for line in child.stdout:
        if line.endswith("\n") and len(parts := line.split()) == 2:
            acknowledged[parts[1]] = int(parts[0])
    child.stdout.close()
    child.wait()
    assert acknowledged
    index: Any = {"dims": 8, "embed": HashEmbeddings(dims=8), "fields": ["text", "same"]}
    with ChromaStore.local(tmp_path / "store", index=index) as store:
        for key, last in acknowledged.items():
            item = store.get(("m", str(int(key) % 3)), key)
            assert item is not None
            found = item.value["round"]
            assert found in (last, last + 1)
            text = f"round {found} key {key} " + "x" * 2000
            assert item.value["text"] == text
            assert ("same" in item.value) == (found % 2 == 0)
            hits = store.search(("m", str(int(key) % 3)), query=text, limit=20)
            best = [each for each in hits if each.key == key]
            assert len(best) == 1
            assert best[0].score == pytest.approx(1.0, abs=1e-4)
        store.put(("m", "0"), "0", {"round": -1, "text": "still writable"})
