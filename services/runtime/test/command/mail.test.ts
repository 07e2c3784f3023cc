// Mail under `platform up`: identity's messages appear in the development inbox.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { anyPort, find, findStarted, makeFolder, run } from "../fixture/platform-process.ts";

interface InboxAnswer {
  messages: { message_id: string; subject: string; to: string[] }[];
}

test("the verification mail of a new account is in the inbox, behind the gateway too", async () => {
  const data = makeFolder();
  const up = run(["up", "--json", "--data", data, "--only", "identity,mail,gateway", ...anyPort]);
  const started = await up.waitFor(findStarted);
  const auth = find(started, "auth");
  const inbox = `${find(started, "gate").url}/notify/api/v1/inbox`;
  assert.equal((await fetch(inbox)).status, 401, "recovery links are in it");
  const credentials = readFileSync(join(data, "credentials.env"), "utf8");
  const token = /^PLATFORM_NOTIFY_TOKEN=(.{43})$/m.exec(credentials)![1]!;

  const registered = await fetch(`${auth.url}/api/auth/register`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      username: "ada",
      password: "correct horse battery staple 1",
      email: "ada@example.org",
    }),
  });
  assert.equal(registered.status, 201, await registered.clone().text());
  const read = async (path = ""): Promise<Response> =>
    fetch(`${inbox}${path}`, { headers: { authorization: `Bearer ${token}` } });
  let list: InboxAnswer = { messages: [] };
  for (let i = 0; i < 1_000 && list.messages.length === 0; i += 1) {
    list = (await (await read()).json()) as InboxAnswer;
    await sleep(50);
  }
  const [mail] = list.messages;
  assert.deepEqual(mail?.to, ["ada@example.org"]);
  const { text } = (await (await read(`/${mail.message_id}`)).json()) as { text: string };
  assert.match(text, /https?:\/\/\S+token=/);
  assert.ok(!up.output().out.includes(token), "the log contains the token");
  up.child.kill("SIGTERM");
  assert.equal(await up.exit, 0, up.output().out);
});
