// The client against servers that fail, hang and lie.
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { createEgressGuard } from "@platform/kernel/egress";
import { createManualClock } from "@platform/kernel/time";
import { S3Client, S3ClientError, uploadObject, type S3ClientErrorCode } from "../../src/index.ts";
import { errorDocument, startLyingServer, type Answer } from "./lying-server.ts";

const failsWith = (code: S3ClientErrorCode, serverCode?: string) => (error: unknown) => {
  assert.ok(error instanceof S3ClientError, String(error));
  assert.equal(error.code, code, error.message);
  if (serverCode !== undefined) assert.equal(error.serverCode, serverCode);
  assert.ok(!error.message.includes("secret"), error.message);
  return true;
};

const end = (status: number, body = "", headers: Record<string, string> = {}): Answer => {
  return (response) => response.writeHead(status, headers).end(body);
};
const range = (text: string, body: string): Answer => end(206, body, { "content-range": text });

const READS: [name: string, answer: Answer, code: S3ClientErrorCode][] = [
  ["ignores the range", end(200, "x".repeat(1_000_000)), "malformed_answer"],
  ["sends an error with status 200", end(200, errorDocument("SlowDown")), "slow_down"],
  ["sends another range", range("bytes 5-14/100", "0123456789"), "malformed_answer"],
  ["has a shorter object", range("bytes 0-4/5", "01234"), "range_not_satisfiable"],
  ["sends a shorter range", range("bytes 0-4/100", "01234"), "malformed_answer"],
  ["sends fewer bytes than it says", range("bytes 0-9/100", "01234"), "truncated"],
  ["sends more bytes than it says", range("bytes 0-9/100", "0123456789a"), "malformed_answer"],
  [
    "breaks off",
    (response) => {
      response.writeHead(206, { "content-range": "bytes 0-9/100", "content-length": "10" });
      response.write("0123");
      setImmediate(() => response.destroy());
    },
    "truncated",
  ],
  [
    "compresses",
    end(206, "0123456789", { "content-range": "bytes 0-9/100", "content-encoding": "gzip" }),
    "malformed_answer",
  ],
  ["redirects", end(307, "", { location: "http://127.0.0.1:1/" }), "redirected"],
  ["is throttled", end(503, errorDocument("SlowDown")), "slow_down"],
  ["fails", end(500, "<html>"), "unavailable"],
  ["refuses", end(403, errorDocument("AccessDenied")), "access_denied"],
  ["has another clock", end(403, errorDocument("RequestTimeTooSkewed")), "clock_skew"],
  ["has no bucket", end(404, errorDocument("NoSuchBucket")), "no_such_bucket"],
  ["has no object", end(404, errorDocument("NoSuchKey")), "not_found"],
  ["sends an endless error", end(400, "<".repeat(1_000_000)), "refused"],
];

for (const [name, answer, code] of READS) {
  test(`a read from a store that ${name} fails as ${code}`, async (t) => {
    const { client } = await startLyingServer(t, answer);
    await assert.rejects(client.getRange("a", 0, 10), failsWith(code));
  });
}

test("a silent store times out, and one that dribbles does as well", async (t) => {
  const silent = await startLyingServer(t, () => undefined, { stallMs: 50 });
  await assert.rejects(silent.client.getRange("a", 0, 10), failsWith("timeout"));
  const slow = await startLyingServer(
    t,
    (response) => {
      response.writeHead(206, { "content-range": "bytes 0-999/1000", "content-length": "1000" });
      const timer = setInterval(() => response.write("x"), 10);
      response.on("close", () => clearInterval(timer));
    },
    { stallMs: 1_000, attemptMs: 200 },
  );
  await assert.rejects(slow.client.getRange("a", 0, 1_000), failsWith("timeout"));
});

test("success without its document, or with an error in it, is no success", async (t) => {
  const { client } = await startLyingServer(t, end(200, errorDocument("InternalError")));
  await assert.rejects(
    client.put("a", Buffer.from("x")),
    failsWith("unavailable", "InternalError"),
  );
  await assert.rejects(client.delete("a"), failsWith("unavailable"));
  await assert.rejects(client.list(""), failsWith("unavailable"));
  await assert.rejects(client.completeUpload("a", "u", ["e"]), failsWith("unavailable"));
  const { client: other } = await startLyingServer(t, end(200, "<html><body>hi</body></html>"));
  await assert.rejects(other.put("a", Buffer.from("x")), failsWith("malformed_answer"));
  await assert.rejects(other.list(""), failsWith("malformed_answer"));
  await assert.rejects(other.createUpload("a"), failsWith("malformed_answer"));
});

