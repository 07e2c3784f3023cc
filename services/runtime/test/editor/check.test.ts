// `platform check` on projects: all files, and those of the plain API.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { runPlatform } from "../fixture/run-process.ts";

const root = mkdtempSync(join(tmpdir(), "check-"));
after(() => rmSync(root, { recursive: true }));
const TABLE = "create table notes (id integer primary key, text text not null);";

/** Writes a project with a table `notes`. */
function createProject(name: string, files: Record<string, string>): string {
  const folder = join(root, name);
  mkdirSync(join(folder, "migrations"), { recursive: true });
  writeFileSync(join(folder, "migrations/0001-notes.sql"), TABLE);
  for (const [path, text] of Object.entries(files)) writeFileSync(join(folder, path), text);
  return folder;
}

/** The lines with positions. */
function listPlaces(text: string): string[] {
  return text.split("\n").filter((line) => /^[\w.-]+:\d+:\d+: /.test(line));
}

test("declarations by function call have checked statements and types of rows", () => {
  const folder = createProject("plain", {
    "main.service.ts": `import { database as open, route } from "@platform/service";
export const notes = open("notes", { migrations: "./migrations" }, import.meta.url);
route("GET", "/a", () => notes.all\`select * from nodes\`);
route("GET", "/b", async () => {
  const note = await notes.one\`select id, text from notes\`;
  return note?.txet;
});
`,
    "store.ts": `import { database } from "@platform/service";
const stored = database("stored", { migrations: "./migrations" }, import.meta.url);
export const read = () => stored.all\`select txet from notes\`;
`,
    "other.ts":
      "function database(name: string) { return { all: String.raw, name }; }\nconst notes = database('a');\nexport const text = notes.all`select * from nodes`;\n",
  });
  const { status, text } = runPlatform(folder, "check");
  assert.equal(status, 1);
  assert.deepEqual(
    listPlaces(text).map((line) => line.replace(/ on type.*/, "")),
    [
      "main.service.ts:3:50: no such table: nodes",
      "main.service.ts:6:16: Property 'txet' does not exist",
      "store.ts:3:45: no such column: txet",
    ],
  );
  assert.match(text, /^3 files: 3 errors$/m);
});

test("without a file, tests and other files are checked as well, with what service files export", () => {
  const folder = createProject("whole", {
    "main.service.ts":
      'export database notes { migrations: "./migrations" }\nexport route GET / { return 1; }\n',
    "main.test.ts":
      'import { notes } from "./main.service.ts";\nconst name: number = notes.name;\nexport { name };\n',
    "types.d.ts": "export type Wrong = Missing;\n",
  });
  const { text } = runPlatform(folder, "check");
  assert.deepEqual(listPlaces(text), [
    "main.test.ts:2:7: Type 'string' is not assignable to type 'number'. (TS2322)",
  ]);
  const alone = runPlatform(folder, "check", "main.service.ts");
  assert.equal(alone.text, "main.service.ts: no errors\n");
});

test("a tsconfig.json of the project is used", () => {
  const folder = createProject("configured", {
    "package.json": '{ "type": "module" }',
    "tsconfig.json":
      '{ "compilerOptions": { "strict": false, "module": "nodenext", "noEmit": true, "types": [] } }',
    "plain.ts": "export function twice(value) { return 2 * value; }\n",
  });
  const { text } = runPlatform(folder, "check");
  assert.deepEqual(listPlaces(text), []);
});

test("promises that nothing awaits, and strings for integer columns, are reported in both writings", () => {
  const folder = createProject("dropped", {
    "migrations/0002-marks.sql": "create table marks (n integer);",
    "main.service.ts": `import { mail } from "@platform/service";
export database notes { migrations: "./migrations" }
async function tidy() { await notes.run\`delete from notes\`; }
export route POST /marks/:n (req) {
  notes.run\`insert into marks values (\${req.params.n})\`;
  void mail.send({ to: "a@example.com", subject: "a", text: "a" });
  req.log.info("done");
  tidy().catch(() => {});
  if (req.params.n === "1") return await tidy();
  const later = tidy();
  return later;
}
`,
    "plain.ts": `import { database } from "@platform/service";
const notes = database("others", { migrations: "./migrations" }, import.meta.url);
export function mark(n: string, at: number) {
  notes.run\`insert into marks values (\${n}), (\${at})\`.then(() => 1);
  (async () => 1)();
}
`,
    "main.test.ts": `import { test } from "node:test";
test("a", async () => { fetch("http://localhost"); });
`,
  });
  const { status, text } = runPlatform(folder, "check");
  assert.equal(status, 1);
  assert.deepEqual(
    listPlaces(text).map((line) => line.replace(/ (?:is|has|:).*/, "")),
    [
      "main.service.ts:5:3: the promise of notes.run",
      "main.service.ts:5:52: warning: this",
      "main.service.ts:6:8: warning: the promise of mail.send",
      "main.test.ts:2:25: the promise of fetch",
      "plain.ts:4:3: the promise of then",
      "plain.ts:4:41: warning: this",
      "plain.ts:5:3: the promise of this function",
    ],
  );
});

test("gateway rules are checked as the gateway checks them, at the author's columns", () => {
  const folder = createProject("rules", {
    "main.service.ts": `gateway { rate_limit_rpm: -1, host: "a.example" }
const trusted = ["10.0.0.0/8"];
export route GET /a (req) gateway { ip_allowlist: trusted, max_queue_size: 5 } { return req.path; }
export route GET /b gateway { auth: { type: "bearer", jwks_url: "http://x" } } { return 1; }
export route GET /c gateway { ip_allowlist: [] } { return 1; }
`,
    "plain.ts": `import { gateway as rules, route } from "@platform/service";
rules({ cache_ttl_seconds: 0.5 });
route("GET", "/d", { gateway: { policy: "allow" } }, () => 1);
route("GET", "/e", { gateway: { rate_limits: [{ by: "header", rpm: 5 }] } }, () => 1);
`,
  });
  const { status, text } = runPlatform(folder, "check");
  assert.equal(status, 1);
  const own = listPlaces(text).filter((line) => line.includes(": gateway: "));
  assert.deepEqual(
    own.map((line) => line.replace(/(: gateway: [^:]*).*/, "$1")),
    [
      "main.service.ts:1:11: gateway: rate_limit_rpm Too small",
      "main.service.ts:1:31: gateway: host is not allowed",
      "main.service.ts:4:55: gateway: auth jwks_url is not allowed",
      "main.service.ts:5:31: gateway: ip_allowlist is empty, and would restrict nobody",
      "plain.ts:2:9: gateway: cache_ttl_seconds Invalid input",
      "plain.ts:3:33: gateway: policy line 1",
      "plain.ts:4:47: gateway: rate_limits 0 name is required with by",
    ],
  );
});
