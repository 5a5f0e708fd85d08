# ruff: noqa: E501, RUF001 - tables of words in several scripts
"""Whether a request looks up what the user told before, or asks about the past, by its words.

`asks_about_past` decides whether recall looks at superseded memories at all. It is generous: what
it lets in for nothing costs a few tokens, because the adjudicator's `lookup` decides what is shown.
`read_lookup` is the local adjudicator's own reading, and stricter. Both read English, German,
Spanish, French and Chinese; in any other language nothing is a look-up.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from memguard.local.languages import Language, language_of
from memguard.normal_form import comparison_form
from memguard.schema.read import Lookup

_MAX_CHARS = 2_000
"""Characters of a request that are read: the end of it, where the question is."""


def _words(patterns: str) -> re.Pattern[str]:
    """Match any of the patterns, which two spaces or a line break separate, as whole words."""
    parts = [part for part in re.split(r"\s{2,}|\n", patterns.strip()) if part]
    return re.compile(r"(?<!\w)(?:" + "|".join(parts) + r")(?!\w)", re.IGNORECASE)


def _signs(patterns: str) -> re.Pattern[str]:
    """The same for Chinese, which has no spaces between words."""
    return re.compile("|".join(patterns.split()))


@dataclass(frozen=True, kw_only=True)
class _LookUpWords:
    """The patterns of one language."""

    told: re.Pattern[str]
    """The user says that it was told before, or asks to be reminded."""
    reminded: re.Pattern[str]
    """Words of somebody who knew it once, which need no first person."""
    of_ones_own: re.Pattern[str]
    """A question for something of the user's own, which does not say that it was told."""
    past: re.Pattern[str]
    """What once was so, or when something happened."""
    past_tense: re.Pattern[str]
    """Any sign of the past; for recall alone."""
    self: re.Pattern[str]
    """The first person."""


_ENGLISH = _LookUpWords(
    told=_words(r"""
        (?:i|we) (?:had |have |just |already |once )?(?:told|gave|given|mentioned|said|showed|shown|sent|wrote|shared)(?: to)?(?: you)?
        (?:i|we)['\u2019]ve (?:told|given|mentioned|said|shown|sent|shared)
        (?:did|have|had) (?:i|we) (?:ever |already )?(?:tell|say|mention|give|write|note|share|told|said|mentioned|given|noted|shared)
        remind me(?! to| every| in| at| on| tomorrow| when i)  (?:do|can) you (?:still )?(?:remember|recall)
        do you (?:still )?know (?:what|when|where|who|which|how|my|our)
        according to (?:what i|my|our|the|\w+)  from what i  (?:quote|estimate|price|offer) (?:that )?(?:i|we) (?:got|had|received|was given)
        did (?:\w+ ){1,4}(?:quote|tell|promise|offer|charge|ask|give|send|recommend) (?:me|us)  (?:was|were|am) (?:i|we) (?:told|quoted|offered|promised|given)
    """),
    reminded=_words(r"""
        again ?(?=\?)  (?:what|who|where|when|which|how)(?:['\u2019]s| is| was| were) (?:\w+ ){1,10}again
        (?:what|who)(?:['\u2019]s| is| was) .{1,20} name again  slipped my mind  i forg[eo]t
        what (?:did|does) (?:the|that|this|my|our) (?:\w+ ){0,2}(?:e-?mail|mail|letter|message|note|notice|document|flyer|memo|text) say
    """),
    of_ones_own=_words(r"""
        (?:what|when|where|who|which|how)(?: \w+){0,3}? (?:is|are|does|do)(?: \w+){0,2}? (?:my|our)  (?:what|when|where|who)['\u2019]s (?:my|our)
        when (?:am|do|are) (?:i|we)  where (?:am i|do i|do we|did i put|is my)
        (?:which|what) (?:\w+ ){1,3}(?:do|am|are) (?:i|we)(?! (?:need|want|have to|use to|do))
        how (?:much|many|long|often) (?:\w+ ){0,3}(?:do|am|have|are) (?:i|we)  am i (?:still )?(?:booked|registered|enrolled|allowed|meeting)
        do (?:i|we) (?:still )?(?:have|own|owe|know)  who (?:do|am) i
    """),
    past=_words(r"""
        used to  back then  previously  previous  formerly  former  originally  initially  in the past  at (?:one|that) time
        before (?:that|this|then|i|we|the|my|it|now|moving|switching)(?! (?:leave|go|book|buy|start))  before ?(?=\?)  earlier  at first
        (?:my|our|the) (?:old|first|last|earlier) (?:\w+ )?(?:job|address|number|phone|flat|apartment|house|home|car|boss|employer|company|plan|code|password|school|name|price|rent|salary|doctor|provider|team|favou?rite)
        (?:when|where|what|which|who|how|why)(?: \w+){0,4}? did (?:i|we|my|our)(?! (?:say|tell|mention|give|note|write|share))
        (?:when|where|what|which|who|how)(?: \w+){0,2}? (?:was|were)(?: \w+)? (?:i|we|my|our)
        (?:have|had) (?:i|we) ever  did (?:i|we) (?:ever )?(?!tell|say|mention|give|note|write|share)\w+  used to
        (?:how|what) (?:has|have|did) .{1,40} changed?  any ?more
    """),
    past_tense=_words(r"""
        used to  before  previous\w*  former\w*  earlier  originally  initially  at first  first  old  ex  back then  ago  until  ever  history
        once  no longer  any ?more  chang\w+  was  were  did  had  last (?:\w+)  (?:19|20)\d\d  since when  in the past  have (?:i|we)
        (?:lived|worked|ran|bought|visited|met|moved|paid|drove|studied|started|stopped|quit)
    """),
    self=_words(r"i  me  my  mine  myself  we  us  our  ours  i['\u2019](?:m|ve|d|ll)"),
)

