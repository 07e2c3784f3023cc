// A real Postfix and swaks towards the inbound port: mail, and the bounce of a mail that this service sent.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { waitFor } from "@platform/testing/wait";
import { startDnsServer } from "../dns-server.ts";
import { findPostfixSkip, startPostfix } from "../postfix.ts";
import { startHookServer } from "../receiver.ts";
import { startStage } from "../stage.ts";

const SWAKS = "/usr/bin/swaks";
const OPEN: { close(): Promise<void> }[] = [];

after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
});

async function start(settings: Record<string, unknown> = {}) {
  const dns = await startDnsServer({});
  const hooks = await startHookServer();
  const stage = await startStage({
    from_domain: "shop.example",
    inbound_port: 0,
    inbound_host: "127.0.0.1",
    allow_private_targets: true,
    dns_servers: [dns.address],
    ...settings,
  });
  OPEN.push(dns, hooks, stage);
  const rule = await stage.call("POST", "/api/v1/inbound/rules", {
    name: "all",
    match: { to_pattern: "*@shop.example" },
    forward_to: hooks.url,
  });
  assert.equal(rule.status, 201, rule.text);
  return { stage, hooks };
}

const swaksSkip =
  existsSync(SWAKS) || process.env["PLATFORM_TEST_PEERS"] === "required"
    ? undefined
    : "the Debian package swaks is not installed";

test(
  "swaks: a mail with an attachment reaches the target of its rule",
  { skip: swaksSkip },
  async () => {
    const { stage, hooks } = await start();
    const { stdout } = await promisify(execFile)(SWAKS, [
      "--server",
      "127.0.0.1",
      "--port",
      String(stage.smtpPort),
      "--from",
      "ada@sender.example",
      "--to",
      "support@shop.example",
      "--header",
      "Subject: Hello from swaks",
      "--attach-name",
      "note.txt",
      "--attach",
      "the note",
    ]);
    assert.match(stdout, /<-\s+250 2\.0\.0 Stored as /);
    const { body } = await waitFor(() => hooks.requests[0]);
    assert.equal(body.subject, "Hello from swaks");
    assert.equal(body.attachments[0].filename, "note.txt");
    assert.equal(Buffer.from(body.attachments[0].content, "base64").toString().trim(), "the note");
  },
);

test("Postfix: mail that it forwards arrives", { skip: findPostfixSkip() }, async () => {
  const { stage, hooks } = await start();
  const postfix = await startPostfix({ relayPort: stage.smtpPort });
  OPEN.push({ close: () => postfix.stop() });
  const sender = await startStage({
    ...stage.settings,
    data_dir: `${String(stage.settings["data_dir"])}-sender`,
    inbound_port: undefined,
    "smtp.host": "127.0.0.1",
    "smtp.port": postfix.port,
  });
  OPEN.push(sender);
  const sent = await sender.call("POST", "/api/v1/send", {
    to: "support@shop.example",
    subject: "Grüße",
    text: "Über Postfix\n.\n",
  });
  assert.equal(sent.status, 200, sent.text);
  const { body } = await waitFor(() => hooks.requests[0]);
  assert.equal(body.subject, "Grüße");
  assert.equal(body.text.trimEnd(), "Über Postfix\n.");
});

test(
  "Postfix: the report about a refused mail suppresses its address",
  { skip: findPostfixSkip() },
  async () => {
    const settings: Record<string, unknown> = { bounce_domain: "shop.example" };
    const { stage } = await start(settings);
    const { smtpPort } = stage;
    const postfix = await startPostfix({ relayPort: smtpPort });
    OPEN.push({ close: () => postfix.stop() });
    const { settings: started } = stage;
    await stage.close();
    // The inbound port refuses the recipient, Postfix reports it to the bounce address on the same port.
    const again = await startStage({
      ...started,
      inbound_port: smtpPort,
      "smtp.host": "127.0.0.1",
      "smtp.port": postfix.port,
    });
    OPEN.push(again);
    const sent = await again.call("POST", "/api/v1/send", {
      to: "nobody@elsewhere.example",
      subject: "Hello",
      text: "Hello",
    });
    assert.equal(sent.status, 200, sent.text);
    const entry = await waitFor(async () => {
      const found = await again.call("GET", "/api/v1/suppression/nobody@elsewhere.example");
      return found.status === 200 ? found.body : undefined;
    });
    assert.equal(entry.reason, "hard_bounce");
    assert.equal(entry.message_id, sent.body.message_id);
    const { body } = await again.call("GET", `/api/v1/messages/${sent.body.message_id}`);
    assert.equal(body.status, "bounced");
  },
);
