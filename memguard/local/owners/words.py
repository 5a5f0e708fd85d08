# ruff: noqa: E501 - tables of words in several languages
"""The words by which `owners` finds out whose fact a clause is, in five languages.

Hand-made tables: relations with their English name, common first names, pronouns, and the verbs and
states that only a person has. `owners` has the rules.
"""

from dataclasses import dataclass, field


def word_set(text: str) -> frozenset[str]:
    """The words of a text that are separated by white space."""
    return frozenset(text.split())


def _table(text: str) -> dict[str, str]:
    """`wife: frau ehefrau | ...` as a table from each word to the one before the colon."""
    rows = (row.split(":") for row in text.split("|"))
    return {word: row[0].strip() for row in rows for word in row[1].split()}


RELATIONS: dict[str, dict[str, str]] = {
    "en": _table("""
        wife: wife wives wifey | husband: husband husbands hubby | partner: partner spouse |
        girlfriend: girlfriend | boyfriend: boyfriend | fiancee: fiancée fiancee | ex: ex ex-wife
        ex-husband | fiance: fiancé fiance | mother: mother mum mom mama mommy mummy mothers |
        father: father dad papa daddy fathers | parent: parents parent folks | sister: sister
        sisters sis | brother: brother brothers bro | sibling: sibling siblings twin | son: son sons
        | daughter: daughter daughters | child: child children kid kids toddler eldest youngest twins |
        baby: baby babies newborn | grandmother: grandmother grandma granny nana gran |
        grandfather: grandfather grandpa granddad grandad | grandparent: grandparents grandparent |
        grandson: grandson grandsons | granddaughter: granddaughter granddaughters |
        grandchild: grandchild grandchildren grandkids | aunt: aunt auntie aunts | uncle: uncle
        uncles | cousin: cousin cousins | niece: niece nieces | nephew: nephew nephews |
        mother-in-law: mother-in-law | father-in-law: father-in-law | sister-in-law: sister-in-law |
        brother-in-law: brother-in-law | son-in-law: son-in-law | in-law: in-laws |
        daughter-in-law: daughter-in-law | stepmother: stepmother stepmom | stepfather: stepfather
        stepdad | stepson: stepson | stepdaughter: stepdaughter | stepbrother: stepbrother |
        stepsister: stepsister | godmother: godmother | godfather: godfather | godson: godson |
        goddaughter: goddaughter | friend: friend friends buddy mate pal bestie |
        colleague: colleague colleagues coworker coworkers co-worker co-workers workmate teammate
        teammates | boss: boss supervisor | manager: manager | neighbour: neighbour neighbours
        neighbor neighbors | roommate: roommate roommates flatmate flatmates housemate housemates |
        guy: guy guys bloke dude | man: man gentleman | woman: woman | lady: lady ladies | girl: girl
        girls | boy: boy boys lad | landlord: landlord landlady | tenant: tenant tenants | doctor: doctor gp physician |
        dentist: dentist | optician: optician | cleaner: cleaner | mechanic: mechanic | therapist: therapist physiotherapist physio shrink | teacher: teacher teachers
        professor tutor | coach: coach trainer | client: client clients customer customers |
        student: student students pupil pupils | classmate: classmate classmates | intern: intern
        trainee apprentice | assistant: secretary | nanny: nanny babysitter | nurse: nurse |
        lawyer: lawyer | accountant: accountant | guest: guest guests | relative: relative relatives
        | family: family | dog: dog dogs puppy pup | cat: cat cats kitten kitty | horse: horse pony
        | pet: pet pets | rabbit: rabbit bunny | hamster: hamster | parrot: parrot
    """),
    "de": _table("""
        wife: frau ehefrau | husband: mann ehemann | partner: partner partnerin lebensgefährte
        lebensgefährtin | girlfriend: lebensfreundin | fiancee: verlobte | fiance: verlobter |
        mother: mutter mama mutti | father: vater papa vati | parent: eltern elternteil |
        sister: schwester schwestern | brother: bruder brüder | sibling: geschwister zwilling |
        son: sohn söhne | daughter: tochter töchter | child: kind kinder | baby: baby |
        grandmother: oma großmutter | grandfather: opa großvater | grandparent: großeltern |
        grandson: enkel | granddaughter: enkelin | aunt: tante großtante | godmother: patentante patin |
        godfather: patenonkel pate | uncle: onkel | cousin: cousin
        cousine | niece: nichte | nephew: neffe | mother-in-law: schwiegermutter |
        father-in-law: schwiegervater | sister-in-law: schwägerin | brother-in-law: schwager |
        in-law: schwiegereltern | friend: freund freundin freunde freundinnen kumpel |
        colleague: kollege kollegin kollegen kolleginnen arbeitskollege arbeitskollegin |
        boss: chef chefin vorgesetzter | neighbour: nachbar nachbarin nachbarn |
        roommate: mitbewohner mitbewohnerin | landlord: vermieter vermieterin | doctor: arzt ärztin
        hausarzt hausärztin | dentist: zahnarzt zahnärztin | teacher: lehrer lehrerin |
        coach: trainer trainerin | client: kunde kundin kunden | student: schüler schülerin |
        family: familie | dog: hund hündin | cat: katze kater | horse: pferd | pet: haustier
    """),
    "es": _table("""
        wife: esposa mujer | husband: esposo marido | partner: pareja | girlfriend: novia |
        boyfriend: novio | fiancee: prometida | fiance: prometido | mother: madre mamá | father:
        padre papá | parent: padres | sister: hermana hermanas hermanita | brother: hermano
        hermanito | sibling: hermanos mellizos | son: hijo | daughter: hija hijas | child: hijos
        niños peques | baby: bebé | grandmother: abuela | grandfather: abuelo | grandparent: abuelos
        | grandson: nieto | granddaughter: nieta | grandchild: nietos | aunt: tía | uncle: tío |
        cousin: primo prima primos | niece: sobrina | nephew: sobrino | mother-in-law: suegra |
        father-in-law: suegro | in-law: suegros | sister-in-law: cuñada | brother-in-law: cuñado |
        friend: amigo amiga amigos amigas | colleague: colega compañero compañera compañeros |
        boss: jefe jefa | neighbour: vecino vecina vecinos | landlord: casero casera | doctor:
        médico médica doctor doctora | dentist: dentista | teacher: profesor profesora maestra |
        client: cliente clienta | student: alumno alumna | family: familia | dog: perro perra
        perrita perrito | cat: gato gata | horse: caballo yegua | pet: mascota
    """),
    "fr": _table("""
        wife: femme épouse | husband: mari époux | partner: compagnon compagne conjoint conjointe |
        girlfriend: copine | boyfriend: copain | fiancee: fiancée | fiance: fiancé | mother: mère
        maman | father: père papa | parent: parents | sister: sœur soeur sœurs soeurs | brother:
        frère frères | sibling: jumeau jumelle | son: fils | daughter: fille filles | child: enfant
        enfants gosses | baby: bébé | grandmother: grand-mère mamie | grandfather: grand-père papi |
        grandparent: grands-parents | grandson: petit-fils | granddaughter: petite-fille | aunt:
        tante | uncle: oncle | cousin: cousin cousine | niece: nièce | nephew: neveu |
        mother-in-law: belle-mère | father-in-law: beau-père | sister-in-law: belle-sœur belle-soeur
        | brother-in-law: beau-frère | in-law: beaux-parents | friend: ami amie amis amies pote |
        colleague: collègue collègues | boss: patron patronne chef cheffe | neighbour: voisin
        voisine voisins | roommate: colocataire | landlord: propriétaire proprio | doctor: médecin
        docteur | dentist: dentiste | teacher: professeur prof institutrice | client: client cliente
        | family: famille | dog: chien chienne | cat: chat chatte | horse: cheval | pet: animal
    """),
    "zh": _table("""
        wife: 妻子 老婆 太太 媳妇 爱人 | husband: 丈夫 老公 先生 | girlfriend: 女朋友 女友 |
        boyfriend: 男朋友 男友 | fiancee: 未婚妻 | fiance: 未婚夫 | mother: 妈妈 母亲 妈 | father:
        爸爸 父亲 爸 | parent: 父母 爸妈 | sister: 姐姐 妹妹 姐 妹 | brother: 哥哥 弟弟 哥 弟 | son:
        儿子 | daughter: 女儿 | child: 孩子 小孩 | baby: 宝宝 | grandmother: 奶奶 外婆 姥姥 祖母 |
        grandfather: 爷爷 外公 姥爷 祖父 | grandson: 孙子 | granddaughter: 孙女 | aunt: 阿姨 姑姑 姨妈
        舅妈 婶婶 | uncle: 叔叔 舅舅 伯伯 姑父 | cousin: 表哥 表弟 表姐 表妹 堂哥 堂弟 堂姐 堂妹 |
        niece: 侄女 外甥女 | nephew: 侄子 外甥 | mother-in-law: 岳母 婆婆 | father-in-law: 岳父 公公 |
        friend: 朋友 闺蜜 | colleague: 同事 | boss: 老板 上司 领导 | neighbour: 邻居 | roommate: 室友 |
        landlord: 房东 | doctor: 医生 大夫 | teacher: 老师 | client: 客户 | student: 学生 | classmate:
        同学 | family: 家人 | dog: 狗 小狗 | cat: 猫 小猫 | partner: 对象 伴侣
    """),
}
"""Nouns of relations to a person, by language, with the English name used in owners."""

