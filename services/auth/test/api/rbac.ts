// Roles: inheritance, wildcards, bindings, who may grant what, scopes, and the audit log of it.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { coversPermission } from "../../src/rbac/permission.ts";
import { inheritRoles } from "../../src/rbac/rights.ts";
import { ADMIN, call, expectStatus, join, signIn, startWithAdmin } from "../client.ts";
import { STAGE_KINDS } from "../stage.ts";

const ROLES = "/api/v1/rbac/roles";

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`roles on ${kind}`, { skip }, () => {
    test("changes of roles and ancestors apply to the next request", async () => {
      const stage = await startWithAdmin(await prepare());
      const { token } = await signIn(stage, ADMIN);
      const person = await join(stage, "ada");
      await expectStatus(201, stage, "POST", ROLES, {
        token,
        body: { name: "reader", permissions: ["users:read"] },
      });
      await expectStatus(201, stage, "POST", ROLES, {
        token,
        body: { name: "editor", permissions: ["articles:*"], parents: ["reader"] },
      });
      await expectStatus(403, stage, "GET", "/api/v1/users", { token: person.session });
      const bound = await expectStatus(
        200,
        stage,
        "POST",
        `/api/v1/rbac/users/${person.id}/roles`,
        { token, body: { roles: ["editor"] } },
      );
      assert.deepEqual(bound.body, {
        user_id: person.id,
        roles: ["editor"],
        effective_permissions: ["articles:*", "users:read"],
      });
      await expectStatus(200, stage, "GET", "/api/v1/users", { token: person.session });
      await expectStatus(403, stage, "GET", ROLES, { token: person.session });
      // The access token was issued before and does not carry the scope.
      await expectStatus(403, stage, "GET", "/api/v1/users", { token: person.token });
      const again = await signIn(stage, person);
      await expectStatus(200, stage, "GET", "/api/v1/users", { token: again.token });
      await expectStatus(200, stage, "DELETE", `${ROLES}/editor/parents`, {
        token,
        body: { parents: ["reader"] },
      });
      for (const stale of [person.session, again.token]) {
        await expectStatus(403, stage, "GET", "/api/v1/users", { token: stale });
      }
      await stage.close();
    });

    test("roles, bindings and clients are changed only as their sender has seen them", async () => {
      const stage = await startWithAdmin(await prepare());
      const { token } = await signIn(stage, ADMIN);
      const ada = await join(stage, "ada");
      const first = { name: "reader", permissions: ["users:read"] };
      await expectStatus(201, stage, "POST", ROLES, { token, body: first });
      const made = await expectStatus(201, stage, "POST", "/api/v1/auth/clients", {
        token,
        body: { client_name: "Shop", redirect_uris: ["https://shop.example/back"] },
      });
      const { client_id: client } = made.body as never as { client_id: string };
      const bindings = `/api/v1/rbac/users/${ada.id}/roles`;
      for (const [read, method, path, body, other] of [
        [
          `${ROLES}/reader`,
          "PUT",
          `${ROLES}/reader/permissions`,
          { permissions: ["users:write"] },
          { permissions: ["audit:read"] },
        ],
        [bindings, "PUT", bindings, { roles: ["reader"] }, { roles: [] }],
        [
          `/api/v1/auth/clients/${client}`,
          "PATCH",
          `/api/v1/auth/clients/${client}`,
          { client_name: "Shop one" },
          { client_name: "Shop two" },
        ],
      ] as const) {
        const etag = async (): Promise<Record<string, string>> => {
          const { headers } = await expectStatus(200, stage, "GET", read, { token });
          return { "If-Match": headers.get("etag")! };
        };
        const known = await etag();
        assert.deepEqual(await etag(), known, "nothing has changed");
        await expectStatus(200, stage, method, path, { token, body, headers: known });
        await expectStatus(412, stage, method, path, { token, body: other, headers: known });
        await expectStatus(403, stage, method, path, {
          token: ada.token,
          body: other,
          headers: known,
        });
        await expectStatus(200, stage, method, path, { token, body: other, headers: await etag() });
      }
      await stage.close();
    });

    test("members have the roles of their groups", async () => {
      const stage = await startWithAdmin(await prepare());
      const { token } = await signIn(stage, ADMIN);
      const person = await join(stage, "ada");
      const made = await expectStatus(201, stage, "POST", "/api/v1/groups", {
        token,
        body: { name: "Helpdesk" },
      });
      const { id } = (made.body as never as { group: { id: string } }).group;
      const read = await expectStatus(200, stage, "GET", `/api/v1/groups/${id}`, { token });
      assert.deepEqual(read.body, made.body);
      const ada = await signIn(stage, { username: "ada", password: person.password });
      await expectStatus(403, stage, "GET", `/api/v1/groups/${id}`, ada);
      await expectStatus(404, stage, "GET", "/api/v1/groups/nothing", { token });
      await expectStatus(409, stage, "POST", "/api/v1/groups", {
        token,
        body: { name: "Helpdesk" },
      });
      await expectStatus(201, stage, "POST", ROLES, {
        token,
        body: { name: "helper", permissions: ["users:read"] },
      });
      await expectStatus(200, stage, "PUT", `/api/v1/rbac/groups/${id}/roles`, {
        token,
        body: { roles: ["helper"] },
      });
      await expectStatus(204, stage, "PUT", `/api/v1/groups/${id}/members/${person.id}`, { token });
      await expectStatus(200, stage, "GET", "/api/v1/users", { token: person.session });
      const members = await expectStatus(200, stage, "GET", `/api/v1/groups/${id}/members`, {
        token,
      });
      assert.deepEqual(members.body, {
        members: [person.id],
        users: [{ id: person.id, username: person.username }],
        next_cursor: null,
      });
      await expectStatus(204, stage, "DELETE", `/api/v1/groups/${id}`, { token });
      await expectStatus(403, stage, "GET", "/api/v1/users", { token: person.session });
      await stage.close();
    });

    test("roles cannot inherit from themselves, even with concurrent changes", async () => {
      const stage = await startWithAdmin(await prepare());
      const { token } = await signIn(stage, ADMIN);
      for (const name of ["a", "b"]) {
        await expectStatus(201, stage, "POST", ROLES, { token, body: { name } });
      }
      await expectStatus(409, stage, "PUT", `${ROLES}/a/parents`, {
        token,
        body: { parents: ["a"] },
      });
      const both = await Promise.all([
        call(stage, "PUT", `${ROLES}/a/parents`, { token, body: { parents: ["b"] } }),
        call(stage, "PUT", `${ROLES}/b/parents`, { token, body: { parents: ["a"] } }),
      ]);
      assert.deepEqual(
        both.map(({ status }) => status).sort((a, b) => a - b),
        [200, 409],
      );
      await expectStatus(404, stage, "PUT", `${ROLES}/a/parents`, {
        token,
        body: { parents: ["nothing"] },
      });
      await stage.close();
    });

    test("permissions that the caller lacks cannot be granted by any means", async () => {
      const stage = await startWithAdmin(await prepare());
      const { token, id: rootId } = await signIn(stage, ADMIN);
      const deputy = await join(stage, "deputy");
      await expectStatus(201, stage, "POST", ROLES, {
        token,
        body: { name: "deputy", permissions: ["rbac:*", "users:*", "sessions:*"] },
      });
      await expectStatus(201, stage, "POST", ROLES, {
        token,
        body: { name: "auditor", permissions: ["audit:read"] },
      });
      const made = await expectStatus(201, stage, "POST", "/api/v1/groups", {
        token,
        body: { name: "admins" },
      });
      const group = (made.body as never as { group: { id: string } }).group.id;
      await expectStatus(200, stage, "POST", `/api/v1/rbac/groups/${group}/roles`, {
        token,
        body: { roles: ["admin"] },
      });
      await expectStatus(200, stage, "POST", `/api/v1/rbac/users/${deputy.id}/roles`, {
        token,
        body: { roles: ["deputy"] },
      });
      const bindingsOf = async (): Promise<string> => {
        const { body } = await expectStatus(201, stage, "POST", "/api/v1/auth/clients", {
          token,
          body: { grant_types: ["client_credentials"], redirect_uris: [], response_types: [] },
        });
        return `/api/v1/rbac/clients/${String(body["client_id"])}/roles`;
      };
      const [powerful, plain] = [await bindingsOf(), await bindingsOf()];
      await expectStatus(200, stage, "PUT", powerful, { token, body: { roles: ["admin"] } });
      const own = `/api/v1/rbac/users/${deputy.id}/roles`;
      const attempts: [string, string, unknown?][] = [
        ["POST", plain, { roles: ["admin"] }],
        ["PUT", plain, { roles: ["auditor"] }],
        ["PUT", powerful, { roles: [] }],
        ["DELETE", powerful, { roles: ["admin"] }],
        ["POST", own, { roles: ["admin"] }],
        ["POST", own, { roles: ["auditor"] }],
        ["POST", ROLES, { name: "mine", permissions: ["audit:read"] }],
        ["POST", ROLES, { name: "mine", permissions: ["*:*"] }],
        ["POST", ROLES, { name: "mine", permissions: ["*:read"] }],
        ["POST", ROLES, { name: "mine", parents: ["auditor"] }],
        ["POST", `${ROLES}/deputy/permissions`, { permissions: ["audit:*"] }],
        ["POST", `${ROLES}/deputy/parents`, { parents: ["auditor"] }],
        ["PUT", `${ROLES}/auditor/permissions`, { permissions: [] }],
        ["DELETE", `${ROLES}/auditor`],
        ["PUT", `/api/v1/groups/${group}/members/${deputy.id}`],
        ["DELETE", `/api/v1/rbac/groups/${group}/roles`, { roles: ["admin"] }],
        ["POST", "/api/v1/auth/scopes", { name: "x", permissions: ["audit:read"] }],
        ["PATCH", `/api/v1/users/${rootId}`, { email: "deputy@example.org" }],
        ["PATCH", `/api/v1/users/${rootId}`, { disabled: true }],
        ["DELETE", `/api/v1/users/${rootId}`],
        ["POST", "/api/v1/sessions/invalidate", { user_id: rootId }],
      ];
      for (const [method, path, body] of attempts) {
        await expectStatus(403, stage, method, path, { token: deputy.session, body });
      }
      await expectStatus(201, stage, "POST", ROLES, {
        token: deputy.session,
        body: { name: "mine", permissions: ["users:read"] },
      });
      await expectStatus(200, stage, "POST", own, {
        token: deputy.session,
        body: { roles: ["mine"] },
      });
      await stage.close();
    });

    test("malformed roles, permissions and scopes are rejected", async () => {
      const stage = await startWithAdmin(await prepare());
      const { token } = await signIn(stage, ADMIN);
      const attempts: unknown[] = [
        {},
        { name: "" },
        { name: "Über" },
        { name: "a".repeat(64) },
        { name: "x", permissions: "a:b" },
        { name: "x", permissions: ["a"] },
        { name: "x", permissions: ["a:b:c"] },
        { name: "x", permissions: ["**:a"] },
        { name: "x", permissions: ["a:"] },
        { name: "x", permissions: Array.from({ length: 501 }, (_, i) => `a:${i}`) },
        { name: "x", parents: [1] },
        { name: "x", builtin: true },
        [],
        "x",
        null,
      ];
      for (const body of attempts) await expectStatus(400, stage, "POST", ROLES, { token, body });
      for (const name of ["", "a b", 'a"b', "a\\b", "x".repeat(129)]) {
        await expectStatus(400, stage, "POST", "/api/v1/auth/scopes", {
          token,
          body: { name, permissions: ["a:b"] },
        });
      }
      await expectStatus(201, stage, "POST", ROLES, {
        token,
        body: { name: "x", permissions: [] },
      });
      await expectStatus(409, stage, "POST", ROLES, { token, body: { name: "x" } });
      await expectStatus(404, stage, "DELETE", `${ROLES}/nothing`, { token });
      await expectStatus(404, stage, "POST", `/api/v1/rbac/users/nobody/roles`, {
        token,
        body: { roles: ["x"] },
      });
      await stage.close();
    });

    test("changes are audited, and the chain reveals changed and deleted events", async () => {
      const settings = await prepare();
      const stage = await startWithAdmin(settings);
      const { token, id } = await signIn(stage, ADMIN);
      await expectStatus(201, stage, "POST", ROLES, {
        token,
        body: { name: "x", permissions: ["a:b"] },
      });
      await Promise.all(
        Array.from({ length: 20 }, () =>
          call(stage, "POST", "/api/v1/auth/login", {
            body: { username: "nobody", password: "x" },
          }),
        ),
      );
      const listed = await expectStatus(200, stage, "GET", "/api/v1/audit?action=role.create", {
        token,
      });
      const [event] = (listed.body as never as { events: Record<string, unknown>[] }).events;
      assert.equal(event!["actor"], `user:${id}`);
      assert.equal(event!["target"], "role:x");
      const count = async (query: string) => {
        const found = await expectStatus(200, stage, "GET", `/api/v1/audit?limit=200&${query}`, {
          token,
        });
        return (found.body as never as { events: object[] }).events.length;
      };
      const at = encodeURIComponent(String(event!["at"]));
      const own = `action=role.create&actor=user:${id}`;
      assert.equal(await count(own), 1);
      assert.equal(await count("actor=user:nobody"), 0);
      assert.equal(await count(`${own}&from=${at}`), 1);
      assert.equal(await count(`${own}&to=${at}`), 0);
      await expectStatus(400, stage, "GET", "/api/v1/audit?from=yesterday", { token });
      const whole = await expectStatus(200, stage, "GET", "/api/v1/audit/verification", { token });
      assert.equal((whole.body as never as { intact: boolean }).intact, true);
      const { db } = stage.database;
      const seq = Number(event!["seq"]);
      await db
        .updateTable("auth_audit")
        .set({ actor: "user:somebody" })
        .where("seq", "=", seq)
        .execute();
      const changed = await expectStatus(200, stage, "GET", "/api/v1/audit/verification", {
        token,
      });
      assert.deepEqual(changed.body, { intact: false, events: seq - 1, broken_at: seq });
      await db
        .updateTable("auth_audit")
        .set({ actor: `user:${id}` })
        .where("seq", "=", seq)
        .execute();
      await db
        .deleteFrom("auth_audit")
        .where("seq", "=", seq + 1)
        .execute();
      const removed = await expectStatus(200, stage, "GET", "/api/v1/audit/verification", {
        token,
      });
      assert.equal((removed.body as never as { broken_at: number }).broken_at, seq + 1);
      await stage.close();
    });
  });
}

test("a permission covers another if each side is equal or a wildcard", () => {
  const part = fc.constantFrom("*", "a", "b", "users");
  fc.assert(
    fc.property(part, part, part, part, (r1, a1, r2, a2) => {
      const expected = (r1 === "*" || r1 === r2) && (a1 === "*" || a1 === a2);
      assert.equal(coversPermission(`${r1}:${a1}`, `${r2}:${a2}`), expected);
    }),
  );
});

test("inheritance terminates for any graph", () => {
  const name = fc.constantFrom("a", "b", "c", "d", "e");
  fc.assert(
    fc.property(fc.array(fc.record({ role: name, parent: name })), name, (parents, start) => {
      const found = inheritRoles([start], parents);
      assert.ok(found.includes(start));
      for (const { role, parent } of parents) {
        if (found.includes(role)) assert.ok(found.includes(parent));
      }
    }),
  );
});
