"""Chats, transcripts and other lines with a speaker's label inside a text. Pure.

A label with a time is a chat in every case. Labels without a time may also be a list of facts
("Name: Ana", "Work: nurse"), so more must speak for a chat: a label that comes back, one that means
the user, or talk between two people.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from memguard.conversations.passage_cues import STRONG_COMMENT
from memguard.conversations.pasted_text import PastedSpan
from memguard.conversations.text_lines import Line

_TIME = r"\d{1,2}[:.h]\d{2}(?::\d{2})?(?:\s?[AaPp]\.?\s?[Mm]\.?)?(?:\sUhr)?"
_DATE = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\d{4}年\d{1,2}月\d{1,2}日|\w{3,9}\.? \d{1,2}(?:, \d{4})?"
_MARKS = r"[\u200e\u200f\u202a-\u202e]?"
_STAMPED = re.compile(
    rf"^\s{{0,8}}{_MARKS}(?:"
    rf"\[(?:(?:{_DATE}),?\s{{1,2}})?(?:{_TIME}|"
    rf"\d{{1,2}}:\d\d:\d\d)(?:[.,]\d{{1,3}})?\]\s?[-\u2013]?\s?|"
    rf"(?:{_DATE}),?\s{{1,2}}{_TIME}\s[-\u2013]\s|"
    rf"{_TIME}\s{{1,2}}(?:[-\u2013|]\s)?(?=<?[^\W\d_][^:<>\n]{{0,39}}>?:\s))"
    rf"(?P<label>[^:\uff1a\n]{{1,60}}?)\s?[:\uff1a](?:\s|$)"
)
"""A line of an exported chat: date and time, name, text."""
_NOTICE = re.compile(
    rf"^\s{{0,8}}{_MARKS}(?:\[(?:{_DATE}),?\s{{1,2}}{_TIME}\]|"
    rf"(?:{_DATE}),?\s{{1,2}}{_TIME}\s[-\u2013])\s"
)
"""A line of an exported chat that has no name, such as "Messages are encrypted"."""
_HEADED = re.compile(
    rf"^\s{{0,8}}(?P<label>[^\W\d_][^:\uff1a\n\d]{{0,39}}?)\s{{1,4}}\[?(?:(?:{_DATE}|today|"
    rf"yesterday|heute|gestern|hoy|ayer|"
    rf"aujourd'hui|hier|今天|昨天)(?:\s(?:at|um|a las|à))?,?\s{{1,2}})?{_TIME}\]?\s{{0,4}}$",
    re.IGNORECASE,
)
"""A line with a name and a time, as in Slack, Teams and WeChat; the text is on the next lines."""
_TIMED = re.compile(
    rf"^\s{{0,8}}(?P<label>[^\W\d_][^:\uff1a\n\d()]{{0,39}}?)\s?[(\[](?:(?:{_DATE}),?\s)?{_TIME}[)\]]"
    r"\s?[:\uff1a]\s"
)
"""A line such as "Karl (10:32): I am late"."""
_BRACKETED = re.compile(rf"^\s{{0,8}}\[?{_TIME}\]?\s{{1,2}}<(?P<label>[^<>\n]{{1,40}})>\s")
"""A line of IRC: time and name in angle brackets."""
_CAPTION = re.compile(r"^\s{0,4}\d{1,2}:\d\d(?::\d\d)?[.,]\d{3} --> ")
_LABELLED = re.compile(
    r"^\s{0,8}(?:[-*\u2022]\s)?[*_]{0,2}(?P<label>[^\W\d_][^\s:\uff1a*_/\"(]{0,30}(?:\s[^\s:\uff1a*_/\"(]{1,30}){0,2})"
    r"[*_]{0,2}\s?[:\uff1a][*_]{0,2}(?=\s?\S)(?:\s{1,3}|(?<=\uff1a))"
)

_ENCLOSED = re.compile(r"^\s{0,8}[<\[](?P<label>[^\W\d_][\w .'-]{1,30})(?:>\s?:?|\]\s?:)\s(?=\S)")
"""A line such as "<Karl> I am late" or "[Karl]: I am late"."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SELF = frozenset({"me", "myself", "ich", "yo", "moi", "我", "i", "je"})
_ROLES = _words("""
    user assistant ai bot human system chatgpt claude gpt agent customer caller support operator
    interviewer interviewee host guest speaker q a question answer moderator client doctor patient
    kunde berater frage antwort interviewerin arzt patientin nutzer assistent entrevistador
    cliente agente pregunta respuesta asistente usuario médico paciente journaliste invité client
    conseiller question réponse utilisateur médecin 客服 客户 主持人 嘉宾 问 答 用户 助手 记者
    医生 患者 boss chef jefe jefa manager mom mum dad mama papa mamá papá maman 老板 妈妈 爸爸
    经理
    """)
