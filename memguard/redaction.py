"""Secrets and personal data in texts: where they are, and a text without them.

`find_sensitive` names the kinds and the positions, `redact` puts `[password]` and the like in their
place. The rules are few and strict: a number counts as a card or an account only if its check
digits are right, and a word as a password only if the text says so. Personal data is looked for
only where it is asked for. The rules were written by hand; none was fitted to data.

`redact_error` is for messages of providers, in which a false alarm costs nothing.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from memguard.normal_form import comparison_form

Screen = Literal["nothing", "secrets", "personal"]
"""What a text is searched for.

* `nothing`: neither.
* `secrets`: passwords, keys, tokens, and numbers of cards and accounts.
* `personal`: secrets, and e-mail addresses, phone numbers, street addresses and identity numbers.
"""
Sensitive = Literal[
    "private key", "API key", "token", "password", "card number", "account number",
    "e-mail address", "phone number", "street address", "identity number",
]  # fmt: skip
"""The kind of what was detected; the last four are personal data."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finding:
    """A part of a text that is a secret or personal data. It does not repeat the text."""

    kind: Sensitive
    """What it is."""
    start: int
    """The position of its first character."""
    end: int
    """The position after its last character."""


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: Sensitive
    pattern: re.Pattern[str]
    """The finding is the group `x` if there is one, else the whole match."""
    is_valid: Callable[[str], bool] = lambda _: True
    cores: tuple[str, ...] = ()
    """Lower-case texts of which one must be there: looking for them first is much faster."""
    digits: int = 0
    """Digits that must be there."""


# -- checks -----------------------------------------------------------------------------------

_IBAN_LENGTHS = re.findall(
    r"([A-Z]{2})(\d+)",
    """
    AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20
    EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IS26 IT27 JO30 KW30
    KZ20 LB28 LI21 LT20 LU20 LV21 MC27 MD24 ME22 MK19 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29
    RO24 RS22 SA24 SE24 SI19 SK24 SM27 TN24 TR26 UA29 VG24 XK20
    """,
)
"""Characters of an account number by country (ISO 13616, the IBAN registry)."""
_IBAN = "|".join(f"{land}[0-9]{{2}}(?: ?[A-Z0-9]){{{int(n) - 4}}}" for land, n in _IBAN_LENGTHS)


def _is_iban(text: str) -> bool:
    """Whether the check digits are right (ISO 7064, mod 97-10)."""
    plain = text.replace(" ", "")
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


_CARD_PREFIX = re.compile(
    r"(?:4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|"
    r"3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12})"
)
"""The numbers that Visa, Mastercard, American Express, Diners, Discover and JCB issue."""


def _is_card(text: str) -> bool:
    """Whether issuer and check digit are right (ISO/IEC 7812, Luhn's formula)."""
    digits = re.sub(r"\D", "", text)
    if _CARD_PREFIX.fullmatch(digits) is None:
        return False
    total = sum(int(digit) for digit in digits[-1::-2])
    return (total + sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])) % 10 == 0


# Words that follow "the password is" without being one.
_NO_PASSWORD = frozenset(
    re.findall(
        r"\w+",
        """
    a always an and any at available bad because by case correct default different difficult easy
    empty enough fine for from good hard her here hers his impossible in incorrect invalid its just
    long longer lost mine missing my necessary never new no not now of ok okay old on one only
    optional or our perdu private public rather ready really required safe same secret secure short
    shorter so something stale stored strong supposed temporary that the their there this to too
    unique unknown up valid very was weak what where which wrong your yours
    falsch incorrecta kein keine nicht richtig schwach sehr sicher stark weg zu
    """,
    )
)
_ENDINGS = ("ed", "ing", "ly", "ten")


def _is_password(text: str) -> bool:
    """Whether a word after "the password is" may be one: most other words are adjectives."""
    if any(char.isdigit() for char in text) or not text.isalpha() or not text.isascii():
        return True
    word = text.lower()
    return word not in _NO_PASSWORD and not word.endswith(_ENDINGS)


def _has_digit(text: str) -> bool:
    return any(char.isdigit() for char in text)


_PHONE_DIGITS = range(7, 16)
"""How many digits a phone number may have; 15 at most by ITU-T E.164."""


def _is_phone(text: str) -> bool:
    return sum(map(str.isdigit, text)) in _PHONE_DIGITS


def _is_key(text: str) -> bool:
    """Whether a value may be a key: long, with digits and letters."""
    return _has_digit(text) and any(char.isalpha() for char in text)


# -- rules ------------------------------------------------------------------------------------

