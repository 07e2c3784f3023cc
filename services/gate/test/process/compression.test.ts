// Compression of upstream responses at the real gateway.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { test, type TestContext } from "node:test";
import { brotliDecompressSync, createGunzip, gunzipSync, zstdDecompressSync } from "node:zlib";
import { runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";

const TEXT = "The quick brown fox jumps over the lazy dog. ".repeat(200);
const BIG = Buffer.alloc(8_000_000, TEXT);
const DECODERS: Record<string, (bytes: Buffer) => Buffer> = {
  br: (bytes) => brotliDecompressSync(bytes),
  zstd: (bytes) => zstdDecompressSync(bytes),
  gzip: (bytes) => gunzipSync(bytes),
};

interface Answer {
  status: number;
  headers: IncomingMessage["headers"];
  body: Buffer;
}

function ask(port: number, path: string, accept?: string, more: object = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = accept === undefined ? {} : { "Accept-Encoding": accept };
    const options = { host: "127.0.0.1", port, path, headers, agent: false, ...more };
    const sent = request(options, (answer) => {
      const pieces: Buffer[] = [];
      answer.on("data", (piece: Buffer) => pieces.push(piece)).on("error", reject);
      answer.on("end", () => {
        const { statusCode: status = 0, headers: fields } = answer;
        resolve({ status, headers: fields, body: Buffer.concat(pieces) });
      });
    });
    sent.on("error", reject).end();
  });
}

/** Open streams of events. */
const streams: ServerResponse[] = [];

/** Responses by path; the rest is added by {@link startUpstream}. */
const responses: Record<string, (response: ServerResponse, request: IncomingMessage) => void> = {
  "/text": (response) => {
    response.setHeader("Content-Type", "text/plain; charset=utf-8").setHeader("ETag", '"one"');
    response.setHeader("Accept-Ranges", "bytes").setHeader("Content-Length", TEXT.length);
    response.end(TEXT);
  },
  "/big": (response) => void response.setHeader("Content-Type", "application/json").end(BIG),
  "/pieces": (response) => {
    response.setHeader("Content-Type", "text/html").setHeader("Vary", "Cookie");
    for (let at = 0; at < TEXT.length; at += 1_000) response.write(TEXT.slice(at, at + 1_000));
    response.end();
  },
  "/small": (response) => {
    response.setHeader("Content-Type", "text/plain").setHeader("Content-Length", 5).end("small");
  },
  "/image": (response) => void response.setHeader("Content-Type", "image/png").end(TEXT),
  "/coded": (response) => {
    response.setHeader("Content-Type", "text/plain").setHeader("Content-Encoding", "x-own");
    response.end(TEXT);
  },
  "/part": (response) => {
    response.writeHead(206, { "Content-Type": "text/plain", "Content-Range": "bytes 0-8999/9999" });
    response.end(TEXT);
  },
  "/kept": (response) => {
    response.setHeader("Content-Type", "text/plain");
    response.setHeader("Cache-Control", "public, no-transform").end(TEXT);
  },
  "/error": (response) => {
    response.writeHead(500, { "Content-Type": "application/problem+json" }).end(TEXT);
  },
  "/empty": (response) => void response.setHeader("Content-Type", "text/plain").end(),
  "/events": (response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" }).flushHeaders();
    streams.push(response);
  },
  "/breaks": (response) => {
    response.writeHead(200, { "Content-Type": "text/plain", "Content-Length": 1_000_000 });
    response.write(TEXT, () => setTimeout(() => response.destroy(), 50));
  },
};

responses["/stored/text"] = responses["/text"]!;
responses["/unchanged/text"] = (response, incoming) => {
  if (incoming.headers["if-none-match"] === undefined) responses["/text"]!(response, incoming);
  else response.writeHead(304, { ETag: '"one"' }).end();
};
responses["/unchanged/image"] = (response) => {
  response.writeHead(304, { ETag: '"one"', "Content-Type": "image/png" }).end();
};

async function startUpstream(context: TestContext): Promise<string> {
  const server = createServer((incoming, response) => {
    const respond = responses[incoming.url ?? ""];
    if (respond === undefined) response.writeHead(404).end();
    else respond(response, incoming);
  });
  return await serve(context, server);
}

