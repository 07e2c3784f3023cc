// The life of a consumer group, as its members see it.
import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import {
  GroupCoordinator,
  type GroupLimits,
  type JoinRequest,
  type JoinResult,
} from "../../src/consumer-group/index.ts";
import { settle, SimulatedTime } from "./simulated-time.ts";

const metadata = Buffer.from("topics");
const sessionMs = 10_000;
const rebalanceMs = 60_000;

let time: SimulatedTime;
let coordinator: GroupCoordinator;
let ids: number;

function restart(limits: Partial<GroupLimits> = {}): void {
  time = new SimulatedTime();
  ids = 0;
  coordinator = new GroupCoordinator({ time, limits, createId: () => String(++ids) });
}

beforeEach(() => restart());

function request(changes: Partial<JoinRequest> = {}): JoinRequest {
  return {
    memberId: "",
    instanceId: null,
    clientId: "c",
    clientHost: "127.0.0.1",
    sessionTimeoutMs: sessionMs,
    rebalanceTimeoutMs: rebalanceMs,
    protocolType: "consumer",
    protocols: [{ name: "range", metadata }],
    needsMemberId: false,
    canSkipAssignment: true,
    ...changes,
  };
}

async function joinAll(...requests: Partial<JoinRequest>[]): Promise<JoinResult[]> {
  const joins = requests.map((changes) => coordinator.join("g", request(changes)));
  await time.advance(coordinator.limits.initialDelayMs);
  return Promise.all(joins);
}

function claimOf({ memberId, generation }: JoinResult, instanceId: string | null = null) {
  return { memberId, generation, instanceId };
}

async function syncAll(results: readonly JoinResult[], instanceId: string | null = null) {
  const syncs = results.map((result) =>
    coordinator.sync("g", {
      ...claimOf(result, instanceId),
      protocolType: null,
      protocol: null,
      assignments:
        result.memberId === result.leader
          ? results.map(({ memberId }) => ({ memberId, assignment: Buffer.from(memberId) }))
          : [],
    }),
  );
  return Promise.all(syncs);
}

function stateOf(): string {
  return coordinator.describe("g")?.state ?? "none";
}

