// Every file of identity's data folder × every fault: accounts, sessions, clients and keys are whole, or the loss is told.
import assert from "node:assert/strict";
import { test } from "node:test";
import { runFaultMatrix } from "@platform/testing/faults";
import { ADMIN, expectStatus, join, signIn, startWithAdmin } from "./client.ts";

test("no fault of a file of identity's data folder is silent", async (t) => {
  const people: { username: string; password: string; session: string }[] = [];
  const clients: { client_id: string; client_secret: string }[] = [];
  let isRecorded = false;
  await runFaultMatrix(t, {
    async start(folder) {
      const stage = await startWithAdmin({ data_dir: folder });
      const client = {
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
      };
      return {
        async write(round) {
          for (let number = 0; number < 4; number++) {
            const person = await join(stage, `person-${round}-${number}`);
            if (!isRecorded) people.push(person);
          }
          const { token } = await signIn(stage, ADMIN);
          const created = await expectStatus(201, stage, "POST", "/api/v1/auth/clients", {
            token,
            body: client,
          });
          if (!isRecorded) clients.push(created.body as never);
        },
        async read() {
          isRecorded = true;
          const { token, id } = await signIn(stage, ADMIN);
          const found: unknown[] = [id];
          const keys = await expectStatus(200, stage, "GET", "/.well-known/jwks.json");
          found.push(keys.body);
          for (const person of people) {
            // The session of before the fault, and the password.
            const headers = { Cookie: `platform_session=${person.session}` };
            const account = await expectStatus(200, stage, "GET", "/api/v1/auth/account", {
              headers,
            });
            found.push(account.body, (await signIn(stage, person)).id);
          }
          const list = await expectStatus(200, stage, "GET", "/api/v1/auth/clients", { token });
          found.push(list.body);
          for (const { client_id: id, client_secret: secret } of clients) {
            const answer = await fetch(`${stage.url}/api/v1/auth/token`, {
              method: "POST",
              headers: { Authorization: `Basic ${btoa(`${id}:${secret}`)}` },
              body: new URLSearchParams({ grant_type: "client_credentials" }),
            });
            assert.equal(answer.status, 200, await answer.text());
          }
          return found;
        },
        async readReports() {
          const ready = await fetch(`${stage.url}/readyz`);
          const text = await ready.text();
          const lines = stage.log.filter((line) => /"level":"(?:warn|error)"/.test(line));
          return [...lines, ...(ready.status === 200 ? [] : [text])].join("\n");
        },
        stop: () => stage.close(),
      };
    },
  });
});
