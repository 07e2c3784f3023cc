// Bounce addresses and reports: forged ones have no effect, real ones suppress addresses that do not exist.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { createLogger } from "@platform/kernel/log";
import { createIdSource } from "@platform/kernel/ids";
import { systemClock } from "@platform/kernel/time";
import { BounceAddresses } from "../../src/bounce/bounce-address.ts";
import { BounceReports } from "../../src/bounce/bounce-reports.ts";
import { concernsAddress } from "../../src/bounce/classify.ts";
import { parseReports } from "../../src/bounce/report.ts";
import { openSecretBox, readKey } from "../../src/database/secrets.ts";
import { Suppressions } from "../../src/suppression/suppressions.ts";
import { SigningSecrets } from "../../src/webhook/signing-secrets.ts";
import { Webhooks } from "../../src/webhook/webhooks.ts";
import { startSink } from "../sink.ts";
import { startStage } from "../stage.ts";

const KEY = Buffer.alloc(32, 7);
const DAY_MS = 86_400_000;
const ID = "0198f0a1-2b3c-7d4e-8f50-123456789abc";

function createDsn(status: string, diagnostic: string, action = "failed"): Buffer {
  return Buffer.from(
    [
      "From: MAILER-DAEMON@mx.example.org",
      "Subject: Undelivered Mail Returned to Sender",
      "MIME-Version: 1.0",
      'Content-Type: multipart/report; report-type=delivery-status; boundary="b"',
      "",
      "--b",
      "Content-Type: text/plain",
      "",
      "This is the mail system.",
      "--b",
      "Content-Type: message/delivery-status",
      "",
      "Reporting-MTA: dns; mx.example.org",
      "X-Postfix-Queue-ID: 4ABC",
      "",
      "Final-Recipient: rfc822; ada@example.org",
      "Original-Recipient: rfc822;ada@example.org",
      `Action: ${action}`,
      `Status: ${status}`,
      "Remote-MTA: dns; mx2.example.org",
      `Diagnostic-Code: smtp; ${diagnostic}`,
      "",
      "--b",
      "Content-Type: message/rfc822",
      "",
      "Subject: Hello",
      "",
      "Hello",
      "--b--",
      "",
    ].join("\r\n"),
  );
}

const COMPLAINT = Buffer.from(
  [
    "From: abuse@isp.example",
    "MIME-Version: 1.0",
    'Content-Type: multipart/report; report-type=feedback-report; boundary="b"',
    "",
    "--b",
    "Content-Type: text/plain",
    "",
    "This is an abuse report.",
    "--b",
    "Content-Type: message/feedback-report",
    "",
    "Feedback-Type: abuse",
    "User-Agent: SomeGenerator/1.0",
    "Version: 1",
    "Original-Rcpt-To: <ada@example.org>",
    "",
    "--b--",
    "",
  ].join("\r\n"),
);

test("a bounce address names its delivery for 14 days, in any case", () => {
  const addresses = new BounceAddresses(KEY, "shop.example");
  const address = addresses.format({ messageId: ID, position: 49 }, 0);
  assert.ok(address.indexOf("@") <= 64, address);
  assert.deepEqual(addresses.parse(address, 0), { messageId: ID, position: 49 });
  assert.deepEqual(addresses.parse(address.toUpperCase(), 14 * DAY_MS), {
    messageId: ID,
    position: 49,
  });
  assert.equal(addresses.parse(address, 15 * DAY_MS), undefined);
});

test("forged and foreign bounce addresses are none", () => {
  const addresses = new BounceAddresses(KEY, "shop.example");
  const address = addresses.format({ messageId: ID, position: 0 }, 0);
  const other = new BounceAddresses(Buffer.alloc(32, 8), "shop.example");
  assert.equal(other.parse(address, 0), undefined);
  assert.equal(addresses.parse(address.replace("bounce+0", "bounce+1"), 0), undefined);
  assert.equal(addresses.parse(address.replace("-0-", "-1-"), 0), undefined);
  assert.equal(addresses.parse(address.replace("shop", "evil"), 0), undefined);
  for (const text of [
    "",
    "@",
    "bounce+@shop.example",
    "ada@shop.example",
    "bounce+x.y@shop.example",
  ]) {
    assert.equal(addresses.parse(text, 0), undefined, text);
  }
});

test("reports are read by Status, not by Action", async () => {
  const failed = await parseReports(createDsn("5.1.1", "550 5.1.1 User unknown"));
  assert.deepEqual(failed, [
    {
      kind: "failed",
      status: "5.1.1",
      recipient: "ada@example.org",
      text: "550 5.1.1 User unknown",
    },
  ]);
  const [expired] = await parseReports(createDsn("4.4.1", "connection timed out", "failed"));
  assert.equal(expired?.kind, "delayed", "an expired temporary failure says `failed`");
  assert.deepEqual(await parseReports(createDsn("2.1.5", "250 ok", "relayed")), []);
  assert.deepEqual(await parseReports(COMPLAINT), [
    { kind: "complaint", feedbackType: "abuse", recipient: "ada@example.org" },
  ]);
  assert.deepEqual(await parseReports(Buffer.from("Subject: out of office\r\n\r\nback soon")), []);
});

