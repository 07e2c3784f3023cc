// Webhook calls that were in flight when the process ended without a drain.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger } from "@platform/kernel/log";
import { waitFor } from "@platform/testing/wait";
import { openNotifyDatabase } from "../../src/database/open.ts";
import { startHookServer } from "../receiver.ts";
import { STAGE_KINDS, startStageOn } from "../stage.ts";

const log = createLogger({ service: "notify", level: "error", format: "json" });
const LEASE_MS = 600_000;

for (const { kind, skip, prepare } of STAGE_KINDS) {
  test(
    `${kind}: the calls of a process that was killed continue at its next start, without a failure; others keep theirs`,
    { skip },
    async (t) => {
      const hooks = await startHookServer();
      t.after(() => hooks.close());
      const settings: Record<string, unknown> = {
        ...(await prepare()),
        allow_private_targets: true,
      };
      const first = await startStageOn(settings);
      const { body: hook } = await first.call("POST", "/api/v1/webhooks", { url: hooks.url });
      hooks.isSilent = true;
      for (const name of ["ada", "bob"]) {
        const mail = { to: `${name}@example.org`, subject: "x", text: "x" };
        await first.call("POST", "/api/v1/send", mail);
      }
      const rows = await waitFor(async () => {
        const { db } = first.database;
        const found = await db.selectFrom("notify_webhook_calls").selectAll().execute();
        return found.length === 2 && found.some(({ leased }) => leased > 0) ? found : undefined;
      });
      const mark = Math.max(...rows.map(({ leased }) => leased));
      hooks.isSilent = false;
      hooks.drop();
      await first.close();

      // The state that a kill during the attempts leaves; the second call is another process's.
      const place = { url: settings["database_url"] as string | undefined };
      const dataDir = String(settings["data_dir"]);
      const database = openNotifyDatabase({ ...place, dataDir, acceptLoss: false, log });
      for (const [index, { id }] of rows.entries()) {
        await database.db
          .updateTable("notify_webhook_calls")
          .set({
            status: "pending",
            attempts: 0,
            leased: mark + index,
            due_at: Date.now() + LEASE_MS,
          })
          .where("id", "=", id)
          .execute();
      }
      await database.close();
      const second = await startStageOn(settings);
      const path = `/api/v1/webhooks/${hook.id}/calls`;
      const calls = await waitFor(async () => {
        const { body } = await second.call("GET", path);
        const [own, other] = rows.map((row) =>
          body.calls.find(({ id }: { id: string }) => id === row.id),
        );
        return own.status === "delivered" ? [own, other] : undefined;
      });
      assert.deepEqual(
        calls.map(({ status, attempts }) => [status, attempts]),
        [
          ["delivered", 1],
          ["pending", 0],
        ],
      );
      await second.close();
    },
  );
}
