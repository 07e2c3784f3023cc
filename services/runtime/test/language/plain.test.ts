// Conversion to plain TypeScript: the same program as the compiled one, under readable names, in the author's text.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { tsPlugin } from "@sveltejs/acorn-typescript";
import { Parser } from "acorn";
import { compileService } from "../../src/language/compile.ts";
import { convertToPlain } from "../../src/language/plain.ts";
import { CompileError } from "../../src/language/source-problem.ts";

const EXAMPLE = new URL("../../../../examples/notes/main.service.ts", import.meta.url);
/** Existing folder of migrations, relative to the working directory. */
const PATH = "examples/notes/main.service.ts";
const PACKAGE_IMPORT = /import \{[^}]*\} from "@platform\/service";/g;
const TypeScriptParser = Parser.extend(tsPlugin());

function convert(source: string): string {
  return convertToPlain(source, PATH);
}

function findProblem(source: string): string {
  try {
    convert(source);
  } catch (error) {
    assert.ok(error instanceof CompileError, String(error));
    const [{ line, column, message }] = error.problems as [CompileError["problems"][number]];
    return `${line}:${column}: ${message}`;
  }
  return "";
}

/** The tree of a program without positions, imports of the package, and empty statements. */
function readProgram(text: string): unknown {
  const code = text.replaceAll(PACKAGE_IMPORT, "").replaceAll(/\$(?=[a-z]+\()/g, "");
  const options = { ecmaVersion: "latest", sourceType: "module", locations: true } as const;
  const { body } = TypeScriptParser.parse(code, options);
  const skipped = new Set(["start", "end", "loc", "raw"]);
  return JSON.parse(
    JSON.stringify(
      body.filter(({ type }) => type !== "EmptyStatement"),
      (key, value: unknown) => (skipped.has(key) ? undefined : value),
    ),
  );
}

test("a converted file is the compiled program", () => {
  const sources = [
    readFileSync(EXAMPLE, "utf8"),
    'export route GET /a/:id (req) // why\n  requires "a" /* scope */\n  summary "x" { return req }\nexport route POST /b/* body "bytes" { }\n',
    "database notes\nmigrations \"./migrations\"\ncache hot { }\nevery '0 3 * * *' (tick) { await tick }\nserver { }",
    "gateway { rate_limit_rpm: 6 }\nexport route GET /a gateway { cors: { origins: ['*'] } } { return 1 }",
    'database notes { name: "memos" }\nmigrations "./migrations"\n;[1].at(0)',
    'database notes { name: "memos" }\nconst a = b\nmigrations "./migrations"\n(a)',
  ];
  for (const source of sources) {
    assert.deepEqual(
      readProgram(convert(source)),
      readProgram(compileService(source, PATH).code),
      source,
    );
  }
});

test("lines, comments and line breaks stay", () => {
  const source = `#!/usr/bin/env node
// About the file.

// The port.
server { port: 3000 };
database notes // one
export cache hot { ttl: 60 }

every 5m /* often */ { hot.get("a") } // end
`;
  const plain = `#!/usr/bin/env node
// About the file.
import { cache, database, every, server } from "@platform/service";

// The port.
server({ port: 3000 });
const notes = database("notes"); // one
export const hot = cache({ ttl: 60 });

every("5m", /* often */ async () => { hot.get("a") }); // end
`;
  assert.equal(convert(source), plain);
  const withReturns = (text: string): string => text.replaceAll("\n", "\r\n");
  assert.equal(convert(withReturns(source)), withReturns(plain));
});

test("the functions join the author's import, in its order", () => {
  const head = (source: string): string => convert(`${source}\nserver { }\n`).split("\nserver")[0]!;
  const from = 'from "@platform/service";';
  assert.equal(
    head(`import { auth, HttpError } ${from}`),
    `import { auth, HttpError, server } ${from}`,
  );
  assert.equal(
    head(`import { HttpError, auth } ${from}`),
    `import { HttpError, auth, server } ${from}`,
  );
  assert.equal(
    head(`import {\n  auth, // a\n  mail,\n} ${from}`),
    `import {\n  auth, // a\n  mail,\n  server,\n} ${from}`,
  );
  assert.equal(
    head(`// File.\nimport type { Row } ${from}`),
    `// File.\nimport { server } ${from}\nimport type { Row } ${from}`,
  );
  assert.equal(
    convert(`import { server as start } ${from}\nserver { }\n`),
    `import { server as start } ${from}\nstart({ });\n`,
  );
});

test("names of the file are not taken; without a readable name the file is refused", () => {
  assert.equal(
    convert("const { a: route } = { a: 1 };\nexport route GET / { return route }\n"),
    'import { route as declareRoute } from "@platform/service";\n\nconst { a: route } = { a: 1 };\ndeclareRoute("GET", "/", async () => { return route });\n',
  );
  assert.equal(
    findProblem("class route {}\nfunction declareRoute() {}\nexport route GET / { }\n"),
    "3:1: route and declareRoute are names of this file; rename one of them first",
  );
  assert.equal(
    findProblem("if (true) { var every = 1 }\nevery 5m { }\n"),
    `1:1: ${PATH} cannot be converted: identifier 'every' has already been declared`,
  );
});

test("a file with a syntax error, and one without declarations, are refused", () => {
  assert.equal(findProblem("server { port 1 }"), "1:15: unexpected token");
  assert.equal(
    findProblem(convert("server { }")),
    "1:1: the file has no declarations: it is plain already",
  );
});
