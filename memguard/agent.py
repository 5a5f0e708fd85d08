"""An agent with memory: it recalls what may be used, answers, and remembers what passes the gates.

```text
START -> recall -> answer -> remember -> END
           ^          v
           +- tools <-+
```

`recall` is a read guard and `remember` a write guard. Drawings with `xray=True`, streams with
`subgraphs=True` and `get_subgraphs(recurse=True)` show them with the methods inside.

A tool's results are evidence: the next recall of the same turn sees them, and withholds what they
contradict from the next answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import BaseTool, tool
from langgraph.channels import UntrackedValue
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.prebuilt import ToolNode
from langgraph.store.base import BaseStore
from pydantic import BaseModel, Field

from memguard.errors import ErrorCode, GuardError, InvalidInputError, ModelConfigurationError
from memguard.hosts import create_guards, failed_write, with_memory
from memguard.journal.journal import Journal
from memguard.llm.ask import answer, tool_settings
from memguard.llm.models import Model, ModelLike, resolve_model
from memguard.namespaces import NamespaceLike
from memguard.portal import dual
from memguard.prompts import Prompt
from memguard.read.admission import AdmissionLike
from memguard.schema.audience import Audience
from memguard.schema.read import ReadReport, Recall
from memguard.typed import TypedGraph, typed
from memguard.uncheckpointed import Graph, run_uncheckpointed
from memguard.write.gates import GateLike
from memguard.write.reconciling import ReconcileLike
from memguard.write.report import WriteReport

NAME = "memory_agent"


class AgentContext(TypedDict, total=False):
    """The context of a run: the values that the namespace template names."""

    user_id: str
    """The user, who never sees the memories of another user."""
    audience: Audience
    """Who reads the answer; `private` when left out."""
    participants: Any
    """Names or ids of those who read it, or a mapping of ids to names."""


class AgentInput(BaseModel):
    """The user's new messages."""

    messages: Annotated[list[AnyMessage], add_messages] = Field(
        default=[],
        description="The new messages; a thread with a checkpointer keeps the earlier ones.",
        examples=[[{"role": "user", "content": "Where could I take my colleague for lunch?"}]],
    )


class AgentState(AgentInput):
    """The conversation, and the reports of memory on its last turn.

    The reports are not checkpointed: a memory that is forgotten must not stay in threads. The
    receipts are in the log.
    """

    # Untracked channels are not checkpointed.
    memory_context: Annotated[str, UntrackedValue] = ""
    """The section in the prompt of the last answer; empty when nothing was admitted."""
    read: Annotated[ReadReport | None, UntrackedValue] = None
    """What was recalled, admitted and withheld, and why."""
    writes: Annotated[WriteReport | None, UntrackedValue] = None
    """The outcome of each candidate of the turn."""


class AgentResult(TypedDict):
    """What a turn of the agent returns."""

    messages: list[AnyMessage]
    """The messages of the thread."""
    memory_context: str
    """The section in the prompt of the answer."""
    read: ReadReport
    """What was recalled, admitted and withheld; missing with `read=False`."""
    writes: WriteReport
    """The outcome of each candidate; missing with `write=False`."""
    __interrupt__: NotRequired[Sequence[Any]]
    """The question to a person, if a write guard of your own asks one."""


@dataclass(frozen=True, kw_only=True)
class Agent:
    """What the nodes of one agent share."""

    model: Model
    system: str
    tools: dict[str, Any]
    read: Graph | None
    write: Graph | None
    interrupts: bool
    """Whether the write guard is the user's own, which may interrupt to ask a person."""


async def recall_memories(state: AgentState, *, guard: Graph) -> dict[str, Any]:
    """Fetch memories, and admit what may be used for this request."""
    # Without checkpoints even if the guard is the user's own: a read never has to be resumed.
    output = await run_uncheckpointed(guard, {"messages": state.messages})
    return {"memory_context": output["memory_context"], "read": output["read"]}


async def respond(state: AgentState, *, agent: Agent) -> dict[str, Any]:
    """Ask the model, with what was admitted at the end of its system message."""
    if not state.messages:
        msg = "the agent has no messages: pass {'messages': [('user', '...')]}"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    # Only for this call: in the thread, memory would be extracted again as if a user had said it.
    prompt = with_memory(state.messages, system=agent.system, memory=state.memory_context)
    return {"messages": [await answer(agent.model, prompt, tools=agent.tools)]}


async def remember(state: AgentState, *, guard: Graph, interrupts: bool) -> dict[str, Any]:
    """Extract candidates from the new messages, and store what passes the gates."""
    values = {"messages": state.messages}
    try:
        # A guard that interrupts needs the host's checkpointer to resume. The guard that is built
        # here never interrupts, and must leave no candidate in the thread.
        output = await (guard.ainvoke(values) if interrupts else run_uncheckpointed(guard, values))
    except GuardError as error:
        # The user has the answer already, and the next turn reads this one again.
        return {"writes": failed_write(error)}
    return {"writes": output["writes"]}


