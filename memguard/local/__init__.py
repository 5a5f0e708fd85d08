"""Models that need no key and no network; every name is imported on first use."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memguard.local.adjudicator import LocalAdjudicator, LocalDecomposer
    from memguard.local.encoder import LocalEmbeddings, MiniLmEncoder, TokenVectors
    from memguard.local.verifier import SupportJudgement, SupportVerifier, WordEvidence
    from memguard.local.weights import WeightsFile, find_weights

__all__ = [
    "LocalAdjudicator",
    "LocalDecomposer",
    "LocalEmbeddings",
    "MiniLmEncoder",
    "SupportJudgement",
    "SupportVerifier",
    "TokenVectors",
    "WeightsFile",
    "WordEvidence",
    "find_weights",
]

# Importing numpy, onnxruntime and tokenizers costs a second; `import memguard.local` does not.
_MODULES = {
    "LocalAdjudicator": "memguard.local.adjudicator",
    "LocalDecomposer": "memguard.local.adjudicator",
    "LocalEmbeddings": "memguard.local.encoder",
    "MiniLmEncoder": "memguard.local.encoder",
    "SupportJudgement": "memguard.local.verifier",
    "SupportVerifier": "memguard.local.verifier",
    "TokenVectors": "memguard.local.encoder",
    "WeightsFile": "memguard.local.weights",
    "WordEvidence": "memguard.local.verifier",
    "find_weights": "memguard.local.weights",
}


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
