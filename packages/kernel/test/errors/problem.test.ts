// Problem documents: content for callers, and hidden details.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  PlatformError,
  createRetryLaterError,
  createUnauthorizedError,
  ERROR_TABLE,
  getProblemHeaders,
  isErrorCode,
  toProblem,
} from "@platform/kernel/errors";

test("a problem has the members of RFC 9457, those of the platform and the error's fields", () => {
  const error = new PlatformError("conflict", "The prefix /a is taken.", {
    fields: { prefix: "/a" },
  });
  assert.deepEqual(toProblem(error, { instance: "/api/v1/routes?x=1", traceId: "ab" }), {
    prefix: "/a",
    type: "urn:platform:error:conflict",
    title: "Conflict",
    status: 409,
    detail: "The prefix /a is taken.",
    instance: "/api/v1/routes",
    code: "conflict",
    error: "The prefix /a is taken.",
    trace_id: "ab",
  });
});

test("an unknown error reveals no details", () => {
  for (const thrown of [new Error("password=hunter2"), "hunter2", null, { a: "hunter2" }]) {
    const text = JSON.stringify(toProblem(thrown));
    assert.ok(!text.includes("hunter2"), text);
    assert.equal(toProblem(thrown).code, "internal");
    assert.equal(toProblem(thrown).status, 500);
  }
});

test("fields cannot override a standard member", () => {
  const problem = toProblem(
    new PlatformError("gone", "x", { fields: { status: 200, code: "ok" } }),
  );
  assert.equal(problem.status, 410);
  assert.equal(problem.code, "gone");
});

test("a cause is kept but not sent", () => {
  const error = new PlatformError("unavailable", "Later.", { cause: new Error("inner") });
  assert.equal((error.cause as Error).message, "inner");
  assert.ok(!JSON.stringify(toProblem(error)).includes("inner"));
});

test("401 has a challenge, 429 and 503 have Retry-After", () => {
  for (const [code, kind] of Object.entries(ERROR_TABLE)) {
    assert.ok(isErrorCode(code));
    const headers = getProblemHeaders(new PlatformError(code));
    assert.equal("WWW-Authenticate" in headers, kind.status === 401, code);
    assert.equal("Retry-After" in headers, kind.status === 429 || kind.status === 503, code);
    assert.equal(headers["Content-Type"], "application/problem+json");
  }
  const challenged = createUnauthorizedError("Expired.", 'Bearer error="invalid_token"');
  assert.equal(getProblemHeaders(challenged)["WWW-Authenticate"], 'Bearer error="invalid_token"');
  const later = createRetryLaterError("too_many_requests", "Slow down.", 2.1, { RateLimit: "x" });
  assert.equal(getProblemHeaders(later)["Retry-After"], "3");
  assert.equal(getProblemHeaders(later)["RateLimit"], "x");
});

test("inherited property names are not codes", () => {
  assert.ok(!isErrorCode("constructor"));
  assert.ok(!isErrorCode("__proto__"));
});