_IS = (
    r"(?:\s{1,2}(?:is|was|ist|lautet|es|est|[éè])(?::\s{0,3}|\s{1,3}:?\s{0,3})|"
    r"\s?(?:=|:|\uff1a|->|→|是|は)\s{0,3}:?\s{0,3})"
)
_QUOTED = r"""(?:"[^"\n]{3,80}"|'[^'\n]{3,80}'|`[^`\n]{3,80}`|\u201c[^\u201d\n]{3,80}\u201d)"""
# The names for a password, in the languages of the safety cues that have a usual one.
_TITLE = (
    r"(?:pass\s?(?:word|phrase|code)|passwd|pwd|passwort|kennwort|mot de passe|contraseña|senha|"
    r"пароль|密码|密碼|パスワード|비밀번호)"
)
_TITLE_CORES = (
    *("pass", "pwd", "kennwort", "contraseña", "senha"),
    *("пароль", "密", "パスワード", "비밀번호"),
)
_SECRETS = (
    _Rule(
        "private key",
        re.compile(
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----"
            r"(?:[\s\S]*?-----END [A-Z ]{0,30}PRIVATE KEY-----|[\s\S]*)"
        ),
        cores=("-----begin",),
    ),
    _Rule(
        "API key",
        re.compile(
            r"\b(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_\w{22,255}|glpat-[\w-]{20,60}|"
            r"xox[abeoprs]-[\w-]{10,250}|(?:AKIA|ASIA)[0-9A-Z]{16}\b|AIza[\w-]{35}|"
            r"hf_[A-Za-z0-9]{30,60}|gsk_[A-Za-z0-9]{30,80}|xai-[A-Za-z0-9]{30,100}|"
            r"[rsp]k_(?:live|test)_[A-Za-z0-9]{16,200}|SG\.[\w-]{16,40}\.[\w-]{16,60}|"
            r"lsv2_[ps][tk]_\w{30,80}|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,250}|"
            r"dop_v1_[a-f0-9]{64}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32})"
        ),
        cores=("_", "-", "akia", "asia", "aiza", "sg."),
        digits=1,
    ),
    _Rule("API key", re.compile(r"\bsk-[\w-]{20,250}"), _has_digit, cores=("sk-",)),
    _Rule(
        "token",
        re.compile(r"(?<![\w-])eyJ[\w-]{8,4000}\.eyJ[\w-]{8,4000}\.[\w-]{8,4000}"),
        cores=("eyj",),
    ),
    _Rule(
        "token", re.compile(r"(?i)\bbearer (?P<x>[\w.~+/=-]{16,4000})"), _is_key, cores=("bearer ",)
    ),
    _Rule("password", re.compile(r"(?<=://)[^\s/:@]{0,100}:[^\s/@\[]{1,200}(?=@)"), cores=("://",)),
    _Rule(
        "API key",
        re.compile(
            r"(?i)(?:api[ _-]?key|secret[ _-]?key|access[ _-]?(?:key|token)|client[ _-]?secret|"
            r"auth[ _-]?token|account[ _-]?key)\b[\"']?" + _IS + r"[\"'`]?(?P<x>[\w+/=.~-]{8,500})"
        ),
        _is_key,
        cores=("key", "token", "secret"),
    ),
    _Rule(
        "password",
        re.compile(rf"(?i){_TITLE}[^\n.;:=]{{0,40}}?{_IS}(?P<x>{_QUOTED})"),
        cores=_TITLE_CORES,
    ),
    _Rule(
        "password",
        re.compile(
            rf"(?i){_TITLE}"
            r"(?: (?:for|of|to|on|für|de|pour)(?: [\w'.@-]{1,40}){1,4}?)?"
            rf"{_IS}(?P<x>[^\s\"'`\[(,;。]{{3,100}}[^\s\"'`\[(,;.。)])"
            r"(?=[\"'.,;!。)]*(?:\s*$|\s*\n|[.,;!)]\s|\s(?:and|but|for|on|at|to|und|für|y|et)\b))"
        ),
        _is_password,
        cores=_TITLE_CORES,
    ),
    _Rule(
        "password",
        re.compile(r"\b(?:PIN|Pin|pin)(?: (?:code|number))?" + _IS + r"(?P<x>\d{4})\b(?![ -]?\d)"),
        cores=("pin",),
        digits=4,
    ),
    _Rule(
        "card number", re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])"), _is_card, digits=13
    ),
    _Rule("account number", re.compile(rf"\b(?:{_IBAN})(?!\w)"), _is_iban, digits=8),
)
_PERSONAL = (
    _Rule(
        "e-mail address",
        re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,5}[A-Za-z]{2,24}\b"),
        cores=("@",),
    ),
    _Rule(
        "identity number",  # a social security number of the United States
        re.compile(r"(?<![\d-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])"),
        digits=9,
    ),
    _Rule(
        "phone number",
        re.compile(r"(?<![\w+])(?:\+|00)[1-9](?:[ ./-]?\(?\d\)?){6,14}(?!\w)"),
        _is_phone,
        cores=("+", "00"),
    ),
    _Rule(
        "phone number",
        re.compile(r"(?<![\w-])\(?[2-9]\d{2}\)?[ .-][2-9]\d{2}[.-]\d{4}(?![\w-])"),
        digits=10,
    ),
    _Rule(
        "phone number",
        re.compile(
            r"(?i)\b(?:phone|mobile|cell|tel|telephone|handy|telefon|whatsapp|call)\b[^\d\n+]{0,25}"
            r"(?P<x>\(?\d(?:[ /()-]{0,2}\d){6,14})(?!\w)"
        ),
        _is_phone,
        digits=7,
    ),
    _Rule(
        "street address",
        re.compile(
            r"\b\d{1,5}[a-zA-Z]? (?:[A-Z][\w'.-]{0,30} ){1,4}(?:Street|St|Avenue|Ave|Road|Rd|Lane|"
            r"Ln|Drive|Dr|Boulevard|Blvd|Court|Ct|Square|Sq|Terrace|Way|Place|Pl)\b\.?|"
            r"\b[A-ZÄÖÜ][\w-]{1,40}(?:straße|strasse|str\.|weg|allee|gasse|platz) \d{1,4}[a-z]?\b|"
            r"\b\d{1,4}(?: ?bis)?,? (?:rue|avenue|boulevard|chemin) (?:[\w'-]{1,30} ?){1,5}"
        ),
        digits=1,
    ),
)
_RULES: dict[Screen, Sequence[_Rule]] = {
    "nothing": (),
    "secrets": _SECRETS,
    "personal": (*_SECRETS, *_PERSONAL),
}


