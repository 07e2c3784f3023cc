// Backups of a running service on both databases: sessions, tokens, passkeys and signing keys survive a restore.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as joinPath } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { BackupError, fetchBackup, receiveBackup, verifyBackup } from "@platform/kernel/backup";
import { restoreDatabaseBackup } from "@platform/kernel/database-backup";
import { emptyDatabase } from "@platform/kernel/db-testing";
import { describeState } from "../src/backup/backup.ts";
import { DATA_FORMAT } from "../src/database/schema.ts";
import { Authenticator } from "./authenticator.ts";
import { call, expectStatus, join, type Person } from "./client.ts";
import { STAGE_KINDS, startStage, type Stage } from "./stage.ts";

const token = "a-token-for-backups-only";
const PASSKEY = "/api/v1/auth/passkey";
const ignore = (): void => undefined;

type Place = Parameters<typeof describeState>[0];

function restore(place: Place, folder: string, isDryRun = false): Promise<void> {
  return restoreDatabaseBackup(describeState(place), { folder, dry_run: isDryRun }, ignore);
}

async function registerPasskey(stage: Stage, person: Person): Promise<Authenticator> {
  const authenticator = new Authenticator(stage.publicUrl);
  const { body } = await expectStatus(200, stage, "POST", `${PASSKEY}/register/begin`, {
    token: person.token,
    body: { user_id: person.id },
  });
  const { challenge } = body as unknown as {
    challenge: { publicKey: Parameters<Authenticator["create"]>[0] };
  };
  const created = authenticator.create(challenge.publicKey);
  await expectStatus(201, stage, "POST", `${PASSKEY}/register/finish`, { body: created });
  return authenticator;
}

async function signInByPasskey(stage: Stage, authenticator: Authenticator): Promise<void> {
  const { body } = await expectStatus(200, stage, "POST", `${PASSKEY}/login/begin`, { body: {} });
  const { challenge } = body as unknown as {
    challenge: { publicKey: Parameters<Authenticator["get"]>[0] };
  };
  const answer = authenticator.get(challenge.publicKey);
  await expectStatus(200, stage, "POST", `${PASSKEY}/login/finish`, { body: answer });
}

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(joinPath(tmpdir(), "auth-backup-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

// All data of the service is gone: its folder, and in PostgreSQL its tables.
async function destroy({ data_dir: dataDir, database_url: url }: Place): Promise<void> {
  rmSync(dataDir, { recursive: true, force: true });
  if (url !== undefined) await emptyDatabase(url);
}

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`backups on ${kind}`, { skip }, () => {
    test("sign-ins before a backup work after a restore: tokens, sessions, passkeys, keys", async (t) => {
      const base = makeFolder(t);
      const settings = { ...(await prepare()), backup_token: token };
      const stage = await startStage(settings);
      const ada = await join(stage, "ada");
      const passkey = await registerPasskey(stage, ada);
      const keys = await (await fetch(`${stage.url}/.well-known/jwks.json`)).json();

      const acknowledged: Person[] = [];
      const over = new AbortController();
      const writing = (async () => {
        for (let number = 0; !over.signal.aborted; number += 1) {
          acknowledged.push(await join(stage, `user-${number}`));
        }
      })();
      while (acknowledged.length < 5) await new Promise((resolve) => setTimeout(resolve, 5));
      const before = [...acknowledged];
      const folder = joinPath(base, "backup");
      const { stream } = await fetchBackup({ url: stage.url, token });
      const manifest = await receiveBackup({ folder, service: "auth" }, stream);
      over.abort();
      await writing;
      await stage.close();
      const { database, audit_events } = manifest.mark as Record<string, unknown>;
      assert.equal(database, kind);
      assert.ok(Number(audit_events) > 0);

      const place = settings as unknown as Place;
      if (kind === "sqlite") {
        await assert.rejects(restore(place, folder), /is not empty; move it away/);
      }
      await destroy(place);
      await restore(place, folder, true);
      assert.equal(existsSync(place.data_dir), false);
      await restore(place, folder);

      const port = new URL(stage.url).port;
      const again = await startStage({ ...settings, addr: `127.0.0.1:${port}` });
      for (const person of before) {
        const { username, password } = person;
        await expectStatus(200, again, "GET", "/api/v1/auth/account", { token: person.token });
        await expectStatus(200, again, "GET", "/api/v1/auth/account", { token: person.session });
        await expectStatus(200, again, "POST", "/api/v1/auth/login", {
          body: { username, password },
        });
      }
      await signInByPasskey(again, passkey);
      assert.deepEqual(await (await fetch(`${again.url}/.well-known/jwks.json`)).json(), keys);
      assert.equal((await call(again, "GET", "/api/v1/admin/backup")).status, 401);
      await again.close();
    });

    test("a backup of the other database or a newer version is refused before anything is written", async (t) => {
      const base = makeFolder(t);
      const settings = { ...(await prepare()), backup_token: token };
      const stage = await startStage(settings);
      const folder = joinPath(base, "backup");
      const { stream } = await fetchBackup({ url: stage.url, token });
      await receiveBackup({ folder, service: "auth" }, stream);
      await stage.close();
      const target = joinPath(base, "restored");
      const other: Place =
        kind === "sqlite"
          ? { data_dir: target, database_url: "postgres://localhost/other" }
          : { data_dir: target, database_url: undefined };
      await assert.rejects(
        restore(other, folder),
        /the backup is of a (?:SQLite|PostgreSQL) database/,
      );
      const dataFormats = { oldest: 1, newest: DATA_FORMAT - 1 };
      await assert.rejects(
        verifyBackup({ folder, service: "auth", dataFormats }),
        (error) =>
          error instanceof BackupError && /data format \d+; this version reads/.test(error.message),
      );
      assert.deepEqual(readdirSync(base), ["backup"]);
      if (kind === "sqlite") return;
      await assert.rejects(
        restore({ ...(settings as unknown as Place), data_dir: target }, folder),
        /already exists/,
      );
      assert.deepEqual(readdirSync(base), ["backup"]);
    });
  });
}