BARE = word_set("mum mom dad grandma grandpa granny daddy mummy mama papa oma opa maman mamá papá")
"""Relations that need no possessive: `Mum is a nurse` is about the speaker's mother."""

FEMALE = word_set("""
    wife girlfriend fiancee mother sister daughter grandmother granddaughter aunt niece
    mother-in-law sister-in-law daughter-in-law stepmother stepdaughter stepsister godmother
    goddaughter
""")
"""Relations that `she` can mean, and `he` cannot."""

MALE = word_set("""
    husband boyfriend fiance father brother son grandfather grandson uncle nephew father-in-law
    brother-in-law son-in-law stepfather stepson stepbrother godfather godson
""")
"""Relations that `he` can mean, and `she` cannot."""

FEMALE_NAMES = word_set("""
    ada adele agnes agnieszka aisha akiko alba alejandra alexandra alice alicia alina amanda amelia
    amelie amina amira amy ana anastasia andrea angela anita anja anna anne annika antonia anya
    asha astrid audrey aurelie ava ayesha barbara beatrice beatriz bella berta bettina bianca
    birgit brenda bridget camila camille carla carmen carol caroline cassandra catherine cecilia
    celine charlotte chiara chloe christina christine cindy claire clara claudia clemence colette
    concha cristina daniela deborah delphine denise diana dolores donna dora doris dorothea edith
    elena eleni elif elisa elisabeth elise eliza elizabeth ella ellen elodie elsa emilia emily emma
    erika esme esra esther eva eve evelyn fatima fatma felicia fernanda fiona florence franziska
    frieda gabriela gabriele gemma giulia gisela gloria greta hana hannah hanna heather heidi helen
    helena helga hilda ida ilse imani inez ines ingrid irene irina iris isabel isabella isabelle
    ivana jana jane janet jasmine jean jenna jennifer jenny jessica jill joana joanna johanna joyce
    juana judith julia julie juliette karen karin kate katharina katherine kathrin katie katja kayla
    keiko kelly kerstin kim klara kristina lara laura lea leah leila lena leonie leticia leyla lidia
    lilian lily linda lisa liv livia lola lorena lotte louise lucia lucie lucy ludmila luisa luise
    luna lydia lynn madeleine magda maja manon mara marcela margaret margarita margot maria mariam
    mariana marie marina marion marisol marlene marta martha martina mary mathilde maya megan mei
    melanie melissa mercedes mia michelle mila milena mina miriam mira molly monica monika nadia
    nadine nancy naomi natalia natalie natasha nicole nina noemi nora olga olivia paola patricia
    paula paulina penelope petra phoebe pia pilar priya rachel rania rebecca regina renate renee
    rita roberta romy rosa rosalie rosario rose rosie ruth sabine sabrina sally samira sandra sara
    sarah selma shirin silvia simone sofia sofie sonia sonja sophia sophie stella stephanie susan
    susanne svenja svetlana sylvie tamara tania tanja tara tatiana teresa tessa theresa thea tina
    ulrike ursula ute valentina valerie vanessa vera veronica victoria viktoria violeta wendy xenia
    yara yasmin yolanda yuki yvonne zainab zara zeynep zoe zofia
""")
"""Common first names of women."""