_TOPICS = _words("""
    name age city country address job work profession family diet food allergies allergy health
    hobbies hobby home pets pet dog cat goals goal notes note email phone birthday language
    languages likes dislikes preferences preference budget breakfast lunch dinner snack snacks
    monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun todo
    update correction ps edit fact facts remember reminder important info background context
    location education medication medications condition conditions exercise sports sport music
    books favorite favourite alter stadt wohnort beruf arbeit familie ernährung essen allergien
    allergie gesundheit hobbys haustiere ziele notiz notizen sprache sprachen frühstück
    mittagessen abendessen montag dienstag mittwoch donnerstag freitag samstag sonntag geburtstag
    adresse wichtig korrektur medikamente sport nombre edad ciudad país profesión trabajo familia
    dieta comida alergias alergia salud aficiones mascotas metas nota notas idioma idiomas
    desayuno almuerzo cena lunes martes miércoles jueves viernes sábado domingo cumpleaños
    dirección importante corrección medicación nom prénom âge ville pays métier travail famille
    régime alimentation allergies allergie santé loisirs animaux objectifs langue langues
    petit-déjeuner déjeuner dîner lundi mardi mercredi jeudi vendredi samedi dimanche anniversaire
    adresse médicaments 姓名 名字 年龄 城市 职业 工作 家庭 饮食 过敏 健康 爱好 宠物 目标 备注 语言
    早餐 午餐 晚餐 生日 地址 更正 补充
    """)
"""Labels of lists of facts, which name no speaker."""
_TALK = re.compile(
    r"[?\uff1f!]|(?<!\w)(?:i|i'm|you|your|we|ich|du|sie|wir|dir|yo|tú|te|usted|je|tu|vous|nous|"
    r"hi|hello|"
    r"hey|hallo|hola|bonjour|yes|no|ja|nein|sí|oui|non|ok|okay|thanks|danke|gracias|merci)(?!\w)|"
    r"[我你您们吗吧呢好]",
    re.IGNORECASE,
)
_MIN_LABELLED = 2
_MAX_EXAMINED = 12
"""Lines that decide whether labels are a chat's, so that no long list is read at each line."""
_MAX_GAP = 2
"""Lines without a label that may stand between two labelled ones."""


class Message(NamedTuple):
    """The label of a line: whose words follow, and where they begin in the line."""

    label: str
    text: int


def stamped(line: str) -> Message | None:
    """The label of a line of an exported chat."""
    match = _STAMPED.match(line) or _TIMED.match(line) or _BRACKETED.match(line)
    if match is not None:
        return Message(match["label"].strip(" ~<>\u200e"), match.end())
    if _NOTICE.match(line) or _CAPTION.match(line):
        return Message("", len(line))
    match = _HEADED.match(line)
    return Message(match["label"].strip(), len(line)) if match is not None else None


def labelled(line: str) -> Message | None:
    """The label of a line such as "Karl: I am late", which may as well be a fact about the user."""
    match = _LABELLED.match(line) or _ENCLOSED.match(line)
    return Message(match["label"].strip(), match.end()) if match is not None else None


class Labels(NamedTuple):
    """The labels of all lines of a text; `None` for a line that has none."""

    lines: Sequence[Line]
    stamped: Sequence[Message | None]
    """Labels with a time."""
    plain: Sequence[Message | None]
    """Labels of which the form does not tell whether they name a speaker."""


