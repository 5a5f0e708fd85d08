"""The words by which text of another author is recognised, in five languages. Pure.

Only forms that introduce, head, close or comment on a pasted text stand here. Every pattern is
matched against one line, or the clause before one colon, of bounded length.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

_MAIL_NOUNS = (
    r"e-?mails?|mails?|letters?|newsletter|brief|schreiben|correos?|correo electrónico|carta|"
    r"courriels?|courrier|lettre|邮件|电邮|电子邮件|来信|信件|封信"
)
_CHAT_NOUNS = (
    r"chat|chats|chat log|conversation|transcript|dialogue|thread|call|interview|meeting notes|"
    r"chatverlauf|gespräch|unterhaltung|protokoll|mitschrift|conversación|transcripción|"
    r"entrevista|transcription|entretien|聊天记录|对话|通话记录|会议记录|采访|记录|录音"
)
_CODE_NOUNS = (
    r"code|script|function|snippet|query|config|config file|json|yaml|skript|funktion|código|"
    r"función|fonction|代码|脚本|函数"
)
_LOG_NOUNS = (
    r"logs?|log file|error|error message|stack ?trace|traceback|output|fehler|fehlermeldung|"
    r"ausgabe|erreur|sortie|salida|registro|日志|报错|错误"
)
_TABLE_NOUNS = r"table|csv|spreadsheet|tabelle|tabla|tableau|表格|数据表"
_TEXT_NOUNS = (
    r"messages?|text messages?|text|texts|sms|whatsapp|note|post|tweet|comment|review|article|"
    r"page|web ?page|paragraph|passage|excerpt|extract|quote|quotation|ticket|notice|notification|"
    r"invoice|contract|clause|advert|ad|listing|job ad|job posting|job description|document|file|"
    r"report|lyrics|poem|story|essay|draft|prompt|reply|answer|announcement|statement|voicemail|"
    r"description|request|instructions|nachricht|nachrichten|artikel|beitrag|kommentar|ausschnitt|"
    r"auszug|absatz|anzeige|rezension|vertrag|dokument|datei|gedicht|geschichte|zitat|antwort|"
    r"entwurf|mitteilung|hinweis|rechnung|aushang|mensajes?|texto|artículo|nota|comentario|reseña|"
    r"anuncio|párrafo|documento|archivo|poema|cuento|cita|respuesta|borrador|aviso|factura|"
    r"contrato|texte|commentaire|avis|annonce|paragraphe|fichier|poème|histoire|citation|réponse|"
    r"brouillon|facture|contrat|extrait|消息|短信|微信|文章|帖子|评论|通知|文本|段落|文件|内容|"
    r"文字|留言|公告|广告|合同|原文"
)
NOUNS: tuple[tuple[str, str], ...] = (
    ("mail", _MAIL_NOUNS),
    ("transcript", _CHAT_NOUNS),
    ("code", _CODE_NOUNS),
    ("log", _LOG_NOUNS),
    ("table", _TABLE_NOUNS),
    ("quotation", _TEXT_NOUNS),
)
"""Nouns for a text, by the kind of passage that they announce."""
_HAN_WORD = re.compile(r"[\u3400-\u9fff]+")
_WORD = re.compile(r"[\w-]+")
_OPTIONAL = re.compile(r".\?")


def _single_words(alternatives: str) -> frozenset[str]:
    """The words of some alternatives, in which `?` makes the character before it optional."""
    words = [word for word in alternatives.split("|") if " " not in word]
    shortened = [_OPTIONAL.sub("", word) for word in words]
    return frozenset(word.replace("?", "") for word in (*words, *shortened))


def _han(*alternatives: str) -> re.Pattern[str]:
    """The Chinese ones of some alternatives, which are written without spaces."""
    return re.compile("|".join(_HAN_WORD.findall("|".join(alternatives))) or "(?!)")


_NOUN_WORDS = tuple((kind, _single_words(nouns), _han(nouns)) for kind, nouns in NOUNS)
_POINTING = _single_words(
    "this|these|following|here|here's|below|diese|dieser|dieses|diesen|diesem|folgende|folgender|"
    "folgendes|folgenden|hier|untenstehende|este|esta|esto|estos|estas|siguiente|siguientes|aquí|"
    "ce|cet|cette|ces|voici|voilà|ci-dessous|suivant|suivante|suivants"
)
_POINTING_ZH = re.compile("[这這]|以下|下面|如下|下列")
_GOT = _single_words(
    "forwarding|forwarded|got|received|get|came|arrived|found|copied|pasted|bekommen|bekam|"
    "erhalten|erhielt|gekriegt|kam|gefunden|kopiert|recibí|recibi|recibido|llegó|llegado|encontré|"
    "copié|reçu|reçois|transfère|leite|weitergeleitet|reenvío|arrivé|trouvé"
)
_GOT_ZH = re.compile("收到|看到|复制")
_FROM = _single_words("from|von|vom|de|du|des|by")
_TOLD = (
    r"writes?|wrote|written|says|said|told|texts|texted|messaged|e-mailed|posted|replied|"
    r"replies|answered|answers|asked|asks|sent|sends|forwarded|forwards|stated|states|reads|"
    r"announced|commented|tweeted|quoted|emailed|emails|"
    r"schreibt|schrieb|geschrieben|sagt|sagte|gesagt|meint|meinte|mailt|mailte|gemailt|geschickt|"
    r"schickt|schickte|gesendet|antwortet|antwortete|geantwortet|fragt|fragte|gefragt|"
    r"weitergeleitet|lautet|"
    r"escribe|escribió|escrito|dice|dijo|dicho|manda|mandó|mandado|envía|envió|enviado|responde|"
    r"respondió|respondido|preguntó|reenvió|reenviado|"
    r"écrit|écrivait|dit|disait|envoie|envoyé|répond|répondu|demande|demandé|transféré|transmis"
)
_TOLD_ZH = r"写道|写信|写|说道|说|回复|回答|发来|发给我|发了|寄来|转发|来信|留言|问"


def _noun_kind(clause: str, words: Sequence[str]) -> str | None:
    return next(
        (
            kind
            for kind, nouns, han in _NOUN_WORDS
            if not nouns.isdisjoint(words) or han.search(clause)
        ),
        None,
    )


_BELOW = _single_words(
    "following|below|here|here's|folgende|folgender|folgendes|folgenden|hier|untenstehende|aquí|"
    "siguiente|siguientes|voici|ci-dessous|suivant|suivante"
)
_BELOW_ZH = re.compile("以下|下面|如下|[这這](?:是|封|条|段|篇|个)")
_PLACED_BELOW = _single_words(
    "below|following|untenstehende|folgende|folgendes|siguiente|ci-dessous|suivant|abajo|unten"
)
_SENT = re.compile(rf"(?<!\w)(?:{_TOLD})(?!\w)", re.IGNORECASE)
_ASKING = re.compile("[?\uff1f]")


def refers_below(paragraph: str) -> str | None:
    """The kind of text that a paragraph without a colon says is below; `None` if it says none.

    "I received the following mail." and "Can you translate this letter?" do, "I love this book."
    does not.
    """
    words = _WORD.findall(paragraph.casefold().replace("\u2019", "'"))
    kind = _noun_kind(paragraph, words)
    if NOT_A_TEXT.search(paragraph):
        return None
    if kind is None:
        # "The committee sent this round, see below."
        sent = _SENT.search(paragraph) is not None and not _PLACED_BELOW.isdisjoint(words)
        return "quotation" if sent else None
    points = not _POINTING.isdisjoint(words) or _POINTING_ZH.search(paragraph) is not None
    below = not _BELOW.isdisjoint(words) or _BELOW_ZH.search(paragraph) is not None
    got = not _GOT.isdisjoint(words) or _GOT_ZH.search(paragraph) is not None
    return kind if below or (points and (got or _ASKING.search(paragraph))) else None


def announced_kind(clause: str) -> str | None:
    """The kind of text that a clause before a colon announces; `None` if it announces none.

    It announces one by a noun with a word that points at it, such as "this mail", by a text that
    somebody got, or by the noun alone: "Karl's mail", "message from Karl".
    """
    # Sets of words: an alternation of as many would be tried at every character.
    words = _WORD.findall(clause.casefold().replace("\u2019", "'"))
    kind = _noun_kind(clause, words)
    points = not _POINTING.isdisjoint(words) or _POINTING_ZH.search(clause) is not None
    got = not _GOT.isdisjoint(words) or _GOT_ZH.search(clause) is not None
    if kind is None:
        return "quotation" if points and got else None
    nouns = frozenset().union(*(nouns for _, nouns, _ in _NOUN_WORDS))
    alone = words[-1:] and words[-1] in nouns and (len(words) == 1 or "'s" in clause[-30:])
    sent = any(word in nouns and after in _FROM for word, after in pairwise(words))
    sent = sent or (words[0] if words else "") in _FROM
    return kind if points or got or alone or sent or _OF_ZH.search(clause) else None


_OF_ZH = re.compile(r"(?:来自|的)[\u3400-\u9fff]{1,4}\s?$")
SAID = re.compile(
    rf"(?<!\w)(?:{_TOLD})(?!\w)[^.!?\n]{{0,50}}$|(?:{_TOLD_ZH})[^\u3002\uff01\uff1f\n]{{0,12}}$",
    re.IGNORECASE,
)
"""A clause before a colon that ends with a verb of saying, and perhaps to whom or when."""
_STOP_NAMES = (
    "My|The|This|That|These|Here|He|She|It|They|We|You|I|A|An|And|But|So|Then|Today|Yesterday|Look|See|Also|"
    "Mein|Meine|Der|Die|Das|Er|Sie|Es|Ich|Wir|Ein|Eine|Hier|Heute|Gestern|Mi|El|La|Los|Las|Un|Una|Ella|"
    "Este|Esta|Esto|Eso|Mira|Lo|Just|Got|From|Von|Als|Below|Now|Me|Mon|Ma|Mes|Le|Les|Il|Elle|Un|Une|Ce|Cet|Cette|Voici|On|Our|Her|His|Their"
)
_CAPITAL = rf"(?!(?:{_STOP_NAMES})\b)[A-Z\u00c0-\u00de][\w'\u2019-]{{1,30}}"
SPEAKER = re.compile(
    rf"(?:^|[,;]\s)\s?(?P<name>{_CAPITAL}(?:\s{_CAPITAL}){{0,2}})\s(?:[\w'\u2019]{{1,12}}\s){{0,4}}?(?:{_TOLD})(?!\w)|"
    rf"(?<!\w)(?:from|von|de|by|来自)\s?(?P<sender>{_CAPITAL}(?:\s{_CAPITAL}){{0,2}})"
)
"""Who speaks in a clause before a colon, if it is somebody with a name."""
_TOLD_WORDS = _single_words(_TOLD)
_TOLD_NEAR_ZH = re.compile(_TOLD_ZH)


def says(clause: str) -> bool:
    """Whether a clause has a verb of saying."""
    # A set of words: an alternation of as many words would be tried at every character.
    words = _WORD.findall(clause.casefold())
    return not _TOLD_WORDS.isdisjoint(words) or _TOLD_NEAR_ZH.search(clause) is not None


BY_USER = re.compile(
    rf"(?<!\w)(?:i|we|i['\u2019]ve|i['\u2019]d|ich|wir|je|nous|yo|nosotros)\s(?!was\s|were\s|"
    rf"got\s|am\s|wurde\s)(?:[\w'\u2019]+\s){{0,5}}?"
    rf"(?:{_TOLD})(?!\w)|(?<!\w)j['\u2019]ai\s(?:[\w'\u2019]+\s){{0,3}}?(?:{_TOLD})(?!\w)|"
    rf"(?:^|[\s\uff0c,\u3002])(?:我|我们)(?:[也都就又还]|经常|总是)?(?:{_TOLD_ZH})",
    re.IGNORECASE,
)
"""The user is the one who speaks: "I told her: ..."."""
WITH_OTHER = re.compile(
    r"(?<!\w)(?:and|but|und|aber|y|pero|et|mais)\s(?:he|she|they|it|er|sie|es|él|ella|il|elle|"
    r"ils)(?!\w)",
    re.IGNORECASE,
)
TASK = re.compile(
    r"^\s?(?:(?:please|pls|bitte|por favor|can you|could you|kannst du|puedes|peux-tu),?\s)?"
    r"(?:(?:translate|summari[sz]e|proofread|paraphrase|rephrase|rewrite|reword|shorten|classify|"
    r"übersetze?|fasse|korrigiere?|kürze|formuliere?|traduce|traducir|resumir|corregir|reescribe|"
    r"traduis|traduisez|traduire|résume|résumez|résumer|corrigez|corriger|reformule[rz]?)(?!\w)"
    r"[^.!?\n]{0,80}|"
    r"(?:correct|analy[sz]e|edit|fix|improve|explain|review|parse|check|verbessere|analysiere|"
    r"erkläre?|prüfe|resume|corrige|analiza|acorta|mejora|explica|revisa|analysez?|raccourcis|"
    r"améliore|explique)\s[^.!?\n]{1,80})$|"
    r"(?:翻译|总结|概括|润色|改写|修改|校对|解释|分析|缩短)[^\u3002\n]{0,20}$",
    re.IGNORECASE,
)
"""A task on a text: what follows the colon is material."""
NOT_A_TEXT = re.compile(
    r"(?<!\w)(?:e-?mail|mail|postal)[\s-](?:address|adresse|account)|mailadresse|"
    r"(?<!\w)my\s(?:bio|cv|profile|r[eé]sum[eé]|facts?|preferences?)(?!\w)|"
    r"(?<!\w)(?:about me|über mich|sobre mí|sur moi|à propos de moi)(?!\w)|关于我|"
    r"^\s?(?:(?:please|also|bitte|por favor|s['\u2019]il te plaît),?\s)?(?:remember|note|save|"
    r"store|"
    r"keep in mind|merke?|notiere?|recuerda|anota|apunta|retiens|souviens|note[rz])(?!\w)|"
    r"记住|记下|(?<!\w)(?:dirección de correo|adresse (?:e-?)?mail)",
    re.IGNORECASE,
)
"""What looks like an announcement and introduces the user's own facts."""

