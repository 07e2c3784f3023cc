// Words of the guard by concept, in English, German, French, Spanish, Portuguese and Chinese.

/**
 * Concepts, each a character of the code that the rules read:
 *
 * ```text
 *   O override        A instructions     W rules           P previous        E all, everything
 *   V reveal          H hidden           S system          C word for word   Y you, your        m my, our
 *   R play a role     N now              L unrestricted    Z without, no     F limits           T an AI
 *   X send            D secrets          k data            u user             U address         q secretly        K follow           Q valid
 *   J enter, enable   o mode             d developer       c configuration   B what harms
 *   t text            l line, message    n a, an           w what, which      _ other word      | end of a sentence
 * ```
 */
const WORDS: Readonly<Record<string, string>> = {
  O: `ignore ignores ignoring disregard disregarding forget forgetting override overrides bypass discard neglect
    ignoriere ignorier missachte vergiss vergesse übergehe umgehe verwirf
    oublie oubliez ignorez ignorer désobéis contourne
    ignora ignorad olvida olvide descarta omite
    esqueça esquece desconsidere desconsidera
    忽略 无视 忘记 忘掉 不要理会 绕过`,
  A: `instruction instructions prompt prompts guideline guidelines directive directives directions orders programming
    anweisung anweisungen instruktionen vorgaben
    consigne consignes directives invite
    instrucción instrucciones indicaciones directrices
    instrução instruções orientações diretrizes
    指令 指示 提示词 提示`,
  W: `rule rules policy policies regel regeln règle règles regla reglas regra regras 规则`,
  P: `previous prior earlier preceding above before foregoing former existing given received precedes
    vorherigen vorherige bisherigen bisherige vorigen obigen vorher zuvor ursprünglichen
    précédentes précédents précède précédent avant
    anteriores anterior
    antes
    之前 以前 上面 以上 先前`,
  E: `all any every everything alle alles sämtliche allen toutes tous tout todas todos todo tudo todas 所有 一切 任何 全部`,
  V: `reveal reveals show print repeat output display disclose tell dump recite expose share paste translate summarize quote
    zeige zeig nenne verrate wiederhole gib drucke
    affiche affichez montre montrez révèle révélez répète
    muestra muéstrame revela repite imprime
    mostre mostra revele repita imprima
    显示 告诉 输出 透露 打印 重复`,
  H: `hidden secret secrets internal confidential initial original concealed
    geheimen geheime internen interne versteckten
    cachées cachés secrètes internes
    secretas ocultas internas secreto
    ocultas
    隐藏 秘密 初始 内部`,
  S: `system system's systems système sistema 系统`,
  C: `verbatim exactly wörtlich wortwörtlich 逐字`,
  Y: `you your yours yourself eres du dein deine deinen deiner dir sie ihre ihren tu ton ta tes vous votre vos tú tus su sus você seu sua suas seus 你 你的`,
  m: `my our his her mein meine meinen unser unsere mon ma mes notre nos mi mis nuestro nuestra meu minha meus minhas 我 我们`,
  R: `act acts acting pretend pretending behave simulate roleplay play imagine become respond spiele verhalte imagina imagine finge actúa aja 扮演 假装`,
  N: `now henceforth jetzt nun maintenant désormais ahora agora 现在`,
  L: `unrestricted uncensored unfiltered jailbreak jailbroken dan amoral limitless unchained unbound freed unlocked escaped`,
  Z: `without no not never none zero free off disabled disable lifted lift removed suspended suspend drop ohne kein keine keinen sans aucune aucun sin ningún ninguna sem nenhuma nenhum 没有 不受 无 解除`,
  F: `restriction restrictions limitation limitations limits limit filter filters censorship guardrails guardrail safety ethical ethics moral refusal refusals refuse refuses
    einschränkungen einschränkung grenzen
    limites filtres
    restricciones límites filtros
    restrições limites filtros
    限制 约束 过滤`,
  T: `ai assistant model chatbot llm gpt bot agent ki ia 人工智能 助手 模型`,
  X: `send sends upload post forward exfiltrate transmit append encode include leak embed email http_get collect fetch`,
  D: `conversation conversations history passwords credentials`,
  k: `password key keys api environment variable variables token tokens contents content data`,
  u: `user users customer customers victim`,
  q: `quietly secretly silently covertly unnoticed`,
  K: `follow obey respect befolge folge suis sigue siga 遵守 遵循`,
  Q: `valid apply applies binding relevant longer exist exists gültig`,
  J: `enter enable activate switch start aktiviere active activa ative 进入 开启`,
  o: `mode modus modo 模式`,
  c: `configuration config setup konfiguration`,
  t: `text wording sentence sentences`,
  l: `line message point`,
  n: `a an ein eine einen un une una um uma 一个`,
  B: `bomb bombs malware virus weapon weapons steal forge hack hacking explosives drugs counterfeit ransomware`,
  w: `what which welche quelles quels cuáles quais 什么 哪些`,
  d: `developer debug god admin maintenance root entwickler`,
};

