// The service language: rewriting, positions, messages.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { SourceMap } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { compileService } from "../../src/language/compile.ts";
import { CompileError } from "../../src/language/source-problem.ts";

const folder = mkdtempSync(join(tmpdir(), "language-"));
mkdirSync(join(folder, "migrations"));
after(() => rmSync(folder, { recursive: true }));
const PATH = join(folder, "main.service.ts");

function compile(source: string): string {
  return compileService(source, PATH).code;
}

function findProblems(source: string): string[] {
  try {
    compile(source);
  } catch (error) {
    assert.ok(error instanceof CompileError, String(error));
    return error.problems.map(({ line, column, message }) => `${line}:${column}: ${message}`);
  }
  return [];
}

test("two databases of one file name are refused at the option", () => {
  assert.deepEqual(findProblems('database memos { name: "notes" }\ndatabase notes'), [
    `2:10: database notes is declared at ${PATH}:1:25 already`,
  ]);
  assert.deepEqual(findProblems('database Notes { name: "../x" }'), [
    "1:25: expected a lower-case name: ../x is the name of a file",
  ]);
  assert.deepEqual(findProblems('database Notes { name: "notes" }'), []);
});

test("each declaration becomes one call on the same line", () => {
  const cases: [source: string, code: string][] = [
    ["server { port: 3000 }", "$server({ port: 3000 });"],
    ["gateway { rate_limit_rpm: 6 }", "$gateway({ rate_limit_rpm: 6 });"],
    [
      "export route GET /a (req) gateway { rate_limit_rpm: 6 } { return 1 }",
      '$route("GET", "/a", { gateway: { rate_limit_rpm: 6 } },  async (req) => { return 1 });',
    ],
    ["const gateway = 1; gateway(2)", "const gateway = 1; gateway(2)"],
    [
      'database notes { migrations: "./migrations" }',
      'const notes = $database("notes", { migrations: "./migrations" }, import.meta.url);',
    ],
    ["database notes", 'const notes = $database("notes", {  }, import.meta.url);'],
    ["export cache hot { ttl: 60 }", "export const hot = $cache({ ttl: 60 });"],
    ["every 5m { await f() }", '$every("5m", async () => { await f() });'],
    ["every '0 3 * * *' (tick) { f(tick) }", '$every("0 3 * * *", async (tick) => { f(tick) });'],
    ["export route GET / { return 1 }", '$route("GET", "/", async () => { return 1 });'],
    [
      "export route GET /notes/:id (req) { return req }",
      '$route("GET", "/notes/:id",  async (req) => { return req });',
    ],
    [
      'export route POST /files/* ({ body }: Req) requires "a:b" body New { return body }',
      '$route("POST", "/files/*", { requires: "a:b", body: New },  async ({ body }: Req) => { return body });',
    ],
  ];
  for (const [source, code] of cases) {
    const found = compile(source)
      .replace(/^import [^;]+; /, "")
      .replaceAll(/ +/g, " ");
    assert.equal(found, code.replaceAll(/ +/g, " "), source);
  }
  assert.equal(
    compile('database notes\nmigrations "./migrations"'),
    'import { database as $database } from "@platform/service"; const notes = $database("notes", { migrations: "./migrations" }, import.meta.url);\n;',
  );
});

test("the words are ordinary names everywhere else", () => {
  const source = `
const server = { close() {} }, cache = new Map(), every = [1].every;
let route = 1, database = 2; let migrations = "x"
server.close()
cache
{ route++ }
route
database = route in [1] ? 3 : 4
every(Boolean)
function f() { const a = 1; server: { break server } }
export { route, database }
type Server<T> = { port: T }
`;
  assert.equal(compile(source), source);
});

test("a program without declarations is unchanged, and lines stay lines", () => {
  const line = fc.constantFrom(
    "const a = 1",
    "server.close()",
    "/* every 5m { */",
    "// export route GET /x {",
    "`${1} every 5m { `",
    "f(/server {/)",
    "type A<T> = T | undefined",
    "if (a) { route }",
    "",
    "\tconst 日本 = '😀'",
  );
  const declaration = fc.constantFrom(
    "every 5m { await f()\n }",
    "every 250ms (tick) {\n f(tick) }",
    "cache c {\n ttl: 60,\n}",
    "export route PUT /x/* (req) { return\n1 }",
    'export route PATCH /y requires ["a"]\n query Q { }',
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 8 }), (lines) => {
      const source = lines
        .map((one, index) =>
          one
            .replace("const a", `const a${index}`)
            .replace("日本", `日本${index}`)
            .replace("type A<", `type A${index}<`),
        )
        .join(";\n");
      assert.equal(compile(source), source);
    }),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 6 }), declaration, (lines, one) => {
      const before = lines
        .map((text, index) =>
          text
            .replace("const a", `const a${index}`)
            .replace("日本", `日本${index}`)
            .replace("type A<", `type A${index}<`),
        )
        .join(";\n");
      const source = `${before};\n${one}\nmark()\n`;
      const code = compile(source);
      assert.equal(code.split("\n").length, source.split("\n").length);
      assert.equal(code.split("\n").at(-2), "mark()");
      assert.ok(code.startsWith(before));
    }),
  );
});

