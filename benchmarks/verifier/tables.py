"""Word lists of the corruptor: substitutes for names, places, occupations and hobbies.

Hand-made. They need not be complete: for other details, `frames` finds substitutes.
"""


def _list(text: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in text.replace("\n", " ").split(",") if entry.strip())


FIRST_NAMES = _list(
    """Anna, Ben, Carla, David, Elena, Frank, Grace, Henry, Irene, Jack, Karen, Leo, Maria, Nathan,
    Olivia, Paul, Quinn, Rachel, Simon, Tara, Umar, Vera, Walter, Xenia, Yusuf, Zoe, Adam, Bella,
    Chris, Diana, Eric, Fiona, George, Hannah, Ivan, Julia, Kevin, Laura, Mark, Nina, Oscar, Paula,
    Robert, Sarah, Thomas, Ursula, Victor, Wendy, Aaron, Beth, Carlos, Daisy, Edward, Felicia,
    Gavin, Helen, Ian, Jenny, Kyle, Linda, Martin, Nora, Owen, Petra, Ralph, Sofia, Tim, Vivian,
    William, Amy, Brian, Claire, Dylan, Emma, Fred, Gina, Harry, Iris, James, Kate, Lucas, Megan,
    Neil, Opal, Peter, Rosa, Steve, Tina, Vince, Alice, Bruce, Cindy, Derek, Ella, Floyd, Gloria,
    Hugo, Isabel, Joel, Kim, Liam, Mona, Noah, Pam, Ricky, Susan, Trevor, Audrey, Blake, Cora,
    Dean, Eva, Finn, Greta, Howard, Jasmine, Keith, Lily, Max, Naomi, Phil, Ruth, Sam, Tracy"""
)
RELATIONS = _list(
    """sister, brother, mother, father, mom, dad, wife, husband, son, daughter, aunt, uncle, cousin,
    grandmother, grandfather, grandma, grandpa, niece, nephew, girlfriend, boyfriend, friend,
    roommate, boss, neighbor, coworker"""
)
PETS = _list("dog, cat, horse, parrot, rabbit, hamster, turtle, puppy, kitten, snake, bird, fish")
PLACES = _list(
    """Boston, Chicago, Seattle, Denver, Miami, Dallas, Austin, Houston, Atlanta, Portland, Phoenix,
    Detroit, Nashville, Toronto, Montreal, London, Paris, Berlin, Rome, Madrid, Dublin, Tokyo,
    Sydney, Texas, Florida, California, Ohio, Michigan, Georgia, Oregon, Alaska, Hawaii, Colorado,
    Virginia, Arizona, Canada, Mexico, England, Scotland, Ireland, France, Germany, Italy, Spain,
    Greece, Japan, China, India, Brazil, Australia, Sweden, Norway, Poland, Egypt, Kenya, Peru,
    Chile, Vermont, Maine, Utah, Nevada, Kansas, Iowa, Idaho, Minnesota, Wisconsin, Tennessee,
    Kentucky, Louisiana, Alabama, Oklahoma, Europe, Asia, Africa, Korea, Russia, Turkey, Israel,
    Vegas, Philadelphia, Baltimore, Orlando, Cleveland, Pittsburgh, Memphis, Vancouver, Lisbon,
    Vienna, Prague, Amsterdam, Barcelona, Stockholm, Oslo, Jamaica, Cuba, Thailand, Vietnam"""
)
OCCUPATIONS = _list(
    """teacher, nurse, doctor, lawyer, accountant, engineer, programmer, chef, waiter, waitress,
    mechanic, electrician, plumber, carpenter, firefighter, librarian, musician, singer, artist,
    painter, writer, journalist, photographer, actor, dancer, farmer, cashier, manager, secretary,
    salesman, barista, bartender, pilot, soldier, student, professor, scientist, vet, dentist,
    pharmacist, therapist, psychologist, architect, designer, model, banker, realtor, janitor,
    baker, butcher, tailor, driver, trucker, paramedic, surgeon, coach, trainer, consultant,
    analyst, editor, translator, nanny, florist, hairdresser, stylist, welder, contractor"""
)
ACTIVITIES = _list(
    """hiking, swimming, running, cycling, fishing, hunting, camping, skiing, surfing, skating,
    climbing, dancing, singing, painting, drawing, reading, writing, cooking, baking, gardening,
    knitting, sewing, sailing, kayaking, gaming, shopping, traveling, bowling, boxing, wrestling,
    golfing, jogging, yoga, meditation, photography, pottery, chess, poker, karate, basketball,
    football, soccer, baseball, tennis, hockey, volleyball, golf, rugby, cricket, archery, guitar,
    piano, violin, drums, cello, trumpet, flute, ukulele, saxophone"""
)
MONTHS = _list(
    """January, February, March, April, May, June, July, August, September, October, November,
    December"""
)
WEEKDAYS = _list("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday")
RELATIVE_DATES: tuple[tuple[str, ...], ...] = (
    ("last week", "last month", "last year", "last weekend", "yesterday"),
    ("next week", "next month", "next year", "next weekend", "tomorrow"),
    ("every day", "every week", "every month", "every year", "every weekend"),
    ("daily", "weekly", "monthly", "yearly"),
)
ANTONYMS: tuple[tuple[str, str], ...] = (
    ("love", "hate"), ("loves", "hates"), ("loved", "hated"), ("like", "dislike"),
    ("likes", "dislikes"), ("enjoys", "hates"), ("enjoy", "hate"), ("big", "small"),
    ("large", "small"), ("old", "young"), ("older", "younger"), ("hot", "cold"), ("early", "late"),
    ("good", "bad"), ("happy", "sad"), ("easy", "hard"), ("cheap", "expensive"), ("rich", "poor"),
    ("single", "married"), ("bought", "sold"), ("started", "stopped"), ("won", "lost"),
    ("always", "never"), ("often", "rarely"), ("before", "after"), ("more", "less"),
    ("morning", "evening"), ("city", "country"), ("favorite", "least favorite"), ("new", "old"),
    ("tall", "short"), ("best", "worst"), ("quit", "started"), ("gained", "lost"),
)  # fmt: skip
SMALL = _list(
    "one,two,three,four,five,six,seven,eight,nine,ten,eleven,twelve,thirteen,fourteen,fifteen"
)
