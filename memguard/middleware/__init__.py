"""memguard in the middleware list of LangChain's `create_agent`."""

from memguard.middleware.agent import MemguardMiddleware

__all__ = ["MemguardMiddleware"]
