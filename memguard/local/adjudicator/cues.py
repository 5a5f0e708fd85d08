"""The English wordings that the local adjudicator matches.

The patterns were written by hand. None was fitted to data, and they are coarse on purpose. Other
languages have shorter tables, in `languages`.
"""

import re

from memguard.normal_form import comparison_form

NAME = "local"
"""The name of the local adjudicator and decomposer in reports."""
WEAKER = (
    "judged by the local adjudicator, by rules and cosines: weaker than a language model and "
    "sensitive to wording; what nothing speaks against is shown as uncertain"
)
"""The note on everything that these rules judge."""
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
LABEL = re.compile(r"^([\w'. -]{1,39}\w) ?(?:: |\uff1a|:(?=[\u3400-\u9fff]))(?=\S)")
"""The speaker's name, which the local writer puts before what was said."""
CONSTRAINT = _any(r"""
    must(?: not|n['\u2019]t)?  (?:can ?not|can['\u2019]t|may not) (?!stand)\w+  strictly
    (?:is|am|are|['\u2019]m|been|went|turned|a|an|strict|lifelong) (?:vegetarian|vegan|pescatarian)
    (?:is|am|are|['\u2019]m) (?:kosher|halal|teetotal\w*)
    (?:keeps?|eats?) (?:kosher|halal)
    (?:does|do)(?: not|n['\u2019]t) (?:eat|drink|consume|fly|drive|use)  avoids? (?:all|any|every)
    (?:avoids?|avoiding) (?:meat|dairy|gluten|alcohol|sugar|nuts|pork)
    never (?:\w+s|eat|drink|use|work|fly|schedule|sign|pay|accept|buy|book|order|lend|answer|share)
    (?:under|at most|up to|no more than|less than|below|within) (?:\w+ )?[$€£]? ?\d[\d.,]*
    only (?:fly|buy|book|pay|sign|accept|work)
    (?:approve|sign|decide|check)s? \w+ (?:\w+ ){0,4}(?:my|him|her|them)self
    no longer (?:eats?|drinks?)  requires?
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
    (?:to|should) be (?:called|addressed)  (?:use|uses|using) (?:bullets?|emojis?)
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
    (?:vocal|staunch|firm|strong|outspoken|passionate|ardent) (?:supporter|critic|believer)\w*
    (?:proponent|advocate|critic|opponent) (?:of|for)  dismiss(?:es|ed)?  rejects?
    (?:is|am) adamant
    believing  swears by  (?:central )?thesis  credit(?:s|ed)  preaches  disagrees
    of the (?:opinion|view)  opinion (?:is )?that  philosophy is  stance
""")
OPINION = _any(r"in (?:my|the user['\u2019]s) (?:opinion|view)  the user['\u2019]s opinion")
"""An opinion of the user whose grammatical subject is its matter."""
PREFERENCE = _any(r"""
    prefers?  preferred  preferences?  likes?  liked  loves?  loved  enjoys?  enjoyed  adores?
    favou?rites?  favou?rs?  dislikes?  disliked  hates?  hated  detests?  fan of  fond of
    keen on  passionate about  would rather  (?:can['\u2019]t|cannot|can not) stand  interested in
    (?:bor|stress|annoy|calm|relax|fascinat)e?s me  appeals? to (?:me|the user)  comfort food
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
    used to  formerly  previously  in the past  back then  until recently
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
    (?:how|what) (?:do|does|did) \w+ (?:\w+ )?(?:feel|think|view|believe|consider|see)
    do i (?:believe|think)  what i (?:think|believe)
""")
PLANNING = _any(r"""
    plan  planning  schedule  itinerary  organi[sz]e  arrange  agenda  prepare for  set up
    put together  timetable  to-?do list  menu
""")
RECOMMENDATION = _any(r"""
    recommend(?:ed|ation|ations)?  suggest(?:ed|ion|ions)?
    (?:what|where|which|who)(?: \w+){0,2} (?:should|shall|could) (?:i|we)  should i
    what (?:do|shall) (?:i|we) (?:cook|make|eat|wear|get|give|bring|serve|watch|read|buy|drink|do)
    ideas?  advice  advise  where can i
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
FOR_OTHER = re.compile(
    r"\b(?:for|about|advise|tell|buy|give|get) (?:my|our|a|an|the|his|her|their) "
    rf"(?:[\w-]+ ){{0,2}}?{PEOPLE}\b|"
    rf"\b(?:my|our) (?:[\w-]+ ){{0,2}}?{PEOPLE}(?:['\u2019]s| (?:is|has|does|doesn['\u2019]t|likes|"
    r"loves|wants|needs|hates|can['\u2019]t|cannot|asked|who))\b|"
    rf"\b(?:could|can|should|would|does|will|might|did) (?:my|our) (?:[\w-]+ ){{0,1}}?{PEOPLE}\b|"
    r"\b(?:get|give|buy|bring|make|cook|tell|ask|send|surprise) (?:him|her|them)\b(?! (?:out|to))|"
    r"\bfor (?:him|her|them|someone|somebody|others|my team|our team|the team|a team)\b|"
    r"\b(?:her|his|their) (?:birthday|farewell|wedding|party|gift|present|trip|needs|diet)\b"
)
FIRST_PERSON = re.compile(
    r"\b(?:I|i|me|my|mine|myself|we|us|our|ours)\b|\b[Ii]['\u2019](?:m|ve|d|ll)\b"
)
TOGETHER = _any(r"""
    we  us  our  ours  guests?  everyone  everybody  friends  family  household  kids  together
    group  party  picnic  for (?:two|three|four|five|six|seven|eight|ten|twelve)  couple  potluck
""")
"""Several people whom an answer is for, though the query does not name them."""
ALONE = _any(r"""
    for me alone  just (?:for )?me  only (?:for )?me  for myself  by myself  alone  just for one
    for one  with (?:my |some |two |three |the )?(?:colleagues|coworkers|boss|client\w*|team)
""")
"""An answer for the user without the household."""
ASKS_RECORD = re.compile(
    r"^\s*(?:when|where|why|how|who|which|what)?(?: \w+){0,3} ?\b(?:did|was|were|has|have|had)\b|"
    r"\bwhen\b|\b(?:wann|hat|hatte|habe|war|wurde)\b|\b(?:cuándo|fue|hizo|hice)\b|\bquand\b|"
    r"什么时候|何时",
    _I,
)
"""Questions about an event or a time."""
# Wide on purpose: a constraint shown without need costs a line, a missing one may cost more.
HEALTH = _any(r"""
    eat\w*  food\w*  meals?  dinners?  lunch\w*  breakfasts?  snacks?  recipes?  cook\w*
    steak\w*  brunch\w*  suppers?  buffets?  bistros?  caf[eé]s?  pizz\w+  sushi  burgers?
    baker(?:y|ies)  tapas  feasts?  banquets?
    bak(?:e|ing)  restaurants?  menus?  dishes?  cater\w*  cuisine  drinks?  barbecue  picnic
    travel\w*  trips?  flights?  hotels?  venues?  hik(?:e|ing)  work-?out\w*  exercis\w+  sports?
    diet\w*  nutrition  supplements?  medic\w+  pain\w*  symptoms?  remed(?:y|ies)  health\w*
    doctor  treatments?  part(?:y|ies)  events?  curry  cakes?  dessert\w*  groceries  pets?
    perfumes?  cosmetics?  (?:book|reserve) (?:me |us )?a table  table for  takeaway  takeout
""")
"""Topics to which a safety constraint applies even if it shares no word with the query."""


def without_label(text: str) -> str:
    """The text in its normal form, without the speaker label of the local writer."""
    return LABEL.sub("", comparison_form(text), count=1)
