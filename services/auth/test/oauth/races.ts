// Concurrent use of single-use credentials, on one node and on two.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { onEachDatabase } from "../databases.ts";
import { startHost, type Host } from "./host.ts";
import { startNode, type Node } from "./node.ts";
import {
  introspect,
  obtainCode,
  obtainTokens,
  postToken,
  refresh,
  register,
  type Answer,
  type TestClient,
} from "./relying-party.ts";

const ATTEMPTS = 64;

onEachDatabase((makeUrl, kind) => {
  let host: Host;
  let other: Node | undefined;
  let client: TestClient;
  before(async () => {
    const url = await makeUrl();
    host = await startHost({ url });
    client = await register(host);
    // A second process; SQLite supports only one.
    if (kind === "postgres") other = await startNode({ url, issuer: host.issuer });
  });
  after(async () => {
    await other?.stop();
    await host.close();
  });

  const onAllNodes = (work: (at: string) => Promise<Answer>): Promise<Answer[]> => {
    const nodes = [host.origin, other?.origin ?? host.origin];
    return Promise.all(Array.from({ length: ATTEMPTS }, (_, index) => work(nodes[index % 2]!)));
  };
  const count = (answers: readonly Answer[], status: number): number =>
    answers.filter((answer) => answer.status === status).length;

  describe("64 concurrent", () => {
    test("redemptions of one code: one succeeds, and its tokens stay valid", async () => {
      const form = await obtainCode(host, client);
      const answers = await onAllNodes((at) => postToken(host, form, { as: client, at }));
      assert.equal(count(answers, 200), 1);
      assert.equal(count(answers, 400), ATTEMPTS - 1);
      for (const { status, body } of answers) {
        if (status === 400) assert.equal(body["error"], "invalid_grant");
      }
      const won = answers.find(({ status }) => status === 200)!.body;
      assert.equal((await introspect(host, client, String(won["access_token"]))).active, true);
      assert.equal((await refresh(host, client, String(won["refresh_token"]))).status, 200);
    });

    test("uses of one refresh token: there is one successor, and it works", async () => {
      const { refresh_token } = await obtainTokens(host, client);
      const answers = await onAllNodes((at) => refresh(host, client, refresh_token, { at }));
      for (const { status, body } of answers) {
        assert.ok(status === 200 || body["error"] === "invalid_grant", JSON.stringify(body));
      }
      const successors = new Set(
        answers.filter(({ status }) => status === 200).map(({ body }) => body["refresh_token"]),
      );
      assert.equal(successors.size, 1);
      const [successor] = successors;
      const next = await refresh(host, client, String(successor));
      assert.equal(next.status, 200);
      assert.notEqual(next.body["refresh_token"], successor);
    });
  });
});
