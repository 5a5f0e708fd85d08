"""The read guard in LangGraph Studio: which stored memories may be used?"""

import os

from memguard.studio import ReadForm, in_studio

FORM = ReadForm(
    model=os.environ.get("MEMGUARD_MODEL", ""), base_url=os.environ.get("MEMGUARD_BASE_URL", "")
)
graph = in_studio(FORM)