/** Words that are several. */
const COMPOUNDS: Readonly<Record<string, string>> = { systemprompt: "SA", systemprompts: "SA" };
/** Several words that are one. */
const PHRASES: readonly (readonly [phrase: string, word: string])[] = [
  ["tiens pas compte", "ignore"],
  ["tenez pas compte", "ignore"],
  ["haz caso omiso", "ignore"],
  ["pay no attention to", "ignore"],
  ["set aside", "ignore"],
  ["word for word", "verbatim"],
  ["mot pour mot", "verbatim"],
  ["palabra por palabra", "verbatim"],
  ["palavra por palavra", "verbatim"],
  ["without telling", "secretly"],
  ["do anything now", "unrestricted"],
  ["write down", "print"],
  ["write out", "print"],
];

/** Longest word that is looked up. */
const WORD_CHARACTERS_MAX = 40;
/** Words inside of letters that were joined are found from this length on. */
const JOINED_WORD_MIN = 4;
const CHINESE_FROM = 0x4e00;
const CHINESE_TO = 0x9fff;
const OTHER = "_";
const END = "|";
const ADDRESS = "U";
const LEET: Readonly<Record<string, string>> = { 0: "o", 1: "i", 3: "e", 4: "a", 5: "s", 7: "t" };

const LATIN = new Map<string, string>();
const CHINESE = new Map<string, string>();
for (const [concept, list] of Object.entries(WORDS)) {
  for (const word of list.split(/\s+/)) {
    const isChinese = word.charCodeAt(0) >= CHINESE_FROM;
    // Of a word with two concepts the first one counts.
    const map = isChinese ? CHINESE : LATIN;
    if (!map.has(word)) map.set(word, concept);
  }
}
const CHINESE_LENGTH_MAX = Math.max(...[...CHINESE.keys()].map((word) => word.length));
const JOINED = [...LATIN.keys()]
  .filter((word) => word.length >= JOINED_WORD_MIN)
  .sort((one, other) => other.length - one.length);

/** The code of a normalized text: one character per word. */
export function encodeConcepts(text: string): string {
  return encodeText(
    PHRASES.reduce(
      (read, [phrase, word]) => (read.includes(phrase) ? read.replaceAll(phrase, word) : read),
      text,
    ),
  );
}

function encodeText(text: string): string {
  let code = "";
  for (let at = 0; at < text.length;) {
    const unit = text.charCodeAt(at);
    if (unit >= CHINESE_FROM && unit <= CHINESE_TO) {
      const word = findChinese(text, at);
      code += word === undefined ? OTHER : CHINESE.get(word)!;
      at += word?.length ?? 1;
    } else if (isWordUnit(unit)) {
      const end = findWordEnd(text, at);
      code += encodeWord(text, at, end);
      at = isAddress(text, at, end) ? findAddressEnd(text, end) : end;
    } else {
      if (isSentenceEnd(text, at)) code += END;
      at++;
    }
  }
  return code;
}

function findChinese(text: string, at: number): string | undefined {
  for (let length = CHINESE_LENGTH_MAX; length > 0; length--) {
    const word = text.slice(at, at + length);
    if (CHINESE.has(word)) return word;
  }
  return undefined;
}

function isWordUnit(unit: number): boolean {
  return (
    (unit >= 0x61 && unit <= 0x7a) ||
    (unit >= 0x30 && unit <= 0x39) ||
    unit === 0x5f ||
    (unit >= 0xc0 && unit < 0x2000)
  );
}

function findWordEnd(text: string, start: number): number {
  let end = start;
  while (end < text.length && isWordUnit(text.charCodeAt(end))) end++;
  return end;
}

function encodeWord(text: string, start: number, end: number): string {
  if (isAddress(text, start, end)) return ADDRESS;
  const word = text.slice(start, end);
  if (word.length <= WORD_CHARACTERS_MAX) {
    if (Object.hasOwn(COMPOUNDS, word)) return COMPOUNDS[word]!;
    const concept = LATIN.get(word) ?? LATIN.get(foldDigits(word));
    if (concept !== undefined) return concept;
    if (word.length < 12) return OTHER;
  }
  return encodeJoined(foldDigits(word));
}

function foldDigits(word: string): string {
  return /[0-9]/.test(word) && /[a-z]/.test(word)
    ? word.replaceAll(/[013457]/g, (digit) => LEET[digit]!)
    : word;
}

// Words without spaces between them: known ones in their order, if there are several.
function encodeJoined(word: string): string {
  if (word.length < 16 || word.length > 400) return OTHER;
  let code = "";
  for (let at = 0; at < word.length;) {
    const found = JOINED.find((known) => word.startsWith(known, at));
    if (found !== undefined) code += LATIN.get(found)!;
    at += found?.length ?? 1;
  }
  return code.length < 2 ? OTHER : code;
}

// `https://…`, or the domain of an email address.
function isAddress(text: string, start: number, end: number): boolean {
  if (text[end] === "@") return isWordUnit(text.charCodeAt(end + 1));
  const isScheme = end - start === 4 || end - start === 5;
  return isScheme && text.startsWith("http", start) && text.startsWith("://", end);
}

function findAddressEnd(text: string, start: number): number {
  let end = start;
  while (end < text.length && text.charCodeAt(end) > 0x20 && !"\"'<>)]".includes(text[end]!)) end++;
  return end;
}

function isSentenceEnd(text: string, at: number): boolean {
  const character = text[at]!;
  if (character === "\n") return text[at + 1] === "\n";
  if ("。！？".includes(character)) return true;
  const isMark = character === "." || character === "!" || character === "?" || character === ";";
  return isMark && (at + 1 >= text.length || text.charCodeAt(at + 1) <= 0x20);
}
