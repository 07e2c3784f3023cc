// Secrets at rest: sealed in the database, useless without their key, which is never replaced by another one.
import assert from "node:assert/strict";
import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { sql } from "kysely";
import { Webhook } from "standardwebhooks";
import { waitFor } from "@platform/testing/wait";
import { startHookServer, type HookServer } from "../receiver.ts";
import { startSink, type Sink } from "../sink.ts";
import { STAGE_KINDS, startStageOn, type Stage, type StageKind } from "../stage.ts";

const OPEN: { close(): Promise<void> }[] = [];
after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
});

const KEYS = [`hex:${"5e".repeat(32)}`, `hex:${"6f".repeat(32)}`] as const;
const CLEAR = /PRIVATE KEY|whsec_/;

interface Started {
  stage: Stage;
  hooks: HookServer;
  sink: Sink;
  /** Secret of the webhook before its rotation. */
  secret: string;
}

/** Starts the service with a DKIM key, a webhook and a rule, both with a rotated secret. */
async function start({ prepare }: StageKind): Promise<Started> {
  const [sink, hooks] = [await startSink(), await startHookServer()];
  const stage = await startStageOn({
    ...(await prepare()),
    "smtp.host": "127.0.0.1",
    "smtp.port": sink.port,
    from_domain: "shop.example",
    allow_private_targets: true,
    dns_servers: ["127.0.0.1:1"],
  });
  OPEN.push(sink, hooks, { close: () => stage.close(500) });
  const { body: domain } = await stage.call("GET", "/api/v1/domains/shop.example");
  const path = `/api/v1/domains/shop.example/keys/${domain.keys[0].selector}/activate`;
  assert.equal((await stage.call("POST", path)).status, 200);
  const { body: webhook } = await stage.call("POST", "/api/v1/webhooks", { url: hooks.url });
  await stage.call("POST", `/api/v1/webhooks/${webhook.id}/secret`);
  const { body: rule } = await stage.call("POST", "/api/v1/inbound/rules", {
    name: "all",
    match: { to_pattern: "*@shop.example" },
    forward_to: hooks.url,
  });
  await stage.call("POST", `/api/v1/inbound/rules/${rule.rule_id}/rotate-secret`);
  return { stage, hooks, sink, secret: webhook.secret };
}

const COLUMNS = [
  ["notify_settings", "value"],
  ["notify_dkim_keys", "private_key"],
  ["notify_webhooks", "secret"],
  ["notify_webhooks", "previous_secret"],
  ["notify_inbound_rules", "secret"],
  ["notify_inbound_rules", "previous_secret"],
] as const;

async function readAll({ database }: Stage): Promise<string[]> {
  const all: string[] = [];
  for (const [table, column] of COLUMNS) {
    const { rows } = await sql<{
      text: string;
    }>`select ${sql.ref(column)} as text from ${sql.table(table)}`.execute(database.db);
    assert.ok(rows.length > 0, table);
    all.push(...rows.map(({ text }) => text));
  }
  return all;
}

/** Sends a mail; it is signed, and so is the call of the webhook, also with its first secret. */
async function checkSignatures({ hooks, sink, secret }: Started, stage: Stage): Promise<void> {
  const [mails, calls] = [sink.accepted.length, hooks.requests.length];
  const mail = { to: "ada@example.org", subject: "Hello", text: "Hello" };
  assert.equal((await stage.call("POST", "/api/v1/send", mail)).status, 200);
  assert.match(sink.accepted[mails]!.data, /^DKIM-Signature: /);
  const { text, headers } = await waitFor(() => hooks.requests[calls]);
  new Webhook(secret).verify(text, headers as Record<string, string>);
}