FORWARDED = re.compile(
    r"^\s{0,8}(?:>\s?){0,3}(?:"
    r"[-_*]{2,20}\s{0,3}(?:original message|forwarded message|urspr\u00fcngliche nachricht|"
    r"original-?nachricht|weitergeleitete nachricht|mensaje (?:original|reenviado)|"
    r"message (?:d['\u2019]origine|original|transf\u00e9r\u00e9)|原始邮件|转发的?邮件|转发邮件|"
    r"邮件原件)|"
    r"begin forwarded message|anfang der weitergeleiteten|inicio del mensaje reenviado|"
    r"d\u00e9but du message (?:transf\u00e9r\u00e9|r\u00e9exp\u00e9di\u00e9)|"
    r"以下是转发的?邮件|开始转发)",
    re.IGNORECASE,
)
FORWARD_MARK = re.compile(
    r"^\s{0,8}(?:(?:fwd?|wg|rv|tr)\s?:|转发\s?[:\uff1a])\s{0,4}",
    re.IGNORECASE,
)
WROTE = re.compile(
    r"^\s{0,8}(?:>\s?){0,3}(?:(?:on|am|el|le)\s[^\n]{3,140}(?:wrote|schrieb|escribi\u00f3|"
    r"a \u00e9crit)"
    r"[^\n:]{0,80}|[^\n]{0,120}写道)\s?[:\uff1a]\s{0,4}$",
    re.IGNORECASE,
)
WRITER = re.compile(
    r"(?:^|[,\s])(?P<name>(?:[A-Z\u00c0-\u00de][\w'.-]{0,30}\s){1,4})(?:<[^>\n]{0,80}>\s{0,2})?"
    r"(?:wrote|escribi\u00f3|a \u00e9crit)|"
    r"schrieb\s(?P<german>[A-Z\u00c0-\u00de][\w'. -]{0,60})|"
    r"(?P<chinese>[\u3400-\u9fff]{2,4})\s?(?:<[^>\n]{0,80}>\s?)?写道"
)
"""Who wrote, in a line such as "On 3 May, Karl wrote:"."""
CLAUSE_END = re.compile(r"[.!?\u3002\uff01\uff1f\n]")
HEADERS: tuple[tuple[str, str], ...] = (
    ("from", r"from|von|de|expéditeur|remitente|absender|发件人|寄件人"),
    ("to", r"to|an|para|à|a|empfänger|destinataire|destinatario|收件人"),
    ("copy", r"cc|bcc|kopie|reply-to|抄送"),
    ("subject", r"subject|betreff|asunto|objet|主题|主旨"),
    ("date", r"date|datum|fecha|日期|时间"),
    ("sent", r"sent|gesendet|enviado(?: el)?|envoyé(?: le)?|发送时间|发件时间"),
)
HEADER = re.compile(
    r"^\s{0,8}(?:>\s?){0,3}[*_]{0,2}(?:"
    + "|".join(f"(?P<{name}>{words})" for name, words in HEADERS)
    + r")[*_]{0,2}\s{0,3}[:\uff1a][*_]{0,2}\s{0,4}(?P<value>\S[^\n]{0,300})?",
    re.IGNORECASE,
)

