"""The support verifier: whether turns support a sentence, without a language model."""

from memguard.local.verifier.judgement import SupportJudgement, WordEvidence
from memguard.local.verifier.support import SupportVerifier

__all__ = ["SupportJudgement", "SupportVerifier", "WordEvidence"]
