// WebAssembly guests in a real worker with real upstreams: what they change, where they run, what their failures do.
import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect } from "node:net";
import { after, test, type TestContext } from "node:test";
import { assemble, type GuestText, writeGuest } from "@platform/testing/guests";
import { waitFor } from "@platform/testing/wait";
import { compileHttpModule } from "@platform/wasm/http";
import { type GuestsSpec, makeRouteKey, type NamedGuest } from "../../src/shared-state/index.ts";
import {
  type GateWorker,
  type TestRoute,
  ask,
  sendRaw,
  startGate,
  startUpstream,
} from "../listen/gate-worker.ts";

/** One for all tests, which replace its route and its guests. */
const gate: GateWorker = await startGate([]);
after(() => gate.stop());

const guest = (name: string, ...texts: (GuestText | string)[]): NamedGuest => ({
  name,
  versions: texts.map((text) =>
    compileHttpModule(assemble(typeof text === "string" ? text : writeGuest(text))),
  ),
});

const request = (guests: Partial<GuestsSpec>): Pick<TestRoute, "steps"> => ({
  steps: { guests: { config: "", ...guests } },
});

interface Seen {
  method: string;
  url: string;
  fields: Record<string, string>;
  body: string;
}

/** A gateway with one route; the upstream answers with the request that it got. */
async function start(
  context: TestContext,
  named: readonly NamedGuest[],
  route: Partial<TestRoute>,
  answer: (
    request: IncomingMessage,
    body: string,
  ) => { status?: number; fields?: Record<string, string>; body?: string } = () => ({}),
) {
  const seen: Seen[] = [];
  const upstream = await startUpstream((message, response) => {
    let body = "";
    message.setEncoding("utf8").on("data", (text: string) => (body += text));
    message.on("end", () => {
      const { method = "", url = "", headers } = message;
      seen.push({ method, url, fields: headers as Record<string, string>, body });
      const {
        status = 200,
        fields = {},
        body: content = "from the upstream",
      } = answer(message, body);
      response.writeHead(status, { "Content-Type": "text/plain", ...fields });
      response.end(content);
    });
  });
  context.after(() => upstream.stop());
  gate.logs.length = 0;
  await gate.apply({
    guests: { set: named, removed: ["late"] },
    routes: [{ prefix: "/", targets: [upstream.url], ...route }],
    remove: route.prefix === undefined ? [] : [makeRouteKey(undefined, "/")],
  });
  return { gate, port: gate.port, seen, upstream };
}

const data = {
  0: "x-guest",
  16: "set",
  32: "/moved?to=1",
  48: "POST",
  64: "new body",
  80: "x-one",
};
const CACHE = {
  ttlMs: 60_000,
  methods: ["GET"],
  ignoresCookies: false,
  keyCookies: [],
  ignoredCookies: [],
};
const setField = (kind: number) =>
  `(call $set_header_value (i32.const ${kind}) (i32.const 0) (i32.const 7) (i32.const 16) (i32.const 3))`;
const setUri = "(call $set_uri (i32.const 32) (i32.const 11))";
const writeBody = (kind: number) =>
  `(call $write_body (i32.const ${kind}) (i32.const 64) (i32.const 8))`;
const next = "(i64.const 1)";

test("a guest changes method, URI, fields and body of what the upstream gets", async (context) => {
  const changing = guest("changing", {
    data,
    request: `${setField(0)} ${setUri} (call $set_method (i32.const 48) (i32.const 4))
      (call $remove_header (i32.const 0) (i32.const 80) (i32.const 5)) ${writeBody(0)} ${next}`,
  });
  const { port, seen } = await start(context, [changing], request({ request: "changing" }));
  const headers = { "X-One": "1", "X-Two": "2", "Content-Encoding": "gzip" };
  const answer = await ask(port, "/a?b", { method: "PUT", headers, body: "old" });
  assert.equal(answer.status, 200);
  const [{ method, url, fields, body }] = seen as [Seen];
  assert.deepEqual([method, url, body], ["POST", "/moved?to=1", "new body"]);
  assert.equal(fields["x-guest"], "set");
  assert.equal(fields["x-two"], "2");
  assert.equal(fields["x-one"], undefined);
  assert.equal(fields["content-encoding"], undefined);
  assert.equal(fields["content-length"], "8");
});

