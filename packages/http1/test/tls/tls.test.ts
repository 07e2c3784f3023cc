// TLS on both sides: names, hot replacement, client certificates, bad peers, on each runtime.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type AddressInfo, connect as connectTcp } from "node:net";
import { type ConnectionOptions, type TLSSocket, connect, createServer } from "node:tls";

import { opensslSkip } from "@platform/testing/certificates";
import { type Authority, createAuthority } from "../rig/certificates.ts";
import { runtimes, startProxy } from "../rig/proxy.ts";
import { ask, RawClient, startUpstream } from "../rig/raw.ts";

const CLOSE = "Host: a\r\nConnection: close\r\n\r\n";

for (const runtime of runtimes) {
  describe(`TLS on ${runtime}`, { skip: opensslSkip }, () => {
    let authority: Authority;
    let ca: string;
    let fallback: [string, string];
    let named: [string, string];
    let wild: [string, string];
    before(() => {
      authority = createAuthority();
      ca = authority.read(authority.ca);
      fallback = authority.issue("fallback.test");
      named = authority.issue("named.test");
      wild = authority.issue("*.wild.test");
    });
    after(() => {
      authority.remove();
    });

    async function open(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
      const socket = connect({ host: "127.0.0.1", port, ca, ...options });
      await new Promise<void>((resolve, reject) => {
        socket.once("secureConnect", resolve);
        socket.once("error", reject);
        socket.once("close", () => {
          reject(new Error("closed during the handshake"));
        });
      });
      socket.on("error", () => {});
      return socket;
    }

    async function get(socket: TLSSocket, path: string): Promise<string> {
      const client = new RawClient(socket);
      socket.write(`GET ${path} HTTP/1.1\r\n${CLOSE}`);
      await client.untilClosed();
      socket.destroy();
      return client.text;
    }

    test("each name gets its certificate, wildcards cover one label, others get the fallback", async () => {
      const proxy = await startProxy(runtime, {
        tls: { fallback, names: { "named.test": named, "*.wild.test": wild } },
      });
      try {
        for (const [servername, expected] of [
          ["named.test", "named.test"],
          ["NAMED.test", "named.test"],
          ["a.wild.test", "*.wild.test"],
          ["b.a.wild.test", "fallback.test"],
          ["other.test", "fallback.test"],
        ] as const) {
          const socket = await open(proxy.port, {
            servername,
            checkServerIdentity: () => undefined,
          });
          assert.equal(socket.getPeerCertificate().subject.CN, expected, servername);
          const answer = await get(socket, "/who");
          assert.match(
            answer,
            new RegExp(`"secure":true.*"serverName":"${servername.toLowerCase()}"`),
          );
        }
        const nameless = await open(proxy.port, { checkServerIdentity: () => undefined });
        assert.equal(nameless.getPeerCertificate().subject.CN, "fallback.test");
        nameless.destroy();
      } finally {
        await proxy.stop();
      }
    });

    test("certificates are replaced without affecting open connections", async () => {
      const proxy = await startProxy(runtime, {
        tls: { fallback, names: { "named.test": named } },
      });
      try {
        const socket = await open(proxy.port, { servername: "named.test" });
        const client = new RawClient(socket);
        socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        await client.untilText("in place 1");
        await proxy.send({ tls: { fallback: named, names: { "named.test": wild } } });
        const fresh = await open(proxy.port, {
          servername: "named.test",
          checkServerIdentity: () => undefined,
        });
        assert.equal(fresh.getPeerCertificate().subject.CN, "*.wild.test");
        fresh.destroy();
        const nameless = await open(proxy.port, { checkServerIdentity: () => undefined });
        assert.equal(nameless.getPeerCertificate().subject.CN, "named.test");
        nameless.destroy();
        socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        await client.untilText("in place 2");
        socket.destroy();
      } finally {
        await proxy.stop();
      }
    });

    test("a drain waits for handshakes that have begun and answers the request that follows", async () => {
      const proxy = await startProxy(runtime, { tls: { fallback } });
      try {
        const raw = connectTcp(proxy.port, "127.0.0.1");
        const silent = new RawClient(connectTcp(proxy.port, "127.0.0.1"));
        const idle = await open(proxy.port, { servername: "fallback.test" });
        const answered = new RawClient(idle);
        idle.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        await answered.untilText("in place 1");
        const drained = proxy.send({ drainMs: 60_000 });
        await answered.untilClosed();
        idle.destroy();
        const late = await open(proxy.port, { socket: raw, servername: "fallback.test" });
        assert.match(await get(late, "/"), /^HTTP\/1\.1 200 [^]*Connection: close/);
        await silent.untilClosed();
        await drained;
      } finally {
        await proxy.stop();
      }
    });

    test("client certificates are required and their identity is available", async () => {
      const [cert, key] = authority.issue("client.test").map((file) => authority.read(file));
      const proxy = await startProxy(runtime, { tls: { fallback, clientCa: authority.ca } });
      try {
        const trusted = await open(proxy.port, {
          cert: cert!,
          key: key!,
          checkServerIdentity: () => undefined,
        });
        assert.match(await get(trusted, "/who"), /"clientCertificate":"client.test"/);
        const anonymous = await open(proxy.port, { checkServerIdentity: () => undefined }).then(
          (socket) => get(socket, "/who"),
          () => "",
        );
        assert.equal(anonymous, "");
      } finally {
        await proxy.stop();
      }
    });

    test("if client certificates are optional, an unsigned one yields no identity", async () => {
      const proxy = await startProxy(runtime, {
        tls: { fallback, clientCa: authority.ca, clientMode: "request" },
      });
      const foreign = createAuthority();
      try {
        const [cert, key] = foreign.issue("client.test").map((file) => foreign.read(file));
        for (const options of [{}, { cert: cert!, key: key! }]) {
          const socket = await open(proxy.port, {
            ...options,
            checkServerIdentity: () => undefined,
          });
          assert.match(await get(socket, "/who"), /"clientCertificate":null/);
        }
      } finally {
        foreign.remove();
        await proxy.stop();
      }
    });

    test("plain bytes on a TLS port are harmless, and large responses arrive complete", async () => {
      const proxy = await startProxy(runtime, { tls: { fallback } });
      const size = 3_000_000;
      const up = await startUpstream((client) => {
        client.socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`);
        client.socket.write(Buffer.alloc(size, "0123456789"));
      });
      try {
        const plain = new RawClient(connectTcp(proxy.port, "127.0.0.1"));
        plain.socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        await plain.untilClosed();
        plain.socket.destroy();
        const socket = await open(proxy.port, { checkServerIdentity: () => undefined });
        const answer = await get(socket, `/u/${up.port}/`);
        const content = answer.slice(answer.indexOf("\r\n\r\n") + 4);
        assert.equal(content.length, size);
        assert.ok(content === "0123456789".repeat(size / 10));
      } finally {
        await up.stop();
        await proxy.stop();
      }
    });

    test("TLS upstreams are verified by name, root and client certificate; others are refused", async () => {
      const [serverCert, serverKey] = named.map((file) => authority.read(file));
      const [cert, key] = authority.issue("gate.test").map((file) => authority.read(file));
      const names: string[] = [];
      const upstream = createServer(
        { cert: serverCert!, key: serverKey!, ca, requestCert: true, rejectUnauthorized: true },
        (socket) => {
          socket.on("error", () => {});
          socket.on("data", () => {
            names.push(
              `${String((socket as TLSSocket & { servername: unknown }).servername)} ${String(socket.getPeerCertificate().subject.CN)}`,
            );
            socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n${"y".repeat(200_000)}`);
          });
        },
      );
      upstream.on("tlsClientError", () => {});
      await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
      const { port } = upstream.address() as AddressInfo;
      const request = `GET /u/${port}/ HTTP/1.1\r\n${CLOSE}`;
      const settings = { serverName: "named.test", ca, cert: cert!, key: key! };
      try {
        for (const [tls, expected, size] of [
          [settings, /^HTTP\/1\.1 200 [^]*\r\n\r\ny/, 200_000],
          [{ ...settings, serverName: "wrong.test" }, /^HTTP\/1\.1 502 [^]*TLS handshake/, 0],
          [{ serverName: "named.test", cert: cert!, key: key! }, /^HTTP\/1\.1 502 /, 0],
          [{ serverName: "named.test", ca }, /^HTTP\/1\.1 502 /, 0],
          [{ ...settings, serverName: "wrong.test", verify: false }, /^HTTP\/1\.1 200 /, 200_000],
        ] as const) {
          const proxy = await startProxy(runtime, { pool: { tls } });
          try {
            const answer = await ask(proxy.port, request);
            assert.match(answer.slice(0, 1_000), expected);
            assert.ok(answer.length > size);
          } finally {
            await proxy.stop();
          }
        }
        assert.deepEqual(names, ["named.test gate.test", "wrong.test gate.test"]);
      } finally {
        upstream.close();
      }
    });
  });
}
