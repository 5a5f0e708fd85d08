"""Errors keep their class, code and cause from where they are raised to the caller."""

import copy
import itertools
import pickle
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from memguard import create_write_guard, guard_store
from memguard.chroma.values import NamespaceError
from memguard.errors import (
    BudgetExhaustedError,
    ConfigurationError,
    ErrorCode,
    GuardError,
    JudgeError,
    MemguardError,
    StoreError,
    error_classes,
)
from memguard.methods.consistency_gate.judges import GateInput, GateOutput
from memguard.schema.failures import Failure, error_of, failure_of
from memguard.write.report import WriteReport

NAMESPACE = ("memories", "ana")
TALK = [("user", "I row.")]
FACT = "The user rows."


def all_errors() -> Iterator[MemguardError]:
    """Every class and every code at least once, each with a cause."""
    classes = [c for c in error_classes().values() if not issubclass(c, BudgetExhaustedError)]
    codes = [code for code in ErrorCode if code != ErrorCode.BUDGET_EXHAUSTED]
    assert len(codes) > len(classes)
    for error_class, code in zip(itertools.cycle(classes), codes, strict=False):
        yield caused(error_class, code)


def caused(error_class: type[MemguardError], code: ErrorCode) -> MemguardError:
    try:
        raise error_class("it did not work", code=code) from OSError("the reason")  # noqa: EM101, TRY003
    except MemguardError as error:
        return error


class FailingGate:
    """A graph of the user's own whose node raises."""

    def __init__(self) -> None:
        self.error: MemguardError | None = None
        builder: Any = StateGraph(GateInput, input_schema=GateInput, output_schema=GateOutput)
        builder.add_node("fail", self.fail)
        builder.add_edge(START, "fail")
        self.graph = builder.compile(name="failing")

    async def fail(self, state: GateInput) -> dict[str, Any]:
        assert self.error is not None
        raise self.error


def check(raised: MemguardError, error: MemguardError) -> None:
    assert raised is error
    assert type(raised) is type(error)
    assert raised.code == error.code
    assert isinstance(raised.__cause__, OSError)
    assert "caused" in [frame.name for frame in traceback.extract_tb(raised.__traceback__)]


async def test_every_error_leaves_the_write_guard_as_it_was_raised() -> None:
    gate = FailingGate()
    guard = create_write_guard(
        "local", store=InMemoryStore(), namespace=NAMESPACE, gates=[gate.graph]
    )
    for error in all_errors():
        gate.error = error
        with pytest.raises(MemguardError) as caught:
            await guard.ainvoke({"messages": TALK, "candidates": [FACT]})
        check(caught.value, error)


async def test_every_error_leaves_a_guarded_store_as_it_was_raised() -> None:
    gate = FailingGate()
    store = guard_store(InMemoryStore(), model="local", gates=[gate.graph], source="I row.")
    for error in all_errors():
        gate.error = error
        with pytest.raises(MemguardError) as caught:
            await store.aput(NAMESPACE, "key", {"content": FACT})
        check(caught.value, error)


def test_a_reported_failure_names_the_class_and_gives_the_error_back() -> None:
    gate = FailingGate()
    gate.error = caused(ConfigurationError, ErrorCode.STORE_MISSING)
    guard = create_write_guard(
        "local",
        store=InMemoryStore(),
        namespace=NAMESPACE,
        gates=[gate.graph],
        on_failure="report",
    )
    writes: WriteReport = guard.invoke({"messages": TALK, "candidates": [FACT]})["writes"]
    (failure,) = writes.failures
    assert failure.error_class == "ConfigurationError"
    check(error_of(failure.model_copy(update={"about": "x"})), gate.error)


def test_beyond_the_process_the_exact_class_is_rebuilt_by_name() -> None:
    for error in (*all_errors(), caused(BudgetExhaustedError, ErrorCode.BUDGET_EXHAUSTED)):
        failure = failure_of(error, step="gate", about="c1")
        read_back = Failure.model_validate_json(failure.model_dump_json())
        assert read_back == failure
        assert hash(read_back) == hash(failure)
        rebuilt = error_of(read_back)
        assert rebuilt is not error
        assert type(rebuilt) is type(error)
        assert (rebuilt.code, rebuilt.message) == (error.code, error.message)
        copied = error_of(pickle.loads(pickle.dumps(copy.deepcopy(failure))))
        assert type(copied) is type(error)


def test_the_registry_has_classes_of_every_module() -> None:
    assert error_classes()["NamespaceError"] is NamespaceError
    assert error_classes()["StoreError"] is StoreError


def test_failures_recorded_before_classes_were_still_load() -> None:
    old = Failure.model_validate({"code": "store-failed", "message": "m", "step": "commit"})
    assert "error_class" not in old.model_dump()
    assert type(error_of(old)) is GuardError
    assert error_of(old).code == ErrorCode.STORE_FAILED


def test_a_pass_without_a_usable_answer_is_a_judge_error() -> None:
    failure = Failure(code="unreadable", message="no JSON", step="extract")
    assert type(error_of(failure)) is JudgeError
    assert error_of(failure).code == ErrorCode.JUDGE_INCONCLUSIVE


def test_the_same_failure_of_two_exceptions_is_reported_once() -> None:
    first, second = (
        failure_of(caused(StoreError, ErrorCode.STORE_FAILED), step="commit") for _ in range(2)
    )
    assert first.exception is not second.exception
    assert list(dict.fromkeys([first, second])) == [first]
