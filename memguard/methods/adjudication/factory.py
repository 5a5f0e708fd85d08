"""From what a user passes as `model` to an adjudicator and a decomposer."""

from functools import cache

from memguard.llm.models import LOCAL, ModelLike, resolve_model
from memguard.local.adjudicator import LocalAdjudicator, LocalDecomposer
from memguard.methods.adjudication.decomposer import ModelDecomposer
from memguard.methods.adjudication.model import Limits, ModelAdjudicator
from memguard.prompts import Prompt, load_prompt
from memguard.protocols import Adjudicator, Decomposer
from memguard.schema.read import ReadSpec
from memguard.schema.units import Scheme

# Read now, with the module: a graph may be built inside a running event loop, where reading a file
# would block.
load_prompt("adjudication", "conflicts")


def create_adjudicator(
    model: "ModelLike | None", *, prompt: Prompt, scheme: Scheme, spec: ReadSpec
) -> Adjudicator:
    """The adjudicator that a model argument asks for.

    Args:
        model: The model argument.
        prompt: Describes situation and units; slots `now dialogue evidence units request`.
        scheme: Which attributes the prompt asks for.
        spec: Sizes of a call.

    Raises:
        ConfigurationError: If the model cannot be used.
    """
    if model == LOCAL:
        return _local_adjudicator()
    return ModelAdjudicator(
        model=resolve_model(model),
        prompts={scheme: prompt},
        conflicts_prompt=load_prompt("adjudication", "conflicts"),
        limits=Limits(part_tokens=spec.part_tokens, part_units=spec.part_units, repair=spec.repair),
    )


def create_decomposer(model: "ModelLike | None", *, prompt: Prompt) -> Decomposer:
    """The decomposer that a model argument asks for.

    Raises:
        ConfigurationError: If the model cannot be used.
    """
    if model == LOCAL:
        return LocalDecomposer()
    return ModelDecomposer(model=resolve_model(model), prompt=prompt)


@cache
def _local_adjudicator() -> LocalAdjudicator:
    """One per process: it loads its embedder at the first read, which takes time and memory."""
    return LocalAdjudicator()
