"""The write guard in LangGraph Studio: store memories of a conversation."""

import os

from memguard.studio import WriteForm, in_studio

FORM = WriteForm(
    model=os.environ.get("MEMGUARD_MODEL", ""), base_url=os.environ.get("MEMGUARD_BASE_URL", "")
)
graph = in_studio(FORM)
