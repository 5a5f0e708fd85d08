# ruff: noqa: E501, RUF001 - tables of words in several scripts
"""The topics that a text touches, by words in English, German, Spanish, French and Chinese.

Cosines of an English model say little about other languages, and nothing across languages; these
tables say a little about both. A word counts by its beginning, or as a whole with a `=`, and a
Chinese word anywhere. Two texts are `apart` if each has a topic and none of them is shared or akin.
"""

import re
from functools import lru_cache

from memguard.local.adjudicator.languages import language_of

TOPICS: dict[str, str] = {
    "food": """
        en: eat =ate eating food meal dinner lunch breakfast supper brunch starter dessert recipe cook bake baking restaurant menu dish cuisine
        pizza sushi curry pasta noodle soup salad cheese bread toast porridge cake chocolat spicy vegan vegetarian pork meat beef
        fish seafood shellfish nut peanut gluten dairy milk sugar cinnamon spice wine beer coffee =tea drink snack fruit banquet picnic barbecue tapas tofu rice
        dish =pub bistro bakery grocer kitchen pistachio =ice cream lactose sesame =egg eggs cilantro garlic onion
        de: =essen =esse =isst koch back restaurant gericht abendessen mittagessen frühstück rezept speise küche käse brot kuchen bäcker sellerie servier fleisch fisch
        erdnuss nüsse milch zucker zimt wein bier kaffee kakao =tee trink obst gemüse scharf vegetarisch
        es: comer como come cena cenar comida almuerzo desayuno receta cocin restaurante plato queso panadería gluten lactosa pastel carne pescado marisc cacahuete nuez
        leche azúcar canela vino cerveza café =té beber fruta verdura picante postre
        fr: mang dîner déjeuner repas recette cuisin plat fromage boulangerie gluten lactose =pain gâteau viande poisson noix arachid lait sucre cannelle =vin bière
        =thé boire fruit légume épicé dessert
        zh: 面包 吃 菜 饭 餐 食 厨 烹 蛋糕 巧克力 面包 奶酪 肉 鱼 海鲜 花生 坚果 牛奶 鸡蛋 糖 肉桂 酒 咖啡 茶 喝 水果 辣 披萨 甜点
    """,
    "travel": """
        en: travel trip holiday vacation flight fly hotel itinerary tour airport luggage suitcase passport visa cruise resort sightsee abroad seat
        weekend beach mountain hik camping hostel train journey destination backpack airline
        de: reise urlaub stadt besichtig flug hotel flughafen koffer strand bergen wander ferien unterkunft zug bahn ausflug
        es: viaj vacacion ciudad vuelo hotel aeropuerto maleta playa montaña =mar tren excursión alojamiento
        fr: voyag vacances avion hôtel aéroport valise plage montagne =train randonn camping séjour
        zh: 旅行 旅游 游览 城市 度假 航班 飞机 酒店 机场 行李 海滩 大海 爬山 火车 景点 签证
    """,
    "work": """
        en: work job career boss office colleague salary project deadline meeting client customer employ interview resume =cv application cover
        profession manager promotion company nurse lawyer teacher accountant engineer report presentation invoice approv business hospital
        de: arbeit beruf =job chef büro kolleg gehalt projekt besprechung kund bewerbung vorstellungsgespräch firma rechnung freigabe buchhalt lebenslauf
        es: trabaj empleo jefe oficina colega sueldo proyecto reunión cliente entrevista empresa factura currículum enfermer presentación
        fr: travail emploi patron bureau collègue salaire projet réunion client entretien entreprise facture candidature infirmi métier
        zh: 工作 职业 老板 办公 同事 工资 项目 会议 客户 面试 公司 发票 求职 护士 医院 上班 简历
    """,
    "study": """
        en: study studied studi university school college exam course degree thesis homework lecture learn student class tutor bachelor
        de: studi universität schule prüfung kurs abschluss lernen vorlesung
        es: estudi universidad escuela examen curso carrera aprend
        fr: étud universit école examen cours diplôme apprend
        zh: 学习 大学 学校 考试 课程 学位 论文 作业 学生 专业
    """,
    "health": """
        en: health doctor medic pain headache symptom illness sick therapy diet sleep dentist appointment hospital pill tablet blood
        vaccin surgery injur allerg diabet warfarin ibuprofen remed wheelchair hormone weight
        de: gesund arzt ärzt schmerz krank therapie schlaf zahnarzt medikament impf verletz allerg abnehmen
        es: salud médic dolor enferm terapia dormir dentista medicament vacuna lesión alerg remedio
        fr: santé médecin douleur malad thérapie dormir dentiste médicament vaccin blessure allerg remède
        zh: 健康 医生 疼 头痛 症状 病 治疗 睡眠 牙医 药 疫苗 受伤 过敏
    """,
    "sport": """
        en: sport run running =ran marathon gym workout train training exercise swim pool football soccer tennis golf row cycl bike yoga team match world cup
        climb ski fitness jog kilomet
        de: sport lauf fitness joggen schwimm fußball tennis radfahr fahrrad verein trainier klettern
        es: deporte correr corrí maratón gimnasio nadar fútbol tenis entren bicicleta equipo
        fr: sport courir couru marathon gymnase nager natation football tennis entraîn vélo équipe
        zh: 运动 跑步 马拉松 健身 游泳 足球 网球 训练 自行车 瑜伽 比赛
    """,
    "music": """
        en: music song bass trumpet jazz metal concert guitar piano accordion playlist band album sing opera musical violin choir
        de: musik lied bass band trompete konzert gitarre klavier akkordeon heavy metal singen chor
        es: música canción banda trompeta concierto guitarra piano cantar
        fr: musique chanson groupe trompette concert guitare piano chanter metal
        zh: 音乐 歌 演唱会 吉他 钢琴 唱 金属
    """,
    "film": """
        en: film movie cinema series watch drama comedy documentar horror thriller actor netflix subtitle television =tv
        de: film kino serie fernseh komödie dokumentar horror schauspiel anschauen
        es: película cine serie comedia documental terror actor televisión
        fr: film cinéma série comédie documentaire horreur acteur télévision regarder
        zh: 电影 电视 喜剧 恐怖片 纪录片 演员 剧
    """,
    "books": """
        en: book novel read reading author fiction crime library story stories poem poetry literature
        de: buch bücher bücherei roman lesen lese krimi autor bibliothek gedicht
        es: libro novela leer autor biblioteca poesía
        fr: livre roman lire auteur bibliothèque poésie
        zh: 书 小说 阅读 作者 图书 诗
    """,
    "home": """
        en: home house carpet stain fence flat apartment room kitchen garage boiler plumber paint wall furniture sofa landlord neighbour neighbor rent move clean repair
        garden plant tulip lawn balcony wifi heating door
        de: haus wohnung teppich fleck zimmer küche garage heizung möbel vermieter nachbar miete umzug garten pflanze tulpe wlan gestrichen wohne wohnt wohnen
        es: casa piso habitación cocina garaje caldera muebles vecino alquiler jardín planta wifi contraseña vivo vive vivir
        fr: maison appartement chambre cuisine garage chaudière meuble voisin loyer jardin plante tulipe wifi portail code habite habiter
        zh: 家 房 厨房 车库 家具 邻居 租 花园 植物 无线网 密码 住
    """,
    "animals": """
        en: dog =cat =cats pet puppy kitten greyhound hamster bird budgerigar parrot horse aquarium =vet animal
        de: hund katze haustier hamster vogel pferd wellensittich tier
        es: perro gato gata mascota pájaro canario caballo animal
        fr: =chien =chienne =chat =chats animal oiseau cheval perroquet
        zh: 狗 猫 宠物 鸟 鹦鹉 马 仓鼠 动物
    """,
    "money": """
        en: money bank budget invest stock saving tax loan mortgage insurance price cheap expensive euro dollar cost bitcoin pension invoice pay account
        de: geld bank budget aktie sparen steuer kredit versicherung preis teuer euro bezahl rechnung konto investier
        es: dinero banco presupuesto invertir acciones ahorr impuesto préstamo seguro precio euro pagar paga factura cuenta
        fr: argent banque budget investi actions épargn impôt prêt assurance =prix euro payer paie facture compte
        zh: 钱 银行 预算 投资 股票 存款 税 贷款 保险 价格 欧元 支付 付款 发票 账户
    """,
    "transport": """
        en: =car cars drive driving driver volvo vehicle =bus train station traffic parking tyre tire petrol motorbike scooter commute metro subway
        de: =auto autos fahre fährt golf wagen bahnhof verkehr parken reifen zug fahrrad
        es: coche conduzco conduc autobús tren estación tráfico aparcar rueda
        fr: voiture condui renault =bus gare trafic parking pneu train
        zh: 车 开车 驾驶 公交 地铁 车站 交通 停车
    """,
    "technology": """
        en: computer laptop software rust java program code coding python css html script javascript editor indent printer ink phone app website database server memory browser keyboard tab bug crash linux windows
        de: computer rechner handyvertrag rust python java laptop software programmier drucker tinte handy webseite datenbank informatik
        es: ordenador portátil software program impresora tinta móvil página web informátic
        fr: ordinateur portable logiciel program imprimante encre téléphone informatique site
        zh: 电脑 软件 程序 编程 代码 打印机 墨水 手机 网站 数据库
    """,
    "art": """
        en: paint painter museum gallery art artist drawing photo exhibition tile theatre theater dance craft collect
        de: kunst malen briefmarke sammle sammel angel angle museum galerie foto ausstellung theater tanz sammel
        es: arte pintura sello museo galería foto exposición teatro baile coleccion
        fr: =art peinture timbre musée galerie photo exposition théâtre danse collection
        zh: 艺术 绘画 邮票 博物馆 照片 展览 舞蹈 收集 收藏
    """,
    "gift": """
        en: gift present birthday surprise wedding christmas anniversary
        de: geschenk schenken geburtstag hochzeit weihnacht
        es: regal cumpleaños boda navidad
        fr: cadeau offrir anniversaire mariage noël
        zh: 礼物 送 生日 婚礼 圣诞
    """,
    "nature": """
        en: weather rain sunny planet earth moon space star climate everest physics chemistry
        de: wetter regen planet erde mond weltraum klima physik chemie
        es: clima lluvia planeta tierra luna espacio física química
        fr: météo pluie planète =terre lune espace climat physique chimie
        zh: 天气 雨 地球 月亮 太空 气候 物理 化学 珠穆朗玛
    """,
}
"""Beginnings of words by topic and language."""

