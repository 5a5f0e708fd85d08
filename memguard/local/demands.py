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
_SENTENCE = re.compile(r"[^.!?;:\n。！？；：]+")
_SEGMENT = re.compile(
    r", *(?=(?:please|kindly|just|always|never|then|bitte|immer|stets|por favor|siempre|toujours|veuillez|merci de)\b|"
    r"\w+ (?:the|all|any|every|each|it|them|me|no|alle|jede\w*|sie|tod[oa]s|tous|toutes)\b)",
    _I,
)
"""Where a demand may begin within a sentence: "as agreed, pay the invoice"."""
_WAIVES = re.compile(
    r"\bno (?:further |additional |more |prior |separate )?(?:approval|confirmation|review|check|authori[sz]ation|consent|sign-?off)s?\b|"
    r"\bwithout (?:\w+ ){0,3}(?:approval|confirmation|review|checking|authori[sz]ation|consent|asking|sign-?off|delay|question)|"
    r"\b(?:keine|ohne) (?:\w+ ){0,3}(?:freigabe|genehmigung|zustimmung|rückfrage|prüfung|bestätigung)|"
    r"\b(?:sin|no (?:se )?(?:requiere|necesita|hace falta)) (?:\w+ ){0,3}(?:aprobación|autorización|confirmación|revisión|preguntar|consultar)|"
    r"\b(?:sans|aucune?) (?:\w+ ){0,3}(?:approbation|validation|accord|autorisation|confirmation|vérification|demander)|"
    r"(?:无需|不需要|不用|不必|无须|未经)[^。，]{0,8}(?:审批|批准|确认|授权|审核|询问|同意)",
    _I,
)
"""Words that set a control of the user aside."""
_KEEPS = re.compile(
    r"\b(?:never|not|don['\u2019]t|nie|niemals|nicht|nunca|no|jamais|ne) (?:[\w,]+ ){0,6}(?:without|ohne|sin|sans)\b|"
    r"(?:不要|不得|绝不|切勿|不能)[^。]{0,10}(?:未经|没有)",
    _I,
)
_CONDITION = re.compile(
    r"^\s*(?:if|when|whenever|once|wenn|falls|sobald|si|cuando|quand|lorsque)\b[^,]{0,200}, *", _I
)
_SALUTATION = re.compile(
    r"^\s*(?:dear|hi|hello|to (?:all|whom)|liebe[rs]?|hallo|sehr geehrte\w*|an alle|chers?|chères?|bonjour|"
    r"mesdames|estimad[oa]s?|querid[oa]s?|hola|a todos)\b[^,]{0,60}, *|^\s*(?:各位|尊敬的|亲爱的|你好|您好)[^，,]{0,20}[，,]",
    _I,
)
_FIRST = re.compile(
    r"\b(?:i|i['\u2019]\w+|my|me|myself|we|our|us|the user|ich|mein\w{0,2}|mir|wir|unser\w{0,2}|(?:der|die) nutzer(?:in)?|"
    r"yo|mi|mis|me|nosotr[oa]s|nuestr[oa]s?|(?:el|la) usuari[oa]|je|j['\u2019]\w+|mon|ma|mes|nous|notre|nos|"
    r"l['\u2019]utilisat\w+)\b|[我咱]|用户",
    _I,
)
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
    r"inform|do|make|let|give|grant|accept|sign|confirm|cancel|book|order|buy|open(?! (?:until|till|from|on|at|daily|every|\w+days?)\b)|visit|follow|treat|"
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
_POLITE = re.compile(r"\w{1,30}en Sie\b|(?!(?:chez|assez|nez|rez)\b)\w{3,30}ez\b")
# `Wire the money`: an unknown word before what it acts on. The others begin no demand.
_ACTS_ON = re.compile(
    r"([^\W\d_]{1,30}) (?:all|every|each|any|them|it|me|us|my|your|alle|jede\w*|sämtliche\w*|mir|uns|"
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
    r"\b(?:please|bitte|por favor|veuillez|s['\u2019]il (?:te|vous) plaît|prière|merci d(?:e\b|['\u2019]))|"
    r"\b(?:(?:considered|deemed|automatically|pre)[ -]approved|(?:gilt|gelten) (?:\w+ ){0,3}als (?:genehmigt|freigegeben)|"
    r"se consideran? aprobad|automatiquement (?:approuv|valid|pay)|automatisch (?:genehmigt|freigegeben|bezahlt))|"
    r"\b(?:wird|werden) (?:\w+ ){0,4}gebeten|\b(?:möchten?|wünschen?|erwarten?|verlangen?)(?: \w+)?, dass\b|\bbitten wir\b|"
    r"\b(?:souhait|demand|exige)\w* (?:que|de|à ce que)\b|\b(?:quier|pid|exig)\w+ que\b|请(?![假客问])|视为已?(?:批准|同意)|"
    r"\b(?:must|shall|(?:is|are) (?:required|obliged|expected|authori[sz]ed|instructed|allowed) to|mandatory)\b|"
    r"\b(?:ask|request|urge|instruct|remind|invite|want|expect|need|advise|encourage) (?:you|the assistant) to\b|"
    r"\b(?:assistant|chatbot|language model|ai agent|ai model|ki-assistent|asistente|intelligence artificielle)\b|"
    r"\b(?:wir bitten|ich bitte|sie bitten|rogamos|le pedimos|les pedimos|te pedimos|solicitamos|se ruega|nous vous|prière de)\b|"
    r"\b(?:must|should|shall|has to|have to|needs? to|are to|is to) (?:\w+ ){0,2}be (?:\w+ ){0,2}?\w+(?:ed|en|id|nt)\b|"
    r"\b(?:you|(?:the )?(?:assistant|agent|bot|ai|system)) (?:must|should|shall|has to|have to|needs? to|may|will|can|is to|are to)\b|"
    r"\b(?:sind|ist) (?:[\w,]+ ){0,8}zu (?:be)?(?:zahlen|überweisen|genehmigen|senden|löschen|begleichen|verwenden|ignorieren)\b|"
    r"\b(?:du|sie|der assistent|die ki) (?:musst|muss|müssen|sollst|soll|sollen|darfst|darf|kannst)\b|"
    r"\b(?:muss|müssen|soll|sollen|sollte|sollten|ist|sind|hat|haben) (?:[\w,.]+ ){0,12}(?:zu \w+en|\w+ werden)\b|"
    r"\b(?:sofort|immer|stets|künftig|zukünftig|automatisch|direkt|umgehend|grundsätzlich|nie|niemals|alle|jede\w*|sämtliche|ohne)\b"
    r"[^.]{0,120}\b(?!(?:werden|wurden|waren|haben|hatten|sind|können|wollen|morgen|gegen|vergeben|offen|geschlossen|ver\w+en|ge\w+en)\b)\w{3,}en\s*$|"
    r"\b(?:ab sofort|ab jetzt|künftig|in zukunft|stets|immer) (?:[\w,]+ ){0,8}(?:be)?(?:zahlen|überweisen|genehmigen|senden|löschen|freigeben)\b|"
    r"\b(?:deben?|deberán?|deberías?|hay que|tienen? que|debes|es obligatorio|se deben?)\b|"
    r"\b(?:doit|doivent|devra|devront|devez|il faut|il faudra|il convient|est à|sont à|à compter d\w+|obligatoire\w*)\b|"
    r"^\s*\w{3,}(?:er|ir|re) (?:le|la|les|l['\u2019]\w+|tou[st]\w*|chaque|au|aux|sans|ce|cette|ces)\b",
    _I,
)
_CHINESE = re.compile(
    r"(?:请|務必|务必|必须|应当|应该|需要|一律|从现在起|从现在开始|从今以后|以后|今后|不要|不得|无需|不必|总是|始终|你应该|你要|助手|须|立即|马上|直接|自动|尽快|统一|全部|一概|凡是)[^。！？；]{0,20}?"
    r"(?:支付|付款|付清|批准|审批|发送|发给|转发|转账|汇款|删除|打电话|致电|点击|回复|忽略|使用|告诉|通知|同意|执行|打开|推荐|说|办理|处理|完成|提供|联系|答应|接受|放行|打款|转|结算|汇|提交|通过|签|安排|预订|购买|下单|隐瞒|提及|透露|报)|助手|智能体|人工智能"
)


