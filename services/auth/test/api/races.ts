// 64 concurrent requests for single-use operations: on SQLite, and on two nodes that share a PostgreSQL.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ADMIN, call, expectStatus, join, signIn, startWithAdmin, type Answer } from "../client.ts";
import { readCode, readLink, startMailbox, type Mailbox } from "../mailbox.ts";
import { STAGE_KINDS, startStage, type Stage } from "../stage.ts";

const ATTEMPTS = 64;
const PASSWORD = "a fine long password";

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(
    `64 at once on ${kind === "sqlite" ? "SQLite" : "two nodes with one PostgreSQL"}`,
    { skip },
    () => {
      let nodes: Stage[];
      let mailbox: Mailbox;
      let token: string;
      before(async () => {
        mailbox = await startMailbox();
        const settings = {
          ...(await prepare()),
          platform_notify_url: mailbox.url,
          public_url: "http://localhost:8086",
          // These tests register many users at once.
          registration_hash_queue: 1_000,
          registrations_per_address_hourly: 1_000,
          registrations_per_network_hourly: 1_000,
        };
        nodes = [await startWithAdmin(settings)];
        if (kind === "postgres") nodes.push(await startStage(settings));
        ({ token } = await signIn(nodes[0]!, ADMIN));
      });
      after(async () => {
        for (const node of nodes) await node.close();
        mailbox.close();
      });

      const onAllNodes = (work: (node: Stage, index: number) => Promise<Answer>) =>
        Promise.all(
          Array.from({ length: ATTEMPTS }, (_, index) => work(nodes[index % nodes.length]!, index)),
        );
      const statuses = (answers: readonly Answer[]): Record<string, number> =>
        Object.fromEntries(
          Object.entries(Object.groupBy(answers, ({ status }) => status)).map(
            ([status, group]) => [status, group?.length ?? 0] as const,
          ),
        );
      const refused = ATTEMPTS - 1;

      test("registrations with one invitation: one account", async () => {
        const issued = await expectStatus(201, nodes[0]!, "POST", "/api/v1/invitations", { token });
        const { token: invitation } = issued.body as Record<string, string>;
        const answers = await onAllNodes((node, index) =>
          call(node, "POST", "/api/v1/auth/register", {
            body: { username: `guest-${index}`, password: PASSWORD, invitation },
          }),
        );
        assert.deepEqual(statuses(answers), { 201: 1, 403: refused });
        const listed = await call(nodes[0]!, "GET", "/api/v1/users", { token });
        const { users } = listed.body as never as { users: { username: string }[] };
        assert.equal(users.filter(({ username }) => username.startsWith("guest-")).length, 1);
      });

      test("registrations of one name: one account", async () => {
        const answers = await onAllNodes((node) =>
          call(node, "POST", "/api/v1/auth/register", {
            body: { username: "twin", password: PASSWORD },
          }),
        );
        assert.deepEqual(statuses(answers), { 201: 1, 409: refused });
      });

      test("recoveries and verifications with one link: one each", async () => {
        const ada = await join(nodes[0]!, "ada");
        const email = "ada@example.org";
        const account = "/api/v1/auth/account";
        await expectStatus(200, nodes[0]!, "PATCH", account, { token: ada.token, body: { email } });
        await expectStatus(202, nodes[0]!, "POST", "/api/v1/auth/email/verify/begin", {
          token: ada.token,
        });
        const link = readLink(mailbox);
        const verified = await onAllNodes((node) =>
          call(node, "POST", "/api/v1/auth/email/verify/finish", { body: { token: link } }),
        );
        assert.deepEqual(statuses(verified), { 200: 1, 403: refused });
        const before = mailbox.mails.length;
        await expectStatus(202, nodes[0]!, "POST", "/api/v1/auth/recovery/begin", {
          body: { email },
        });
        await mailbox.waitFor(before + 1);
        const recovery = readLink(mailbox);
        const recovered = await onAllNodes((node, index) =>
          call(node, "POST", "/api/v1/auth/recovery/finish", {
            body: { token: recovery, new_password: `password number ${index}` },
          }),
        );
        assert.deepEqual(statuses(recovered), { 200: 1, 403: refused });
        const winner = recovered.findIndex(({ status }) => status === 200);
        await signIn(nodes[0]!, { username: "ada", password: `password number ${winner}` });
      });

      test("sign-ins with one sent code: one", async () => {
        const bob = await join(nodes[0]!, "bob");
        const made = await expectStatus(200, nodes[0]!, "POST", "/api/v1/auth/mfa/setup", {
          token: bob.token,
          body: { type: "email", email: "bob@example.org" },
        });
        const { id: factor_id } = made.body as Record<string, string>;
        await expectStatus(200, nodes[0]!, "POST", "/api/v1/auth/mfa/verify", {
          token: bob.token,
          body: { factor_id, code: readCode(mailbox) },
        });
        const asked = await expectStatus(403, nodes[0]!, "POST", "/api/v1/auth/login", {
          body: { username: "bob", password: bob.password },
        });
        const { mfa_token } = asked.body as Record<string, string>;
        await expectStatus(200, nodes[0]!, "POST", "/api/v1/auth/mfa/send", {
          body: { mfa_token, factor_id },
        });
        const code = readCode(mailbox);
        const answers = await onAllNodes((node) =>
          call(node, "POST", "/api/v1/auth/mfa/verify", { body: { mfa_token, code } }),
        );
        assert.equal(statuses(answers)[200], 1, JSON.stringify(statuses(answers)));
        assert.equal(answers.filter(({ status }) => status === 401).length, refused);
      });

      test("renewals of one session: one new token, and the old one stays valid briefly", async () => {
        const cleo = await join(nodes[0]!, "cleo");
        for (const node of nodes) node.clock.advance(13 * 3_600_000);
        const answers = await onAllNodes((node) =>
          call(node, "GET", "/api/v1/auth/account", { token: cleo.session }),
        );
        assert.deepEqual(statuses(answers), { 200: ATTEMPTS });
        const renewed = new Set(
          answers.flatMap(({ headers }) => headers.get("x-session-token") ?? []),
        );
        assert.equal(renewed.size, 1);
      });
    },
  );
}
