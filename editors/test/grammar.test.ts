// The grammar of the extension, as the editor reads it: a file is split into tokens by the editor's own engine.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import oniguruma from "vscode-oniguruma";
import textmate, { type IGrammar } from "vscode-textmate";

const GRAMMAR = new URL("../vscode/syntaxes/service.tmLanguage.json", import.meta.url);
/** In place of the editor's grammar of TypeScript: what may contain lines that look like declarations. */
const TYPESCRIPT = {
  scopeName: "source.ts",
  patterns: [
    { name: "comment.block.ts", begin: "/\\*", end: "\\*/" },
    { name: "comment.line.ts", match: "//.*$" },
    { name: "string.template.ts", begin: "`", end: "`" },
    { name: "string.quoted.ts", match: '"[^"]*"' },
    { name: "meta.block.ts", begin: "\\{", end: "\\}", patterns: [{ include: "$self" }] },
  ],
  repository: {},
};

/** Scopes of words, by the text of the token. */
async function tokenize(text: string): Promise<[text: string, scope: string][]> {
  const grammar = await loadGrammar();
  const found: [string, string][] = [];
  let state = textmate.INITIAL;
  for (const line of text.split("\n")) {
    const { tokens, ruleStack } = grammar.tokenizeLine(line, state);
    state = ruleStack;
    for (const { startIndex, endIndex, scopes } of tokens) {
      const scope = scopes.at(-1)!;
      if (scope !== "source.ts.service") {
        found.push([line.slice(startIndex, endIndex), scope]);
      }
    }
  }
  return found;
}

async function loadGrammar(): Promise<IGrammar> {
  const wasm = createRequire(import.meta.url).resolve("vscode-oniguruma/release/onig.wasm");
  await oniguruma.loadWASM(readFileSync(wasm));
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: (name) => {
      const text =
        name === "source.ts" ? JSON.stringify(TYPESCRIPT) : readFileSync(GRAMMAR, "utf8");
      return Promise.resolve(textmate.parseRawGrammar(text, "grammar.json"));
    },
  });
  return (await registry.loadGrammar("source.ts.service"))!;
}

const SOURCE = `server { port: 3000 }
export database notes { migrations: "./m" }
cache hot // bounded
migrations "./more"
every 5m {}
every '0 3 * * *' (tick) {}
export route GET /files/* (req = { a: 1 })
  requires "notes:read"
  body z.object({ a: 1 }) {
  const body = query;
}
server.close()
cache(x)
const text = \`
export route GET /inside {
server {\`
/*
database inside
*/`;

test("declarations are recognized at the start of a line, and not in texts and comments", async () => {
  assert.deepEqual(
    (await tokenize(SOURCE)).filter(([, scope]) => scope.endsWith(".service")),
    [
      ["server", "storage.type.server.service"],
      ["database", "storage.type.store.service"],
      ["cache", "storage.type.store.service"],
      ["migrations", "storage.type.service"],
      ["every", "storage.type.every.service"],
      ["5m", "constant.numeric.duration.service"],
      ["every", "storage.type.service"],
      ["route", "storage.type.route.service"],
      ["GET", "constant.language.method.service"],
      ["/files/*", "string.unquoted.path.service"],
      ["requires", "keyword.other.clause.service"],
      ["body", "keyword.other.clause.service"],
    ],
  );
});

test("an unfinished head does not change the colours of what follows", async () => {
  const tokens = await tokenize('export route GET /a\nevery 5m {}\nexport route PUT /b "x" {}');
  assert.deepEqual(
    tokens.map(([text]) => text),
    [
      "export",
      "route",
      "GET",
      "/a",
      "every",
      "5m",
      "{",
      "}",
      "export",
      "route",
      "PUT",
      "/b",
    ].concat(['"x"', "{", "}"]),
  );
});
