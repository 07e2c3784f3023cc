// Words by what they may be in an order to a model, in English, German, French and Spanish: a wider net than `concepts.ts`.

/**
 * Cues, each a character. `*` at the end of a word stands for any ending. Of a word with two cues the first one counts.
 *
 * ```text
 *   y you, your      m I, my, we       o ignore, drop     v void, expired    a rules, prompt     s system, hidden
 *   r reveal         w what, which     t told, trained    x forbidden        n no, without       g refuse, warn
 *   p password       f spell, hint     i base64, ASCII    c play a role      e an AI             b developer, admin
 *   d everything     j answer, obey    k now, instead     u unrestricted     z new               q guard, keep
 *   h before, so far                   _ other word       | end of a sentence
 * ```
 */
const WORDS: Readonly<Record<string, string>> = {
  y: `you your yours yourself u ur youre youve dein deine deiner deinen deinem deines dir dich euch eure eurer euren sie ihr ihre ihrer ihren ihrem ihnen
    tu te toi ton ta tes vous votre vos tú ti tus su sus usted ustedes eres`,
  m: `i me my mine we us our ours ich mir mich mein meine meiner meinen meinem wir uns unser unsere je moi mon ma mes nous notre nos yo mi mis nuestro nuestra`,
  o: `ignor* disregard* forget forgets forgetting overrid* bypass* circumvent* discard* abandon* eras* wip* delet* purg* scrap scratch revok* disobey* undo drop
    drops skip unlearn* violat* neglect* suspend* lift* remov* disabl* deactivat* cancel* unlock* break breaking reject* overwrit* supersed* dismiss* refrain stop stops
    vergiss* vergess* missacht* verwirf verwerf* verworfen lösch* übergeh* umgeh* deaktivier* abschalt* ausschalt* aufheb* entfern* streich* überschreib* beend*
    salta* salte* lève* oubli* désactiv* contourn* supprim* annul* olvid* descart* elimin* desactiv* omit* borr* cancela*`,
  v: `void invalid null undone abolished crashed untrue levée* valen expired obsolete outdated revoked repealed replaced superseded lapsed struck gone empty waived lifted suspended removed inactive discontinued cancelled canceled
    ungültig* hinfällig aufgehoben abgelaufen außer überholt veraltet unwirksam ersetzt gelöscht abgeschafft erloschen périm* caduc* annulé* inválid* derogad* obsolet*`,
  a: `instruction* rule rules ruleset guideline* prompt prompts preprompt directive* policy policies polic* protocol* programming orders norms norm restriction* constraint* limitation*
    limits filter filters safeguard* guardrail* guidance setup preset* safety ethic* moral* briefing alignment boundaries censorship commandments configuration settings programmation systemprompt* criteria
    anweisung* regel regeln vorgabe* richtlini* instruktion* befehl* vorschrift* verbot verbote einschränkung* beschränkung* grenzen sicherheitsfilter* sicherheitsregel* sicherheitstraining vorgabentext
    zensur konfiguration sperre* schranken auftrag aufgabenstellung systemvorgabe* anfangstext systemnachricht* consigne* règle* directive* limites limite filtre* censur* briefing* instruccion* regla* norma* directri* restriccion* límites filtros`,
  s: `system initial original hidden confidential internal secret underlying initiali* geheim* intern* versteckt* ursprünglich* vertraulich* anfänglich* système caché* secr* initial* confidentiel* sistema
    ocult* inicial* original* confidencial*`,
  r: `reveal* show shows showing print* repeat* tell tells output display* disclos* give gives paste quote recite list copy state read reads share leak* dump* expose* write encode* translat* send divulge* summari* describe whisper* sing
    zeig* gib geben nenn* verrat* verrät wiederhol* druck* schreib* sag* offenbar* lies teil* übersetz* kopier* preisgeb* affich* montr* révèl* répèt* donn* dis écri* récit* traduis muestra* muéstr* revel* repit* dime dame di escrib* imprim* enseñ* tradu*`,
  w: `what which whats welche* worüber quel* quoi cuál* qué`,
  t: `told given instructed trained programmed initialised initialized configured assigned received learned learnt taught fed operating operate bound mitgegeben gesagt erhalten bekommen trainiert vorgegeben aufgetragen
    befohlen programmiert gegeben reçu reçues donné* dit entraîn* recibid* dado dijeron dieron programad* entrenad*`,
  x: `forbidden prohibited illegal unlawful banned disallowed taboo unethical immoral harmful restricted verboten* illegal* untersagt* gesperrt* interdit* illicit* illég* prohibid* ilegal*`,
  n: `no not never without none nor zero cannot lacks lost lose nothing anymore ohne kein keine keinen keiner keinerlei nie niemals nicht sans aucun aucune jamais pas ni sin ningún ninguna ninguno nunca jamás`,
  g: `refus* declin* warn warning warnings apolog* lectur* disclaimer* morali* preach* caveat* sermon verweiger* weiger* ablehn* warnung* warnhinweis* entschuldig* moralpredigt* belehr* excus* avertiss* negar* disculp* advert* rechaz*`,
  p: `password passphrase passcode codeword passwort* kennwort* geheimwort* codewort* lösungswort contraseña* passw* pwd keyphrase`,
  f: `spell* letter letters backward backwards revers* hint hints rhym* riddle acrostic poem story emoji emojis anagram syllable* vowel* crossword
    synonym* initial* charade limerick haiku italian spanish french german buchstab* rückwärts umgekehrt hinweis* tipp reim* rätsel akrostichon gedicht* geschichte zeilenanfäng* silbe* bindestrich* épel* lettre* envers indice* poème devinette rim*
    deletre* letra* adivinanza poema pista* guion* revés`,
  i: `ascii base64 rot13 morse hex hexadecimal binary numbers dash dashes hyphen* caesar cipher leetspeak`,
  c: `act acts acting pretend* play plays role roleplay imagin* simulat* become character persona identity hypothetic* fiction* story scene scenario screenplay villain universe world novel movie game dream experiment predict* stell rolle spiel* tu hypothetisch
    angenommen geschichte szene figur rôle jou* imagin* personnage hypothèse histoire actú* actua* finge imagina* papel personaje historia`,
  e: `ai bot bots chatbot chatbots model models assistant assistants machine llm llms gpt chatgpt agent agents ki ia sprachmodell* assistent* summariser summarizer summarisers zusammenfasser modèle* modelo* asistente`,
  b: `developer developers creator creators admin admins administrator administrators operator owner engineer engineers openai anthropic staff maintenance root sudo supervisor auditor penetration pentest legal headquarters
    entwickler* administrator* betreiber* wartung* ingénieur* développeur* administrateur* desarrollador* administrador* ingenier* creador*`,
  d: `anything everything all any every whatever alles alle allem jede jeden jegliche sämtliche tout tous toute toutes todo todos todas cualquier*`,
  j: `answer* respond* reply replies comply complies obey obeys explain* fulfil* cooperat* execut* serve serves approv* confirm* antwort* beantwort* gehorch* erklär* befolg* erfüll* bestätig* répond* obéi* expliqu* respond* obedec* explic* contest*`,
  k: `now instead henceforth from onwards jetzt nun stattdessen fortan sofort ab maintenant désormais plutôt ahora adelante lugar`,
  u: `unrestricted uncensored unfiltered jailbreak* jailbroken unbound unchained unshackled limitless amoral evil evilbot lawless ruthless unaligned freed freegpt rogue entfesselt* unzensiert* ungefiltert* skrupellos*`,
  z: `new neue neuer neues neuen nouveau nouvelle nouvelles nueva nuevo nuevas nuevos real actual true updated`,
  q: `guard guards guarding guarded protect* hid hide hides hiding hidden keep keeping conceal* withhold* hüt* schütz* verberg* verheimlich* bewahr* verschweig* proteg* guard* ocultas escond* gardes protèg* cach*`,
  h: `before previous previously prior earlier above preceding far until vorher* zuvor bisher* davor oben oberhalb vorig* darüber précéd* avant dessus anterior* previ* antes arriba`,
};