SALUTATION = re.compile(
    r"^\s{0,8}(?:"
    r"(?P<formal>dear|to whom it may concern|sehr geehrte[rs]?|liebe[rs]?|werte[rs]?|"
    r"estimad[oa]s?|querid[oa]s?|apreciad[oa]s?|muy señor(?:es)? míos?|ch[eè]re?s?|"
    r"madame|monsieur|mesdames|尊敬的|亲爱的|敬启者)"
    r"|(?P<plain>hi|hello|hey|good (?:morning|afternoon|evening)|hallo|guten (?:tag|morgen|abend)|"
    r"moin|servus|grüezi|hola|buenos días|buenas(?: tardes)?|bonjour|bonsoir|salut|coucou|"
    r"您好|你好|大家好))"
    r"(?P<name>(?:\s[^\s,:!.\uff0c\uff1a\uff01\u3002?\uff1f]{1,30}){0,6}|"
    r"[^\s,:!.\uff0c\uff1a\uff01\u3002?\uff1f]{0,12})\s?"
    r"(?P<mark>[,:!\uff0c\uff1a\uff01.-]?)\s{0,4}$",
    re.IGNORECASE,
)
ASSISTANT_NAMES = re.compile(
    r"(?<!\w)(?:assistant|claude|chatgpt|gpt|gemini|copilot|ai|bot|siri|alexa|assistent|ki|"
    r"asistente|ia)(?!\w)|助手|机器人",
    re.IGNORECASE,
)
_GREETED = (
    r"(?:mit )?(?:freundlichen?|besten?|herzlichen?|vielen?|liebe[nr]?|schöne[nr]?|sonnigen?)\s"
    r"(?:grüße[n]?|gruß|grüssen?|gruss)(?: aus \w{1,20})?"
)
FORMAL_CLOSING = re.compile(
    r"^\s{0,8}(?:(?:with )?(?:kind(?:est)?|best|warm(?:est)?|many) (?:regards|wishes)|regards|"
    r"all the best|yours (?:sincerely|faithfully|truly)|sincerely(?: yours)?|respectfully|"
    r"(?:best|love|yours)(?=[,!]|\s{0,4}$)|"
    rf"{_GREETED}|hochachtungsvoll|lg|vg|mfg|"
    r"(?:un )?(?:cordial(?:es)? )?saludos?(?: cordiales)?|atentamente|(?:un )?(?:fuerte )?abrazo|"
    r"(?:un )?beso|besos|"
    r"(?:bien )?cordialement|bien à (?:vous|toi)|(?:bien )?sincèrement|(?:très )?amicalement|"
    r"salutations(?: distinguées)?|bises|bisous|meilleures salutations|"
    r"(?:the|your) [\w .&-]{1,30} team|(?:dein|euer|ihr|das) [\w .&-]{1,30}[ -]team|"
    r"(?:el|tu|su) equipo [\w .&-]{1,30}|(?:l['\u2019]|votre )équipe [\w .&-]{1,30}|"
    r"[\u3400-\u9fff]{2,12}团队|unsubscribe[^\n]{0,120}|"
    r"此致|此致敬礼|敬礼|敬上|祝好|祝您?商祺|祝您?工作顺利|顺祝商祺|谨启)"
    r"(?:[,!.\uff0c\u3002\uff01]|"
    r"\s[-\u2013])?(?P<name>(?:\s{1,3}(?-i:[A-Z\u00c0-\u00de\u3400-\u9fff])[^\s,:?!]{0,25}){0,4})[,.!\uff0c\u3002\uff01]?\s{0,4}$",
    re.IGNORECASE,
)
PLAIN_CLOSING = re.compile(
    r"^\s{0,8}(?:(?:many )?thanks(?: (?:again|in advance|a lot|so much))?|thank you(?: very much)?|"
    r"cheers|see you(?: soon)?|danke(?: im voraus)?|vielen dank(?: im voraus)?|bis bald|tschüss|"
    r"(?:muchas )?gracias(?: de antemano)?|hasta (?:pronto|luego)|"
    r"merci(?: (?:d['\u2019]avance|beaucoup|bien))?|à bientôt|谢谢|多谢|期待您?的?回复)"
    r"[,!.\uff0c\u3002\uff01]{0,2}(?P<name>(?:\s{1,3}(?-i:[A-Z\u00c0-\u00de\u3400-\u9fff])[^\s,:?!]{0,25}){0,3})[,.!\uff0c\u3002\uff01]?\s{0,4}$",
    re.IGNORECASE,
)
LETTER_IN_A_LINE = re.compile(
    r"^\s{0,8}(?:dear|sehr geehrte[rs]?|liebe[rs]?|estimad[oa]s?|querid[oa]s?|ch[eè]re?s?|"
    r"尊敬的|亲爱的)[^\n]{8,3000}?(?<=[\s.!?\u3002])(?:(?:kind|best|warm) regards|regards|"
    r"yours \w{4,12}|sincerely|best|"
    r"mit freundlichen grüßen|(?:viele|liebe|beste) grüße|lg|vg|(?:un )?saludos?|atentamente|"
    r"un abrazo|"
    r"cordialement|bien à (?:vous|toi)|amicalement|此致|祝好)[,.!\uff0c]?\s{1,3}"
    r"(?P<name>(?-i:[A-Z\u00c0-\u00de\u3400-\u9fff])[^\s,:?!]{0,25}(?:\s[^\s,:?!]{1,25}){0,2})\s{0,4}$",
    re.IGNORECASE,
)
"""A whole letter in one line."""
DEVICE = re.compile(
    r"^\s{0,8}(?:(?:sent|get outlook) (?:from|for|via) \S[^\n]{0,60}|"
    r"(?:von|mit) (?:meinem|meiner|dem) [^\n]{1,40} (?:gesendet|geschickt)|"
    r"gesendet (?:von|mit) [^\n]{1,60}|enviado (?:desde|con) [^\n]{1,60}|"
    r"envoyé (?:de|depuis|à partir de) [^\n]{1,60}|发自我?的?[^\n]{1,30})\s{0,4}$",
    re.IGNORECASE,
)
FURNITURE = re.compile(
    r"^\s{0,8}(?:p\.? ?s\.?[:.\s]|n\.?b\.?[:.\s]|tel|phone|fon|mobil|fax|https?:|www\.|"
    r"\+?\d[\d /()-]{6,}|"
    r"--|__|\*{3}|confidential|disclaimer|this (?:e-?mail|message) (?:and|is|was|may|contains)|"
    r"diese (?:e-?mail|nachricht) (?:und|ist|enthält|kann)|este (?:correo|mensaje) (?:y|es|puede)|"
    r"ce (?:message|mail|courriel) (?:et|est|peut)|unsubscribe|abmelden|又及|附言)",
    re.IGNORECASE,
)
"""What may follow a signature and is still a part of the mail."""

