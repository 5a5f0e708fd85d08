# ruff: noqa: E501, RUF001 - tables of words in several scripts
"""The wordings that the local adjudicator matches, in German, Spanish, French and Chinese.

English has its own, finer patterns in `cues`. `language_of` tells which table applies, and returns
an empty text for a language without one: what is not understood is shown as uncertain rather than
denied. The tables were written by hand, and none was fitted to data.
"""

import re
from dataclasses import dataclass
from typing import Literal

from memguard.local.languages import language_of as guess_language
from memguard.local.languages import words_of_grammar
from memguard.local.verifier.lexicon import word_set

RuleLanguage = Literal["en", "de", "es", "fr", "zh", ""]
"""A language that the rules read; an empty text for any other."""
_I = re.IGNORECASE

FUNCTION_WORDS: dict[RuleLanguage, frozenset[str]] = {
    "en": words_of_grammar("en"),
    "de": words_of_grammar("de"),
    "es": words_of_grammar("es"),
    "fr": words_of_grammar("fr"),
    "": words_of_grammar("other"),
}
"""Words of grammar by language; Chinese has none that stand alone."""


def language_of(text: str) -> RuleLanguage:
    """The language of a text, for which an empty text stands where it has no table.

    English where nothing tells.
    """
    language = guess_language(text, unknown="en")
    return "" if language == "other" else language


def _any(patterns: str) -> re.Pattern[str]:
    parts = [part for part in re.split(r"\s{2,}|\n", patterns.strip()) if part]
    return re.compile(r"(?<!\w)(?:" + "|".join(parts) + r")(?!\w)", _I)


def _in(patterns: str) -> re.Pattern[str]:
    """The same for Chinese, which has no spaces between words."""
    return re.compile("|".join(patterns.split()))


@dataclass(frozen=True, kw_only=True)
class Wordings:
    """The patterns of one language."""

    preference: re.Pattern[str]
    """Likes, dislikes, wants."""
    belief: re.Pattern[str]
    """Believes, is convinced."""
    constraint: re.Pattern[str]
    """Must, never, at most, a diet."""
    experience: re.Pattern[str]
    """What somebody did."""
    doubtful: re.Pattern[str]
    """Jokes, hearsay, open questions, guesses."""
    past: re.Pattern[str]
    """Used to, formerly."""
    update: re.Pattern[str]
    """Now, no longer, moved, instead."""
    recommendation: re.Pattern[str]
    """Requests for advice."""
    planning: re.Pattern[str]
    """Requests for a plan."""
    doing: re.Pattern[str]
    """Requests for help with a task."""
    view: re.Pattern[str]
    """Requests for the user's own view."""
    self: re.Pattern[str]
    """The first person, in the singular or the plural."""
    together: re.Pattern[str]
    """Several people whom an answer is for: we, guests, family."""
    alone: re.Pattern[str]
    """That an answer is for the user alone."""
    company: re.Pattern[str]
    """A person who joins the user: with my wife."""


