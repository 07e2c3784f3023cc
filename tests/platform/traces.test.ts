// Traces over all services: a request through the gateway to a project, and its spans in each of them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { ADA, Platform } from "../identity/platform.ts";

interface Span {
  service: string;
  span_id: string;
  parent_span_id: string;
  name: string;
  status: string;
  attributes: Record<string, unknown>;
}

const PROJECT = `server { port: 3000 }
export route GET /hello () { return "hello" }
export route GET /broken () { throw new Error("the shelf is empty"); }
`;
let platform: Platform;

before(async () => {
  platform = await Platform.start({ project: PROJECT });
});
after(() => platform.stop());

async function read(url: URL, token: string, traceId: string): Promise<Span[]> {
  const answer = await fetch(new URL(`/api/v1/admin/traces/${traceId}`, url), {
    headers: { authorization: `Bearer ${token}` },
  });
  assert.equal(answer.status, 200, await answer.clone().text());
  return ((await answer.json()) as { spans: Span[] }).spans;
}

test("a failed request is found in the gateway and in the project, as one tree", async () => {
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
  const answer = await platform.ask("/broken", {
    host: "shop.localhost",
    headers: { traceparent: `00-${traceId}-00f067aa0ba902b7-01` },
  });
  assert.equal(answer.status, 500);
  const token = platform.readCredential("PLATFORM_GATE_AUTH_TOKEN");
  const [atGateway] = await read(platform.gate, token, traceId);
  assert.deepEqual(
    [atGateway?.service, atGateway?.parent_span_id, atGateway?.status],
    ["gate", "00f067aa0ba902b7", "error"],
  );
  assert.equal(atGateway?.attributes["url.path"], "/broken");
  const runtime = platform.readCredential("PLATFORM_RUNTIME_TOKEN");
  const [inProject] = await waitFor(
    async () => {
      const spans = await read(platform.runtime, runtime, traceId);
      return spans.length > 0 ? spans : undefined;
    },
    () => platform.log.slice(-2_000),
  );
  assert.equal(inProject?.service, "shop");
  assert.equal(inProject?.parent_span_id, atGateway?.span_id);
  assert.equal(inProject?.status, "error");
});

test("other services keep theirs, for those who may read them", async () => {
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` };
  await fetch(new URL("/api/v1/users/none", platform.auth), {
    headers: { ...headers, authorization: `Bearer ${platform.admin}` },
  });
  const [span] = await read(platform.auth, platform.admin, traceId);
  assert.equal(span?.service, "auth");
  assert.deepEqual(await read(platform.auth, platform.admin, "f".repeat(32)), []);
  const { access_token: ada } = await platform.signIn(ADA);
  for (const url of [platform.auth, platform.gate, platform.runtime]) {
    const answer = await fetch(new URL(`/api/v1/admin/traces/${traceId}`, url), {
      headers: { authorization: `Bearer ${ada}` },
    });
    assert.equal(answer.status, 403, url.href);
  }
});
