# ruff: noqa: RUF001 - tables of words in several languages
"""Reads the clauses of a Chinese text, whose words are not separated by spaces."""

import re

from memguard.local.owners.clause import UNKNOWN, USER, WORLD, Clause
from memguard.local.owners.words import FEMALE, MALE, RELATIONS

_TABLE = RELATIONS["zh"]
_NOUN = "|".join(sorted(_TABLE, key=len, reverse=True))
_PART = re.compile(r"[^，,。！？；!?;：\n]+")
_STOP = re.compile(r"[。！？；!?;\n]")
# One or two persons in front of a relation: `我妻子的哥哥`, `她儿子`, `李娜的妈妈`.
_PERSON = re.compile(
    rf"(?P<base>我们|我|咱们|他们|她们|他|她|你们|你|您|用户)(?:自己)?"
    rf"(?:(?:家|的)?(?:大|小|最好的|前)?(?P<one>{_NOUN}))?(?:的?(?P<two>{_NOUN}))?"
    rf"|(?P<bare>{_NOUN})(?:的(?P<three>{_NOUN}))?"
)
_NAME = re.compile(
    rf"^(?P<name>小[\u4e00-\u9fff]|[\u4e00-\u9fff]{{2,3}}?)是(?:我|我们)的?(?P<of>{_NOUN})"
)
_NAMED = re.compile(
    r"^(?P<name>小[\u4e00-\u9fff]|老[\u4e00-\u9fff]|[王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段][\u4e00-\u9fff]{1,2}?)"
    r"(?=住|在|是|喜欢|不|有|对|爱|想|说|会|也|的|吃|喝|讨厌|今年|去|来|养|每|从|做|学|教|没)"
)
# In front of a person who is the object.
_OBJECT = re.compile(
    r"(?:对|和|跟|给|把|被|为|让|叫|陪|帮|教|看|送|问|找|像|比|替|当|做|告诉|喜欢|爱)$"
)
_OPENING = re.compile(
    r"^(?:但是?|不过|因为|所以|而且?|然后|其实|可是|虽然|如果|今年|去年|现在|以前|昨天|今天|上周|请记住|记住|"
    r"还有|平时|周末|每天|最近|嗯|对了)*"
)
_AGREES = re.compile(r"^我也(?:是|不是|一样|不|喜欢|没有)?$|^(?:我)?同(?:样|感)$")
_ELIDED = re.compile(
    r"^[^，]{1,8}?(?:也是|不是|不|也不|不吃|吃|没有|有|是|会|不会|喜欢|不喜欢|也)$"
)
# A clause that begins with one of these has dropped its subject.
_VERBS = re.compile(
    r"^(?:对|不|没|喜欢|住|在|是|有|想|会|要|从|每|吃|喝|爱|讨厌|做|去|学|养|也|都|很|已经)"
)
_THIRD = {"他": "m", "她": "f", "他们": "p", "她们": "p"}


def read_chinese(text: str, start: int, end: int, *, me: str, you: str) -> list[Clause]:
    """The clauses of a passage; a clause without a subject has that of the one before it."""
    clauses: list[Clause] = []
    people: list[str] = []
    names: dict[str, str] = {}
    last_end = start
    for hit in _PART.finditer(text, start, end):
        words = hit[0].strip()
        if not words:
            continue
        begin = hit.start() + hit[0].index(words[0])
        is_new = bool(_STOP.search(text, last_end, begin)) or not clauses
        last_end = begin + len(words)
        clauses.append(
            _clause(
                words, begin, clauses, is_new=is_new, me=me, you=you, people=people, names=names
            )
        )
    return clauses


def _clause(
    words: str,
    begin: int,
    clauses: list[Clause],
    *,
    is_new: bool,
    me: str,
    you: str,
    people: list[str],
    names: dict[str, str],
) -> Clause:
    opening = _OPENING.match(words)
    offset = opening.end() if opening else 0
    before = clauses[-1] if clauses else None
    owner, subject, also, name = _subject(words[offset:], me, you, people, names)
    is_carried = not owner
    if not owner:
        owner = _without_subject(words[offset:], me, before, is_new=is_new)
    elif owner not in {UNKNOWN, WORLD, me}:
        people.append(owner)
    agrees = bool(_AGREES.match(words[offset:]))
    elided = agrees or (bool(subject) and before is not None and bool(_ELIDED.match(words)))
    repeats = (before.repeats or before.text) if elided and before is not None else ""
    return Clause(
        text=words,
        start=begin,
        end=begin + len(words),
        owner=me if agrees else owner,
        subject_end=begin + (offset + subject if subject else 0),
        also=also,
        name=name,
        repeats=repeats,
        is_elided=elided,
        is_carried=is_carried,
    )


def _subject(
    words: str, me: str, you: str, people: list[str], names: dict[str, str]
) -> tuple[str, int, tuple[str, ...], str]:
    """Owner, length, further owners and name of the subject; an empty owner without one."""
    if hit := _NAME.match(words):
        owner = _relation(_TABLE[hit["of"]], me)
        names[hit["name"]] = owner
        return owner, hit.end("name"), (), hit["name"]
    for hit in _PERSON.finditer(words):
        # A subject comes early; a person after `对` or `和` is an object.
        if hit.start() > 6 or _OBJECT.search(words, 0, hit.start()):  # noqa: PLR2004 - characters
            break
        owner = _owner_of(hit, me, you, people)
        also: tuple[str, ...] = ()
        end = hit.end()
        if words[end : end + 1] in {"和", "跟"} and (other := _PERSON.match(words, end + 1)):
            second = _owner_of(other, me, you, people)
            end = other.end()
            owner, also = (second, (owner,)) if second == me else (owner, (second,))
        return owner, end, also, ""
    if hit := _NAMED.match(words):
        name = hit["name"]
        after = re.compile(rf"的(?P<of>{_NOUN})").match(words, hit.end()) if name else None
        owner = names.get(name, name)
        if after:
            return _relation(_TABLE[after["of"]], owner), after.end(), (), ""
        return owner, hit.end(), (), ""
    return "", 0, (), ""


def _owner_of(hit: re.Match[str], me: str, you: str, people: list[str]) -> str:
    if hit["bare"]:
        owner = _relation(_TABLE[hit["bare"]], me)
        return _relation(_TABLE[hit["three"]], owner) if hit["three"] else owner
    base = hit["base"]
    if base == "用户":
        owner = USER
    elif base in _THIRD:
        owner = _third(_THIRD[base], people)
    else:
        owner = you if base in {"你", "你们", "您"} else me
    for group in ("one", "two"):
        if hit[group]:
            owner = _relation(_TABLE[hit[group]], owner)
    return owner


def _third(letter: str, people: list[str]) -> str:
    for owner in reversed(people):
        last = owner.rsplit("'s ", 1)[-1]
        wrong = MALE if letter == "f" else FEMALE
        if letter == "p" or last not in wrong:
            return owner
    return UNKNOWN


def _without_subject(words: str, me: str, before: Clause | None, *, is_new: bool) -> str:
    if before is not None and not is_new:
        return before.owner
    if _VERBS.match(words):
        return me if before is None or before.owner == me else UNKNOWN
    return UNKNOWN


def _relation(relation: str, base: str) -> str:
    if base == USER:
        return relation
    return UNKNOWN if base in {UNKNOWN, WORLD} else f"{base}'s {relation}"
