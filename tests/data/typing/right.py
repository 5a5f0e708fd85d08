"""What a user writes: a type checker has nothing to say about it."""

from typing import Literal

from memguard import (
    MemguardMiddleware,
    create_conmem_graph,
    create_consistency_gate_graph,
    create_factor_compiled_graph,
    create_memory_agent,
    create_permission_semantic_graph,
    create_read_guard,
    create_write_guard,
    create_writer_graph,
)

talk = {"messages": [("user", "I live in Porto.")]}
case = {"candidate": "The user lives in Porto.", "context": "I live in Porto."}
ana = {"user_id": "ana"}

guard = create_write_guard("local", gates=["consistency", "conmem"])
writes = guard.invoke(talk, context=ana)["writes"]
stored: int = writes.counts["stored"]
texts: list[str] = [receipt.candidate.text for receipt in writes.receipts]
questions = guard.invoke(talk).get("__interrupt__", [])
events = [event for event in guard.stream(talk, stream_mode="custom")]

read = create_read_guard("local", admission="fc").invoke(talk, context=ana)
section: str = read["memory_context"]
shown: list[str] = [verdict.explanation for verdict in read["read"].admitted]
reasons = [verdict.withheld for verdict in read["withheld"]]

agent = create_memory_agent("openai:gpt-5-mini", gates=["consistency"], admission="ps")
turn = agent.invoke(talk, context=ana)
answer: str = turn["messages"][-1].text
count: int = turn["writes"].counts["quarantined"]
flags = turn["read"].flags

memory = MemguardMiddleware("local", gates=["conmem"], admission="relevance")

decision = create_consistency_gate_graph("local").invoke(case)["decision"]
outcome: Literal["admit", "quarantine", "reject"] = decision.outcome
receipt_id: str = create_conmem_graph("openai:gpt-5-mini").invoke(case)["receipt"].id
ledger = create_permission_semantic_graph("local").invoke({"query": "?"})["ledger"]
names: list[str] = [verdict.row for verdict in ledger.verdicts]
report_id: str = create_factor_compiled_graph("local").invoke({"query": "?"})["report"].id
facts = [fact.text for fact in create_writer_graph("local").invoke(talk)["candidates"]]


async def use() -> None:
    """The async form has the same types."""
    out = await guard.ainvoke(talk, context=ana)
    print(out["writes"].counts["stored"])