test("a guest that only sets a field adds it, replaces it, and cannot give the client rights", async (context) => {
  const names = { ...data, 96: "x-user-id", 112: "X_User_Id" };
  const set = (at: number, length: number) =>
    `(call $set_header_value (i32.const 0) (i32.const ${at}) (i32.const ${length}) (i32.const 16) (i32.const 3))`;
  const add = setField(0).replace("$set_", "$add_");
  const setting = guest("setting", { data: names, request: `${setField(0)} ${next}` });
  const adding = guest("adding", { data: names, request: `${add} ${add} ${next}` });
  const own = guest("own", { data: names, request: `${set(96, 9)} ${set(112, 9)} ${next}` });
  const asked: [name: string, sent: string[], expected: string | undefined][] = [
    ["setting", [], "set"],
    ["setting", ["X-Guest: of the client"], "set"],
    ["setting", ["x-guest: 1", "X-GUEST: 2"], "set"],
    ["adding", [], "set, set"],
    ["adding", ["X-Guest: 1"], "1, set, set"],
    ["own", [], undefined],
  ];
  for (const [name, sent, expected] of asked) {
    const { port, seen } = await start(context, [setting, adding, own], request({ request: name }));
    const lines = ["Host: a", "X-One: 1", "Connection: close", ...sent, "X-Last: 2"].join("\r\n");
    await sendRaw(port, `GET /a?b HTTP/1.1\r\n${lines}\r\n\r\n`);
    const [{ url, fields }] = seen as [Seen];
    assert.equal(fields["x-guest"], expected, `${name} ${sent.join()}`);
    assert.deepEqual([url, fields["x-one"], fields["x-last"]], ["/a?b", "1", "2"]);
    assert.deepEqual([fields["x-user-id"], fields["x_user_id"]], [undefined, undefined]);
  }
});

test("a field that a guest adds goes with each attempt, unless the route removes it", async (context) => {
  const setting = guest("setting", { data, request: `${setField(0)} ${next}` });
  const lost: IncomingMessage[] = [];
  const broken = await startUpstream((message) => {
    lost.push(message);
    message.socket.destroy();
  });
  context.after(() => broken.stop());
  const { port, seen, upstream } = await start(context, [setting], request({ request: "setting" }));
  const targets = [broken.url, upstream.url];
  await gate.apply({
    routes: [{ prefix: "/", targets, ...request({ request: "setting" }) }],
  });
  // One of two in turn begins with the broken one.
  for (let asked = 0; asked < 2; asked++) assert.equal((await ask(port, "/")).status, 200);
  assert.ok(lost.length > 0);
  assert.equal(seen.length, 2);
  for (const { headers } of lost) assert.equal(headers["x-guest"], "set");
  for (const { fields } of seen) assert.equal(fields["x-guest"], "set");
  const none = { addRequest: [], removeResponse: [], addResponse: [] };
  const removing = await start(context, [setting], {
    headers: { ...none, removeRequest: ["X_Guest"] },
    ...request({ request: "setting" }),
  });
  assert.equal((await ask(port, "/")).status, 200);
  assert.equal(removing.seen[0]!.fields["x-guest"], undefined);
});

test("a guest cannot make a head that is larger than the gateway takes", async (context) => {
  const add =
    "(call $add_header_value (i32.const 0) (i32.const 0) (i32.const 7) (i32.const 1024) (i32.const 5000))";
  const fill = "(memory.fill (i32.const 1024) (i32.const 97) (i32.const 5000))";
  const [two, seven] = [2, 7].map((times) =>
    guest(`adds-${times}`, { data, request: `${fill} ${add.repeat(times)} ${next}` }),
  ) as [NamedGuest, NamedGuest];
  const { port, seen } = await start(context, [two, seven], request({ request: "adds-2" }));
  assert.equal((await ask(port, "/")).status, 200);
  assert.equal(seen[0]!.fields["x-guest"]!.length, 10_002);
  await gate.apply({
    routes: [{ prefix: "/", targets: ["http://127.0.0.1:1"], ...request({ request: "adds-7" }) }],
  });
  const answer = await ask(port, "/");
  assert.deepEqual([answer.status, JSON.parse(answer.body).code], [502, "middleware_failed"]);
});

test("a client cannot take away a field of a guest by naming it in Connection", async (context) => {
  const remove = "(call $remove_header (i32.const 0) (i32.const 80) (i32.const 5))";
  for (const more of ["", remove]) {
    const setting = guest("setting", { data, request: `${more} ${setField(0)} ${next}` });
    const { port, seen } = await start(context, [setting], request({ request: "setting" }));
    const lines = "Host: a\r\nConnection: close, X-Guest, X-Hop\r\nX-Hop: 1\r\n\r\n";
    await sendRaw(port, `GET / HTTP/1.1\r\n${lines}`);
    const [{ fields }] = seen as [Seen];
    assert.deepEqual([fields["x-guest"], fields["x-hop"]], ["set", undefined], more);
  }
});

