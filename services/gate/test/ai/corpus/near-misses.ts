// 500 pairs of questions that read alike and have different answers: other numbers, negations, orders and names.

/** Two questions that must not share an answer. */
export interface NearMiss {
  readonly kind: "numbers" | "negation" | "order" | "names";
  readonly one: string;
  readonly other: string;
}

/** `#` stands for the part that differs. */
type Template = readonly [template: string, values: readonly (readonly [string, string])[]];

const NUMBERS: readonly Template[] = [
  [
    "Summarize chapter # of the book.",
    [
      ["3", "4"],
      ["12", "21"],
      ["1", "11"],
      ["three", "four"],
      ["7", "7.5"],
    ],
  ],
  [
    "How do I convert # kilometres to miles?",
    [
      ["5", "50"],
      ["10", "100"],
      ["1.5", "15"],
      ["42", "24"],
      ["two", "ten"],
    ],
  ],
  [
    "What happened in #?",
    [
      ["1914", "1941"],
      ["1989", "1998"],
      ["2001", "2010"],
      ["1066", "1666"],
      ["476", "746"],
    ],
  ],
  [
    "Give me # ideas for a birthday party.",
    [
      ["3", "5"],
      ["10", "12"],
      ["five", "six"],
      ["20", "30"],
      ["2", "20"],
    ],
  ],
  [
    "Is # a prime number?",
    [
      ["17", "71"],
      ["91", "97"],
      ["2", "22"],
      ["101", "1001"],
      ["57", "59"],
    ],
  ],
  [
    "What is the square root of #?",
    [
      ["16", "61"],
      ["2", "3"],
      ["144", "1444"],
      ["0.25", "2.5"],
      ["9", "-9"],
    ],
  ],
  [
    "How much is a flight for # euros in dollars?",
    [
      ["100", "1000"],
      ["99", "990"],
      ["250", "520"],
      ["80.50", "85.50"],
      ["1,000", "10,000"],
    ],
  ],
  [
    "Explain step # of the recipe.",
    [
      ["1", "2"],
      ["4", "5"],
      ["10", "1"],
      ["first", "second"],
      ["two", "three"],
    ],
  ],
  [
    "What does error # mean?",
    [
      ["404", "403"],
      ["500", "502"],
      ["0x80070005", "0x80070057"],
      ["E11", "E12"],
      ["137", "139"],
    ],
  ],
  [
    "Which features are new in version #?",
    [
      ["2.1", "2.2"],
      ["3.10", "3.1"],
      ["v1", "v2"],
      ["18", "20"],
      ["10.0.1", "10.1.0"],
    ],
  ],
  [
    "What is # percent of 200?",
    [
      ["15", "50"],
      ["5", "0.5"],
      ["12", "21"],
      ["100", "10"],
      ["ten", "twenty"],
    ],
  ],
  [
    "How many calories are in # eggs?",
    [
      ["2", "3"],
      ["12", "6"],
      ["one", "two"],
      ["a dozen", "two dozen"],
      ["4", "14"],
    ],
  ],
  [
    "Who won the world cup in #?",
    [
      ["2014", "2018"],
      ["1990", "1994"],
      ["1974", "1978"],
      ["2006", "2010"],
      ["1930", "1950"],
    ],
  ],
  [
    "Translate page # of the manual.",
    [
      ["8", "9"],
      ["18", "81"],
      ["100", "101"],
      ["eight", "nine"],
      ["3", "33"],
    ],
  ],
  [
    "Can I take # mg of ibuprofen?",
    [
      ["200", "2000"],
      ["400", "600"],
      ["800", "80"],
      ["100", "1000"],
      ["50", "500"],
    ],
  ],
  [
    "How old is somebody who was born in #?",
    [
      ["1980", "1990"],
      ["2000", "2008"],
      ["1955", "1965"],
      ["1972", "1927"],
      ["2010", "2011"],
    ],
  ],
  [
    "What time is it in UTC when it is # in Tokyo?",
    [
      ["9:00", "21:00"],
      ["6 am", "6 pm"],
      ["12:30", "12:03"],
      ["8", "18"],
      ["0:15", "0:50"],
    ],
  ],
  [
    "Describe planet number # of the solar system.",
    [
      ["3", "4"],
      ["5", "6"],
      ["seven", "eight"],
      ["2", "1"],
      ["third", "fourth"],
    ],
  ],
  [
    "Wie viel sind # Meter in Fuß?",
    [
      ["10", "100"],
      ["1,5", "15"],
      ["zwei", "drei"],
      ["7", "70"],
      ["25", "52"],
    ],
  ],
  [
    "Combien font # plus 8 ?",
    [
      ["3", "13"],
      ["deux", "trois"],
      ["40", "14"],
      ["5", "50"],
      ["1", "100"],
    ],
  ],
  [
    "¿Cuánto es el IVA de # euros?",
    [
      ["10", "100"],
      ["dos", "tres"],
      ["35", "53"],
      ["4", "40"],
      ["1,5", "15"],
    ],
  ],
  [
    "What was the inflation in the # quarter?",
    [
      ["1st", "2nd"],
      ["2nd", "3rd"],
      ["first", "last"],
      ["third", "fourth"],
      ["4th", "1st"],
    ],
  ],
  [
    "How do I tie knot #?",
    [
      ["#1", "#2"],
      ["12", "13"],
      ["9", "6"],
      ["10", "11"],
      ["five", "seven"],
    ],
  ],
  [
    "What is #?",
    [
      ["5", "5!"],
      ["2^8", "2^9"],
      ["10%3", "10%4"],
      ["1/2", "12"],
      ["6*7", "6*8"],
    ],
  ],
  [
    "Show the settings of port #.",
    [
      ["80", "8080"],
      ["443", "444"],
      ["22", "2222"],
      ["5432", "5433"],
      ["25", "52"],
    ],
  ],
  [
    "What does paragraph # of the contract say?",
    [
      ["§3", "§4"],
      ["12a", "12b"],
      ["7.1", "7.2"],
      ["IV", "VI"],
      ["2", "22"],
    ],
  ],
  [
    "How long does it take to bake bread at # degrees?",
    [
      ["180", "220"],
      ["200", "250"],
      ["90", "190"],
      ["175", "275"],
      ["160", "106"],
    ],
  ],
  [
    "What is the capital gain on # shares?",
    [
      ["10", "1000"],
      ["15", "51"],
      ["300", "30"],
      ["two hundred", "two thousand"],
      ["7", "77"],
    ],
  ],
];

