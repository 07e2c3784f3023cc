// The grammar of plain questions: patterns of words, each of which adds to the meaning. Words that no pattern uses are a text.
import { KINDS } from "../kinds.ts";
import type { Interpretation, ResultOrder } from "./interpretation.ts";
import { READERS } from "./values.ts";
import { type Values, WordList } from "./words.ts";

const LIMIT_MAX = 1_000;
const LIST_DEFAULT = 10;
const DAY_MS = 86_400_000;

type Condition = Readonly<Record<string, unknown>>;

/** The meaning under construction. */
class Draft {
  readonly nowMs: number;
  readonly conditions: Condition[] = [];
  order: ResultOrder | undefined;
  limit: number | undefined;
  aggregate: Interpretation["aggregate"];
  similar: string | undefined;

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }

  add(condition: Condition): void {
    this.conditions.push(condition);
  }

  since(ms: number, untilMs?: number): void {
    const until = untilMs === undefined ? {} : { $lt: formatTime(untilMs) };
    this.add({ last_modified: { $gte: formatTime(ms), ...until } });
  }

  before(ms: number): void {
    this.add({ last_modified: { $lt: formatTime(ms) } });
  }
}

interface Rule {
  readonly patterns: readonly string[];
  readonly apply: (draft: Draft, values: Values) => void;
  /** Applied for each match. */
  readonly repeats?: boolean;
}

const CHANGED = "modified|changed|uploaded|updated|created|added|touched";
const MORE = "larger|bigger|greater|more|heavier";
const LESS = "smaller|less|lighter|fewer";
const NAME = "name|names|key|keys|filename|filenames";