test("a guest reads the field that it has added to the request once the response is there", async (context) => {
  const both = guest("both", {
    data,
    request: `${setField(0).replace("$set_", "$add_")} ${next}`,
    response: `(if (i64.ne
        (call $get_header_values (i32.const 0) (i32.const 0) (i32.const 7) (i32.const 1024) (i32.const 99))
        (i64.const 0x100000004)) (then unreachable)) ${setField(1)}`,
  });
  const { port } = await start(context, [both], request({ request: "both", response: "both" }));
  const answer = await ask(port, "/");
  assert.deepEqual([answer.status, answer.headers["x-guest"]], [200, "set"]);
});

test("a guest reads a body that arrives late, and it still goes upstream", async (context) => {
  // Reads until the end, and puts the last four bytes into a field.
  const reading = guest("reading", {
    data,
    readsBody: true,
    request: `(local $got i64) (local $at i32)
      (local.set $at (i32.const 1024))
      (loop $more
        (local.set $got (call $read_body (i32.const 0) (local.get $at) (i32.const 4096)))
        (local.set $at (i32.add (local.get $at) (i32.wrap_i64 (local.get $got))))
        (br_if $more (i64.eqz (i64.shr_u (local.get $got) (i64.const 32)))))
      (call $set_header_value (i32.const 0) (i32.const 0) (i32.const 7)
        (i32.sub (local.get $at) (i32.const 4)) (i32.const 4))
      ${next}`,
  });
  const { port, seen } = await start(context, [reading], request({ request: "reading" }));
  const head =
    "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.on("data", (bytes) => (text += String(bytes)));
  socket.write(`${head}5\r\nhello\r\n`);
  await new Promise((resolve) => setTimeout(resolve, 50));
  socket.write("5\r\nworld\r\n0\r\n\r\n");
  await new Promise((resolve) => socket.on("close", resolve));
  assert.match(text, /^HTTP\/1.1 200 /);
  assert.equal(seen[0]!.body, "helloworld");
  assert.equal(seen[0]!.fields["x-guest"], "orld");
});

test("a guest answers instead of the upstream", async (context) => {
  const answering = guest("answering", {
    data,
    request: `(call $set_status_code (i32.const 401)) ${setField(1)} ${writeBody(1)} (i64.const 0)`,
  });
  const { port, seen } = await start(context, [answering], request({ request: "answering" }));
  const answer = await ask(port, "/");
  assert.deepEqual(
    [answer.status, answer.headers["x-guest"], answer.body],
    [401, "set", "new body"],
  );
  assert.equal(seen.length, 0);
});

test("handle_response changes head and body, with the context of handle_request", async (context) => {
  const both = guest("both", {
    data,
    request: "(i64.const 0x700000001)",
    response: `(if (i32.ne (local.get $context) (i32.const 7)) (then unreachable))
      (if (local.get $is_error) (then unreachable))
      (if (i32.ne (call $get_status_code) (i32.const 200)) (then unreachable))
      (call $set_status_code (i32.const 418)) ${setField(1)} ${writeBody(1)}`,
  });
  const { port } = await start(context, [both], request({ request: "both", response: "both" }));
  for (const method of ["GET", "HEAD"]) {
    const answer = await ask(port, "/", { method });
    assert.equal(answer.status, 418);
    assert.equal(answer.headers["x-guest"], "set");
    assert.equal(answer.headers["content-length"], "8");
    assert.equal(answer.body, method === "HEAD" ? "" : "new body");
  }
});

test("without buffering the content streams untouched, with the changed head", async (context) => {
  const content = "x".repeat(300_000);
  const head = guest("head", { data, response: setField(1) });
  const { port } = await start(context, [head], request({ response: "head" }), () => ({
    body: content,
  }));
  const answer = await ask(port, "/");
  assert.equal(answer.headers["x-guest"], "set");
  assert.equal(answer.body, content);
});

/** Buffers the response, and answers with its first byte changed. */
const bufferingText: GuestText = {
  data,
  readsBody: true,
  more: `(func (export "_initialize") (drop (call $enable_features (i32.const 2))))`,
  response: `(local $length i32)
    (local.set $length (i32.wrap_i64 (call $read_body (i32.const 1) (i32.const 1024) (i32.const 60000))))
    (i32.store8 (i32.const 1024) (i32.const 42))
    (call $write_body (i32.const 1) (i32.const 1024) (local.get $length))`,
};