const NEGATIONS: readonly Template[] = [
  [
    "Write a summary that # the figures.",
    [
      ["includes", "does not include"],
      ["repeats", "never repeats"],
      ["mentions", "doesn't mention"],
      ["explains", "must not explain"],
      ["shows", "shows none of"],
    ],
  ],
  [
    "Which foods are # for dogs?",
    [
      ["safe", "not safe"],
      ["good", "no good"],
      ["safe", "unsafe"],
      ["healthy", "never healthy"],
      ["recommended", "not recommended"],
    ],
  ],
  [
    "Should I update the driver # restarting?",
    [
      ["with", "without"],
      ["before", "after"],
      ["and keep", "and not keep"],
      ["while", "instead of"],
      ["by", "without"],
    ],
  ],
  [
    "List the countries that # the treaty.",
    [
      ["signed", "did not sign"],
      ["have ratified", "haven't ratified"],
      ["accept", "don't accept"],
      ["left", "never left"],
      ["support", "do not support"],
    ],
  ],
  [
    "Why # the engine start in winter?",
    [
      ["does", "doesn't"],
      ["did", "didn't"],
      ["will", "won't"],
      ["can", "can't"],
      ["would", "wouldn't"],
    ],
  ],
  [
    "Explain why the earth is # flat.",
    [
      ["", "not"],
      ["really", "not really"],
      ["considered", "never considered"],
      ["almost", "no longer almost"],
      ["said to be", "not said to be"],
    ],
  ],
  [
    "Which words # an accent in French?",
    [
      ["have", "have no"],
      ["take", "take no"],
      ["need", "do not need"],
      ["carry", "never carry"],
      ["use", "cannot use"],
    ],
  ],
  [
    "Can I travel to Canada # a visa?",
    [
      ["with", "without"],
      ["if I have", "if I don't have"],
      ["on", "not on"],
      ["with only", "without even"],
      ["holding", "not holding"],
    ],
  ],
  [
    "What happens if I # the form?",
    [
      ["sign", "don't sign"],
      ["send", "never send"],
      ["submit", "do not submit"],
      ["fill", "can't fill"],
      ["keep", "won't keep"],
    ],
  ],
  [
    "Name employees who are # entitled to leave.",
    [
      ["", "not"],
      ["always", "never"],
      ["fully", "not fully"],
      ["now", "no longer"],
      ["also", "neither"],
    ],
  ],
  [
    "Warum ist der Server # erreichbar?",
    [
      ["heute", "heute nicht"],
      ["immer", "nie"],
      ["sofort", "nicht sofort"],
      ["noch", "nicht mehr"],
      ["gut", "nicht gut"],
    ],
  ],
  [
    "Kann ich # Führerschein fahren?",
    [
      ["mit", "ohne"],
      ["mit meinem", "ohne meinen"],
      ["mit einem", "mit keinem"],
      ["nur mit", "nur ohne"],
      ["auch mit", "auch ohne"],
    ],
  ],
  [
    "Peut-on voyager # passeport ?",
    [
      ["avec", "sans"],
      ["avec un", "sans un"],
      ["avec son", "sans son"],
      ["toujours avec", "jamais avec"],
      ["aussi avec", "aussi sans"],
    ],
  ],
  [
    "¿Se puede cocinar arroz # sal?",
    [
      ["con", "sin"],
      ["con más", "sin más"],
      ["con mucha", "con ninguna"],
      ["siempre con", "nunca con"],
      ["también con", "tampoco con"],
    ],
  ],
  [
    "How do I # notifications on my phone?",
    [
      ["enable", "disable"],
      ["allow", "block"],
      ["turn on", "turn off"],
      ["show", "not show"],
      ["get", "get no"],
    ],
  ],
  [
    "Is the door # when the light is green?",
    [
      ["open", "closed"],
      ["locked", "unlocked"],
      ["open", "not open"],
      ["usable", "not usable"],
      ["safe", "unsafe"],
    ],
  ],
  [
    "Does the warranty # water damage?",
    [
      ["cover", "not cover"],
      ["include", "exclude"],
      ["ever cover", "never cover"],
      ["pay for", "not pay for"],
      ["mention", "not mention"],
    ],
  ],
  [
    "Name drugs that # sleep.",
    [
      ["cause", "do not cause"],
      ["improve", "don't improve"],
      ["help", "never help"],
      ["allow", "deny"],
      ["affect", "cannot affect"],
    ],
  ],
  [
    "The tests pass; # run the deployment?",
    [
      ["should I", "should I not"],
      ["can I", "can't I"],
      ["do I", "don't I"],
      ["would you", "wouldn't you"],
      ["must I", "mustn't I"],
    ],
  ],
  [
    "Which rows have # value in the column?",
    [
      ["a", "no"],
      ["any", "not any"],
      ["some", "none or no"],
      ["one", "never one"],
      ["the", "not the"],
    ],
  ],
];