_AKIN: frozenset[frozenset[str]] = frozenset(
    frozenset(pair.split())
    for pair in (
        "food health|food travel|food gift|food home|travel transport|travel money|travel sport|"
        "travel nature|work study|work money|work technology|work transport|health sport|music film|"
        "music art|film books|film art|books art|books study|home money|home animals|home gift|"
        "gift books|gift music|gift art|gift money|gift film|gift sport|sport transport|"
        "nature study|study technology|music gift|travel art|travel home"
    ).split("|")
)
"""Pairs of topics of which one often bears on the other."""
_WORD = re.compile(r"[^\W\d_]+")


def _load() -> dict[str, dict[str, set[str]]]:
    tables: dict[str, dict[str, set[str]]] = {}
    for topic, text in TOPICS.items():
        language = ""
        for entry in text.split():
            if entry.endswith(":"):
                language = entry[:-1]
            else:
                tables.setdefault(language, {}).setdefault(entry, set()).add(topic)
    return tables


_TABLES = _load()
_MIN_START, _MAX_START = 3, 20
_MIN_LOAN = 5
"""Letters of an English word from which on it counts in the other languages too."""
_NONE: frozenset[str] = frozenset()


# A read compares every unit with the query, and stored texts are read again.
@lru_cache(maxsize=8192)
def topics_of(text: str) -> frozenset[str]:
    """The topics whose words occur in a text."""
    language = language_of(text)
    table = _TABLES.get(language)
    if table is None:
        return _NONE
    if language == "zh":
        return _NONE.union(*(topics for entry, topics in table.items() if entry in text))
    return _NONE.union(
        *(_topics_of_word(word, language) for word in _WORD.findall(text.casefold()))
    )


def _topics_of_word(word: str, language: str) -> frozenset[str]:
    table = _TABLES[language]
    whole = table.get(f"={word}", set()) | table.get(word, set())
    if whole:
        return frozenset(whole)
    # The longest beginning that is known decides: a `carpet` is no `car`.
    starts = (word[:size] for size in range(min(len(word), _MAX_START), _MIN_START, -1))
    topics = next((table[start] for start in starts if start in table), set[str]())
    if language == "de" and not topics:
        # The last part of a compound says what it is: `Ziegenkäse` is cheese.
        ends = (word[at:] for at in range(1, len(word) - _MIN_START))
        topics = next((table[end] for end in ends if end in table), set[str]())
    if not topics and language != "en" and len(word) >= _MIN_LOAN:
        return _topics_of_word(word, "en")
    return frozenset(topics)


def are_apart(first: str, second: str) -> bool:
    """Whether two texts have topics, and none of one is, or is akin to, one of the other."""
    some, others = topics_of(first), topics_of(second)
    if not some or not others or some & others:
        return False
    return not any(frozenset((one, other)) in _AKIN for one in some for other in others)


def share_topic(first: str, second: str) -> bool:
    """Whether two texts have a topic in common."""
    return bool(topics_of(first) & topics_of(second))
