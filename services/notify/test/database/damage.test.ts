// Flipped bits in stored rows: they are reported, never sent or shown as another text, and other rows are undisturbed.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { startHookServer } from "../receiver.ts";
import { startRelayedStage } from "../relayed-stage.ts";
import { STAGE_KINDS, type Stage } from "../stage.ts";

/** Flips a bit of a value, as a fault of the disk does. */
function flip(value: Uint8Array): Uint8Array {
  const changed = Uint8Array.from(value);
  changed[changed.length - 4]! ^= 1;
  return changed;
}

function mailTo(to: string, more: object = {}): object {
  return { to, subject: `to ${to}`, text: `the text for ${to}`, ...more };
}

async function send(stage: Stage, mail: object): Promise<string> {
  const { status, body } = await stage.call("POST", "/api/v1/send", mail);
  assert.ok(status < 300, JSON.stringify(body));
  return body.message_id;
}

async function flipBody(stage: Stage, id: string): Promise<void> {
  const { db } = stage.database;
  const query = db.selectFrom("notify_bodies").select("content").where("message_id", "=", id);
  const { content } = await query.executeTakeFirstOrThrow();
  await db
    .updateTable("notify_bodies")
    .set({ content: flip(content) })
    .where("message_id", "=", id)
    .execute();
}

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(kind, { skip }, () => {
    test("a damaged content or recipient is not sent, and other mail is", async () => {
      const { stage, sink } = await startRelayedStage({ ...(await prepare()) });
      const later = { send_at: new Date(Date.now() + 60_000).toISOString() };
      const ids: string[] = [];
      for (const name of ["content", "recipient", "whole", "old"])
        ids.push(await send(stage, mailTo(`${name}@example.org`, later)));
      const [content, recipient, whole, old] = ids as [string, string, string, string];
      await flipBody(stage, content);
      const { db } = stage.database;
      await db
        .updateTable("notify_deliveries")
        .set({ address: "recipienu@example.org" })
        .where("message_id", "=", recipient)
        .execute();
      // As a version without checksums has stored it.
      for (const table of ["notify_bodies", "notify_deliveries"] as const)
        await db.updateTable(table).set({ checksum: null }).where("message_id", "=", old).execute();
      stage.advance(61_000);
      const stateOf = async (id: string): Promise<{ status: string; deliveries: unknown }> =>
        (await stage.call("GET", `/api/v1/messages/${id}`)).body;
      for (const id of [whole, old])
        await waitFor(async () => (await stateOf(id)).status === "sent");
      for (const id of [content, recipient]) {
        const state = await waitFor(async () => {
          const found = await stateOf(id);
          return found.status === "failed" ? found : undefined;
        });
        assert.match(JSON.stringify(state), /stored message is damaged/);
      }
      const recipients = sink.arrived.map((received) => received.recipient).toSorted();
      assert.deepEqual(recipients, ["old@example.org", "whole@example.org"]);
      assert.ok(stage.log.some((line) => line.includes("damaged") && line.includes(content)));
      const shown = await stage.call("GET", `/api/v1/messages/${content}/content`);
      assert.equal(shown.status, 500);
      assert.doesNotMatch(shown.text, /the text for/);
      // SQLite names the file and the remedy; PostgreSQL is not one file.
      const ready = await stage.call("GET", "/readyz");
      assert.equal(ready.status, kind === "sqlite" ? 503 : 200);
      if (kind === "sqlite")
        assert.match(ready.text, /notify\.db is damaged \(.*checksum\).*restore a backup/);
      await stage.close();
    });
  });
}

test("a damaged webhook call is not made", async () => {
  const hooks = await startHookServer();
  after(() => hooks.close());
  const settings = { allow_private_targets: true };
  const { stage, sink } = await startRelayedStage(settings);
  assert.ok(sink.port > 0);
  const { body: hook } = await stage.call("POST", "/api/v1/webhooks", { url: hooks.url });
  await send(stage, mailTo("ada@example.org"));
  await waitFor(() => hooks.requests.length === 1);
  const path = `/api/v1/webhooks/${hook.id}/calls`;
  const read = async () => (await stage.call("GET", path)).body.calls[0];
  await waitFor(async () => (await read()).status === "delivered");
  const { db } = stage.database;
  const { payload } = await db
    .selectFrom("notify_webhook_calls")
    .select("payload")
    .executeTakeFirstOrThrow();
  await db
    .updateTable("notify_webhook_calls")
    .set({ payload: payload.replace("ada@", "ade@"), status: "pending", due_at: Date.now() })
    .execute();
  const call = await waitFor(async () => {
    const found = await read();
    return found.status === "failed" ? found : undefined;
  });
  assert.match(call.detail, /damaged/);
  assert.equal(hooks.requests.length, 1);
  await stage.close();
});
