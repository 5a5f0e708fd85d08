"""How a new memory relates to stored ones, read from their words without a language model.

The rules are for English, German, Spanish, French and Chinese. They say that one memory replaces
another only on a clear sign; whatever they cannot tell coexists.
"""

from memguard.local.corrections.reader import read_relations

__all__ = ["read_relations"]
