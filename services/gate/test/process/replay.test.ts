// Recording at the real gateway, and `platform-gate replay` of it against candidates.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type RequestListener } from "node:http";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { assemble, writeGuest } from "@platform/testing/guests";
import { waitFor } from "@platform/testing/wait";
import {
  makeFolder,
  type Runtime,
  runtimes,
  runtimesOfRules,
  spawnGate,
  startGate,
} from "../fixture/gate-process.ts";
import { readMetric } from "../fixture/metrics.ts";
import { serve } from "../fixture/serve.ts";

interface Line {
  method: string;
  path: string;
  status: number;
  upstream: string;
  request: Message & { method: string; target: string };
  original?: Pick<Message, "headers"> & Partial<Message> & { method: string; target: string };
  response: Message & { status: number };
}

interface Message {
  headers: [string, string][];
  body: { bytes: number; text?: string; base64?: string; omitted?: string; sha256?: string };
}

async function startServer(context: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  return await serve(context, server);
}

/** A service whose answers depend on path and body only. */
const answerLikeV1: RequestListener = (request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
  request.on("end", () => {
    const url = request.url ?? "";
    if (url.includes("/login")) {
      response.setHeader("Set-Cookie", `session=${Math.random()}; Path=/; HttpOnly`);
      response.setHeader("Content-Type", "application/json");
      response.end(JSON.stringify({ token: String(Math.random()), user: "a" }));
    } else if (url.includes("/large")) response.end("x".repeat(5_000));
    else if (url.includes("/bytes")) response.end(Buffer.of(0x89, 0xff, 0));
    else if (url.includes("/zipped")) {
      response.setHeader("Content-Encoding", "br");
      response.setHeader("Content-Type", "application/json");
      response.end(brotliCompressSync('{"a":1,"refresh_token":"r"}'));
    } else if (url.includes("/hints")) {
      response.writeEarlyHints({ link: "</a.css>; rel=preload", "x-token": "zzzz" });
      response.setHeader("Trailer", "X-Token");
      response.addTrailers({ "X-Token": "zzzz" });
      response.write("first ");
      response.end("second");
    } else if (request.headers["if-none-match"] !== undefined) {
      response.statusCode = 304;
      response.setHeader("Content-Encoding", "gzip");
      response.end();
    } else {
      response.setHeader("Content-Type", "application/json");
      response.statusCode = url.includes("/missing") ? 404 : 200;
      response.end(JSON.stringify({ path: url.split("?")[0], body, at: 1 }));
    }
  });
};

function readLines(folder: string): Line[] {
  const path = join(folder, "recording.jsonl");
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Line);
}

async function startRecording(
  context: TestContext,
  runtime: Runtime,
  route: Record<string, unknown>,
  keys: Record<string, unknown> = {},
) {
  const target = await startServer(context, answerLikeV1);
  const folder = makeFolder(context);
  const gate = await startGate(context, {
    runtime,
    folder,
    config: {
      workers: 2,
      auth_token: "the-operator-token",
      ...keys,
      routes: [{ prefix: "/api", target: `${target}/v1`, strip_prefix: true, ...route }],
    },
  });
  const ask = async (
    path: string,
    init: Omit<RequestInit, "headers"> & { headers?: Record<string, string> } = {},
  ): Promise<Response> => {
    const headers = { Authorization: "Bearer the-operator-token", ...init.headers };
    const answer = await fetch(`${gate.url}${path}`, { ...init, headers });
    await answer.arrayBuffer();
    return answer;
  };
  return { gate, folder, target, ask, path: join(folder, "recording.jsonl") };
}

async function replay(context: TestContext, runtime: Runtime, args: readonly string[]) {
  const { code, stdout, stderr } = await spawnGate(context, {
    runtime,
    args: ["replay", "--shadow", ...args],
  }).ended;
  return { code, stdout, stderr };
}

/** Sets a field, removes one and replaces the body of requests with a long target. */
const CHANGING_GUEST = writeGuest({
  data: { 0: "x-guest", 16: "set", 48: "{\\22new\\22:1}", 80: "x-api" },
  readsBody: true,
  request: `
    (if (i32.lt_u (call $get_uri (i32.const 0) (i32.const 0)) (i32.const 12)) (then (return (i64.const 1))))
    (call $set_header_value (i32.const 0) (i32.const 0) (i32.const 7) (i32.const 16) (i32.const 3))
    (call $remove_header (i32.const 0) (i32.const 80) (i32.const 5))
    (call $write_body (i32.const 0) (i32.const 48) (i32.const 9))
    (i64.const 1)`,
});