test("a buffered response is read and replaced as a whole", async (context) => {
  const buffering = guest("buffering", bufferingText);
  const { port } = await start(context, [buffering], request({ response: "buffering" }), () => ({
    fields: { "Content-Encoding": "identity", "Transfer-Encoding": "chunked" },
  }));
  const answer = await ask(port, "/");
  assert.equal(answer.body, "*rom the upstream");
  assert.equal(answer.headers["content-encoding"], undefined);
  assert.equal(answer.headers["content-length"], "17");
});

test("an event stream or more than 8 MiB cannot be buffered", async (context) => {
  const buffering = guest("buffering", bufferingText);
  let fields: Record<string, string> = { "Content-Type": "text/event-stream" };
  let body = "data: 1\n\n";
  const { port, gate } = await start(
    context,
    [buffering],
    request({ response: "buffering" }),
    () => ({
      fields,
      body,
    }),
  );
  const stream = await ask(port, "/");
  assert.equal(stream.status, 502);
  assert.match(stream.body, /middleware_failed/);
  await waitFor(() =>
    gate.logs.some(({ fields: logged }) => String(logged["error"]).includes("event stream")),
  );
  fields = {};
  body = "x".repeat(8 * 1024 * 1024 + 1);
  assert.equal((await ask(port, "/")).status, 502);
});

test("a response without content can get some, and lose it", async (context) => {
  const filling = guest("filling", {
    data,
    response: `(call $set_status_code (i32.const 200)) ${writeBody(1)}`,
  });
  const emptying = guest("emptying", { response: "(call $set_status_code (i32.const 204))" });
  const first = await start(context, [filling], request({ response: "filling" }), () => ({
    status: 204,
    body: "",
  }));
  const filled = await ask(first.port, "/");
  assert.deepEqual([filled.status, filled.body], [200, "new body"]);
  const second = await start(context, [emptying], request({ response: "emptying" }));
  const emptied = await sendRaw(
    second.port,
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
  );
  assert.match(emptied, /^HTTP\/1.1 204 /);
  assert.match(emptied, /\r\n\r\n$/);
});

test("the response guest passes the gateway's own answers, as errors", async (context) => {
  const marking = guest("marking", {
    data,
    response: `(if (i32.eqz (local.get $is_error)) (then unreachable)) ${setField(1)}`,
  });
  for (const text of [marking, guest("marking", { ...bufferingText, response: setField(1) })]) {
    const { port, upstream } = await start(context, [text], request({ response: "marking" }));
    await upstream.stop();
    const answer = await ask(port, "/");
    assert.equal(answer.status, 502);
    assert.equal(answer.headers["x-guest"], "set");
    assert.match(answer.body, /upstream_unreachable/);
  }
});

const failures: [name: string, text: GuestText][] = [
  ["traps", { request: "unreachable" }],
  ["runs out of fuel", { request: "(loop $l (br $l)) unreachable" }],
  ["loops in its start", { more: `(func (export "_start") (loop $l (br $l)))` }],
  ["returns next=7", { request: "(i64.const 7)" }],
  [
    "sets a URI that climbs",
    { data: { 0: "/../x" }, request: `(call $set_uri (i32.const 0) (i32.const 5)) ${next}` },
  ],
  [
    "makes HEAD of GET",
    { data: { 0: "HEAD" }, request: `(call $set_method (i32.const 0) (i32.const 4)) ${next}` },
  ],
  [
    "sets a second Host",
    {
      data: { 0: "Host", 8: "b" },
      request: `(call $add_header_value (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 8) (i32.const 1)) ${next}`,
    },
  ],
];
for (const [index, [name, text]] of failures.entries()) {
  test(`a guest that ${name} is answered with 502, never passed by`, async (context) => {
    const { port, seen, gate } = await start(
      context,
      [guest(`bad-${index}`, text)],
      request({ request: `bad-${index}` }),
    );
    const answer = await ask(port, "/");
    assert.equal(answer.status, 502);
    assert.match(answer.body, /"code":"middleware_failed"/);
    assert.equal(seen.length, 0);
    await waitFor(() =>
      gate.logs.some(({ msg }) => /^middleware (?:failed|not called)$/.test(msg)),
    );
  });
}

test("a response guest that traps leaves no half answer", async (context) => {
  const { port } = await start(
    context,
    [guest("bad", { response: "unreachable" })],
    request({ response: "bad" }),
  );
  const answer = await ask(port, "/");
  assert.equal(answer.status, 502);
  assert.match(answer.body, /middleware_failed/);
});

