// Suggestions of the language itself: the words that begin declarations, methods, and clauses.
import { CLAUSE_NAMES } from "../language/declaration.ts";
import type { Analysis } from "./document.ts";
import type { CompletionItem } from "./protocol.ts";

/** Suggestions, and whether they are all that is possible there. */
export interface WordCompletions {
  readonly items: readonly CompletionItem[];
  readonly isExclusive: boolean;
}

const KEYWORD = 14;
const SNIPPET = 2;
const TOP_LEVEL = /^(export[ \t]+)?[a-z]*$/;
const METHOD = /^export[ \t]+route[ \t]+[A-Za-z]*$/;
const HEAD = /^export[ \t]+route[ \t]+[A-Za-z]+[ \t]+\/[^\s({]*[ \t]*(?:\([^)]*\)[ \t]*)?/;
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/** A declaration by a call: a plain file has no words. */
const PLAIN_CALL =
  /^(?:(?:server|route|every)\(|(?:export[ \t]+)?const[ \t]+[\w$]+[ \t]*=[ \t]*(?:database|cache)\()/m;

/** Words by what is written, the text after the word, and the same for editors with snippets. */
const DECLARATIONS = [
  { word: "server", plain: "server { port: 3000 }", snippet: "server { port: ${1:3000} }" },
  {
    word: "gateway",
    plain: "gateway { rate_limit_rpm: 60 }",
    snippet: "gateway { rate_limit_rpm: ${1:60} }",
  },
  {
    word: "database",
    plain: 'database notes { migrations: "./migrations" }',
    snippet: 'database ${1:notes} { migrations: "${2:./migrations}" }',
    exported: true,
  },
  {
    word: "migrations",
    plain: 'migrations "./migrations"',
    snippet: 'migrations "${1:./migrations}"',
  },
  {
    word: "cache",
    plain: "cache hot { ttl: 60 }",
    snippet: "cache ${1:hot} { ttl: ${2:60} }",
    exported: true,
  },
  {
    word: "route",
    plain: "route GET / (req) {}",
    snippet: "route ${1|GET,POST,PUT,PATCH,DELETE|} ${2:/} (${3:req}) {\n\t$0\n}",
    exported: true,
  },
  { word: "every", plain: "every 5m {}", snippet: "every ${1:5m} {\n\t$0\n}" },
];

const CLAUSES: Readonly<Record<(typeof CLAUSE_NAMES)[number], string>> = {
  requires: "a scope that callers must have",
  body: "the schema of the body",
  query: "the schema of the query",
  answer: "the schema of the answer, for the documentation",
  summary: "one line for the documentation",
  gateway: "rules of the gateway for requests of the route",
};

/** Suggestions at an offset; undefined in the author's TypeScript. */
export function completeWords(
  analysis: Analysis,
  offset: number,
  hasSnippets: boolean,
): WordCompletions | undefined {
  const { source, declarations } = analysis;
  if (declarations.length === 0 && PLAIN_CALL.test(source)) return undefined;
  const lineStart = source.lastIndexOf("\n", offset - 1) + 1;
  const before = source.slice(lineStart, offset);
  const isInside = declarations.some(({ start, end }) => start < lineStart && offset < end);
  if (isInside && !isInHead(analysis, offset)) return undefined;
  if (METHOD.test(before)) return { items: METHODS.map(createKeyword), isExclusive: true };
  const head = HEAD.exec(before)?.[0];
  if (head !== undefined || isInHead(analysis, offset)) {
    const written = head === undefined ? before : before.slice(head.length);
    if (!/^(?:[^{]*\s)?[a-z]*$/.test(written)) return undefined;
    const items = CLAUSE_NAMES.filter((name) => !new RegExp(`\\b${name}\\s`).test(before)).map(
      (name) => ({ ...createKeyword(name), detail: CLAUSES[name] }),
    );
    return { items, isExclusive: true };
  }
  const top = TOP_LEVEL.exec(before);
  if (top === null) return undefined;
  return { items: listDeclarations(top[1] !== undefined, hasSnippets), isExclusive: false };
}

/** True between the parameters of a route and its body, outside the values of clauses. */
function isInHead({ declarations }: Analysis, offset: number): boolean {
  return declarations.some((one) => {
    if (one.kind !== "route" || one.parameters === undefined) return false;
    const isInValue = one.clauses.some(({ value }) => value.start <= offset && offset <= value.end);
    return one.parameters.end < offset && offset <= one.body.start && !isInValue;
  });
}

function listDeclarations(isExported: boolean, hasSnippets: boolean): CompletionItem[] {
  const possible = DECLARATIONS.filter(({ exported = false }) => exported || !isExported);
  return possible.map(({ word, plain, snippet }) => {
    const isRoute = word === "route" && !isExported;
    const prefix = isRoute ? "export " : "";
    return {
      ...createKeyword(`${prefix}${word}`),
      detail: plain,
      filterText: isRoute ? "route export" : word,
      sortText: "0",
      ...(hasSnippets
        ? { insertText: prefix + snippet, insertTextFormat: SNIPPET }
        : { insertText: prefix + plain }),
    };
  });
}

function createKeyword(label: string): CompletionItem {
  return { label, kind: KEYWORD };
}
