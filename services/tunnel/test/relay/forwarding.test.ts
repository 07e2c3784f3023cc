// Proxies in front of the relay: both forms of the forwarding fields say the same about the client.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Cleanup, send, startLocal, startTestClient, startTestRelay } from "../fixture/stage.ts";

const cleanup = new Cleanup();
after(() => cleanup.run());

test("a local service sees the client of a proxy that sends either form, or lists", async () => {
  const relay = await startTestRelay(cleanup, { trusted_proxies: ["127.0.0.1", "10.0.0.0/8"] });
  const localPort = await startLocal(cleanup, (request, response) =>
    response.end(JSON.stringify(request.headers)),
  );
  const tunnels = [{ target: `127.0.0.1:${localPort}`, subdomain: "demo" }];
  await startTestClient(cleanup, { port: relay.port, tunnels });
  const forms: Record<string, string>[] = [
    { "X-Forwarded-For": "198.51.100.7", "X-Forwarded-Proto": "https" },
    { Forwarded: "for=198.51.100.7;proto=https" },
    {
      "X-Forwarded-For": "198.51.100.7",
      "X-Forwarded-Proto": "https",
      Forwarded: "for=127.0.0.1;proto=http",
    },
    { "X-Forwarded-For": "198.51.100.7", "X-Forwarded-Proto": "https, http" },
    { "X-Forwarded-For": "198.51.100.7, 10.0.0.1", "X-Forwarded-Proto": "https, http" },
    { Forwarded: "for=198.51.100.7;proto=https, for=10.0.0.1;proto=http" },
  ];
  for (const headers of forms) {
    const { body } = await send({ port: relay.port, host: "demo.localhost", path: "/", headers });
    const fields = JSON.parse(body.toString()) as Record<string, string>;
    const shown = JSON.stringify(headers);
    assert.match(fields["x-forwarded-for"] ?? "", /^198\.51\.100\.7, .*127\.0\.0\.1$/, shown);
    assert.equal(fields["x-forwarded-proto"], "https", shown);
    const first = /^for=198\.51\.100\.7;host="demo\.localhost[^"]*";proto=https,/;
    assert.match(fields["forwarded"] ?? "", first, shown);
  }
});