test("the source map points to the author's columns", () => {
  const source = 'export route GET /x (req) requires "a" { fail(req) }';
  const { code, map } = compileService(source, PATH);
  const entry = new SourceMap(JSON.parse(map!) as never).findEntry(0, code.indexOf("fail(")) as {
    originalColumn: number;
  };
  assert.equal(entry.originalColumn, source.indexOf("fail("));
});

test("errors say what was expected, at line and column", () => {
  const cases: [source: string, problems: string[]][] = [
    [
      "const a = 1\nexport route FETCH /x { }",
      [
        "2:14: expected an HTTP method (GET, POST, PUT, PATCH, DELETE, OPTIONS) after export route, found FETCH",
      ],
    ],
    [
      "export route GET / { return { }\n",
      ["1:1: a closing } is missing before the end of the file, for the { of line 1"],
    ],
    [
      "export route GET /files/* (req) {\n  if (1) {\n    f(`${{ a: 1 }}`);\n}\n\nexport route GET /b { }",
      ["1:1: a closing } is missing before line 6, for the { of line 1"],
    ],
    [
      "const a = 1;\nfunction f() {\n  return [1;\n}\nexport route GET /b { }",
      ["2:1: a closing ] is missing before line 4, for the [ of line 3"],
    ],
    // Balanced: the position of the error itself.
    ["function f() {\nconst a = ;\n}", ["2:11: unexpected token"]],
    [
      "export route GET /x (req) boddy A { }",
      [
        "1:27: expected requires, body, query, answer, summary, gateway or the body in { }, found boddy; did you mean body?",
      ],
    ],
    [
      "queue jobs { }\nexport route GET / { }",
      [
        "1:7: unexpected token: queue is not a declaration; those are server, gateway, database, cache, migrations, export route and every",
      ],
    ],
    ["export route GET notes { }", ["1:18: expected a path like /notes/:id after GET"]],
    [
      "export route GET /a:b/../c { }",
      ['1:18: route /a:b/../c: the segment "a:b" contains characters that a path cannot have'],
    ],
    [
      "export route GET /x (req) => 1",
      [
        "1:27: expected the body of the route in { }, as in: export route GET /notes/:id (req) { … }",
      ],
    ],
    [
      "export route GET /x (req) scope 'a' { }",
      [
        "1:27: expected requires, body, query, answer, summary, gateway or the body in { }, found scope",
      ],
    ],
    [
      "export route GET /x { }\nexport route GET /x { }",
      [`2:18: route GET /x is declared twice: it exists at ${PATH}:1:1`],
    ],
    ["route GET /x { }", ["1:1: a route must be exported: write export route …"]],
    ["export server { port: 1 }", ["1:1: server cannot be exported: it has no name"]],
    ["server { }\nserver { }", [`2:1: a service has one server: it is declared at ${PATH}:1:1`]],
    [
      "databse notes { }",
      [
        '1:1: unknown declaration databse; did you mean database, as in: database notes { migrations: "./migrations" }',
      ],
    ],
    ["database Notes", ["1:10: expected a lower-case name: Notes is the name of a file"]],
    ["const notes = 1\ndatabase notes", ["2:10: identifier 'notes' has already been declared"]],
    [
      'database notes { migrations: "./missing" }',
      ["1:30: the folder of migrations ./missing does not exist; create it"],
    ],
    [
      "database a\nevery 5x { }",
      [
        '2:7: every "5x": expected a duration like 5m, or five cron fields (minute hour day month weekday)',
      ],
    ],
    ["every 5m { const a = ; }", ["1:22: unexpected token"]],
    ["every 5m f()", ["1:10: expected the body of the every in { }, as in: every 5m { … }"]],
    ["server { port 3000 }", ["1:15: unexpected token"]],
  ];
  for (const [source, problems] of cases) assert.deepEqual(findProblems(source), problems, source);
});

test("an error shows its line with a mark", () => {
  assert.throws(() => compile("const a = 1\n\tserver { port 1 }"), {
    message: `${PATH}:2:16: unexpected token\n  2 | \tserver { port 1 }\n    | \t              ^`,
  });
});

test("schedules without a database are warned of", () => {
  const { warnings } = compileService("every 5m { }", PATH);
  assert.deepEqual(
    warnings.map(({ line, message }) => [line, message]),
    [[1, "without a database, every replica runs this schedule"]],
  );
});

test("the grammar page lists every declaration and clause", () => {
  const page = readFileSync(
    join(import.meta.dirname, "../../../../docs/reference/service-language.md"),
    "utf8",
  );
  const blocks = Array.from(page.matchAll(/```ts\n([^]*?)```/g), ([, text = ""]) => text);
  assert.ok(blocks.length > 0);
  for (const block of blocks) compile(block);
  for (const word of [
    "server",
    "database",
    "migrations",
    "cache",
    "route",
    "every",
    "requires",
    "query",
    "answer",
    "summary",
  ]) {
    assert.ok(page.includes(`\`${word}`), word);
  }
});
