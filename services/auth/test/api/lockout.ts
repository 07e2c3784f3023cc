// Guessing, flooding and mass registration delay the attacker and lock nobody else out.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { call, expectStatus, join, type Answer, type Person } from "../client.ts";
import { readLink, startMailbox } from "../mailbox.ts";
import { STAGE_KINDS, startStage, type Stage } from "../stage.ts";

const LOGIN = "/api/v1/auth/login";
const REGISTER = "/api/v1/auth/register";
const PASSWORD = "a long password of theirs";

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`lockout on ${kind}`, { skip }, () => {
    const start = async (settings: Record<string, unknown> = {}): Promise<Stage> => {
      const stage = await startStage({
        ...(await prepare()),
        trusted_proxies: ["127.0.0.1"],
        ...settings,
      });
      stage.clock.stop();
      return stage;
    };
    const from = (ip: string, cookie?: string): { headers: Record<string, string> } => ({
      headers: { "X-Forwarded-For": ip, ...(cookie === undefined ? {} : { Cookie: cookie }) },
    });
    const guess = (stage: Stage, username: string, ip: string): Promise<Answer> =>
      call(stage, "POST", LOGIN, { body: { username, password: "wrong wrong" }, ...from(ip) });
    const signInFrom = (stage: Stage, who: Person, ip: string, cookie?: string): Promise<Answer> =>
      call(stage, "POST", LOGIN, {
        body: { username: who.username, password: who.password },
        ...from(ip, cookie),
      });
    const readDevice = ({ headers }: Answer): string =>
      headers
        .getSetCookie()
        .find((cookie) => cookie.startsWith("platform_device="))!
        .split(";")[0]!;

    test("guessing from one network does not delay another", async () => {
      const stage = await start();
      const owner = await join(stage, "owner");
      for (let i = 0; i < 10; i += 1) {
        assert.equal((await guess(stage, "owner", `203.0.113.${i}`)).status, 401);
      }
      assert.equal((await guess(stage, "owner", "203.0.113.99")).status, 429);
      assert.equal((await signInFrom(stage, owner, "198.51.100.1")).status, 200);
      for (let i = 0; i < 11; i += 1) await guess(stage, "owner", `2001:db8:1:2::${i}`);
      assert.equal((await guess(stage, "owner", "2001:db8:1:2:ffff::1")).status, 429);
      assert.equal((await signInFrom(stage, owner, "2001:db8:1:3::1")).status, 200);
      await stage.close();
    });

    test("guessing from many networks is throttled, but not the owner's device or a recovery by email", async () => {
      const mailbox = await startMailbox();
      const stage = await start({ platform_notify_url: mailbox.url });
      const owner = await joinVerified(stage, mailbox);
      const device = readDevice(await signInFrom(stage, owner, "198.51.100.1"));
      for (let network = 0; network < 10; network += 1) {
        for (let i = 0; i < 10; i += 1) await guess(stage, "owner", `203.0.${network}.1`);
      }
      assert.equal((await guess(stage, "owner", "192.0.2.1")).status, 429, "the 101st guess waits");
      assert.equal((await signInFrom(stage, owner, "198.51.100.1")).status, 429);
      assert.equal((await signInFrom(stage, owner, "198.51.100.1", device)).status, 200);

      const sent = mailbox.mails.length;
      await expectStatus(202, stage, "POST", "/api/v1/auth/recovery/begin", {
        body: { email: "owner@example.org" },
        ...from("198.51.100.1"),
      });
      await mailbox.waitFor(sent + 1);
      const recovered = await expectStatus(200, stage, "POST", "/api/v1/auth/recovery/finish", {
        body: { token: readLink(mailbox), new_password: PASSWORD },
        ...from("198.51.100.1"),
      });
      assert.equal(
        (await signInFrom(stage, { ...owner, password: PASSWORD }, "198.51.100.1")).status,
        200,
        "the guesses of others are forgotten",
      );
      assert.ok(readDevice(recovered), "the browser that recovered is known from here on");
      await stage.close();
      mailbox.close();
    });

    test("guessing from many networks does not block password confirmation on a known device", async () => {
      const stage = await start({});
      const owner = await join(stage, "owner");
      const ip = "198.51.100.1";
      const first = await signInFrom(stage, owner, ip);
      const device = readDevice(first);
      const { access_token: token } = first.body as never as Record<string, string>;
      for (let network = 0; network < 10; network += 1) {
        for (let i = 0; i < 10; i += 1) await guess(stage, "owner", `203.0.${network}.1`);
      }
      assert.equal((await guess(stage, "owner", "192.0.2.1")).status, 429);
      stage.clock.advance(5_000);
      for (let i = 0; i < 3; i += 1) await guess(stage, "owner", "192.0.2.1");
      const confirm = async (cookie: Record<string, string>): Promise<number> => {
        const asked = await expectStatus(200, stage, "POST", "/api/v1/auth/mfa/step-up", {
          token: token!,
          body: { acr_values: "1", max_age: 0 },
        });
        const { challenge } = asked.body as never as { challenge: { mfa_token: string } };
        const { status } = await call(stage, "POST", "/api/v1/auth/mfa/verify", {
          body: { mfa_token: challenge.mfa_token, password: owner.password },
          headers: { ...from(ip).headers, ...cookie },
        });
        return status;
      };
      assert.equal(await confirm({}), 429);
      assert.equal(await confirm({ Cookie: device }), 200);
      await stage.close();
    });

    test("recovery requests of others do not block the owner's", async () => {
      const mailbox = await startMailbox();
      const stage = await start({ platform_notify_url: mailbox.url });
      const owner = await joinVerified(stage, mailbox);
      const sent = mailbox.mails.length;
      const begin = (ip: string): Promise<Answer> =>
        call(stage, "POST", "/api/v1/auth/recovery/begin", {
          body: { email: "owner@example.org" },
          ...from(ip),
        });
      for (let i = 0; i < 5; i += 1) assert.equal((await begin("203.0.113.1")).status, 202);
      assert.equal((await begin("203.0.113.2")).status, 429, "the network that asks waits");
      assert.equal((await begin("198.51.100.1")).status, 202, "the owner does not");
      for (let i = 0; i < 20; i += 1) await begin(`192.0.${i}.1`);
      await mailbox.waitFor(sent + 5);
      assert.ok(mailbox.mails.length <= sent + 6, "the mailbox is not flooded");
      await expectStatus(200, stage, "POST", "/api/v1/auth/recovery/finish", {
        body: { token: readLink(mailbox), new_password: PASSWORD },
      });
      assert.equal(
        (await signInFrom(stage, { ...owner, password: PASSWORD }, "198.51.100.1")).status,
        200,
      );
      await stage.close();
      mailbox.close();
    });

    test("registrations are limited per address and network and hour", async () => {
      const stage = await start({
        registrations_per_address_hourly: 2,
        registrations_per_network_hourly: 3,
      });
      let count = 0;
      const add = async (ip: string): Promise<Answer> =>
        call(stage, "POST", REGISTER, {
          body: { username: `person-${(count += 1)}`, password: PASSWORD },
          ...from(ip),
        });
      assert.equal((await add("203.0.113.1")).status, 201);
      assert.equal((await add("203.0.113.1")).status, 201);
      const refused = await add("203.0.113.1");
      assert.equal(refused.status, 429);
      assert.equal(refused.headers.get("retry-after"), "3600");
      assert.equal((await add("203.0.113.2")).status, 201);
      assert.equal((await add("203.0.113.3")).status, 429, "the /24 is used up");
      assert.equal((await add("203.0.114.1")).status, 201);
      for (let i = 0; i < 3; i += 1) assert.equal((await add(`2001:db8::${i}`)).status, 201);
      assert.equal((await add("2001:db8::ffff")).status, 429, "the /64 is used up");
      assert.equal((await add("2001:db8:0:1::1")).status, 201);
      stage.clock.advance(3_600_001);
      assert.equal((await add("203.0.113.1")).status, 201);
      await stage.close();
    });
  });
}

