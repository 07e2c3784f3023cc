// The template `api`: routes over a database.
import { createSharedFiles } from "./shared-files.ts";

/** Files by path. */
export function createApiTemplate(name: string): Readonly<Record<string, string>> {
  return {
    ...createSharedFiles(name, [
      "./platform up              run with the platform, at the address that it prints",
      `curl localhost:3000/notes -d '{"text":"hello"}'`,
      "curl localhost:3000/notes",
    ]),
    "main.service.ts": `import { HttpError } from "@platform/service";

server { port: 3000 }
database notes { migrations: "./migrations" }

export route GET /notes () {
  return notes.all\`select * from notes order by id\`;
}

export route GET /notes/:id (req) {
  const note = await notes.one\`select * from notes where id = \${req.params.id}\`;
  if (note === undefined) throw new HttpError(404, "No such note");
  return note;
}

export route POST /notes (req) {
  const { text } = req.body as { text?: unknown };
  if (typeof text !== "string") throw new HttpError(400, "text must be a string");
  return notes.one\`insert into notes (text, created_at) values (\${text}, \${Date.now()}) returning *\`;
}

every 1h {
  await notes.run\`delete from notes where created_at < \${Date.now() - 30 * 86_400_000}\`;
}
`,
    "migrations/0001-notes.sql": `create table notes (
  id integer primary key,
  text text not null,
  created_at bigint not null
);
`,
    "migrations/0001-notes.postgres.sql": `create table notes (
  id bigint generated always as identity primary key,
  text text not null,
  created_at bigint not null
);
`,
    "main.test.ts": `import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startTestService } from "@platform/service/testing";
import "./main.service.ts";

const app = await startTestService();
after(() => app.stop());

test("a note can be read after it was written", async () => {
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ text: "hello" });
  const made = await app.fetch("/notes", { method: "POST", headers, body });
  const { id } = (await made.json()) as { id: number };
  const found = await app.fetch(\`/notes/\${id}\`);
  assert.equal(((await found.json()) as { text: string }).text, "hello");
});

test("an unknown note is not found", async () => {
  assert.equal((await app.fetch("/notes/99")).status, 404);
});
`,
  };
}