MALE_NAMES = word_set("""
    aaron abdul abel adam adrian ahmed alan albert aldo alejandro alex alexander alfred ali alvaro
    amir anders andreas andrew andre andrei angelo anton antonio antoine arjun armand arnaud arthur
    artur axel bastian ben benjamin bernard bernd bert björn bob boris brad brandon brian bruno
    bryan callum carl carlos cedric cesar charles chen chris christian christoph claude colin conor
    craig cyril damian damien dan daniel dario dave david denis dennis derek detlef diego dieter
    dimitri dirk dmitri dominic dominik doug duncan dylan edgar eduardo edward egon elias elliot
    emil emilio emmanuel enrico enrique eric erik ernesto esteban ethan etienne eugene fabian fabio
    farid felipe felix ferdinand fernando filip finn florian francesco francis francisco franck
    franz fred frederic friedrich fritz gabriel gareth gary gavin george georg gerald gerard gerd
    gilbert giorgio giovanni gonzalo greg gregor guido guillaume gustav guy hamza hannes hans harald
    harold harry hassan hector heinz helmut hendrik henri henrik henry herbert hiro holger horst
    hugo hussein ian ibrahim igor ignacio ivan jack jacob jacques jakob jakub jamal james jan
    jannik jason javier jens jeremy jerome jesse jesus jim joachim joao joe joel johan johannes john
    jon jonas jonathan jordi jorge jörg jose josef joseph josh joshua juan jules julian julien julio
    jun jürgen justin kai karim karl karsten keith ken kenji kevin khalid kilian klaus kofi konrad
    kurt kyle lars laurent lee leif leo leon leonardo liam lorenz lorenzo louis luc luca lucas ludwig
    luigi luis lukas luke maik malik malte manfred manuel marc marcel marcelo marco marcos marek
    mario markus martin marvin mateo matt matteo matthew matthias mats maurice max maxim maximilian
    mehmet michael michel miguel mike mikhail milan milo mirko mohamed mohammed moritz mustafa
    nathan neil nick nico nicolas niklas niko nikolai nils noah norbert oleg oliver olivier omar
    oscar oskar otto pablo paolo pascal patrick paul pavel pedro per pete peter phil philip philipp
    philippe pierre piotr rafael rahul ralf ramon raphael rashid raul ravi ray raymond rene ricardo
    richard rico robert roberto robin rodrigo roger roland rolf roman ron ronald rudi rudolf ruben
    russell ryan salvador sam samir samuel sandro santiago scott sean sebastian sergei sergio simon
    stefan stefano stephan stephane stephen steve steven stuart sven tariq ted theo theodor thibault
    thilo thomas thorsten tiago till tim timo timothy tobias tod todd tom tomas tomasz tommy tony
    torsten tristan tyler udo ulrich umar uwe valentin vicente victor viktor vincent vladimir volker
    walter werner wilhelm will william wolfgang xavier yann yannick yasin youssef yusuf yves zoltan
""")
"""Common first names of men."""

