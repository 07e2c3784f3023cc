// The lists that the console shows to administrators: users by state and role, factors, permissions, all sessions.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ADMIN, call, expectStatus, join, signIn, startWithAdmin, type Person } from "../client.ts";
import { STAGE_KINDS } from "../stage.ts";

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`lists of the console on ${kind}`, { skip }, () => {
    test("users are found by name, state and role, also the role of a group", async () => {
      const stage = await startWithAdmin(await prepare());
      const { token } = await signIn(stage, ADMIN);
      const people = [];
      for (const name of ["ada", "bob", "carol"]) people.push(await join(stage, name));
      const [ada, bob, carol] = people as [Person, Person, Person];
      const role = { name: "auditor", permissions: ["audit:read", "users:read"] };
      await expectStatus(201, stage, "POST", "/api/v1/rbac/roles", { token, body: role });
      const body = { roles: ["auditor"] };
      await expectStatus(200, stage, "POST", `/api/v1/rbac/users/${ada.id}/roles`, { token, body });
      const made = await expectStatus(201, stage, "POST", "/api/v1/groups", {
        token,
        body: { name: "night shift" },
      });
      const { group } = made.body as never as { group: { id: string } };
      const member = `/api/v1/groups/${group.id}/members/${bob.id}`;
      await expectStatus(204, stage, "PUT", member, { token });
      await expectStatus(200, stage, "POST", `/api/v1/rbac/groups/${group.id}/roles`, {
        token,
        body,
      });
      await expectStatus(200, stage, "PATCH", `/api/v1/users/${carol.id}`, {
        token,
        body: { disabled: true },
      });
      const names = async (query: string): Promise<string[]> => {
        const { body: found } = await expectStatus(200, stage, "GET", `/api/v1/users?${query}`, {
          token,
        });
        return (found as never as { users: { username: string }[] }).users.map(
          ({ username }) => username,
        );
      };
      assert.deepEqual(await names("role=auditor"), ["ada", "bob"]);
      assert.deepEqual(await names("role=auditor&q=BO"), ["bob"]);
      assert.deepEqual(await names("state=disabled"), ["carol"]);
      assert.deepEqual(await names("state=active&q=a"), ["ada"]);
      assert.deepEqual(await names("role=nothing"), []);
      await expectStatus(400, stage, "GET", "/api/v1/users?state=asleep", { token });

      const seen = await expectStatus(200, stage, "GET", `/api/v1/users/${bob.id}/permissions`, {
        token,
      });
      assert.deepEqual(seen.body, {
        roles: ["auditor"],
        permissions: [
          { name: "audit:read", roles: ["auditor"] },
          { name: "users:read", roles: ["auditor"] },
        ],
      });
      // An auditor may read users, and not the policy.
      const auditor = await signIn(stage, { username: "ada", password: ada.password });
      await expectStatus(200, stage, "GET", `/api/v1/users/${bob.id}/factors`, auditor);
      await expectStatus(403, stage, "GET", `/api/v1/users/${bob.id}/permissions`, auditor);
      await expectStatus(404, stage, "GET", "/api/v1/users/nobody/permissions", { token });
      await stage.close();
    });

    test("the factors of a user are listed without secrets", async () => {
      const stage = await startWithAdmin(await prepare());
      const { token } = await signIn(stage, ADMIN);
      const ada = await join(stage, "ada");
      const path = `/api/v1/users/${ada.id}/factors`;
      const { body } = await expectStatus(200, stage, "GET", path, { token });
      assert.deepEqual(body, { has_password: true, passkeys: [], factors: [] });
      const made = await expectStatus(201, stage, "POST", "/api/v1/users", {
        token,
        body: { username: "bob" },
      });
      const { user } = made.body as never as { user: { id: string } };
      const other = await expectStatus(200, stage, "GET", `/api/v1/users/${user.id}/factors`, {
        token,
      });
      assert.equal(other.body["has_password"], false);
      await expectStatus(403, stage, "GET", path, { token: ada.token });
      await expectStatus(404, stage, "GET", "/api/v1/users/nobody/factors", { token });
      await stage.close();
    });

    test("an administrator pages through the sessions of all users", async () => {
      const stage = await startWithAdmin(await prepare());
      const { token } = await signIn(stage, ADMIN);
      const people = [];
      for (const name of ["ada", "bob", "carol"]) people.push(await join(stage, name));
      await expectStatus(403, stage, "GET", "/api/v1/sessions?all=true", {
        token: people[0]!.token,
      });
      const found: { id: string; user: { username: string } }[] = [];
      for (let cursor: string | null = ""; cursor !== null;) {
        const path = `/api/v1/sessions?all=true&limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`;
        const { body } = await expectStatus(200, stage, "GET", path, { token });
        const page = body as never as { sessions: typeof found; next_cursor: string | null };
        assert.ok(page.sessions.length <= 2);
        found.push(...page.sessions);
        cursor = page.next_cursor;
      }
      assert.equal(new Set(found.map(({ id }) => id)).size, found.length);
      const names = new Set(found.map(({ user }) => user.username));
      for (const name of ["ada", "bob", "carol", ADMIN.username]) assert.ok(names.has(name), name);
      assert.ok(!JSON.stringify(found).includes("hash"));
      const own = await call(stage, "GET", "/api/v1/sessions", { token: people[0]!.token });
      assert.equal((own.body as never as { sessions: unknown[] }).sessions.length, 1);
      await stage.close();
    });
  });
}