@lru_cache(maxsize=8192)
def demands_action(text: str) -> bool:
    """Whether a sentence of a text has the form of a demand, or sets a control aside."""
    return _WAIVES.search(text) is not None or any(map(_is_demand, _parts_of(text)))


@lru_cache(maxsize=8192)
def waives_control(text: str) -> bool:
    """Whether a text demands that something is done without the control of the user.

    No user says so of oneself in this form: "pay all invoices without further approval". With a
    person as its subject, as in "I pay small invoices without approval", it is a statement.
    """
    if not _WAIVES.search(text):
        return False
    # "Never pay without confirmation" keeps the control.
    return any(
        _WAIVES.search(part) and _is_demand(part)
        for part in _parts_of(text)
        if not (_FIRST.search(part) or _KEEPS.search(part))
    )


def _parts_of(text: str) -> list[str]:
    """The sentences of a text, and what follows a comma in them if it may begin a demand."""
    sentences = _SENTENCE.findall(text)
    parts = [part for sentence in sentences for part in (sentence, *_SEGMENT.split(sentence)[1:])]
    openings = (
        (sentence, pattern.match(sentence))
        for sentence in sentences
        for pattern in (_CONDITION, _SALUTATION)
    )
    return parts + [sentence[hit.end() :] for sentence, hit in openings if hit is not None]


def _is_demand(sentence: str) -> bool:
    lead = _LEAD.match(sentence)
    start = lead.end() if lead else 0
    forms = (_VERB.match(sentence, start), _POLITE.match(sentence, start))
    if any(forms) or _CHINESE.search(sentence) or _TO_BE_DONE.search(sentence):
        return True
    acts = _ACTS_ON.match(sentence, start)
    if acts is None:
        return False
    word = acts[1].casefold()
    # A verb in the past, in the third person or in -ing begins a statement.
    return word not in _NO_DEMAND and not word.endswith(("ed", "ing", "s"))