OTHER_NAMES = word_set("""
    alexis ariel avery bao casey charlie dakota drew elliott francois jamie jordan jules kelly
    kiran leslie maxime morgan noor pat quinn riley robin rowan sacha sasha shannon sidney skyler
    stevie taylor terry toni wei xiaoming yan yu ming hua jing lin nikita andrea jean chris sandy
""")
"""First names of both."""

NAMES = FEMALE_NAMES | MALE_NAMES | OTHER_NAMES
"""All first names."""

# Names that are words too, or months and places: alone they are no evidence of a person.
NAME_AND_WORD = word_set(
    "rose iris ivy will mark grace hope faith joy bill rich violet luna may april june rosario "
    "mercedes florence charlotte jordan guy per till rosie ray pat drew art frank jean max sandy "
    "see yu yan lin hua wei ming bao kim lee sam lily eve dakota sidney concha pilar dolores udo "
    "alba don gene jack robin iran paris victoria sofia olivia milan regina austin"
)
"""Of these, more than the word itself must say that a person is meant."""

HUMAN = word_set("""
    lives lived works worked studies studied says said told tells thinks thought loves loved likes
    liked hates hated prefers preferred wants wanted enjoys enjoyed speaks spoke moved married eats
    ate drinks drank plays played drives drove teaches taught learned learns reads cooks cooked
    travels travelled traveled hopes believes knows knew met bought sold owns lost graduated
    retired smokes smoked quit joined earned feels felt asked asks called calls invited visited
    visits volunteers swims runs ran collects wrote writes paints sings dances adopted dislikes
    adores prays wears needs avoids plans planned went goes came took takes gave borrowed sleeps
    allergic vegan vegetarian diabetic pregnant divorced engaged retired married born afraid
    widowed intolerant coeliac celiac lactose asthmatic turns turned birthday hobby years fluent
    fan obsessed tired happy sad worried nervous deaf blind ill dyslexic
    wohnt arbeitet lebt studiert sagt sagte meint liebt mag isst trinkt spielt hasst heißt glaubt
    fährt lernt möchte geboren verheiratet allergisch vegetarier vegetarierin veganer veganerin
    schwanger geschieden jahre hat zog kauft kocht reist raucht schwimmt läuft spricht
    vive trabaja estudia dice dijo come bebe juega odia prefiere habla quiere cree nació alérgico
    alérgica vegetariana vegetariano vegana vegano casado casada embarazada años tiene compró toca
    habite travaille étudie dit mange boit joue adore déteste préfère parle veut croit allergique
    végétarien végétarienne végan végane marié mariée enceinte ans né née aime vit
""")
"""Verbs and states of which, after a capitalised word, the word is probably a person's name."""