const ORDERS: readonly (readonly [
  template: string,
  values: readonly (readonly [string, string])[],
])[] = [
  [
    "Does the {1} bite the {2}?",
    [
      ["dog", "cat"],
      ["man", "dog"],
      ["snake", "mouse"],
      ["horse", "rider"],
      ["child", "dentist"],
    ],
  ],
  [
    "How do I convert {1} to {2}?",
    [
      ["celsius", "fahrenheit"],
      ["json", "yaml"],
      ["euros", "dollars"],
      ["pdf", "word"],
      ["miles", "kilometres"],
    ],
  ],
  [
    "Why did {1} attack {2}?",
    [
      ["Rome", "Carthage"],
      ["Germany", "Poland"],
      ["Athens", "Sparta"],
      ["France", "Russia"],
      ["Japan", "China"],
    ],
  ],
  [
    "Translate this text from {1} into {2}.",
    [
      ["English", "German"],
      ["Spanish", "French"],
      ["Polish", "Czech"],
      ["Greek", "Latin"],
      ["Italian", "Dutch"],
    ],
  ],
  [
    "Is {1} faster than {2}?",
    [
      ["rust", "go"],
      ["a train", "a bus"],
      ["bubble sort", "quick sort"],
      ["light", "sound"],
      ["python", "ruby"],
    ],
  ],
  [
    "How far is it to drive from {1} to {2}?",
    [
      ["Paris", "Lyon"],
      ["Boston", "Chicago"],
      ["Berlin", "Munich"],
      ["Oslo", "Bergen"],
      ["Delhi", "Agra"],
    ],
  ],
  [
    "Can the {1} fire the {2}?",
    [
      ["board", "president"],
      ["teacher", "principal"],
      ["owner", "manager"],
      ["king", "parliament"],
      ["captain", "crew"],
    ],
  ],
  [
    "What happens if {1} follows {2}?",
    [
      ["a comma", "a colon"],
      ["thunder", "lightning"],
      ["red", "green"],
      ["supper", "dessert"],
      ["inflation", "recession"],
    ],
  ],
  [
    "Who owes money when {1} lends {2} a hundred?",
    [
      ["Anna", "Bob"],
      ["Carl", "Dora"],
      ["Emil", "Frida"],
      ["Gina", "Hans"],
      ["Ivan", "Jane"],
    ],
  ],
  [
    "Should I put {1} before {2}?",
    [
      ["milk", "tea"],
      ["shoes", "trousers"],
      ["primer", "paint"],
      ["cleanser", "toner"],
      ["flour", "eggs"],
    ],
  ],
  [
    "How many {1} fit into a {2}?",
    [
      ["cups", "litre"],
      ["boxes", "truck"],
      ["minutes", "lesson"],
      ["pages", "chapter"],
      ["bytes", "word"],
    ],
  ],
  [
    "Subtract {1} from {2}.",
    [
      ["alpha", "beta"],
      ["revenue", "cost"],
      ["width", "height"],
      ["x", "y"],
      ["gross", "net"],
    ],
  ],
  [
    "Is the {1} inside the {2}?",
    [
      ["loop", "function"],
      ["heart", "lung"],
      ["sun", "galaxy"],
      ["seed", "fruit"],
      ["class", "module"],
    ],
  ],
  [
    "Does {1} depend on {2}?",
    [
      ["react", "webpack"],
      ["demand", "supply"],
      ["sleep", "mood"],
      ["yield", "rain"],
      ["frontend", "backend"],
    ],
  ],
  [
    "Beißt der {1} den {2}?",
    [
      ["Hund", "Mann"],
      ["Fuchs", "Hasen"],
      ["Wolf", "Bären"],
      ["Kater", "Hund"],
      ["Affe", "Löwen"],
    ],
  ],
  [
    "Est-ce que {1} mange {2} ?",
    [
      ["le loup", "le renard"],
      ["le chat", "la souris"],
      ["l'oiseau", "le poisson"],
      ["le lion", "le tigre"],
      ["la vache", "la chèvre"],
    ],
  ],
  [
    "¿Por qué {1} persigue a {2}?",
    [
      ["el gato", "el perro"],
      ["el zorro", "el conejo"],
      ["el lobo", "el oso"],
      ["el pez", "el pulpo"],
      ["la abeja", "la mosca"],
    ],
  ],
  [
    "Which is older, because {1} came after {2}?",
    [
      ["jazz", "blues"],
      ["bronze", "iron"],
      ["paper", "ink"],
      ["radio", "film"],
      ["chess", "checkers"],
    ],
  ],
  [
    "Copy the files of the {1} to the {2}.",
    [
      ["server", "laptop"],
      ["desktop", "cloud"],
      ["phone", "tablet"],
      ["backup", "disk"],
      ["cluster", "archive"],
    ],
  ],
  [
    "Did {1} teach {2}?",
    [
      ["Plato", "Aristotle"],
      ["Haydn", "Beethoven"],
      ["Freud", "Jung"],
      ["Socrates", "Plato"],
      ["Leonardo", "Raphael"],
    ],
  ],
  [
    "Explain how {1} causes {2}.",
    [
      ["stress", "insomnia"],
      ["poverty", "crime"],
      ["friction", "heat"],
      ["smoking", "anxiety"],
      ["debt", "depression"],
    ],
  ],
  [
    "What if the {1} overtakes the {2}?",
    [
      ["bus", "tram"],
      ["hare", "tortoise"],
      ["cyclist", "car"],
      ["challenger", "champion"],
      ["ship", "boat"],
    ],
  ],
];

