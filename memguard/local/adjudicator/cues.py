"""The English wordings that the local adjudicator matches, and what one unit says by itself.

The patterns were written by hand. None was fitted to data, and they are coarse on purpose. The
functions below them judge a unit without the query: its kind, whom it is about, how well it is
grounded, and whether it is still valid. Safety words are those of `memguard.local.safety`, so that
recall searches for the same words as are judged here.
"""

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Literal

from memguard.local.safety import looks_like_safety
from memguard.local.verifier.lexicon import MONTHS, word_set
from memguard.normal_form import comparison_form
from memguard.schema.units import Epistemic, Kind, Temporal

NAME = "local"
"""The name of the local adjudicator and decomposer in reports."""
WEAKER = (
    "judged by the local adjudicator, by rules and cosines: weaker than a language model, English "
    "only, and sensitive to wording"
)
"""The note on everything that these rules judge."""
About = Literal["user", "other", "world"]
"""Whom a text is about, independent of a query."""
_I = re.IGNORECASE


def _any(patterns: str) -> re.Pattern[str]:
    """Compile patterns, separated by two spaces or a line break, to match any as a whole word."""
    parts = re.split(r"\s{2,}|\n", patterns.strip())
    return re.compile(r"\b(?:" + "|".join(parts) + r")(?!\w)", _I)


