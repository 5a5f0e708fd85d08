"""ConMem in LangGraph Studio: does a candidate improve later answers?"""

import os

from memguard.studio import ConMemForm, in_studio

FORM = ConMemForm(
    model=os.environ.get("MEMGUARD_MODEL", ""), base_url=os.environ.get("MEMGUARD_BASE_URL", "")
)
graph = in_studio(FORM)
