// Every file of mail's data folder × every fault: mail, templates, suppressions and webhooks are whole, or the loss is told.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { loadConfig } from "@platform/kernel/config";
import { runFaultMatrix } from "@platform/testing/faults";
import { waitFor } from "@platform/testing/wait";
import { notifyDefinition } from "../../src/config.ts";
import { startStageOn } from "../stage.ts";

const DATA = [
  "/api/v1/messages",
  "/api/v1/templates",
  "/api/v1/suppression",
  "/api/v1/webhooks",
  "/api/v1/domains",
];

test("no fault of a file of mail's data folder is silent", async (t) => {
  await runFaultMatrix(t, {
    async start(folder) {
      const stage = await startStageOn({ data_dir: folder });
      const must = async (method: string, path: string, body?: unknown) => {
        const answer = await stage.call(method, path, body);
        assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.text}`);
        return answer.body;
      };
      return {
        async write(round) {
          const ids: string[] = [];
          for (let number = 0; number < 12; number++) {
            const subject = `${round}-${number}`;
            const mail = { to: `user-${subject}@example.org`, subject, text: subject.repeat(600) };
            ids.push((await must("POST", "/api/v1/send", mail)).message_id);
          }
          const template = {
            name: `t${round}`,
            subject: "Hello {{name}}",
            text: "x".repeat(3_000),
          };
          await must("POST", "/api/v1/templates", template);
          await must("POST", "/api/v1/suppression", { email: `gone-${round}@example.org` });
          const events = ["message.complained"];
          await must("POST", "/api/v1/webhooks", { url: `https://example.org/${round}`, events });
          await must("POST", "/api/v1/domains", { domain: `d${round}.example.org` });
          for (const id of ids)
            await waitFor(async () => {
              const { status } = await must("GET", `/api/v1/messages/${id}`);
              return status === "sent";
            });
        },
        async read() {
          const found: unknown[] = [];
          for (const path of DATA) found.push(await must("GET", `${path}?limit=200`));
          const [{ messages }] = found as [{ messages: { message_id: string }[] }];
          for (const { message_id: id } of messages)
            found.push(await must("GET", `/api/v1/messages/${id}/content`));
          return found;
        },
        async readReports() {
          const ready = await stage.call("GET", "/readyz");
          const lines = stage.log.filter((line) => /"level":"(?:warn|error)"/.test(line));
          return [...lines, ...(ready.status === 200 ? [] : [ready.text])].join("\n");
        },
        stop: () => stage.close(),
      };
    },
  });
});

test("a lost database is refused until --accept-loss starts without it", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "notify-lost-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const first = await startStageOn({ data_dir: folder });
  await first.call("POST", "/api/v1/suppression", { email: "ada@example.org" });
  await first.close();
  rmSync(join(folder, "notify.db"));
  await assert.rejects(startStageOn({ data_dir: folder }), /notify\.db held data.*--accept-loss/);
  const loaded = loadConfig(notifyDefinition, { argv: ["--accept-loss"], env: {} });
  assert.ok(loaded.kind === "run" && loaded.command === "");
  const { accept_loss } = loaded.config;
  const second = await startStageOn({ data_dir: folder, accept_loss });
  assert.deepEqual((await second.call("GET", "/api/v1/suppression")).body.addresses, []);
  await second.close();
  await (await startStageOn({ data_dir: folder })).close();
});
