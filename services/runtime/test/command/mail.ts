// Mail under `platform up`: identity's messages appear in the development inbox.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { find } from "@platform/testing/platform-process";
import { joinPlatform, readCredentials } from "./running-platform.ts";

interface InboxAnswer {
  messages: { message_id: string; subject: string; to: string[] }[];
}

test("the verification mail of a new account is in the inbox, behind the gateway too", async () => {
  const platform = await joinPlatform();
  const { up, started } = platform;
  const auth = find(started, "auth");
  const inbox = `${find(started, "gate").url}/notify/api/v1/inbox`;
  assert.equal((await fetch(inbox)).status, 401, "recovery links are in it");
  const token = readCredentials(platform)["PLATFORM_NOTIFY_TOKEN"]!;
  assert.equal(token.length, 43);

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
});
