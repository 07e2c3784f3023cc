// Sending with the development inbox, on both databases.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import PostalMime from "postal-mime";
import { waitFor } from "@platform/testing/wait";
import { STAGE_KINDS, startStageOn, type Stage } from "../stage.ts";

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`sending on ${kind}`, { skip: skip ?? false }, () => {
    let stage: Stage;
    before(async () => {
      stage = await startStageOn({ ...(await prepare()), from_domain: "shop.example" });
    });
    after(() => stage.close());

    test("a mail is answered with `sent` and is in the inbox", async () => {
      const sent = await stage.call("POST", "/api/v1/send", {
        to: "Ada Lovelace <ada@example.org>",
        subject: "Grüße",
        html: "<p>Hello <b>Ada</b></p>",
        text: "Hello Ada",
      });
      assert.equal(sent.status, 200, sent.text);
      assert.equal(sent.body.status, "sent");
      assert.match(sent.body.delivered_at, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
      const raw = await stage.call("GET", `/api/v1/inbox/${sent.body.message_id}/raw`);
      assert.equal(raw.headers.get("content-type"), "message/rfc822");
      const mail = await PostalMime.parse(raw.text);
      assert.equal(mail.subject, "Grüße");
      assert.deepEqual(mail.to, [{ name: "Ada Lovelace", address: "ada@example.org" }]);
      assert.deepEqual(mail.from, { name: "", address: "no-reply@shop.example" });
      assert.equal(mail.text?.trim(), "Hello Ada");
      assert.match(mail.html!, /<b>Ada<\/b>/);
      assert.equal(mail.messageId, `<${sent.body.message_id}@shop.example>`);
    });

    test("the status of a message has its events and recipients", async () => {
      const { body } = await stage.call("POST", "/api/v1/send", {
        to: "eve@example.org",
        cc: ["Bob <bob@example.org>"],
        bcc: ["carol@example.org"],
        subject: "Several",
        text: "Hello",
        tags: ["welcome"],
        metadata: { order: "17" },
      });
      assert.deepEqual(
        body.recipients.map((one: { address: string; status: string }) => [
          one.address,
          one.status,
        ]),
        [
          ["eve@example.org", "sent"],
          ["bob@example.org", "sent"],
          ["carol@example.org", "sent"],
        ],
      );
      const status = await stage.call("GET", `/api/v1/messages/${body.message_id}`);
      assert.equal(status.body.status, "sent");
      assert.deepEqual(status.body.metadata, { order: "17" });
      assert.deepEqual(
        status.body.events.map((event: { type: string }) => event.type),
        ["queued", "sent", "sent", "sent"],
      );
      const raw = await stage.call("GET", `/api/v1/inbox/${body.message_id}/raw`);
      assert.doesNotMatch(raw.text, /carol/, "Bcc is only in the envelope");
      const item = await stage.call("GET", `/api/v1/inbox/${body.message_id}`);
      assert.deepEqual(item.body.to.toSorted(), [
        "bob@example.org",
        "carol@example.org",
        "eve@example.org",
      ]);
    });

    test("attachments arrive unchanged, and inline ones in the HTML view", async () => {
      const png = Buffer.from("iVBORw0KGgo=", "base64");
      const { body } = await stage.call("POST", "/api/v1/send", {
        to: "ada@example.org",
        subject: "Files",
        html: '<img src="cid:logo"><script>alert(1)</script>',
        attachments: [
          {
            filename: "Übersicht „1“.pdf",
            content: Buffer.from("pdf").toString("base64"),
            content_type: "application/pdf",
          },
          {
            filename: "logo.png",
            content: png.toString("base64"),
            content_type: "image/png",
            content_id: "logo",
          },
        ],
      });
      const raw = await stage.call("GET", `/api/v1/inbox/${body.message_id}/raw`);
      const mail = await PostalMime.parse(raw.text);
      const names = new Set(mail.attachments.map(({ filename }) => filename));
      assert.deepEqual(names, new Set(["Übersicht „1“.pdf", "logo.png"]));
      const pdf = mail.attachments.find(({ mimeType }) => mimeType === "application/pdf")!;
      assert.equal(Buffer.from(pdf.content as ArrayBuffer).toString(), "pdf");
      const view = await stage.call("GET", `/api/v1/inbox/${body.message_id}/html`);
      assert.match(view.text, /src="data:image\/png;base64,iVBORw0KGgo="/);
      const policy = view.headers.get("content-security-policy")!;
      assert.match(policy, /default-src 'none'/);
      assert.match(policy, /sandbox(?:;|$)/);
    });

    test("an idempotency key returns the first answer, and rejects another request", async () => {
      const body = { to: "ada@example.org", subject: "Once", text: "Hello" };
      const key = { "Idempotency-Key": "order-17" };
      const [first, second] = await Promise.all([
        stage.call("POST", "/api/v1/send", body, key),
        stage.call("POST", "/api/v1/send", body, key),
      ]);
      assert.equal(first.body.message_id, second.body.message_id);
      const third = await stage.call("POST", "/api/v1/send", body, key);
      assert.ok([first.text, second.text].includes(third.text));
      const other = await stage.call("POST", "/api/v1/send", { ...body, text: "Bye" }, key);
      assert.equal(other.status, 409);
      assert.equal(other.body.code, "conflict");
      stage.advance(25 * 3_600_000);
      const later = await stage.call("POST", "/api/v1/send", body, key);
      assert.notEqual(later.body.message_id, first.body.message_id, "keys are kept for 24 h");
    });

    test("a scheduled message is sent at its time, or canceled before", async () => {
      const sendAt = new Date(Date.now() + 26 * 3_600_000 + 600_000).toISOString();
      const request = { to: "ada@example.org", subject: "Later", text: "Hello", send_at: sendAt };
      const first = await stage.call("POST", "/api/v1/send", request);
      assert.equal(first.status, 202);
      assert.equal(first.body.status, "queued");
      const second = await stage.call("POST", "/api/v1/send", request);
      const canceled = await stage.call("DELETE", `/api/v1/messages/${second.body.message_id}`);
      assert.equal(canceled.status, 200, canceled.text);
      assert.equal((await stage.call("GET", `/api/v1/inbox/${first.body.message_id}`)).status, 404);
      stage.advance(3 * 3_600_000);
      await waitFor(async () => {
        await stage.refill();
        const { status } = await stage.call("GET", `/api/v1/inbox/${first.body.message_id}`);
        return status === 200;
      });
      const status = await stage.call("GET", `/api/v1/messages/${second.body.message_id}`);
      assert.equal(status.body.status, "canceled");
      assert.equal(
        (await stage.call("GET", `/api/v1/inbox/${second.body.message_id}`)).status,
        404,
      );
      const again = await stage.call("DELETE", `/api/v1/messages/${first.body.message_id}`);
      assert.equal(again.status, 409);
    });

    test("messages are listed newest first, by filter and cursor", async () => {
      for (let index = 0; index < 5; index += 1) {
        await stage.call("POST", "/api/v1/send", {
          to: `list${index}@example.org`,
          subject: `List ${index}`,
          text: "Hello",
          tags: ["list%"],
        });
      }
      const first = await stage.call("GET", "/api/v1/messages?tag=list%25&limit=3");
      assert.deepEqual(
        first.body.messages.map((one: { subject: string }) => one.subject),
        ["List 4", "List 3", "List 2"],
      );
      const second = await stage.call(
        "GET",
        `/api/v1/messages?tag=list%25&limit=3&cursor=${first.body.next_cursor}`,
      );
      assert.equal(second.body.messages.length, 2);
      assert.equal(second.body.next_cursor, null);
      const found = await stage.call("GET", "/api/v1/messages?to=list3@example.org&status=sent");
      assert.equal(found.body.messages.length, 1);
      const none = await stage.call("GET", "/api/v1/messages?to=list3@example.org&status=bounced");
      assert.equal(none.body.messages.length, 0);
    });

    test("a batch gives each message its own result", async () => {
      const { status, body } = await stage.call("POST", "/api/v1/send/batch", {
        messages: [
          { to: "ada@example.org", subject: "1", text: "Hello" },
          { to: "not an address", subject: "2", text: "Hello" },
          { to: "bob@example.org", subject: "3", text: "Hello" },
        ],
      });
      assert.equal(status, 200);
      assert.deepEqual(
        body.results.map((one: { code: number; status: string }) => [one.code, one.status]),
        [
          [200, "sent"],
          [400, "failed"],
          [200, "sent"],
        ],
      );
      assert.match(body.results[1].problem.detail, /messages\.1\.to/);
      const messages = Array.from({ length: 501 }, () => ({}));
      const tooMany = await stage.call("POST", "/api/v1/send/batch", { messages });
      assert.equal(tooMany.status, 400);
    });

    test("the content of a sensitive message is erased from the queue after delivery", async () => {
      const { body } = await stage.call("POST", "/api/v1/send", {
        to: "ada@example.org",
        subject: "Reset",
        text: "secret link",
        sensitive: true,
      });
      const stored = await stage.database.db
        .selectFrom("notify_bodies")
        .select("message_id")
        .where("message_id", "=", body.message_id)
        .execute();
      assert.deepEqual(stored, []);
      const kept = await stage.call("GET", `/api/v1/inbox/${body.message_id}`);
      assert.match(kept.body.text, /secret link/, "readable in the inbox for 24 h");
    });

    test("an SMS lands in the inbox", async () => {
      const sent = await stage.call("POST", "/api/v1/send", {
        channel: "sms",
        to: "+4930123456",
        text: "Your code is 123456",
      });
      assert.equal(sent.status, 200, sent.text);
      const item = await stage.call("GET", `/api/v1/inbox/${sent.body.message_id}`);
      assert.equal(item.body.channel, "sms");
      assert.equal(item.body.text, "Your code is 123456");
    });
  });
}
