// A service that is killed under load, again and again: nothing is lost, and possible duplicates are marked.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@platform/testing/wait";
import { startMailProcess, type MailProcess } from "../mail-process.ts";
import { startSink } from "../sink.ts";

/** Kills to make; a soak sets more. */
const KILLS = Number(process.env["PLATFORM_NOTIFY_KILLS"] ?? 3);
const CLIENTS = 8;

const folder = mkdtempSync(join(tmpdir(), "notify-kill-"));
let mail: MailProcess | undefined;
after(async () => {
  await mail?.end("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** Starts the service on the folder; returns its URL. */
async function start(smtpPort: number): Promise<string> {
  mail = await startMailProcess(folder, {
    PLATFORM_NOTIFY_SMTP_HOST: "127.0.0.1",
    PLATFORM_NOTIFY_SMTP_PORT: String(smtpPort),
    PLATFORM_NOTIFY_SMTP_TLS: "off",
  });
  return mail.url;
}

/** Sends until `signal` aborts; adds the ids of acknowledged messages. */
async function send(url: string, acknowledged: Set<string>, signal: AbortSignal): Promise<void> {
  for (let count = 0; !signal.aborted; count += 1) {
    const to = `user${count % 20}@d${count % 7}.example`;
    try {
      const response = await fetch(`${url}/api/v1/send`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ to, subject: "Hello", text: "Hello\n".repeat(200) }),
      });
      const body = (await response.json()) as { message_id?: string };
      assert.ok(response.status === 200 || response.status === 202, JSON.stringify(body));
      acknowledged.add(body.message_id!);
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      return;
    }
  }
}

test("kill -9 under load loses no acknowledged mail and repeats none unmarked", async (t) => {
  const sink = await startSink({
    // Wide windows: before the content, and between the final dot and its reply.
    reply: async (step) => {
      if (step === "RCPT" || step === "content") await sleep(Math.random() * 15);
      return undefined;
    },
  });
  const acknowledged = new Set<string>();
  for (let kill = 0; kill < KILLS; kill += 1) {
    const url = await start(sink.port);
    const stop = new AbortController();
    const clients = Array.from({ length: CLIENTS }, () => send(url, acknowledged, stop.signal));
    await sleep(100 + Math.random() * 400);
    const ended = mail!.end("SIGKILL");
    stop.abort();
    await ended;
    await Promise.all(clients);
  }
  const url = await start(sink.port);
  const readOpen = async (): Promise<number> => {
    const metrics = await (await fetch(`${url}/metrics`)).text();
    return Number(/^platform_notify_queued (\d+)/m.exec(metrics)![1]);
  };
  await waitFor(async () => (await readOpen()) === 0);

  const deliveries = new Map<string, number>();
  for (const { data } of sink.arrived) {
    const id = /^Message-ID: <([^@]+)@/m.exec(data)![1]!;
    deliveries.set(id, (deliveries.get(id) ?? 0) + 1);
  }
  const lost = [...acknowledged].filter((id) => !deliveries.has(id));
  assert.deepEqual(lost, [], "acknowledged and never delivered");
  const repeated = [...deliveries].filter(([, count]) => count > 1).map(([id]) => id);
  for (const id of repeated) {
    const response = await fetch(`${url}/api/v1/messages/${id}`);
    const { events } = (await response.json()) as { events: { type: string }[] };
    assert.ok(
      events.some(({ type }) => type === "duplicate_possible"),
      `${id} was delivered ${deliveries.get(id)} times without a mark`,
    );
  }
  t.diagnostic(
    `${KILLS} kills, ${acknowledged.size} acknowledged, ${deliveries.size} delivered, ${repeated.length} repeated and marked`,
  );
  await mail!.end("SIGTERM");
  await sink.close();
});
