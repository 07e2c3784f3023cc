// A real Postfix as the relay: accepted mail, a synchronous 550, a 450 that is retried, an asynchronous report.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import PostalMime from "postal-mime";
import { waitFor } from "@platform/testing/wait";
import { parseReports } from "../../src/bounce/report.ts";
import { findPostfixSkip, startPostfix, type Postfix } from "../postfix.ts";
import { startSink, type Sink } from "../sink.ts";
import { startStage, type Stage } from "../stage.ts";

describe("Postfix as the relay", { skip: findPostfixSkip() ?? false }, () => {
  let sink: Sink;
  let postfix: Postfix;
  let stage: Stage;
  before(async () => {
    sink = await startSink({
      reply: (step, to) =>
        step === "RCPT" && to.startsWith("late") ? "550 5.1.1 no such mailbox" : undefined,
    });
    postfix = await startPostfix({
      relayPort: sink.port,
      recipients: {
        "gone@example.org": "550 5.1.1 User unknown",
        "busy@example.org": "450 4.2.0 Mailbox busy",
      },
    });
    stage = await startStage({
      "smtp.host": "127.0.0.1",
      "smtp.port": postfix.port,
      "smtp.tls": "auto",
      from_domain: "shop.example",
      bounce_domain: "shop.example",
    });
  });
  after(async () => {
    await stage.close(1_000);
    await postfix.stop();
    await sink.close();
  });

  test("mail is accepted and arrives unchanged", async () => {
    const sent = await stage.call("POST", "/api/v1/send", {
      to: "Ada <ada@example.org>",
      subject: "Grüße aus Köln",
      text: ".\nZeile mit Umlauten: äöü\n..\n",
      html: `<p>${"x".repeat(3_000)}</p>`,
      attachments: [{ filename: "a.bin", content: Buffer.alloc(5_000, 1).toString("base64") }],
    });
    assert.equal(sent.status, 200, sent.text);
    const received = await waitFor(() =>
      sink.accepted.find(({ data }) => /K=C3=B6ln|Subject/.test(data)),
    );
    const mail = await PostalMime.parse(received.data);
    assert.equal(mail.subject, "Grüße aus Köln");
    assert.equal(mail.text?.trimEnd(), ".\nZeile mit Umlauten: äöü\n..");
    assert.equal(mail.html?.trim(), `<p>${"x".repeat(3_000)}</p>`);
    assert.equal((mail.attachments[0]!.content as ArrayBuffer).byteLength, 5_000);
  });

  test("a synchronous 550 is 422 and suppresses the address", async () => {
    const refused = await stage.call("POST", "/api/v1/send", {
      to: "gone@example.org",
      subject: "Hello",
      text: "Hello",
    });
    assert.equal(refused.status, 422, refused.text);
    assert.equal(refused.body.smtp_code, 550);
    assert.equal(refused.body.enhanced_code, "5.1.1");
    const entry = await stage.call("GET", "/api/v1/suppression/gone@example.org");
    assert.equal(entry.body.reason, "hard_bounce");
  });

  test("a 450 is queued and expires as failed, without a suppression", async () => {
    const { status, body } = await stage.call("POST", "/api/v1/send", {
      to: "busy@example.org",
      subject: "Hello",
      text: "Hello",
    });
    assert.equal(status, 202);
    const read = async () => (await stage.call("GET", `/api/v1/messages/${body.message_id}`)).body;
    assert.equal((await read()).recipients[0].code, 450);
    for (let attempt = 2; attempt <= 19; attempt += 1) {
      stage.advance(12 * 3_600_000);
      await waitFor(async () => {
        await stage.refill();
        return (await read()).recipients[0].attempts === attempt;
      });
    }
    assert.equal((await read()).status, "failed");
    assert.equal((await stage.call("GET", "/api/v1/suppression/busy@example.org")).status, 404);
  });

  test("a later failure comes back to the bounce address as a report", async () => {
    const sent = await stage.call("POST", "/api/v1/send", {
      to: "late@example.org",
      subject: "Hello",
      text: "Hello",
    });
    assert.equal(sent.status, 200);
    const report = await waitFor(() =>
      sink.accepted.find(({ recipient }) => recipient.startsWith("bounce+")),
    );
    assert.equal(report.sender, "");
    const [parsed] = await parseReports(Buffer.from(report.data, "latin1"), report);
    assert.ok(parsed?.kind === "failed");
    assert.equal(parsed.status, "5.1.1");
    assert.ok(parsed.recipients.includes("late@example.org"));
    assert.match(parsed.text, /no such mailbox/);
  });
});