test("an object counts as missing only if the store names it, never if the bucket is gone", async (t) => {
  const missing: Answer = (response, request) =>
    response.writeHead(404).end(request.method === "HEAD" ? "" : errorDocument("NoSuchKey"));
  const gone: Answer = (response, request) =>
    response.writeHead(404).end(request.method === "HEAD" ? "" : errorDocument("NoSuchBucket"));
  const { client } = await startLyingServer(t, missing);
  assert.equal(await client.head("a"), undefined);
  await client.delete("a");
  const { client: other } = await startLyingServer(t, gone);
  await assert.rejects(other.head("a"), failsWith("no_such_bucket"));
  await assert.rejects(other.delete("a"), failsWith("no_such_bucket"));
  const { client: blank } = await startLyingServer(t, end(404));
  await assert.rejects(blank.head("a"), failsWith("not_found"));
  await assert.rejects(blank.delete("a"), failsWith("not_found"));
});

test("transient failures are tried again, others are not", async (t) => {
  const { client, requests } = await startLyingServer(
    t,
    (response, _request, _body, count) => {
      if (count < 3) response.writeHead(503, { "retry-after": "0" }).end(errorDocument("SlowDown"));
      else response.end();
    },
    { attemptsMax: 4 },
  );
  await client.put("a", Buffer.from("x"));
  assert.equal(requests.length, 3);
  const refusing = await startLyingServer(t, end(403), { attemptsMax: 4 });
  await assert.rejects(refusing.client.put("a", Buffer.from("x")), failsWith("access_denied"));
  assert.equal(refusing.requests.length, 1);
});

test("a circuit opens after failures in a row, lets one trial through, and closes with its success", async (t) => {
  const clock = createManualClock(Date.now());
  let isBroken = true;
  const { client, requests } = await startLyingServer(
    t,
    (response) => response.writeHead(isBroken ? 500 : 200).end(),
    { clock },
  );
  const put = () => client.put("a", Buffer.from("x"));
  for (let count = 0; count < 8; count += 1) await assert.rejects(put(), failsWith("unavailable"));
  await assert.rejects(put(), failsWith("circuit_open"));
  assert.equal(requests.length, 8);
  clock.advance(1_000);
  await assert.rejects(put(), failsWith("unavailable"));
  clock.advance(1_500);
  await assert.rejects(put(), failsWith("circuit_open"));
  isBroken = false;
  clock.advance(500);
  await put();
  await put();
  assert.equal(requests.length, 11);
});

test("requests beyond the bound fail at once, and connections are kept and shared", async (t) => {
  const { client, sockets } = await startLyingServer(
    t,
    (response) => setTimeout(() => response.end(), 20),
    { requestsMax: 6, socketsMax: 2 },
  );
  const results = await Promise.allSettled(
    Array.from({ length: 8 }, () => client.put("a", Buffer.from("x"))),
  );
  const failed = results.filter((result) => result.status === "rejected");
  assert.equal(failed.length, 2);
  for (const { reason } of failed) failsWith("busy")(reason);
  await client.put("a", Buffer.from("x"));
  assert.equal(sockets(), 2);
});

test("a connection that the store closed while it was idle is replaced without a failed attempt", async (t) => {
  const { client, requests } = await startLyingServer(t, (response) => {
    response.end();
    const { socket } = response;
    setTimeout(() => socket?.destroy(), 5);
  });
  for (let count = 0; count < 20; count += 1) await client.put("a", Buffer.from("x"));
  assert.ok(requests.length >= 20);
});

test("close aborts what is in flight", async (t) => {
  const { client } = await startLyingServer(t, () => undefined);
  const waiting = client.getRange("a", 0, 10);
  setTimeout(() => client.close(), 20);
  await assert.rejects(waiting, failsWith("aborted"));
});