/** Rules in their order: those with more words come before those that would take a part of them. */
const RULES: readonly Rule[] = [
  {
    patterns: [
      "similar to $key",
      "named? resembles|resembling $key",
      "looks|look like $key",
      "files|objects|things|documents like $key",
      "like $key",
    ],
    apply: (draft, { key }) => (draft.similar = String(key)),
  },
  {
    patterns: [
      "without|lacking|missing a|the|any? tag|tags named|called? $word",
      "has|have|having|with no tag|tags named|called? $word",
      "with|has|have|having no $word tag|tags",
      "without|lacking a|the|any? $word tag|tags",
      "not tagged with? $word",
    ],
    apply: (draft, { word }) => draft.add({ [`tags.${word}`]: { $exists: false } }),
    repeats: true,
  },
  {
    patterns: [
      "where|whose|with|having|has? the? tag $word =|:|is|equals|equal to? $word",
      "with|having|has? the|a? tag $word $word",
      "tagged with|as? $word =|:|is $word",
    ],
    apply: (draft, { word, word2 }) => draft.add({ [`tags.${word2}`]: String(word) }),
    repeats: true,
  },
  {
    patterns: [
      "where|with|whose|having|has? the? metadata field|entry? $word =|:|is|equals|equal to? $word",
    ],
    apply: (draft, { word, word2 }) =>
      draft.add({ [`metadata.${String(word2).toLowerCase()}`]: String(word) }),
    repeats: true,
  },
  {
    patterns: ["with|in|of? storage class =|:|is? $class", "class|stored|kept as|=|:? $class"],
    apply: (draft, { class: name }) => draft.add({ storage_class: String(name) }),
  },
  {
    patterns: [
      `named|called like? $quoted`,
      `with|having? $quoted in|inside the|its|their? ${NAME}`,
      `with|having? $word in the|its|their ${NAME}`,
      `whose|where? the? ${NAME} contains|contain|containing|includes|include|including $word`,
      "named|called like? $word",
      "containing|contains $quoted",
    ],
    apply: (draft, { word, quoted }) =>
      draft.add({ key: { $contains: String(word ?? quoted).toLowerCase() } }),
    repeats: true,
  },
  {
    patterns: [
      "in|inside|under|below|within|of|from? the? folder|directory|prefix|path $folder",
      "in|inside|under|below|within|from $path",
    ],
    apply: (draft, { folder, path }) => draft.add({ prefix: String(folder ?? path) }),
  },
  {
    patterns: [
      "of|with? zero byte|bytes",
      "zero-byte|empty",
      "of|with? 0 bytes|byte",
      "with? no content|contents",
    ],
    apply: (draft) => draft.add({ size: 0 }),
  },
  {
    patterns: [
      "sizes|size|of|with|is? between $size and $size in? size?",
      "sizes|size|of|with|is? between $number and $size in? size?",
      "sizes|size|of|with? from? $size to|- $size in? size?",
      "sizes|size|of|with? from? $number to|- $size in? size?",
    ],
    apply: (draft, { size, size2, number }) => {
      const [high, low] =
        size2 === undefined
          ? [Number(size), scaleLike(Number(number), Number(size))]
          : [Number(size), Number(size2)];
      draft.add({ size: { $gte: Math.min(low, high), $lte: Math.max(low, high) } });
    },
  },
  {
    patterns: [
      `that|which? are|is? ${MORE} than $size in? size?`,
      "with? size|sizes? over|above|exceeding|beyond|> $size in? size?",
    ],
    apply: (draft, { size }) => draft.add({ size: { $gt: Number(size) } }),
  },
  {
    patterns: [
      `that|which? are|is? ${LESS} than $size in? size?`,
      "with? size|sizes? under|below|< $size in? size?",
    ],
    apply: (draft, { size }) => draft.add({ size: { $lt: Number(size) } }),
  },
  {
    patterns: ["of|with? at least $size", "from $size up|upwards"],
    apply: (draft, { size }) => draft.add({ size: { $gte: Number(size) } }),
  },
  {
    patterns: ["of|with? at most $size", "up to $size"],
    apply: (draft, { size }) => draft.add({ size: { $lte: Number(size) } }),
  },
  {
    patterns: [
      `not|never|un${CHANGED.split("|")[1]} ${CHANGED} in|for|within the? last|past? $period`,
      "unchanged|unmodified|untouched for|in|since the? last|past? $period",
      "that|which? are|is? more than $period old",
      "that|which? are|is? older than $period",
    ],
    apply: (draft, { period }) => draft.before(draft.nowMs - Number(period)),
  },
  {
    patterns: [
      `${CHANGED}? from|in|within|during|over? the? last|past|previous $period`,
      "younger|newer than $period",
    ],
    apply: (draft, { period }) => draft.since(draft.nowMs - Number(period)),
  },
  {
    patterns: [
      `last? ${CHANGED}? earlier|older than|before the? $date`,
      `last? ${CHANGED}? before|until the? $date`,
    ],
    apply: (draft, { date }) => draft.before(Number(date)),
  },
  {
    patterns: [`${CHANGED}? since|from the? $date`],
    apply: (draft, { date }) => draft.since(Number(date)),
  },
  {
    patterns: [`${CHANGED}? after|later than? the? $date`],
    apply: (draft, { date }) => draft.since(Number(date) + DAY_MS),
  },
  {
    patterns: [`${CHANGED}? on|of the? $date`],
    apply: (draft, { date }) => draft.since(Number(date), Number(date) + DAY_MS),
  },
  {
    patterns: [`${CHANGED}? in|from|of|during $span`],
    apply: (draft, { span }) => {
      const [from = 0, to = 0] = String(span).split(" ").map(Number);
      draft.since(from, to);
    },
  },
  {
    patterns: [`${CHANGED}? from|on|since? yesterday`],
    apply: (draft) => {
      const today = startOfDay(draft.nowMs);
      draft.since(today - DAY_MS, today);
    },
  },
  {
    patterns: [`${CHANGED}? from|on|since? today`],
    apply: (draft) => draft.since(startOfDay(draft.nowMs)),
  },
  {
    patterns: [`${CHANGED}? from|in|during|of? this week`],
    apply: (draft) =>
      draft.since(startOfDay(draft.nowMs) - ((new Date(draft.nowMs).getUTCDay() + 6) % 7) * DAY_MS),
  },
  {
    patterns: [`${CHANGED}? from|in|during|of? this month`],
    apply: (draft) => {
      const now = new Date(draft.nowMs);
      draft.since(Date.UTC(now.getUTCFullYear(), now.getUTCMonth()));
    },
  },
  {
    patterns: [`${CHANGED}? from|in|during|of? this year`],
    apply: (draft) => draft.since(Date.UTC(new Date(draft.nowMs).getUTCFullYear(), 0)),
  },
  {
    patterns: ["how many", "count of? all? the?", "the? number of"],
    apply: (draft) => (draft.aggregate = "count"),
  },
  {
    patterns: [
      "the? total|overall|combined size|volume of? all? the?",
      "the? sum of the? sizes|size of? all? the?",
      "how much space|storage|room do|does|is? the?",
      "how big|large are|is the?",
      "how many bytes",
    ],
    apply: (draft) => (draft.aggregate = "size"),
  },
  ...createOrderRules("largest|biggest|heaviest", { by: "size", direction: "desc" }),
  ...createOrderRules("smallest|tiniest", { by: "size", direction: "asc" }),
  ...createOrderRules("newest|latest|recent", { by: "last_modified", direction: "desc" }),
  ...createOrderRules("oldest|earliest", { by: "last_modified", direction: "asc" }),
  {
    patterns: ["top $number files|objects? by|in size", "top $number"],
    apply: (draft, { number }) =>
      setOrder(draft, { by: "size", direction: "desc" }, Number(number)),
  },
  {
    patterns: ["last $number uploads|upload|files|objects|changes"],
    apply: (draft, { number }) =>
      setOrder(draft, { by: "last_modified", direction: "desc" }, Number(number)),
  },
  {
    patterns: ["first uploaded|created|added"],
    apply: (draft) => setOrder(draft, { by: "last_modified", direction: "asc" }, 1),
  },
  {
    patterns: [
      "ending|ends|end in|with $suffix",
      "with|having? the? extension|suffix|ending|extensions $word",
      "all? $suffix",
    ],
    apply: (draft, { suffix, word }) =>
      draft.add({
        extension: String(suffix ?? word)
          .toLowerCase()
          .replace(/^\*?\./, ""),
      }),
  },
  {
    patterns: [
      "except|excluding|but not|no|without? all|the|any? $kind files|file?",
      "everything|all|anything? other than|besides $kind files|file?",
      "that|which? are|is? not|no $kind files|file?",
      "but? no|without $kind files|file?",
    ],
    apply: (draft, { kind }) => draft.add({ $not: toKind(String(kind)) }),
    repeats: true,
  },
  {
    patterns: ["$kind files|file? or|and $kind files|file?"],
    apply: (draft, { kind, kind2 }) =>
      draft.add({ $or: [toKind(String(kind2)), toKind(String(kind))] }),
  },
  {
    patterns: ["all? $kind documents|document|files|file?"],
    apply: (draft, { kind }) => draft.add(toKind(String(kind))),
  },
];

