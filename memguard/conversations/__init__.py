"""Reads conversations: chat messages, JSON and JSONL files, LoCoMo."""

from memguard.conversations.files import load_conversation
from memguard.conversations.messages import read_conversation

__all__ = ["load_conversation", "read_conversation"]
