"""Factor-Compiled Admission: which recalled memories may enter the prompt, and as what?

```text
START -> adjudicate -> compile -> render -> END
```

Every memory is judged as a whole. All steps are those of `memguard.methods.adjudication`.
"""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime

from memguard.llm.models import ModelLike
from memguard.methods.adjudication.model import create_adjudicator
from memguard.methods.adjudication.steps import Steps, compile_method
from memguard.prompts import Prompt, load_prompt, resolve_prompt
from memguard.protocols import Adjudicator
from memguard.schema.read import FactorCompiled
from memguard.schema.receipt import Budget
from memguard.schema.results import AdmissionResults
from memguard.uncheckpointed import UncheckpointedGraph

NAME = "factor_compiled"

# Read now, with the module: a graph may be built inside a running event loop, where reading a file
# would block.
load_prompt(NAME, "adjudicate")


def create_factor_compiled_graph(
    model: "ModelLike | None" = None,
    *,
    spec: FactorCompiled | None = None,
    adjudicator: Adjudicator | None = None,
    budget: Budget | None = None,
    prompt: Prompt | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
) -> UncheckpointedGraph[AdmissionResults]:
    """FC as a graph: `{"query", "memories", "dialogue", "evidence"}` in, the section out.

    Args:
        model: Who judges: `"provider:model"`, a `BaseChatModel`, a resolved model, or `"local"`
            for rules that need no language model. Not needed with an adjudicator of your own.
        spec: Settings; the default preset when left out.
        adjudicator: Your own in place of the model.
        budget: The most that one read may spend; no limit when left out.
        prompt: Your own adjudication prompt, with the slots of the one that ships.
        clock: Gives the time, of reports and of `now`.
        new_id: Gives ids of reports.

    Raises:
        ConfigurationError: If the model or the prompt cannot be used.
    """
    spec = spec or FactorCompiled()
    asking = resolve_prompt(NAME, "adjudicate", override=prompt)
    steps = Steps(
        method=NAME,
        scheme="factors",
        spec=spec,
        adjudicator=adjudicator
        or create_adjudicator(model, prompt=asking, scheme="factors", spec=spec),
        budget=budget or Budget(),
        clock=clock,
        new_id=new_id,
    )
    return compile_method(steps)