for (const runtime of runtimesOfRules) {
  test(`a recording has the request before middleware changed it, for replaying (${runtime.name})`, async (context) => {
    const guest = { middleware: "guest", record: { redact: ["iban"] } };
    const { ask, folder, path, target } = await startRecording(context, runtime, guest);
    const registered = await ask("/api/v1/admin/middleware/guest", {
      method: "POST",
      body: Buffer.from(assemble(CHANGING_GUEST)),
    });
    assert.equal(registered.status, 200);
    await ask("/api/plain", { method: "POST", body: "plain" });
    await ask("/api/changed?iban=DE1", {
      method: "POST",
      body: '{"iban":"DE1","amount":2}',
      headers: { "Content-Type": "application/json", "X-Api": "1" },
    });
    const lines = await waitFor(() => {
      const found = readLines(folder);
      return found.length === 2 && found;
    });
    const [plain, changed] = lines as [Line, Line];
    assert.equal(plain.original, undefined);
    assert.deepEqual(changed.request.body, { bytes: 9, text: '{"new":1}' });
    assert.ok(changed.request.headers.some(([name]) => name.toLowerCase() === "x-guest"));
    const { original } = changed;
    assert.ok(original !== undefined);
    assert.equal(original.method, "POST");
    assert.equal(original.target, "/api/changed?iban=%5Bredacted%5D");
    assert.equal(original.body?.text, '{"iban":"[redacted]","amount":2}');
    const names = original.headers.map(([name]) => name.toLowerCase());
    assert.ok(names.includes("x-api") && !names.includes("x-guest"));
    assert.ok(!names.includes("authorization"), "the operator's token");
    // The middleware gets the original, the candidate what the upstream received.
    writeFileSync(join(folder, "guest.wasm"), assemble(CHANGING_GUEST));
    const { stdout } = await spawnGate(context, {
      runtime,
      args: ["replay", "--log", path, "--middleware", join(folder, "guest.wasm")],
    }).ended;
    assert.match(stdout, /^line 2: POST \/api\/changed\?iban=/m);
    assert.match(stdout, /request \+ x-guest: set\n {2}request body: 9 bytes/);
    assert.match(stdout, /^2 exchanges: 1 unchanged, 1 changed, 0 answered, 0 failed$/m);
    const shadow = await replay(context, runtime, ["--log", path, "--target", target]);
    assert.match(shadow.stdout, /^same: 2, different: 0, failed: 0$/m);
  });

  test(`exchanges with the upstream are recorded without credentials (${runtime.name})`, async (context) => {
    const mirrored: string[] = [];
    const mirror = await startServer(context, (request, response) => {
      let body = "";
      request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
      request.on("end", () => mirrored.push(body) && response.end());
    });
    const record = { max_body_size: 1_000, redact: ["iban"] };
    const route = { record, compress: true, mirror: { target: mirror } };
    const { gate, folder, ask, path, target } = await startRecording(context, runtime, route);
    await ask("/api/a%20b?x=1&access_token=tttt");
    await ask("/api/login", {
      method: "POST",
      headers: { "Content-Type": "application/json", Cookie: "session=oooo", "X-Api-Key": "kkkk" },
      body: JSON.stringify({ user: "ä", password: "pppp", iban: "iiii" }),
    });
    await ask("/api/large", {
      method: "PUT",
      body: new Blob(["y".repeat(900)]).stream(),
      duplex: "half",
    });
    await ask("/api/bytes", { method: "POST", body: "y".repeat(1_001) });
    await ask("/api/zipped");
    await ask("/api/missing", { method: "HEAD" });
    await ask("/api/zipped/head", { method: "HEAD" });
    await ask("/api/cached", { headers: { "If-None-Match": '"1"' } });
    await ask("/api/hints");
    await waitFor(() => readLines(folder).length === 9, "nine lines");
    const raw = readFileSync(path, "utf8");
    // Ids of traces are hexadecimal: no secret may be by chance.
    for (const secret of ["zzzz", "tttt", "pppp", "oooo", "kkkk", "iiii", "the-operator-token"]) {
      assert.ok(!raw.includes(secret), secret);
    }
    // The order of lines of two workers is that of their writes.
    const lines = new Map(readLines(folder).map((line) => [line.path, line]));
    const get = lines.get("/api/a%20b") ?? assert.fail();
    assert.equal(get.request.target, "/v1/a%20b?x=1&access_token=%5Bredacted%5D");
    assert.equal(get.upstream, `${target}/v1`);
    assert.equal(get.response.body.text, '{"path":"/v1/a%20b","body":"","at":1}');
    const login = lines.get("/api/login") ?? assert.fail();
    assert.equal(login.request.method, "POST");
    assert.equal(
      login.request.body.text,
      '{"user":"ä","password":"[redacted]","iban":"[redacted]"}',
    );
    assert.equal(JSON.parse(login.response.body.text ?? "").token, "[redacted]");
    const large = lines.get("/api/large") ?? assert.fail();
    assert.equal(large.request.body.text, "y".repeat(900));
    assert.deepEqual(Object.keys(large.response.body), ["bytes", "omitted", "sha256"]);
    assert.equal(large.response.body.bytes, 5_000);
    const bytes = lines.get("/api/bytes") ?? assert.fail();
    assert.deepEqual(bytes.request.body, { bytes: 1_001, omitted: "too-large" });
    assert.deepEqual(bytes.response.body, { bytes: 3, base64: "if8A" });
    assert.equal(
      lines.get("/api/zipped")?.response.body.text,
      '{"a":1,"refresh_token":"[redacted]"}',
    );
    assert.deepEqual(lines.get("/api/missing")?.response.body, { bytes: 0, text: "" });
    assert.equal(lines.get("/api/missing")?.status, 404);
    const hints = lines.get("/api/hints") ?? assert.fail();
    assert.deepEqual([hints.response.status, hints.response.body.text], [200, "first second"]);
    const again = await replay(context, runtime, [
      "--log",
      path,
      "--target",
      target,
      "--redact",
      "iban",
    ]);
    assert.match(again.stdout, /^same: 8, different: 0, failed: 0$/m, again.stdout);
    assert.match(again.stdout, /^skipped: 1 requests whose body is not recorded$/m);
    assert.equal(again.code, 0);
    await waitFor(
      () => [900, 1_001].every((size) => mirrored.includes("y".repeat(size))),
      "the mirror of the route gets the bodies as well",
    );
    assert.equal(statSync(path).mode & 0o007, 0);
    assert.equal(
      gate.lines().some(({ level }) => level === "error"),
      false,
    );
  });

  test(`a candidate that answers alike passes, others get a report (${runtime.name})`, async (context) => {
    const { folder, ask, path, target } = await startRecording(context, runtime, { record: true });
    await ask("/api/items?page=1");
    await ask("/api/login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: '{"password":"p"}',
    });
    await ask("/api/zipped");
    await ask("/api/bytes");
    await waitFor(() => readLines(folder).length === 4, "four lines");
    const same = await replay(context, runtime, ["--log", path, "--target", target]);
    assert.equal(same.stderr, "");
    assert.match(same.stdout, /^replayed 4 requests of .*\nsame: 4, different: 0, failed: 0\n/);
    assert.equal(same.code, 0);

    const seen: IncomingHttpHeaders[] = [];
    const candidate = await startServer(context, (request, response) => {
      seen.push(request.headers);
      if (request.url?.includes("/items") === true) {
        response.setHeader("X-New", "1");
        response.setHeader("Content-Type", "application/json");
        response.statusCode = 201;
        response.end(JSON.stringify({ at: 2, path: "/v1/items", body: "\u001b[2J" }));
      } else if (request.url?.includes("/bytes") === true) request.socket.destroy();
      else answerLikeV1(request, response);
    });
    const args = ["--log", path, "--target", candidate, "--concurrency", "2"];
    const other = await replay(context, runtime, [
      ...args,
      "--headers",
      "X-Tenant: t1,Accept: text/html, application/json;q=0.5",
      "--ignore-members",
      "at",
    ]);
    assert.equal(other.code, 1);
    assert.match(other.stdout, /^GET \/v1\/items\?page=1  \(line \d\)$/m);
    assert.match(other.stdout, /^  status {2}200 → 201$/m);
    assert.match(other.stdout, /^  header {2}x-new: \(missing\) → 1$/m);
    assert.match(other.stdout, /^  body {4}\$\.body: "" → "\\u001b\[2J"$/m);
    assert.doesNotMatch(other.stdout, /\$\.at/);
    assert.match(other.stdout, /^GET \/v1\/bytes[\s\S]*^  failed/m);
    assert.match(other.stdout, /^same: 2, different: 1, failed: 1$/m);
    assert.equal(
      seen.every(
        ({ accept, "x-tenant": tenant }) =>
          tenant === "t1" && accept === "text/html, application/json;q=0.5",
      ),
      true,
    );
    const json = await replay(context, runtime, [...args, "--format", "json", "--methods", "get"]);
    const result = JSON.parse(json.stdout) as {
      skipped: Record<string, number>;
      findings: unknown[];
    };
    assert.deepEqual(result.skipped, { "requests of other methods": 1 });
    assert.equal(result.findings.length, 2);
  });
}

