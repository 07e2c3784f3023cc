// The folders of control sockets that killed gateways leave.
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runtimesOfRules, startGate } from "../fixture/gate-process.ts";

for (const runtime of runtimesOfRules) {
  test(
    `${runtime.name}: a start removes what killed gateways left, and nothing of those that run`,
    { skip: process.platform === "win32" ? "control sockets are named pipes" : false },
    async (context) => {
      const temporary = makeFolder(context);
      const list = (): string[] =>
        readdirSync(temporary).filter((name) => name.startsWith("pgate-"));
      const start = () =>
        startGate(context, { runtime, config: { workers: 1 }, env: { TMPDIR: temporary } });
      const killed = await start();
      const [left = assert.fail("no control folder")] = list();
      killed.signal("SIGKILL");
      await killed.ended;
      assert.deepEqual(list(), [left]);

      const first = await start();
      await waitFor(() => !list().includes(left), "the removal");
      const second = await start();
      assert.equal(list().length, 2);
      for (const { url } of [first, second]) {
        assert.equal((await fetch(`${url}/api/v1/routes`)).status, 200);
        assert.equal(existsSync(`${temporary}/${left}`), false);
      }
    },
  );
}
