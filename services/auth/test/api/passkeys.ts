// Passkeys: registration, sign-in without a username, list, rename, removal, single-use challenges, rejections.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Authenticator, type Flaws } from "../authenticator.ts";
import { ADMIN, call, expectStatus, join, signIn, startWithAdmin, type Person } from "../client.ts";
import { STAGE_KINDS, startStage, type Stage } from "../stage.ts";

const BASE = "/api/v1/auth/passkey";
type Options = Parameters<Authenticator["create"]>[0];

async function begin(stage: Stage, person: Person): Promise<Options> {
  const { body } = await expectStatus(200, stage, "POST", `${BASE}/register/begin`, {
    token: person.token,
    body: { user_id: person.id },
  });
  return (body as never as { challenge: { publicKey: Options } }).challenge.publicKey;
}

async function register(stage: Stage, person: Person): Promise<Authenticator> {
  const authenticator = new Authenticator(stage.publicUrl);
  const options = await begin(stage, person);
  const done = await expectStatus(201, stage, "POST", `${BASE}/register/finish`, {
    body: authenticator.create(options),
  });
  const { access_token, session_token } = done.body as Record<string, string>;
  Object.assign(person, { token: access_token, session: session_token });
  return authenticator;
}

async function challenge(stage: Pick<Stage, "url">) {
  const { body } = await expectStatus(200, stage, "POST", `${BASE}/login/begin`, { body: {} });
  return (body as never as { challenge: { publicKey: { challenge: string; rpId: string } } })
    .challenge.publicKey;
}

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`passkeys on ${kind}`, { skip }, () => {
    test("a passkey signs in without a username, counts as two factors, and returns a login response", async () => {
      const stage = await startStage(await prepare());
      const person = await join(stage, "ada");
      const authenticator = await register(stage, person);
      const options = await challenge(stage);
      assert.deepEqual(
        Object.keys(options).sort((a, b) => a.localeCompare(b)),
        ["allowCredentials", "challenge", "rpId", "timeout", "userVerification"].filter(
          (name) => name in options,
        ),
      );
      const answer = await expectStatus(200, stage, "POST", `${BASE}/login/finish`, {
        body: authenticator.get(options),
      });
      const { access_token: token, session_token } = answer.body as Record<string, string>;
      assert.ok(session_token);
      const claims = JSON.parse(
        Buffer.from(token!.split(".")[1]!, "base64url").toString(),
      ) as Record<string, unknown>;
      assert.equal(claims["acr"], "2");
      assert.deepEqual(claims["amr"], ["hwk", "user", "mfa"]);
      await expectStatus(200, stage, "GET", "/api/v1/auth/account", { token });
      const list = await expectStatus(200, stage, "GET", "/api/v1/auth/passkeys", { token });
      const [item] = (
        list.body as never as { passkeys: { id: string; name: string; last_used_at: string }[] }
      ).passkeys;
      assert.equal(item!.name, "Node.js");
      assert.ok(item!.last_used_at);
      const path = `/api/v1/auth/passkeys/${item!.id}`;
      await expectStatus(200, stage, "PATCH", path, { token, body: { name: "My key" } });
      await expectStatus(400, stage, "PATCH", path, { token, body: { name: " " } });
      const eve = await join(stage, "eve");
      await expectStatus(404, stage, "PATCH", path, { token: eve.token, body: { name: "Mine" } });
      await expectStatus(404, stage, "DELETE", path, { token: eve.token });
      await expectStatus(204, stage, "DELETE", path, { token });
      await expectStatus(401, stage, "POST", `${BASE}/login/finish`, {
        body: authenticator.get(await challenge(stage)),
      });
      await stage.close();
    });

    test("of 64 concurrent uses of a signed challenge one succeeds", async () => {
      const stage = await startStage({ ...(await prepare()) });
      const authenticator = await register(stage, await join(stage, "ada"));
      const body = authenticator.get(await challenge(stage));
      const answers = await Promise.all(
        Array.from({ length: 64 }, () => call(stage, "POST", `${BASE}/login/finish`, { body })),
      );
      const counts = Map.groupBy(answers, ({ status }) => status);
      assert.equal(counts.get(200)?.length, 1);
      assert.equal(counts.get(401)?.length, 63);
      await stage.close();
    });

    test("a registration challenge creates one passkey under concurrency", async () => {
      const stage = await startStage(await prepare());
      const person = await join(stage, "ada");
      const options = await begin(stage, person);
      const answers = await Promise.all(
        Array.from({ length: 64 }, () =>
          call(stage, "POST", `${BASE}/register/finish`, {
            body: new Authenticator(stage.publicUrl).create(options),
          }),
        ),
      );
      assert.equal(answers.filter(({ status }) => status === 201).length, 1);
      assert.equal(answers.filter(({ status }) => status === 401).length, 63);
      await stage.close();
    });

    test("registration requires a fresh sign-in to the same account", async () => {
      const stage = await startStage(await prepare());
      const [ada, eve] = [await join(stage, "ada"), await join(stage, "eve")];
      const path = `${BASE}/register/begin`;
      await expectStatus(401, stage, "POST", path, { body: { user_id: ada.id } });
      await expectStatus(403, stage, "POST", path, { token: eve.token, body: { user_id: ada.id } });
      await expectStatus(200, stage, "POST", path, { token: ada.session, body: {} });
      stage.clock.advance(601_000);
      const stale = await expectStatus(401, stage, "POST", path, { token: ada.session, body: {} });
      assert.match(stale.headers.get("www-authenticate")!, /insufficient_user_authentication/);
      await stage.close();
    });

    test("forged, foreign, replayed and late responses are rejected", async () => {
      const stage = await startStage(await prepare());
      const person = await join(stage, "ada");
      const authenticator = await register(stage, person);
      const other = await register(stage, await join(stage, "bob"));
      const flaws: Flaws[] = [
        { origin: "https://evil.example" },
        { challenge: Buffer.alloc(48).toString("base64url") },
        { challenge: "" },
        { rpId: "evil.example" },
        { flags: 0x01 },
        { flags: 0x00 },
        { type: "webauthn.create" },
        { crossOrigin: true },
        { userHandle: "" },
        { userHandle: Buffer.from("somebody else").toString("base64url") },
      ];
      for (const flaw of flaws) {
        await expectStatus(401, stage, "POST", `${BASE}/login/finish`, {
          body: authenticator.get(await challenge(stage), flaw),
        });
      }
      const options = await begin(stage, person);
      await expectStatus(401, stage, "POST", `${BASE}/login/finish`, {
        body: authenticator.get(options),
      });
      const mixed = {
        ...authenticator.get(await challenge(stage)),
        id: other.id.toString("base64url"),
      };
      await expectStatus(401, stage, "POST", `${BASE}/login/finish`, { body: mixed });
      // A synchronised passkey counts nothing: the challenge alone keeps its response from being used again.
      const used = other.get(await challenge(stage), { counter: 0 });
      await expectStatus(200, stage, "POST", `${BASE}/login/finish`, { body: used });
      await expectStatus(401, stage, "POST", `${BASE}/login/finish`, { body: used });
      const late = await challenge(stage);
      stage.clock.advance(300_001);
      await expectStatus(401, stage, "POST", `${BASE}/login/finish`, {
        body: authenticator.get(late),
      });
      await expectStatus(200, stage, "POST", `${BASE}/login/finish`, {
        body: authenticator.get(await challenge(stage), { counter: 50 }),
      });
      // A counter that decreases indicates a copy of the authenticator.
      await expectStatus(401, stage, "POST", `${BASE}/login/finish`, {
        body: authenticator.get(await challenge(stage), { counter: 49 }),
      });
      const copies = [await challenge(stage), await challenge(stage), await challenge(stage)];
      const statuses = await Promise.all(
        copies.map(async (fresh) => {
          const body = authenticator.get(fresh, { counter: 51 });
          return (await call(stage, "POST", `${BASE}/login/finish`, { body })).status;
        }),
      );
      const accepted = statuses.filter((status) => status === 200);
      assert.equal(accepted.length, 1, "one of several copies at the same time");
      const entered = await expectStatus(200, stage, "POST", `${BASE}/login/finish`, {
        body: authenticator.get(await challenge(stage), { counter: 60 }),
      });
      const { access_token } = entered.body as Record<string, string>;
      const again = { ...person, token: access_token! };
      for (const flaw of flaws.slice(0, 8)) {
        const fresh = await begin(stage, again);
        const answer = await call(stage, "POST", `${BASE}/register/finish`, {
          body: new Authenticator(stage.publicUrl).create(
            fresh,
            flaw.type === undefined ? flaw : { type: "webauthn.get" },
          ),
        });
        assert.ok([400, 401].includes(answer.status), `${JSON.stringify(flaw)}: ${answer.status}`);
      }
      for (const body of [
        {},
        [],
        "x",
        { id: "x" },
        { ...mixed, response: {} },
        { ...mixed, id: "%" },
      ]) {
        await expectStatus(400, stage, "POST", `${BASE}/login/finish`, { body });
        await expectStatus(400, stage, "POST", `${BASE}/register/finish`, { body });
      }
      await stage.close();
    });

    test("a throttled password does not throttle the passkey", async () => {
      const stage = await startStage(await prepare());
      const authenticator = await register(stage, await join(stage, "ada"));
      for (let i = 0; i < 11; i += 1) {
        await call(stage, "POST", "/api/v1/auth/login", {
          body: { username: "ada", password: "wrong wrong" },
        });
      }
      await expectStatus(200, stage, "POST", `${BASE}/login/finish`, {
        body: authenticator.get(await challenge(stage)),
      });
      await stage.close();
    });

    test("an invitation creates an account with a passkey and no password, whose last passkey cannot be removed", async () => {
      const stage = await startWithAdmin({ ...(await prepare()), registration: "closed" });
      const root = await signIn(stage, ADMIN);
      const { body } = await expectStatus(201, stage, "POST", "/api/v1/invitations", {
        token: root.token,
      });
      const invitation = (body as never as { token: string }).token;
      const ask = { body: { invitation, username: "guest" } };
      const options = await expectStatus(200, stage, "POST", `${BASE}/register/begin`, ask);
      const authenticator = new Authenticator(stage.publicUrl);
      const { publicKey } = (options.body as never as { challenge: { publicKey: Options } })
        .challenge;
      await expectStatus(201, stage, "POST", `${BASE}/register/finish`, {
        body: authenticator.create(publicKey),
      });
      await expectStatus(403, stage, "POST", `${BASE}/register/begin`, ask);
      const entered = await expectStatus(200, stage, "POST", `${BASE}/login/finish`, {
        body: authenticator.get(await challenge(stage)),
      });
      const { access_token: token } = entered.body as Record<string, string>;
      const path = `/api/v1/auth/passkeys/${authenticator.id.toString("base64url")}`;
      await expectStatus(409, stage, "DELETE", path, { token });
      await expectStatus(401, stage, "POST", "/api/v1/auth/login", {
        body: { username: "guest", password: "x" },
      });
      await stage.close();
    });
  });
}

test(
  "two nodes on one database accept a signed challenge once",
  { skip: STAGE_KINDS[1]!.skip },
  async () => {
    const settings = { ...(await STAGE_KINDS[1]!.prepare()), public_url: "http://localhost:8086" };
    const nodes = [await startStage(settings), await startStage(settings)];
    const authenticator = await register(nodes[0]!, await join(nodes[0]!, "ada"));
    const body = authenticator.get(await challenge(nodes[1]!));
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, i) =>
        call(nodes[i % 2]!, "POST", `${BASE}/login/finish`, { body }),
      ),
    );
    assert.equal(answers.filter(({ status }) => status === 200).length, 1);
    for (const node of nodes) await node.close();
  },
);
