"""What a user may get wrong: a type checker finds each line that is marked."""

from memguard import (
    MemguardMiddleware,
    create_consistency_gate_graph,
    create_memory_agent,
    create_permission_semantic_graph,
    create_read_guard,
    create_write_guard,
    create_writer_graph,
)

talk = {"messages": [("user", "I live in Porto.")]}
case = {"candidate": "The user lives in Porto.", "context": "I live in Porto."}

create_write_guard("local", gates=["consistancy"])  # wrong
create_memory_agent("openai:gpt-5-mini", admission="pss")  # wrong
MemguardMiddleware("local", gates=["con-mem"])  # wrong
guard = create_write_guard("local", review="ask")  # wrong

out = guard.invoke(talk)
out["write"]  # wrong
out["writes"].count  # wrong
out["writes"].counts["saved"]  # wrong
out["writes"].receipts[0].outcom  # wrong

read = create_read_guard("local").invoke(talk)
read["report"]  # wrong
read["admitted"][0].text  # wrong

decision = create_consistency_gate_graph("local").invoke(case)["decision"]
decision.outcom  # wrong
admitted: bool = decision.outcome  # wrong
create_permission_semantic_graph("local").invoke({"query": "?"})["verdicts"]  # wrong
create_writer_graph("local").invoke(talk)["facts"]  # wrong


async def use() -> None:
    """The async form finds the same."""
    (await guard.ainvoke(talk))["writes"].receits  # wrong