GERMAN = Wordings(
    preference=_any(r"""
        mag  mögen  mochte  liebe  liebt  lieben  bevorzug\w+  am liebsten  lieblings\w+  gern  gerne
        lieber  hasse  hasst  verabscheu\w+  (?:kann|können) \w+ nicht (?:leiden|ausstehen)  schwärm\w+
        genieß\w+  möchte  wünsch\w+  begeister\w+  fan von  interessier\w+
    """),
    belief=_any(r"""
        glaubt?  glaube  meint  (?:ist|bin) (?:fest )?(?:überzeugt|sicher|der meinung|der ansicht)
        hält \w+ für  halte \w+ für  behauptet  findet, dass  finde, dass  denkt, dass  denke, dass
        zweifelt?  vermutet  (?:seiner|ihrer|meiner) (?:meinung|ansicht) nach
    """),
    constraint=_any(r"""
        muss  müssen  darf  dürfen  höchstens  maximal  budget  (?:esse|isst|trinke?t?) (?:\w+ )?kein\w*
        vegetari\w+  vegan\w*  niemals  nie  nur  koscher  halal  grundsätzlich  (?:habe|hat) keinen? (?:ofen|auto|herd)
        immer  antworte\w*  weigere?t?  verzichte\w*  gebe ich selbst \w+
    """),
    experience=_any(r"""
        gekauft  besucht  gekocht  gelesen  gesehen  gefahren  gearbeitet  gestern  letzte\w*  war
        verkauft  gelaufen  studiert  gereist  gewonnen  verloren  gebaut
    """),
    doubtful=_any(r"""
        vielleicht  wahrscheinlich  angeblich  gerücht\w*  gehört, dass  scherz\w*  spaß gemacht
        nicht sicher, ob  fragt sich  frage mich  möglicherweise  womöglich  scheint  weiß nicht, ob
    """),
    past=_any(r"""
        früher  ehemals  einst  damals  als kind  vor jahren  in der vergangenheit  ursprünglich
    """),
    update=_any(r"""
        jetzt  nun  inzwischen  mittlerweile  neuerdings  nicht mehr  kein\w* \w+ mehr  umgezogen  gewechselt  statt
        stattdessen  seitdem  ab sofort  verschoben  geändert  aufgehört
    """),
    recommendation=_any(r"""
        empfiehl\w*  empfehl\w+  empfohlen  vorschl\w+  schlag\w* \w+ (?:\w+ )*?vor  idee\w*  tipp\w*  rat  rate
        (?:was|wo|welche\w*|wohin|wen)(?: \w+){0,3} (?:soll|sollte|sollen|könnte|kann|können) (?:ich|wir)
        (?:was|wo|welche\w*) (?:soll|sollte|sollen|könnte|könnten|kann|können) (?:ich|wir)
        (?:was|wen|welche\w*|wohin)(?: \w+)? (?:koche|backe|schenke|lese|schaue|kaufe|mache|esse|trinke|nehme|serviere|bestelle|ziehe)n? (?:ich|wir)
        such\w+  auswähl\w+  schenken  passt  lohnt
    """),
    planning=_any(r"""
        plan\w*  organisier\w*  termin\w*plan  reiseplan  menü  zusammenstell\w*  stelle? \w+ zusammen  vorbereit\w+ für
    """),
    doing=_any(r"""
        wie (?:kann|soll|sollte|schreibe?n?|mache?n?|bereite?n?|lerne?n?) \w+  hilf\w*  schreib\w*  übersetz\w*  fass\w* \w+ zusammen
        erklär\w*  korrigier\w*  verbesser\w*  erstell\w*  bezahl\w*  überweis\w*  bereite?  buch\w*  mach\w*
    """),
    view=_any(r"""
        was (?:denke|glaube|meine|halte) ich  meine (?:meinung|ansicht|haltung)  wie stehe ich
    """),
    self=_any(r"ich  mir  mich  mein\w{0,2}  wir  uns  unser\w{0,2}"),
    together=_any(r"""
        wir  uns  unser\w{0,2}  gäste?n?  familie  freunde?n?  alle  gemeinsam  zusammen  kollegen  gruppe
        party  feier  einladen
    """),
    alone=_any(r"nur für mich  für mich allein\w*  allein\w*  für mich selbst  mit (?:\w+ )?kollegen"),
    company=_any(r"mit (?:mein\w{0,2} |unser\w{0,2} |der |dem |den )?\w+"),
)  # fmt: skip

