"""The host agent in LangGraph Studio: recall, answer and remember, with the server's store."""

import os

from memguard.studio import AgentForm, in_studio

FORM = AgentForm(
    model=os.environ.get("MEMGUARD_MODEL", ""), base_url=os.environ.get("MEMGUARD_BASE_URL", "")
)
graph = in_studio(FORM)
