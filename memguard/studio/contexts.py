"""What a person sets in Studio's form: dataclasses, so that defaults and descriptions are shown."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langgraph.graph.state import CompiledStateGraph
from pydantic import Field

from memguard.errors import ConfigurationError, ErrorCode
from memguard.guard.agent import create_memory_agent
from memguard.guard.read import create_read_guard
from memguard.guard.write import create_write_guard
from memguard.llm.models import ModelLike, resolve_model
from memguard.methods.conmem import create_conmem_graph
from memguard.methods.conmem.config import ConMem, Weights
from memguard.methods.consistency_gate import create_consistency_gate_graph
from memguard.methods.factor_compiled import create_factor_compiled_graph
from memguard.methods.permission_semantic import create_permission_semantic_graph
from memguard.schema.config import ConsistencyGate

AnyGraph = CompiledStateGraph[Any, Any, Any, Any]

ModelName = Annotated[
    str,
    Field(
        description="Who judges: `provider:model`, or `local`, which needs no key and is weaker.",
        examples=["openai:gpt-5-mini", "local"],
    ),
]
Address = Annotated[
    str,
    Field(
        description="Address of an OpenAI-compatible server; the provider's own when left out.",
        examples=["http://localhost:11434/v1"],
    ),
]
User = Annotated[
    str,
    Field(description="Whose memories; there is no default user.", examples=["ana"]),
]


@dataclass(frozen=True, kw_only=True)
class ModelForm:
    """Which model is asked."""

    model: ModelName = ""
    base_url: Address = ""

    def named(
        self, *, model: str = "", otherwise: str = "local", streams: bool = False
    ) -> ModelLike:
        """The model that is named, or `otherwise`; a graph without any is shown all the same."""
        name = model or self.model or otherwise
        if name == "local":
            return "local"
        if not name:
            return _Unnamed()
        return resolve_model(name, base_url=self.base_url or None, streams=streams)


@dataclass(frozen=True, kw_only=True)
class GateForm(ModelForm):
    """Model and threshold of ConsistencyGate."""

    k: Annotated[int, Field(ge=1, le=64, description="Samples per candidate.")] = 5
    tau: Annotated[float, Field(ge=0, le=1, description="Admit from this support on.")] = 0.7
    threshold: Annotated[
        Literal["fixed", "adaptive"],
        Field(description="`fixed`: tau; `adaptive`: grows with the namespace, from 0.4 to 0.8."),
    ] = "fixed"

    @property
    def spec(self) -> ConsistencyGate:
        """The gate's settings."""
        return ConsistencyGate(k=self.k, tau=self.tau, threshold=self.threshold)

    def open(self) -> AnyGraph:
        """ConsistencyGate alone."""
        return create_consistency_gate_graph(self.named(), spec=self.spec)


@dataclass(frozen=True, kw_only=True)
class WriteForm(GateForm):
    """Whose memories, and the gate of the write guard."""

    user_id: User = ""

    def open(self) -> AnyGraph:
        """The write guard; it asks a person about what is held."""
        return create_write_guard(self.named(), gates=[self.spec], review="interrupt")


@dataclass(frozen=True, kw_only=True)
class ReadForm(ModelForm):
    """Whose memories, and who adjudicates them."""

    user_id: User = ""

    def open(self) -> AnyGraph:
        """The read guard."""
        return create_read_guard(self.named())


@dataclass(frozen=True, kw_only=True)
class ConMemForm(ModelForm):
    """Model and weights of ConMem. It needs a language model."""

    irrelevant_cost: Annotated[
        float, Field(ge=0, description="Cost of being used for nothing on the irrelevant probe.")
    ] = 0.5
    risk_penalty: Annotated[float, Field(ge=0, description="Cost of harm on the risk probe.")] = 1.0

    def open(self) -> AnyGraph:
        """ConMem alone."""
        weights = Weights(irrelevant_unnecessary=self.irrelevant_cost, risk_risk=self.risk_penalty)
        return create_conmem_graph(self.named(otherwise=""), spec=ConMem(weights=weights))


@dataclass(frozen=True, kw_only=True)
class FactorForm(ModelForm):
    """Who adjudicates for Factor-Compiled Admission."""

    def open(self) -> AnyGraph:
        """Factor-Compiled Admission alone."""
        return create_factor_compiled_graph(self.named())


@dataclass(frozen=True, kw_only=True)
class PermissionForm(ModelForm):
    """Who adjudicates for Permission-Semantic Admission."""

    def open(self) -> AnyGraph:
        """Permission-Semantic Admission alone."""
        return create_permission_semantic_graph(self.named())


@dataclass(frozen=True, kw_only=True)
class AgentForm(ModelForm):
    """Whose memories, who answers, and who judges memories."""

    user_id: User = ""
    judge: ModelName = "local"

    def open(self) -> AnyGraph:
        """The host agent."""
        answering = self.named(otherwise="", streams=True)
        return create_memory_agent(answering, judge=self.named(model=self.judge))


class _Unnamed(BaseChatModel):
    """Stands where a model is needed and none is named: shown, and refused when it is asked."""

    @property
    def _llm_type(self) -> str:
        return "unnamed"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        del messages, args, kwargs
        msg = "no model is named: set `model` in the form, or MEMGUARD_MODEL for the server"
        raise ConfigurationError(msg, code=ErrorCode.MODEL_MISSING)
