# ruff: noqa: E501, RUF001 - tables of words in several scripts
"""Whether a text of another author demands that something is done, in five languages.

A user's "always pay by card" may be a rule of the user's. The same words in a pasted mail or a
tool's output are somebody else's wish, which no answer may follow. `demands_action` recognizes them
by the form of a demand at the beginning of a sentence, and by what "must be" done. It is wide on
purpose, and only meant for text that the user did not say; `memguard.instructions` has the rules
for text of any author.
"""

import re
from functools import lru_cache

from memguard.local.verifier.lexicon import word_set

_I = re.IGNORECASE
_SENTENCE = re.compile(r"[^.!?;\n。！？；]+")
_LEAD = re.compile(
    r"^(?:[\s,:\-*•>\"'\u201c\u201e]|(?:please|kindly|just|also|then|so|and|always|never|immediately|important|note|urgent|"
    r"reminder|from (?:now|today) on|from here on|going forward|henceforth|hereafter|in (?:the )?future|"
    r"whenever you can|do not|don['\u2019]t|"
    r"bitte|immer|niemals?|stets|sofort|wichtig|ab (?:jetzt|sofort|heute)|künftig|in zukunft|von (?:nun|jetzt) an|"
    r"por favor|siempre|nunca|no|importante|a partir de (?:ahora|hoy)|desde (?:ahora|hoy)|de ahora en adelante|en adelante|"
    r"s['\u2019]il (?:te|vous) plaît|toujours|jamais|ne|désormais|dorénavant|à partir de maintenant|à l['\u2019]avenir|important)"
    r"(?![\w]))+",
    _I,
)
_VERB = re.compile(
    r"(?:pay|approve|send|forward|transfer|wire|delete|remove|call|phone|click|reply|answer|respond|ignore|use|tell|"
    r"inform|do|make|let|give|grant|accept|sign|confirm|cancel|book|order|buy|open|visit|follow|treat|"
    r"consider|remember|forget|keep|store|save|share|show|reveal|say|write|add|change|update|set|"
    r"mention|recommend|suggest|trust|stop|start|execute|run|install|download|submit|settle|contact|email|"
    r"ask|act|assume|refer|provide|ensure|process|authori[sz]e|release|skip|disable|enable|agree|be|"
    r"(?:be)?zahlt?e?n?|überweis\w*|genehmig(?:e|t|en)|sende[tn]?|schick(?:e|t|en)?|leite[tn]?|lösch(?:e|t|en)|ruf(?:e|t|en)?|"
    r"klick(?:e|t|en)|antworte\w*|ignorier(?:e|t|en)|verwende[tn]?|nutze[tn]?|gib|gebt|sag(?:e|t|en)?|teile[tn]?|öffne[tn]?|"
    r"bestätig(?:e|t|en)|buche[tn]?|bestell(?:e|t|en)|begleich\w*|freigeben|folge[tn]?|vergiss|merke?|informier(?:e|t|en)|"
    r"akzeptier(?:e|t|en)|unterschreib\w*|stimm\w*|empfiehl|erwähne|"
    r"pag(?:a|ue|uen|ad|ar)|aprueb[ae]n?|aprobar|envía|envíen?|enviar|transfier[ae]|transferir|borr[ae]|llam[ae]|llámame|"
    r"haz|haga|hagan|respond[ae]|ignor[ae]|us[ae]|utilic[ea]|di|diga|dile|abr[ae]|reenví[ae]|cancel[ae]|"
    r"confirm[ae]|acept[ae]|firm[ae]|recuerda|recuerde|olvid[ae]|autori[zc][ae]|liquid[ae]|recomiend[ae]|"
    r"pay(?:e|ez|er)|paie|approuve[rz]?|envoie|envoyez|envoyer|transfère|transférez|supprime[rz]?|appelle|"
    r"appelez|clique[rz]?|répond[sez]*|ignore[rz]?|utilise[rz]?|dis|dites|fais|faites|ouvre[rz]?|"
    r"transmet\w*|confirme[rz]?|accepte[rz]?|signe[rz]?|règle|réglez|régler|valide[rz]?|autorise[rz]?|"
    r"n['\u2019]oublie[zr]?|oublie[rz]?|recommande[rz]?|veuillez|merci de)(?!\w)",
    _I,
)
# German and French have a polite form by which any verb shows that it demands.
_POLITE = re.compile(r"\w+en Sie\b|(?!(?:chez|assez|nez|rez)\b)\w{3,}ez\b")
# `Wire the money`: an unknown word before what it acts on. The others begin no demand.
_ACTS_ON = re.compile(
    r"([^\W\d_]+) (?:all|every|each|any|them|it|me|us|my|your|alle|jede\w*|sämtliche\w*|mir|uns|"
    r"tod[oa]s?|cada|me|nos|tous|toutes?|chaque|moi|nous)(?!\w)",
    _I,
)
_NO_DEMAND = word_set(
    "in on at of for from with to by as after before during since until about over under near is "
    "are was were am be been has have had do does did can could will would may might must shall "
    "should and or but not if when while because that this it i we you he she they almost nearly "
    "thanks thank see attached above below here there both half what who which where why how "
    "fast nicht in an auf bei mit von zu für seit nach vor über ist sind war hat haben und oder "
    "aber wenn weil dass das ich wir sie er es casi de en con por para desde a y o pero si es son "
    "que presque de en avec par pour depuis à et ou mais si est sont que je nous il elle on a "
    "gave gives told tells sent sends took takes brought helped helps costs"
)
_TO_BE_DONE = re.compile(
    r"\b(?:must|should|shall|has to|have to|needs? to|are to|is to) (?:\w+ ){0,2}be (?:\w+ ){0,2}?\w+(?:ed|en|id|nt)\b|"
    r"\b(?:you|(?:the )?(?:assistant|agent|bot|ai|system)) (?:must|should|shall|has to|have to|needs? to|may|will|can|is to|are to)\b|"
    r"\b(?:sind|ist) (?:[\w,]+ ){0,8}zu (?:be)?(?:zahlen|überweisen|genehmigen|senden|löschen|begleichen|verwenden|ignorieren)\b|"
    r"\b(?:müssen|muss|sollen|soll|sollten) (?:[\w,]+ ){0,8}(?:bezahlt|überwiesen|genehmigt|gesendet|gelöscht|beglichen|freigegeben) werden\b|"
    r"\b(?:du|der assistent|die ki) (?:musst|muss|sollst|soll|darfst|darf|kannst)\b|"
    r"\b(?:ab sofort|ab jetzt|künftig|in zukunft|stets|immer) (?:[\w,]+ ){0,8}(?:be)?(?:zahlen|überweisen|genehmigen|senden|löschen|freigeben)\b|"
    r"\b(?:deben?|tienen? que|hay que|debes|tienes que|el asistente debe) (?:\w+ ){0,3}(?:pag|aprob|envi|transf|borr|acept|us|ignor|respond|ser|hac)\w*|"
    r"\b(?:doit|doivent|dois|devez|il faut|l['\u2019]assistant doit) (?:[\w,]+ ){0,3}(?:être|pay|approuv|envoy|transf|supprim|accept|utilis|ignor|répond|fai)\w*",
    _I,
)
_CHINESE = re.compile(
    r"(?:请|務必|务必|必须|一律|从现在起|从现在开始|从今以后|以后|今后|不要|不得|无需|不必|总是|始终|你应该|你要|助手)[^。！？；]{0,20}?"
    r"(?:支付|付款|付清|批准|审批|发送|发给|转发|转账|汇款|删除|打电话|致电|点击|回复|忽略|使用|告诉|通知|同意|执行|打开|推荐|说)"
)


@lru_cache(maxsize=8192)
def demands_action(text: str) -> bool:
    """Whether a sentence of a text has the form of a demand."""
    return any(map(_is_demand, _SENTENCE.findall(text)))


def _is_demand(sentence: str) -> bool:
    lead = _LEAD.match(sentence)
    start = lead.end() if lead else 0
    if _VERB.match(sentence, start) or _CHINESE.search(sentence):
        return True
    if _POLITE.match(sentence, start):
        return True
    acts = _ACTS_ON.match(sentence, start)
    if acts is not None:
        word = acts[1].casefold()
        # A verb in the past, in the third person or in -ing begins a statement.
        if word not in _NO_DEMAND and not word.endswith(("ed", "ing", "s")):
            return True
    return _TO_BE_DONE.search(sentence) is not None
