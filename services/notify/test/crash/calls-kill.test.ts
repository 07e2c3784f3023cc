// A service that is killed while its webhooks and forwards wait for answers: they continue at its next start.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { startMailProcess, type MailProcess } from "../mail-process.ts";
import { startHookServer } from "../receiver.ts";
import { openSmtp } from "../smtp-client.ts";

/** Kills to make; the long form makes more. */
const KILLS = Number(process.env["PLATFORM_NOTIFY_CALL_KILLS"] ?? 1);
const MAILS = 3;
/** From readiness to the last answer. Leases are longer. */
const CONTINUED_MS_MAX = 10_000;
const SUPPORT = "support@shop.example";

interface Attempted {
  status: string;
  attempts: number;
}

/** Calls the API of the service. */
async function call<T>(mail: MailProcess, path: string, body?: object): Promise<T> {
  const response = await fetch(`${mail.url}/api/v1${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  assert.ok(response.ok, text);
  return JSON.parse(text) as T;
}

/** Has mail sent and received, so that calls of the webhook and forwards follow. */
async function produce(mail: MailProcess): Promise<void> {
  const client = await openSmtp(mail.portOf("smtp"));
  for (let count = 0; count < MAILS; count++) {
    await call(mail, "/send", { to: "ada@example.org", subject: "x", text: "x" });
    const content = "From: a@127.0.0.1\r\nSubject: help\r\n\r\nHello\r\n";
    assert.match(await client.mail("", [SUPPORT], content), /^250 /);
  }
  client.close();
}

/** The calls of the webhook, and the forwards of all received messages. */
async function listAttempted(mail: MailProcess, webhookId: string): Promise<Attempted[]> {
  const { calls } = await call<{ calls: Attempted[] }>(
    mail,
    `/webhooks/${webhookId}/calls?limit=200`,
  );
  const list = "/inbound/messages?limit=200";
  const { messages } = await call<{ messages: { id: string }[] }>(mail, list);
  const forwards = await Promise.all(
    messages.map(async ({ id }) => {
      const path = `/inbound/messages/${id}`;
      return (await call<{ forwards: Attempted[] }>(mail, path)).forwards;
    }),
  );
  return [...calls, ...forwards.flat()];
}

test(`webhooks and forwards in flight at ${KILLS} kills continue at the next start, and no failure is counted`, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "notify-calls-"));
  const hooks = await startHookServer();
  const start = () =>
    startMailProcess(folder, {
      PLATFORM_NOTIFY_INBOUND_PORT: "0",
      PLATFORM_NOTIFY_INBOUND_HOST: "127.0.0.1",
      PLATFORM_NOTIFY_DNS_SERVERS: "127.0.0.1:1",
      PLATFORM_NOTIFY_ALLOW_PRIVATE_TARGETS: "true",
    });
  let mail = await start();
  t.after(async () => {
    await mail.end("SIGKILL");
    await hooks.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const webhook = await call<{ id: string }>(mail, "/webhooks", { url: `${hooks.url}/webhook` });
  const forward_to = `${hooks.url}/forward`;
  const rule = { name: "support", match: { to_pattern: SUPPORT }, forward_to };
  await call(mail, "/inbound/rules", rule);
  let slowestMs = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    hooks.isSilent = true;
    hooks.requests.length = 0;
    await produce(mail);
    const isWaiting = (path: string) => hooks.requests.some((request) => request.path === path);
    await waitFor(() => isWaiting("/webhook") && isWaiting("/forward"));
    await mail.end("SIGKILL");
    hooks.isSilent = false;
    mail = await start();
    const readyMs = performance.now();
    await waitFor(async () => {
      const open = (await listAttempted(mail, webhook.id)).filter(
        ({ status }) => status === "pending",
      );
      return open.length === 0;
    });
    slowestMs = Math.max(slowestMs, performance.now() - readyMs);
    assert.ok(slowestMs < CONTINUED_MS_MAX, `they continued after ${slowestMs} ms`);
  }
  const attempted = await listAttempted(mail, webhook.id);
  assert.ok(attempted.length >= Math.min(200, 2 * MAILS * KILLS));
  for (const { status, attempts } of attempted)
    assert.deepEqual({ status, attempts }, { status: "delivered", attempts: 1 });
  t.diagnostic(
    `${attempted.length} calls and forwards, the slowest continued after ${Math.round(slowestMs)} ms`,
  );
  await mail.end("SIGTERM");
});