/** Words that add nothing to a text. */
const FILLERS: ReadonlySet<string> = new Set(
  (
    "a about all an and any anything are as at be bucket but by can could did do does every everything exist exists file files find for " +
    "from get give had has have having how i in is it its list me my named need object objects of on or our please search see show " +
    "size something stored that the their them there these thing things this those to total upload uploaded uploads use used uses want was " +
    "we were what when where which who whose why will with within would you changed modified last called contents content in"
  ).split(" "),
);

/** Names of kinds in questions. Values with a dot are extensions. */
const KIND_WORDS: ReadonlyMap<string, string> = new Map(
  [
    ["image", "image images picture pictures photo photos photograph photographs graphic graphics"],
    ["video", "video videos movie movies film films clip clips"],
    ["audio", "audio audios song songs music sound sounds recording recordings"],
    ["document", "document documents"],
    ["spreadsheet", "spreadsheet spreadsheets"],
    ["presentation", "presentation presentations slides"],
    ["archive", "archive archives"],
    ["code", "source sources script scripts"],
    [".pdf", "pdf pdfs"],
    [".csv", "csv csvs"],
    [".json", "json"],
    [".zip", "zip zips"],
    [".xml", "xml"],
    [".txt", "txt"],
    [".md", "markdown"],
    [".log", "logs"],
    [".parquet", "parquet"],
    [".png", "png pngs"],
    [".jpg", "jpg jpgs"],
    [".jpeg", "jpeg jpegs"],
    [".gif", "gif gifs"],
    [".svg", "svg svgs"],
    [".mp4", "mp4 mp4s"],
    [".mp3", "mp3 mp3s"],
    [".docx", "docx"],
    [".xlsx", "xlsx"],
  ].flatMap(([kind, words]) => words!.split(" ").map((word) => [word, kind!] as const)),
);