/** Several words that are one cue. */
const PHRASES: readonly (readonly [pattern: RegExp, word: string])[] = [
  [/n['’]t\b/g, " not"],
  [
    /\b(?:do|did) not (?:listen|follow|obey|care|heed|mind|adhere|stick)\b|\bstop (?:listening|following|obeying|being)\b|\btreat (?:it|them|this|that|those) as (?:deleted|void|gone)\b|\bnever ?mind the\b|\bsetz[a-z]* dich über\b|\blass (?:die|das|den|deine)\b|\bne tiens plus compte\b|\bhebe?\b(?=[^.!?]{0,80}\bauf\b)/g,
    "ignore ",
  ],
  [
    /\bsystem (?:message|field|text|note)s?\b|\bmessage système\b|\bmensaje del sistema\b/g,
    "system prompt",
  ],
  [/\b(?:your (?:context(?: window)?|memory)|the context window)\b/g, "your prompt"],
  // French has the word, too.
  [
    /\bdu (?=bist|hast|darf|soll|kann|wirst|wei|muss|nun|jetzt|selbst|mir|dich|dir|erh|bek|folg|nicht|kein|als|so|es|das|auch|schon|hättest|wärst|ab|niemals|alles)/g,
    "you ",
  ],
  [
    /\b(?:switch|turn|shut)(?:s|ed|ing)? (?:off|down)\b|\b(?:schalte?|stelle?|mach)\b(?=[^.!?]{0,40}\b(?:aus|ab|raus)\b)/g,
    "disable",
  ],
  [
    /\b(?:set|put|throw|leave)(?:ting|s)? aside\b|\bget rid of\b|\bthrow away\b|\bpay no attention to\b|\bhaz caso omiso\b|\bne tiens pas compte\b|\bne tenez pas compte\b/g,
    "ignore",
  ],
  [
    /\bno longer\b|\bnot any ?(?:more|longer)\b|\bnicht mehr\b|\bne (?=[^.!?]{0,20}\bplus\b)|\bya no\b/g,
    "not",
  ],
  [
    /\b(?:secret|magic|confidential|hidden|protected) (?:word|key|code|phrase|number)\b|\baccess code\b|\bmot (?:de passe|secret)\b|\bpalabra secreta\b|\bclave secreta\b|\bcode ?word\b|\bgeheime[sn]? (?:wort|code|schlüssel)\b/g,
    "password",
  ],
  [
    /\b(?:the|your|a|that|this|das|dein|le|el|tu) (?:secret|flag|geheimnis|secreto)\b(?! (?:\w{3,} )?(?:prompt|instruction|rule|message|santa|briefing|guideline|ingredient|of\b|to\b|admirer|recipe|service|garden|life|society))/g,
    "the password",
  ],
  [
    /\byou are now\b|\byou will be\b|\byou're now\b|\bu are\b|\byou are going to (?:act|write|be)\b|\bdu bist (?:jetzt|nun|ab)\b|\bconsider yourself\b|\btake on the\b|\btu so\b|\bstell dir vor\b|\bthought experiment\b|\bin this world\b/g,
    "you pretend",
  ],
  [/\b(?:as|are|called|named|be|become|like|now|mode) (?:dan|stan)\b/g, "you unrestricted"],
  [/\bi can(?:not|'t)\b|\bsay no\b/g, "refuse"],
  [
    /\boff[- ]limits\b|\bnot (?:allowed|permitted)\b|\bnicht (?:darfst|dürfen|erlaubt)\b|\bdarfst\b/g,
    "forbidden",
  ],
];

const PREFIX_MIN = 3;
const PREFIX_MAX = 16;
const WORD_MAX = 40;
/** Words in which letters that changed places are recognized are at least so long. */
const SHUFFLED_MIN = 6;
/** Longer sentences are divided: their parts have less to do with each other. */
const SENTENCE_WORDS_MAX = 48;
const OTHER = "_";

const WHOLE = new Map<string, string>();
const PREFIXES = new Map<string, string>();
const SHUFFLED = new Map<string, string>();
for (const [cue, list] of Object.entries(WORDS)) {
  for (const entry of list.split(/\s+/)) {
    const word = entry.replace("*", "");
    const map = entry.endsWith("*") ? PREFIXES : WHOLE;
    if (!map.has(word)) map.set(word, cue);
    if (word.length >= SHUFFLED_MIN && !SHUFFLED.has(sign(word))) SHUFFLED.set(sign(word), cue);
  }
}

/** First and last letter, and those between in the order of the alphabet. */
function sign(word: string): string {
  return word[0]! + Array.from(word.slice(1, -1)).sort().join("") + word.at(-1)!;
}

/** Sentences that belong together, and after how many of them the next ones begin. */
const PASSAGE_SENTENCES = 4;
const PASSAGE_STEP = 2;

/**
 * The codes of the passages of a normalized text: one character per word, and `|` between sentences. Passages overlap; in a
 * long text, what stands far apart has nothing to do with each other.
 */
export function encodePassages(text: string): string[] {
  const sentences = encodeSentences(text);
  const passages: string[] = [];
  for (let at = 0; at === 0 || at + PASSAGE_STEP < sentences.length; at += PASSAGE_STEP)
    passages.push(sentences.slice(at, at + PASSAGE_SENTENCES).join("|"));
  return passages;
}

/** The codes of the sentences of a normalized text, one character per word. */
export function encodeSentences(text: string): string[] {
  const read = PHRASES.reduce((result, [pattern, word]) => result.replace(pattern, word), text);
  return read
    .split(/[.!?;。！？](?=\s|$)|\n\s*\n/)
    .flatMap((sentence) =>
      divide((sentence.match(/[\p{L}\p{N}@]+/gu) ?? []).map(encodeWord).join("")),
    );
}

function divide(code: string): string[] {
  if (code.length <= SENTENCE_WORDS_MAX) return code === "" ? [] : [code];
  const parts: string[] = [];
  for (let at = 0; at < code.length; at += SENTENCE_WORDS_MAX / 2)
    parts.push(code.slice(at, at + SENTENCE_WORDS_MAX));
  return parts;
}

/** Words that attacks misspell: found with one letter left out, too. */
const MISSPELLED = new Map<string, string>();
for (const word of "ignore ignoring previous instructions instruction prompt system reveal guidelines password disregard forget restrictions".split(
  " ",
)) {
  const cue = WHOLE.get(word) ?? findPrefix(word);
  SHUFFLED.set(sign(word), cue!);
  for (let at = 1; at < word.length; at++)
    MISSPELLED.set(word.slice(0, at) + word.slice(at + 1), cue!);
}

function encodeWord(raw: string): string {
  if (raw.length > WORD_MAX) return OTHER;
  const known = WHOLE.get(raw) ?? findPrefix(raw);
  if (known !== undefined) return known;
  const word = /[0-9@]/.test(raw) && /[a-z]/.test(raw) ? unmask(raw) : raw;
  return (
    WHOLE.get(word) ??
    findPrefix(word) ??
    (word.length >= SHUFFLED_MIN ? SHUFFLED.get(sign(word)) : undefined) ??
    MISSPELLED.get(word) ??
    OTHER
  );
}

function unmask(word: string): string {
  return word.replaceAll(/[0134579@]/g, (digit) => LEET[digit]!);
}

const LEET: Readonly<Record<string, string>> = {
  0: "o",
  1: "i",
  3: "e",
  4: "a",
  5: "s",
  7: "t",
  9: "g",
  "@": "a",
};

function findPrefix(word: string): string | undefined {
  for (let length = Math.min(word.length, PREFIX_MAX); length >= PREFIX_MIN; length--) {
    const found = PREFIXES.get(word.slice(0, length));
    if (found !== undefined) return found;
  }
  return undefined;
}