test("after five failures the guest is not called for a second", async (context) => {
  const bad = guest("bad", {
    data,
    request: `(call $log (i32.const 1) (i32.const 0) (i32.const 7)) unreachable`,
  });
  const { port, gate } = await start(context, [bad], request({ request: "bad" }));
  for (let count = 0; count < 8; count++) assert.equal((await ask(port, "/")).status, 502);
  await waitFor(() => gate.logs.filter(({ msg }) => msg === "x-guest").length >= 5);
  assert.equal(gate.logs.filter(({ msg }) => msg === "x-guest").length, 5);
  await waitFor(async () => {
    await ask(port, "/");
    return gate.logs.filter(({ msg }) => msg === "x-guest").length > 5;
  });
});

test("a guest that passes requests and fails at their responses gets one trial", async (context) => {
  const late = guest("late-trap", {
    data,
    request: `(call $log (i32.const 1) (i32.const 0) (i32.const 7)) ${next}`,
    response: "unreachable",
  });
  const both = request({ request: "late-trap", response: "late-trap" });
  const { port, gate } = await start(context, [late], both);
  const countCalls = (): number => gate.logs.filter(({ msg }) => msg === "x-guest").length;
  for (let count = 0; count < 8; count++) assert.equal((await ask(port, "/")).status, 502);
  await waitFor(async () => {
    await ask(port, "/");
    return countCalls() > 5;
  });
  for (let count = 0; count < 8; count++) assert.equal((await ask(port, "/")).status, 502);
  assert.equal(countCalls(), 6);
});

test("a route whose guest is not registered refuses, and works once it is", async (context) => {
  const { port, gate, seen } = await start(context, [], request({ request: "late" }));
  assert.equal((await ask(port, "/")).status, 502);
  assert.equal(seen.length, 0);
  await gate.apply({
    guests: { set: [guest("late", { data, request: `${setField(0)} ${next}` })], removed: [] },
  });
  assert.equal((await ask(port, "/")).status, 200);
  assert.equal(seen[0]!.fields["x-guest"], "set");
  await gate.apply({ guests: { set: [], removed: ["late"] } });
  assert.equal((await ask(port, "/")).status, 502);
});

test("a digest selects a version", async (context) => {
  const answering = (status: number): GuestText => ({
    request: `(call $set_status_code (i32.const ${status})) (i64.const 0)`,
  });
  const named = guest("versions", answering(201), answering(202));
  const old = named.versions[1]!.sha256.slice(0, 12);
  const { port } = await start(context, [named], request({ request: `versions@${old}` }));
  assert.equal((await ask(port, "/")).status, 202);
});

test("the guest sees neither the operator's token nor fields that clients may not set", async (context) => {
  // Answers with the names of all fields.
  const listing = guest("listing", {
    request: `(call $write_body (i32.const 1) (i32.const 0)
      (i32.wrap_i64 (call $get_header_names (i32.const 0) (i32.const 0) (i32.const 1000)))) (i64.const 0)`,
  });
  const { port } = await start(context, [listing], request({ request: "listing" }));
  const headers = {
    "X-User-Id": "root",
    X_User_Id: "root",
    "X-Forwarded-For": "1.1.1.1",
    "X-Own": "1",
  };
  const { body } = await ask(port, "/", { headers });
  assert.deepEqual(
    body.split("\0").filter((name) => name !== ""),
    ["x-own", "host", "connection"].sort((a, b) => body.indexOf(a) - body.indexOf(b)),
  );
});

test("fields of framing that a guest sets are ignored and counted", async (context) => {
  const framing = guest("framing", {
    data: { 0: "content-length", 16: "5", 32: "connection", 48: "x-own" },
    request: `(call $set_header_value (i32.const 0) (i32.const 0) (i32.const 14) (i32.const 16) (i32.const 1)) ${next}`,
    response: `(call $remove_header (i32.const 1) (i32.const 32) (i32.const 10))`,
  });
  const { port, seen, gate } = await start(
    context,
    [framing],
    request({ request: "framing", response: "framing" }),
  );
  assert.equal((await ask(port, "/")).status, 200);
  assert.equal(seen[0]!.fields["content-length"], undefined);
  await waitFor(() => {
    const figures = gate.figures.filter(({ name }) => name === "framing");
    return figures.reduce((sum, { ignoredFields }) => sum + ignoredFields, 0) === 2;
  });
});

test("a changed URI keeps the prefix that is stripped", async (context) => {
  const uri = (text: string): GuestText => ({
    data: { 0: text },
    request: `(call $set_uri (i32.const 0) (i32.const ${text.length})) ${next}`,
  });
  const route = { prefix: "/shop", stripPrefix: true };
  const kept = await start(context, [guest("uri", uri("/shop/b%41?q"))], {
    ...route,
    ...request({ request: "uri" }),
  });
  assert.equal((await ask(kept.port, "/shop/a")).status, 200);
  assert.equal(kept.seen[0]!.url, "/bA?q");
  const lost = await start(context, [guest("uri", uri("/admin"))], {
    ...route,
    ...request({ request: "uri" }),
  });
  assert.equal((await ask(lost.port, "/shop/a")).status, 502);
  assert.equal(lost.seen.length, 0);
});

