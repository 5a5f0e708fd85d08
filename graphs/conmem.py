"""ConMem in LangGraph Studio: would the candidate change answers for the better?"""

import os

from memguard.studio import ConMemForm, in_studio

FORM = ConMemForm(
    model=os.environ.get("MEMGUARD_MODEL", ""), base_url=os.environ.get("MEMGUARD_BASE_URL", "")
)
graph = in_studio(FORM)
