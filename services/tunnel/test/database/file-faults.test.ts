// Every file of the relay's data folder × every fault: names, share links and cut-offs are whole, or the loss is told.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { runFaultMatrix } from "@platform/testing/faults";
import { Cleanup, send, startTestRelay } from "../fixture/stage.ts";

const TOKEN = "operator-token-of-thirty-two-characters";

const cleanup = new Cleanup();
after(() => cleanup.run());

test("no fault of a file of the relay's data folder is silent", async (t) => {
  const links: { host: string; path: string }[] = [];
  let isRecorded = false;
  await runFaultMatrix(t, {
    async start(folder) {
      const relay = await startTestRelay(cleanup, { data_dir: folder, auth_token: TOKEN });
      const { port } = relay;
      const call = (method: string, path: string, body?: unknown) =>
        send({
          port,
          host: "localhost",
          path,
          method,
          headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
      const must = async (method: string, path: string, body?: unknown) => {
        const answer = await call(method, path, body);
        const text = answer.body.toString();
        assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${text}`);
        return text === "" ? undefined : JSON.parse(text.replaceAll(`:${port}`, ""));
      };
      return {
        async write(round) {
          for (let number = 0; number < 8; number++) {
            const subdomain = `name-${round}-${number}`;
            const { id } = await must("POST", "/api/v1/tunnels", {
              subdomain,
              auth_required: true,
            });
            const { url } = await must("POST", `/api/v1/tunnels/${id}/share`, {
              expires_in: "12h",
            });
            const { host, pathname, search } = new URL(url);
            if (!isRecorded) links.push({ host, path: pathname + search });
          }
          await must("PUT", `/api/v1/subjects/user-${round}/cut-off`, {});
        },
        async read() {
          isRecorded = true;
          const { tunnels } = await must("GET", "/api/v1/tunnels?limit=100");
          const found: unknown[] = [tunnels, await must("GET", "/api/v1/subjects/cut-off")];
          for (const { id } of tunnels)
            found.push(await must("GET", `/api/v1/tunnels/${id}/shares`));
          for (const link of links) {
            const headers = { accept: "text/html" };
            found.push((await send({ ...link, port, headers })).status);
          }
          return found;
        },
        async readReports() {
          const ready = await call("GET", "/readyz");
          return [...relay.log, ...(ready.status === 200 ? [] : [ready.body.toString()])].join(
            "\n",
          );
        },
        stop: () => relay.stop(),
      };
    },
  });
});