test("registrations beyond their queue are 503, and sign-ins meanwhile succeed", async () => {
  const stage = await startStage({
    ...(await STAGE_KINDS[0]!.prepare()),
    password_hash_concurrency: 1,
    registration_hash_queue: 1,
    registrations_per_address_hourly: 1_000,
    registrations_per_network_hourly: 1_000,
  });
  const { username, password } = await join(stage, "owner");
  const registrations = Array.from({ length: 40 }, (_, index) =>
    call(stage, "POST", REGISTER, { body: { username: `person-${index}`, password: PASSWORD } }),
  );
  const signIns = Array.from({ length: 4 }, () =>
    call(stage, "POST", LOGIN, { body: { username, password } }),
  );
  for (const { status } of await Promise.all(signIns)) assert.equal(status, 200);
  const answers = await Promise.all(registrations);
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201, 503]));
  const refused = answers.find(({ status }) => status === 503)!;
  assert.ok(Number(refused.headers.get("retry-after")) >= 1);
  await stage.close();
});

async function joinVerified(
  stage: Stage,
  mailbox: Awaited<ReturnType<typeof startMailbox>>,
): Promise<Person> {
  const owner = await join(stage, "owner");
  const { token } = owner;
  await expectStatus(200, stage, "PATCH", "/api/v1/auth/account", {
    token,
    body: { email: "owner@example.org" },
  });
  await expectStatus(202, stage, "POST", "/api/v1/auth/email/verify/begin", { token });
  await mailbox.waitFor(1);
  await call(stage, "POST", "/api/v1/auth/email/verify/finish", {
    body: { token: readLink(mailbox) },
  });
  return owner;
}