_GERMAN = _LookUpWords(
    told=_words(r"""
        (?:hab|habe|hatte|haben|hatten) (?:ich|wir) (?:\w+ ){0,6}(?:gesagt|erzählt|gegeben|genannt|erwähnt|geschickt|verraten|mitgeteilt|aufgeschrieben|notiert)
        ich (?:\w+ ){0,6}(?:gesagt|erzählt|gegeben|genannt|erwähnt|geschickt|verraten|mitgeteilt|notiert) (?:hab|habe|hatte)
        (?:hat|haben|hatte) (?:\w+ ){0,3}(?:mir|uns) (?:\w+ ){0,6}(?:gesagt|genannt|angeboten|versprochen|gegeben|berechnet|empfohlen|veranschlagt)
        (?:hat|haben|hatte) (?:\w+ ){1,6}(?:verlangt|veranschlagt|berechnet|in rechnung gestellt)
        laut \w+  sagte ich  erwähnte ich  nannte ich  erinner\w* mich (?:an|daran, (?:was|wann|wo|wer|wie|welche\w*)|nochmal|noch mal|bitte)(?!,? (?:dass|zu))
        weißt du noch  erinnerst du dich  kannst du dich (?:noch )?(?:daran )?erinnern  hilf mir auf die sprünge
    """),
    reminded=_words(r"""
        (?:noch ?mal|noch einmal|doch gleich|gleich noch|noch gleich) ?(?=\?)  (?:wie|was|wo|wann|wer|welche\w*)(?: \w+){0,2} (?:war|ist|hieß|heißt|lautete?) (?:\w+ ){0,4}?(?:nochmal|noch mal|noch gleich|doch gleich|doch)
        habe ich vergessen  ist mir entfallen  was (?:stand|steht) in  was (?:sagt|sagte) (?:die|der|das) (?:\w+ )?(?:mail|e-mail|brief|nachricht|notiz|schreiben)
    """),
    of_ones_own=_words(r"""
        (?:was|wann|wo|wer|wie|welche\w*|wie ?viel\w*|wie lange)(?: \w+){0,3}? (?:ist|sind|lautet|heißt|heißen|beginnt|endet|läuft|fängt|kostet|steht|liegt|muss|hat|haben)(?: \w+){0,2}? (?:mein\w{0,2}|unser\w{0,2})
        (?:wo|wann|wie ?viel\w*) (?:wohne|arbeite|parke|bin|habe|zahle|verdiene|treffe|fliege|fahre|muss) ich  welche\w* \w+ (?:habe|nehme|fahre|benutze|nutze) ich
        (?:habe|besitze) ich (?:noch )?
    """),
    past=_words(r"""
        früher\w*  damals  vorher\w*  zuvor  ehemal\w+  einst  ursprünglich\w*  anfangs  zuerst  vorige\w*  bevor ich
        (?:mein\w{0,2}|unser\w{0,2}|die|der|das) (?:alte\w*|erste\w*|letzte\w*|frühere\w*) \w+
        (?:wann|wo|was|wie|welche\w*|wen|wer|woher|warum)(?: \w+){0,3}? (?:bin|war|waren|hatte|hatten|wohnte|arbeitete|lebte|hieß) (?:ich|wir|mein\w{0,2}|unser\w{0,2})(?! (?:dir|euch|ihnen))
        (?:wann|wo|was|wie|welche\w*|wen)(?: \w+){0,3}? (?:habe|haben) (?:ich|wir) (?:\w+ ){0,6}(?!gesagt|gegeben|genannt|geschickt)ge\w+t?
        (?:wann|wo|was|wie|welche\w*) (?:\w+ ){0,2}?(?:war|waren) (?:mein\w{0,2}|unser\w{0,2})
        (?:bin|habe) ich (?:je|jemals|schon mal|schon einmal)
    """),
    past_tense=_words(r"""
        früher\w*  damals  vorher\w*  vorig\w+  zuvor  ehemal\w+  einst  ursprünglich\w*  anfangs  zuerst  erste\w*  bisher\w*  alte\w*  letzte\w*  vor \w+ (?:jahren?|monaten?|wochen?|tagen?)
        war  waren  warst  hatte\w*  hab  habe  haben  bin  wohnte\w*  arbeitete\w*  lebte\w*  hieß\w*  gewesen  nicht mehr  geändert  gewechselt  seit wann  je  jemals  schon mal  (?:19|20)\d\d  vergangen\w*  bevor
    """),
    self=_words(r"ich  mir  mich  mein\w{0,2}  wir  uns  unser\w{0,2}"),
)

