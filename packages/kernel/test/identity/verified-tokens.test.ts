// The bound of verified tokens.
import assert from "node:assert/strict";
import { test } from "node:test";
import { VerifiedTokens } from "../../src/identity/verified-tokens.ts";

const claims = (sub: string) => ({ sub, exp: 1, scope: [], roles: [], all: {} });

test("tokens in use stay, others go, and the number is bounded", () => {
  const tokens = new VerifiedTokens(100);
  tokens.add("hot", claims("hot"));
  tokens.add("cold", claims("cold"));
  for (let at = 0; at < 1_000; at += 1) {
    tokens.add(`other ${at}`, claims("other"));
    assert.equal(tokens.get("hot")?.sub, "hot");
    assert.ok(tokens.size <= 100, `${tokens.size}`);
  }
  assert.equal(tokens.get("cold"), undefined);
  assert.equal(tokens.get("other 999")?.sub, "other");
  assert.equal(tokens.get("other 0"), undefined);
});

test("removed tokens are gone from both generations", () => {
  const tokens = new VerifiedTokens(4);
  for (const name of ["a", "b", "c"]) tokens.add(name, claims(name));
  tokens.delete("a");
  tokens.delete("c");
  assert.deepEqual(
    [tokens.get("a"), tokens.get("c"), tokens.get("b")?.sub],
    [undefined, undefined, "b"],
  );
  tokens.clear();
  assert.equal(tokens.size, 0);
});

test("a bound of 0 keeps nothing", () => {
  const tokens = new VerifiedTokens(0);
  tokens.add("a", claims("a"));
  assert.equal(tokens.get("a"), undefined);
});