for (const runtime of runtimesOfRules) {
  test(`compression (${runtime.name})`, async (context) => {
    const target = await startUpstream(context);
    const routes = [
      { prefix: "/", target, compress: true },
      { prefix: "/stored", target, compress: true, cache_ttl_seconds: 60 },
    ];
    const config = { workers: 1, routes };
    const { port, url } = await startGate(context, { runtime, config });

    await context.test("a 304 has the validator and the Vary of the 200", async () => {
      const full = await ask(port, "/unchanged/text", "gzip");
      assert.deepEqual([full.headers.etag, full.headers.vary], ['W/"one"', "Accept-Encoding"]);
      const again = async (path: string, tag: string, accept?: string) => {
        const headers = { "If-None-Match": tag, ...(accept && { "Accept-Encoding": accept }) };
        const { status, headers: fields } = await ask(port, path, undefined, { headers });
        return [status, fields.etag, fields.vary];
      };
      assert.deepEqual(await again("/unchanged/text", 'W/"one"', "gzip"), [
        304,
        'W/"one"',
        "Accept-Encoding",
      ]);
      assert.deepEqual(await again("/unchanged/text", "*", "br"), [
        304,
        'W/"one"',
        "Accept-Encoding",
      ]);
      // Without compression, the 200 has the upstream's own tag.
      assert.deepEqual(await again("/unchanged/text", '"one"', "gzip"), [
        304,
        '"one"',
        "Accept-Encoding",
      ]);
      assert.deepEqual(await again("/unchanged/text", '"one"'), [304, '"one"', "Accept-Encoding"]);
      assert.deepEqual(await again("/unchanged/image", '"one"', "gzip"), [304, '"one"', undefined]);
    });

    await context.test("stored responses are compressed, one variant for each coding", async () => {
      const seen: (string | undefined)[][] = [];
      for (const accept of ["gzip", "gzip", undefined, undefined, "br", "gzip"]) {
        const { headers, body } = await ask(port, "/stored/text", accept);
        const coding = headers["content-encoding"];
        assert.equal((DECODERS[coding ?? ""]?.(body) ?? body).toString("latin1"), TEXT);
        assert.match(headers.vary ?? "", /accept-encoding/i);
        seen.push([headers["x-cache"] as string, coding]);
      }
      assert.deepEqual(seen, [
        ["MISS", "gzip"],
        ["HIT", "gzip"],
        ["MISS", undefined],
        ["HIT", undefined],
        ["MISS", "br"],
        ["HIT", "gzip"],
      ]);
    });

    await context.test("responses get the coding that the client prefers", async () => {
      const cases: [accept: string, coding: string][] = [
        ["gzip, deflate, br, zstd", "br"],
        ["gzip;q=0.5, zstd", "zstd"],
        ["gzip", "gzip"],
        ["br;q=0, *", "zstd"],
      ];
      for (const [accept, coding] of cases) {
        for (const path of ["/text", "/pieces", "/big", "/error"]) {
          const { headers, body } = await ask(port, path, accept);
          assert.equal(headers["content-encoding"], coding, `${path} ${accept}`);
          assert.match(String(headers["vary"]), /(^|, )Accept-Encoding$/);
          const expected = path === "/big" ? BIG : Buffer.from(TEXT);
          assert.ok(DECODERS[coding]!(body).equals(expected), `${path} ${accept}`);
          assert.ok(body.length < expected.length / 5);
        }
      }
      const { headers } = await ask(port, "/text", "gzip");
      assert.equal(headers["etag"], 'W/"one"');
      assert.equal(headers["accept-ranges"], undefined);
      const head = await ask(port, "/text", "gzip", { method: "HEAD" });
      assert.deepEqual(
        [head.headers["content-encoding"], head.headers["etag"], head.headers["content-length"]],
        ["gzip", 'W/"one"', undefined],
      );
      const empty = await ask(port, "/empty", "gzip");
      assert.equal(empty.body.length === 0 || gunzipSync(empty.body).length === 0, true);
    });

    await context.test("responses that must not change pass unchanged", async () => {
      for (const path of ["/small", "/image", "/coded", "/part", "/kept"]) {
        const { headers, body } = await ask(port, path, "gzip, br");
        assert.ok([undefined, "x-own"].includes(headers["content-encoding"]), path);
        assert.equal(body.toString(), path === "/small" ? "small" : TEXT, path);
      }
      for (const accept of [undefined, "identity", "gzip;q=0", "deflate"]) {
        const { headers, body } = await ask(port, "/text", accept);
        assert.equal(headers["content-encoding"], undefined);
        assert.equal(headers["content-length"], String(TEXT.length));
        assert.equal(headers["etag"], '"one"');
        assert.equal(headers["vary"], "Accept-Encoding");
        assert.equal(body.toString(), TEXT);
      }
      const kept = await ask(port, "/text", undefined, {
        headers: { "Accept-Encoding": "gzip", "Cache-Control": "no-transform" },
      });
      assert.equal(kept.headers["content-encoding"], undefined);
    });

    await context.test("each event of a stream arrives when it is sent", async (each) => {
      const sent = request({
        host: "127.0.0.1",
        port,
        path: "/events",
        headers: { "Accept-Encoding": "gzip" },
        agent: false,
      });
      sent.end();
      // The head arrives before the first event.
      const [answer] = (await once(sent, "response")) as [IncomingMessage];
      each.after(() => sent.destroy());
      assert.equal(answer.headers["content-encoding"], "gzip");
      const decoder = answer.pipe(createGunzip());
      decoder.on("error", () => undefined);
      for (let round = 0; round < 5; round++) {
        const received = once(decoder, "data");
        streams.at(-1)!.write(`data: ${round}\n\n`);
        const [piece] = (await received) as [Buffer];
        assert.equal(piece.toString(), `data: ${round}\n\n`);
      }
    });

    await context.test(
      "a compressed response that the upstream breaks off does not look complete",
      async () => {
        await assert.rejects(ask(port, "/breaks", "gzip"));
        assert.equal((await ask(port, "/text", "gzip")).status, 200);
      },
    );

    await context.test("clients that leave give the memory back", async () => {
      for (let round = 0; round < 200; round += 20) {
        await Promise.all(
          Array.from({ length: 20 }, async () => {
            const socket = connect(port, "127.0.0.1").on("error", () => undefined);
            socket.write("GET /big HTTP/1.1\r\nHost: a\r\nAccept-Encoding: br\r\n\r\n");
            await new Promise((resolve) => {
              socket.once("data", resolve).once("close", resolve);
            });
            socket.destroy();
          }),
        );
      }
      // 64 responses exhaust the memory: 200 that kept theirs would leave none.
      let coding: string | undefined;
      const deadline = performance.now() + 60_000;
      while (coding !== "br" && performance.now() < deadline) {
        coding = (await ask(port, "/text", "br")).headers["content-encoding"];
      }
      assert.equal(coding, "br");
      assert.match(
        await (await fetch(`${url}/metrics`)).text(),
        /^platform_gate_compression_skipped_total \d+/m,
      );
    });
  });
}