PEOPLE = (
    r"(?:sister|brother|mother|father|mom|mum|dad|parents?|wife|husband|spouse|partner|fianc[eé]e?|"
    r"boyfriend|girlfriend|son|daughter|child|children|kids?|baby|toddler|friends?|colleagues?|"
    r"co-?workers?|boss|manager|room-?mates?|flat-?mates?|neighbou?rs?|cousins?|aunt|uncle|"
    r"nephews?|nieces?|grand(?:mother|father|parents?|son|daughter|ma|pa)|team-?mates?|clients?|"
    r"customers?|students?|guests?|(?:mother|father|sister|brother|parents?)-in-law|in-laws|"
    r"dog|cat|pet|puppy|kitten)"
)
"""People and pets that a memory or an answer may be about, other than the user."""
PEOPLE_WORD = re.compile(rf"\b{PEOPLE}\b", _I)
"""Matches one of `PEOPLE` anywhere in a text."""
GROUPS = _any(r"guests?  everyone  everybody  friends  family  colleagues  group")
"""Words for several people without a name."""
USER = re.compile(
    r"^(?:the )?user\b|^(?:i|i['\u2019](?:m|ve|d|ll)|my|we|our|we['\u2019](?:re|ve))\b", _I
)
OTHER = re.compile(
    rf"^(?:(?:the )?user['\u2019]s|my|our|[A-Z][\w-]+['\u2019]s) (?:[\w-]+ ){{0,2}}?{PEOPLE}\b", _I
)
# A capital letter alone is not a name: a verb must follow, and `Baking bread` is not a person.
NAMED = re.compile(
    r"^(?!\w+ing\b)([A-Z][\w-]+)(?=,| (?:is|was|has|had|and|can|can['\u2019]t|cannot|does|did|went|"
    r"doesn['\u2019]t|don['\u2019]t|didn['\u2019]t|isn['\u2019]t|[a-z]+s|[a-z]+ed)\b)"
)
LABEL = re.compile(r"^([\w'. -]{1,40}): (?=\S)")
"""These four match the start of a text, which shows whom it is about. The local writer puts the
speaker's name in front as `NAME: `."""
CONSTRAINT = _any(r"""
    must(?: not|n['\u2019]t)?  (?:can ?not|can['\u2019]t|may not) (?!stand)\w+  strictly
    (?:is|am|are|['\u2019]m) (?:an? )?(?:strict )?(?:vegetarian|vegan|pescatarian)
    (?:is|am|are|['\u2019]m) (?:kosher|halal|teetotal\w*)
    (?:keeps?|eats?) (?:kosher|halal)
    (?:does|do)(?: not|n['\u2019]t) (?:eat|drink|consume|fly|drive|use)  avoids? (?:all|any|every)
    (?:avoids?|avoiding) (?:meat|dairy|gluten|alcohol|sugar|nuts|pork)
    never (?:eats?|drinks?|uses?|works?|flies|schedules?)  no longer (?:eats?|drinks?)  requires?
    needs? (?:to|all|every|\w+ answers?)  (?:no|at) (?:more than|most) \W?\d[\d.,]*
    (?:budget|limit|deadline|maximum)(?: of| is|:)? ?(?:up to |under )?\W?\d[\d.,]*
    refuses?  will not  won['\u2019]t  would never
    (?:has|have) (?:no|only an?|only one) (?:oven|stove|hob|car|bike|microwave|freezer|grill|mixer)
    only (?:eats?|drinks?|works?|flies|available|has (?:time|until)|buys?)  has to  have to
    always (?:answer|reply|write|use|respond)  prohibited  forbidden  not allowed
""")
ANSWER_FORM = _any(r"""
    ^(?:please,? )?(?:always )?(?:answer|reply|respond|speak|talk|write) (?:to me |me )?(?:in|with)
    ^(?:please,? )?(?:always )?(?:call|address) (?:me|him|her|them)  keep (?:answers|replies|it) \w+
    (?:answers?|repl(?:y|ies)|responses?|explanations?) (?:with|without|to be|should|must|as)
    (?:answers?|repl(?:y|ies)|responses?|explanations?) in(?! (?:metric|imperial|si)\b)
    (?:short|brief|concise|detailed|formal|simple) (?:answers?|repl(?:y|ies)|responses?)
    (?:be|is|to be) (?:called|addressed)  (?:use|uses|using) (?:bullets?|emojis?)
    (?:no|without|avoid) (?:emojis?|jargon|bullets?)
""")
"""Wishes about the form of answers and about names, which concern every answer.

A wish about units concerns only answers that have some."""
BELIEF = _any(r"""
    believes?  believed  (?:is|am|['\u2019]m) (?:convinced|certain|sure|skeptical|sceptical)
    thinks?  suspects?  claims?  insists?  argues?  doubts?  distrusts?
    feels? (?:that|strongly|\w+ (?:is|are|should|has|have)|\w+ \w+ (?:is|are|should|has|have))
    considers? [\w -]{1,60} (?:to be|as|an?)  (?:views?|sees?|regards?) [\w' -]{1,60} as
    in (?:my|the user['\u2019]s|their|his|her) (?:opinion|view)  maintains? that  assumes?
    of the (?:opinion|view)  opinion (?:is )?that  philosophy is  stance
""")
PREFERENCE = _any(r"""
    prefers?  preferred  preferences?  likes?  liked  loves?  loved  enjoys?  enjoyed  adores?
    favou?rites?  favou?rs?  dislikes?  disliked  hates?  hated  detests?  fan of  fond of
    keen on  passionate about  would rather  (?:can['\u2019]t|cannot|can not) stand  interested in
    drawn to  appreciates?  wants?  values?  soft spot  taste in
    (?:does|do)(?: not|n['\u2019]t) (?:like|enjoy|want)
""")
EXPERIENCE = _any(r"""
    bought  purchased  visited  attended  went  met  cooked  finished  tried  used (?!to)
    travel?led  asked  mentioned  has (?:been to|tried|done|bought|visited)  yesterday
    last (?:night|week|month|year|summer|winter|\w+day)  recently (?!started)  saw  watched  ran
    won  completed  graduated  broke  lost  sold  built
""")
INFERRED = _any(r"""
    seems?  seemingly  appears? to  probably  likely  might  may be  may have  possibly
    apparently  presumably  perhaps  maybe  could be  suggests that
""")
DOUBTFUL = _any(r"""
    wonders? (?:if|whether)  wondering (?:if|whether)  hear[sd]? (?:that|from|a rumou?r|rumou?rs)
    rumou?r has it  rumou?red  gossip  hearsay  allegedly  supposedly  reportedly  hypothetically
    (?:is|was|am|were|just|only) (?:joking|kidding|teasing)  joked  jokingly  as a joke  in jest
    pretend(?:s|ed)? (?:to|that)  not sure (?:if|whether|that)  unsure (?:if|whether)  what if
    (?:does|do)(?: not|n['\u2019]t) know (?:if|whether)
""")
"""Jokes, hearsay and open questions, which state nothing."""
VERIFIED = _any(r"""
    confirmed by  verified  diagnosed
    according to (?:the |their |his |her )?(?:doctor|lab|record|passport|contract|ticket|invoice)s?
    as documented
""")
DENIED = _any(r"""
    turned out (?:to be )?(?:false|wrong|untrue)  was mistaken  (?:was|is) not true after all
""")
# "was liked by" is passive and says nothing about the user's past.
PAST = _any(r"""
    used to  formerly  previously  in the past  back then  years ago  until recently
    as a (?:child|kid|teenager|student)  once (?:lived|worked|loved|liked|was|had)  outgr[eo]w\w*
    (?:was|were) (?:once|originally|initially)  originally  initially  at (?:one|that|the) time
    had (?:liked|loved|preferred|enjoyed|planned|wanted|been)
    (?:liked|loved|preferred|enjoyed|favou?red|disliked|hated)(?! by)
""")
UPDATE = _any(r"""
    now  nowadays  these days  currently  no longer  any ?more  switched  changed  instead
    has (?:become|moved|started|stopped|quit|given up|turned|grown|shifted)  stopped  since then
    lately  as of  has come to  gave up  moved (?:to|on|away)
""")
_DAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
SPANS: tuple[tuple[re.Pattern[str], int, bool], ...] = (
    (_any(r"today  tonight  this (?:morning|afternoon|evening)"), 1, True),
    (_any(r"tomorrow"), 2, True),
    (_any(rf"this (?:week|weekend)  (?:on|this) {_DAY}"), 7, True),
    (_any(rf"next (?:week|weekend)  next {_DAY}"), 14, True),
    (_any(r"this month"), 31, False),
    (_any(r"next month"), 62, False),
    (_any(r"this (?:spring|summer|autumn|fall|winter)"), 120, False),
    (_any(r"this year"), 366, False),
    (_any(r"next year"), 731, False),
)
"""Words of time; how many days after the statement they can reach at most; and whether the
statement is superseded by then. After a longer period it is only uncertain, because what began in
it may continue."""
UNTIL = re.compile(
    r"\buntil (?:the end of )?(?:(\d{1,2})(?:st|nd|rd|th)? )?([A-Z][a-z]+)?,? ?(\d{4})\b"
)
VIEW = _any(r"""
    what (?:do|did) i (?:think|believe|say|feel)  my (?:view|opinion|take|stance|belief)s?
    do i (?:believe|think)  what i (?:think|believe)
""")
PLANNING = _any(r"""
    plan  planning  schedule  itinerary  organi[sz]e  arrange  agenda  prepare for  set up
    put together  timetable  to-?do list  menu
""")
RECOMMENDATION = _any(r"""
    recommend(?:ed|ation|ations)?  suggest(?:ed|ion|ions)?
    (?:what|where|which|who)(?: \w+){0,2} should i  should i  ideas?  advice  advise  where can i
    options?  pick  choose  decide between  best (?:\w+ ){0,4}for me
    good (?:place|restaurant|book|movie|film|gift|present|spot|option)s?  looking for
    a (?:[\w-]+ ){0,3}(?:spot|gift|present|place|playlist|restaurant|recipe) for
    what can i (?:eat|cook|do|watch|read|give|wear)  could i  which one  what would you
""")
DOING = re.compile(
    r"\b(?:how (?:do|can|would|should) (?:i|we)|how to|help (?:me|us)|can you help)\b|"
    r"^(?:please |can you |could you |would you )*(?:write|draft|translate|summari[sz]e|fix|edit|"
    r"rewrite|proofread|compose|create|generate|make|prepare|review|improve|debug|convert|calculate|explain)\b",
    _I,
)
SMALL_TALK = re.compile(
    r"^(?:hi|hey|hello|good (?:morning|evening|night|afternoon)|thanks?|thank you|ok(?:ay)?|great|"
    r"bye|goodbye|cool|nice|sure|yes|no)\b[\s\w,]{0,20}[!.\s]*$",
    _I,
)
FOR_OTHER = re.compile(
    r"\b(?:for|about|advise|tell|buy|give|get) (?:my|our|a|an|the|his|her|their) "
    rf"(?:[\w-]+ ){{0,2}}?{PEOPLE}\b|"
    rf"\b(?:my|our) (?:[\w-]+ ){{0,2}}?{PEOPLE}(?:['\u2019]s| (?:is|has|does|doesn['\u2019]t|likes|"
    r"loves|wants|needs|hates|can['\u2019]t|cannot|asked|who))\b|"
    r"\bfor (?:him|her|them|someone|somebody|others|my team|our team|the team|a team)\b|"
    r"\b(?:her|his|their) (?:birthday|farewell|wedding|party|gift|present|trip|needs|diet)\b"
)
FIRST_PERSON = re.compile(
    r"\b(?:I|i|me|my|mine|myself|we|us|our|ours)\b|\b[Ii]['\u2019](?:m|ve|d|ll)\b"
)
POINTING = _any(r"""
    we (?:discussed|talked about)
    (?:this|that|the) (?:situation|case|matter|topic|one|choice|decision)  as (?:above|discussed)
    from (?:before|above)
""")
ABROAD = word_set(
    "soll wie wo wer welche welcher kann gibt mein meine quel quelle quels où comment dois je mon "
    "ma puis qué cómo dónde cuál mi puedo hacer para che cosa dove come quale posso fare"
)
"""Words of questions in other languages, in addition to
`memguard.local.verifier.lexicon.ABROAD`."""
SHARED = word_set("was die des a no me on in so am an man war fast come mi do or la pie")
"""English words that are words of other languages as well, and so say nothing about the
language."""
# Wide on purpose: a constraint shown without need costs a line, a missing one may cost more.
HEALTH = _any(r"""
    eat\w*  food\w*  meals?  dinners?  lunch\w*  breakfasts?  snacks?  recipes?  cook\w*
    steak\w*  brunch\w*  suppers?  buffets?  bistros?  caf[eé]s?  pizz\w+  sushi  burgers?
    baker(?:y|ies)  tapas  feasts?  banquets?
    bak(?:e|ing)  restaurants?  menus?  dishes?  cater\w*  cuisine  drinks?  barbecue  picnic
    travel\w*  trips?  flights?  hotels?  venues?  hik(?:e|ing)  work-?out\w*  exercis\w+  sports?
    diet\w*  nutrition  supplements?  medic\w+  pain\w*  symptoms?  remed(?:y|ies)  health\w*
    doctor  treatments?  part(?:y|ies)  events?  curry  cakes?  dessert\w*  groceries  pets?
    perfumes?  cosmetics?
""")
"""Topics to which a safety constraint applies even if it shares no word with the query."""


