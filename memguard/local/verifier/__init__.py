"""The support verifier: is a sentence supported by the turns it comes from?"""

from memguard.local.verifier.judgement import SupportJudgement, WordEvidence
from memguard.local.verifier.support import SupportVerifier

__all__ = ["SupportJudgement", "SupportVerifier", "WordEvidence"]
