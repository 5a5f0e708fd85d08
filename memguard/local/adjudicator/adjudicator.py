"""The local adjudicator: situation and attributes by rules and cosines, without a language model.

It returns what a model would be asked for, and the same result for the same input. It is weaker
than a model: it reads English, German, Spanish, French and Chinese, and follows the wording. Its
doubt says little, so it sets `fails_open`: what nothing speaks against is shown as uncertain.
`python -m benchmarks.adjudicator` prints its figures.
"""

import asyncio
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING

from memguard.local.adjudicator.cues import NAME, WEAKER
from memguard.schema.decision import Inconclusive
from memguard.schema.read import Adjudication, ReadCase
from memguard.schema.units import Scheme, Unit

if TYPE_CHECKING:
    from memguard.local.adjudicator.rules import AdjudicationRules
    from memguard.local.encoder import LocalEmbeddings
    from memguard.local.verifier.support import SupportVerifier

FINGERPRINT = "local:rules:5"
"""On every receipt. Increase the number when a rule or a threshold changes."""


class LocalAdjudicator:
    """Judges by rules and the built-in embedder; no key, no network, deterministic.

    Safe to share between threads and event loops. All work, including loading the models, runs in
    one worker thread.

    Args:
        embeddings: A loaded embedder to share; by default a new one.
        verifier: Judges whether evidence or another unit supports a unit; by default a new one on
            the embedder's model.
    """

    name: str = NAME
    """Shown on reports."""
    fingerprint: str = FINGERPRINT
    """Version of the rules and thresholds; the embedder's weights are pinned."""

    def __init__(
        self,
        *,
        embeddings: "LocalEmbeddings | None" = None,
        verifier: "SupportVerifier | None" = None,
    ) -> None:
        self._embeddings = embeddings
        self._verifier = verifier
        self._lock = Lock()
        self._rules: AdjudicationRules | None = None
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="memguard-adjudicator")

    async def adjudicate(
        self, case: ReadCase, *, units: Sequence[Unit], scheme: Scheme, seconds: float
    ) -> Adjudication:
        """Judge the situation, then every unit; see `memguard.protocols.Adjudicator`.

        Never raises on a timeout: a late result has an `Inconclusive` situation and no rows.
        """
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._worker, self.judge, case, tuple(units), scheme)
        try:
            # The thread cannot be stopped: it runs to its end, but this read no longer waits for
            # it.
            return await asyncio.wait_for(work, timeout=None if math.isinf(seconds) else seconds)
        except TimeoutError:
            late = Inconclusive(reason="timeout", detail=f"not ready within {seconds:g} s")
            return Adjudication(
                situation=late,
                adjudicator=NAME,
                flags=("local_adjudicator", "adjudication_late"),
                notes=(WEAKER,),
            )

    def judge(self, case: ReadCase, units: Sequence[Unit], scheme: Scheme) -> Adjudication:
        """Like `adjudicate`, without a timeout and in the calling thread."""
        return self._loaded().judge(case, units, scheme)

    def _loaded(self) -> "AdjudicationRules":
        with self._lock:
            if self._rules is None:
                # Imported here, because numpy and the models are slow to import.
                from memguard.local.adjudicator.rules import AdjudicationRules  # noqa: PLC0415

                self._rules = AdjudicationRules(
                    embeddings=self._embeddings, verifier=self._verifier
                )
            return self._rules
