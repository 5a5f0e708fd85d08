"""Equivalent predicates and inflected forms, by which a reworded statement is recognised.

Hand-made and short: only words that say the same of every subject are equal here. `rephrasing` has
the rules that use them.
"""

import re
import unicodedata

from memguard.local.owners.words import GRAMMARS, RELATIONS, word_set
from memguard.local.verifier.words import stem

__all__ = ("CHINESE", "STRONGER", "UNREAL", "expose", "key_of", "plain", "stop_words")

_NOT = r"(?:can(?:no|'?)t|can not|(?:do|does)(?:n't| not))"
_BE = r"(?:is|am|are|'m|'s|'re)"
# In this order; the right side is read like the text itself.
_ENGLISH: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\b(?:quit|stopped|stops|gave up|given up) (\w+ing)\b", r" not \1 "),
        (r"\bnever learn(?:ed|t) (?:how )?to\b", " can not "),
        (r"\b(\d{1,3})(?: years old\b|-year-old\b)", r"\1 "),
        (r"\bturned (?=\d)", " be "),
        (rf"\b{_NOT} eat(?: any)?\b|\bavoids?(?: eating)?\b", " noteat "),
        (r"\bshares? an? (?:flat|apartment|house|room|place) with\b", " live with "),
        (rf"{_BE} (?:a )?diabetic\b", " have diabetes "),
        (rf"{_BE} (?:an? )?asthmatic\b", " have asthma "),
        (rf"\b{_NOT} (?:stand|bear)\b|\b(?:hates?|detests?|loathes?)\b", " hate "),
        ((rf"\b{_NOT} (?:really )?(?:like|enjoy)\b|{_BE} not (?:a fan of|into|fond of)\b|"
         r"\bdislikes?\b"), " dislike "),
        (rf"{_BE} (?:a (?:big |huge )?fan of|fond of|into)\b|\b(?:likes?|enjoys?)\b", " like "),
        (rf"{_BE} crazy about\b|\b(?:loves?|adores?)\b", " love "),
        (rf"\b{_NOT} (?:tolerate|digest)\b|{_BE} intolerant (?:to|of)\b", " intol "),
        (rf"(?:{_BE}|\bha(?:s|ve)|'ve) (?:an? )?(\w+)[- ]intoleran(?:t|ce)\b", r" intol \1 "),
        ((rf"(?:{_BE} (?:(?:very|badly|severely) )?|'ve got (?:an? )?|\bha(?:s|ve) (?:an? )?)"
         r"((?:\w+ ){0,2})(?:allergic to|allerg(?:y|ies)(?: to)?)\b"), r" allerg \1 "),
        ((r"(?:'ve|\bha(?:s|ve)|'s) been diagnosed with\b|\bwas diagnosed with\b|"
         r"\bsuffers? from\b"), " have "),
        (r"(?:'ve|\bha(?:s|ve)|'s) been\b", " be "),
        (r"(?:'ve|\bha(?:s|ve)) got\b|\bowns?\b", " have "),
        (rf"\bworks? as\b|{_BE} working as\b", " be "),
        (rf"\bresides?\b|{_BE} (?:based|living)\b", " live "),
        ((r"\b(?:commutes?|go(?:es)? to work|gets? to work) by (?:bike|bicycle)\b|"
         r"\b(?:cycles?|bikes?) to (?:work|the office)\b|\brides? \w+ bi(?:ke|cycle) to work\b"),
         " cyclework "),
        (r"\bcommutes? by (\w+)", r" take \1 to work "),
        (r"\b(?:scared|frightened|terrified)\b", " afraid "),
        (r"\bno longer\b", " not "),
        (rf"{_BE} an? (?:retired )?(\w+) teacher\b", r" teach \1 "),
        (rf"{_BE} an? (\w+) driver\b", r" drive \1 "),
        (r"\bteaches\b", " teach "),
        (r"\bcannot\b|\bcan't\b", " can not "),
        (r"n't\b", " not "),
        (rf"(?<![\w]){_BE}(?!\w)|(?<=\w)(?:'m|'re)(?!\w)|(?<=\w)'s(?= )", " be "),
        (r"\b(?:has|have|had)\b|'ve\b", " have "),
    )
)  # fmt: skip
_FOREIGN: dict[str, tuple[tuple[re.Pattern[str], str], ...]] = {
    language: tuple((re.compile(pattern), replacement) for pattern, replacement in rows)
    for language, rows in {
        "de": (
            (r"\b(?:hasse|hasst|verabscheue|verabscheut)\b", " hate "),
            (r"\bmag (?:keine[nr]?|kein|nicht)\b", " dislike "),
            (r"\b(?:liebe|liebt)\b", " love "),
            (r"\b(?:bin|ist) allergisch (?:gegen|auf)\b", " allerg "),
            (r"\b(?:habe|hat) eine (\w{2,20})allergie\b", r" allerg \1 "),
            (r"\b(?:vertrage|verträgt) (?:keinen?|kein)\b", " intol "),
            (r"\b(?:bin|ist) (\w{2,20})intolerant\b", r" intol \1 "),
            (r"\b(?:habe|hat) eine (\w{2,20})intoleranz\b", r" intol \1 "),
            (r"\b(?:arbeite|arbeitet) als\b", " bin "),
            (r"\b(?:stamme|stammt|komme|kommt|bin|ist) aus\b", " herkunft aus "),
        ),
        "es": (
            (r"\bno soport[oa]\b|\b(?:odio|odia|detesto|detesta)\b", " hate "),
            (r"\bno (?:me|le) gustan?\b", " dislike "),
            (r"\b(?:me|le) encantan?\b|\b(?:adoro|adora)\b", " love "),
            (r"\b(?:me|le) gustan?\b", " like "),
            (r"(?:\b(?:soy|es) )?\bal[eé]rgic[oa] al?\b", " allerg "),
            (r"\b(?:tengo|tiene) alergia al?\b", " allerg "),
            (r"(?:\b(?:soy|es) )?\bintolerante al?\b|\bno toler[oa]\b", " intol "),
        ),
        "fr": (
            (r"\bdéteste\b|\bne supporte pas\b", " hate "),
            (r"\bn'aime pas\b", " dislike "),
            (r"\badore\b", " love "),
            (r"\baime\b", " like "),
            (r"\b(?:suis|est) allergique (?:aux?|à)\b", " allerg "),
            (r"\b(?:ai|a) une allergie (?:aux?|à)\b", " allerg "),
            (r"\b(?:suis|est) intolérante? (?:aux?|à)\b|\bne tolère pas\b", " intol "),
            (r"\btravaille comme\b", " suis "),
            (r"\b(?:viens|vient|suis originaire|est originaire) (?=de|d')", " origine "),
        ),
    }.items()
}  # fmt: skip
_MY_ALLERGY = re.compile(r"\bmy ((?:\w+ ){1,2})allerg(?:y|ies)\b")
_MY_ILLNESS = re.compile(
    r"\bmy (diabetes|asthma|migraines?|arthritis|epilepsy|eczema|hay fever|psoriasis|anaemia)\b"
)
_FORMS = {
    language: {word: row.split(":")[0].strip() for row in rows.split("|") for word in
               row.split(":")[1].split()}
    for language, rows in {
        "en": "see: see sees | go: go goes | be: be | have: have | like: like | love: love | hate: "
              "hate | dislike: dislike | live: live",
        "de": "be: bin ist sind |  have: habe hat hab haben | ess: esse isst | "
              "nehm: nehme nimmt | les: lese "
              "liest | sprech: spreche spricht | seh: sehe sieht | geb: gebe gibt | helf: helfe "
              "hilft | treff: treffe trifft | leb: wohne wohnt wohn lebe lebt | werd: werde wird | "
              "mog: mag möchte | allerg: allergisch | lieb: liebe liebt",
        "es": "be: soy es somos | have: tengo tiene tenemos | go: voy va | haz: hago hace | "
              "viv: vivo vive vivimos "
              "resido reside | encant: encanta encantan | conduc: conduzco conduce | sab: sé sabe "
              "| pued: puedo puede | sal: salgo sale | pon: pongo pone | est: estoy está | conoc: "
              "conozco conoce | dig: digo dice | teng: llevo lleva | jug: juego juega",
        "fr": "be: suis est sommes | have: ai a avons | go: vais va | "
              "viv: habite habitons vis vit vivons | pren: prends prend "
              "| fair: fais fait | voi: vois voit | sai: sais sait | condui: conduis conduit | li: "
              "lis lit | boi: bois boit | appren: apprends apprend | cour: cours court | dor: dors "
              "dort | ecri: écris écrit | m': m' me",
    }.items()
}  # fmt: skip
_ENDINGS = {
    "de": re.compile(r"(?:et|en|e|t|n)$"),
    "es": re.compile(r"(?:os|as|es|o|a|e|s)$"),
    "fr": re.compile(r"(?:es|e|s|x)$"),
}
_MIN_STEM = 3
# Other relations have several words that are not equal: `therapist` and `physio`.
_PLAIN_RELATIONS = word_set("mother father child grandmother grandfather wife husband")
_NUMBERS = {
    word: str(number)
    for row in (
        "two three four five six seven eight nine ten eleven twelve",
        "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "dos tres cuatro cinco seis siete ocho nueve diez once doce",
        "deux trois quatre cinq six sept huit neuf dix onze douze",
    )
    for number, word in enumerate(row.split(), start=2)
}
_EXTRA_STOP = {
    "en": word_set(
        "do does did can will been being very so too just really still now even both honestly "
        "there here them him it its years ages anymore days s 's any who which that user user's"
    ),
    "de": word_set("der die das des dem den ein eine einen einem einer sich im am zum zur es ja"),
    "es": word_set("el la los las un una unos unas se le les lo al del a de en que hace"),
    "fr": word_set("le la les l' un une des du au aux d' de se s' en y que c' n' ne qu'"),
}
UNREAL = {
    "en": word_set(
        "if would could might may maybe perhaps wish hope want used almost nearly should unless "
        "pretend imagine probably think thought except instead rather longer until before "
        "someday 'd planning plan consider considering stopped quit avoid sold lost gave try "
        "tried trying refuse refused was were did didn't wanted going gonna will won't 'll"
    ),
    "de": word_set(
        "möchte möchten würde könnte wollte will früher wenn falls vielleicht hoffe plane fast "
        "vermutlich wahrscheinlich soll sollte außer statt hätte wäre wünsche träume irgendwann "
        "aufgehört vermeide ehemals damals war hatte werde versuche bevor bis ob kaum"
    ),
    "es": word_set(
        "quiero quisiera gustaría podría si quizás quizá tal antes solía espero casi iba excepto "
        "salvo voy era tenía dejé evito intento debería pienso planeo sueño hasta apenas"
    ),
    "fr": word_set(
        "voudrais aimerais pourrais si peut-être avant espère presque sauf veux vais étais avais "
        "arrêté évite essaie devrais compte rêve jusqu' était avait autrefois"
    ),
}
"""Words that make a clause no statement of what is so, by language."""
_EQUAL_KEYS = word_set("hate dislike love like allerg intol herkunft origine noteat cyclework")
STRONGER = {"like": frozenset({"love"}), "dislike": frozenset({"hate"})}
"""What a clause may say so that it also says the weaker key."""
CHINESE = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"居住在?|定居在?|住在", "住"),
        (r"喜爱|很?爱(?=吃|喝|看|玩|听|打)|(?<!不)很?喜欢", "喜欢"),
        (r"没有", "没"),
        (r"上班|任职", "工作"),
        (r"[了的呢啊呀着]", ""),
        (r"一名|一位|一个", ""),
    )
)
"""Equal words of Chinese, as patterns with what they become."""