_ANSWER = r"(?:answer|reply|respond|write back|say|tell (?:him|her|them)|react)"
_ABOUT = r"(?:this|that|it|the|his|her|their|these|those|him|them)(?!\w)"
STRONG_COMMENT = re.compile(
    r"(?:[-\u2013]\s)?(?:so |ok,? |now |also |well,? |and |please |pls )?(?:"
    rf"(?:what|how) (?:should|shall|can|could|would|do|must) (?:i|we) (?:best )?{_ANSWER}|"
    r"what (?:should|shall|do) i (?:make of|think of|do (?:about|with))|"
    r"should i (?:answer|reply|respond|believe|trust|click|pay|accept)|"
    r"(?:can|could|would|will) you (?:please )?(?:help me (?:to )?(?:answer|reply|respond|write|"
    r"understand)|"
    rf"(?:summari[sz]e|translate|shorten|proofread|rewrite|explain|check|answer|fix) {_ABOUT}|"
    r"(?:write|draft) (?:me )?an? (?:\w+ )?(?:answer|reply|response))|"
    rf"(?:summari[sz]e|translate|shorten|proofread|rewrite|explain) {_ABOUT}|"
    r"help me (?:to )?(?:answer|reply|respond|write back|understand)|"
    r"(?:write|draft) (?:me )?(?:an?|the) (?:\w+ )?(?:answer|reply|response)|"
    r"(?:answer|reply to) (?:him|her|them|this|it) (?:for|in|with|that)|"
    r"is (?:this|that|it) (?:a )?(?:spam|scam|phishing|legit\w*|fake|fraud)|"
    r"what (?:does|do|did) (?:this|that|it|he|she|they) (?:mean|want)|"
    r"why (?:does|do|is|did) (?:this|it) (?:\w+ )?(?:not|fail|crash|break|parse|happen)|"
    r"what(?:'s| is) wrong|"
    r"was (?:soll|kann|könnte|muss|sollte|würdest) (?:ich|du|man)\s(?:[\w]+\s){0,4}?(?:antworten|"
    r"schreiben|"
    r"sagen|erwidern)|wie (?:soll|kann|könnte|sollte|würdest) (?:ich|du|man)\s(?:[\w]+\s){0,4}?"
    r"(?:antworten|reagieren|schreiben)|was (?:antworte|schreibe|sage) ich|"
    r"ist das (?:spam|betrug|echt|phishing)|(?:bitte )?(?:fasse?|übersetze?|kürze?|"
    r"korrigiere?) (?:das|es|die|den|diese\w*|mir)|"
    r"hilf mir (?:beim|bei der|zu) (?:antwort\w*|schreib\w*)|was (?:will|meint|bedeutet) (?:er|"
    r"sie|das|es)|"
    r"kannst du (?:mir )?(?:das|die|den|es|diese\w*) (?:[\w]+ ){0,3}?(?:zusammenfassen|"
    r"übersetzen|kürzen|erklären|prüfen)|"
    r"\u00bf?(?:qué|que|cómo|como) (?:le |les )?(?:debo|debería|puedo|podría|"
    r"tengo que)?\s?(?:\w+ )?"
    r"(?:contest|respond)\w*|\u00bf?qué (?:le |les )?(?:digo|escribo|contesto|respondo)|"
    r"\u00bf?es (?:esto )?(?:spam|una estafa|phishing)|(?:por favor,? )?(?:resúme|tradúce|"
    r"corríge|acórta)\w{2,4}|"
    r"(?:por favor,? )?(?:resume|traduce|corrige|acorta) (?:esto|este|esta|el|la)|"
    r"ayúdame a (?:contestar|responder|escribir)|\u00bf?qué (?:significa|quiere decir)|"
    r"\u00bf?(?:puedes|podrías) (?:resumir|traducir|corregir|explicar|ayudarme)|"
    r"(?:que|comment) (?:dois|devrais|puis|pourrais)[- ]je (?:\w+ ){0,2}?(?:répondre|dire|écrire|"
    r"réagir)|"
    r"(?:que|quoi|comment) (?:lui |leur )?répondre|"
    r"qu['\u2019]est-ce que je (?:dois |devrais |peux )?(?:lui |leur )?(?:répond\w*|dis|dire|"
    r"écri\w+)|"
    r"(?:c['\u2019]est|est-ce) (?:du spam|une arnaque|du phishing)|"
    r"(?:peux|pourrais)[- ]tu (?:me )?(?:résumer|traduire|corriger|expliquer|aider)|"
    r"(?:résume|traduis|corrige|raccourcis)[- ](?:le|la|les|moi|ce|cette)|"
    r"aide[- ]moi à (?:répondre|écrire)|"
    r"qu['\u2019]est-ce que ça veut dire|"
    r"我(?:应该|该|要)?(?:怎么|如何)(?:回复|回答|回信|回|答复)|(?:请|帮我|请帮我|麻烦)(?:总结|翻译|回复|修改|润色|概括|解释)|"
    r"这是(?:不是)?(?:垃圾邮件|诈骗|骗局)|(?:怎么|如何)(?:回复|回他|回她)|(?:这|他|她)(?:个)?是什么意思)",
    re.IGNORECASE,
)
"""The beginning of a sentence with which a user comments on a text that was pasted before it."""
WEAK_COMMENT = re.compile(
    r"(?:so |ok,? |and |well,? |please |pls )?(?:what (?:do|would) you (?:think|say|make)|"
    r"any (?:ideas?|thoughts|advice)|"
    r"thoughts\?|opinions?\?|(?:can|could|would) you |what now|what(?:'s| is) (?:this|that)|"
    r"what should i do|how do i |thank(?:s| you)[.!]?\s?$|was (?:meinst|denkst|hältst|soll ich)|"
    r"(?:kannst|könntest|würdest) du |"
    r"\u00bf?qué (?:opinas|piensas|te parece|hago)|\u00bf?(?:puedes|podrías) |"
    r"qu['\u2019]en penses|qu['\u2019]est-ce que tu|(?:peux|pourrais)[- ]tu |que (?:faire|"
    r"dois-je faire)|"
    r"你(?:怎么看|觉得|认为)|怎么办|(?:能|可以)(?:帮我|不能)|请问)",
    re.IGNORECASE,
)
"""The beginning of a last paragraph that a user may have added; a mail may have it as well."""
SENTENCE_START = re.compile(
    r"(?:(?<=[.!?\u2026\"\u201d)] )|(?<=[\u3002\uff01\uff1f\u201d\n]))(?=\S)"
)