SPANISH = Wordings(
    preference=_any(r"""
        (?:me|le|les|nos) (?:gustan?|encantan?|apetecen?|fascinan?|interesan?)  prefier\w+  preferid\w+  favorit\w+
        odi[oa]  detest\w+  ador\w+  amo  ama  disfrut\w+  no soport\w+  quier[oe]  aficionad\w+
    """),
    belief=_any(r"""
        cre[eo] que  cree  piens[ao] que  opin\w+  está convencid\w+  estoy convencid\w+  sostiene que  afirma que
        considera que  considero que  (?:en|según) (?:mi|su) opinión  duda que  sospecha
    """),
    constraint=_any(r"""
        debo  debe  tengo que  tiene que  nunca  solo  sólo  máximo  como mucho  presupuesto  no (?:como|come|bebo|bebe)
        vegetarian\w+  vegan\w+  obligatori\w+  halal  kosher  siempre  las apruebo yo  no tengo (?:horno|coche)
        no más de  a más tardar
    """),
    experience=_any(r"""
        compr[éó]  visit[éó]  viaj[éó]  fui  fue  trabaj[éó]  ayer  estudi[éó]  corr[íi]ó?  cociné  leí  vi  gan[éó]
        vend[ií]ó?  el (?:año|mes) pasado  la semana pasada  he \w+[ai]do
    """),
    doubtful=_any(r"""
        quizás?  tal vez  probablemente  dicen que  se rumorea  rumor\w*  bromea\w*  en broma  no (?:sé|sabe) si
        parece que  supuestamente  a lo mejor  me pregunto si
    """),
    past=_any(r"antes (?:vivía|trabajaba|era|me gustaba)  solía  antiguamente  de niñ[oa]  hace años  en el pasado"),
    update=_any(r"""
        ahora  ya no  actualmente  últimamente  hoy en día  me (?:he mudado|mudé)  se (?:ha mudado|mudó)  cambi[éó]\w*  en lugar de  en vez de
        desde entonces  dejé  dejó  pasó a
    """),
    recommendation=_any(r"""
        recom\w+  suger\w+  sugiér\w+  consej\w+  aconsej\w+  ideas?  (?:qué|dónde|cuál|a quién)(?: \w+){0,2} (?:puedo|podría|podemos|debería|deberíamos)
        qué(?: \w+)? (?:preparo|cocino|hago|compro|como|leo|veo|pido|elijo|bebo|llevo|cocinamos|hacemos|cenamos|preparamos|sirvo|servimos)
        qué (?:le|les) (?:regalo|compro|doy)  regal\w+  elig\w+  busc[oa]  qué (?:película|libro|serie|restaurante)\w* \w+
    """),
    planning=_any(r"plan\w*  organi[zc]\w*  itinerario  menú  agenda  prepara\w* (?:un|una|el|la)"),
    doing=_any(r"""
        cómo (?:puedo|podría|hago|se hace|debo|debería|\w+o)  ayúda\w*  escrib\w*  traduc\w*  resum\w*  explica\w*  corrig\w*  mejora\w*  crea  haz  paga\w*  prepara\w*  redacta\w*
    """),
    view=_any(r"qué (?:opino|pienso|creo)  mi (?:opinión|postura|punto de vista)"),
    self=_any(r"yo  me  mi  mis  mí  nosotr[oa]s  nos  nuestr[oa]s?  puedo  debo  tengo  debería  podemos  vivo  escribo  hago  preparo  cocino  compro  leo  veo  pido  elijo  trabajo  llego  cocinamos  cenamos"),
    together=_any(r"""
        nosotr[oa]s  nos  nuestr[oa]s?  invitad[oa]s?  familia  amig[oa]s  tod[oa]s  junt[oa]s  colegas  compañer[oa]s  grupo  fiesta
        podemos  cenamos  vamos
    """),
    alone=_any(r"solo para mí  sólo para mí  para mí sol[oa]  yo sol[oa]  con (?:mis )?(?:colegas|compañeros)"),
    company=_any(r"con (?:mis? |nuestr[oa]s? |el |la )?\w+"),
)  # fmt: skip