describe("a generation", () => {
  test("begins with all members that joined within the initial delay; the first one leads", async () => {
    const [first, second] = await joinAll({}, {});
    assert.equal(first!.generation, 1);
    assert.equal(first!.leader, first!.memberId);
    assert.equal(second!.leader, first!.memberId);
    assert.deepEqual(
      first!.members.map(({ memberId }) => memberId),
      [first!.memberId, second!.memberId],
    );
    assert.deepEqual(second!.members, []);
    const [one, two] = await syncAll([first!, second!]);
    assert.equal(one!.assignment.toString(), first!.memberId);
    assert.equal(two!.assignment.toString(), second!.memberId);
    assert.equal(stateOf(), "Stable");
  });

  test("uses the protocol preferred by most members among those supported by all", async () => {
    const of = (...names: string[]) => ({ protocols: names.map((name) => ({ name, metadata })) });
    const results = await joinAll(of("a", "b", "c"), of("b", "c"), of("c", "b"), of("b", "a", "c"));
    assert.equal(results[0]!.protocol, "b");
  });

  test("rejects members without a common protocol or of another protocol type", async () => {
    const [first] = await joinAll({});
    await syncAll([first!]);
    const other = await coordinator.join("g", request({ protocols: [{ name: "x", metadata }] }));
    assert.equal(other.error, "inconsistent-group-protocol");
    const connect = await coordinator.join("g", request({ protocolType: "connect" }));
    assert.equal(connect.error, "inconsistent-group-protocol");
    const nothing = await coordinator.join("h", request({ protocols: [] }));
    assert.equal(nothing.error, "inconsistent-group-protocol");
    assert.equal(coordinator.groupCount, 1);
  });

  test("ends when another member joins; heartbeats notify the others", async () => {
    const [first] = await joinAll({});
    await syncAll([first!]);
    const second = coordinator.join("g", request());
    assert.equal(coordinator.heartbeat("g", claimOf(first!)), "rebalance-in-progress");
    const again = await coordinator.join("g", request({ memberId: first!.memberId }));
    assert.equal(again.generation, 2);
    assert.equal((await second).generation, 2);
    assert.equal(coordinator.heartbeat("g", claimOf(first!)), "illegal-generation");
    await syncAll([again, await second]);
    assert.equal(coordinator.heartbeat("g", claimOf(again)), undefined);
  });

  test("continues without members that do not rejoin in time", async () => {
    const [first, second] = await joinAll(
      {},
      { rebalanceTimeoutMs: 20_000, sessionTimeoutMs: 25_000 },
    );
    await syncAll([first!, second!]);
    const third = coordinator.join("g", request({ rebalanceTimeoutMs: 5_000 }));
    const again = coordinator.join("g", request({ memberId: first!.memberId }));
    await time.advance(24_000);
    assert.equal(stateOf(), "PreparingRebalance", "the longest timeout of a member counts");
    await time.advance(rebalanceMs);
    assert.equal((await again).members.length, 2);
    assert.equal((await third).error, undefined);
    const late = await coordinator.join("g", request({ memberId: second!.memberId }));
    assert.equal(late.error, "unknown-member-id");
  });

  test("begins without a live member that does not rejoin in time", async () => {
    const [first, second] = await joinAll({}, {});
    await syncAll([first!, second!]);
    const again = coordinator.join("g", request({ memberId: first!.memberId, protocols: [] }));
    assert.equal((await again).error, "inconsistent-group-protocol");
    const third = coordinator.join("g", request());
    const rejoined = coordinator.join("g", request({ memberId: first!.memberId }));
    for (let elapsed = 0; elapsed < rebalanceMs; elapsed += 5_000) {
      assert.equal(coordinator.heartbeat("g", claimOf(second!)), "rebalance-in-progress");
      await time.advance(5_000);
    }
    assert.equal(coordinator.heartbeat("g", claimOf(second!)), "unknown-member-id");
    assert.equal((await rejoined).members.length, 2);
    assert.equal((await third).generation, 2);
  });

  test("is led by a joined member, not by an absent static leader", async () => {
    const long = { sessionTimeoutMs: 300_000 };
    const [first, second] = await joinAll({ ...long, instanceId: "a" }, long);
    await syncAll([first!], "a");
    const third = coordinator.join("g", request(long));
    const rejoined = coordinator.join("g", request({ ...long, memberId: second!.memberId }));
    await time.advance(rebalanceMs);
    const { leader, members } = await rejoined;
    assert.equal(leader, second!.memberId);
    assert.equal(members.length, 3, "the static member keeps its place while its session lasts");
    assert.equal((await third).leader, leader);
  });

  test("ends when its leader does not sync; waiting members get an error", async () => {
    const [first, second] = await joinAll({ sessionTimeoutMs: 300_000 }, {});
    const waiting = coordinator.sync("g", {
      ...claimOf(second!),
      protocolType: null,
      protocol: null,
      assignments: [],
    });
    await time.advance(rebalanceMs);
    assert.equal((await waiting).error, "rebalance-in-progress");
    const again = await coordinator.join("g", request({ memberId: second!.memberId }));
    assert.equal(again.leader, second!.memberId);
    assert.equal(coordinator.heartbeat("g", claimOf(first!)), "unknown-member-id");
  });

  test("ends when a live member never requests its assignment", async () => {
    const [first, second] = await joinAll({}, {});
    const leaderSync = syncAll([first!]);
    assert.equal((await leaderSync)[0]!.error, undefined);
    for (let elapsed = 0; elapsed < rebalanceMs; elapsed += 5_000) {
      coordinator.heartbeat("g", claimOf(first!));
      coordinator.heartbeat("g", claimOf(second!));
      await time.advance(5_000);
    }
    assert.equal(coordinator.heartbeat("g", claimOf(first!)), "rebalance-in-progress");
    assert.equal(coordinator.heartbeat("g", claimOf(second!)), "unknown-member-id");
  });
});

describe("a member", () => {
  test("gets an id first if it requires one, and is dropped if it does not join with it", async () => {
    const refused = await coordinator.join("g", request({ needsMemberId: true }));
    assert.equal(refused.error, "member-id-required");
    assert.match(refused.memberId, /^c-/);
    const [joined] = await joinAll({ memberId: refused.memberId, needsMemberId: true });
    assert.equal(joined!.memberId, refused.memberId);
    coordinator.leave("g", joined!.memberId, null);
    await coordinator.join("g", request({ needsMemberId: true }));
    assert.equal(coordinator.groupCount, 1);
    await time.advance(sessionMs);
    assert.equal(coordinator.groupCount, 0);
    assert.equal(time.timerCount, 0);
  });

  test("without heartbeats during its session is removed; its partitions go to the others", async () => {
    const [first, second] = await joinAll({}, {});
    await syncAll([first!, second!]);
    await time.advance(sessionMs - 1);
    assert.equal(coordinator.heartbeat("g", claimOf(first!)), undefined);
    await time.advance(1);
    assert.equal(coordinator.heartbeat("g", claimOf(first!)), "rebalance-in-progress");
    assert.equal(coordinator.heartbeat("g", claimOf(second!)), "unknown-member-id");
  });

  test("that leaves is removed immediately; a group without members is dropped", async () => {
    const [first, second] = await joinAll({}, {});
    await syncAll([first!, second!]);
    assert.equal(coordinator.leave("g", second!.memberId, null), undefined);
    assert.equal(coordinator.heartbeat("g", claimOf(first!)), "rebalance-in-progress");
    assert.equal(coordinator.leave("g", second!.memberId, null), "unknown-member-id");
    assert.equal(coordinator.leave("g", first!.memberId, null), undefined);
    assert.equal(coordinator.describe("g"), undefined);
    assert.equal(time.timerCount, 0);
  });

  test("with a pending join may be silent for longer than its session", async () => {
    const [first, second] = await joinAll({ sessionTimeoutMs: 30_000 }, {});
    await syncAll([first!, second!]);
    coordinator.join("g", request());
    const again = coordinator.join("g", request({ memberId: second!.memberId }));
    await time.advance(sessionMs * 2);
    const leader = await coordinator.join("g", request({ memberId: first!.memberId }));
    assert.equal(leader.members.length, 3);
    assert.equal((await again).generation, leader.generation);
  });

  test("that repeats a join gets an answer to its older request", async () => {
    const older = coordinator.join("g", request({ instanceId: "i" }));
    const newer = coordinator.join("g", request({ instanceId: "i" }));
    assert.equal((await older).error, "fenced-instance-id");
    await time.advance(coordinator.limits.initialDelayMs);
    assert.equal((await newer).generation, 1);
  });

  test("without a generation may commit only to a group without members", async () => {
    const nobody = { memberId: "", instanceId: null, generation: -1 };
    assert.equal(coordinator.checkCommit("g", nobody), undefined);
    assert.equal(coordinator.checkCommit("g", { ...nobody, generation: 3 }), "illegal-generation");
    const [first] = await joinAll({});
    assert.equal(coordinator.checkCommit("g", nobody), "unknown-member-id");
    assert.equal(coordinator.checkCommit("g", claimOf(first!)), "rebalance-in-progress");
    await syncAll([first!]);
    assert.equal(coordinator.checkCommit("g", claimOf(first!)), undefined);
    assert.equal(
      coordinator.checkCommit("g", { ...claimOf(first!), generation: 7 }),
      "illegal-generation",
    );
  });
});

