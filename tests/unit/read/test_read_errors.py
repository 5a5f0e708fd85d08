"""Errors inside an admission keep their class, code and cause through every reader of memory."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph
from pydantic import SecretStr

from memguard import create_memory_agent, guard_store
from memguard.errors import (
    ConfigurationError,
    ErrorCode,
    MemguardError,
    ModelConfigurationError,
    error_classes,
)
from memguard.journal.journal import Journal
from memguard.journal.reads import ReadLog
from memguard.methods.adjudication.state import ReadInput, ReadOutput, ReadState
from memguard.testing import LoopbackModelServer, ScriptedChatModel
from tests.unit.read.test_read import ALLERGY, ANA, ASK, CURRY, filled, guard_of
from tests.unit.schema.test_failures import all_errors

SAID: dict[str, Any] = {"messages": [("user", ASK)]}


class FailingAdmission:
    """A graph of the user's own whose node raises."""

    def __init__(self) -> None:
        self.error: MemguardError | None = None
        builder: Any = StateGraph(ReadState, input_schema=ReadInput, output_schema=ReadOutput)
        builder.add_node("fail", self.fail)
        builder.add_edge(START, "fail")
        self.graph = builder.compile(name="failing")

    async def fail(self, state: ReadState) -> dict[str, Any]:
        del state
        assert self.error is not None
        raise self.error


@pytest.fixture(scope="module")
def admission() -> FailingAdmission:
    return FailingAdmission()


@pytest.fixture(scope="module")
def journal() -> Iterator[Journal]:
    with Journal.memory() as opened:
        yield opened


def test_every_class_and_code_is_tried() -> None:
    errors = list(all_errors())
    assert {type(error).__name__ for error in errors} >= set(error_classes()) - {
        "BudgetExhaustedError"
    }
    assert {error.code for error in errors} >= set(ErrorCode) - {ErrorCode.BUDGET_EXHAUSTED}


@pytest.mark.parametrize("error", list(all_errors()), ids=lambda error: error.code)
async def test_through_the_read_guard(
    admission: FailingAdmission, journal: Journal, error: MemguardError
) -> None:
    admission.error = error
    guard = guard_of("local", filled(), admission=admission.graph, receipts=journal)
    # A mistake in the settings as well: no turn of a host fails because of memory.
    read = (await guard.ainvoke({"query": ASK}))["read"]
    (failure,) = read.failures
    assert (failure.code, failure.step) == (error.code, "admit")
    assert failure.error_class == type(error).__name__
    assert "adjudication_failed" in read.flags
    # A safety constraint that its words tell stays in sight.
    assert read.admitted[0].unit.text == ALLERGY


@pytest.mark.parametrize("error", list(all_errors()), ids=lambda error: error.code)
async def test_raised_where_failures_are_to_be_raised(
    admission: FailingAdmission, journal: Journal, error: MemguardError
) -> None:
    admission.error = error
    guard = guard_of(
        "local", filled(), admission=admission.graph, receipts=journal, on_failure="raise"
    )
    with pytest.raises(type(error)) as caught:
        await guard.ainvoke({"query": ASK})
    # The exception itself: its class, its code and its cause, after the receipt was written.
    assert caught.value is error
    assert isinstance(caught.value.__cause__, OSError)
    assert [f.code for f in (await ReadLog(journal).alist()).reads[0].failures] == [error.code]


@pytest.mark.parametrize("error", list(all_errors()), ids=lambda error: error.code)
async def test_through_the_agent(
    admission: FailingAdmission, journal: Journal, error: MemguardError
) -> None:
    admission.error = error
    agent = create_memory_agent(
        ScriptedChatModel(["Rice."]),
        judge="local",
        store=filled(),
        namespace=ANA,
        receipts=journal,
        admission=admission.graph,
        write=False,
    )
    out = await agent.ainvoke(SAID)  # pyright: ignore[reportArgumentType]
    assert out["messages"][-1].text == "Rice."
    assert [failure.code for failure in out["read"].failures] == [error.code]


@pytest.mark.parametrize("error", list(all_errors()), ids=lambda error: error.code)
async def test_through_the_search_of_a_guarded_store(
    admission: FailingAdmission, journal: Journal, error: MemguardError
) -> None:
    admission.error = error
    store = guard_store(filled(), model="local", read=admission.graph, receipts=journal)
    if isinstance(error, ConfigurationError):
        with pytest.raises(type(error)) as caught:
            await store.asearch(ANA, query=ASK)
        assert caught.value is error
    else:
        items = await store.asearch(ANA, query=ASK)
        assert {item.value["content"] for item in items} == {ALLERGY, CURRY}
    read = (await ReadLog(journal).alist()).reads[0]
    assert [failure.code for failure in read.failures] == [error.code]


async def test_a_key_that_the_provider_refuses_is_reported_and_logged(
    journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    with LoopbackModelServer(api_key="right") as server:
        model = ChatOpenAI(model="m", base_url=server.url, api_key=SecretStr("wrong"))
        await guard_of(model, filled(), receipts=journal).ainvoke({"query": ASK})
        with pytest.raises(ModelConfigurationError):
            await guard_of(model, filled(), on_failure="raise").ainvoke({"query": ASK})
    assert "model-auth" in caplog.text
    (failure,) = (await ReadLog(journal).alist()).reads[0].failures
    assert failure.code == ErrorCode.MODEL_AUTH