_SPANISH = _LookUpWords(
    told=_words(r"""
        te (?:dije|conté|di|mencioné|comenté|pasé|envié|mandé|dejé|he (?:dicho|contado|dado|mencionado|comentado|pasado)|había (?:dicho|contado|dado|mencionado))
        (?:qué|cuándo|dónde|cuál|quién|cuánto)\w*(?: \w+){0,3}? (?:dije|conté|mencioné|he dicho|había dicho|he mencionado)
        recuérdame (?:cuál|cuándo|qué|dónde|quién|cuánto|cómo|el|la|los|las|mi|mis|otra)  (?:te|lo) (?:acuerdas|recuerdas)  recuerdas (?:cuál|cuándo|qué|dónde|mi|el|la)
        (?:me|nos) (?:pidió|dijo|cobró|ofreció|prometió|dio|recomendó|dijeron|pidieron|cobraron)
        según (?:te|mi|el|la|\w+)  como te dije  sabes todavía  presupuest\w+ que me
    """),
    reminded=_words(r"""
        (?:cuál|qué|cómo|quién|dónde|cuándo|cuánto) (?:era|eran|se llamaba) (?:\w+ ){0,6}?(?:que|otra vez)  cómo era que  otra vez ?(?=\?)  se me olvidó  se me ha olvidado  qué (?:decía|dice|ponía) (?:el|la) (?:correo|carta|mensaje|nota|aviso|documento)  cuál era (?:el|la)
    """),
    of_ones_own=_words(r"""
        (?:cuál|cuándo|dónde|quién|cuánto|cuánta|qué|cómo|cuáles)(?: \w+){0,3}? (?:es|son|está|están|empieza|termina|vence|cuesta|caduca|abre|cierra|se llama|tiene)(?: \w+){0,1}? (?:mis?|nuestr[oa]s?)
        (?:cuándo|dónde|cuánto|qué \w+|cuántos|cuántas|a qué hora) (?:\w+ )?(?:tengo|vivo|trabajo|pago|gano|debo|llego|viajo|vuelo|quedo|uso|tomo)
        tengo (?:todavía|aún)
    """),
    past=_words(r"""
        antes  anteriormente  anterior\w*  solía\w*  antaño  antigu[oa]s?  al principio  originalmente  en el pasado  por entonces  en aquel entonces  hace (?:\w+ ){1,2}(?:años|meses|semanas)
        (?:mi|el|la|nuestr[oa]) (?:viej[oa]|primer|primer[oa]|últim[oa]|ex) ?\w+  mi ex
        (?:cuándo|dónde|qué|cuál|quién|cuánto|cómo|por qué)(?: \w+){0,3}? (?:fui|fue|hice|corrí|compré|visité|viajé|gané|empecé|dejé|terminé|conocí|estuve|viví|trabajé|pagué|nací|me mudé|vendí|estudié|aprendí|cambié|firmé|perdí|vivía|trabajaba|tenía|usaba|pagaba|estudiaba|iba|conducía)
        (?:he|había) (?:\w+[ai]do) (?:alguna vez|antes)  alguna vez  vivía  trabajaba
    """),
    past_tense=_words(r"""
        antes  anterior\w*  solía\w*  antigu[oa]s?  viej[oa]s?  primer\w*  al principio  originalmente  hace  pasad[oa]s?  últim[oa]s?  entonces  ya no  cambi\w+  alguna vez  (?:19|20)\d\d  ex
        era  eran  fue  fui  fueron  estaba  estuve  vivía\w*  trabajaba\w*  tenía\w*  tuve  hice  hizo  dije  conté  \w{2,20}aba  \w{2,20}aban  usaba  pagaba  corrí  compré  gané  empecé  dejé  conocí  nací  viví  he \w{2,20}do
    """),
    self=_words(
        r"yo  me  mí  mis?  nosotr[oa]s  nos  nuestr[oa]s?  \w{2,15}(?:é|í)  fui  hice  dije  tuve  estuve  tengo  vivo  trabajo  pago  opino  pienso  creo  \w{2,15}(?:aba|ía|ábamos|íamos)  era  soy  estoy"
    ),
)