test("a body beyond the route's limit is 413, also if the guest would have read it", async (context) => {
  const reading = guest("reading", {
    readsBody: true,
    request: `(drop (call $read_body (i32.const 0) (i32.const 0) (i32.const 100))) ${next}`,
  });
  const { port } = await start(context, [reading], {
    bodyBytesMax: 10,
    ...request({ request: "reading" }),
  });
  const answer = await ask(port, "/", { method: "POST", body: "x".repeat(11) });
  assert.equal(answer.status, 413);
  const fine = await ask(port, "/", { method: "POST", body: "x".repeat(10) });
  assert.equal(fine.status, 200);
});

test("a client that leaves while the guest waits for its body leaks no instance", async (context) => {
  const reading = guest("reading", {
    readsBody: true,
    request: `(drop (call $read_body (i32.const 0) (i32.const 0) (i32.const 100))) ${next}`,
  });
  const { port } = await start(context, [reading], request({ request: "reading" }));
  for (let count = 0; count < 40; count++) {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
    await new Promise((resolve) => setTimeout(resolve, 5));
    socket.destroy();
  }
  assert.equal((await ask(port, "/", { method: "POST", body: "hello" })).status, 200);
});

test("a mirror gets the request that the guest has made", async (context) => {
  const mirrored: string[] = [];
  const mirror = await startUpstream((message, response) => {
    let body = "";
    message.setEncoding("utf8").on("data", (text: string) => (body += text));
    message.on("end", () => {
      const { method, url, headers } = message;
      mirrored.push(`${method} ${url} ${String(headers["x-guest"])} ${body}`);
      response.end();
    });
  });
  context.after(() => mirror.stop());
  const { port } = await start(
    context,
    [guest("mirrored", { data, request: `${setField(0)} ${setUri} ${writeBody(0)} ${next}` })],
    {
      steps: {
        guests: { config: "", request: "mirrored" },
        mirror: { origin: mirror.url, percent: 100, bodyBytesMax: 1_000 },
      },
    },
  );
  assert.equal((await ask(port, "/", { method: "POST", body: "sent" })).status, 200);
  await waitFor(() => mirrored.length > 0);
  assert.deepEqual(mirrored, ["POST /moved?to=1 set new body"]);
});

test("the cache holds what the guest made, apart for each version", async (context) => {
  const marking = (text: string): GuestText => ({
    data: { ...data, 16: text },
    response: setField(1),
  });
  const steps = { cache: CACHE, guests: { config: "", response: "marking" } };
  const { port, seen } = await start(
    context,
    [guest("marking", marking("one"))],
    { steps },
    () => ({
      fields: { "Cache-Control": "max-age=60" },
    }),
  );
  const path = "/stored";
  const first = await ask(port, path);
  const second = await ask(port, path);
  assert.deepEqual([first.headers["x-cache"], second.headers["x-cache"]], ["MISS", "HIT"]);
  assert.deepEqual([first.headers["x-guest"], second.headers["x-guest"]], ["one", "one"]);
  assert.equal(seen.length, 1);
  await gate.apply({ guests: { set: [guest("marking", marking("two"))], removed: [] } });
  const third = await ask(port, path);
  assert.deepEqual([third.headers["x-cache"], third.headers["x-guest"]], ["MISS", "two"]);
});

test("the cache tells responses apart by a field that the guest has added", async (context) => {
  const counting = guest("counting", {
    data: { ...data, 16: "abc" },
    request: `(i32.store (i32.const 512) (i32.add (i32.load (i32.const 512)) (i32.const 1)))
      (call $set_header_value (i32.const 0) (i32.const 0) (i32.const 7)
        (i32.add (i32.const 15) (i32.load (i32.const 512))) (i32.const 1)) ${next}`,
  });
  const fields = { "Cache-Control": "max-age=60", Vary: "X-Guest" };
  const { port, seen } = await start(
    context,
    [counting],
    { steps: { cache: CACHE, guests: { config: "", request: "counting" } } },
    () => ({ fields }),
  );
  for (let asked = 0; asked < 3; asked++) await ask(port, "/varies");
  assert.deepEqual(
    seen.map((one) => one.fields["x-guest"]),
    ["a", "b", "c"],
  );
});

