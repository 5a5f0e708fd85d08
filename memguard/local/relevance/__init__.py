"""Whether a memory is about what a query asks: scores without a language model."""

import importlib
from typing import TYPE_CHECKING

from memguard.local.relevance.requests import asks_for_everything

if TYPE_CHECKING:
    from memguard.local.relevance.head import CLEARLY_OTHER, DIRECT
    from memguard.local.relevance.model import UNCERTAIN, RelevanceModel

# In plain order, like every other list of names.
__all__ = [  # noqa: RUF022
    "CLEARLY_OTHER",
    "DIRECT",
    "RelevanceModel",
    "UNCERTAIN",
    "asks_for_everything",
]

# Importing numpy takes a tenth of a second; the rules on words do not need it.
_MODULES = {
    "CLEARLY_OTHER": "head",
    "DIRECT": "head",
    "UNCERTAIN": "model",
    "RelevanceModel": "model",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
