// Verifiers from a configuration: startup errors and warnings.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createConfiguredVerifier } from "@platform/kernel/identity";
import { createLogger } from "@platform/kernel/log";
import { systemClock } from "@platform/kernel/time";

function configure(config: object, operatorToken?: string) {
  const lines: string[] = [];
  const log = createLogger({ service: "test", write: (line) => void lines.push(line) });
  const make = () => createConfiguredVerifier({ config, operatorToken, clock: systemClock, log });
  return { lines, make };
}

test("without credentials there is no verifier", () => {
  assert.equal(configure({ jwt_issuer: "a", jwt_audience: "b" }).make(), undefined);
});

test("a key set without issuer and audience stops the start", () => {
  const jwks_url = "http://127.0.0.1:1/keys";
  for (const config of [
    { jwks_url },
    { jwks_url, jwt_issuer: "a" },
    { jwks_url, jwt_audience: "b" },
  ]) {
    assert.throws(configure(config).make, /jwks_url requires jwt_issuer and jwt_audience/);
  }
});

test("the operator token is accepted, others are rejected, and a short secret causes a warning without its value", async () => {
  const { lines, make } = configure({ jwt_secret: "hush-hush" }, "the-operator");
  const verifier = make()!;
  assert.equal((await verifier.verify("the-operator")).kind, "operator");
  assert.equal((await verifier.verify("somebody")).kind, "refused");
  assert.equal(lines.length, 1);
  assert.match(lines[0]!, /jwt_secret is too short/);
  assert.ok(!lines[0]!.includes("hush-hush"));
});