test("the cache holds a body that the guest has buffered and replaced", async (context) => {
  const steps = { cache: CACHE, guests: { config: "", response: "buffering" } };
  const { port, seen } = await start(context, [guest("buffering", bufferingText)], { steps });
  const answers = [await ask(port, "/buffered"), await ask(port, "/buffered")];
  assert.deepEqual(
    answers.map(({ headers, body }) => [headers["x-cache"], headers["content-length"], body]),
    [
      ["MISS", "17", "*rom the upstream"],
      ["HIT", "17", "*rom the upstream"],
    ],
  );
  assert.equal(seen.length, 1);
});

test("responses are compressed after the guest", async (context) => {
  const text = "abcd".repeat(2_000);
  const steps = {
    compression: { codings: ["gzip" as const], types: ["text/*"], sizeBytesMin: 100 },
    guests: { config: "", response: "buffering" },
  };
  const { port } = await start(context, [guest("buffering", bufferingText)], { steps }, () => ({
    body: text,
  }));
  const response = await fetch(`http://127.0.0.1:${port}/`, {
    headers: { "Accept-Encoding": "gzip", Connection: "close" },
  });
  assert.equal(response.headers.get("content-encoding"), "gzip");
  assert.equal(await response.text(), `*${text.slice(1)}`);
});

test("requests end while modules change, each on exactly one version", async (context) => {
  const version = (text: string) =>
    guest("changing", {
      data: { ...data, 16: text },
      request: `${setField(1)} ${next}`,
      response: setField(1),
    });
  const versions = ["aaa", "bbb"].map(version);
  const { port } = await start(
    context,
    [versions[0]!],
    request({ request: "changing", response: "changing" }),
  );
  const done = new AbortController();
  const asked: Promise<void>[] = Array.from({ length: 4 }, async () => {
    while (!done.signal.aborted) {
      const { status, headers } = await ask(port, "/");
      assert.equal(status, 200);
      assert.match(String(headers["x-guest"]), /^(?:aaa(?:, aaa)?|bbb(?:, bbb)?)$/);
    }
  });
  for (let change = 1; change <= 100; change++)
    await gate.apply({ guests: { set: [versions[change % 2]!], removed: [] } });
  done.abort();
  await Promise.all(asked);
});

test("a split sends each request to one guest by weight, and sticky clients to the same", async (context) => {
  const answering = (text: string): GuestText => ({
    data: { 0: text },
    request: `(call $write_body (i32.const 1) (i32.const 0) (i32.const 1)) (i64.const 0)`,
  });
  const named = [guest("a", answering("A")), guest("b", answering("B"))];
  const targets = [
    { name: "a", weight: 3 },
    { name: "b", weight: 1 },
  ];
  const split = (sticky: NonNullable<GuestsSpec["split"]>["sticky"]) =>
    request({ split: { targets, sticky } });
  const none = await start(context, named, split({ by: "none" }));
  const counts: Record<string, number> = {};
  for (let count = 0; count < 200; count++) {
    const { body } = await ask(none.port, "/");
    counts[body] = (counts[body] ?? 0) + 1;
  }
  assert.ok(counts["A"]! > 110 && counts["A"]! < 190, JSON.stringify(counts));
  const header = await start(context, named, split({ by: "header", name: "X-User" }));
  for (const user of ["u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8"]) {
    const first = await ask(header.port, "/", { headers: { "X-User": user } });
    for (let count = 0; count < 5; count++)
      assert.equal((await ask(header.port, "/", { headers: { "X-User": user } })).body, first.body);
  }
});

test("a split by cookie sets it once, and follows it", async (context) => {
  const named = [guest("a", { data, response: setField(1) }), guest("b", {})];
  const targets = [
    { name: "a", weight: 1 },
    { name: "b", weight: 1 },
  ];
  const { port } = await start(
    context,
    named,
    request({ split: { targets, sticky: { by: "cookie" } } }),
  );
  const first = await ask(port, "/");
  const [cookie = ""] = first.headers["set-cookie"] ?? [];
  assert.match(cookie, /^_platform_split=[ab]; Path=\/; Max-Age=86400; HttpOnly; SameSite=Lax$/);
  const isA = first.headers["x-guest"] === "set";
  assert.equal(cookie.startsWith("_platform_split=a"), isA);
  for (let count = 0; count < 10; count++) {
    const again = await ask(port, "/", { headers: { Cookie: cookie.split(";")[0]! } });
    assert.equal(again.headers["x-guest"] === "set", isA);
    assert.equal(again.headers["set-cookie"], undefined);
  }
});