OCCUPATIONS = word_set("""
    teacher nurse doctor engineer lawyer baker carpenter plumber electrician chef cook waiter
    waitress dentist surgeon pilot driver student professor programmer developer designer writer
    author journalist musician singer painter farmer firefighter accountant architect librarian
    mechanic gardener photographer scientist researcher manager consultant pharmacist vet
    paramedic translator tailor barber hairdresser therapist psychologist officer soldier actor
    actress retiree salesperson cashier secretary banker analyst midwife social vegetarian vegan
""")
"""After `is a`, the subject is a person."""


@dataclass(frozen=True)
class WordClasses:
    """The closed word classes of one language."""

    first: frozenset[str]
    """First person, as a subject."""
    third: dict[str, str]
    """Third person, with `m`, `f` or `p` for plural, `x` for any."""
    second: frozenset[str]
    """Second person, as a subject."""
    mine: frozenset[str]
    """Possessives of the first person."""
    theirs: dict[str, str]
    """Possessives of the third person, with the same letters."""
    yours: frozenset[str]
    """Possessives of the second person."""
    articles: frozenset[str]
    """Articles and quantifiers before a noun that may be a subject."""
    breaks: frozenset[str]
    """Conjunctions, after which a clause may begin."""
    relative: frozenset[str]
    """Relative pronouns."""
    prepositions: frozenset[str]
    """After these no subject begins."""
    auxiliaries: frozenset[str]
    """Finite verbs that often follow a subject."""
    fillers: frozenset[str]
    """Words between a subject and its verb, or before a subject."""
    negations: frozenset[str]
    """Negations."""
    user: frozenset[str]
    """Nouns that mean the user."""
    people: frozenset[str]
    """Pronouns that mean nobody in particular."""
    of: frozenset[str]
    """Between a thing and its owner, as in `a friend of my wife`."""
    dropped: frozenset[str] = field(default_factory=frozenset[str])
    """Verbs of the first person that need no pronoun."""
    me: frozenset[str] = field(default_factory=frozenset[str])
    """First person, not as a subject."""