def find_sensitive(text: str, *, screen: Screen = "secrets") -> tuple[Finding, ...]:
    """The secrets of a text, and its personal data if asked for, in order and without overlap."""
    findings: list[Finding] = []
    lowered = text.lower()
    digits = sum(map(text.count, "0123456789"))
    for rule in _RULES[screen]:
        if digits < rule.digits or not _has_core(rule, lowered):
            continue
        for match in rule.pattern.finditer(text):
            group = "x" if "x" in match.re.groupindex else 0
            if rule.is_valid(match[group]):
                findings.append(Finding(rule.kind, match.start(group), match.end(group)))
    # Of two that overlap, the first is the one that an earlier rule detected.
    kept: list[Finding] = []
    for finding in sorted(findings, key=lambda finding: (finding.start, -finding.end)):
        if not kept or finding.start >= kept[-1].end:
            kept.append(finding)
    return tuple(kept)


def _has_core(rule: _Rule, lowered: str) -> bool:
    return not rule.cores or any(core in lowered for core in rule.cores)


def sensitive_kinds(text: str, *, screen: Screen = "secrets") -> tuple[Sensitive, ...]:
    """The kinds of what a text contains, also if it is written in look-alike characters."""
    findings = find_sensitive(text, screen=screen) or find_sensitive(
        comparison_form(text), screen=screen
    )
    return tuple(dict.fromkeys(finding.kind for finding in findings))


def is_secret(kind: Sensitive) -> bool:
    """Whether a kind is a secret, and not only personal data."""
    return any(rule.kind == kind for rule in _SECRETS)


def redact(text: str, *, screen: Screen = "secrets") -> str:
    """The text with the kind of each secret in its place, such as `[password]`.

    A secret in look-alike characters is replaced in the normal form of the text.
    """
    findings = find_sensitive(text, screen=screen)
    if not findings and not text.isascii():
        plain = comparison_form(text)
        findings = find_sensitive(plain, screen=screen)
        text = plain if findings else text
    for finding in reversed(findings):
        text = f"{text[: finding.start]}[{finding.kind}]{text[finding.end :]}"
    return text


def redact_values(value: T, *, screen: Screen = "secrets") -> T:
    """The same value with `redact` applied to every string in it; keys stay."""
    # Typed loosely: JSON has no type that says "the same shape".
    anything: Any = value
    if isinstance(anything, str):
        anything = redact(anything, screen=screen)
    elif isinstance(anything, Mapping):
        entries = cast("Mapping[str, Any]", anything)
        anything = {
            key: _redacted_field(str(key), entry, screen)
            if isinstance(entry, str)
            else redact_values(entry, screen=screen)
            for key, entry in entries.items()
        }
    elif isinstance(anything, list | tuple):
        items = cast("list[Any]", anything)
        anything = type(items)(redact_values(item, screen=screen) for item in items)
    return cast("T", anything)


def _redacted_field(name: str, text: str, screen: Screen) -> str:
    plain = redact(text, screen=screen)
    # The name may tell what the text is: `{"password": "hunter2"}`.
    if plain == text and (findings := find_sensitive(f"{name}: {text}", screen=screen)):
        return f"[{findings[0].kind}]"
    return plain


# -- messages of providers --------------------------------------------------------------------

_LIKE_A_KEY = re.compile(
    # Providers quote a part of a key, or mask it with asterisks.
    r"(?:sk|pk|rk|gsk|xai|lsv2|hf|key)[-_][\w*.\-]{6,}"
    r"|AIza[\w\-]{10,}"
    r"|(?i:bearer|basic)\s+[\w.\-+/=]{8,}"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
    r"|(?i:(?<=api_key=)|(?<=apikey=)|(?<=key=)|(?<=token=))[\w.\-]{6,}"
)


def redact_error(text: str) -> str:
    """A message of a provider with `[key]` for whatever looks like a key, and without secrets."""
    return redact(_LIKE_A_KEY.sub("[key]", text))