const [node] = runtimes;

test("a share of the requests is recorded, in files of bounded size", async (context) => {
  const runtime = node ?? assert.fail();
  const keys = { record_max_size: 4_096, record_files: 2 };
  const { gate, folder, ask } = await startRecording(
    context,
    runtime,
    { record: { percent: 20 } },
    keys,
  );
  for (let round = 0; round < 10; round++) {
    await Promise.all(Array.from({ length: 20 }, () => ask("/api/items")));
  }
  const headers = { Authorization: "Bearer the-operator-token" };
  const scrape = await (await fetch(`${gate.url}/metrics`, { headers })).text();
  assert.match(scrape, /^platform_gate_recording_skipped_total 0$/m);
  // 40 are expected, with a standard deviation of 6.
  await waitFor(async () => {
    const text = await (await fetch(`${gate.url}/metrics`, { headers })).text();
    return Number(/^platform_gate_recorded_total (\d+)/m.exec(text)?.[1]) > 10;
  }, "lines are counted");
  const text = await (await fetch(`${gate.url}/metrics`, { headers })).text();
  assert.ok(Number(/^platform_gate_recorded_total (\d+)/m.exec(text)?.[1]) < 90);
  await waitFor(() => existsSync(join(folder, "recording.jsonl.1")), "the file is rotated");
  const files = readdirSync(folder).filter((name) => name.startsWith("recording.jsonl"));
  assert.ok(files.length <= 3, files.join());
});