FRENCH = Wordings(
    preference=_any(r"""
        aime\w*  j['\u2019]aime\w*  adore\w*  j['\u2019]adore\w*  préf[èée]r\w+  préférées?  favorite?s?  détest\w+  je hais  hait
        apprécie\w*  j['\u2019]apprécie  ne support\w+ pas  envie de  passionné\w*  fan de  veux  veut  souhait\w+
    """),
    belief=_any(r"""
        crois  croit  pens\w+ que  est (?:convaincue?|persuadée?|sûre?)  suis (?:convaincue?|persuadée?|sûre?)  estime que  affirme que
        prétend que  soutient que  (?:selon|d['\u2019]après) (?:moi|lui|elle)  à (?:mon|son) avis  doute que  soupçonne
    """),
    constraint=_any(r"""
        dois  doit  faut  jamais  seulement  uniquement  maximum  au plus  budget  ne (?:mange|bois|boit) (?:pas|jamais|plus)
        végétari\w+  végétalien\w*  vegan  halal  casher  toujours  j['\u2019]approuve moi-même  n['\u2019]a[i]? pas de (?:four|voiture)
        obligatoire\w*
    """),
    experience=_any(r"""
        acheté\w*  visité\w*  voyagé  allée?  travaillé  hier  étudié  couru  cuisiné  lu  vu  gagné  vendu
        l['\u2019]an(?:née)? (?:dernier|dernière|passée)  la semaine dernière  le mois dernier
    """),
    doubtful=_any(r"""
        peut-être  probablement  paraît-il  il paraît  rumeur\w*  plaisant\w+  blague\w*  ne (?:sais|sait) pas si  semble\w*
        on dit que  se demande  me demande  soi-disant  apparemment
    """),
    past=_any(r"""
        autrefois  jadis  avant,? (?:je|j['\u2019]|il|elle)  dans le passé  il y a des années  étant enfant  à l['\u2019]époque  habitait  habitais
    """),
    update=_any(r"""
        maintenant  désormais  actuellement  ne \w+ plus  n['\u2019]\w+ plus  ces derniers temps  déménagé\w*  changé\w*  au lieu de  plutôt que
        depuis lors  arrêté  à présent
    """),
    recommendation=_any(r"""
        recommand\w+  conseil\w+  suggér\w+  suggèr\w+  propos\w+  idées?  (?:que|quoi|où|quel\w*|qui)(?: \w+){0,2} (?:puis-je|pourrais-je|dois-je|devrais-je|pouvons-nous|offrir)
        qu['\u2019]est-ce que (?:je|nous|on) (?:cuisine|prépare|mange|lis|regarde|achète|fais|offre|sers|bois)\w*
        je pourrais  quel\w* (?:livre|film|restaurant|cadeau)\w*  offrir  chois\w+  cherche  que préparer  que cuisiner  que faire
    """),
    planning=_any(r"plan\w*  organis\w*  itinéraire  menu  emploi du temps  programme"),
    doing=_any(r"""
        comment (?:puis|je|faire|\w+er|m['\u2019]\w+|se)  aide\w*  écri\w*  rédige\w*  tradui\w*  résum\w*  expliqu\w*  corrig\w*  amélior\w*  crée  fais  paie\w*  paye\w*  prépar\w*
    """),
    view=_any(r"que (?:pensé-je|penses?-je)  qu['\u2019]est-ce que je pense  mon (?:avis|opinion|point de vue)"),
    self=_any(r"je  j['\u2019]\w+  moi  me  m['\u2019]\w+  mon  ma  mes  nous  notre  nos  puis-je  dois-je"),
    together=_any(r"""
        nous  notre  nos  invités?  famille  amie?s  tous  ensemble  collègues  groupe  fête  soirée avec
    """),
    alone=_any(r"seulement pour moi  juste pour moi  pour moi seule?  moi-même  avec (?:mes )?collègues"),
    company=_any(r"avec (?:mon |ma |mes |notre |nos |le |la )?\w+"),
)  # fmt: skip

