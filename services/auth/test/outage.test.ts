// A database outage: the service stays up, responds with 503, and recovers.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as joinPath } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  findPostgresSkip,
  startPostgresCluster,
  type PostgresCluster,
} from "@platform/kernel/db-testing";
import { ADMIN, expectStatus, join, signIn, startWithAdmin } from "./client.ts";
import type { Stage } from "./stage.ts";

const RECOVERY_MS_MAX = 20_000;
const CACHE_MS_MAX = 5_000;

interface Seen {
  name: string;
  status: number;
  retryAfter: string | null;
  type: string | null;
}

describe("an unavailable database", { skip: findPostgresSkip() ?? false }, () => {
  const folder = mkdtempSync(joinPath(tmpdir(), "auth-outage-"));
  let cluster: PostgresCluster;
  let stage: Stage;
  before(async () => {
    cluster = await startPostgresCluster({ keepsCommits: true });
    stage = await startWithAdmin({
      data_dir: folder,
      database_url: await cluster.createDatabase(),
      session_secret: `hex:${"5e".repeat(32)}`,
      encryption_keys: `hex:${"ec".repeat(32)}`,
    });
  });
  after(async () => {
    await stage.close();
    await cluster.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test("restarts under load cause 503 with Retry-After only, and the service recovers", async () => {
    const root = await signIn(stage, ADMIN);
    const person = await join(stage, "maria");
    const { body: client } = await expectStatus(201, stage, "POST", "/api/v1/auth/clients", {
      token: root.token,
      body: { grant_types: ["client_credentials"], redirect_uris: [], response_types: [] },
    });
    const basic = `Basic ${btoa(`${String(client["client_id"])}:${String(client["client_secret"])}`)}`;
    const form = (fields: Record<string, string>): RequestInit => ({
      method: "POST",
      headers: { Authorization: basic },
      body: new URLSearchParams(fields),
    });
    const json = { "Content-Type": "application/json" };
    const session = { Cookie: `platform_session=${person.session}` };
    const requests: Record<string, [path: string, init: RequestInit]> = {
      login: [
        "/api/v1/auth/login",
        {
          method: "POST",
          headers: json,
          body: JSON.stringify({ username: person.username, password: person.password }),
        },
      ],
      "own sessions": [
        "/api/v1/sessions",
        { headers: { Authorization: `Bearer ${person.token}` } },
      ],
      "account page": ["/account", { headers: session }],
      token: ["/api/v1/auth/token", form({ grant_type: "client_credentials" })],
      introspection: ["/api/v1/auth/token/introspect", form({ token: person.token })],
      "authorization request": [
        `/api/v1/auth/authorize?client_id=${String(client["client_id"])}&response_type=code`,
        { headers: { Accept: "text/html" }, redirect: "manual" },
      ],
    };
    const seen: Seen[] = [];
    const over = new AbortController();
    const ask = async (name: string): Promise<Seen> => {
      const [path, init] = requests[name]!;
      const answer = await fetch(stage.url + path, init);
      await answer.arrayBuffer();
      const { headers, status } = answer;
      const found = {
        name,
        status,
        retryAfter: headers.get("retry-after"),
        type: headers.get("content-type"),
      };
      seen.push(found);
      return found;
    };
    const usual = new Map<string, number>();
    for (const name of Object.keys(requests)) usual.set(name, (await ask(name)).status);
    assert.deepEqual([...usual.values()], [200, 200, 200, 200, 200, 400]);

    // Recently read rows may still be served from memory.
    const waitForOutage = async (name: string): Promise<void> => {
      const deadline = performance.now() + CACHE_MS_MAX;
      for (let { status } = await ask(name); status !== 503; { status } = await ask(name)) {
        assert.equal(status, usual.get(name), `${name} while the database is down`);
        assert.ok(performance.now() < deadline, `${name} does not notice the outage`);
        await sleep(20);
      }
    };
    const waitForReadiness = async (wanted: number): Promise<void> => {
      const deadline = performance.now() + CACHE_MS_MAX;
      while ((await fetch(`${stage.url}/readyz`)).status !== wanted) {
        assert.ok(performance.now() < deadline, `readiness does not become ${wanted}`);
        await sleep(20);
      }
    };
    const restartRepeatedly = async (): Promise<void> => {
      for (const mode of ["fast", "immediate", "immediate"] as const) {
        await cluster.restart(mode, async () => {
          for (const name of Object.keys(requests)) {
            await waitForOutage(name);
          }
          await waitForReadiness(503);
          assert.equal((await fetch(`${stage.url}/healthz`)).status, 200);
        });
        const deadline = performance.now() + RECOVERY_MS_MAX;
        for (const name of Object.keys(requests)) {
          while ((await ask(name)).status === 503) {
            assert.ok(performance.now() < deadline, `${name} works again`);
            await sleep(20);
          }
        }
        await waitForReadiness(200);
      }
    };
    const load = Object.keys(requests).flatMap((name) =>
      Array.from({ length: 2 }, async () => {
        while (!over.signal.aborted) if ((await ask(name)).status === 503) await sleep(5);
      }),
    );
    try {
      await restartRepeatedly();
    } finally {
      over.abort();
    }
    await Promise.all(load);

    for (const { name, status, retryAfter } of seen) {
      assert.ok(status === 503 || status === usual.get(name), `${name} is answered ${status}`);
      if (status === 503) assert.ok(Number(retryAfter) >= 1, `${name} has Retry-After`);
    }
    const pages = seen.filter(({ name, status }) => name === "account page" && status === 503);
    assert.ok(pages.every(({ type }) => type === "text/html; charset=utf-8"));
  });
});
