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
import { SINGLE_MARK } from "../../src/database/lease-mark.ts";
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

const BOUNCE = { sender: "" };

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

test("Action decides whether a report is final, Status does not (RFC 3464 section 2.3.3)", async () => {
  const read = async (content: Buffer) => parseReports(content, BOUNCE);
  const [failed] = await read(createDsn("5.1.1", "550 5.1.1 User unknown"));
  assert.deepEqual(failed, {
    kind: "failed",
    status: "5.1.1",
    recipients: ["ada@example.org", "ada@example.org"],
    text: "550 5.1.1 User unknown",
  });
  const [expired] = await read(createDsn("4.4.7", "connection timed out", "failed"));
  assert.equal(expired?.kind, "failed");
  const [delayed] = await read(createDsn("5.4.1", "no answer", "delayed"));
  assert.equal(delayed?.kind, "delayed");
  const [relayed] = await read(createDsn("2.1.5", "250 ok", "relayed"));
  assert.equal(relayed?.kind, "delivered");
  assert.deepEqual(await read(COMPLAINT), [
    { kind: "feedback", feedbackType: "abuse", recipients: ["ada@example.org"] },
  ]);
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
      leaseMark: SINGLE_MARK,
      clock,
      ids: createIdSource(),
      secrets: new SigningSecrets({ box, clock, table: "notify_webhooks" }),
      onCalls: () => {},
    });
    await webhooks.create("https://hook.example/", []);
    const log: string[] = [];
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
      log: createLogger({ service: "notify", write: (line) => void log.push(line) }),
    });
    const webhook = async () => {
      const { payload } = await database.db
        .selectFrom("notify_webhook_calls")
        .select("payload")
        .where("type", "=", "message.bounced")
        .executeTakeFirstOrThrow();
      return JSON.parse(payload) as { type: string; data: Record<string, unknown> };
    };
    const read = async () => (await stage.call("GET", `/api/v1/messages/${body.message_id}`)).body;
    const list = async () => (await stage.call("GET", "/api/v1/suppression")).body.addresses;
    const { sender } = sink.accepted[0]!;
    return { sender, reports, read, list, bounces, webhook, log };
  }

  test("an asynchronous 5.1.1 bounces the message and suppresses its address", async () => {
    const { sender, reports, read, list, bounces } = await sendOne();
    assert.match(sender, /^bounce\+.*@shop\.example$/);
    assert.ok(reports.accepts(sender));
    await reports.receive(sender, createDsn("5.1.1", "550 5.1.1 User unknown"), BOUNCE);
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
    await reports.receive(sender, createDsn("4.2.2", "mailbox full", "delayed"), BOUNCE);
    const message = await read();
    assert.equal(message.status, "sent");
    assert.ok(message.events.some(({ type }: { type: string }) => type === "delayed"));
    assert.deepEqual(await list(), []);
  });

  test("the end of a temporary failure bounces the message and suppresses nothing", async () => {
    const { sender, reports, read, list, bounces, webhook } = await sendOne();
    await reports.receive(sender, createDsn("4.4.7", "connection timed out"), BOUNCE);
    const message = await read();
    assert.equal(message.status, "bounced");
    assert.equal(message.recipients[0].bounce_type, "soft");
    assert.equal(message.events.at(-1).type, "bounced");
    assert.deepEqual(await list(), []);
    assert.deepEqual(bounces, ["soft"]);
    const { type, data } = await webhook();
    assert.equal(type, "message.bounced");
    assert.equal(data["bounce_type"], "soft");
  });

  test("mail with an empty sender that is no report is a bounce with its first lines", async () => {
    const { sender, reports, read, list, log } = await sendOne();
    const odd = Buffer.from("Subject: Sorry\r\n\r\nWe could not take\r\nyour mail.");
    await reports.receive(sender, odd, BOUNCE);
    const message = await read();
    assert.equal(message.status, "bounced");
    assert.equal(message.events.at(-1).detail, "Sorry We could not take your mail.");
    assert.deepEqual(await list(), []);
    assert.ok(log.some((line) => line.includes("We could not take your mail.")));
    const away = Buffer.from("Auto-Submitted: auto-replied\r\nSubject: Away\r\n\r\nBack soon");
    await reports.receive(sender, away, BOUNCE);
    assert.equal((await read()).events.length, message.events.length);
  });

  test("a complaint in Microsoft's form is found by any field with the bounce address", async () => {
    const { sender, reports, read, list } = await sendOne();
    const junk = [
      "From: staff@hotmail.com",
      "Subject: complaint about message from 203.0.113.2",
      'Content-Type: multipart/mixed; boundary="b"',
      "",
      "--b",
      "Content-Type: message/rfc822",
      "",
      "X-HmXmrOriginalRecipient: ada@example.org",
      `Received-SPF: Pass (receiver=mx.outlook.example) envelope-from=<${sender}>`,
      "Subject: Hello",
      "",
      "Hello",
      "--b--",
      "",
    ].join("\r\n");
    const envelope = { sender: "staff@hotmail.com" };
    assert.ok(await reports.receiveComplaint(Buffer.from(junk), envelope));
    assert.equal((await list())[0].reason, "complaint");
    assert.equal((await read()).events.at(-1).type, "complained");
    const forged = junk.replace(/\.[0-9a-f]{16}@/, ".0123456789abcdef@");
    assert.equal(await reports.receiveComplaint(Buffer.from(forged), envelope), false);
  });

  test("feedback that is no complaint suppresses nothing; opt-out ends bulk mail only", async () => {
    const { sender, reports, read, list } = await sendOne();
    const send = (type: string) =>
      reports.receive(sender, Buffer.from(COMPLAINT.toString().replace("abuse\r", `${type}\r`)), {
        sender: "feedback@isp.example",
      });
    for (const type of ["auth-failure", "not-spam"]) await send(type);
    assert.deepEqual(await list(), []);
    assert.equal((await read()).events.at(-1).type, "feedback");
    await send("opt-out");
    assert.deepEqual(
      (await list()).map((one: { reason: string }) => one.reason),
      ["unsubscribe"],
    );
  });

  test("a complaint suppresses the address", async () => {
    const { sender, reports, list } = await sendOne();
    await reports.receive(sender, COMPLAINT, BOUNCE);
    assert.equal((await list())[0].reason, "complaint");
  });

  test("a report to a forged address, or about another recipient, suppresses no other address", async () => {
    const { sender, reports, list } = await sendOne();
    const forged = sender.replace(/\.[0-9a-f]{16}@/, ".0123456789abcdef@");
    assert.ok(!reports.accepts(forged));
    await reports.receive(forged, createDsn("5.1.1", "550 5.1.1 User unknown"), BOUNCE);
    assert.deepEqual(await list(), []);
    const about = createDsn("5.1.1", "550 no").toString().replaceAll("ada@", "boss@");
    await reports.receive(sender, Buffer.from(about), BOUNCE);
    assert.deepEqual(
      (await list()).map((one: { email: string }) => one.email),
      ["ada@example.org"],
      "the address decides, not the report",
    );
  });
});