test("a WebSocket passes handle_request, and frees its instance", async (context) => {
  const both = guest("both", { data, request: `${setField(0)} ${next}`, response: "unreachable" });
  const { port, upstream } = await start(
    context,
    [both],
    request({ request: "both", response: "both" }),
  );
  let upgraded = "";
  let close = (): void => undefined;
  upstream.server.on("upgrade", (message, socket) => {
    upgraded = String(message.headers["x-guest"]);
    close = () => void socket.destroy();
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
  });
  const text = await sendRaw(
    port,
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "\r\n\r\n",
  );
  assert.match(text, /^HTTP\/1.1 101 /);
  assert.equal(upgraded, "set");
  close();
});

test("a guest whose start fails is not started again for a second", async (context) => {
  const bad = guest("bad", {
    data,
    more: `(func (export "_start")
      (call $log (i32.const 1) (i32.const 0) (i32.const 7)) (loop $l (br $l)))`,
  });
  const { port, gate } = await start(context, [bad], request({ request: "bad" }));
  await waitFor(() => gate.logs.some(({ msg }) => msg === "x-guest"));
  for (let count = 0; count < 10; count++) assert.equal((await ask(port, "/")).status, 502);
  const starts = gate.logs.filter(({ msg }) => msg === "x-guest").length;
  assert.ok(starts <= 3, `${starts} starts`);
});

test("a guest that reads the beginning of a body does not wait for the rest", async (context) => {
  const reading = guest("peeking", {
    data,
    readsBody: true,
    request: `(if (i64.ne (call $read_body (i32.const 0) (i32.const 1024) (i32.const 4)) (i64.const 4))
        (then unreachable))
      (call $set_header_value (i32.const 0) (i32.const 0) (i32.const 7) (i32.const 1024) (i32.const 4))
      ${next}`,
  });
  const { port, upstream } = await start(context, [reading], request({ request: "peeking" }));
  let field = "";
  let received = "";
  upstream.server.removeAllListeners("request");
  upstream.server.on("request", (message: IncomingMessage, response: ServerResponse) => {
    field = String(message.headers["x-guest"]);
    message.setEncoding("utf8").on("data", (text: string) => (received += text));
    message.on("end", () => response.end("ok"));
  });
  for (const [lines, first, last] of [
    ["Content-Length: 10", "begin", "later"],
    ["Transfer-Encoding: chunked", "a\r\nbegin", "later\r\n0\r\n\r\n"],
  ] as const) {
    received = "";
    const socket = connect(port, "127.0.0.1");
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${lines}\r\n\r\n${first}`);
    // The upstream has what was read, and the rest has not been sent.
    await waitFor(() => received === "begin");
    assert.equal(field, "begi");
    socket.write(last);
    await waitFor(() => received === "beginlater");
    await new Promise((resolve) => socket.on("close", resolve).resume());
  }
});

test("a body of which a part was read, and which is written, is replaced", async (context) => {
  const replacing = guest("replacing", {
    data,
    readsBody: true,
    request: `(drop (call $read_body (i32.const 0) (i32.const 1024) (i32.const 4))) ${writeBody(0)} ${next}`,
  });
  const { port, seen } = await start(context, [replacing], request({ request: "replacing" }));
  const body = "x".repeat(300_000);
  assert.equal((await ask(port, "/", { method: "POST", body })).status, 200);
  assert.equal(seen[0]!.body, "new body");
  assert.equal(seen[0]!.fields["content-length"], "8");
});

test("a body that is larger than the route allows is 413, also in the rest that a guest has not read", async (context) => {
  const peeking = guest("peeking", {
    data,
    readsBody: true,
    request: `(drop (call $read_body (i32.const 0) (i32.const 1024) (i32.const 4))) ${next}`,
  });
  const { port } = await start(context, [peeking], {
    ...request({ request: "peeking" }),
    bodyBytesMax: 1_000,
  });
  const chunk = "x".repeat(600);
  const head =
    "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
  const text = await sendRaw(
    port,
    `${head}258\r\n${chunk}\r\n258\r\n${chunk}\r\n258\r\n${chunk}\r\n0\r\n\r\n`,
  );
  assert.match(text, /^HTTP\/1.1 413 /);
});

test("a guest that grows with each call is replaced before it fails", async (context) => {
  const growing = guest("growing", {
    data,
    request: `(if (i32.eq (memory.grow (i32.const 40)) (i32.const -1)) (then unreachable)) ${next}`,
  });
  const { port } = await start(context, [growing], request({ request: "growing" }));
  for (let count = 0; count < 20; count++) assert.equal((await ask(port, "/")).status, 200);
});