def after_answer(state: AgentState) -> Literal["tools", "remember"]:
    """To the tools that the model called, else to memory."""
    last = state.messages[-1]
    return "tools" if isinstance(last, AIMessage) and last.tool_calls else "remember"


def create_memory_agent(
    model: ModelLike,
    *,
    tools: Sequence[Any] = (),
    store: BaseStore | None = None,
    namespace: NamespaceLike = ("memories", "{user_id}"),
    system: str = "",
    judge: "ModelLike | None" = None,
    gates: Sequence[GateLike] | None = None,
    reconcile: ReconcileLike | None = None,
    admission: AdmissionLike | None = None,
    recall: Recall | None = None,
    audience: Audience | None = None,
    models: Mapping[str, ModelLike] | None = None,
    prompts: Mapping[str, Prompt] | None = None,
    read: Graph | Literal[False] | None = None,
    write: Graph | Literal[False] | None = None,
    receipts: Journal | str | Path | None = None,
    checkpointer: Any = None,
    context_schema: type[Any] = AgentContext,
) -> TypedGraph[AgentResult]:
    """An agent that remembers what its conversations support, and uses what the request permits.

    Failures of memory do not prevent the answer: a read that fails or is late withholds what it
    could not judge; a write that fails is on `writes.failures`, and the thread's next turn repeats
    it. Settings that cannot work, such as an unknown user, raise an error.

    Args:
        model: Model that answers.
        tools: Functions or LangChain tools that it may call; their results are evidence.
        store: The memory store; the store of the run by default.
        namespace: Where memories are: a template filled from the run's context, or a function.
        system: The agent's instructions.
        judge: Model that extracts, judges and adjudicates memories, or `"local"`; the answering
            model by default.
        gates: Gates that a candidate has to pass, in order, as in `create_write_guard`.
        reconcile: Whether corrections mark what they replace, as in `create_write_guard`; they do
            by default.
        admission: Method that admits recalled memories, as in `create_read_guard`.
        recall: Which memories are recalled; see `Recall`.
        audience: Who reads the answers: `"private"`, the default, or `"group"`; the keys `audience`
            and `participants` of the run's context decide for one run.
        models: Other models by stage, of both guards: `writer`, `judge`, `reconciler`, the stages
            of ConMem, `adjudicator` and `decomposer`. The argument `judge` is used for the other
            stages.
        prompts: Your own prompts by name, of both guards.
        read: A read guard of your own; `False` recalls nothing.
        write: A write guard of your own; `False` remembers nothing.
        receipts: Where receipts are stored; next to a local store by default.
        checkpointer: Stores threads, as for any LangGraph graph.
        context_schema: Type of the run's context; must have the fields that the namespace names.

    Returns:
        A graph that takes `messages` and returns `messages`, `memory_context`, `read` and
        `writes`.

    Raises:
        ConfigurationError: If a model, tool or guard cannot be used.
    """
    if model == "local":
        msg = (
            "there is no local model that answers: pass a language model as `model`; "
            "`judge='local'` judges memories without one"
        )
        raise ModelConfigurationError(msg, code=ErrorCode.MODEL_MISSING)
    answering = resolve_model(model, streams=True)
    built_tools = [entry if isinstance(entry, BaseTool) else tool(entry) for entry in tools]
    reader, writer = create_guards(
        model if judge is None else judge,
        read=read,
        write=write,
        store=store,
        namespace=namespace,
        receipts=receipts,
        gates=gates,
        reconcile=reconcile,
        admission=admission,
        recall=recall,
        audience=audience,
        models=models,
        prompts=prompts,
    )
    agent = Agent(
        model=answering,
        system=system,
        tools=tool_settings(answering, built_tools),
        read=reader,
        write=writer,
        interrupts=write is not None,
    )
    builder = _build(agent, tools=built_tools, context_schema=context_schema)
    return typed(builder.compile(name=NAME, store=store, checkpointer=checkpointer))


def _build(agent: Agent, *, tools: Sequence[BaseTool], context_schema: type[Any]) -> Any:
    builder: Any = StateGraph(AgentState, input_schema=AgentInput, context_schema=context_schema)
    first, last = "answer", END
    if agent.read is not None:
        first = "recall"
        builder.add_node("recall", dual(partial(recall_memories, guard=agent.read), name="recall"))
        builder.add_edge("recall", "answer")
    builder.add_node("answer", dual(partial(respond, agent=agent), name="answer"))
    if agent.write is not None:
        last = "remember"
        step = partial(remember, guard=agent.write, interrupts=agent.interrupts)
        builder.add_node("remember", dual(step))
        builder.add_edge("remember", END)
    # Without a guard there is no node for it, so that the drawing shows what the agent does.
    builder.add_edge(START, first)
    if tools:
        builder.add_node("tools", ToolNode(tools))
        # Back to `recall`: what a tool returned may contradict a memory.
        builder.add_edge("tools", first)
        builder.add_conditional_edges("answer", after_answer, {"tools": "tools", "remember": last})
    else:
        builder.add_edge("answer", last)
    return builder
