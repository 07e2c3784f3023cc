// Every way of ending access: immediately, on the other node as well, and still after a restart.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ADMIN, call, expectStatus, startWithAdmin, type Ask } from "../client.ts";
import { STAGE_KINDS, startStage, type Stage } from "../stage.ts";

const ACCOUNT = "/api/v1/auth/account";
const PASSWORD = "a fine long password";

/** Credentials of a signed-in user. */
interface Holder {
  id: string;
  access: string;
  refresh: string;
  session: string;
}

interface Way {
  name: string;
  /** Ends the access, as the user or as an administrator. */
  end: (stage: Stage, holder: Holder, root: string) => Promise<unknown>;
  /** The session continues after a token was revoked or the password was changed with it. */
  isSessionLeft?: true;
}

const send = (stage: Stage, status: number, method: string, path: string, ask: Ask) =>
  expectStatus(status, stage, method, path, ask);

const WAYS: readonly Way[] = [
  {
    name: "signing out",
    end: (stage, { session: token }) => send(stage, 204, "POST", "/api/v1/auth/logout", { token }),
  },
  {
    name: "ending the session",
    end: async (stage, { session: token }) => {
      const { body } = await send(stage, 200, "GET", "/api/v1/sessions", { token });
      const { sessions } = body as never as { sessions: { id: string; current: boolean }[] };
      const { id } = sessions.find(({ current }) => current)!;
      return send(stage, 204, "DELETE", `/api/v1/sessions/${id}`, { token });
    },
  },
  {
    name: "ending all sessions of a user",
    end: (stage, { id }, token) =>
      send(stage, 200, "POST", "/api/v1/sessions/invalidate", { token, body: { user_id: id } }),
  },
  {
    name: "changing the password",
    isSessionLeft: true,
    end: (stage, { session: token }) =>
      send(stage, 200, "POST", "/api/v1/auth/password/change", {
        token,
        body: { current_password: PASSWORD, new_password: "another long password" },
      }),
  },
  {
    name: "disabling the user",
    end: (stage, { id }, token) =>
      send(stage, 200, "PATCH", `/api/v1/users/${id}`, { token, body: { disabled: true } }),
  },
  {
    name: "removing the user",
    end: (stage, { id }, token) => send(stage, 204, "DELETE", `/api/v1/users/${id}`, { token }),
  },
  {
    name: "revoking the refresh token",
    isSessionLeft: true,
    end: (stage, { refresh }) => post(stage, "token/revoke", { token: refresh }),
  },
];

async function post(stage: Stage, path: string, form: Record<string, string>) {
  return fetch(`${stage.url}/api/v1/auth/${path}`, {
    method: "POST",
    body: new URLSearchParams({ client_id: "platform", ...form }),
  });
}

async function signIn(stage: Stage, username: string, secret = PASSWORD): Promise<Holder> {
  const { body } = await expectStatus(200, stage, "POST", "/api/v1/auth/login", {
    body: { username, password: secret },
  });
  const answer = body as never as Record<string, string> & { user: never };
  const { access_token: access, refresh_token: refresh, session_token: session } = answer;
  return {
    id: (answer.user as { id: string }).id,
    access: access!,
    refresh: refresh!,
    session: session!,
  };
}

async function requireEnded(stage: Stage, holder: Holder, way: Way): Promise<void> {
  const statusOf = async (token: string) => (await call(stage, "GET", ACCOUNT, { token })).status;
  assert.equal(await statusOf(holder.access), 401, `${way.name}: the access token`);
  const isLeft = way.isSessionLeft === true;
  assert.equal(await statusOf(holder.session), isLeft ? 200 : 401, `${way.name}: the session`);
  const refreshed = await post(stage, "token", {
    grant_type: "refresh_token",
    refresh_token: holder.refresh,
  });
  const { error } = (await refreshed.json()) as { error?: string };
  assert.equal(error, "invalid_grant", `${way.name}: the refresh token`);
}

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`access on ${kind}`, { skip }, () => {
    test("is void immediately on every node by every means, and stays so after a restart", async () => {
      const settings = { ...(await prepare()), public_url: "http://localhost:8086" };
      const one = await startWithAdmin(settings);
      const two = kind === "postgres" ? await startStage(settings) : one;
      const { access: root } = await signIn(one, ADMIN.username, ADMIN.password);
      const ended: (readonly [Holder, Way])[] = [];
      for (const [index, way] of WAYS.entries()) {
        const username = `holder-${index}`;
        await expectStatus(201, two, "POST", "/api/v1/auth/register", {
          body: { username, password: PASSWORD },
        });
        const holder = await signIn(two, username);
        const other = await signIn(two, username);
        // Fills the caches, which must not outlive the token.
        await expectStatus(200, two, "GET", ACCOUNT, { token: holder.access });
        await way.end(one, holder, root);
        await requireEnded(two, holder, way);
        const isOne = /^(?:signing out|ending the session|revoking)/.test(way.name);
        const { status } = await call(two, "GET", ACCOUNT, { token: other.access });
        assert.equal(status, isOne ? 200 : 401, `${way.name}: another sign-in`);
        ended.push([holder, way]);
      }
      await one.close();
      if (two !== one) await two.close();
      const again = await startStage(settings);
      for (const [holder, way] of ended) await requireEnded(again, holder, way);
      await again.close();
    });

    test("ends with the account in one transaction: if tokens cannot be revoked, nothing has changed", async () => {
      const stage = await startWithAdmin(await prepare());
      const { access: root } = await signIn(stage, ADMIN.username, ADMIN.password);
      await expectStatus(201, stage, "POST", "/api/v1/auth/register", {
        body: { username: "holder", password: PASSWORD },
      });
      const holder = await signIn(stage, "holder");
      const rename = (from: string, to: string) =>
        stage.database.db.schema.alterTable(from).renameTo(to).execute();
      await rename("auth_revocation_clock", "away");
      const path = `/api/v1/users/${holder.id}`;
      for (const [method, target, body] of [
        ["DELETE", path],
        ["PATCH", path, { disabled: true }],
        ["POST", "/api/v1/sessions/invalidate", { user_id: holder.id }],
      ] as const) {
        const { status } = await call(stage, method, target, {
          token: root,
          ...(body && { body }),
        });
        assert.equal(status, 500, `${method} ${target}`);
      }
      await rename("away", "auth_revocation_clock");
      for (const token of [holder.access, holder.session]) {
        await expectStatus(200, stage, "GET", ACCOUNT, { token });
      }
      await expectStatus(204, stage, "DELETE", path, { token: root });
      await expectStatus(401, stage, "GET", ACCOUNT, { token: holder.access });
      await stage.close();
    });
  });
}
