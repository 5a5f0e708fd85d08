"""When what a text says happened, by its words of time."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from memguard.local.event_times import event_time

SAID = datetime(2026, 12, 1, 10, 30, tzinfo=UTC)

RELATIVE = [
    ("Last spring I moved to Lisbon.", "2026-03-01"),
    ("I have lived here since March.", "2026-03-01"),
    ("Two years ago I quit smoking.", "2024-12-01"),
    ("Yesterday I bought a bike.", "2026-11-30"),
    ("The day before yesterday I fell.", "2026-11-29"),
    ("I've been vegan for two years.", "2024-12-01"),
    ("Last month I changed jobs.", "2026-11-01"),
    ("Last week we met.", "2026-11-23"),
    ("Next May I will move to Rome.", "2027-05-01"),
    ("As of last Monday I work at Bosch.", "2026-11-30"),
    ("Last winter I broke my leg.", "2025-12-01"),
    ("Letzten Frühling bin ich umgezogen.", "2026-03-01"),
    ("Vor zwei Jahren war ich in Rom.", "2024-12-01"),
    ("Seit März arbeite ich bei Bosch.", "2026-03-01"),
    ("Morgen ziehe ich um.", "2026-12-02"),
    ("L'année dernière j'ai déménagé.", "2025-01-01"),
    ("Il y a deux ans j'ai arrêté.", "2024-12-01"),
    ("L'été dernier j'ai vendu ma voiture.", "2026-06-01"),
    ("El año pasado me mudé a Madrid.", "2025-01-01"),
    ("Hace dos años dejé de fumar.", "2024-12-01"),
    ("Vivo en Sevilla desde marzo.", "2026-03-01"),
    ("去年我搬到了上海。", "2025-01-01"),
    ("两年前我戒烟了。", "2024-12-01"),
    ("三月以来我在学法语。", "2026-03-01"),
    ("上个月我换了工作。", "2026-11-01"),
]
ABSOLUTE = [
    ("In 2019 I ran a marathon.", "2019-01-01"),
    ("On 3 May 2020 I married.", "2020-05-03"),
    ("I started on 2024-03-05.", "2024-03-05"),
    ("From 2015 to 2018 I lived in Rome.", "2015-01-01"),
    ("Ich bin am 3. Mai 2021 eingezogen.", "2021-05-03"),
    ("Ich bin am 3.5.2021 eingezogen.", "2021-05-03"),
    ("J'habite à Lyon depuis 2020.", "2020-01-01"),
    ("El 3 de mayo de 2021 me casé.", "2021-05-03"),
    ("2019年我住在北京。", "2019-01-01"),
    ("2021年5月3日我结婚了。", "2021-05-03"),
]
NONE = [
    "I live in Porto.",
    "In 2015 I lived in Rome and in 2019 in Paris.",
    "I was born in 1990.",
    "Mein Geburtstag ist am 3. Mai.",
    "My exam is in May.",
    "I work until June.",
    "On 03/04/2024 I moved.",
    "Mieszkam tu od marca.",
    "",
]


@pytest.mark.parametrize(("text", "day"), RELATIVE + ABSOLUTE)
def test_the_start_of_the_period_is_given_in_utc(text: str, day: str) -> None:
    assert event_time(text, said_at=SAID) == datetime.fromisoformat(day).replace(tzinfo=UTC)


@pytest.mark.parametrize(("text", "day"), ABSOLUTE)
def test_a_date_needs_no_time_of_saying(text: str, day: str) -> None:
    assert event_time(text, said_at=None) == datetime.fromisoformat(day).replace(tzinfo=UTC)


@pytest.mark.parametrize("text", [text for text, _ in RELATIVE])
def test_a_relative_time_needs_one(text: str) -> None:
    assert event_time(text, said_at=None) is None


@pytest.mark.parametrize("text", NONE)
def test_no_time_or_an_ambiguous_one_gives_none(text: str) -> None:
    assert event_time(text, said_at=SAID) is None


def test_the_calendar_of_the_speaker_counts() -> None:
    late = datetime(2026, 12, 1, 23, 30, tzinfo=timezone(timedelta(hours=-8)))
    assert event_time("Yesterday I fell.", said_at=late) == datetime(2026, 11, 30, tzinfo=UTC)


def test_the_last_day_of_a_month_has_one_in_every_month() -> None:
    said = datetime(2026, 3, 31, tzinfo=UTC)
    assert event_time("One month ago I fell.", said_at=said) == datetime(2026, 2, 28, tzinfo=UTC)