_FRENCH = _LookUpWords(
    told=_words(r"""
        (?:t['\u2019]ai|t['\u2019]avais|vous ai|l['\u2019]ai|vous avais)(?:-je)? (?:\w+ )?(?:dit|donné\w*|parlé|raconté\w*|mentionné\w*|indiqué\w*|envoyé\w*|montré\w*|noté\w*)
        ai-je (?:\w+ )?(?:dit|mentionné\w*|noté\w*|parlé|donné\w*|indiqué\w*)  j['\u2019](?:ai|avais) (?:\w+ )?(?:dit|mentionné|noté|parlé)
        rappelle[sz]?-moi (?!de\b|d['\u2019])\w+  tu te (?:souviens|rappelles)  te (?:souviens|rappelles)-tu  tu sais encore
        (?:m['\u2019]a|m['\u2019]ont|nous a)(?:-t-\w+)? (?:\w+ )?(?:dit|demandé|proposé|promis|donné|facturé|conseillé|annoncé|chiffré|compté|pris|fait un devis)
        (?:selon|d['\u2019]après) (?:mon|ma|le|la|\w+)
        comme je (?:te|t['\u2019]ai)
    """),
    reminded=_words(r"""
        déjà ?(?=\?)  (?:c['\u2019](?:est|était)|comment) (?:\w+ ){0,4}?déjà  j['\u2019]ai oublié
        que (?:disait|dit) (?:le|la|l['\u2019]) ?(?:mail|e-mail|courriel|lettre|message|note|avis)
    """),
    of_ones_own=_words(r"""
        (?:quel\w*|quand|où|qui|combien|comment|à quelle heure)(?: \w+){0,3}? (?:est|sont|commence|finit|expire|coûte|ouvre|ferme|s['\u2019]appelle|a lieu|se termine|tombe)(?: \w+){0,1}? (?:mon|ma|mes|notre|nos)
        c['\u2019]est (?:quoi|quand|où|qui|combien) (?:mon|ma|mes|notre|nos)
        (?:quand|où|combien|quel\w* \w+) (?:\w+ )?(?:dois-je|est-ce que j['\u2019]?\w*|j['\u2019]?ai|ai-je|habité|suis-je|travaillé-je|je)
        (?:quel\w*|quand|où) (?:est|sont)(?: \w+){0,2} (?:mon|ma|mes|notre|nos)
    """),
    past=_words(r"""
        avant  auparavant  autrefois  jadis  ancien\w*  précédent\w*  précédemment  à l['\u2019]époque  au début  à l['\u2019]origine  dans le passé  il y a (?:\w+ ){1,2}(?:ans|mois|semaines|années)
        (?:mon|ma|notre|le|la) (?:vieux|vieille|premier|première|dernier|dernière|ex)[ -]\w+
        (?:quand|où|que|qu['\u2019]|quoi|quel\w*|comment|combien|qui|pourquoi)(?: \w+){0,3}? (?:ai-je|suis-je|étais-je|avais-je|habitais-je|travaillais-je|j['\u2019]ai|j['\u2019]étais|j['\u2019]avais|je suis allée?|j['\u2019]habitais|je travaillais)(?! (?:\w+ )?(?:dit|donné|mentionné|noté|parlé|indiqué))
        (?:quel\w*|quand|où|qui|combien) (?:\w+ ){0,2}?(?:était|étaient) (?:mon|ma|mes|notre|nos)  c['\u2019]était (?:quoi|quand|où) (?:mon|ma|mes)
        habitais  habitais-je  travaillais  travaillais-je  ai-je (?:déjà|jamais)
    """),
    past_tense=_words(r"""
        avant  auparavant  autrefois  jadis  ancien\w*  précédent\w*  vieux  vieille  premi\w+  derni\w+  à l['\u2019]époque  au début  à l['\u2019]origine  il y a  passée?s?  déjà  jamais  chang\w+  ne \w+ plus  (?:19|20)\d\d  ex
        était  étais  étaient  avait  avais  avaient  habitai[ts]  travaillai[ts]  payai[ts]  ai-je  j['\u2019]ai  t['\u2019]ai  j['\u2019]\w+ais  suis-je  as-tu  fus  fut  étais-je  avais-je  \w{3,20}ais-je
    """),
    self=_words(
        r"je  j['\u2019]\w+  moi  me  m['\u2019]\w+  mon  ma  mes  nous  notre  nos  \w+-je"
    ),
)

