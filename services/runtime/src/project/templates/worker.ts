// The template `worker`: messages and schedules, without routes.
import { createSharedFiles } from "./shared-files.ts";

/** Files by path. */
export function createWorkerTemplate(name: string): Readonly<Record<string, string>> {
  return {
    ...createSharedFiles(name, [
      `./platform up              run with the platform: messages of the topic ${name} arrive`,
      "curl localhost:3000/readyz",
    ]),
    "main.service.ts": `import { messages } from "@platform/service";
import { work } from "./work.ts";

server { port: 3000 }
export database jobs { migrations: "./migrations" }

// One replica consumes; if it stops or fails, the next tick continues. A message whose work fails is delivered again.
every 1s (tick) {
  // Set by \`platform up\`, which runs messaging.
  if (process.env["MESSAGING_URL"] === undefined) return;
  for await (const message of messages.subscribe("${name}", { group: "${name}", signal: tick.signal })) {
    await work(jobs, message);
  }
}

every 1h {
  await jobs.run\`delete from done where done_at < \${Date.now() - 7 * 86_400_000}\`;
}
`,
    "work.ts": `import type { Message, Queries } from "@platform/service";

/** The work for one message. It may be delivered twice: its id is stored with its result. */
export async function work(jobs: Queries, message: Pick<Message, "id" | "text">): Promise<void> {
  const words = message.text().split(/\\s+/).filter(Boolean).length;
  await jobs.run\`insert into done (id, words, done_at) values (\${message.id}, \${words}, \${Date.now()})
    on conflict (id) do nothing\`;
}
`,
    "migrations/0001-done.sql": `create table done (
  id text primary key,
  words integer not null,
  done_at bigint not null
);
`,
    "main.test.ts": `import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startTestService } from "@platform/service/testing";
import { jobs } from "./main.service.ts";
import { work } from "./work.ts";

const app = await startTestService();
after(() => app.stop());

test("a message that arrives twice is done once, and deleted after a week", async () => {
  const message = { id: "1", text: () => "two words" };
  await work(jobs, message);
  await work(jobs, message);
  assert.deepEqual(await jobs.all\`select id, words from done\`, [{ id: "1", words: 2 }]);
  await jobs.run\`update done set done_at = 0\`;
  await app.clock.advance(3_600_000);
  assert.deepEqual(await jobs.all\`select id from done\`, []);
});
`,
  };
}
