// Guarded outgoing requests, with real servers on this machine and host names defined by the test.
import assert from "node:assert/strict";
import { Agent, createServer, get, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import {
  createAddressPolicy,
  createEgress,
  createEgressGuard,
  EgressError,
  type EgressErrorCode,
  type EgressOptions,
} from "@platform/kernel/egress";

const servers: Server[] = [];
after(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

const open = (options: EgressOptions = {}) =>
  createEgress({ allowedNetworks: ["127.0.0.0/8"], ...options });

const failsAs = (call: Promise<unknown>, code: EgressErrorCode): Promise<void> =>
  assert.rejects(call, (error) => error instanceof EgressError && error.code === code);

describe("addresses", () => {
  test("only public unicast addresses are allowed", () => {
    const policy = createAddressPolicy();
    const allowed = ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1"];
    const refused = [
      "127.0.0.1",
      "0.0.0.0",
      "10.1.2.3",
      "100.64.0.1",
      "169.254.169.254",
      "172.31.255.255",
      "192.168.0.1",
      "198.18.0.1",
      "224.0.0.1",
      "255.255.255.255",
      "::",
      "::1",
      "::ffff:127.0.0.1",
      "::ffff:7f00:1",
      "64:ff9b::7f00:1",
      "2002:7f00:1::",
      "2001:0:7f00:1::",
      "2001:db8::1",
      "fc00::1",
      "fd12:3456::1",
      "fe80::1",
      "fe80::1%eth0",
      "ff02::1",
      "localhost",
      "",
    ];
    for (const address of allowed) assert.equal(policy.isAllowed(address), true, address);
    for (const address of refused) assert.equal(policy.isAllowed(address), false, address);
  });

  test("an allowed network is accepted and adjacent ones are not", () => {
    const policy = createAddressPolicy(["10.1.0.0/16", "fd00:1::/32", "127.0.0.1"]);
    for (const address of ["10.1.255.1", "fd00:1::5", "127.0.0.1", "::ffff:10.1.0.1"]) {
      assert.equal(policy.isAllowed(address), true, address);
    }
    for (const address of ["10.2.0.1", "fd00:2::5", "127.0.0.2"]) {
      assert.equal(policy.isAllowed(address), false, address);
    }
    for (const network of ["10.0.0.0/33", "10.0.0.0/x", "ten", "::/129", "10.0.0.0/8/8", ""]) {
      assert.throws(() => createAddressPolicy([network]), RangeError, network);
    }
  });

  test("a mapped address counts as its IPv4 address", () => {
    const policy = createAddressPolicy();
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        assert.equal(policy.isAllowed(`::ffff:${address}`), policy.isAllowed(address));
      }),
    );
  });
});