test("the egress guard forbids private addresses, literal and resolved, and names no credentials", async (t) => {
  const guard = createEgressGuard({
    resolve: () => Promise.resolve([{ address: "10.1.2.3", family: 4 }]),
  });
  const { client, requests } = await startLyingServer(t, end(200), { guard });
  await assert.rejects(client.put("a", Buffer.from("x")), failsWith("address_not_allowed"));
  const named = new S3Client({
    endpoint: new URL("http://store.example:9000"),
    region: "us-east-1",
    bucket: "b",
    credentials: () => ({ accessKey: "k", secretKey: "s" }),
    guard,
  });
  t.after(() => named.close());
  await assert.rejects(named.put("a", Buffer.from("x")), failsWith("address_not_allowed"));
  const open = createEgressGuard({ allowedNetworks: ["127.0.0.0/8"] });
  const allowed = await startLyingServer(t, end(200), { guard: open });
  await allowed.client.put("a", Buffer.from("x"));
  assert.deepEqual([requests.length, allowed.requests.length], [0, 1]);
});

test("a failed part discards the upload, and a lost completion is confirmed by the object", async (t) => {
  const answerWith = (onPart: Answer, onComplete: Answer): Answer => {
    return (response, request, body, count) => {
      const url = request.url ?? "";
      if (url.endsWith("?uploads=")) {
        response.end(
          "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>",
        );
      } else if (request.method === "HEAD") {
        response.writeHead(200, { "content-length": String(9 * 1024 * 1024) }).end();
      } else if (url.includes("partNumber")) onPart(response, request, body, count);
      else if (request.method === "POST") onComplete(response, request, body, count);
      else response.writeHead(204).end();
    };
  };
  const source = {
    bytes: 9 * 1024 * 1024,
    read: (_position: number, length: number) => Promise.resolve(Buffer.alloc(length)),
  };
  const part = end(200, "", { etag: '"e"' });
  const failing = await startLyingServer(t, answerWith(end(403), end(500)));
  await assert.rejects(uploadObject(failing.client, "k", source), failsWith("access_denied"));
  assert.ok(failing.requests.includes("DELETE /cold/k?uploadId=u1"));
  const lost = await startLyingServer(t, answerWith(part, end(404, errorDocument("NoSuchUpload"))));
  await uploadObject(lost.client, "k", source);
  const broken = { ...source, read: () => Promise.reject(new Error("a damaged batch")) };
  await assert.rejects(uploadObject(lost.client, "k", broken), /a damaged batch/);
});

test("listings follow their pages, decode keys, and refuse pages that contradict the request", async (t) => {
  const page = (keys: string[], next?: string) =>
    `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><EncodingType>url</EncodingType>${keys
      .map(
        (key) =>
          `<Contents><Key>${key}</Key><Size>3</Size><LastModified>2026-01-02T03:04:05.000Z</LastModified></Contents>`,
      )
      .join(
        "",
      )}<IsTruncated>${next !== undefined}</IsTruncated>${next === undefined ? "" : `<NextContinuationToken>${next}</NextContinuationToken>`}</ListBucketResult>`;
  const { client, requests } = await startLyingServer(t, (response, request) => {
    const isFirst = !(request.url ?? "").includes("continuation-token");
    response.end(isFirst ? page(["p/a%2Bb", "p/c+d"], "n&amp;1") : page(["p/e"]));
  });
  const found: string[] = [];
  for await (const { key } of client.listAll("p/")) found.push(key);
  assert.deepEqual(found, ["p/a+b", "p/c d", "p/e"]);
  assert.ok(requests[1]!.includes("continuation-token=n%261"));
  const foreign = await startLyingServer(t, end(200, page(["q/a"])));
  await assert.rejects(foreign.client.list("p/"), failsWith("malformed_answer"));
  const endless = await startLyingServer(t, end(200, page(["p/a"], "same")));
  const walk = async () => {
    for await (const each of endless.client.listAll("p/")) assert.ok(each);
  };
  await assert.rejects(walk(), failsWith("malformed_answer"));
  const deep = await startLyingServer(t, end(200, "<a>".repeat(10_000)));
  await assert.rejects(deep.client.list(""), failsWith("malformed_answer"));
});

test("a port that nobody listens on is unreachable, and an endpoint with a path is refused", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  const options = {
    region: "us-east-1",
    bucket: "b",
    credentials: () => ({ accessKey: "k", secretKey: "s" }),
    attemptsMax: 1,
  };
  const client = new S3Client({ ...options, endpoint: new URL(`http://127.0.0.1:${port}`) });
  await assert.rejects(client.put("a", Buffer.from("x")), failsWith("unreachable"));
  client.close();
  for (const text of ["http://h/path", "ftp://h", "http://u:p@h", "http://h/?a=b"]) {
    assert.throws(() => new S3Client({ ...options, endpoint: new URL(text) }), TypeError);
  }
});