def kind_of(text: str, *, user_names: frozenset[str] = frozenset()) -> Kind:
    """The kind of a unit; `user_names` are names of the user, case-folded."""
    statement = without_label(text)
    # Safety first: a missed allergy does more harm than any other mistake. A belief comes before
    # the liking that it may mention, as in "believes that she likes tea".
    if looks_like_safety(statement):
        return "safety"
    about = about_whom(text, user_names=user_names)
    if about != "world" and BELIEF.search(statement):
        return "belief"
    # Not a preference, though people say "prefers short answers": an answer can keep to it.
    if CONSTRAINT.search(statement) or ANSWER_FORM.search(statement):
        return "constraint"
    if about != "world" and PREFERENCE.search(statement):
        return "preference"
    if about == "world":
        return "claim"
    return "experience" if EXPERIENCE.search(statement) else "fact"


def about_whom(text: str, *, user_names: frozenset[str] = frozenset()) -> About:
    """Whom a text is about, judged by how it begins; `user_names` as in `kind_of`."""
    statement = without_label(text)
    # Before the label: in "Ana: My sister left", the speaker is not the subject.
    if OTHER.match(statement):
        return "other"
    # A label such as "Ana: " means that the local writer copied what the user said.
    if LABEL.match(text) or USER.match(statement):
        return "user"
    named = NAMED.match(statement)
    if named is None:
        return "world"
    return "user" if named[1].casefold() in user_names else "other"


