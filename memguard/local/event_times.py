"""When what a text says happened or began, by its words of time."""

from datetime import datetime


def event_time(text: str, *, said_at: datetime | None) -> datetime | None:
    """The start of the period in which what a text says happened or began, in UTC."""
    del text, said_at
    return None
