"""The support verifier: whether turns support a sentence, without a language model."""

from memguard.local.verifier.support import SupportJudgement, SupportVerifier, WordEvidence

__all__ = ["SupportJudgement", "SupportVerifier", "WordEvidence"]