test("exchanges beyond the memory for recordings are passed on, not recorded, and counted", async (context) => {
  const runtime = node ?? assert.fail();
  const open: (() => void)[] = [];
  const target = await startServer(context, (request, response) => {
    request.resume();
    request.on("end", () => open.push(() => response.end("ok")));
  });
  const gate = await startGate(context, {
    runtime,
    config: { workers: 1, routes: [{ prefix: "/", target, record: { max_body_size: 1_048_576 } }] },
  });
  // Of a few bytes, which are 18 MB in JSON without their coding.
  const long = fetch(gate.url, {
    method: "POST",
    headers: { "Content-Encoding": "gzip" },
    body: gzipSync(Buffer.alloc(3_000_000)),
  });
  await waitFor(() => open.length === 1, "the request is at the upstream");
  open.pop()?.();
  assert.equal(await (await long).text(), "ok");
  await waitFor(async () => {
    return (await readMetric(gate.url, "platform_gate_recording_skipped_total")) === 1;
  }, "a line that is too long is counted");
  // 36 bodies of 1 MB do not fit into 32 MiB.
  const body = "x".repeat(1_000_000);
  const asked = Array.from({ length: 36 }, async () => {
    const answer = await fetch(gate.url, { method: "POST", body });
    return answer.text();
  });
  await waitFor(() => open.length === 36, "all requests are at the upstream");
  for (const respond of open) respond();
  assert.deepEqual(new Set(await Promise.all(asked)), new Set(["ok"]));
  await waitFor(async () => {
    const skipped = await readMetric(gate.url, "platform_gate_recording_skipped_total");
    return skipped >= 4 && skipped <= 11;
  }, "the others are counted");
});

test("recordings that cannot be replayed are reported with exit code 2", async (context) => {
  const runtime = node ?? assert.fail();
  const folder = makeFolder(context);
  const path = join(folder, "r.jsonl");
  writeFileSync(path, '{"method":"GET"}\n\nnot json\n');
  const target = ["--target", "http://127.0.0.1:1"];
  const [foreign, missing, unnamed, untargeted, wasm] = await Promise.all([
    replay(context, runtime, ["--log", path, ...target]),
    replay(context, runtime, ["--log", join(folder, "none"), ...target]),
    replay(context, runtime, target),
    replay(context, runtime, ["--log", path, "--target", "http://127.0.0.1:1/path"]),
    replay(context, runtime, ["--log", path, "--middleware", "m.wasm"]),
  ]);
  assert.deepEqual(
    [foreign.code, missing.code, unnamed.code, untargeted.code, wasm.code],
    [2, 2, 2, 2, 2],
  );
  assert.match(foreign.stdout, /skipped: 2 lines that are not of a recording/);
  assert.match(foreign.stderr, /no request that can be replayed/);
  assert.match(missing.stderr, /ENOENT/);
  assert.match(unnamed.stderr, /--log/);
  assert.match(untargeted.stderr, /expected no path/);
  assert.match(wasm.stderr, /--middleware: is not allowed with --shadow/);
});