const NAMES: readonly Template[] = [
  [
    "What is the capital of #?",
    [
      ["France", "Spain"],
      ["Austria", "Australia"],
      ["Niger", "Nigeria"],
      ["Slovakia", "Slovenia"],
      ["france", "spain"],
    ],
  ],
  [
    "What is the weather like in #?",
    [
      ["Berlin", "Munich"],
      ["berlin", "munich"],
      ["Paris", "Prague"],
      ["tokyo", "kyoto"],
      ["San Jose", "San Juan"],
    ],
  ],
  [
    "Who was #?",
    [
      ["Marie Curie", "Pierre Curie"],
      ["John Adams", "Samuel Adams"],
      ["Ludwig XIV", "Ludwig XV"],
      ["Mozart", "Motzart the cat"],
      ["Alexander Fleming", "Ian Fleming"],
    ],
  ],
  [
    "How do I sort a list in #?",
    [
      ["Python", "Java"],
      ["C", "C++"],
      ["C++", "C#"],
      ["java", "javascript"],
      ["Go", "Rust"],
    ],
  ],
  [
    "Tell me about the company #.",
    [
      ["Apple", "Alphabet"],
      ["SAP", "SAS"],
      ["Siemens", "Siemens Energy"],
      ["Delta", "Delphi"],
      ["Shell", "Exxon"],
    ],
  ],
  [
    "When did # open its first shop?",
    [
      ["Aldi", "Lidl"],
      ["IKEA", "H&M"],
      ["Nike", "Puma"],
      ["Tesco", "Asda"],
      ["Rewe", "Edeka"],
    ],
  ],
  [
    "What is the population of #?",
    [
      ["Georgia", "Armenia"],
      ["Congo", "Gabon"],
      ["Oslo", "Bergen"],
      ["north korea", "south korea"],
      ["Guinea", "Guyana"],
    ],
  ],
  [
    "Write a greeting for #.",
    [
      ["Anna", "Hanna"],
      ["Mr. Brown", "Mr. Braun"],
      ["Jean", "John"],
      ["Maria", "Mario"],
      ["Dr. Lee", "Dr. Li"],
    ],
  ],
  [
    "Which rivers flow through #?",
    [
      ["Bavaria", "Saxony"],
      ["Ohio", "Iowa"],
      ["Kansas", "Arkansas"],
      ["Nepal", "Bhutan"],
      ["kansas", "arkansas"],
    ],
  ],
  [
    "How do I cook #?",
    [
      ["turkey", "duck"],
      ["rice", "lentils"],
      ["lamb", "pork"],
      ["salmon", "trout"],
      ["quinoa", "couscous"],
    ],
  ],
  [
    "What is the exchange rate of the # today?",
    [
      ["USD", "EUR"],
      ["yen", "yuan"],
      ["peso", "pound"],
      ["krona", "krone"],
      ["CHF", "CAD"],
    ],
  ],
  [
    'Where is the file "#"?',
    [
      ["report.pdf", "report.doc"],
      ["a.txt", "b.txt"],
      ["notes", "Notes"],
      ["main.ts", "main.js"],
      ["2024-01", "2024-02"],
    ],
  ],
  [
    "What does `#` do?",
    [
      ["git pull", "git push"],
      ["rm -r", "rm -f"],
      ["await", "async"],
      ["SELECT", "DELETE"],
      ["map()", "filter()"],
    ],
  ],
  [
    "Explain the function #.",
    [
      ["readFile()", "readFileSync()"],
      ["get_user", "set_user"],
      ["std::move", "std::copy"],
      ["parseInt", "parseFloat"],
      ["fooBar", "fooBaz"],
    ],
  ],
  [
    "Is # vegan?",
    [
      ["gelatin", "agar"],
      ["honey", "syrup"],
      ["Oreo", "Twix"],
      ["Guinness", "Heineken"],
      ["tofu", "quark"],
    ],
  ],
  [
    "Who wrote #?",
    [
      ["Emma", "Persuasion"],
      ["Faust", "Nathan"],
      ["Dune", "Ubik"],
      ["The Trial", "The Castle"],
      ["Ulysses", "Dubliners"],
    ],
  ],
  [
    "Who directed #?",
    [
      ["Alien", "Aliens"],
      ["Heat", "Ran"],
      ["Vertigo", "Psycho"],
      ["Jaws", "Duel"],
      ["Solaris", "Stalker"],
    ],
  ],
  [
    "What is the treatment for #?",
    [
      ["asthma", "eczema"],
      ["hypertension", "hypotension"],
      ["vitamin A deficiency", "vitamin B deficiency"],
      ["influenza", "pneumonia"],
      ["hyperthermia", "hypothermia"],
    ],
  ],
  [
    "Send a reminder to #.",
    [
      ["[EMAIL_1]", "[EMAIL_2]"],
      ["@anna", "@bob"],
      ["anna@example.com", "bob@example.com"],
      ["#sales", "#support"],
      ["Tom", "Tim"],
    ],
  ],
  [
    "How do I get from the airport to #?",
    [
      ["Brooklyn", "Manhattan"],
      ["Soho", "Camden"],
      ["Ginza", "Shibuya"],
      ["Montmartre", "La Défense"],
      ["mitte", "kreuzberg"],
    ],
  ],
  [
    "Was ist die Hauptstadt von #?",
    [
      ["Österreich", "Ungarn"],
      ["Irland", "Island"],
      ["Polen", "Portugal"],
      ["Peru", "Chile"],
      ["Mali", "Malta"],
    ],
  ],
  [
    "Quelle est la capitale de #?",
    [
      ["la Suisse", "la Suède"],
      ["l'Irak", "l'Iran"],
      ["la Bolivie", "la Colombie"],
      ["l'Inde", "l'Indonésie"],
      ["la Chine", "la Corée"],
    ],
  ],
  [
    "¿Cuál es la capital de #?",
    [
      ["Chile", "China"],
      ["Perú", "Cuba"],
      ["Suecia", "Suiza"],
      ["Irán", "Irak"],
      ["Bolivia", "Colombia"],
    ],
  ],
  [
    "#有多少人口?",
    [
      ["北京", "上海"],
      ["德国", "法国"],
      ["东京", "大阪"],
      ["广东", "广西"],
      ["湖南", "湖北"],
    ],
  ],
  [
    "In which # is the meeting?",
    [
      ["month", "room"],
      ["building", "street"],
      ["week", "city"],
      ["language", "format"],
      ["office", "school"],
    ],
  ],
  [
    "When is the deadline for the # report?",
    [
      ["March", "April"],
      ["monday", "friday"],
      ["marketing", "finance"],
      ["Alpha", "Beta"],
      ["tax", "travel"],
    ],
  ],
  [
    "What is the flag of #?",
    [
      ["Monaco", "Indonesia"],
      ["Chad", "Romania"],
      ["Luxembourg", "the Netherlands"],
      ["Dominica", "the Dominican Republic"],
      ["New York", "New Jersey"],
    ],
  ],
  [
    "Compare # with Kotlin.",
    [
      ["Swift", "Dart"],
      ["Scala", "Groovy"],
      ["Java", "Ruby"],
      ["Perl", "PHP"],
      ["Elixir", "Erlang"],
    ],
  ],
  [
    "Write a poem about #.",
    [
      ["Rome", "Venice"],
      ["the moon", "the sun"],
      ["roses", "tulips"],
      ["love", "hate"],
      ["rain", "snow"],
    ],
  ],
  [
    "Is # a good first language?",
    [
      ["Basic", "Pascal"],
      ["Esperanto", "Latin"],
      ["Swedish", "Danish"],
      ["lua", "tcl"],
      ["Haskell", "Prolog"],
    ],
  ],
];

