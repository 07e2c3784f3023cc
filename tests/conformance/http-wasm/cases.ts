// The functions and rules of https://http-wasm.io/http-handler-abi/, section by section, with a case for each.
import type { Case, Expected, Scene } from "./case.ts";

const requestOf = (scene: Partial<Scene> | string): Partial<Scene> =>
  typeof scene === "string" ? { script: scene } : scene;

const one = (
  section: string,
  rule: string,
  scene: Partial<Scene> | string,
  expected: Expected | string | RegExp,
): Case => ({
  section,
  rule,
  scene: requestOf(scene),
  expected:
    typeof expected === "string" || expected instanceof RegExp ? { out: expected } : expected,
});

const own = (...args: Parameters<typeof one>): Case => ({ ...one(...args), isOwn: true });

const lifecycle: Case[] = [
  one(
    "ctx_next",
    "1 proceeds, without a context",
    { script: "next 0", late: "context" },
    {
      out: "next=|context=0|",
      status: 201,
      body: "upstream body",
      upstream: { method: "GET" },
    },
  ),
  one(
    "ctx_next",
    "the upper 32 bits are passed to handle_response",
    { script: "next 16", late: "context" },
    "next=|context=16|",
  ),
  one(
    "ctx_next",
    "all 32 bits of the context are passed",
    { script: "next 4294967295", late: "context" },
    "next=|context=4294967295|",
  ),
  one("ctx_next", "0 does not proceed, and handle_response is not called", "answer 0", {
    out: "answer=|",
    upstream: null,
  }),
  one("ctx_next", "a context without next is ignored", "answer 16", {
    out: "answer=|",
    upstream: null,
  }),
  own("ctx_next", "another value of next ends the guest", "raw 7", { traps: true }),
  one("handle_request", "next=0 without a response is an empty 200", "answer 0", {
    status: 200,
    body: "",
  }),
  one(
    "handle_request",
    "next=0 with a response sends it",
    "set_status 403|set 1 X-One 1|write 1 denied|answer 0",
    { status: 403, body: "denied", fields: { "x-one": ["1"] }, upstream: null },
  ),
  one(
    "handle_request",
    "fields of the response that are set before next=1 are sent",
    "set 1 X-One 1|next 0",
    { status: 201, fields: { "x-one": ["1"] } },
  ),
  one(
    "handle_response",
    "isError is 0 for a response of the next handler",
    { late: "error" },
    "error=0|",
  ),
  one(
    "handle_response",
    "isError is 1 if the next handler failed, and the context is passed",
    { script: "next 9", late: "error|context", isAlone: true },
    { out: "next=|error=1|context=9|", status: 502 },
  ),
];

