"""Finds the statements of a conversation by rules, without a language model.

Without a model a memory cannot be phrased, but it can be picked: a sentence in which the speaker
states something as a fact. A sentence that does not stand alone, or that may not last, is a
statement with a doubt. The rules are for English, German, Spanish, French and Chinese; what is
said in another language is doubted.
"""

from memguard.local.statements.doubts import Statement
from memguard.local.statements.reading import find_statements, read_statements
from memguard.local.statements.sentences import split_sentences

__all__ = ["Statement", "find_statements", "read_statements", "split_sentences"]