function fill(kind: NearMiss["kind"], templates: readonly Template[]): NearMiss[] {
  const put = (template: string, value: string): string =>
    template.replace("#", value).replace("  ", " ");
  return templates.flatMap(([template, values]) =>
    values.map(([one, other]) => ({ kind, one: put(template, one), other: put(template, other) })),
  );
}

function swap(template: string, first: string, second: string): string {
  return template.replace("{1}", first).replace("{2}", second);
}

/** The pairs of all kinds, in the order of the templates. */
export const NEAR_MISSES: readonly NearMiss[] = [
  ...fill("numbers", NUMBERS),
  ...fill("negation", NEGATIONS),
  ...ORDERS.flatMap(([template, values]) =>
    values.map(([one, other]) => ({
      kind: "order" as const,
      one: swap(template, one, other),
      other: swap(template, other, one),
    })),
  ),
  ...fill("names", NAMES),
];

/** Pairs whose words with a meaning are equal: those between them differ. */
export const SMALL_WORDS: readonly (readonly [one: string, other: string])[] = [
  ["When did the war start?", "Where did the war start?"],
  ["Who called the police?", "Why call the police?"],
  ["How many eggs are in the box?", "How big are the eggs in the box?"],
  ["Are there trains from Berlin?", "Are there trains to Berlin?"],
  ["List flights from Paris to Lyon.", "List flights to Paris from Lyon."],
  ["Who is the president?", "Who was the president?"],
  ["Can I drink coffee?", "Should I drink coffee?"],
  ["What is my balance?", "What is your balance?"],
  ["Did he win?", "Did she win?"],
  ["Is it in the box?", "Is it under the box?"],
  ["Will it rain?", "Does it rain?"],
];