def read_labels(lines: Sequence[Line]) -> Labels:
    """The labels of all lines; each line is read once."""
    return Labels(
        lines,
        [None if line.blank else stamped(line.text) for line in lines],
        [None if line.blank else labelled(line.text) for line in lines],
    )


def chat_at(
    labels: Labels, first: int, *, speaker: str, announced: bool
) -> tuple[int, list[PastedSpan]] | None:
    """The chat that begins at a line.

    Args:
        labels: The lines of the text and their labels.
        first: Index of the line.
        speaker: The user's name in lower case; empty if unknown.
        announced: Whether the text before calls it a chat, so that any labels will do.

    Returns:
        The index after its last line, and its passages without the user's own; `None` for no chat.
    """
    messages = labels.stamped
    if messages[first] is None:
        messages = labels.plain
        if not _is_block(labels, first, speaker=speaker, announced=announced):
            return None
    at = first
    is_own = False
    spans: list[PastedSpan] = []
    while at < len(labels.lines):
        line = labels.lines[at]
        message = messages[at]
        if message is not None and messages is labels.plain and _is_topic(message.label):
            break
        if message is not None:
            is_own = _is_user(message.label, speaker)
            end = min(line.start + message.text, line.end) if is_own else line.end
            spans.append(PastedSpan(line.start, end, "transcript", "" if is_own else message.label))
        elif line.blank:
            following = _after_blank(labels.lines, at)
            if following is None or messages[following] is None:
                break
            at = following
            continue
        elif STRONG_COMMENT.match(line.text.lstrip()):
            break
        elif not is_own:
            spans.append(PastedSpan(line.start, line.end, "transcript", spans[-1].author))
        at += 1
    return at, _joined(spans)


def _after_blank(lines: Sequence[Line], at: int) -> int | None:
    """The next line with text, at most as many lines on as a chat leaves free."""
    for index in range(at + 1, min(at + 1 + _MAX_GAP, len(lines))):
        if lines[index].text.strip():
            return index
    return None


def _is_block(labels: Labels, first: int, *, speaker: str, announced: bool) -> bool:
    """Whether the lines from here on have labels, and are a chat and not a list of facts."""
    messages: list[tuple[Message, str]] = []
    gap = 0
    for index in range(first, min(first + _MAX_EXAMINED, len(labels.lines))):
        message = labels.plain[index]
        if message is not None:
            messages.append((message, labels.lines[index].text[message.text :]))
            gap = 0
        elif not messages or (gap := gap + 1) > _MAX_GAP:
            break
    return bool(messages) and _is_chat(messages, speaker=speaker, announced=announced)


def _is_chat(messages: Sequence[tuple[Message, str]], *, speaker: str, announced: bool) -> bool:
    names = [message.label.casefold() for message, _ in messages]
    if announced:
        return not all(map(_is_topic, names))
    if len(names) < _MIN_LABELLED or any(map(_is_topic, names)):
        return False
    if any(_is_user(name, speaker) for name in names):
        return True
    several = len(set(names)) > 1
    roles = sum(name.rstrip(" 0123456789").split(" ")[0] in _ROLES for name in names)
    if roles >= _MIN_LABELLED or (several and len(set(names)) < len(names)):
        return True
    return several and 2 * sum(bool(_TALK.search(text)) for _, text in messages) >= len(names)


def _is_topic(label: str) -> bool:
    return any(word in _TOPICS for word in label.casefold().split())


def _is_user(label: str, speaker: str) -> bool:
    name = label.casefold().strip()
    return name in _SELF or (bool(speaker) and name == speaker)


def _joined(spans: Sequence[PastedSpan]) -> list[PastedSpan]:
    """Adjacent messages as one passage, with an author if all have the same."""
    joined: list[PastedSpan] = []
    for span in spans:
        if joined and joined[-1].end == span.start:
            before = joined[-1]
            authors = {before.author, span.author} - {""}
            author = authors.pop() if len(authors) == 1 else "\0"
            joined[-1] = before._replace(end=span.end, author=author)
        else:
            joined.append(span)
    return [span._replace(author=span.author.strip("\0")) for span in joined]
