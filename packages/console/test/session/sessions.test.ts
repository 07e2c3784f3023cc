// The sessions in memory: their number is bounded, and ends are reported.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Sessions } from "../../src/session/sessions.ts";
import type { Grant } from "../../src/session/session.ts";
import { createMovedClock } from "../stage.ts";

const GRANT: Grant = {
  method: "credentials",
  user: { id: "operator", name: "operator" },
  isAdmin: true,
  permissions: [],
  roles: [],
  credentials: new Map(),
};

test("beyond 1 000 sessions the one that was unused for longest ends", () => {
  const sessions = new Sessions(createMovedClock().clock);
  const first = sessions.begin(GRANT).token;
  const second = sessions.begin(GRANT).token;
  assert.ok(sessions.use(first), "used, so that it is not the oldest any more");
  for (let count = 2; count < 1_001; count += 1) sessions.begin(GRANT);
  assert.equal(sessions.count, 1_000);
  assert.ok(sessions.peek(first));
  assert.equal(sessions.peek(second), undefined);
});

test("the end of a session is reported once, whatever ends it", () => {
  const { clock, advance } = createMovedClock();
  const sessions = new Sessions(clock);
  const ended: string[] = [];
  const begin = (name: string): string => {
    const { token, session } = sessions.begin({ ...GRANT, user: { id: name, name } });
    sessions.watch(session, () => ended.push(name));
    return token;
  };
  const token = begin("signed out");
  begin("ended elsewhere");
  sessions.end(token);
  sessions.end(token);
  sessions.endWhere(({ user }) => user.id === "ended elsewhere");
  begin("expired");
  advance(3_600_001);
  sessions.sweep();
  assert.deepEqual(ended, ["signed out", "ended elsewhere", "expired"]);
  const kept = sessions.begin(GRANT);
  const forget = sessions.watch(kept.session, () => ended.push("forgotten"));
  forget();
  sessions.end(kept.token);
  assert.equal(ended.length, 3);
});
