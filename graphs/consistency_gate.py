"""ConsistencyGate in LangGraph Studio: does its source support a candidate?"""

import os

from memguard.studio import GateForm, in_studio

FORM = GateForm(
    model=os.environ.get("MEMGUARD_MODEL", ""), base_url=os.environ.get("MEMGUARD_BASE_URL", "")
)
graph = in_studio(FORM)
