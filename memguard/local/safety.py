# ruff: noqa: E501, RUF001 - tables of words in many scripts
"""Whether a text mentions an allergy, an illness, a medication, a pregnancy or a disability.

The cues are data: one table per language, written by hand in the words that people use of
themselves. They are compared in the normal form of `memguard.normal_form`, so that hidden and
look-alike characters conceal none. They lean towards safety: a memory wrongly taken for a safety
constraint costs a line of context, and a missed one may cost more. `python -m
benchmarks.safety_cues` measures them per language.

Entries of a table are separated by `|` or a line break:

* `stem` matches at the beginning of a word;
* `*stem` matches anywhere, for scripts without spaces and for prefixes that are written together;
* `stem => pattern` is a regular expression, tried only where the stem occurs.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice

from memguard.normal_form import comparison_form, cue_forms

CUES: dict[str, str] = {
    "en": r"""
        allerg | anaphyla | epipen | epi-pen | adrenaline pen | autoinjector | coeliac | celiac
        intoleran | lactose => (?:can't|cannot|no|without|avoids?|digest) (?:\w+ ){0,2}lactose
        asthma | inhaler | diabet | insulin | epilep | seizure | haemophil | hemophil | bleeding disorder
        medication | medicament | prescri | blood thinner | anticoagul | warfarin | statins | chemo
        antidepress | antipsychotic | beta blocker | dialysis | antibiotic | immunosuppress | steroids
        lithium => \b(?:on|takes?|taking|prescribed) lithium
        pressure => \b(?:blood pressure (?:pill|tablet|med|drug|problem)|(?:high|low) blood pressure)
        hypertensi | pill => \b(?:takes?|taking|on|needs?) (?:[\w'-]+ ){0,4}(?:pills?|tablets)\b
        mg => \btak(?:es?|ing) (?:\w+ )?\d{1,5} ?mg | *sleeping pill | *heart pill
        medicine => \b(?:takes?|taking|on|needs?|his|her|my|the) (?:[\w'-]+ ){0,3}medicines?\b(?! (?:at|degree))
        meds => \b(?:on|takes?|taking|off|my|her|his) (?:\w+ ){0,2}meds\b
        hives => \b(?:gets?|got|in|has|have) hives\b | *breaks out in | *breaks me out
        swell => \b(?:throat|tongue|face|lips?|eyes?)\b.{0,20}\bswells?
        throat => \bthroat (?:closes|tightens)
        react => \breact(?:s|ed)? (?:badly|severely|violently) to
        sick => \b(?:makes?|made) (?:me|him|her|them|the user) (?:\w+ )?(?:sick|ill)\b
        eat => \b(?:must|may|can|should)(?: ?not|n't|'t| never) (?:ever )?(?:eat|drink|be given|be served)\b
        eat => \b(?:not|never|isn't) (?:allowed|supposed) to (?:eat|drink|take)
        touch => \b(?:must|may|can)(?: ?not|n't|'t| never) (?:eat, )?touch\b | can't have | cannot have | must avoid
        doctor => \bdoctor\w*\b.{0,40}\b(?:forb\w+|ban\w+|not to|to avoid|off|told .{0,20} stop)\b
        penicillin => \b(?:no|react\w*|avoid\w*|to) (?:\w+ ){0,3}penicillin
        surgery => \b(?:had|has|having|after|from|for|needs?|scheduled|recover\w+) (?:[\w'-]+ ){0,5}(?:surgery|operation)
        operation => \b(?:had|having|recover\w+ from|awaits|after) (?:(?:an?|the|his|her|my|heart|knee|hip|eye|back|brain) ){1,2}operation
        operated => \boperated on | transplant | pregnan | trimester | breastfeed | breast-feed | miscarr
        expecting => \bexpecting (?:a|her|their|our|my) (?:\w+ )?(?:baby|child|twins)
        weeks => \bweeks (?:along|pregnant)\b | due date
        wheelchair | blind => \bblind\b | *colour-blind | *color-blind | *colour blind | *color blind
        low vision | visually impaired | partially sighted | screen reader | screenreader | deaf => \bdeaf\b
        hearing aid | hearing loss | hard of hearing | hearing impair | cochlear | sign language | braille
        dyslexi | pacemaker | mobility aid | mobility issue | crutches | prosthe | amput | guide dog
        stairs => \b(?:can't|cannot|can not|unable to) (?:\w+ ){0,2}stairs | step-free | service dog
        walk => \b(?:can't|cannot|unable to|hardly) (?:walk|stand for|see well|hear well)
        photosensitiv | flashing lights | strobe light | motion sick | claustrophob | autis
        heart => \bheart (?:condition|disease|failure|attack|problem|murmur)
        stroke => \b(?:had|has had|after|since) (?:an?|his|her|my|the) stroke\b
        kidney => \bkidney (?:disease|failure|problem) | hiv => \bhiv\b
        cancer => \b(?:has|have|had|with|breast|lung|skin|prostate|bowel|survived) cancer
        metformin | sertraline | zoloft | prozac | fluoxetine | xanax | levothyroxine | lisinopril | methotrexate
        atorvastatin | tamoxifen | ritalin | adderall | prednisone | cortisone | stent => \bstents?\b | blood sugar
        rash => \b(?:gets?|got|gives?|gave|in|with|has|have) (?:[\w']+ ){0,3}rash\b
        tolerate => (?:n't|not) (?:\w+ )?tolerate (?:any |all |some )?(?:dairy|gluten|lactose|milk|eggs?|nuts?|peanuts?|wheat|soya?|fish|shellfish|shrimps?|prawns|caffeine|alcohol|salt|grapefruit|sesame|celery|yeast|onions?|strawberr\w+|kiwis?|pollen|latex)\b
        must not => \bmust not (?:have|get|touch|be near|come near) (?:any |all |some )?(?:dairy|gluten|lactose|milk|eggs?|nuts?|peanuts?|wheat|soya?|fish|shellfish|shrimps?|prawns|caffeine|alcohol|salt|grapefruit|sesame|celery|yeast|onions?|strawberr\w+|kiwis?|pollen|latex)\b
        away => \bstay away from (?:any |all |some )?(?:dairy|gluten|lactose|milk|eggs?|nuts?|peanuts?|wheat|soya?|fish|shellfish|shrimps?|prawns|caffeine|alcohol|salt|grapefruit|sesame|celery|yeast|onions?|strawberr\w+|kiwis?|pollen|latex)\b
        allowed => \b(?:not|isn't|aren't) allowed (?:to have )?(?:any |all |some )?(?:dairy|gluten|lactose|milk|eggs?|nuts?|peanuts?|wheat|soya?|fish|shellfish|shrimps?|prawns|caffeine|alcohol|salt|grapefruit|sesame|celery|yeast|onions?|strawberr\w+|kiwis?|pollen|latex)\b
        avoid => \bavoids? (?:any |all |some )?(?:dairy|gluten|lactose|milk|eggs?|nuts?|peanuts?|wheat|soya?|fish|shellfish|shrimps?|prawns|caffeine|alcohol|salt|grapefruit|sesame|celery|yeast|onions?|strawberr\w+|kiwis?|pollen|latex)\b.{0,20}(?:medical|health)
        sick => \bsick (?:from|of eating|after) (?:any |all |some )?(?:dairy|gluten|lactose|milk|eggs?|nuts?|peanuts?|wheat|soya?|fish|shellfish|shrimps?|prawns|caffeine|alcohol|salt|grapefruit|sesame|celery|yeast|onions?|strawberr\w+|kiwis?|pollen|latex)\b
        makes => (?:any |all |some )?(?:dairy|gluten|lactose|milk|eggs?|nuts?|peanuts?|wheat|soya?|fish|shellfish|shrimps?|prawns|caffeine|alcohol|salt|grapefruit|sesame|celery|yeast|onions?|strawberr\w+|kiwis?|pollen|latex)\b makes? \w+ (?:sick|ill|dizzy)\b
        for => (?:any |all |some )?(?:dairy|gluten|lactose|milk|eggs?|nuts?|peanuts?|wheat|soya?|fish|shellfish|shrimps?|prawns|caffeine|alcohol|salt|grapefruit|sesame|celery|yeast|onions?|strawberr\w+|kiwis?|pollen|latex)\b (?:is|are) (?:very |really )?(?:dangerous|deadly|fatal|lethal|poison) | deadly for => \bdeadly for\b
        dangerous => \b(?:is|are) (?:life-threatening|dangerous) (?:for|to) (?:me|him|her|the user)
        faint => \bfaint(?:s|ed|ing)?\b(?! (?:smell|light|hope|line|memory|idea|praise|sound|scent|trace|colou?r)) | dizz
        itch => \b(?:throat|mouth|tongue) itch | reaction => \b(?:severe|allergic|bad) reactions? to
        stairs => \b(?:trouble|difficulty|problems?|struggles?) (?:\w+ ){0,3}stairs
        stairs => \b(?:knees?|hips?|legs?|back) (?:can't|cannot|don't|doesn't|won't) (?:\w+ ){0,2}stairs
        heart => \b(?:bad|weak) heart\b | cholesterol => \bhigh cholesterol | gout => \bgout\b | vertigo => \bvertigo\b
        ibs => \bibs\b | irritable bowel | digest => (?:n't|not) digest | immune system => \bweak(?:ened)? immune system
        stroke => \b(?:from|of) (?:a|the|his|her|my) stroke\b
        hear => \b(?:barely|hardly|can't|cannot) hear\b(?! (?:about|from|you|the|that|of)) | hears => \bhears (?:badly|poorly)
        sensitive => \bsensitive to (?:sul|glut|milk|dairy|lactose|caffeine|nut|nickel|latex|perfume|fragranc|sunlight)
        doctor => \b(?:doctor|gp|cardiologist|dietitian) (?:has )?put (?:me|him|her|them|the user) on | low-sodium | low-salt
        hospital => \b(?:ends?|ended|end) up in (?:the )?hospital
        large print | months => \bmonths along\b | appendix out | cane => \b(?:uses?|with|on) (?:an? )?(?:white )?cane\b
        hospital => \b(?:sends?|puts?|lands?|landed|sent) (?:me|him|her|them|the user) (?:in|to) (?:the )?hospital
        immunocompromi | crohn | colitis | lupus | parkinson | multiple sclerosis | migraine | arrhythmi
        suicid | self-harm | eating disorder | anorexi | bulimi | recovering alcoholic | sober since
        lost => \blost (?:his|her|my|their) (?:hearing|sight|eyesight|vision|leg|arm) | kill => \b(?:could|can|would|will|might) kill (?:me|him|her|them)\b | told => \btold (?:\w+ )?(?:to stop|to avoid|not to) (?:\w+ ){0,3}(?:by|eat|drink)
        hives => \bgives? (?:me|him|her|them|the user) (?:\w+ )?hives | rash => \b(?:gets?|got|an?) rash (?:from|when|after|if)|\bgives? (?:me|him|her|them|the user) an? rash
        liver => \bliver\b.{0,30}\b(?:damag|diseas|fail|problem|condition)|\b(?:damaged|weak|fatty) liver | kidney => \bkidneys?\b.{0,30}\b(?:damag|diseas|fail|problem|condition)|\b(?:one|damaged|weak) kidneys?\b
        stomach ulcer => \b(?:has|have|had|with|from|my|his|her|got|of) (?:\w+ ){0,2}stomach ulcer | hepatitis => \b(?:has|have|had|with|from|my|his|her|got|of) (?:\w+ ){0,2}hepatitis | cirrhosis => \b(?:has|have|had|with|from|my|his|her|got|of) (?:\w+ ){0,2}cirrhosis | osteoporosis => \b(?:has|have|had|with|from|my|his|her|got|of) (?:\w+ ){0,2}osteoporosis | arthritis => \b(?:has|have|had|with|from|my|his|her|got|of) (?:\w+ ){0,2}arthritis | hernia | slipped disc | crohn's | colitis | gout => \b(?:has|have|had|from|with) gout\b
        tore => \btore (?:a|an|my|his|her|their|the) (?:\w+ )?(?:muscle|ligament|meniscus|tendon|acl) | torn => \btorn (?:\w+ )?(?:muscle|ligament|meniscus|tendon|acl) | sprained
        physio => \bphysio\w*\b.{0,40}\b(?:forb\w+|ban\w+|not to|to avoid|against|off) | told to => \b(?:was|were|been|am|is) told to (?:stay away from|avoid|stop eating|stop taking|stop drinking)
        sober => \b(?:years?|months?|been|stay\w*) sober\b | recovering alcoholic | recovering addict
        walks with => \bwalks? with (?:an?|two) (?:\w+ )?(?:frame|stick|cane|walker|crutch) | walking frame | rollator | crutch => \bcrutch(?:es)?\b
        dizzy => \b(?:gets?|feels?|makes? \w+|becomes?) (?:\w+ )?dizzy | palpitations
    """,
    "de": r"""
        *allerg | luft => \bkeine luft\b | stehen => \bnicht lange (?:am stück )?(?:stehen|gehen|laufen) | unverträglich | *unverträglichkeit | anaphyla | zöliakie | laktose | nesselsucht | *ausschlag
        asthma | diabet | zuckerkrank | insulin | epilep | *anfall => \b(?:krampf|epileptische\w*|schlag)\s?anf[aä]ll
        medikament | *tablette | *medizin => \bnimmt (?:\w+ ){0,4}medizin | blutverdünn | blutdruck | lithium => \b(?:nimmt|bekommt) (?:\w+ )?lithium
        antibiotik | antidepress | chemo | bluter => \bbluter\b | cortison | kortison | herzkrank | *herzfehler | herzinfarkt
        darf => \bd(?:arf|ürfen) (?:[\w]+ ){0,4}(?:keine?n?|nie|niemals|nicht) (?:\w+ ){0,4}(?:essen|trinken|nehmen)
        verträgt => \bverträgt (?:\w+ ){0,3}(?:keine?n?|nicht) | vertrage => \bvertrage (?:\w+ ){0,3}(?:keine?n?|nicht)
        schwanger | *stillt => \bstillt\b | *operiert | *operation => \b(?:nach|vor|hatte|hat|seit) (?:\w+ ){0,3}\w*operation
        *transplant | *herzschrittmacher | schrittmacher | rollstuhl | blind => \bblinde?\b | *gehörlos | taub => \btaub\b | schwerhörig
        hörgerät | sehbehindert | *sehschwach | legasthen | *behindert | barrierefrei | krücken | prothese
        treppen => \bkeine treppen | farbenblind | migräne | krebs => \b(?:hat|hatte|an|brust|lungen|haut) ?krebs | bekommt => \bbekommt (?:\w+ ){0,3}(?:quaddeln|atemnot)
        dialyse | lebensgefährlich => \bfür (?:ihn|sie|mich|den nutzer) lebensgefährlich | sieht => \bsieht (?:fast|kaum|nahezu) (?:nichts|gar) | sieht => \bsieht kaum | erwartet ein | schwillt | allergischen schock
        reagier => \breagier\w* .{0,50}(?:herzrasen|ausschlag|atemnot|schwell|übelkeit|juck|krämpf|quaddel) | herzrasen | hautausschlag | ausschlag => \b(?:bekomm|krieg)\w* .{0,30}ausschlag
        leber => leber(?:schaden|krank|zirrhose|entzündung)|\bleber .{0,20}(?:geschädigt|krank) | niere => niere(?:nschaden|nkrank|ninsuff)|\bniere\w? .{0,20}(?:geschädigt|krank)|\bnur eine niere
        magengeschwür | hepatitis | leistenbruch | *bandscheibe | muskelfaserriss | kreuzband => kreuzbandriss|kreuzband .{0,20}gerissen | bänderriss | arthrose | *arthritis => \b(?:hat|habe|haben|mit|wegen|mein\w?|sein\w?|ihr\w?) (?:\w+ ){0,2}arthritis | osteoporose | gicht => \bgicht\b
        untersagt => (?:arzt|ärztin|physio\w*) .{0,50}untersagt | verboten => (?:arzt|ärztin|physio\w*) .{0,50}verboten | trocken => \bseit (?:\w+ ){1,3}trocken\b | alkoholiker => trockene\w? alkoholiker
        rollator | gehstock | gehhilfe | krücken | schwindlig
    """,
    "fr": r"""
        allerg | intoléran | anaphyla | cœliaque | coeliaque | urticaire | asthm | diabét | diabèt | insulin | épilep
        médicament | *comprimé | ordonnance | anticoagul | lithium => \bsous lithium | antibioti | antidépress | chimio | hémophil
        traitement => \btraitement (?:contre|pour)\b | tension => \b(?:hyper|d'hyper)?tension (?:artérielle)? | hypertens | cardiaque
        ne => \bne (?:peut|doit|dois|peux) (?:pas|jamais|plus) (?:\w+ ){0,2}(?:manger|boire|consommer|prendre)
        supporte => \bne supporte pas (?:le gluten|le lactose|l'aspirine|la pénicilline)
        gonfl => \b(?:fai|fon)t (?:\w+ )?gonfler | fauteuil => \ben fauteuil\b(?! d) | gonfle => \b(?:gorge|langue|visage|lèvres)\b.{0,15}gonfl | enceinte => \b(?:est|suis|tombée|femme) enceinte | grossesse | allait
        opér => \b(?:été|est|suis|fait|faire) (?:\w+ )?opérée? | opération => \bopération (?:du|de la|à la|au) | greffe | pacemaker | stimulateur
        fauteuil roulant | aveugle | malvoyant | sourd | malentendant | appareil auditif | dyslexi | béquilles | prothèse | handicap
        daltonien | lecteur d'écran | escaliers => \bne peut pas (?:\w+ ){0,2}escaliers | migraine | cancer => \b(?:a|un|du|son) cancer (?:du|de)?
        dialyse | attend => \battend (?:un|des|son) (?:bébé|enfant|jumeaux) | voit => \bne voit (?:presque|quasiment) (?:plus|rien|pas) | digère => \bne digère pas | choc allergique | gluten => \bsans gluten
        réagi => réagi\w* .{0,50}(?:palpitation|urticaire|éruption|gonfle|œdème) | urticaire | palpitations | éruption => éruption cutanée
        foie => foie .{0,20}(?:abîm|malad|endommag)|maladie .{0,10}foie | rein => reins? .{0,20}(?:abîm|malad|endommag)|insuffisance rénale|un seul rein | ulcère | hépatite | hernie | entorse | déchirure musculaire | arthrose | arthrite | ostéoporose
        interdi => (?:médecin|kiné)\w* .{0,50}interdi\w+ | sobre => (?:ans|mois) .{0,12}sobre | abstinent => \babstinente?\b
        déambulateur | canne => \bavec une canne | béquille | vertige => \b(?:a|ai|des|le) vertiges?
    """,
    "es": r"""
        alerg | alérg | intoleran | anafila | celía | urticaria | ronchas | asma => \basma | asmátic | diabet | diabét | insulin | epilep
        medicament | medicación | pastillas | anticoagul | litio => \btoma (?:\w+ )?litio | antibiótic | antidepres | quimio | hemofíl
        tensión => \b(?:la|presión|tensión) (?:tensión|arterial|alta) | hipertens | presión arterial | marcapasos
        puedo => \bno puedo (?:\w+ ){0,2}(?:comer|beber|tomar|consumir) | debo => \bno debo (?:\w+ ){0,2}(?:comer|beber|tomar|consumir)
        toler => \bno toler[ao]\b | falta el aire => falta el aire
        puede => \bno (?:puede|puedo|debe|debo) (?:\w+ ){0,2}(?:comer|beber|tomar|consumir) | nunca => \bnunca (?:puede|debe|puedo) (?:comer|beber|tomar)
        hincha => \b(?:garganta|lengua|cara|labios)\b.{0,15}hincha | hincha => hincha la (?:garganta|lengua|cara)
        embaraz | embarazada | *lactancia | amamant | operad => \b(?:fue|fui|han?|he|recién) (?:\w+ )?operad | operación => \boperación (?:de|del) (?:corazón|rodilla|cadera|la)
        operaron => \boperaron (?:de|del) | trasplant | silla de ruedas | cieg => \b(?:es|soy|está) ciega?o? | sord => \b(?:es|soy) sord | audífono
        baja visión | lector de pantalla | disléxi | dislexi | muletas | prótesis | discapaci | daltóni | escaleras => \bno puede (?:\w+ ){0,2}escaleras
        migraña | cáncer => \b(?:tiene|tuvo|con|de) cáncer | cardíac => \b(?:problema|enfermedad|insuficiencia)s? cardíac
        diálisis | espera un beb | espera => \bespera (?:gemelos|mellizos|un hijo) | casi no ve | apenas ve => \bapenas ve\b | sienta => \b(?:le|me) sientan? (?:muy )?mal | choque alérgico | sin gluten
        reacciona => reacciona\w* .{0,50}(?:taquicardia|urticaria|hinchaz|sarpullido|vómito) | urticaria | sarpullido | taquicardia
        hígado => (?:dañ|enferm|graso)\w* .{0,20}hígado|hígado .{0,20}(?:dañad|enferm|graso) | riñ => riñ[oó]n\w* .{0,20}(?:dañad|enferm|fall)|insuficiencia .{0,10}renal|un solo riñón | úlcera | hepatitis | hernia | desgarro => desgarro (?:muscular|en|del) | esguince | artrosis | artritis | osteoporosis
        levantar peso => no (?:puede|puedo|debe|debo) levantar peso | prohib => (?:médic|fisio)\w* .{0,50}prohib\w+ | sobri => (?:años|meses) sobri[oa]|llev\w+ .{0,20}sobri[oa]
        bastón => \bcon (?:un )?bastón | andador | muletas | marea => \bse marea|me mareo
    """,
    "ru": r"""
        *аллерг | непереносим | анафил | целиаки | крапивниц | астм | *диабет | инсулин | эпилеп
        лекарств | *таблетк | литий => принимает литий | антибиотик | антидепресс | разжижа | химиотерап | гемофил | гипертон | давлени => (?:от|высокое|высоким|для) давлени
        нельзя => нельзя (?:[^\W\d]+ ){0,3}(?:есть|пить|принимать) | никогда => (?:никогда не должен|никогда не должна) (?:есть|пить)
        беремен | кормит грудью | операци => (?:после|перенес\w*|сделали|предстоит) (?:[^\W\d]+ ){0,3}операци | прооперир | пересад | кардиостимулятор
        инвалидн | коляск => (?:на|инвалидной) коляск | слепой => \b(?:он|она|я|пользователь\w*|полностью) слеп(?:ой|ая|а)?\b | незряч | слабовид | глух => \bглух(?:ой|ая|а)?\b(?! (?:к|дереву|лес)) | слухов => слухов\w+ аппарат | дислекс
        костыл | протез | инвалид | дальтон | мигрен | онколог | отек => отекает (?:горло|лицо|язык) | отёк => отёк\w* (?:горло|лицо|горла) | сердечн => сердечн\w+ (?:недостаточ|болезн)
        *диализ | ждет => жд[её]т (?:реб[её]нка|близнецов|двойню) | ждёт => ждёт (?:реб[её]нка|близнецов|двойню) | не видит => почти (?:ничего )?не видит | почти => почти (?:ничего )?не (?:видит|слышит) | отек => отек\w* (?:горл|лиц|язык)
    """,
    "zh": r"""
        *过敏 | *過敏 | *哮喘 | *糖尿病 | *胰岛素 | *癫痫 | *乳糖不耐 | *荨麻疹 | *血友病 | *乳糜泻
        *药 => (?:服|吃|用|打|需要)[^，。]{0,6}药 | *药物 | *降压药 | *高血压 | *抗凝 | *抗生素 | *抗抑郁 | *化疗 | *锂盐 | *碳酸锂 | *处方
        *起疹 | *红疹 | *呼吸困难 | *不能吃 | *不能喝 | *不可以吃 | *绝不能 | *绝对不能 | *忌口 | *怀孕 | *孕妇 | *哺乳 | *手术 | *开刀 | *移植 | *起搏器
        *轮椅 | *輪椅 | *盲人 | *失明 | *视障 | *聋 | *助听器 | *听障 | *读屏 | *手语 | *残疾 | *拐杖 | *假肢 | *色盲 | *心脏病 | *癌 | *偏头痛 | *诵读困难
        *透析 | *休克 | *怀了 | *怀孕 | *几乎看不 | *看不清 | *看不见 | *胃不能 | *麸质
        *荨麻疹 | *起疹 | *皮疹 | *肝病 | *肝炎 | *肝硬化 | *肾病 | *肾衰 | *肾炎 | *胃溃疡 | *疝气 | *椎间盘 | *韧带 | *拉伤 | *戒酒 | *拐杖 | *助行器 | *头晕 | *关节炎 | *骨质疏松 | *痛风 | *心悸
        *医生 => 医生(?:禁止|不让|叮嘱|说)[^。]{0,12}(?:不能|不可以|不要|忌|别)
    """,
    "ja": r"""
        *アレルギー | *アナフィラキシー | *喘息 | *糖尿病 | *インスリン | *てんかん | *不耐 | *蕁麻疹 | *じんましん | *血友病
        *薬 => 薬を(?:飲|服|の|使)|(?:降圧|抗うつ|常備|処方)薬|薬が必要 | *服用 | *血圧 => (?:高血圧|血圧の薬) | *抗生物質 | *抗凝固 | *リチウム => リチウム(?:を(?:飲|服)|剤) | *化学療法
        *食べられない | *食べられません | *食べてはいけ | *食べてはなら | *飲んではいけ | *飲めない体質 | *妊娠 | *授乳 | *手術 | *移植 | *ペースメーカー
        *車椅子 | *車いす | *盲目 | *全盲 | *目が見えな | *視覚障害 | *聴覚障害 | *耳が聞こえな | *補聴器 | *難聴 | *手話 | *読み上げソフト | *障害 | *松葉杖 | *義足 | *色覚 | *心臓病 | *がん => がん(?:の治療|治療|患者|を患|と診断) | *片頭痛 | *失読
        *透析 | *ショックを起こ | *ほとんど目が見え | *ほとんど見えな | *ほとんど聞こえな | *身ごも
    """,
    "ko": r"""
        *알레르기 | *알러지 | *천식 | *당뇨 | *인슐린 | *뇌전증 | *간질 | *유당불내증 | *불내증 | *두드러기 | *아나필락시스 | *혈우병 | *셀리악
        *약을 => (?:[^\s]*약)을 (?:\S+ ){0,2}(?:먹|복용|드시) | *복용 | *혈압약 | *고혈압 | *항생제 | *항우울제 | *혈액 희석제 | *리튬을 복용 | *항암 | *처방
        *먹으면 안 | *먹으면 절대 | *먹어서는 안 | *마시면 안 | *못 먹는 체질 | *임신 | *수유 | *수술 | *이식 | *심박조율기
        *휠체어 | *시각장애 | *시각 장애 | *맹인 | *앞을 못 | *청각장애 | *청각 장애 | *귀가 들리지 | *보청기 | *난청 | *수화 | *화면 낭독 | *스크린 리더 | *장애가 | *목발 | *의족 | *색맹 | *심장병 | *암 => 암(?: 진단|을 앓|에 걸|환자| 치료) | *편두통 | *난독증
        *투석 | *쇼크 | *거의 보이지 | *거의 들리지 | *거의 안 보
    """,
    "ar": r"""
        *حساسية | *تحسس | *يتحسس | *تتحسس | *الربو | *ربو | *السكري | *سكري | *إنسولين | *أنسولين | *انسولين | *الصرع | *صرع | *عدم تحمل | *سيلياك | *شرى
        *دواء | *أدوية | *ادوية | *حبوب => حبوب (?:ال)?(?:ضغط|نوم|منع|قلب|دواء) | *ضغط الدم | *مميع | *مضاد حيوي | *مضادات | *الليثيوم => (?:يتناول|تتناول|أتناول|على) الليثيوم | *كيماوي | *كيميائي => علاج كيميائي
        *لا يجوز => لا يجوز (?:له|لها|لي)? ?أن (?:يأكل|تأكل|آكل) | *لا يستطيع => لا (?:يستطيع|تستطيع|أستطيع) (?:أكل|شرب|تناول|صعود|المشي) | *يجب => يجب (?:ألا|أن لا) (?:يأكل|تأكل|يشرب|تشرب|يتناول|تتناول|آكل) | *ممنوع => ممنوع\w* من (?:أكل|تناول|شرب)
        *حامل => \b(?:ال)?حامل (?:في|منذ|ب)|(?:هي|أنا|زوجت\S+|المستخدمة) حامل | *حبلى | *رضاعة | *ترضع | *عملية جراحية | *جراحة | *عملية => عملية (?:في |قلب|القلب|الركبة|الظهر) | *زراعة => زراعة (?:كلى|كلية|كبد|قلب)
        *كرسي متحرك | *كرسيا متحركا | *كفيف | *مكفوف | *أعمى => \bأعمى\b | *أصم => \bأصم\b | *صماء | *سماعة => سماعة (?:أذن|طبية) | *ضعيف السمع | *ضعف السمع | *ضعف البصر | *قارئ الشاشة | *لغة الإشارة | *إعاقة | *عكاز | *عسر القراءة | *مرض القلب | *القلب => (?:مرض|أمراض|مشاكل) (?:في )?القلب | *السرطان => (?:من|مصاب\w* ب) ?السرطان | *بالسرطان | *منظم ضربات | *الشقيقة | *تنتفخ
        *غسيل الكلى | *تنتظر مولود | *ينتظران مولود | *لا يكاد => لا (?:يكاد|تكاد) (?:يرى|ترى|يسمع|تسمع) | *صدمة تحسسية
    """,
    "hi": r"""
        *एलर्जी | *अलर्जी | *ऐलर्जी | *दमा => दमा (?:है|का|की) | *अस्थमा | *मधुमेह | *डायबिटीज | *डायबिटीज़ | *शुगर => शुगर (?:की|का) (?:दवा|बीमारी|मरीज) | *इंसुलिन | *मिर्गी | *असहिष्णु => (?:लैक्टोज|ग्लूटेन|लैक्टोज़) असहिष्णु | *पित्ती
        *दवा => (?:दवा|दवाई|दवाएं|दवाइयाँ)\S* (?:\S+ ){0,1}(?:ले|खा|चल|पर)|की दवा | *गोलियाँ | *गोली => (?:बीपी|नींद|ब्लड प्रेशर|दिल) की गोली | *रक्तचाप | *ब्लड प्रेशर | *लिथियम => लिथियम (?:पर|ले|की) | *खून पतला | *एंटीबायोटिक | *कीमोथेरेपी
        *नहीं खा सकत | *नहीं पी सकत | *नहीं खाना चाहिए | *खाना मना | *पीना मना | *खाने से मना | *कभी नहीं खा | *परहेज
        *गर्भवती | *प्रेग्नेंट | *स्तनपान | *ऑपरेशन => ऑपरेशन (?:हुआ|हुई|के बाद|होना|होने|कराया) | *सर्जरी | *प्रत्यारोपण | *पेसमेकर
        *व्हीलचेयर | *दृष्टिहीन | *नेत्रहीन | *दृष्टिबाधित | *अंधा => अंधा है | *अंधी => अंधी है | *बहरा => बहरा है | *बहरी => बहरी है | *सुनाई नहीं | *दिखाई नहीं | *श्रवण यंत्र | *कान की मशीन | *स्क्रीन रीडर | *सांकेतिक भाषा | *विकलांग | *दिव्यांग | *बैसाखी | *सीढ़ियाँ नहीं | *डिस्लेक्सिया | *दिल की बीमारी | *हृदय रोग | *कैंसर => कैंसर (?:है|का|से|की) | *माइग्रेन
        *डायलिसिस | *गला सूज | *सूज जात | *बच्चा होने वाला | *ठीक से दिखाई नहीं | *ठीक से सुनाई नहीं
    """,
    "th": r"""
        *แพ้ => แพ้(?!ชนะ|เกม|คดี|แข่ง|การแข่ง|ใจ|ทาง|ให้|พนัน|คู่|แบบ|ท้อง|ตลอด|รอบ|มา|ทีม) | *ภูมิแพ้ | *หอบหืด | *เบาหวาน | *อินซูลิน | *ลมชัก | *ลมพิษ | *ไม่ทนต่อ
        *ยา => (?:กินยา|ทานยา|ใช้ยา|รับประทานยา|ยาลด|ยาละลาย|ยาปฏิชีวนะ|ยาต้าน|ยาแก้|ยานอนหลับ|ยาประจำ|พกยา) | *ความดัน => ความดัน(?:โลหิต|สูง|เลือด) | *ลิเทียม => (?:กิน|ทาน|ยา)ลิเทียม | *เคมีบำบัด
        *ห้ามกิน | *ห้ามดื่ม | *ห้ามทาน | *กินไม่ได้ | *ทานไม่ได้ | *กิน => กิน(?:นม|ไข่|กุ้ง|ถั่ว|แป้ง|ปลา|เนื้อ|หมู)\S{0,8}ไม่ได้ | *ดื่มไม่ได้เพราะ | *ตั้งครรภ์ | *ท้อง => (?:กำลังท้อง|ท้องได้|ตั้งท้อง|แพ้ท้อง) | *ให้นม | *ผ่าตัด | *ปลูกถ่าย | *เครื่องกระตุ้นหัวใจ
        *รถเข็น => (?:ใช้|นั่ง|บน)รถเข็น | *วีลแชร์ | *ตาบอด => ตาบอด(?!เพราะรัก) | *มองไม่เห็น | *หูหนวก | *เครื่องช่วยฟัง | *ไม่ได้ยิน => (?:หู|เขา|เธอ)ไม่ได้ยิน | *หูตึง | *โปรแกรมอ่านหน้าจอ | *ภาษามือ | *พิการ | *ไม้ค้ำ | *ไม้เท้า | *ขาเทียม | *ขึ้นบันไดไม่ | *โรคหัวใจ | *มะเร็ง | *ไมเกรน | *บกพร่อง
        *ฟอกไต | *แล้วช็อก | *ท้องลูก | *มองแทบไม่ | *แทบไม่ได้ยิน | *แล้วบวม
    """,
    "vi": r"""
        dị ứng | không dung nạp | sốc phản vệ | nổi mề đay | mề đay | hen suyễn | hen phế quản | tiểu đường | đái tháo đường | insulin | động kinh
        thuốc => \b(?:uống|dùng|kê|toa|phải) (?:\w+ ){0,3}thuốc | huyết áp | lithium => \b(?:uống|dùng) (?:\w+ )?lithium | kháng sinh | chống đông | trầm cảm | hóa trị | máu khó đông
        không được ăn | không được uống | không thể ăn | không ăn được | cấm ăn | tuyệt đối không => tuyệt đối không (?:được )?(?:ăn|uống) | kiêng => \bkiêng (?:ăn|muối|đường|hoàn toàn|sữa)
        mang thai | có thai | có bầu | cho con bú | phẫu thuật | mổ => \b(?:mới|vừa|ca|bị|sau khi|đã) mổ | ghép => \bghép (?:thận|gan|tim|tủy) | máy tạo nhịp
        xe lăn | khiếm thị | bị mù | mù => \b(?:là người|bị|anh|chị|bạn) mù\b(?! quáng) | khiếm thính | bị điếc | điếc => \bđiếc (?:bẩm|một|hai|tai)|(?:người|bị|tôi) điếc\b | máy trợ thính | trình đọc màn hình | ngôn ngữ ký hiệu | khuyết tật | nạng => \bchống nạng | chân giả | mù màu | chứng khó đọc | bệnh tim | ung thư | đau nửa đầu
        chạy thận | lọc máu | gần như không => gần như không (?:nhìn|nghe) | sưng => \bsưng (?:họng|mặt|môi|lưỡi)
    """,
    "tr": r"""
        alerj | intolerans | hassasiyet => (?:gluten|laktoz|besin) hassasiyet | anafil | kurdeşen | astım | diyabet | şeker hastası | insülin | epilepsi | sara hastası | çölyak
        ilaç => (?:ilaç|ilacı|ilacını|ilaçları) (?:\w+ ){0,2}(?:al|kullan|iç) | ilacı => (?:tansiyon|kalp|uyku|kan|şeker) ilacı | hap => (?:tansiyon|kalp|uyku|doğum kontrol) hap | tansiyon | lityum => lityum (?:al|kullan) | kan sulandır | antibiyotik | antidepres | kemoterapi | hemofili
        yememeli | içmemeli | yiyemez | yiyemiyor | yemesi yasak | yemem yasak | içmesi yasak | asla => asla (?:\w+ ){0,2}(?:yiyemez|yememeli|içmemeli|içemez)
        hamile | gebe => \bgebe(?:lik|yim|dir)?\b | emzir | ameliyat | nakli => (?:böbrek|karaciğer|kalp|ilik) nakli | kalp pili
        tekerlekli sandalye | kör => \bkör\b(?! (?:nokta|randevu|talih)) | görme engelli | az gören | sağır => \bsağır\b(?! (?:sultan|kal)) | işitme engelli | işitme cihazı | ekran okuyucu | işaret dili | engelli => \bengelli (?:\w+ )?(?:rampa|birey|olduğu)|engelliyim | koltuk değneği | protez | renk körü | merdiven => merdiven (?:çıkamaz|çıkamıyor|inemez) | disleksi | kalp hastası | kalp krizi geçir | kanser => kanser(?: tedavi| hastası|i| oldu) | migren
        diyaliz | şişiyor => (?:boğaz|yüz|dil|dudağ)\w* şişi | hiç görmüyor => neredeyse hiç görmüyor | neredeyse hiç => neredeyse hiç (?:görmüyor|duymuyor) | bebek bekliyor
    """,
    "he": r"""
        *אלרגי | *רגישות ל => רגישות ל(?:לקטוז|גלוטן|בוטנים|אגוזים|חלב|פניצילין) | *אנפילק | *אפיפן | *אסתמה | *אסטמה | *סוכרת | *אינסולין | *אפילפסיה | *צליאק | *חרלת | *סרפדת | *אי סבילות
        *תרופ | *כדורים => כדורים (?:נגד|ל) ?(?:לחץ|לב|שינה|הלחץ) | *כדור => (?:לוקח|לוקחת|נוטל|נוטלת) (?:\S+ )?כדור | *לחץ דם | *ליתיום => (?:על|נוטל|נוטלת|לוקח|לוקחת) ליתיום | *מדלל | *אנטיביוטיקה => (?:לוקח|לוקחת|נוטל|על) אנטיביוטיקה | *נוגדי | *כימותרפי | *המופיל
        *אסור => אסור (?:לו|לה|לי|למשתמש\S*|לבן\S*|לבת\S*) (?:\S+ ){0,2}(?:לאכול|לשתות|לקחת) | *לעולם => לעולם לא (?:יאכל|תאכל|לאכול)
        *בהריון | *בהיריון | *מניקה | *ניתוח => (?:אחרי|עבר|עברה|עברתי|לפני|מחלימ\S*|מחלים) (?:\S+ )?(?:ב)?ניתוח | *השתל | *קוצב לב
        *כיסא גלגלים | *כסא גלגלים | *עיוור => (?<!שידוך )עיוור(?:ת)?(?! ל) | *לקוי ראייה | *כבד ראייה | *חירש | *חרש => \b(?:הוא|אני|היא) חרש | *כבד שמיעה | *כבדת שמיעה | *מכשיר שמיעה | *קורא מסך | *שפת הסימנים | *נכות | *קביים | *פרוטז | *עיוור צבעים | *מדרגות => לא (?:יכול|יכולה) (?:\S+ ){0,2}מדרגות | *דיסלקסי | *מחלת לב | *התקף לב => עבר\S* התקף לב | *סרטן => (?:חולה|חולת|מחלים מ|מ)[ ]?סרטן | *מיגרנ
        *דיאליזה | *נפיחות ב | *מצפה לתינוק | *מצפה לתאומים | *כמעט לא => כמעט לא (?:רואה|שומע)
    """,
    "el": r"""
        *αλλεργ | δυσανεξία | αναφυλα | κνίδωση | άσθμα | διαβήτη | διαβητικ | ινσουλίνη | επιληψία | κοιλιοκάκη | κρίσεις επιληψίας
        φάρμακ => (?:παίρν\S+|λαμβάν\S+|χρειάζ\S+) (?:\S+ ){0,3}φάρμακ | *χάπι => (?:παίρν\S+|χάπια?) (?:\S+ ){0,3}(?:χάπι|πίεσ|καρδι) | πίεση => (?:υψηλή|για την|αρτηριακή) πίεση | πίεσης => (?:χάπια|φάρμακα) (?:\S+ )?πίεσης | λίθιο => παίρν\S+ (?:\S+ )?λίθιο | αντιπηκτικ | αντιβίωση | αντικαταθλιπτικ | χημειοθεραπεί | αιμοφιλί | υπέρταση
        να => (?:δεν|μην|ποτέ) (?:πρέπει|επιτρέπεται|μπορεί) (?:\S+ ){0,3}(?:τρώει|φάει|πίνει|πιει) | απαγορεύεται => (?:του|της|μου) απαγορεύεται | φάω => δεν (?:μπορώ|πρέπει) να (?:φάω|πιω)
        έγκυος | εγκυμοσύνη | θηλάζ | εγχείρηση | χειρουργ => χειρουργ(?:ήθηκε|είο|ήθηκα|ικ\S+ επέμβαση) | επέμβαση => (?:έκανε|μετά|επέμβαση) (?:\S+ ){0,3}(?:επέμβαση|καρδι) | μεταμόσχευση | βηματοδότη
        αναπηρικ | αμαξίδιο | τυφλ => \b(?:είναι|είμαι) τυφλ | προβλήματα όρασης | κωφ => \b(?:είναι|είμαι) κωφ | βαρήκο | ακουστικό βαρηκοΐας | ακουστικά βαρηκοΐας | αναγνώστη οθόνης | νοηματική | αναπηρία | πατερίτσες | δυσλεξία | αχρωματοψία | σκάλες => δεν μπορεί (?:\S+ ){0,3}σκάλες | καρδιοπάθεια | καρδιακ => καρδιακ(?:ό|ή|ά) (?:πρόβλημα|ανεπάρκεια|νόσημα) | καρκίνο => (?:έχει|από|με) καρκίνο | ημικρανί | πρήζεται
        αιμοκάθαρση | πρήξιμο => πρήξιμο (?:στο|στη) | *περιμένει => περιμένει (?:δίδυμα|παιδί|μωρό) | σχεδόν δεν => σχεδόν δεν (?:βλέπει|ακούει)
    """,
}
"""The words of safety, by language."""

FIGURATIVE: dict[str, str] = {
    "en": r"""
        allergic to (?:\w+ ){0,2}?(?:mondays?|work|meetings?|mornings?|drama|small talk|commitment|paperwork|excel|spreadsheets?|bureaucracy|nonsense|stupidity|criticism|change|homework|housework|responsibility|clich\w+|buzzwords?|deadlines?|calls|jargon|hype|politics|slides|powerpoint|shopping|football)\b
        blind (?:dates?|spots?|trust|faith|tasting|side|alleys?|luck|auditions?|review|obedience)\b
        double-blind | venetian blind | roller blind | window blind | blind eye | blind to | love is blind | flying blind
        deaf ears? | deaf to | pregnant pause | pregnant with meaning | seizure of (?:the |his |her )?(?:assets|power|property|goods|drugs)
        prescripti?ve | prescribed (?:reading|texts?|format|format) | intoleran\w+ (?:of|towards?) (?:lies|mistakes|injustice|sloppy|noise)
        heart attack (?:when|every time) | stroke of | addicted to | reacts? (?:badly|violently) to (?:criticism|change|feedback|bad news)
        hype is contagious | (?:company|country|market|economy|software|project) (?:\w+ )?surgery | makes? (?:me|him|her|them|the user) sick of
        heart (?:problem|condition) of the (?:matter|engine) | chemo?type | autism spectrum of
    """,
    "de": r"""
        allergisch (?:gegen|auf) (?:\w+ ){0,2}?(?:montage?|arbeit|sitzungen|meetings|bürokratie|kritik|unpünktlichkeit|ausreden|hausarbeit|lügen|small ?talk)\b
        blind date | blinder fleck | blindes vertrauen | blinde wut | blind vor | tauben? ohren | schwanger mit der idee | blutdruck der nation
    """,
    "fr": r"""
        allergique (?:aux?|à la|à l'|à) ?(?:\w+ ){0,2}?(?:lundis?|travail|réunions?|bureaucratie|critique|paperasse|matins?|ménage|hypocrisie)\b
        enceinte acoustique | enceintes? (?:bluetooth|de la ville|connectée) | sourde? (?:aux|à la) | rendez-vous à l'aveugle | confiance aveugle | dégustation à l'aveugle | tension (?:dans|du|de) (?:le|la|l')
    """,
    "es": r"""
        al[eé]rgic[oa] (?:al?|a los|a las|a la) (?:\w+ ){0,2}?(?:lunes|trabajo|reuniones|burocracia|críticas?|madrugones|compromiso|limpieza)\b
        cita a ciegas | fe ciega | confianza ciega | oídos sordos | cata a ciegas | embarazos[oa] | sordo a
    """,
    "ru": r"""
        аллерги[яиюей]+ на (?:[^\W\d]+ ){0,2}?(?:понедельник\w*|работу|совещания|глупость|критику|бюрократию|уборку)
        слеп\w+ (?:вера|доверие|свидани\w*|дегустаци\w*|зон\w*) | беременн\w+ смыслом | глух\w+ (?:лес|стен\w*|удар)
    """,
    "zh": r"对?(?:星期一|周一|加班|开会|上班|工作|批评)过敏 | 盲盒 | 盲目 | 震耳欲聋 | 爱情是盲目的 | 大公司病 | 敏感话题",
    "ja": r"(?:月曜日?|会議|仕事|早起き|恋愛)アレルギー | 盲点 | 手術台のような | 移植(?:する)?コード | 薬味",
    "ko": r"(?:월요일|회의|야근|일|출근) ?(?:알레르기|알러지) | 이식성 | 맹목적",
    "ar": r"حساسية (?:من|تجاه) (?:يوم )?(?:الاثنين|الإثنين|العمل|الاجتماعات|النقد|الروتين) | ثقة عمياء | حب أعمى | الحب أعمى | عملية (?:حسابية|بيع|شراء|تجارية) | حامل (?:الرسالة|اللقب|الكرة|العلم|شهادة|الجائزة) | حساسية الموضوع",
    "hi": r"(?:सोमवार|काम|मीटिंग|मीटिंगों|सुबह) से एलर्जी | अंधा प्यार | प्यार अंधा | अंधविश्वास | सैन्य ऑपरेशन | अंधा धुंध",
    "th": r"แพ้(?:วันจันทร์|งาน|ประชุม|ทางรัก|คนสวย|คนหล่อ) | รักทำให้ตาบอด | ความรักทำให้คนตาบอด | มะเร็งเซลล์ตลก",
    "vi": r"dị ứng với (?:thứ hai|công việc|họp|các cuộc họp|dậy sớm|sự giả dối|deadline) | mù quáng | thuốc lá | thuốc nhuộm | hẹn hò giấu mặt",
    "tr": r"(?:pazartesiye|pazartesilere|işe|toplantılara|toplantıya|eleştiriye|erken kalkmaya|bürokrasiye) (?:karşı )?alerji\w* | kör nokta | kör randevu | gözü kör | sağır sultan | gerilim tansiyon\w* | maçta tansiyon",
    "he": r"אלרגי(?:ת|ה)? ל(?:יום שני|ימי שני|עבודה|ישיבות|ביקורת|בוקר|בירוקרטיה) | פגישה עיוורת | האהבה עיוורת | אהבה עיוורת | אמון עיוור | אמונה עיוורת | ניתוח נתונים",
    "el": r"αλλεργ\S+ (?:στις|στη|στην|στον|στο|στα|με τις) (?:δευτέρες|δευτέρα|δουλειά|συσκέψεις|γραφειοκρατία|κριτική|πρωινό) | τυφλό ραντεβού | τυφλή εμπιστοσύνη | τυφλό σημείο | ο έρωτας είναι τυφλός | η αγάπη είναι τυφλή",
}
"""Expressions in which such a word means something else, by language; they are left out first."""


_ANY_LENGTH = re.compile(r"(?<=[\]wS])[+*]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def entries_of(table: str) -> list[str]:
    """The entries of a table of cues."""
    # A pattern contains `|` only within its brackets, without spaces around it.
    return [entry.strip() for entry in re.split(r"\s\|\s|\n", table) if entry.strip()]


def _fold(pattern: str) -> str:
    """A cue in the normal form of the texts; ASCII stays, because it has the signs of a pattern."""
    folded = _NOT_ASCII.sub(lambda hit: comparison_form(hit[0].casefold()), pattern)
    # A word without an end must not be read to its end again from every place in it.
    return _ANY_LENGTH.sub(lambda hit: "{1,30}" if hit[0] == "+" else "{0,30}", folded)


def compile_cue(entry: str) -> tuple[str, re.Pattern[str]]:
    """The text to look for first, and the pattern."""
    stem, _, pattern = _fold(entry).partition(" => ")
    core = stem.strip().removeprefix("*")
    if pattern:
        return core, re.compile(pattern.strip())
    start = "" if stem.startswith("*") else r"(?<!\w)"
    return core, re.compile(start + re.escape(core))


_Cue = tuple[str, re.Pattern[str]]
_START = 3
"""Characters by which cues are looked up: a text is compared only with cues that can occur in it."""


def _by_start(cues: Iterable[_Cue]) -> dict[str, list[_Cue]]:
    groups: dict[str, list[_Cue]] = {}
    for core, pattern in cues:
        groups.setdefault(core[:_START], []).append((core, pattern))
    return groups


_CUES = _by_start(compile_cue(entry) for table in CUES.values() for entry in entries_of(table))
_SHORT = [cue for start, cues in _CUES.items() if len(start) < _START for cue in cues]
_FIGURATIVE = re.compile(
    "|".join(_fold(entry) for table in FIGURATIVE.values() for entry in entries_of(table))
)


_NEARBY = 60
"""Characters around a cue in which a figure of speech is looked for."""
_MAX_FIGURES = 20
"""Occurrences of a cue that are compared with the figures of speech."""


# Cached, because a read looks at a memory more than once.
@lru_cache(maxsize=8192)
def looks_like_safety(text: str) -> bool:
    """Whether a text mentions an allergy, a medication, a disability or an accessibility need."""
    for form in cue_forms(text):
        starts = {form[index : index + _START] for index in range(len(form))}
        cues = [cue for start in starts & _CUES.keys() for cue in _CUES[start]]
        if any(_is_literal(pattern, form) for core, pattern in (*cues, *_SHORT) if core in form):
            return True
    return False


def _is_literal(pattern: re.Pattern[str], form: str) -> bool:
    """Whether a cue occurs outside of every figure of speech."""
    # Only around the cue: the expressions are many, and a text may be long. One that repeats a
    # figure of speech this often is taken literally.
    for hit in islice(pattern.finditer(form), _MAX_FIGURES):
        nearby = form[max(0, hit.start() - _NEARBY) : hit.end() + _NEARBY]
        if pattern.search(_FIGURATIVE.sub(" ", nearby)):
            return True
    return sum(1 for _ in islice(pattern.finditer(form), _MAX_FIGURES + 1)) > _MAX_FIGURES