/** Questions with the same answer: the built-in comparison finds the first list, vectors the second one as well. */
export const SAME_FORM: readonly (readonly [one: string, other: string])[] = [
  ["What is the capital of France?", "what is the capital of France"],
  ["What's the capital of France?", "What is the capital of  France"],
  ["Please explain DNS.", "Explain DNS"],
  ["Could you please explain DNS?", "explain DNS"],
  ["Hi, how do I reset my password?", "How do I reset my password, please?"],
  ["It’s raining. Why?", "It is raining. Why"],
  ["Why doesn't the engine start?", "Why does not the engine start"],
  ["Wie heißt die Hauptstadt von Peru?", "wie heißt die Hauptstadt von Peru"],
];
export const SAME_MEANING: readonly (readonly [one: string, other: string])[] = [
  ["How do I reset my password?", "What is the way to reset my password?"],
  ["How do I reset my password?", "I need help, can you tell me how to reset my password?"],
  ["Explain photosynthesis.", "Can you describe how photosynthesis works?"],
  ["What are the opening hours of the library?", "Tell me the opening hours that the library has."],
  ["How can I cancel my subscription?", "I would like to know how to cancel my subscription."],
  ["Was ist Photosynthese?", "Kannst du erklären, was die Photosynthese ist?"],
  [
    "Which payment methods do you accept?",
    "Tell me please: which payment methods are there that you accept?",
  ],
  ["Where do I find my invoice?", "Help, where can I find my invoice?"],
];