def plain(text: str, language: str) -> str:
    """A text in small letters, with equivalent English phrases made equal."""
    low = text.lower().replace("\u2019", "'")
    for pattern, replacement in _ENGLISH if language == "en" else _FOREIGN[language]:
        low = pattern.sub(replacement, low)
    return low


def expose(text: str) -> str:
    """A text in which an illness of the speaker's is a statement: `for my nut allergy`."""
    return _MY_ILLNESS.sub(r" ; have \1 ; ", _MY_ALLERGY.sub(r" ; allerg \1 ; ", text))


def stop_words(language: str) -> frozenset[str]:
    """Words that carry no detail of a statement; negations do."""
    return _STOP[language]


def key_of(word: str, language: str) -> str:
    """The form by which two inflections of a word are equal."""
    form = _FORMS[language].get(word)
    if form is not None:
        return form
    if word in _EQUAL_KEYS:
        return word
    if word in _NUMBERS:
        return _NUMBERS[word]
    relation = RELATIONS[language].get(word.removesuffix("'s"))
    if relation in _PLAIN_RELATIONS:
        return relation
    if language == "en":
        return stem(word)
    folded = "".join(
        char for char in unicodedata.normalize("NFD", word) if not unicodedata.combining(char)
    ).replace("ß", "ss")
    cut = _ENDINGS[language].sub("", folded)
    return cut if len(cut) >= _MIN_STEM else folded


def _stop(language: str) -> frozenset[str]:
    grammar = GRAMMARS[language]
    words = grammar.articles | grammar.first | grammar.mine | grammar.me | grammar.fillers
    words |= grammar.prepositions | grammar.user | grammar.breaks | grammar.of | grammar.yours
    words |= frozenset(grammar.third) | frozenset(grammar.theirs) | _EXTRA_STOP[language]
    meaningful = grammar.negations | UNREAL[language] | frozenset(_FORMS[language])
    return words - meaningful - frozenset(_NUMBERS)


_STOP = {language: _stop(language) for language in GRAMMARS}
