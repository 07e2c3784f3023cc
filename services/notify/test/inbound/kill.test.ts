// A service that is killed while it receives mail, again and again: each 250 has exactly one stored message.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openSmtp } from "../smtp-client.ts";

/** Kills to make; a soak sets more. */
const KILLS = Number(process.env["PLATFORM_NOTIFY_INBOUND_KILLS"] ?? 4);
/** Mails that a service has acknowledged before it is killed. */
const MAILS_MIN = 2;
const CLIENTS = 8;
const MAIN = new URL("../../src/main.ts", import.meta.url).pathname;
const TO = "postmaster@shop.example";

const folder = mkdtempSync(join(tmpdir(), "notify-inbound-kill-"));
let child: ChildProcess | undefined;
after(() => {
  child?.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

interface Listeners {
  url: string;
  smtpPort: number;
}

async function start(): Promise<Listeners> {
  const started = spawn(process.execPath, [MAIN], {
    env: {
      PATH: process.env["PATH"],
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
      PLATFORM_NOTIFY_ADDR: "127.0.0.1:0",
      PLATFORM_NOTIFY_DATA_DIR: folder,
      PLATFORM_NOTIFY_FROM_DOMAIN: "shop.example",
      PLATFORM_NOTIFY_INBOUND_PORT: "0",
      PLATFORM_NOTIFY_INBOUND_HOST: "127.0.0.1",
      PLATFORM_NOTIFY_INBOUND_RATE_PER_MINUTE: "0",
      PLATFORM_NOTIFY_DNS_SERVERS: "127.0.0.1:1",
      PLATFORM_NOTIFY_LOG_FORMAT: "json",
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  child = started;
  for await (const line of createInterface({ input: started.stdout })) {
    const event = JSON.parse(line) as { msg: string; listeners?: { name: string; port: number }[] };
    if (event.msg !== "ready") continue;
    started.stdout.resume();
    const portOf = (name: string): number =>
      event.listeners!.find((listener) => listener.name === name)!.port;
    return { url: `http://127.0.0.1:${portOf("http")}`, smtpPort: portOf("smtp") };
  }
  throw new Error("the service did not start");
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
    const { smtpPort } = await start();
    const clients = Array.from({ length: CLIENTS }, (_, index) =>
      send(smtpPort, replies, `${kill}-${index}`),
    );
    const before = replies.size;
    await sleep(100 + Math.random() * 400);
    // A busy machine needs longer for the first of them.
    while (replies.size < before + MAILS_MIN) await sleep(10);
    const exited = once(child!, "exit");
    child!.kill("SIGKILL");
    await exited;
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
  child!.kill("SIGTERM");
  await once(child!, "exit");
});
