// The contract of objects, messages and mail: the same steps on the fakes and on the real services. As a program, it runs
// with the variables of an application, and the topic as its argument.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { auth, mail, messages, objects, type SubscribeOptions } from "@platform/service";

const WAIT_MS = 20_000;
const DISCONNECT_MS = 150;

/** Runs all steps. Topics are `topic` and those below it. */
export async function checkContract(topic: string): Promise<void> {
  await checkObjects();
  await checkLinks();
  await checkTopics(topic);
  await checkGroups(`${topic}.jobs`);
  await checkMail();
  assert.match(await auth.token(), /^[\w-]+\.[\w-]+\.[\w-]+$/);
}

async function checkObjects(): Promise<void> {
  const read = async (key: string): Promise<string | undefined> => (await objects.get(key))?.text();
  assert.equal(await read("missing"), undefined);
  await objects.put("notes/a & b.txt", "text", { type: "text/plain" });
  const answer = (await objects.get("notes/a & b.txt"))!;
  assert.equal(answer.headers.get("content-type"), "text/plain");
  assert.equal(await answer.text(), "text");
  await objects.put("notes/bytes", new Uint8Array([1, 2]));
  await objects.put("notes/blob", new Blob(["<p>"], { type: "text/html" }));
  await objects.put("notes/stream", new Response("streamed").body!);
  await objects.put("other", "");
  assert.equal(await read("notes/stream"), "streamed");
  const first = await objects.list({ prefix: "notes/", limit: 3 });
  assert.deepEqual(
    first.objects.map(({ key, size }) => [key, size]),
    [
      ["notes/a & b.txt", 4],
      ["notes/blob", 3],
      ["notes/bytes", 2],
    ],
  );
  const second = await objects.list({ prefix: "notes/", limit: 3, cursor: first.next });
  assert.deepEqual(
    [second.objects.map(({ key }) => key), second.next],
    [["notes/stream"], undefined],
  );
  await objects.put("other", "replaced");
  assert.equal(await read("other"), "replaced");
  await objects.delete("other");
  await objects.delete("other");
  assert.equal(await read("other"), undefined);
}

async function checkLinks(): Promise<void> {
  const upload = await objects.uploadUrl("links/å (1).txt");
  const put = await fetch(upload, { method: "PUT", body: "uploaded" });
  assert.equal(put.status, 200, await put.text());
  const download = await objects.downloadUrl("links/å (1).txt", { saveAs: "a'b.txt" });
  const got = await fetch(download);
  assert.equal(got.headers.get("content-disposition"), "attachment; filename*=UTF-8''a%27b.txt");
  assert.equal(await got.text(), "uploaded");
  const tampered: [url: string, method: string][] = [
    [download.replace("links/", "notes/"), "GET"],
    [download, "PUT"],
    [upload.replace(/X-Amz-Expires=\d+/, "X-Amz-Expires=9999"), "PUT"],
    [download.replace(/\?.*/, ""), "GET"],
  ];
  for (const [url, method] of tampered) {
    const body = method === "PUT" ? { body: "x" } : {};
    assert.equal((await fetch(url, { method, ...body })).status, 403, `${method} ${url}`);
  }
}

/** The next messages of a topic; the last one of a group is not acknowledged. */
async function take(topic: string, count: number, options: SubscribeOptions): Promise<string[]> {
  const found: string[] = [];
  const signal = AbortSignal.timeout(WAIT_MS);
  for await (const message of messages.subscribe(topic, { ...options, signal })) {
    found.push(`${message.topic} ${message.text()} ${message.retryCount}`);
    if (found.length === count) break;
  }
  // The other side learns of the end of the connection later than this one.
  await sleep(DISCONNECT_MS);
  return found;
}

async function checkTopics(topic: string): Promise<void> {
  const one = `${topic}.one`;
  const sent = await messages.publish(one, { n: 1 }, { key: "k", headers: { h: "v" } });
  assert.notEqual(sent.id, "");
  await messages.publish(one, "again", { id: "same" });
  await messages.publish(one, "again", { id: "same" });
  await messages.publish(one, new Uint8Array([0xff]));
  const from = "earliest";
  assert.deepEqual(await take(one, 3, { from }), [
    `${one} {"n":1} 0`,
    `${one} again 0`,
    `${one} \ufffd 0`,
  ]);
  const signal = AbortSignal.timeout(WAIT_MS);
  for await (const message of messages.subscribe(one, { from: 2, signal })) {
    assert.deepEqual([...message.bytes()], [0xff]);
    break;
  }
  await messages.publish(`${topic}.two.three`, "deep");
  assert.deepEqual(await take(`${topic}.*.three`, 1, { from }), [`${topic}.two.three deep 0`]);
  const refuse = (work: Promise<unknown>, status: number): Promise<void> =>
    assert.rejects(work, { name: "PlatformServiceError", status });
  await refuse(messages.publish(`${topic}.a b`, ""), 400);
  await refuse(messages.publish(one, "x".repeat(1_100_000)), 413);
  await refuse(take(`${topic}.*`, 1, { group: "workers" }), 400);
}

async function checkGroups(topic: string): Promise<void> {
  for (const text of ["1", "2", "3"]) await messages.publish(topic, text);
  const group = { group: "workers", from: "earliest" } as const;
  assert.deepEqual(await take(topic, 1, group), [`${topic} 1 0`]);
  // The loop ended without an acknowledgement: the message comes again, the next ones follow.
  assert.deepEqual(await take(topic, 2, group), [`${topic} 1 1`, `${topic} 2 0`]);
  assert.deepEqual(await take(topic, 2, group), [`${topic} 2 1`, `${topic} 3 0`]);
  assert.deepEqual(await take(topic, 1, { ...group, group: "others" }), [`${topic} 1 0`]);
}

async function checkMail(): Promise<void> {
  const content = { to: "Ada <ada@example.com>", subject: "Hello", text: "there" };
  const first = await mail.send(content, { idempotencyKey: "contract" });
  assert.deepEqual(await mail.send(content, { idempotencyKey: "contract" }), first);
  const refuse = (work: Promise<unknown>, status: number): Promise<void> =>
    assert.rejects(work, { name: "PlatformServiceError", status });
  await refuse(mail.send({ ...content, subject: "Other" }, { idempotencyKey: "contract" }), 409);
  await refuse(mail.send({ ...content, to: "no address" }), 400);
  const attachments = [{ filename: "a.txt", content: "attached" }];
  assert.notEqual((await mail.send({ ...content, attachments })).id, first.id);
}

if (import.meta.main) {
  await checkContract(process.argv[2]!);
  process.stdout.write("the contract holds\n");
}
