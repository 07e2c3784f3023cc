// A service that is killed while it receives mail, again and again: each 250 has exactly one stored message.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startMailProcess, type MailProcess } from "../mail-process.ts";
import { openSmtp } from "../smtp-client.ts";

/** Kills to make; a soak sets more. */
const KILLS = Number(process.env["PLATFORM_NOTIFY_INBOUND_KILLS"] ?? 2);
/** Mails that a service has acknowledged before it is killed. */
const MAILS_MIN = 2;
const CLIENTS = 8;
const TO = "postmaster@shop.example";

const folder = mkdtempSync(join(tmpdir(), "notify-inbound-kill-"));
let mail: MailProcess | undefined;
after(async () => {
  await mail?.end("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

async function start(): Promise<MailProcess> {
  mail = await startMailProcess(folder, {
    PLATFORM_NOTIFY_INBOUND_PORT: "0",
    PLATFORM_NOTIFY_INBOUND_HOST: "127.0.0.1",
    PLATFORM_NOTIFY_INBOUND_RATE_PER_MINUTE: "0",
    PLATFORM_NOTIFY_DNS_SERVERS: "127.0.0.1:1",
  });
  return mail;
}

/** Sends numbered mails until the connection breaks; adds the ids of the 250 replies by number. */
async function send(smtpPort: number, replies: Map<string, string>, name: string): Promise<void> {
  const client = await openSmtp(smtpPort);
  for (let count = 0; ; count += 1) {
    const subject = `${name}-${count}`;
    const content = `From: a@127.0.0.1\r\nSubject: ${subject}\r\n\r\n${"Hello\r\n".repeat(500)}`;
    const reply = await client.mail("", [TO], content);
    if (reply === "") return;
    const id = /^250 2\.0\.0 Stored as (\S+)$/.exec(reply)?.[1];
    assert.ok(id !== undefined, reply);
    replies.set(subject, id);
  }
}

async function readStored(url: string): Promise<Map<string, string[]>> {
  const stored = new Map<string, string[]>();
  let cursor: string | null = "";
  while (cursor !== null) {
    const query: string = cursor === "" ? "" : `&cursor=${cursor}`;
    const response = await fetch(`${url}/api/v1/inbound/messages?limit=200${query}`);
    const page = (await response.json()) as {
      messages: { id: string; subject: string }[];
      next_cursor: string | null;
    };
    for (const { id, subject } of page.messages) {
      stored.set(subject, [...(stored.get(subject) ?? []), id]);
    }
    cursor = page.next_cursor;
  }
  return stored;
}

test("kill -9 while mail arrives: each 250 has exactly one complete stored message", async (t) => {
  const replies = new Map<string, string>();
  for (let kill = 0; kill < KILLS; kill += 1) {
    const { portOf } = await start();
    const smtpPort = portOf("smtp");
    const clients = Array.from({ length: CLIENTS }, (_, index) =>
      send(smtpPort, replies, `${kill}-${index}`),
    );
    const before = replies.size;
    await sleep(100 + Math.random() * 400);
    // A busy machine needs longer for the first of them.
    while (replies.size < before + MAILS_MIN) await sleep(10);
    await mail!.end("SIGKILL");
    await Promise.all(clients);
  }
  const { url } = await start();
  const stored = await readStored(url);
  for (const [subject, id] of replies) assert.deepEqual(stored.get(subject), [id], subject);
  // At most the mails in flight at a kill are stored without their 250.
  assert.ok(stored.size - replies.size <= KILLS * CLIENTS);
  const [subject, id] = [...replies].at(-1)!;
  const raw = await (await fetch(`${url}/api/v1/inbound/messages/${id}/raw`)).text();
  assert.ok(raw.includes(`Subject: ${subject}\r\n\r\n${"Hello\r\n".repeat(500)}`));
  t.diagnostic(`${KILLS} kills, ${replies.size} acknowledged, ${stored.size} stored`);
  await mail!.end("SIGTERM");
});