test("permanent replies are classified by what they concern", () => {
  const cases: [code: number, enhanced: string | undefined, text: string, suppresses: boolean][] = [
    [550, "5.1.1", "User unknown", true],
    [550, "5.1.10", "null MX", true],
    [550, "5.2.1", "mailbox disabled", true],
    [550, undefined, "No such user here", true],
    [
      550,
      undefined,
      "<a@b>: Recipient address rejected: User unknown in local recipient table",
      true,
    ],
    [550, undefined, "Blocked by spamhaus", false],
    [550, undefined, "relay access denied", false],
    [550, "5.7.1", "User unknown due to policy", false],
    [552, "5.2.2", "mailbox full", false],
    [554, "5.0.0", "rejected", false],
    [554, undefined, "transaction failed", false],
    [550, "5.1.8", "bad sender", false],
  ];
  for (const [code, enhanced, text, suppresses] of cases) {
    assert.equal(
      concernsAddress({ code, enhanced, text }),
      suppresses,
      `${code} ${enhanced} ${text}`,
    );
  }
});

describe("reports about sent mail", () => {
  const open: { close(): Promise<void> }[] = [];
  after(async () => {
    for (const one of open.toReversed()) await one.close();
  });

  async function sendOne() {
    const sink = await startSink();
    const stage = await startStage({
      "smtp.host": "127.0.0.1",
      "smtp.port": sink.port,
      from_domain: "shop.example",
      // The bounce domain is from_domain where mail is received.
      inbound_port: 0,
      inbound_host: "127.0.0.1",
    });
    open.push(sink, { close: () => stage.close(500) });
    const mail = { to: "ada@example.org", subject: "Hello", text: "Hello" };
    const { body } = await stage.call("POST", "/api/v1/send", mail);
    const { database } = stage;
    const dataDir = String(stage.settings["data_dir"]);
    const box = await openSecretBox(database, { keys: undefined, dataDir });
    const key = await readKey(database, box, "bounce_key");
    const clock = systemClock;
    const webhooks = new Webhooks({
      database,
      clock,
      ids: createIdSource(),
      secrets: new SigningSecrets({ box, clock, table: "notify_webhooks" }),
      onCalls: () => {},
    });
    const bounces: string[] = [];
    const reports = new BounceReports({
      database,
      addresses: new BounceAddresses(key, "shop.example"),
      suppressions: new Suppressions(database),
      webhooks,
      metrics: {
        countBounce: (type) => void bounces.push(type),
      },
      clock,
      log: createLogger({ service: "notify", write: () => {} }),
    });
    const read = async () => (await stage.call("GET", `/api/v1/messages/${body.message_id}`)).body;
    const list = async () => (await stage.call("GET", "/api/v1/suppression")).body.addresses;
    return { sender: sink.accepted[0]!.sender, reports, read, list, bounces };
  }

  test("an asynchronous 5.1.1 bounces the message and suppresses its address", async () => {
    const { sender, reports, read, list, bounces } = await sendOne();
    assert.match(sender, /^bounce\+.*@shop\.example$/);
    assert.ok(reports.accepts(sender));
    await reports.receive(sender, createDsn("5.1.1", "550 5.1.1 User unknown"));
    const message = await read();
    assert.equal(message.status, "bounced");
    assert.equal(message.events.at(-1).type, "bounced");
    assert.deepEqual(
      (await list()).map((one: { email: string; reason: string }) => [one.email, one.reason]),
      [["ada@example.org", "hard_bounce"]],
    );
    assert.deepEqual(bounces, ["hard"]);
  });

  test("an asynchronous 4.x.x is an event and no more", async () => {
    const { sender, reports, read, list } = await sendOne();
    await reports.receive(sender, createDsn("4.2.2", "mailbox full", "delayed"));
    const message = await read();
    assert.equal(message.status, "sent");
    assert.ok(message.events.some(({ type }: { type: string }) => type === "delayed"));
    assert.deepEqual(await list(), []);
  });

  test("a complaint suppresses the address", async () => {
    const { sender, reports, list } = await sendOne();
    await reports.receive(sender, COMPLAINT);
    assert.equal((await list())[0].reason, "complaint");
  });

  test("a report to a forged address, or about another recipient, suppresses no other address", async () => {
    const { sender, reports, list } = await sendOne();
    const forged = sender.replace(/\.[0-9a-f]{16}@/, ".0123456789abcdef@");
    assert.ok(!reports.accepts(forged));
    await reports.receive(forged, createDsn("5.1.1", "550 5.1.1 User unknown"));
    assert.deepEqual(await list(), []);
    const about = createDsn("5.1.1", "550 no").toString().replaceAll("ada@", "boss@");
    await reports.receive(sender, Buffer.from(about));
    assert.deepEqual(
      (await list()).map((one: { email: string }) => one.email),
      ["ada@example.org"],
      "the address decides, not the report",
    );
  });
});
