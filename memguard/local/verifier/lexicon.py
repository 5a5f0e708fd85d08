"""Closed word classes of English that the support verifier distinguishes.

Hand-made and short on purpose: similarity of nouns and verbs is left to the word vectors.
"""


def word_set(text: str) -> frozenset[str]:
    """The words of a text that are separated by white space."""
    return frozenset(text.split())


def _ordered(text: str) -> tuple[str, ...]:
    return tuple(text.split())


STOP = word_set(
    "a an the this that these those i me my mine myself you your yours he him his she her hers it "
    "its we us our ours they them their theirs who whom whose which what where when why how am is "
    "are was were be been being do does did done doing have has had having will would shall should "
    "can could may might must of to in on at by for from with about into onto over under up down "
    "out off as than then so too also very just really quite and or but if because while although "
    "though there here some any each both such own same s t d ll m re ve get got getting let "
    "still already now again ever even well much many lot lots user"
)
"""Stop words; negations are not among them."""

NEGATIONS = word_set(
    "not no never none nobody nothing nowhere neither nor without cannot cant dont doesnt didnt "
    "isnt arent wasnt werent wont wouldnt couldnt shouldnt hasnt havent hadnt hardly barely"
)
"""Negations; a word that ends in `n't` is one too."""

_OPPOSITES = (
    "love hate|like dislike|enjoy hate|enjoy dislike|big small|large small|old young|old new|hot "
    "cold|warm cold|early late|good bad|happy sad|easy hard|cheap expensive|rich poor|single "
    "married|married divorced|buy sell|win lose|start stop|begin end|start finish|open close|"
    "increase decrease|gain lose|arrive leave|older younger|more less|always never|often rarely|"
    "before after|first last|morning evening|day night|summer winter|vegetarian carnivore|left "
    "right|high low|long short|strong weak|full empty|public private|inside outside|indoor outdoor|"
    "indoors outdoors|quiet loud|healthy sick|accept refuse|pass fail|best worst|most least|above "
    "below|male female|boy girl|man woman|brother sister|mother father|mom dad|husband wife|son "
    "daughter|uncle aunt|city country|urban rural|north south|east west|lend borrow|teach learn"
)
OPPOSITES: tuple[tuple[str, str], ...] = tuple(
    (pair.split()[0], pair.split()[1]) for pair in _OPPOSITES.split("|")
)
"""Pairs of which at most one can be true of the same thing."""

FIRST_PERSON = word_set("i me my mine myself we us our ours im ive")
"""Words of the first person."""

ACTORS = word_set("i we im ive")
"""Subject forms of the first person: the speaker does or is something."""

SECOND_PERSON = word_set("you your yours yourself u ur")
"""Words of the second person: `you play the flute` is about the listener."""

POSITIVE = word_set(
    "love like enjoy adore prefer favorite favourite fan great good happy glad excited awesome "
    "amazing wonderful passionate keen fond best"
)
"""Words of liking."""

NEGATIVE = word_set(
    "hate dislike detest bad sad afraid scared fear terrible awful worst allergic avoid boring "
    "annoying upset angry tired sick refuse quit stop"
)
"""Words of disliking."""

_MONTHS = (
    "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|"
    "september sept sep|october oct|november nov|december dec"
)
MONTHS: dict[str, int] = {
    name: number
    for number, names in enumerate(_MONTHS.split("|"), start=1)
    for name in names.split()
}
"""Month names and their usual short forms."""

WEEKDAYS = _ordered("monday tuesday wednesday thursday friday saturday sunday")
"""Weekdays from Monday, as `datetime.weekday` counts them."""

_SMALL_NUMBERS = _ordered(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
SMALL_NUMBERS: dict[str, int] = {word: value for value, word in enumerate(_SMALL_NUMBERS)}
"""Cardinals below twenty."""

_TENS = _ordered("twenty thirty forty fifty sixty seventy eighty ninety")
TENS: dict[str, int] = {word: 10 * value for value, word in enumerate(_TENS, start=2)}
"""Tens; `numbers` reads `twenty five` as one number."""

SCALES: dict[str, int] = {"hundred": 100, "thousand": 1000, "million": 1_000_000}
"""Words that multiply the number before them."""

OTHER_NUMBERS: dict[str, str] = {
    "once": "1", "twice": "2", "thrice": "3", "couple": "2", "pair": "2", "half": "0.5",
    "dozen": "12", "noon": "12", "midnight": "0", "double": "2", "triple": "3", "twins": "2",
    "first": "1", "second": "2", "third": "3", "fourth": "4", "fifth": "5", "sixth": "6",
    "seventh": "7", "eighth": "8", "ninth": "9", "tenth": "10",
}  # fmt: skip
"""Words that imply a number. A context need not repeat them, but they match a stated number."""

_IRREGULAR = (
    "go went gone goes|buy bought|eat ate eaten|see saw seen|take took taken|make made|"
    "teach taught|think thought|write wrote written|read reads|run ran|drive drove driven|"
    "speak spoke spoken|break broke broken|choose chose chosen|grow grew grown|know knew "
    "known|meet met|leave left|lose lost|sell sold|tell told|spend spent|feel felt|keep "
    "kept|win won|swim swam swum|sing sang sung|fly flew flown|give gave given|begin "
    "began begun|find found|build built|catch caught|bring brought|fall fell fallen|hear "
    "heard|ride rode ridden|wear wore worn|child children kids kid|person people|wife "
    "wives|mother mom mum|father dad|grandmother grandma|grandfather grandpa|television "
    "tv|movie film films"
)
IRREGULAR: dict[str, str] = {
    form: forms.split()[0] for forms in _IRREGULAR.split("|") for form in forms.split()[1:]
}
"""Irregular forms, and a few synonyms, with their base form."""

BREAKS = word_set("and but or while because so then although whereas whether unless")
"""Words that begin a new clause."""

ABROAD = word_set(
    "der die das und ist nicht ich hat mit eine einen auf für von bei wir sie aber auch wohnt "
    "arbeitet el la los las es una por con que de le les des est une dans avec pour sur il elle "
    "het een niet voor zij"
)
"""Function words of other languages in Latin script, hardly any of which is an English word."""