def without_label(text: str) -> str:
    """The text in its normal form, without the speaker label of the local writer."""
    return LABEL.sub("", comparison_form(text), count=1)


def epistemic_of(text: str) -> Epistemic:
    """The epistemic state that a unit states of itself; evidence is compared elsewhere."""
    text = comparison_form(text)
    if DENIED.search(text):
        return "contradicted"
    if VERIFIED.search(text):
        return "verified"
    if DOUBTFUL.search(text):
        return "uncertain"
    return "inferred" if INFERRED.search(text) else "stated"


def temporality_of(text: str, *, said_at: datetime | None, now: datetime | None) -> Temporal:
    """Whether a unit is still valid.

    Words of the past make it superseded, or uncertain if it also reports a change ("used to smoke,
    now runs"). A date or a period that ended before the read makes it superseded as well.

    Args:
        text: A unit.
        said_at: When it was said; a naive time is UTC.
        now: When it is read; without it, dates are not compared.
    """
    text = comparison_form(text)
    if PAST.search(text):
        # "used to smoke, now runs": which half a reader needs depends on the query.
        return "uncertain" if is_update(text) else "superseded"
    if now is None:
        return "current"
    end = _end_of(text)
    if end is not None:
        # A stated end beats a word like "today", which counts from when the unit was said.
        return "superseded" if end < now.date() else "current"
    period = next(((days, over) for span, days, over in SPANS if span.search(text)), None)
    if period is None:
        return "current"
    days, over = period
    if said_at is not None and _aware(said_at) + timedelta(days=days) >= _aware(now):
        return "current"
    return "superseded" if over and said_at is not None else "uncertain"


# Cached, because every unit is compared with all the others.
@lru_cache(maxsize=4096)
def is_update(text: str) -> bool:
    """Whether a text reports a change."""
    return UPDATE.search(text) is not None


def _end_of(text: str) -> date | None:
    """The last day of `until 3 March 2025`, `until March 2025`, `until 2025`."""
    hit = UNTIL.search(text)
    if hit is None:
        return None
    day, month, year = hit[1], MONTHS.get((hit[2] or "").casefold()), int(hit[3])
    if hit[2] and month is None:
        return None  # a capitalised word that is not a month
    try:
        if month is None:
            return date(year, 12, 31)
        if day is None:
            # The day before the first of the next month, so that no table of lengths is needed.
            return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)
        return date(year, month, int(day))
    except ValueError:
        return None


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
