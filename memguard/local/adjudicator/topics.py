# ruff: noqa: E501 - tables of words
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
        de: schalentier backofen grill kochen meeresfrücht allergie verträg hunger mahlzeit imbiss getränk nudel =reis suppe salat =ei =eier pilz nuss =essen =esse =isst koch back restaurant gericht abendessen mittagessen frühstück rezept speise küche käse brot kuchen bäcker sellerie servier fleisch fisch
        erdnuss nüsse milch zucker zimt wein bier kaffee kakao =tee trink obst gemüse scharf vegetarisch
        es: marisco crustáceo frutos pedir hambre merienda arroz sopa ensalada huevo pollo cerdo mantequilla cocinar hornear barbacoa bebida comer como come cena cenar comida almuerzo desayuno receta cocin restaurante plato queso panadería gluten lactosa pastel carne pescado marisc cacahuete nuez
        leche azúcar canela vino cerveza café =té beber fruta verdura picante postre
        fr: crustacé fruits assiette commander faim goûter riz soupe salade œuf oeuf poulet porc beurre =four boisson pâtes mang dîner déjeuner repas recette cuisin plat fromage boulangerie gluten lactose =pain gâteau viande poisson noix arachid lait sucre cannelle =vin bière
        =thé boire fruit légume épicé dessert
        zh: 贝类 虾 鸡 米饭 面条 汤 口味 点菜 早餐 午餐 晚餐 烤 面包 吃 菜 饭 餐 食 厨 烹 蛋糕 巧克力 面包 奶酪 肉 鱼 海鲜 花生 坚果 牛奶 鸡蛋 糖 肉桂 酒 咖啡 茶 喝 水果 辣 披萨 甜点
    """,
    "travel": """
        en: travel trip holiday vacation flight fly hotel itinerary tour airport luggage suitcase passport visa cruise resort sightsee abroad seat
        weekend beach mountain hik camping hostel train journey destination backpack airline
        de: meer großstadt städt fliegen reisepass gepäck sehenswürdig insel campingplatz wochenende fluggesellschaft reise urlaub stadt besichtig flug hotel flughafen koffer strand bergen wander ferien unterkunft zug bahn ausflug
        es: volar pasaporte equipaje isla aerolínea escapada hostal turis viaj vacacion ciudad vuelo hotel aeropuerto maleta playa montaña =mar tren excursión alojamiento
        fr: voler ville passeport bagage île week-end compagnie auberge touris =mer voyag vacances avion hôtel aéroport valise plage montagne =train randonn camping séjour
        zh: 海边 护照 岛 露营 出差 旅馆 航空 旅行 旅游 游览 城市 度假 航班 飞机 酒店 机场 行李 海滩 大海 爬山 火车 景点 签证
    """,
    "work": """
        en: work job career boss office colleague salary project deadline meeting client customer employ interview resume =cv application cover
        profession manager promotion company nurse lawyer teacher accountant engineer report presentation invoice approv business hospital
        de: vortrag publikum gehaltserhöhung rede präsentation kündig team abteilung nervös vorgesetzt mitarbeit arbeit beruf =job chef büro kolleg gehalt projekt besprechung kund bewerbung vorstellungsgespräch firma rechnung freigabe buchhalt lebenslauf
        es: aumento jefa público discurso equipo contrato empleado nervios trabaj empleo jefe oficina colega sueldo proyecto reunión cliente entrevista empresa factura currículum enfermer presentación
        fr: augmentation public présentation discours équipe contrat employé nerveux travail emploi patron bureau collègue salaire projet réunion client entretien entreprise facture candidature infirmi métier
        zh: 演讲 涨薪 加薪 上司 当众 团队 合同 员工 汇报 工作 职业 老板 办公 同事 工资 项目 会议 客户 面试 公司 发票 求职 护士 医院 上班 简历
    """,
    "study": """
        en: study studied studi university school college exam course degree thesis homework lecture learn student class tutor bachelor
        de: lernplan karteikarte =note referat chemie semester medizin vokabel studi universität schule prüfung kurs abschluss lernen vorlesung
        es: estudiar apuntes nota química semestre medicina vocabulario tarjetas estudi universidad escuela examen curso carrera aprend
        fr: révision fiche =note chimie médecine vocabulaire étud universit école examen cours diplôme apprend
        zh: 复习 卡片 成绩 学期 化学 医学 单词 学习 大学 学校 考试 课程 学位 论文 作业 学生 专业
    """,
    "health": """
        en: knee ankle shoulder wrist injur health doctor medic pain headache symptom illness sick therapy diet sleep dentist appointment hospital pill tablet blood
        vaccin surgery injur allerg diabet warfarin ibuprofen remed wheelchair hormone weight
        de: knie kopfschmerz aspirin migräne rücken blutdruck erkält fieber tablette erkrank hüfte operation praxis husten gesund arzt ärzt schmerz krank therapie schlaf zahnarzt medikament impf verletz allerg abnehmen
        es: rodilla cabeza aspirina migraña espalda tensión pastilla fiebre resfriado operación =tos farmacia salud médic dolor enferm terapia dormir dentista medicament vacuna lesión alerg remedio
        fr: genou tête aspirine migraine =dos tension comprimé fièvre rhume opération toux pharmacie hypertension santé médecin douleur malad thérapie dormir dentiste médicament vaccin blessure allerg remède
        zh: 膝盖 头疼 偏头痛 阿司匹林 血压 感冒 发烧 医院 咳嗽 背 看病 健康 医生 疼 头痛 症状 病 治疗 睡眠 牙医 药 疫苗 受伤 过敏
    """,
    "sport": """
        en: knee ankle shoulder sport run running =ran marathon gym workout train training exercise swim pool football soccer tennis golf row cycl bike yoga team match world cup
        climb ski fitness jog kilomet
        de: knie läuft laufe rennt rennen muskel =kraft park =tore mannschaft sport lauf fitness joggen schwimm fußball tennis radfahr fahrrad verein trainier klettern
        es: rodilla corre corro gimnasia músculo fuerza parque natación deporte correr corrí maratón gimnasio nadar fútbol tenis entren bicicleta equipo
        fr: genou =court =cours muscle force parc sport courir couru marathon gymnase nager natation football tennis entraîn vélo équipe
        zh: 膝盖 锻炼 肌肉 力量 公园 健身房 运动 跑步 马拉松 健身 游泳 足球 网球 训练 自行车 瑜伽 比赛
    """,
    "music": """
        en: podcast music song bass trumpet jazz metal concert guitar piano accordion playlist band album sing opera musical violin choir
        de: geige techno schlagzeug oper musik lied bass band trompete konzert gitarre klavier akkordeon heavy metal singen chor
        es: violín tecno batería coro canciones grupo ópera música canción banda trompeta concierto guitarra piano cantar
        fr: violon batterie chorale opéra musique chanson groupe trompette concert guitare piano chanter metal
        zh: 小提琴 乐队 电子舞曲 歌单 鼓 歌剧 音乐 歌 演唱会 吉他 钢琴 唱 金属
    """,
    "film": """
        en: film movie cinema series watch drama comedy documentar horror thriller actor netflix subtitle television =tv
        de: filme kinobesuch film kino serie fernseh komödie dokumentar horror schauspiel anschauen
        es: películas película cine serie comedia documental terror actor televisión
        fr: films film cinéma série comédie documentaire horreur acteur télévision regarder
        zh: 影片 片子 电影 电视 喜剧 恐怖片 纪录片 演员 剧
    """,
    "books": """
        en: books bookshop podcast novel read reading author fiction library story stories poem poetry literature
        de: gelesen orwell schriftsteller buch bücher bücherei roman lesen lese krimi autor bibliothek gedicht
        es: leído =lee lector libro novela leer autor biblioteca poesía
        fr: =lu =lit liseuse lecture livre roman lire auteur bibliothèque poésie
        zh: 读书 作家 阅读器 书 小说 阅读 作者 图书 诗
    """,
    "home": """
        en: home house carpet stain fence flat apartment room kitchen garage boiler plumber paint wall furniture sofa landlord neighbour neighbor rent move clean repair
        garden plant tulip lawn balcony wifi heating door
        de: holz balkon topf töpf kräuter blume gieß gärtner lampe wand bohr putzen wohnzimmer schlafzimmer haus wohnung teppich fleck zimmer küche garage heizung möbel vermieter nachbar miete umzug garten pflanze tulpe wlan gestrichen wohne wohnt wohnen
        es: madera balcón maceta hierba flor regar jardiner lámpara sofá mueble salón pared taladrar amuebl limpi dormitorio casa piso habitación cocina garaje caldera muebles vecino alquiler jardín planta wifi contraseña vivo vive vivir
        fr: =bois balcon =pot herbe fleur arros canapé =mur percer propriétaire nettoy salon maison appartement chambre cuisine garage chaudière meuble voisin loyer jardin plante tulipe wifi portail code habite habiter
        zh: 木 阳台 花盆 香草 浇花 种花 灯 沙发 墙 客厅 卧室 公寓 布置 房东 家 房 厨房 车库 家具 邻居 租 花园 植物 无线网 密码 住
    """,
    "animals": """
        en: dog =cat =cats pet puppy kitten greyhound hamster bird budgerigar parrot horse aquarium =vet animal
        de: hunde katzen tierarzt hund katze haustier hamster vogel pferd wellensittich tier
        es: perros gatos veterinario perro gato gata mascota pájaro canario caballo animal
        fr: chiens vétérinaire =chien =chienne =chat =chats animal oiseau cheval perroquet
        zh: 兽医 狗 猫 宠物 鸟 鹦鹉 马 仓鼠 动物
    """,
    "money": """
        en: money bank budget invest stock saving tax loan mortgage insurance price cheap expensive euro dollar cost bitcoin pension invoice pay account
        de: anlage sparkonto gehalt rente geld bank budget aktie sparen steuer kredit versicherung preis teuer euro bezahl rechnung konto investier
        es: inversion ahorro pensión hipoteca dinero banco presupuesto invertir acciones ahorr impuesto préstamo seguro precio euro pagar paga factura cuenta
        fr: placement épargne retraite argent banque budget investi actions épargn impôt prêt assurance =prix euro payer paie facture compte
        zh: 理财 退休 钱 银行 预算 投资 股票 存款 税 贷款 保险 价格 欧元 支付 付款 发票 账户
    """,
    "transport": """
        en: garage =car cars drive driving driver volvo vehicle =bus train station traffic parking tyre tire petrol motorbike scooter commute metro subway
        de: elektroauto führerschein tüv =bus =auto autos fahre fährt golf wagen bahnhof verkehr parken reifen zug fahrrad
        es: eléctrico carnet =moto coche conduzco conduc autobús tren estación tráfico aparcar rueda
        fr: électrique permis =moto voiture condui renault =bus gare trafic parking pneu train
        zh: 电动车 驾照 摩托 车 开车 驾驶 公交 地铁 车站 交通 停车
    """,
    "technology": """
        en: computer laptop software rust java program code coding python css html script javascript editor indent printer ink phone app website database server memory browser keyboard tab bug crash linux windows
        de: funktion kommentar skript datei programm betriebssystem internet roboter computer rechner handyvertrag rust python java laptop software programmier drucker tinte handy webseite datenbank informatik
        es: función código comentario archivo aplicación programa ordenador portátil software program impresora tinta móvil página web informátic
        fr: fonction commentaire fichier application programme ordinateur portable logiciel program imprimante encre téléphone informatique site
        zh: 函数 注释 文件 应用 网络 电脑 软件 程序 编程 代码 打印机 墨水 手机 网站 数据库
    """,
    "art": """
        en: paint painter museum gallery art artist drawing photo exhibition tile theatre theater dance craft collect
        de: basteln stricken kunst malen briefmarke sammle sammel angel angle museum galerie foto ausstellung theater tanz sammel
        es: manualidades tejer arte pintura sello museo galería foto exposición teatro baile coleccion
        fr: tricot bricol =art peinture timbre musée galerie photo exposition théâtre danse collection
        zh: 手工 编织 艺术 绘画 邮票 博物馆 照片 展览 舞蹈 收集 收藏
    """,
    "gift": """
        en: gift present birthday surprise wedding christmas anniversary
        de: schmuck party feier pirat geschenk schenken geburtstag hochzeit weihnacht
        es: joya fiesta cumple pirata regal cumpleaños boda navidad
        fr: bijou fête pirate cadeau offrir anniversaire mariage noël
        zh: 首饰 派对 海盗 庆祝 礼物 送 生日 婚礼 圣诞
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

_PAIRS = (
    "food health|food travel|food gift|food home|travel transport|travel money|travel sport|"
    "travel nature|work study|work money|work technology|work transport|health sport|music film|"
    "music art|film books|film art|books art|books study|home money|home animals|home gift|"
    "gift books|gift music|gift art|gift money|gift film|gift sport|sport transport|"
    "nature study|study technology|travel art|travel home|health study|health nature"
)
_AKIN: frozenset[frozenset[str]] = frozenset(frozenset(pair.split()) for pair in _PAIRS.split("|"))
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
