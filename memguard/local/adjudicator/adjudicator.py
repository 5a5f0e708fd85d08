"""The local adjudicator: situation and attributes by rules and cosines, with no language model.

It gives what a model would be asked for, in the same shape, the same each time. It is weaker: it
knows English only, goes by wording, and takes what shares a topic with the query for relevant. Its
figures are printed by `python -m memguard.bench.adjudicator`.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING

from memguard.local.adjudicator.patterns import NAME, WEAKER
from memguard.schema.ledger import Adjudication
from memguard.schema.read import ReadCase
from memguard.schema.units import Scheme, Unit
from memguard.schema.verdict import Inconclusive

if TYPE_CHECKING:
    from memguard.local.adjudicator.rules import Rules
    from memguard.local.embedder import LocalEmbeddings
    from memguard.local.verifier.support import SupportVerifier

FINGERPRINT = "local:rules:2"
"""Raise the number when a rule or a threshold changes."""


class LocalAdjudicator:
    """Judges by rules and the built-in embedder; no key, no network, the same verdict each time.

    Safe to share between threads and event loops; everything, loading included, runs in a thread
    of its own.

    Args:
        embeddings: The embedder, to share one that is loaded; a new one when not given.
        verifier: Says whether evidence or another unit supports a unit; a new one, on the same
            model, when not given.
    """

    def __init__(
        self,
        *,
        embeddings: "LocalEmbeddings | None" = None,
        verifier: "SupportVerifier | None" = None,
    ) -> None:
        self._given = embeddings, verifier
        self._lock = Lock()
        self._rules: Rules | None = None
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="memguard-adjudicator")

    @property
    def name(self) -> str:
        """Shown on reports."""
        return NAME

    @property
    def fingerprint(self) -> str:
        """Of rules and thresholds; the embedder's weights are pinned."""
        return FINGERPRINT

    async def adjudicate(
        self, case: ReadCase, *, units: Sequence[Unit], scheme: Scheme, seconds: float
    ) -> Adjudication:
        """Judge the situation, and then every unit; see `memguard.protocols.Adjudicator`."""
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._worker, self.judge, case, tuple(units), scheme)
        try:
            # The thread cannot be stopped; what it finds after that is of no use to this read.
            return await asyncio.wait_for(work, timeout=seconds)
        except TimeoutError:
            late = Inconclusive(reason="timeout", detail=f"not ready within {seconds:g} s")
            return Adjudication(
                situation=late,
                adjudicator=NAME,
                flags=("local_adjudicator", "adjudication_late"),
                notes=(WEAKER,),
            )

    def judge(self, case: ReadCase, units: Sequence[Unit], scheme: Scheme) -> Adjudication:
        """As `adjudicate`, here and now, from a thread without an event loop."""
        return self._loaded().judge(case, units, scheme)

    def _loaded(self) -> "Rules":
        with self._lock:
            if self._rules is None:
                # Late: numpy and the models are needed only by those who judge.
                from memguard.local.adjudicator.rules import Rules  # noqa: PLC0415

                embeddings, verifier = self._given
                self._rules = Rules(embeddings=embeddings, verifier=verifier)
            return self._rules