GRAMMARS: dict[str, WordClasses] = {
    "en": WordClasses(
        first=word_set("i we"),
        third={"he": "m", "she": "f", "they": "p"},
        second=word_set("you u"),
        mine=word_set("my our"),
        theirs={"his": "m", "her": "f", "their": "p"},
        yours=word_set("your"),
        articles=word_set("the a an this that these those both one two three some another"),
        breaks=word_set(
            "and but or while whereas although though because so since when if that then plus yet "
            "whenever unless until before after once where as"
        ),
        relative=word_set("who which whose whom"),
        prepositions=word_set(
            "of with for to from at by in on about like than as into onto over near without "
            "against between around behind beside under after before during through towards via "
            "except unlike"
        ),
        auxiliaries=word_set(
            "is are was were am be has had have does did do will would can could should may might "
            "must isn't aren't wasn't weren't hasn't hadn't haven't doesn't didn't don't won't "
            "wouldn't can't cannot couldn't shouldn't isnt doesnt dont cant didnt got gets gave "
            "goes went said says told thinks used just always never also still only really "
            "usually often recently now currently both all finally once turned turns"
        ),
        fillers=word_set(
            "also too just really always never still only usually often recently now currently "
            "both all finally actually apparently sadly luckily well yes no yeah oh anyway then "
            "again however even maybe probably definitely already ever rarely sometimes "
            "personally honestly hi hey hello please remember that"
        ),
        negations=word_set(
            "not no never none nobody nothing neither nor without cannot isn't aren't wasn't "
            "weren't hasn't hadn't haven't doesn't didn't don't won't wouldn't can't couldn't "
            "shouldn't isnt doesnt dont cant didnt wont hardly barely"
        ),
        user=word_set("user user's users'"),
        people=word_set(
            "everyone everybody people nobody somebody someone anyone anybody most many others"
        ),
        of=word_set("of"),
        me=word_set("me us myself mine ours"),
    ),
    "de": WordClasses(
        first=word_set("ich wir"),
        third={"er": "m", "sie": "x"},
        second=word_set("du ihr"),
        mine=word_set("mein meine unser unsere"),
        theirs={"sein": "m", "seine": "m", "ihr": "f", "ihre": "f"},
        yours=word_set("dein deine euer eure"),
        articles=word_set("der die das ein eine dieser diese dieses beide zwei"),
        breaks=word_set(
            "und aber oder denn sondern während weil obwohl dass wenn als seit nachdem bevor damit "
            "ob doch wobei da"
        ),
        relative=word_set("der die das dessen deren dem den"),
        prepositions=word_set(
            "mit von bei zu zum zur für gegen auf in im an am aus nach über unter vor seit durch "
            "um ohne wie als neben zwischen wegen außer"
        ),
        auxiliaries=word_set(
            "ist sind war waren hat haben hatte hatten wird werden wurde kann können muss darf "
            "will möchte soll mag isst trinkt wohnt lebt arbeitet"
        ),
        fillers=word_set("auch ja nein also nur immer nie noch schon leider gerade jetzt übrigens"),
        negations=word_set("nicht kein keine keinen keinem keiner nie niemals ohne"),
        user=word_set("nutzer nutzerin benutzer benutzerin nutzers benutzers anwender"),
        people=word_set("man jeder jemand niemand alle viele leute"),
        of=word_set("von meines meiner unserer unseres ihres ihrer seines seiner"),
        me=word_set("mich mir uns"),
    ),
    "es": WordClasses(
        first=word_set("yo nosotros nosotras"),
        third={"él": "m", "ella": "f", "ellos": "p", "ellas": "p"},
        second=word_set("tú usted ustedes vosotros"),
        mine=word_set("mi mis nuestro nuestra nuestros nuestras"),
        theirs={"su": "x", "sus": "x"},
        yours=word_set("tu tus vuestro vuestra"),
        articles=word_set("el la los las un una este esta ambos ambas dos"),
        breaks=word_set(
            "y e pero o u porque aunque mientras cuando si sino pues entonces donde ya"
        ),
        relative=word_set("que quien quienes cuyo cuya"),
        prepositions=word_set("de del con para por en sin sobre hasta desde como contra entre"),
        auxiliaries=word_set(
            "es son era eran está están estaba ha han tiene tienen vive trabaja puede fue no le "
            "les se come bebe quiere"
        ),
        fillers=word_set("también tampoco sí no ya siempre nunca solo además ahora pues bueno a"),
        negations=word_set("no nunca jamás sin tampoco ningún ninguna nada nadie"),
        user=word_set("usuario usuaria"),
        people=word_set("todos todo alguien nadie gente muchos uno"),
        of=word_set("de del"),
        dropped=word_set("""
            soy tengo vivo trabajo estoy voy hago quiero puedo prefiero odio amo como bebo estudio
            hablo juego toco llevo sé creo pienso necesito uso conduzco nací viví fui era tuve
            compré trabajé estudié empecé dejé cambié he había vengo salgo pongo digo leo escribo
            corro nado cocino viajo practico suelo colecciono detesto adoro evito tomo conozco
            aprendo enseño busco planeo espero somos tenemos vivimos trabajamos vamos hacemos
            estamos queremos hemos sufro padezco monto canto bailo pinto fumo duermo debo cumplo
            mudé casé gusta encanta llamo duele
        """),
        me=word_set("me nos mí conmigo"),
    ),
    "fr": WordClasses(
        first=word_set("je j' nous moi"),
        third={"il": "m", "elle": "f", "ils": "p", "elles": "p", "lui": "m", "eux": "p"},
        second=word_set("tu vous toi"),
        mine=word_set("mon ma mes notre nos"),
        theirs={"son": "x", "sa": "x", "ses": "x", "leur": "p", "leurs": "p"},
        yours=word_set("ton ta tes votre vos"),
        articles=word_set("le la les un une l' ce cet cette ces deux"),
        breaks=word_set(
            "et mais ou donc car parce quand si alors tandis comme lorsque puis puisque où"
        ),
        relative=word_set("qui dont que qu' lequel laquelle"),
        prepositions=word_set(
            "de d' du des à au aux avec pour par en dans sur sous chez sans contre entre vers "
            "comme depuis"
        ),
        auxiliaries=word_set(
            "est sont était étaient a ont avait avaient va vont peut doit fait ne n' s' habite "
            "travaille mange boit vit"
        ),
        fillers=word_set("aussi oui non toujours jamais encore déjà bon alors eh bien maintenant"),
        negations=word_set("ne n' pas jamais sans aucun aucune rien personne non"),
        user=word_set("utilisateur utilisatrice"),
        people=word_set("on tout quelqu'un personne tous chacun beaucoup gens"),
        of=word_set("de d' du"),
        me=word_set("me m' nous"),
    ),
}
"""The grammar of each language that is written with spaces."""

AGREEMENT: dict[str, tuple[str, ...]] = {
    "en": (
        "me too", "same here", "same for me", "so do i", "so am i", "so have i", "so did i",
        "so can i", "so was i", "neither do i", "neither am i", "neither have i", "neither can i",
        "nor do i", "me neither", "likewise", "ditto", "same with me", "me as well", "as do i",
        "as am i", "mine too", "i too", "i do too", "i am too", "same goes for me", "that makes two",
    ),
    "de": (
        "ich auch", "ich ebenfalls", "mir auch", "mich auch", "geht mir genauso", "bei mir auch",
        "geht mir auch so", "ich genauso", "ebenso", "dito",
    ),
    "es": ("yo también", "a mí también", "yo tampoco", "a mí tampoco", "igual yo", "lo mismo yo"),
    "fr": ("moi aussi", "moi non plus", "pareil pour moi", "moi pareil", "idem", "pareil ici"),
}  # fmt: skip
"""Short answers by which a speaker says the same of themselves."""