/** Functions with `buf` and `buf_limit`, and their value. */
const readers: [name: string, value: string][] = [
  ["config", "enabled=1?"],
  ["method", "GET"],
  ["uri", "/a?b"],
  ["version", "HTTP/1.1"],
];
const memory: Case[] = readers.flatMap(([name, value]) => {
  const { length } = value;
  const untouched = (limit: number) => "#".repeat(limit + 2);
  const read = (limit: number, result: string) =>
    one(
      "buf_limit",
      `${name}: a limit of ${limit} for ${length} bytes`,
      { target: "/a?b", script: `${name} ${limit}|answer 0` },
      `${name}=${length}[${result}]|answer=|`,
    );
  return [
    read(length + 8, `${value}${untouched(8)}`),
    read(length, `${value}##`),
    read(length - 1, untouched(length - 1)),
    read(0, untouched(0)),
  ];
});
const grown: Case[] = [
  one(
    "memory",
    "memory that has grown is written",
    "grow 2|method 8|names 3 8|values 0 x-script 3|answer 0",
    /^grow=y\|method=3\[GET#######\]\|names=0:0\[##########\]\|values=1:\d+\[#####\]\|answer=\|$/,
  ),
  one(
    "memory",
    "a limit of 0 writes nowhere, whatever the address",
    "outside 0|answer 0",
    "outside=3|answer=|",
  ),
  one("memory", "a value outside of the memory traps", "outside 64|answer 0", { traps: true }),
];

const administration: Case[] = [
  one(
    "get_config",
    "the configuration is written as it is",
    "config 12|answer 0",
    "config=10[enabled=1?####]|answer=|",
  ),
  one(
    "enable_features",
    "the result has all features of the host, whatever is asked for",
    "features 0|features 1|features 2|features 4|features 7|answer 0",
    "features=3|features=3|features=3|features=3|features=3|answer=|",
  ),
  one(
    "enable_features",
    "buffer_response lets handle_response read the body, and change the response",
    { script: "features 2|next 0", late: "read 1 32|set_status 299|write 1 changed" },
    { out: /read=1:13\[upstream body#+\]/, status: 299, body: "changed" },
  ),
  one(
    "enable_features",
    "a feature of a request is that of this request only",
    { late: "read 1 32" },
    { out: /read=1:0\[#+\]/, status: 201, body: "upstream body" },
  ),
  one(
    "features",
    "buffer_request keeps a body that was read for the next handler",
    { method: "POST", body: "hello", script: "features 1|read 0 16|next 0" },
    { out: /read=1:5\[hello#+\]/, upstream: { body: "hello" } },
  ),
  one(
    "trailers",
    "there are no names and no values",
    { script: "names 2 8|values 2 X-A 8", late: "names 3 8|values 3 X-A 8" },
    /^names=0:0\[#+\]\|values=0:0\[#+\]\|names=0:0\[#+\]\|values=0:0\[#+\]\|$/,
  ),
  one("trailers", "setting one of a request traps", "set 2 X-A 1|answer 0", { traps: true }),
  one("trailers", "adding one of a request traps", "add 2 X-A 1|answer 0", { traps: true }),
  one("trailers", "setting one of a response traps", { late: "set 3 X-A 1" }, { traps: true }),
];

const logging: Case[] = [
  one(
    "log",
    "lines have the level of the call; none is no level",
    "log 0 one%20line|log 1 two|log 2 three|log 3 none|answer 0",
    { out: "log=|log=|log=|log=|answer=|", lines: ["0 one line", "1 two", "2 three"] },
  ),
  one(
    "log_enabled",
    "1 for the levels that are logged",
    "enabled -1|enabled 0|enabled 1|enabled 2|enabled 3|answer 0",
    "enabled=0|enabled=1|enabled=1|enabled=1|enabled=0|answer=|",
  ),
];

const multi: [string, string][] = [
  ["X-Multi", "one"],
  ["x-other", "1"],
  ["X-MULTI", "two"],
];
const fields: Case[] = [
  one(
    "get_header_names",
    "each name once, in lower case, terminated by NUL",
    { fields: multi, script: "names 0 90|answer 0" },
    {
      out: ({ out }) =>
        checkTexts(out, "names", (texts) => {
          const wanted = ["x-multi", "x-other", "x-script"];
          const isUnique = new Set(texts).size === texts.length;
          const isLower = texts.every((text) => text === text.toLowerCase());
          return isUnique && isLower && wanted.every((name) => texts.includes(name));
        }),
    },
  ),
  one(
    "get_header_names",
    "those of a response",
    { late: "names 1 90" },
    {
      out: ({ out }) =>
        checkTexts(
          out,
          "names",
          (texts) => texts.filter((text) => text === "set-cookie").length === 1,
        ),
    },
  ),
  one(
    "get_header_names",
    "without room nothing is written, and the result is the same",
    { fields: multi, script: "names 0 90|names 0 4|names 0 0|answer 0" },
    {
      out: ({ out }) => {
        const pairs = [...out.matchAll(/names=(\d+:\d+)\[(#*)/g)];
        const isSame = new Set(pairs.map(([, pair]) => pair)).size === 1;
        const isUntouched = out.includes("[######]|names") && out.includes("[##]|answer");
        return isSame && isUntouched && pairs.length === 3 ? out : "the same pair three times";
      },
    },
  ),
  one(
    "get_header_values",
    "one value, in any case of the name",
    {
      fields: [["Single", "value"]],
      script: "values 0 single 8|values 0 SINGLE 8|values 0 Single 6|answer 0",
    },
    "values=1:6[value.####]|values=1:6[value.####]|values=1:6[value.##]|answer=|",
  ),
  one(
    "get_header_values",
    "the values of all lines",
    { fields: multi, script: "values 0 x-multi 10|answer 0" },
    "values=2:8[one.two.####]|answer=|",
  ),
  one(
    "get_header_values",
    "those of a response",
    { late: "values 1 SET-cookie 10" },
    "values=2:8[a=b.c=d.####]|",
  ),
  one(
    "get_header_values",
    "without room nothing is written, and the result is the same",
    { fields: multi, script: "values 0 x-multi 7|values 0 x-multi 0|answer 0" },
    "values=2:8[#########]|values=2:8[##]|answer=|",
  ),
  one(
    "get_header_values",
    "0 for a field that is not there, 1<<32|1 for one that is empty",
    { fields: [["X-Empty", ""]], script: "values 0 x-none 4|values 0 x-empty 4|answer 0" },
    "values=0:0[######]|values=1:1[.#####]|answer=|",
  ),
  one("set_header_value", "a new field of the request", "set 0 X-New value|next 0", {
    upstream: { fields: { "x-new": ["value"] } },
  }),
  one(
    "set_header_value",
    "all values of the request are replaced, in any case of the name",
    { fields: multi, script: "set 0 x-mULTI three|values 0 x-multi 8|next 0" },
    {
      out: "set=|values=1:6[three.####]|next=|",
      upstream: { fields: { "x-multi": ["three"], "x-other": ["1"] } },
    },
  ),
  one(
    "set_header_value",
    "all values of the response are replaced",
    { late: "set 1 set-cookie e=f" },
    { fields: { "set-cookie": ["e=f"] } },
  ),
  one("set_header_value", "an empty value", "set 0 X-New|next 0", {
    upstream: { fields: { "x-new": [""] } },
  }),
  one(
    "add_header_value",
    "to a new field and to one that is there",
    { fields: [["X-Old", "bear"]], script: "add 0 X-New a|add 0 X-NEW b|add 0 x-old value|next 0" },
    { upstream: { fields: { "x-new": ["a", "b"], "x-old": ["bear", "value"] } } },
  ),
  one(
    "add_header_value",
    "to a field of the response",
    { late: "add 1 Set-Cookie e=f" },
    { fields: { "set-cookie": ["a=b", "c=d", "e=f"] } },
  ),
  one(
    "remove_header",
    "all values, in any case of the name; a field that is not there is no fault",
    { fields: multi, script: "remove 0 x-Multi|remove 0 x-none|values 0 x-multi 0|next 0" },
    {
      out: "remove=|remove=|values=0:0[##]|next=|",
      upstream: { fields: { "x-multi": [], "x-other": ["1"] } },
    },
  ),
  one(
    "remove_header",
    "of the response",
    { late: "remove 1 set-cookie" },
    { fields: { "set-cookie": [] } },
  ),
  one(
    "count_len",
    "the empty sequence is 0",
    "values 0 x-none 0|answer 0",
    "values=0:0[##]|answer=|",
  ),
  own("set_header_value", "a line break in a value traps", "set 0 X-A a%0D%0AX-B:%201|next 0", {
    traps: true,
  }),
  own("set_header_value", "a name that is no token traps", "set 0 X%20A 1|next 0", { traps: true }),
  own(
    "set_header_value",
    "a request that has been sent cannot be changed",
    { late: "set 0 X-A 1" },
    { traps: true },
  ),
];

const post = (body: string, script: string, late = ""): Partial<Scene> => ({
  method: "POST",
  body,
  script,
  late,
});
const bodies: Case[] = [
  one(
    "read_body",
    "pieces up to the limit, the end with the last one, and again after it",
    post("hello world", "read 0 5|read 0 7|read 0 7|answer 0"),
    "read=0:5[hello##]|read=1:6[ world###]|read=1:0[#########]|answer=|",
  ),
  one(
    "read_body",
    "the end is known when the limit is the length",
    post("hello", "read 0 5|answer 0"),
    "read=1:5[hello##]|answer=|",
  ),
  one("read_body", "an empty body ends at once", post("", "read 0 4|answer 0"), {
    out: "read=1:0[######]|answer=|",
  }),
  one("read_body", "a request without a body ends at once", "read 0 4|answer 0", {
    out: "read=1:0[######]|answer=|",
  }),
  one("read_body", "a limit of 0 traps", post("hello", "read 0 0|answer 0"), { traps: true }),
  one(
    "read_body",
    "a body need not be read to its end",
    post("x".repeat(5_000), "features 1|read 0 6|next 0"),
    { out: "features=3|read=0:6[xxxxxx##]|next=|", upstream: { body: "x".repeat(5_000) } },
  ),
  one(
    "read_body",
    "a limit that is larger than the body",
    post("a".repeat(5_000), "features 1|read 0 8000|next 0"),
    { out: /read=1:5000\[a{96}\]/, upstream: { body: "a".repeat(5_000) } },
  ),
  one(
    "read_body",
    "the body of a response, with buffer_response",
    { script: "features 2|next 0", late: "read 1 8|read 1 8|read 1 8" },
    /read=0:8\[upstream##\]\|read=1:5\[ body#####\]\|read=1:0\[#+\]\|$/,
  ),
  one(
    "write_body",
    "the first call replaces the body of the request, further ones append",
    post("before", "write 0 new|write 0 er|next 0"),
    { upstream: { body: "newer" } },
  ),
  one(
    "write_body",
    "a request that had no body gets one",
    {
      method: "POST",
      script: "write 0 new|next 0",
    },
    { upstream: { body: "new" } },
  ),
  one(
    "write_body",
    "a body that was read is replaced",
    post("before", "features 1|read 0 3|write 0 after|next 0"),
    { upstream: { body: "after" } },
  ),
  one(
    "write_body",
    "the first call in handle_response replaces the body of the response",
    { script: "features 2|next 0", late: "write 1 new|write 1 er" },
    { status: 201, body: "newer" },
  ),
  one("write_body", "no bytes are an empty body", post("before", "fill 0 0|next 0"), {
    upstream: { body: "" },
  }),
  one("write_body", "a large body", post("", "fill 0 8000|fill 0 8000|next 0"), {
    upstream: { body: "#".repeat(16_000) },
  }),
];

const methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"];
const targets = [
  "/",
  "/simple",
  "/simple%26clean",
  "/animal?name=panda",
  "/disney?name=chip%26dale",
];
const escape = (text: string): string => text.replaceAll("%", "%25");
const requestLine: Case[] = [
  ...methods.map((method) =>
    one(
      "get_method",
      method,
      { method, script: "method 8|answer 0" },
      `method=${method.length}[${method.padEnd(10, "#")}]|answer=|`,
    ),
  ),
  one(
    "set_method",
    "the upstream gets the new one, and so does get_method",
    "set_method POST|method 6|next 0",
    { out: "set_method=|method=4[POST####]|next=|", upstream: { method: "POST" } },
  ),
  own("set_method", "a method that is no token traps", "set_method G%20T|next 0", { traps: true }),
  ...targets.map((target) =>
    one(
      "get_uri",
      `path and query as they are encoded: ${target}`,
      { target, script: "uri 40|answer 0" },
      `uri=${target.length}[${target.padEnd(42, "#")}]|answer=|`,
    ),
  ),
  one(
    "get_uri",
    "other characters than those of ASCII are encoded",
    { target: "/caf%C3%A9?q=kung+fu%20panda", script: "uri 30|answer 0" },
    "uri=28[/caf%C3%A9?q=kung+fu%20panda####]|answer=|",
  ),
  ...targets.map((target) =>
    one(
      "set_uri",
      `the upstream gets it as it is encoded: ${target}`,
      { target: "/before?query=1", script: `set_uri ${escape(target)}|uri 40|next 0` },
      {
        out: `set_uri=|uri=${target.length}[${target.padEnd(42, "#")}]|next=|`,
        upstream: { target },
      },
    ),
  ),
  one(
    "set_uri",
    "parameters of the query that were there are removed",
    { target: "/before?query=1", script: "set_uri /a|next 0" },
    { upstream: { target: "/a" } },
  ),
  one(
    "set_uri",
    "an empty URI is /",
    { target: "/before?query=1", script: "set_uri|uri 4|next 0" },
    { out: "set_uri=|uri=1[/#####]|next=|", upstream: { target: "/" } },
  ),
  own("set_uri", "a line break traps", "set_uri /a%0D%0AX:%201|next 0", { traps: true }),
  own("set_uri", "a path that climbs ends the guest", "set_uri /../a|next 0", { traps: true }),
  one(
    "get_protocol_version",
    "HTTP/1.1",
    "version 10|answer 0",
    "version=8[HTTP/1.1####]|answer=|",
  ),
  one("get_source_addr", "address and port of the client", "source 24|answer 0", {
    out: ({ client }) => `source=${client.length}[${client.padEnd(26, "#")}]|answer=|`,
  }),
  one("get_source_addr", "without room nothing is written", "source 3|answer 0", {
    out: ({ client }) => `source=${client.length}[#####]|answer=|`,
  }),
];

const response: Case[] = [
  one("get_status_code", "that of the next handler", { late: "status" }, "status=201|"),
  one(
    "set_status_code",
    "replaces it, and get_status_code sees it",
    { script: "features 2|next 0", late: "set_status 404|status" },
    { out: "features=3|next=|set_status=|status=404|", status: 404, body: "upstream body" },
  ),
  own("set_status_code", "a status that is none traps", { late: "set_status 99" }, { traps: true }),
];

/** All cases, in the order of the page. */
export const cases: readonly Case[] = [
  ...lifecycle,
  ...memory,
  ...grown,
  ...administration,
  ...logging,
  ...fields,
  ...bodies,
  ...requestLine,
  ...response,
];

/** Headings of the page that define a function or a rule. */
export const SECTIONS: readonly string[] = [
  "ctx_next handle_request handle_response memory buf_limit get_config features enable_features trailers",
  "log log_enabled count_len get_header_names get_header_values set_header_value add_header_value",
  "remove_header read_body write_body get_method set_method get_uri set_uri get_protocol_version",
  "get_source_addr get_status_code set_status_code",
].flatMap((line) => line.split(" "));

/** `out` if the texts of a call are as they must be, and their number and length are those of the result. */
function checkTexts(out: string, call: string, accept: (texts: string[]) => boolean): string {
  const [, count, length, shown = ""] =
    new RegExp(`${call}=(\\d+):(\\d+)\\[(.*)\\]`).exec(out) ?? [];
  const texts = shown.slice(0, Number(length)).split(".");
  const isTerminated = texts.pop() === "";
  const isCounted = texts.length === Number(count) && shown.slice(Number(length)).startsWith("##");
  return isTerminated && isCounted && accept(texts) ? out : `other texts than ${texts.join(", ")}`;
}
