// The bearer guard: tokens, rejected callers, and access from this machine without credentials.
import assert from "node:assert/strict";
import { test } from "node:test";
import { PlatformError } from "@platform/kernel/errors";
import { createBearerGuard, type GuardedRequest } from "@platform/kernel/http";
import { createTokenVerifier, type TokenVerifier, type Verdict } from "@platform/kernel/identity";
import { systemClock } from "@platform/kernel/time";

const requestWith = (headers: Record<string, string>, address = "10.0.0.1"): GuardedRequest => ({
  headers: new Headers(headers),
  method: "GET",
  path: "/",
  peer: { kind: "tcp", address },
});
const failureOf = async (work: () => unknown): Promise<PlatformError> => {
  try {
    await work();
  } catch (error) {
    assert.ok(error instanceof PlatformError);
    return error;
  }
  return assert.fail("expected to be kept out");
};

test("the static token is accepted from anywhere, with any case of the scheme", async () => {
  const guard = createBearerGuard(
    createTokenVerifier({ clock: systemClock, staticTokens: ["t0k"] }),
  );
  for (const authorization of ["Bearer t0k", "bearer  t0k", "BEARER t0k "]) {
    assert.deepEqual(await guard(requestWith({ authorization })), { kind: "operator" });
  }
});

test("missing, foreign and invalid credentials are 401 with the challenge of RFC 6750", async () => {
  const guard = createBearerGuard(
    createTokenVerifier({ clock: systemClock, staticTokens: ["t0k"] }),
  );
  const missing = await failureOf(() => guard(requestWith({})));
  assert.equal(missing.headers["WWW-Authenticate"], "Bearer");
  for (const authorization of ["Basic dDprZXk=", "Bearer", "Bearer a b", "t0k", "Bearer wrong"]) {
    const error = await failureOf(() => guard(requestWith({ authorization }, "127.0.0.1")));
    assert.equal(error.code, "unauthorized");
    assert.match(error.headers["WWW-Authenticate"]!, /^Bearer error="invalid_token", error_desc/);
    assert.ok(!error.message.includes("t0k"));
  }
});

test("unavailable keys are 503 with Retry-After, immediately or after waiting", async () => {
  const verdict: Verdict = {
    kind: "refused",
    code: "keys_unavailable",
    detail: "later",
    reason: "down",
  };
  const verifiers: TokenVerifier[] = [
    { verify: () => verdict },
    { verify: () => Promise.resolve(verdict) },
  ];
  for (const verifier of verifiers) {
    const guard = createBearerGuard(verifier);
    const error = await failureOf(() => guard(requestWith({ authorization: "Bearer x" })));
    assert.equal(error.code, "unavailable");
    assert.ok(Number(error.headers["Retry-After"]) > 0);
  }
});

test("without configured credentials, local programs are the operator and others are rejected with the reason", async () => {
  const guard = createBearerGuard(undefined);
  const local = requestWith({ host: "localhost:1" }, "127.0.0.1");
  assert.deepEqual(await guard(local), { kind: "operator" });
  const remote = await failureOf(() => guard(requestWith({ host: "localhost" })));
  assert.equal(remote.code, "forbidden");
  assert.match(remote.detail, /No credentials are configured.*does not come from this machine/);
  await failureOf(() => guard(requestWith({ host: "evil.example" }, "127.0.0.1")));
});