const CLASSES: ReadonlySet<string> = new Set([
  "STANDARD",
  "REDUCED_REDUNDANCY",
  "STANDARD_IA",
  "GLACIER_IR",
  "ONEZONE_IA",
  "INTELLIGENT_TIERING",
]);

const GRAMMAR_READERS = {
  ...READERS,
  kind: ((words, at) => {
    const kind = words[at]?.isQuoted === true ? undefined : KIND_WORDS.get(words[at]?.text ?? "");
    return kind === undefined ? undefined : { value: kind, length: 1 };
  }) satisfies (typeof READERS)[string],
  class: ((words, at) => {
    const name = words[at]?.written.toUpperCase() ?? "";
    return CLASSES.has(name) ? { value: name, length: 1 } : undefined;
  }) satisfies (typeof READERS)[string],
};

/** Interprets a question at a time. Each text has a meaning; words that no rule knows are its text. */
export function interpretQuestion(question: string, nowMs: number): Interpretation {
  const words = new WordList(question, GRAMMAR_READERS);
  const draft = new Draft(nowMs);
  for (const { patterns, apply, repeats = false } of RULES) {
    for (
      let values = words.takeAny(patterns);
      values !== undefined;
      values = words.takeAny(patterns)
    ) {
      apply(draft, values);
      if (!repeats) break;
    }
  }
  const text = words.rest
    .filter(
      ({ text: one, isQuoted }) => isQuoted || (!FILLERS.has(one) && /[\p{L}\p{N}]/u.test(one)),
    )
    .map(({ written }) => written)
    .join(" ");
  return build(draft, text);
}

function build(draft: Draft, text: string): Interpretation {
  const { conditions, order, limit, aggregate, similar } = draft;
  const [first = {}] = conditions;
  return {
    filters: conditions.length > 1 ? { $and: conditions } : first,
    ...(order === undefined ? {} : { order }),
    ...(limit === undefined ? {} : { limit }),
    ...(aggregate === undefined ? {} : { aggregate }),
    ...(similar === undefined ? {} : { similar }),
    ...(text === "" ? {} : { text }),
  };
}

function createOrderRules(words: string, order: ResultOrder): Rule[] {
  return [
    {
      patterns: [`the? $number most? ${words}`, `the? most? ${words} $number`],
      apply: (draft, { number }) => setOrder(draft, order, Number(number)),
    },
    // "The largest files" are some, "the largest file" is one.
    {
      patterns: [`the? most? ${words} files|objects|ones|uploads|items`],
      apply: (draft) => setOrder(draft, order, LIST_DEFAULT),
    },
    { patterns: [`the? most? ${words}`], apply: (draft) => setOrder(draft, order, 1) },
  ];
}

function setOrder(draft: Draft, order: ResultOrder, limit: number): void {
  if (draft.order !== undefined) return;
  draft.order = order;
  draft.limit = Math.min(Math.max(1, limit), LIMIT_MAX);
}

function toKind(kind: string): Condition {
  if (kind.startsWith(".")) return { extension: kind.slice(1) };
  return KINDS.has(kind) ? { kind } : {};
}

// In "1 to 5 MB", the unit is that of both.
function scaleLike(number: number, size: number): number {
  const unit = 1000 ** Math.floor(Math.log10(Math.max(1, size)) / 3);
  return number * unit;
}

function startOfDay(ms: number): number {
  return Math.floor(ms / DAY_MS) * DAY_MS;
}

function formatTime(ms: number): string {
  return new Date(ms).toISOString();
}