describe("requests", () => {
  test("method, headers and body are sent, and the response is returned", async () => {
    const port = await serve((request, response) => {
      let body = "";
      request.setEncoding("utf8").on("data", (text: string) => (body += text));
      request.once("end", () => {
        response.writeHead(201, { "Content-Type": "text/plain", "X-Host": request.headers.host });
        response.end(`${request.method} ${String(request.headers["x-a"])} ${body}`);
      });
    });
    const answer = await open()(`http://127.0.0.1:${port}/hook`, {
      method: "POST",
      headers: { "X-A": "1" },
      body: "grüße",
    });
    assert.equal(answer.status, 201);
    assert.equal(answer.headers.get("x-host"), `127.0.0.1:${port}`);
    assert.equal(await answer.text(), "POST 1 grüße");
  });

  test("private addresses are rejected in any notation", async () => {
    let asked = 0;
    const port = await serve((_request, response) => {
      asked += 1;
      response.end();
    });
    const guarded = createEgress();
    for (const host of [
      "127.0.0.1",
      "2130706433",
      "0x7f.1",
      "017700000001",
      "127.1",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "localhost",
      "0",
    ]) {
      await failsAs(guarded(`http://${host}:${port}/`), "address_not_allowed");
    }
    assert.equal(asked, 0);
  });

  test("one private address among public ones rejects the request", async () => {
    const guarded = createEgress({
      resolve: async () => [
        { address: "93.184.216.34", family: 4 },
        { address: "10.0.0.1", family: 4 },
      ],
    });
    await failsAs(guarded("http://mixed.example/"), "address_not_allowed");
  });

  test("a request uses the checked address even if the name resolves to another one afterwards", async () => {
    const port = await serve((_request, response) => response.end("first"));
    let asked = 0;
    const guarded = open({
      allowedNetworks: ["127.0.0.1/32"],
      resolve: async () => {
        asked += 1;
        return [{ address: asked === 1 ? "127.0.0.1" : "127.0.0.2", family: 4 }];
      },
    });
    const url = `http://rebind.example:${port}/`;
    assert.equal(await (await guarded(url)).text(), "first");
    assert.equal(asked, 1);
    await failsAs(guarded(url), "address_not_allowed");
  });

  test("redirects are returned and not followed", async () => {
    let asked = 0;
    const port = await serve((_request, response) => {
      asked += 1;
      response.writeHead(302, { Location: "http://169.254.169.254/latest/meta-data" }).end();
    });
    const answer = await open()(`http://127.0.0.1:${port}/`);
    assert.equal(answer.status, 302);
    assert.equal(asked, 1);
  });

  test("other schemes, credentials in URLs and unknown names are rejected", async () => {
    const guarded = open({ resolve: async () => [] });
    for (const url of ["file:///etc/passwd", "ftp://a/", "data:,x", "no url", "http://u:p@a/"]) {
      await failsAs(guarded(url), "url_not_allowed");
    }
    await failsAs(guarded("http://nowhere.example/"), "unresolvable");
    const throwing = open({
      resolve: async () => {
        throw new Error("ENOTFOUND");
      },
    });
    await failsAs(throwing("http://nowhere.example/"), "unresolvable");
  });

  test("a response of the maximum size is accepted, one byte more is rejected", async () => {
    const port = await serve((request, response) =>
      response.end("x".repeat(Number(request.url!.slice(1)))),
    );
    const guarded = open({ answerBytesMax: 1_000 });
    assert.equal((await (await guarded(`http://127.0.0.1:${port}/1000`)).text()).length, 1_000);
    await failsAs(guarded(`http://127.0.0.1:${port}/1001`), "answer_too_large");
  });

  test("a compressed response is rejected", async () => {
    const port = await serve((request, response) => {
      assert.equal(request.headers["accept-encoding"], "identity");
      response.writeHead(200, { "Content-Encoding": "gzip" }).end(gzipSync("x".repeat(100_000)));
    });
    await failsAs(open()(`http://127.0.0.1:${port}/`), "answer_encoded");
  });

  test("the timeout covers resolution, waiting and slow bodies", async () => {
    const port = await serve((request, response) => {
      if (request.url === "/silent") return;
      response.write("x");
      const timer = setInterval(() => response.write("x"), 20);
      response.once("close", () => clearInterval(timer));
    });
    const guarded = open({ timeoutMs: 150 });
    await failsAs(guarded(`http://127.0.0.1:${port}/silent`), "timeout");
    await failsAs(guarded(`http://127.0.0.1:${port}/trickle`), "timeout");
    await failsAs(
      open({ timeoutMs: 50, resolve: () => new Promise(() => {}) })("http://a.example/"),
      "timeout",
    );
  });

  test("the caller's signal aborts a request, and a closed port is unreachable", async () => {
    const port = await serve(() => {});
    const abort = new AbortController();
    const call = open()(`http://127.0.0.1:${port}/`, { signal: abort.signal });
    abort.abort();
    await failsAs(call, "aborted");
    await failsAs(open()("http://127.0.0.1:1/"), "unreachable");
  });

  test("requests beyond the limit fail immediately, until others have ended", async () => {
    const waiting: (() => void)[] = [];
    const port = await serve((_request, response) => waiting.push(() => response.end("ok")));
    const guarded = open({ callsMax: 2 });
    const url = `http://127.0.0.1:${port}/`;
    const calls = [guarded(url), guarded(url)];
    await failsAs(guarded(url), "busy");
    while (waiting.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    for (const answer of waiting.splice(0)) answer();
    await Promise.all(calls);
    const again = guarded(url);
    while (waiting.length < 1) await new Promise((resolve) => setTimeout(resolve, 5));
    waiting[0]!();
    assert.equal((await again).status, 200);
  });
});

test("a guarded agent keeps connections to allowed hosts and opens none to others", async () => {
  let connections = 0;
  const port = await serve((_request, answer) => answer.end("hello"));
  servers.at(-1)!.on("connection", () => connections++);
  const names: Record<string, string> = {
    "inside.example": "127.0.0.1",
    "other.example": "10.0.0.1",
  };
  const resolve = (host: string) => Promise.resolve([{ address: names[host]!, family: 4 }]);
  const guard = createEgressGuard({ allowedNetworks: ["127.0.0.1"], resolve });
  const agent = new Agent({ keepAlive: true, lookup: guard.lookup });
  const fetchText = (host: string) =>
    new Promise<string>((settle, fail) => {
      get({ host, port, agent }, (answer) => {
        answer.setEncoding("utf8").on("data", settle).on("error", fail);
      }).on("error", fail);
    });
  assert.equal(await fetchText("inside.example"), "hello");
  assert.equal(await fetchText("inside.example"), "hello");
  assert.equal(connections, 1);
  await failsAs(fetchText("other.example"), "address_not_allowed");
  guard.checkHost("inside.example");
  guard.checkHost("127.0.0.1");
  for (const host of ["127.0.0.2", "[::1]", "169.254.169.254"]) {
    assert.throws(() => guard.checkHost(host), EgressError);
  }
  agent.destroy();
});
