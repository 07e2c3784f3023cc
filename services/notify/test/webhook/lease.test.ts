// Calls and forwards that were in flight when the process ended without a drain.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startHookServer } from "../receiver.ts";
import { startStage, startStageOn, until } from "../stage.ts";

test("a webhook call of a process that was killed continues at the next start, without a failure", async () => {
  const hooks = await startHookServer();
  after(() => hooks.close());
  const settings = { allow_private_targets: true };
  const first = await startStage(settings);
  const { body: hook } = await first.call("POST", "/api/v1/webhooks", { url: hooks.url });
  const mail = { to: "ada@example.org", subject: "x", text: "x" };
  await first.call("POST", "/api/v1/send", mail);
  await until(() => (hooks.requests.length === 1 ? true : undefined));
  const path = `/api/v1/webhooks/${hook.id}/calls`;
  const list = async (stage: typeof first) => (await stage.call("GET", path)).body.calls;
  await until(async () => ((await list(first))[0].status === "delivered" ? true : undefined));
  // The state in which a kill during the attempt leaves the row.
  await first.database.db
    .updateTable("notify_webhook_calls")
    .set({ status: "pending", attempts: 0, leased: 1, due_at: Date.now() + 600_000 })
    .execute();
  await first.close();
  const second = await startStageOn({ ...first.settings, ...settings });
  await until(() => (hooks.requests.length === 2 ? true : undefined));
  const [call] = await until(async () => {
    const calls = await list(second);
    return calls[0].status === "delivered" ? calls : undefined;
  });
  assert.equal(call.attempts, 1);
  await second.close();
});
