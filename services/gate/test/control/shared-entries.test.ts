// Merging of API keys and revoked users: the same outcome in any order, and never an undone revocation.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { ApiKeyRecord } from "../../src/access/api-key-record.ts";
import { EndedSessionSet, POLICY_DEFAULT, type PolicySpec } from "../../src/shared-state/index.ts";
import { listEntries, mergeEntries } from "../../src/access/shared-entries.ts";

interface Held {
  keys: Map<string, ApiKeyRecord>;
  revokedUsers: Map<string, number>;
  endedSessions: EndedSessionSet;
  policy: PolicySpec;
}

function endedBy(sessions: Readonly<Record<string, number>>): EndedSessionSet {
  const set = new EndedSessionSet();
  set.add(Object.entries(sessions).map(([sid, endedAt]) => ({ client: "c", sid, endedAt })));
  return set;
}

const makeKey = (id: string, revokedAt: string | null): ApiKeyRecord => ({
  id,
  tenant: "acme",
  name: id,
  hash: `hash of ${id}`,
  rate_limit_rpm: null,
  routes: [],
  created_at: "2026-01-01T00:00:00.000Z",
  revoked_at: revokedAt,
});

const heldBy = fc
  .record({
    keys: fc.dictionary(fc.constantFrom("a", "b", "c", "d"), fc.boolean()),
    users: fc.dictionary(fc.constantFrom("u", "v", "w"), fc.integer({ min: 1, max: 9 })),
    ended: fc.dictionary(fc.constantFrom("s", "t", "u"), fc.integer({ min: 1, max: 9 })),
    policy: fc.record({
      version: fc.integer({ min: 1, max: 3 }),
      generation: fc.integer({ min: 0, max: 2 }),
      reloadedAt: fc.integer({ min: 1, max: 3 }),
      default: fc.constantFrom("allow", "deny"),
      rules: fc.constant([]),
    }),
  })
  .map(({ keys, users, ended, policy }): Held => {
    const records = Object.entries(keys).map(
      ([id, isRevoked]) =>
        [id, makeKey(id, isRevoked ? "2026-01-02T00:00:00.000Z" : null)] as const,
    );
    const endedSessions = endedBy(ended);
    return {
      keys: new Map(records),
      revokedUsers: new Map(Object.entries(users)),
      endedSessions,
      policy,
    };
  });

function take(own: Held, other: Held): Held {
  const merged = mergeEntries(own, listEntries(other));
  if (merged === undefined) return own;
  const revokedUsers = new Map(own.revokedUsers);
  for (const { user, revokedAt } of merged.change.revokedUsers ?? [])
    revokedUsers.set(user, revokedAt);
  const { policy = own.policy } = merged.change;
  const endedSessions = new EndedSessionSet();
  endedSessions.add([...own.endedSessions.list(), ...(merged.change.endedSessions ?? [])]);
  const keys = new Map(merged.keys.map((key) => [key.id, key]));
  return { keys, revokedUsers, endedSessions, policy };
}

const validKeys = ({ keys }: Held): string[] =>
  [...keys.values()]
    .filter((key) => key.revoked_at === null)
    .map(({ id }) => id)
    .sort();

const readEnd = ({ endedSessions }: Held, wanted: string): number[] =>
  endedSessions.list().flatMap(({ sid, endedAt }) => (sid === wanted ? [endedAt] : []));
const sortEnds = ({ endedSessions }: Held): string[] =>
  endedSessions
    .list()
    .map(({ sid, endedAt }) => `${sid ?? ""} ${endedAt}`)
    .sort();

test("merging has one outcome in any order, and revocations stay", () => {
  fc.assert(
    fc.property(heldBy, heldBy, heldBy, (a, b, c) => {
      const one = take(take(a, b), c);
      const other = take(take(c, a), b);
      // A revoked key that a gateway never had is not kept there, so the third is merged once more.
      assert.deepEqual(validKeys(take(one, b)), validKeys(take(take(other, a), c)));
      assert.deepEqual(
        Object.fromEntries(one.revokedUsers),
        Object.fromEntries(other.revokedUsers),
      );
      const rank = ({ generation = 0, version }: PolicySpec): number => generation * 10 + version;
      const highest = Math.max(...[a, b, c].map(({ policy }) => rank(policy)));
      assert.equal(rank(one.policy), highest);
      const latest = (sid: string): number =>
        Math.max(0, ...[a, b, c].flatMap((held) => readEnd(held, sid)));
      for (const { sid, endedAt } of one.endedSessions.list()) assert.equal(endedAt, latest(sid!));
      assert.deepEqual(sortEnds(one), sortEnds(other));
      assert.equal(JSON.stringify(one.policy), JSON.stringify(other.policy));
      for (const held of [a, b, c]) {
        for (const key of held.keys.values()) {
          if (key.revoked_at === null) continue;
          assert.ok(!validKeys(take(one, held)).includes(key.id));
        }
      }
      assert.equal(mergeEntries(a, listEntries(a)), undefined);
    }),
  );
});

test("malformed entries are skipped", () => {
  const own = {
    keys: new Map<string, ApiKeyRecord>(),
    revokedUsers: new Map<string, number>(),
    endedSessions: new EndedSessionSet(),
    policy: POLICY_DEFAULT,
  };
  const good = JSON.stringify(makeKey("a", null));
  const merged = mergeEntries(own, {
    keys: [
      "{",
      "null",
      '{"id":"x"}',
      JSON.stringify(makeKey("b", "2026-01-01")),
      "x".repeat(70_000),
      good,
    ],
    removedKeys: [{ id: "z", revokedAtMs: NaN }],
    revokedUsers: [
      { user: "u", revokedAt: NaN },
      { user: "x".repeat(2_000), revokedAt: 1 },
    ],
    endedSessions: [
      { client: "c", endedAt: 1 },
      { client: "c", sid: "s", endedAt: NaN },
      { client: "c", sub: "x".repeat(2_000), endedAt: 1 },
    ],
    policy: '{"version":7,"reloadedAt":1,"default":"maybe","rules":[]}',
  });
  assert.deepEqual(
    merged?.keys.map(({ id }) => id),
    ["a"],
  );
  assert.equal(merged?.skipped, 5);
  assert.equal(merged?.change.revokedUsers, undefined);
  assert.equal(merged?.change.endedSessions, undefined);
  assert.equal(merged?.change.policy, undefined);
});