CHINESE = Wordings(
    preference=_in("喜欢 最爱 热爱 爱吃 爱看 爱喝 爱听 讨厌 不喜欢 偏好 偏爱 更喜欢 想要 宁愿 受不了 无聊 感兴趣 希望"),
    belief=_in("认为 相信 (?<!让我)觉得 坚信 主张 声称 怀疑 以为 看法是 深信"),
    constraint=_in("必须 不能 不可以 最多 预算 从不 绝不 只能 只吃 不吃 不喝 素食 吃素 清真 一定要 不得 自己批准 亲自 上限 总是 没有烤箱 没有车"),
    experience=_in("买了 去过 参观 做过 工作了 昨天 上周 上个月 去年 读过 看过 跑了 卖了 赢了 丢了"),
    doubtful=_in("也许 可能 大概 据说 听说 谣言 传闻 开玩笑 不确定 不知道是否 好像 似乎 或许"),
    past=_in("以前 曾经 过去 从前 小时候 原来住 当年"),
    update=_in("现在 如今 目前 不再 已经搬 搬到 搬家 改成 换成 改为 改到 最近开始 戒了"),
    recommendation=_in("推荐 建议 什么好 该做什么 该吃什么 该买什么 该看什么 吃什么 看什么 去哪 哪家 哪本 哪部 送什么 礼物 适合 应该 该 选 好吗"),
    planning=_in("计划 安排 规划 日程 行程 菜单 策划 筹备"),
    doing=_in("怎么 如何 帮我 写 翻译 总结 解释 修改 支付 付款 准备 制作 创建 改进"),
    view=_in("我怎么看 我的看法 我的观点 我认为什么 我是怎么想 我对[^，。？]{1,12}(?:看法|怎么看)"),
    self=_in("我 咱"),
    together=_in("我们 咱们 客人 家人 全家 朋友们 大家 一起 同事们 聚会 派对 聚餐"),
    alone=_in("我一个人 只有我 就我自己 我自己吃 单独 和同事"),
    company=_in("[和跟与陪带](?:我|我的)?[\u3400-\u9fff]{2}"),
)  # fmt: skip

WORDINGS: dict[RuleLanguage, Wordings] = {
    "de": GERMAN,
    "es": SPANISH,
    "fr": FRENCH,
    "zh": CHINESE,
}
"""The tables by language; English is in `cues`."""

LIMIT = re.compile(
    r"\b(?:höchstens|maximal|budget|no más de|como máximo|presupuesto|au plus|au maximum|"
    r"pas plus de)\b|最多|预算|上限|不超过",
    _I,
)
"""Words of a limit, which is a constraint even where it is put as a wish."""

_PHATIC = word_set("""
    hi hey hello good morning evening night afternoon thanks thank you ok okay great bye goodbye
    cool nice sure yes no so much very a lot again dear all everyone see later perfect lovely
    wonderful awesome that that's is for your help got it have day one well done too and the
    hallo guten gute morgen tag abend nacht danke dank vielen super toll tschüss tschüs ja nein
    alles klar dir sehr schön gut bis später wunderbar für deine hilfe
    hola buenos buenas días tardes noches gracias muchas genial vale adiós sí perfecto estupendo
    por tu ayuda hasta luego muy bien
    bonjour bonsoir salut merci beaucoup génial d'accord oui non au revoir parfait bonne journée
    soirée nuit à bientôt pour ton aide c'est très bien
""")
_PHATIC_CHINESE = re.compile(
    "(?:你好|您好|早上好|晚上好|晚安|非常|谢谢|多谢|感谢|太好了|好的|再见|是的|不用|你的?|帮助|了|啊|呀|[!！。，、.~\\s])+"
)


def is_greeting(text: str) -> bool:
    """Whether a message asks nothing: only words of greeting, thanks and assent."""
    if _PHATIC_CHINESE.fullmatch(text.strip()):
        return True
    words = re.findall(r"[^\W_]+(?:['\u2019][^\W_]+)?", text.casefold().replace("\u2019", "'"))
    return "?" not in text and bool(words) and all(word in _PHATIC for word in words)