_CHINESE = _LookUpWords(
    told=_signs(r"""
        (?:跟|和|给|对|同|向)你(?:说|讲|提|发|留|报|聊)  告诉过?你  给过?你(?:的|过|说)  我(?:之前|上次|以前|刚才|曾经)?(?:说过|提过|提到过|讲过|告诉过|发过|给过)
        (?:给|跟|向|对|和)我(?:报|开|说|讲|提)  (?:问|收|要)了?我(?:多少|几)
        我(?:之前|上次|以前|刚才)(?:说|提|讲|告诉|发|给)  提醒我一下  提醒一下我  还记得  记不记得  你记得  记得我(?:的|说|跟)?
    """),
    reminded=_signs("来着 我忘了 (?:邮件|信|通知|短信|消息)(?:里|上)?(?:是)?(?:怎么)?(?:说|写)"),
    of_ones_own=_signs(r"""
        我(?:们)?的?[^,，。?？]{0,14}(?:是什么|是多少|是谁|在哪|是几|几点|几号|哪天|什么时候|多少|叫什么|到期|截止)
        我(?:们)?(?:现在|还)?(?:住|在|用|开|坐|吃|付|欠)[^,，。?？]{0,8}(?:哪|什么|多少|几)  (?:谁|哪个|什么)是我(?:们)?的
    """),
    past=_signs(r"""
        以前(?!(?:跟|和|给|告诉|说|讲|提)) 曾经(?!告诉|说|讲|提) 过去 当时 那时候? 原来 最初 起初 从前 先前 早先 旧(?:的|地址|号码|公司|电话|手机|车|家) 老(?:地址|号码|公司|东家|电话)
        之前(?:的|住|在|用|是|做|工作|开|叫)  上一(?:个|份|任|家|次|辆|部)  第一(?:个|份|任|家|次|辆|部)  我(?:们)?[^,，。?？]{0,8}(?:什么时候|哪年|哪天|哪一年|几号|在哪里?|哪里)[^,，。?？]{0,10}(?:过|的|了)
        我(?:们)?[^,，。?？说讲提诉]{0,10}过(?:什么|哪|吗|没有|几|多少)
    """),
    past_tense=_signs(r"以前 之前 曾 过去 当时 那时 原来 本来 最初 起初 从前 先前 早先 上次 上个? 去年 前年 旧 老 第一 过 了 \d{4}年 改 换 变 不再 的时候 什么时候"),
    self=_signs("我 我们"),
)  # fmt: skip