for (const kind of STAGE_KINDS) {
  describe(`secrets on ${kind.kind}`, { skip: kind.skip ?? false }, () => {
    test("no column contains one, and a restarted service signs with them", async () => {
      const started = await start(kind);
      for (const text of await readAll(started.stage)) {
        assert.match(text, /^v1\.[0-9a-f]{8}\./);
        assert.doesNotMatch(text, CLEAR);
      }
      await started.stage.close(500);
      const again = await startStageOn(started.stage.settings);
      OPEN.push({ close: () => again.close(500) });
      await checkSignatures(started, again);
    });

    test("rows of earlier versions are read, and sealed at the start", async () => {
      const started = await start(kind);
      const { db } = started.stage.database;
      await db
        .updateTable("notify_webhooks")
        .set({ secret: started.secret, previous_secret: null, previous_until: null })
        .execute();
      const key = Buffer.alloc(32, 7).toString("base64");
      await db
        .updateTable("notify_settings")
        .set({ value: key })
        .where("name", "=", "link_key")
        .execute();
      await started.stage.close(500);
      const again = await startStageOn(started.stage.settings);
      OPEN.push({ close: () => again.close(500) });
      await again.call(
        "POST",
        `/api/v1/webhooks/${(await again.call("GET", "/api/v1/webhooks")).body.webhooks[0].id}/secret`,
      );
      for (const text of await readAll(again)) assert.match(text, /^v1\./);
      await checkSignatures(started, again);
    });

    test("a new first key seals everything again; the old one is not needed any more", async () => {
      const started = await start(kind);
      const { settings } = started.stage;
      const old =
        kind.kind === "postgres"
          ? KEYS[0]
          : (
              JSON.parse(
                readFileSync(join(String(settings["data_dir"]), "secrets.json"), "utf8"),
              ) as { encryption: string }
            ).encryption;
      await started.stage.close(500);
      const both = await startStageOn({ ...settings, encryption_keys: `${KEYS[1]},${old}` });
      await both.close(500);
      const again = await startStageOn({ ...settings, encryption_keys: KEYS[1] });
      OPEN.push({ close: () => again.close(500) });
      await checkSignatures(started, again);
    });

    test("the start is refused with other keys, and nothing is changed", async () => {
      const started = await start(kind);
      const before = await readAll(started.stage);
      await started.stage.close(500);
      const { settings } = started.stage;
      await assert.rejects(
        startStageOn({ ...settings, encryption_keys: KEYS[1] }),
        /PLATFORM_NOTIFY_ENCRYPTION_KEYS lacks.*restore secrets\.json.*"Secrets" in the README/,
      );
      const again = await startStageOn(settings);
      OPEN.push({ close: () => again.close(500) });
      assert.deepEqual(await readAll(again), before);
    });
  });
}

test("a lost key file is not replaced by a new one; restoring it starts the service", async () => {
  const started = await start(STAGE_KINDS[0]!);
  const { settings } = started.stage;
  await started.stage.close(500);
  const path = join(String(settings["data_dir"]), "secrets.json");
  assert.equal(statSync(path).mode & 0o777, 0o600);
  renameSync(path, `${path}.saved`);
  await assert.rejects(startStageOn(settings), /secrets\.json is missing.*restore secrets\.json/);
  assert.equal(existsSync(path), false);
  writeFileSync(path, "{}");
  await assert.rejects(startStageOn(settings), /secrets\.json is damaged/);
  renameSync(`${path}.saved`, path);
  const again = await startStageOn(settings);
  OPEN.push({ close: () => again.close(500) });
  await checkSignatures(started, again);
});

test("a text that was moved to another row signs nothing", async () => {
  const started = await start(STAGE_KINDS[0]!);
  const { db } = started.stage.database;
  const { secret } = await db
    .selectFrom("notify_inbound_rules")
    .select("secret")
    .executeTakeFirstOrThrow();
  await started.stage.close(500);
  const moved = await startStageOn(started.stage.settings);
  OPEN.push({ close: () => moved.close(500) });
  await moved.database.db.updateTable("notify_webhooks").set({ secret }).execute();
  await moved.close(500);
  await assert.rejects(
    startStageOn(started.stage.settings),
    /notify_webhooks\.secret\..*moved from another row/,
  );
});

test("PostgreSQL requires configured keys", { skip: STAGE_KINDS[1]!.skip ?? false }, async () => {
  const settings = await STAGE_KINDS[1]!.prepare();
  await assert.rejects(
    startStageOn({ ...settings, encryption_keys: undefined }),
    /PLATFORM_NOTIFY_ENCRYPTION_KEYS is required on PostgreSQL/,
  );
});
