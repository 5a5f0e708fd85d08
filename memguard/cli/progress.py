"""Progress bars: of a write, turns read and candidates decided; of a case, its steps."""

from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn


class _Bars:
    """Bars that are drawn between entering and leaving."""

    def __init__(self, *, quiet: bool, **look: Any) -> None:
        # The page goes to standard output; the bars do not.
        console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[said]}"),
            console=console,
            disable=quiet or not console.is_terminal,
            **look,
        )

    def __enter__(self) -> Self:
        """Begin to draw."""
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Draw no more."""
        self._bars.stop()


class WriteProgress(_Bars):
    """Follows the events of a write; shows nothing where output is for programs."""

    def __init__(self, *, turns: int, quiet: bool) -> None:
        """Show that there are `turns` to read."""
        super().__init__(quiet=quiet)
        self._counts: dict[str, int] = {}
        self._turns = self._bars.add_task("turns", total=turns, said="")
        self._candidates = self._bars.add_task("candidates", total=0, said="")

    def note(self, event: dict[str, Any]) -> None:
        """Take in one event of the guard."""
        match event.get("step"):
            case "extracted":
                self._bars.advance(self._turns, event["turns"])
            case "screened":
                known = self._bars.tasks[self._candidates].total or 0
                self._bars.update(self._candidates, total=known + event["to_gate"])
            case "gated":
                outcome = event["outcome"]
                self._counts[outcome] = self._counts.get(outcome, 0) + 1
                said = ", ".join(f"{count} {what}" for what, count in self._counts.items())
                self._bars.update(self._candidates, advance=1, said=said)
            case _:
                pass

    def finish(self) -> None:
        """All turns are read; some were read by an earlier run."""
        task = self._bars.tasks[self._turns]
        self._bars.update(self._turns, completed=task.total)


class CaseProgress(_Bars):
    """Follows the events of one ConMem case."""

    STEPS = 16
    """Of a plain case: generate, validate, four steps for each of three probes, CMTE, decide."""

    def __init__(self, *, quiet: bool) -> None:
        """Show that nothing is done yet."""
        super().__init__(quiet=quiet, transient=True)
        self._task = self._bars.add_task("steps", total=self.STEPS, said="")
        self._done = 0

    def note(self, event: dict[str, Any]) -> None:
        """Take in one event of the case."""
        if event.get("state") == "started":
            about = f" of the {event['role']} probe" if "role" in event else ""
            self._bars.update(self._task, said=f"{event['step'].replace('_', ' ')}{about}")
        elif event.get("state") == "done":
            self._done += 1
            self._bars.update(self._task, completed=self._done, total=max(self.STEPS, self._done))