_BY_LANGUAGE: dict[Language, _LookUpWords] = {
    "en": _ENGLISH,
    "de": _GERMAN,
    "es": _SPANISH,
    "fr": _FRENCH,
    "zh": _CHINESE,
}


def _words_of(query: str) -> tuple[_LookUpWords | None, str]:
    text = comparison_form(query)[-_MAX_CHARS:]
    return _BY_LANGUAGE.get(language_of(text, unknown="en")), text


# Several steps of one read ask about the same query.
@lru_cache(maxsize=256)
def asks_about_past(query: str) -> bool:
    """Whether a request may be about the past, so that superseded memories may answer it."""
    words, text = _words_of(query)
    if words is None:
        return False
    return words.past_tense.search(text) is not None or words.past.search(text) is not None


def says_it_was_told(query: str) -> bool:
    """Whether a request says that it was told before, or that its asker knew it once."""
    words, text = _words_of(query)
    return words is not None and bool(words.told.search(text) or words.reminded.search(text))


def read_lookup(
    query: str, *, is_question: bool, is_task: bool = False, of_user: bool = False
) -> Lookup:
    """What a request looks up, by its words.

    Args:
        query: The request.
        is_question: Whether it asks for no advice; advice looks something up only if it says so.
        is_task: Whether it asks for help with something, as in "How do I fix my bike?".
        of_user: Whether it names the user in the third person.
    """
    words, text = _words_of(query)
    if words is None:
        return "none"
    is_reminder = is_question and words.reminded.search(text) is not None
    if not (of_user or is_reminder or words.self.search(text)):
        # Without the user it is a question about the world, which no word of the user settles.
        return "none"
    is_told = is_reminder or words.told.search(text) is not None
    is_plain = is_question and (not is_task or text.rstrip().endswith("?"))
    if words.past.search(text) and (is_plain or is_told):
        return "past"
    if is_told or (is_question and not is_task and words.of_ones_own.search(text)):
        return "told_before"
    return "none"