describe("a static member", () => {
  test("returns without a rebalance and keeps its assignment", async () => {
    const [first, second] = await joinAll({ instanceId: "a" }, { instanceId: "b" });
    await coordinator.sync("g", {
      ...claimOf(first!, "a"),
      protocolType: null,
      protocol: null,
      assignments: [{ memberId: second!.memberId, assignment: Buffer.from("mine") }],
    });
    const back = await coordinator.join("g", request({ instanceId: "b" }));
    assert.equal(back.generation, 1);
    assert.notEqual(back.memberId, second!.memberId);
    assert.equal(coordinator.heartbeat("g", claimOf(second!, "b")), "fenced-instance-id");
    const [synced] = await syncAll([back], "b");
    assert.equal(synced!.assignment.toString(), "mine");
    assert.equal(coordinator.heartbeat("g", claimOf(first!, "a")), undefined);
  });

  test("that led is told to skip the assignment, or becomes a follower if it cannot", async () => {
    const [first] = await joinAll({ instanceId: "a" });
    await syncAll([first!], "a");
    const skipping = await coordinator.join("g", request({ instanceId: "a" }));
    assert.equal(skipping.skipAssignment, true);
    assert.equal(skipping.leader, skipping.memberId);
    assert.equal(skipping.members.length, 1);
    const older = await coordinator.join(
      "g",
      request({ instanceId: "a", canSkipAssignment: false }),
    );
    assert.equal(older.leader, skipping.memberId);
    assert.deepEqual(older.members, []);
  });

  test("may be removed by its instance id; another member id is fenced", async () => {
    await joinAll({ instanceId: "a" });
    assert.equal(coordinator.leave("g", "x", "a"), "fenced-instance-id");
    assert.equal(coordinator.leave("g", "", "b"), "unknown-member-id");
    assert.equal(coordinator.leave("g", "", "a"), undefined);
    assert.equal(coordinator.groupCount, 0);
  });
});

describe("bounds", () => {
  test("a full group rejects further members; assigned ids count", async () => {
    restart({ membersMax: 2 });
    coordinator.join("g", request());
    coordinator.join("g", request({ needsMemberId: true }));
    const third = await coordinator.join("g", request());
    assert.equal(third.error, "group-max-size-reached");
  });

  test("groups above the limit are rejected", async () => {
    restart({ groupsMax: 1 });
    coordinator.join("g", request());
    assert.equal((await coordinator.join("h", request())).error, "coordinator-overloaded");
  });

  test("session timeouts outside the limits are rejected", async () => {
    for (const sessionTimeoutMs of [0, -1, 5_999, 30 * 60_000 + 1]) {
      const result = await coordinator.join("g", request({ sessionTimeoutMs }));
      assert.equal(result.error, "invalid-session-timeout");
    }
    assert.equal(coordinator.groupCount, 0);
  });

  test("metadata and assignments over their limits are rejected", async () => {
    restart({ metadataBytesMax: 10, assignmentBytesMax: 2 });
    const large = await coordinator.join(
      "g",
      request({ protocols: [{ name: "range", metadata }] }),
    );
    assert.equal(large.error, "metadata-too-large");
    const [first] = await joinAll({ protocols: [{ name: "r", metadata: Buffer.alloc(1) }] });
    const [synced] = await syncAll([first!]);
    assert.equal(synced!.error, "metadata-too-large");
  });

  test("a closing broker removes all members", async () => {
    const waiting = coordinator.join("g", request());
    await settle();
    coordinator.close();
    assert.equal((await waiting).error, "unknown-member-id");
    assert.equal(coordinator.groupCount, 0);
    assert.equal(time.timerCount, 0);
  });
});
