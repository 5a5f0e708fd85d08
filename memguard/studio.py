"""The forms of LangGraph Studio, and the entries of `langgraph.json` that use them.

A form is a dataclass of settings that creates a graph. Studio shows its fields with their titles,
descriptions and defaults, and sends what the user filled in as the context of a run. `in_studio`
turns a form into an entry; the server calls it at every request.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, Protocol, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langgraph_sdk.runtime import ServerRuntime
from pydantic import Field

from memguard.agent import create_memory_agent
from memguard.errors import (
    ConfigurationError,
    ErrorCode,
    InvalidInputError,
    ModelConfigurationError,
)
from memguard.llm.models import ModelLike, resolve_model
from memguard.methods.conmem.config import CONMEM_PRESETS, ConMem
from memguard.methods.conmem.graph import create_conmem_graph
from memguard.methods.consistency_gate import create_consistency_gate_graph
from memguard.methods.consistency_gate.config import CONSISTENCY_GATE_PRESETS, ConsistencyGate
from memguard.methods.factor_compiled import create_factor_compiled_graph
from memguard.methods.permission_semantic import create_permission_semantic_graph
from memguard.methods.reconcile import RECONCILE_PRESETS, create_reconcile_graph
from memguard.presets import GateSpec, choose_admission
from memguard.read.admission import AdmissionSpec
from memguard.read.graph import create_read_guard
from memguard.schema.read import FactorCompiled, PermissionSemantic, Rendering
from memguard.uncheckpointed import Graph
from memguard.write.graph import create_write_guard

ModelName = Annotated[
    str,
    Field(
        title="Model",
        description="`provider:model`, or `local`, which needs no key and is weaker.",
        examples=["openai:gpt-5-mini", "local"],
    ),
]
ServerAddress = Annotated[
    str,
    Field(
        title="Model server",
        description="Address of an OpenAI-compatible server; that of the provider if empty.",
        examples=["http://localhost:11434/v1"],
    ),
]
User = Annotated[
    str,
    Field(
        title="User",
        description="The user whose memories are read and written; there is no default user.",
        examples=["ana"],
    ),
]
GateChoice = Literal["consistency", "conmem", "both", "none"]
AdmissionChoice = Literal["ps", "fc", "relevance"]
Preset = Literal["default", "paper"]
ConMemPreset = Annotated[
    Preset,
    Field(description="`paper`: the paper's weights, without speculation. `default`: ours."),
]
AdmissionPreset = Annotated[Preset, Field(description="`paper`: without any rule of our own.")]

_NO_MODEL = (
    "no model is named, and this graph needs a language model: set `model` in the form, or "
    "MEMGUARD_MODEL for the server"
)

_GATES: dict[GateChoice, tuple[str, ...]] = {
    "consistency": ("consistency",),
    "conmem": ("conmem",),
    # The cheap gate first: what it rejects costs ConMem no call.
    "both": ("consistency", "conmem"),
    "none": (),
}


@dataclass(frozen=True, kw_only=True)
class ModelForm:
    """Which model is called."""

    model: ModelName = ""
    base_url: ServerAddress = ""

    @property
    def needs_model(self) -> bool:
        """Whether a run needs a language model, which the form then has to name."""
        return False

    def check(self) -> None:
        """Refuse a run that needs a model and has none.

        Raises:
            ModelConfigurationError: If no model is named.
        """
        # Inside a method it would be a failed call, and the candidate would only be quarantined.
        if self.needs_model and not self.model:
            raise ModelConfigurationError(_NO_MODEL, code=ErrorCode.MODEL_MISSING)

    def resolve(
        self, *, model: str = "", default: str = "local", streams: bool = False
    ) -> ModelLike:
        """The named model or the default; without either, a model that fails when it is called."""
        name = model or self.model or default
        if name == "local":
            return "local"
        # Studio lists and draws a graph before a user has named a model.
        if not name:
            return _MissingModel()
        return resolve_model(name, base_url=self.base_url or None, streams=streams)


@dataclass(frozen=True, kw_only=True)
class GateForm(ModelForm):
    """Model and settings of ConsistencyGate."""

    consistency_preset: Annotated[
        Literal["custom", "recommended", "adaptive", "fast", "paper", "small"],
        Field(
            title="ConsistencyGate: preset",
            description="`custom` uses the three settings below; a preset ignores them.",
        ),
    ] = "custom"
    k: Annotated[
        int,
        Field(ge=1, le=64, title="ConsistencyGate: samples", description="Samples per candidate."),
    ] = 5
    tau: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            title="ConsistencyGate: threshold",
            description="A candidate with at least this support is admitted.",
        ),
    ] = 0.7
    threshold: Annotated[
        Literal["fixed", "adaptive"],
        Field(
            title="ConsistencyGate: kind of threshold",
            description="`fixed`: tau. `adaptive`: grows with the namespace, from 0.4 to 0.8.",
        ),
    ] = "fixed"

    @property
    def spec(self) -> ConsistencyGate:
        """The settings of ConsistencyGate."""
        if self.consistency_preset != "custom":
            return CONSISTENCY_GATE_PRESETS[self.consistency_preset]
        return ConsistencyGate(k=self.k, tau=self.tau, threshold=self.threshold)

    def open(self) -> Graph:
        """ConsistencyGate alone."""
        return create_consistency_gate_graph(self.resolve(), spec=self.spec)


@dataclass(frozen=True, kw_only=True)
class WriteForm(GateForm):
    """Whose memories are written, and which gates decide on them."""

    user_id: User = ""
    gates: Annotated[
        GateChoice,
        Field(
            title="Gates",
            description="What a memory has to pass: `consistency` asks whether its source supports "
            "it, `conmem` whether it improves later answers (it needs a language model), `both` in "
            "this order. `none` stores every memory that can be stored.",
        ),
    ] = "consistency"
    conmem_preset: Annotated[ConMemPreset, Field(title="ConMem: preset")] = "default"

    @property
    def needs_model(self) -> bool:
        """ConMem needs one."""
        return "conmem" in _GATES[self.gates]

    @property
    def gate_specs(self) -> tuple[GateSpec, ...]:
        """The chosen gates, in order."""
        specs: dict[str, GateSpec] = {
            "consistency": self.spec,
            "conmem": CONMEM_PRESETS[self.conmem_preset],
        }
        return tuple(specs[name] for name in _GATES[self.gates])

    def gate_model(self, *, model: str = "") -> ModelLike:
        """The model that judges; ConMem has no local one, so it has no default."""
        return self.resolve(model=model, default="" if self.needs_model else "local")

    def open(self) -> Graph:
        """The write guard; a person is asked about memories in quarantine."""
        return create_write_guard(self.gate_model(), gates=self.gate_specs, review="interrupt")


@dataclass(frozen=True, kw_only=True)
class ReadForm(ModelForm):
    """Whose memories are read, which method admits them, and how they are rendered."""

    user_id: User = ""
    admission: Annotated[
        AdmissionChoice,
        Field(
            title="Admission",
            description="`ps`: a permission for each unit of a memory. `fc`: factors of whole "
            "memories. `relevance`: everything that is near enough to the query.",
        ),
    ] = "ps"
    admission_preset: Annotated[AdmissionPreset, Field(title="Admission: preset")] = "default"
    rendering: Annotated[
        Rendering,
        Field(
            title="Rendering",
            description="`channels`: sections by kind of information. `permission_notes`: sections "
            "by permitted use. `neutral`: one list. Admission by `relevance` has one rendering.",
        ),
    ] = "channels"

    @property
    def admission_spec(self) -> AdmissionSpec:
        """The chosen admission method."""
        # A preset has no effect on `relevance`, which is not a method of a paper.
        presets = () if self.admission == "relevance" else (self.admission_preset,)
        return choose_admission(self.admission, presets=presets, rendering=self.rendering)

    def open(self) -> Graph:
        """The read guard."""
        return create_read_guard(self.resolve(), admission=self.admission_spec)


@dataclass(frozen=True, kw_only=True)
class ConMemForm(ModelForm):
    """Model and settings of ConMem. It needs a language model."""

    preset: Annotated[ConMemPreset, Field(title="Preset")] = "default"
    irrelevant_cost: Annotated[
        float | None,
        Field(
            ge=0,
            title="Cost of needless use",
            description="Subtracted if the memory is used on the irrelevant probe; the preset's if "
            "empty.",
        ),
    ] = None
    risk_penalty: Annotated[
        float | None,
        Field(
            ge=0,
            title="Cost of a risk",
            description="Subtracted for a risk on the risk probe; the preset's if empty.",
        ),
    ] = None

    @property
    def needs_model(self) -> bool:
        """There is no local ConMem."""
        return True

    @property
    def spec(self) -> ConMem:
        """The settings of ConMem."""
        weights = {"irrelevant_unnecessary": self.irrelevant_cost, "risk_risk": self.risk_penalty}
        # Empty fields keep the preset's weights; `ConMem` fills in what is missing.
        changed = {name: value for name, value in weights.items() if value is not None}
        return ConMem.model_validate({"preset": self.preset, "weights": changed})

    def open(self) -> Graph:
        """ConMem alone."""
        return create_conmem_graph(self.resolve(default=""), spec=self.spec)


@dataclass(frozen=True, kw_only=True)
class FactorForm(ModelForm):
    """Model and settings of Factor-Compiled Admission."""

    preset: Annotated[AdmissionPreset, Field(title="Preset")] = "default"

    def open(self) -> Graph:
        """Factor-Compiled Admission alone."""
        spec = FactorCompiled(preset=self.preset)
        return create_factor_compiled_graph(self.resolve(), spec=spec)


@dataclass(frozen=True, kw_only=True)
class PermissionForm(ModelForm):
    """Model and settings of Permission-Semantic Admission."""

    preset: Annotated[AdmissionPreset, Field(title="Preset")] = "default"

    def open(self) -> Graph:
        """Permission-Semantic Admission alone."""
        spec = PermissionSemantic(preset=self.preset)
        return create_permission_semantic_graph(self.resolve(), spec=spec)


@dataclass(frozen=True, kw_only=True)
class ReconcileForm(ModelForm):
    """Model and settings of reconciliation."""

    preset: Annotated[
        Literal["default", "review"],
        Field(
            title="Preset",
            description="`review`: a memory in conflict with another waits for a person.",
        ),
    ] = "default"

    def open(self) -> Graph:
        """Reconciliation alone; it reads the store and changes nothing."""
        return create_reconcile_graph(self.resolve(), spec=RECONCILE_PRESETS[self.preset])


@dataclass(frozen=True, kw_only=True)
class AgentForm(WriteForm, ReadForm):
    """The host agent: whose memories, which models, which gates, and how memories are admitted."""

    @property
    def needs_model(self) -> bool:
        """It answers."""
        return True

    judge: Annotated[
        str,
        Field(
            title="Judge",
            description="Model that judges memories: `provider:model` or `local`. ConMem needs a "
            "language model, so with `local` its gate uses the model that answers.",
            examples=["local", "openai:gpt-5-mini"],
        ),
    ] = "local"

    def open(self) -> Graph:
        """The host agent."""
        # Only the answer is streamed to the chat: the JSON of judges is of no use to a reader.
        answering = self.resolve(default="", streams=True)
        judge = self.resolve(model=self.judge)
        # `local` is the default judge and cannot run ConMem; a user who chooses that gate should
        # not have to change the judge too.
        by_conmem = judge == "local" and "conmem" in _GATES[self.gates]
        return create_memory_agent(
            answering,
            read=create_read_guard(judge, admission=self.admission_spec),
            write=create_write_guard(
                self.resolve(default="") if by_conmem else judge,
                gates=self.gate_specs,
                on_failure="report",
            ),
        )


class _MissingModel(BaseChatModel):
    """Stands in for a model that is not named: the graph can be drawn, but not run."""

    @property
    def _llm_type(self) -> str:
        return "unnamed"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        del messages, args, kwargs
        raise ConfigurationError(_NO_MODEL, code=ErrorCode.MODEL_MISSING)


class Form(Protocol):
    """A frozen dataclass of settings that creates a graph."""

    def open(self) -> Graph:
        """The graph."""
        ...


def in_studio(default: Form) -> Callable[[ServerRuntime[Any]], Coroutine[Any, Any, Graph]]:
    """Create an entry for `langgraph.json`: the graph that the form describes.

    The graph has neither store nor checkpointer: the server brings its own.

    Args:
        default: The form before anything is filled in.
    """
    kind = type(default)

    # The server asks for a graph at every request; a form is frozen, so it can be a key.
    @lru_cache(maxsize=32)
    def open_graph(form: Form) -> Graph:
        return form.open().copy({"context_schema": kind})

    async def graph(runtime: ServerRuntime[Any]) -> Graph:
        # There is no execution when the server only lists or draws the graph.
        running = runtime.execution_runtime
        form = fill(default, None if running is None else running.context)
        if running is not None and isinstance(form, ModelForm):
            form.check()
        # In a thread, not in the server's event loop: creating a model's client imports its SDK and
        # reads certificates.
        return await asyncio.to_thread(open_graph, form)

    return graph


def fill(default: Form, context: object) -> Form:
    """The form with the values of a run's context; `None` leaves a default.

    Raises:
        InvalidInputError: If the form has no such field.
    """
    if context is None or isinstance(context, type(default)):
        return default if context is None else context
    # The dictionary of a request, in which an empty field of the form is `None`.
    names = {field.name for field in dataclasses.fields(cast("Any", default))}
    fields = cast("Mapping[str, Any]", context)
    unknown = sorted(set(fields) - names)
    if unknown:
        msg = f"the context has no {unknown[0]!r}: use {', '.join(sorted(names))}"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    filled = {name: value for name, value in fields.items() if value is not None}
    return dataclasses.replace(cast("Any", default), **filled)
