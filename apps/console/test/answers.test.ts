// Pages read only members that services send: others do not compile.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Answer } from "../src/contract/answer.ts";

type Users = Answer<"auth", "GET /users">;

const answer: Users = {
  users: [{ id: "1", username: "ada", created_at: "2026-11-28T00:00:00.000Z" }],
  next_cursor: null,
};

test("a member that the document declares can be read", () => {
  assert.equal(answer.users[0]?.username, "ada");
  assert.equal(answer.users[0]?.email, undefined);
});

test("a member that the document does not declare does not compile", () => {
  // @ts-expect-error TypeScript refuses it
  assert.equal(answer.people, undefined);
  // @ts-expect-error TypeScript refuses it
  assert.equal(answer.users[0]?.nickname, undefined);
});

test("an operation that does not exist has no type", () => {
  // @ts-expect-error TypeScript refuses it
  const missing: Answer<"auth", "GET /people"> = undefined;
  assert.equal(missing, undefined);
});
