"""The embedder of the server's store: the built-in one, which needs no key."""

from memguard.local import LocalEmbeddings

embeddings = LocalEmbeddings()
