// The rules of RFC 9111 for a shared cache, with the extensions of RFC 5861, by section.
import assert from "node:assert/strict";
import type { OutgoingHttpHeaders } from "node:http";
import type { Case, Scripted } from "./case.ts";

const control = (value: string, more: OutgoingHttpHeaders = {}): Scripted => ({
  headers: { "Cache-Control": value, ...more },
});
const past = new Date(Date.now() - 3_600_000).toUTCString();
const future = new Date(Date.now() + 3_600_000).toUTCString();
const modified = new Date(Date.now() - 86_400_000).toUTCString();

const DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");

/** `Sunday, 06-Nov-94 08:49:37 GMT`. */
function toRfc850(date: Date): string {
  const [, day, month, year = "", time] = date.toUTCString().split(" ");
  return `${DAYS[date.getUTCDay()]}, ${day}-${month}-${year.slice(2)} ${time} GMT`;
}

/** `Sun Nov  6 08:49:37 1994`. */
function toAsctime(date: Date): string {
  const [, day = "", month, year, time] = date.toUTCString().split(" ");
  const short = DAYS[date.getUTCDay()]!.slice(0, 3);
  return `${short} ${month} ${day.replace(/^0/, " ")} ${time} ${year}`;
}

/** A case that asks twice and expects the second response from the store, or from the upstream. */
function second(
  rule: string,
  title: string,
  scripted: Scripted,
  expected: "HIT" | "MISS",
  headers: OutgoingHttpHeaders = {},
): Case {
  return {
    rule,
    title,
    run: async (scene) => {
      scene.play(scripted);
      await scene.expectSecond(expected, headers);
      assert.equal(scene.received.length, expected === "HIT" ? 1 : 2);
    },
  };
}

export const cases: readonly Case[] = [
  // Section 3: storing responses.
  second("3.1", "a response with an explicit lifetime is stored", control("max-age=60"), "HIT"),
  second("3.2", "a 200 without a lifetime is stored for the route's time", {}, "HIT"),
  second("3.3", "a 404 without a lifetime is stored for the route's time", { status: 404 }, "HIT"),
  second("3.4", "a 500 without a lifetime is not stored", { status: 500 }, "MISS"),
  second("3.5", "a 302 without a lifetime is not stored", { status: 302 }, "MISS"),
  second(
    "3.6",
    "a 302 with a lifetime is stored",
    { status: 302, headers: { "Cache-Control": "max-age=60", Location: "/x" } },
    "HIT",
  ),
  second("3.7", "no-store forbids storing", control("no-store, max-age=60"), "MISS"),
  second("3.8", "private forbids storing", control("private, max-age=60"), "MISS"),
  second("3.9", "private with a field name forbids storing", control('private="x-a"'), "MISS"),
  second("3.10", "no-store in a request forbids storing", control("max-age=60"), "MISS", {
    "Cache-Control": "no-store",
  }),
  second(
    "3.11",
    "must-understand overrides no-store",
    control("must-understand, no-store, max-age=60"),
    "HIT",
  ),
  second(
    "3.11a",
    "must-understand forbids storing a status that is not understood",
    { status: 299, ...control("must-understand, max-age=60") },
    "MISS",
  ),
  second(
    "3.11b",
    "must-understand and no-store forbid storing a status that is not understood",
    { status: 599, ...control("must-understand, no-store, max-age=60") },
    "MISS",
  ),
  second(
    "3.11c",
    "a status that is not understood is stored by its lifetime",
    { status: 299, ...control("max-age=60") },
    "HIT",
  ),
  second("3.12", "Vary: * forbids storing", control("max-age=60", { Vary: "*" }), "MISS"),
  second(
    "3.13",
    "a response that sets a cookie is not stored",
    control("public, max-age=60", { "Set-Cookie": "a=b" }),
    "MISS",
  ),
  second("3.14", "directives are matched without regard to case", control("NO-STORE"), "MISS"),
  second(
    "3.15",
    "an event stream is not stored",
    { headers: { "Content-Type": "text/event-stream" } },
    "MISS",
  ),
  {
    rule: "3.16",
    title: "a response to POST is not stored",
    run: async (scene) => {
      scene.play(control("max-age=60"));
      await scene.ask({}, "POST", "x");
      const { headers } = await scene.ask();
      assert.equal(headers["x-cache"], "MISS");
    },
  },
  {
    rule: "3.17",
    title: "a response that breaks off is not stored",
    run: async (scene) => {
      scene.play({ breaks: true }, control("max-age=60"));
      assert.equal((await scene.ask({}, "POST")).status, 502);
      scene.play({
        headers: { "Content-Length": "6", "Cache-Control": "max-age=60" },
        body: "whole!",
      });
      await scene.expectSecond("HIT");
    },
  },
  {
    rule: "3.18",
    title: "a 206 is not stored as a whole response",
    run: async (scene) => {
      scene.play(
        { status: 206, headers: { "Content-Range": "bytes 0-1/9" }, body: "ab" },
        { body: "abcdefghi" },
      );
      assert.equal((await scene.ask({ Range: "bytes=0-1" })).status, 206);
      assert.equal((await scene.ask()).body, "abcdefghi");
    },
  },
  {
    rule: "3.19",
    title: "statuses of a condition or a range are not stored, whatever their lifetime",
    run: async (scene) => {
      const refused = [412, 416].map((status) => ({ status, ...control("public, max-age=60") }));
      scene.play(...refused, {});
      assert.equal((await scene.ask({ "If-Match": '"x"' })).status, 412);
      assert.equal((await scene.ask({ Range: "bytes=99-" })).status, 416);
      assert.equal((await scene.ask()).status, 200);
    },
  },
  {
    rule: "3.20",
    title: "a response to a GET with content, which no key contains, is not stored",
    run: async (scene) => {
      scene.play(control("max-age=60"));
      await scene.ask({ "Transfer-Encoding": "chunked" }, "GET", "x");
      await scene.ask({ "Content-Length": 1 }, "GET", "x");
      assert.equal((await scene.ask()).headers["x-cache"], "MISS");
    },
  },
  // Section 3.5: authenticated requests.
  second(
    "3.5.1",
    "a response to a request with Authorization is not stored",
    control("max-age=60"),
    "MISS",
    {
      Authorization: "Basic YTpi",
    },
  ),
  second(
    "3.5.2",
    "public allows storing a response to a request with Authorization",
    control("public, max-age=60"),
    "HIT",
    {
      Authorization: "Basic YTpi",
    },
  ),
  second("3.5.3", "s-maxage allows it", control("s-maxage=60"), "HIT", {
    Authorization: "Basic YTpi",
  }),
  second("3.5.4", "must-revalidate allows it", control("must-revalidate, max-age=60"), "HIT", {
    Authorization: "Basic YTpi",
  }),
  {
    rule: "3.5.5",
    title: "a response without such a directive is not used for a request with Authorization",
    run: async (scene) => {
      scene.play(control("max-age=60"));
      await scene.expectSecond("MISS", { Authorization: "Basic YTpi" }, {});
    },
  },
  // Section 4: constructing responses.
  {
    rule: "4.1",
    title: "a stored response carries its Age, its Date and its fields",
    run: async (scene) => {
      scene.play({ ...control("max-age=60", { "X-A": "1" }), ageSeconds: 5 });
      const { headers, body } = await scene.expectSecond("HIT");
      assert.ok(Number(headers.age) >= 5, String(headers.age));
      assert.equal(headers["x-a"], "1");
      assert.ok(Date.now() - Date.parse(headers.date!) >= 4_000);
      assert.equal(body, "body 1");
    },
  },
  {
    rule: "4.2",
    title: "a response is used for its query only",
    run: async (scene) => {
      scene.play(control("max-age=60"));
      await scene.expectSecond("HIT");
      const other = scene.withQuery("a=1");
      other.play(control("max-age=60"));
      assert.equal((await other.ask()).headers["x-cache"], "MISS");
    },
  },
  {
    rule: "4.3",
    title: "HEAD is answered with a stored response to GET",
    run: async (scene) => {
      scene.play({ ...control("max-age=60"), body: "four" });
      await scene.ask();
      const { headers, body } = await scene.ask({}, "HEAD");
      assert.deepEqual([headers["x-cache"], headers["content-length"], body], ["HIT", "4", ""]);
      assert.equal(scene.received.length, 1);
    },
  },
  {
    rule: "4.4",
    title: "a response to HEAD does not answer GET",
    run: async (scene) => {
      scene.play({ ...control("max-age=60"), body: "four" });
      await scene.ask({}, "HEAD");
      assert.equal((await scene.ask()).body, "four");
    },
  },
  // Section 4.1: Vary.
  {
    rule: "4.1.1",
    title: "a variant is used only for requests with the same selecting fields",
    run: async (scene) => {
      scene.play(control("max-age=60", { Vary: "Accept-Language" }));
      await scene.ask({ "Accept-Language": "en" });
      assert.equal((await scene.ask({ "Accept-Language": "de" })).headers["x-cache"], "MISS");
      assert.equal((await scene.ask({ "Accept-Language": "en" })).headers["x-cache"], "HIT");
      assert.equal((await scene.ask({ "Accept-Language": "de" })).body, "body 2");
      assert.equal((await scene.ask()).headers["x-cache"], "MISS");
    },
  },
  {
    rule: "4.1.2",
    title: "several fields select a variant, in any order of Vary",
    run: async (scene) => {
      const one = control("max-age=60", { Vary: "X-A, X-B" });
      const other = control("max-age=60", { Vary: "x-b,x-a" });
      scene.play(one, other);
      await scene.ask({ "X-A": "1", "X-B": "2" });
      await scene.ask({ "X-A": "2", "X-B": "1" });
      assert.equal((await scene.ask({ "X-A": "1", "X-B": "2" })).body, "body 1");
      assert.equal((await scene.ask({ "X-A": "2", "X-B": "1" })).body, "body 2");
    },
  },
  {
    rule: "4.1.3",
    title: "a selecting field cannot complete the address of another resource",
    run: async (scene) => {
      const varied = control("max-age=60", { Vary: "Accept-Language" });
      const [short, long] = [scene.withQuery("a"), scene.withQuery("ab")];
      for (const each of [short, long]) each.play({ ...varied, body: each.path });
      await long.ask({ "Accept-Language": "de" });
      await short.ask({ "Accept-Language": "ben" });
      assert.equal((await long.ask({ "Accept-Language": "en" })).body, long.path);
    },
  },
  {
    rule: "4.1.4",
    title: "a variant is selected by the fields that its own response names",
    run: async (scene) => {
      scene.play(
        control("max-age=60", { Vary: "X-A" }),
        control("max-age=60", { Vary: "X-B" }),
        control("max-age=60", { Vary: "X-B" }),
      );
      await scene.ask({ "X-A": "1" });
      await scene.ask({ "X-B": "2" });
      assert.equal((await scene.ask({ "X-B": "1" })).headers["x-cache"], "MISS");
    },
  },
  {
    rule: "4.1.5",
    title: "an absent selecting field does not match an empty one",
    run: async (scene) => {
      scene.play(control("max-age=60", { Vary: "X-A" }));
      await scene.ask({ "X-A": "" });
      assert.equal((await scene.ask()).headers["x-cache"], "MISS");
    },
  },
  {
    rule: "4.1.7",
    title: "a selecting field that Connection names is absent, as it is for the upstream",
    run: async (scene) => {
      scene.play(control("max-age=60", { Vary: "Accept-Language" }));
      const headers = { "Accept-Language": "en" };
      await scene.ask({ ...headers, Connection: "close, Accept-Language" });
      assert.equal(scene.received[0]!.headers["accept-language"], undefined);
      assert.equal((await scene.ask(headers)).headers["x-cache"], "MISS");
    },
  },
  {
    rule: "4.1.8",
    title: "a selecting field with underscores belongs to the one with hyphens",
    run: async (scene) => {
      scene.play(control("max-age=60", { Vary: "Accept-Language" }));
      await scene.ask({ "Accept-Language": "en", Accept_Language: "de" });
      assert.equal((await scene.ask({ "Accept-Language": "en" })).headers["x-cache"], "MISS");
    },
  },
  second(
    "4.1.6",
    "a response that depends on the client's address is not stored",
    control("max-age=60", { Vary: "Accept-Encoding, X-Forwarded-For" }),
    "MISS",
  ),
  // Section 4.2: freshness.
  second(
    "4.2.1",
    "max-age=0 is not used without revalidation",
    control("max-age=0", { ETag: '"a"' }),
    "MISS",
  ),
  second("4.2.2", "s-maxage overrides max-age", control("max-age=0, s-maxage=60"), "HIT"),
  second("4.2.3", "max-age overrides Expires", control("max-age=60", { Expires: past }), "HIT"),
  second(
    "4.2.4",
    "Expires in the future keeps a response fresh",
    { headers: { Expires: future } },
    "HIT",
  ),
  second("4.2.5", "Expires in the past makes it stale", { headers: { Expires: past } }, "MISS"),
  second("4.2.6", "an invalid Expires makes it stale", { headers: { Expires: "0" } }, "MISS"),
  second("4.2.7", "an invalid max-age makes it stale", control("max-age=x"), "MISS"),
  ...[
    "Thu, 99 Aug 2099 02:01:18 GMT",
    "Thu, 18 Aug 2099 2:01:18 GMT",
    "Thu 18 Aug 2099 02:01:18 GMT",
    "Thu, 18 Aug 2099 02:01:18 UTC",
    "Thu, 18-Aug-2099 02:01:18 GMT",
    "Thu, 18  Aug  2099 02:01:18 GMT",
    "2099-08-18",
    "4090000000",
  ].map((value, index) =>
    second(`4.2.7.${index + 1}`, `no date: ${value}`, { headers: { Expires: value } }, "MISS"),
  ),
  second(
    "4.2.7a",
    "a date of RFC 850 is read",
    { headers: { Expires: toRfc850(new Date(Date.now() + 3_600_000)) } },
    "HIT",
  ),
  second(
    "4.2.7b",
    "a date of asctime is read, in UTC",
    { headers: { Expires: toAsctime(new Date(Date.now() + 600_000)) } },
    "HIT",
  ),
  second(
    "4.2.7c",
    "a past date of asctime is the past",
    { headers: { Expires: toAsctime(new Date(Date.now() - 600_000)) } },
    "MISS",
  ),
  second("4.2.8", "the first of two max-age counts", control("max-age=60, max-age=0"), "HIT"),
  second(
    "4.2.9",
    "the age of its Date counts",
    { ...control("max-age=60"), ageSeconds: 100 },
    "MISS",
  ),
  second(
    "4.2.10",
    "the Age that it came with counts",
    control("max-age=60", { Age: "100" }),
    "MISS",
  ),
  second(
    "4.2.11",
    "an Age that is no number is ignored",
    control("max-age=60", { Age: "old" }),
    "HIT",
  ),
  second("4.2.12", "a quoted argument is understood", control('max-age="60"'), "HIT"),
  // Section 4.3: validation.
  {
    rule: "4.3.1",
    title: "a stale response is revalidated with its ETag, and confirmed by 304",
    run: async (scene) => {
      scene.play(
        { ...control("max-age=0", { ETag: '"v1"', "X-Kept": "1" }), body: "kept" },
        { status: 304, headers: { ETag: '"v1"', "Cache-Control": "max-age=60", "X-New": "2" } },
      );
      const { status, body, headers } = await scene.expectSecond("HIT");
      assert.deepEqual(
        [status, body, headers["x-kept"], headers["x-new"]],
        [200, "kept", "1", "2"],
      );
      assert.equal(scene.received[1]!.headers["if-none-match"], '"v1"');
      assert.equal((await scene.ask()).headers["x-cache"], "HIT");
      assert.equal(scene.received.length, 2);
    },
  },
  {
    rule: "4.3.2",
    title: "it is revalidated with Last-Modified",
    run: async (scene) => {
      scene.play(control("max-age=0", { "Last-Modified": modified }), { status: 304 });
      assert.equal((await scene.expectSecond("HIT")).body, "body 1");
      assert.equal(scene.received[1]!.headers["if-modified-since"], modified);
    },
  },
  {
    rule: "4.3.3",
    title: "a 200 replaces the stored response",
    run: async (scene) => {
      scene.play(control("max-age=0", { ETag: '"v1"' }), control("max-age=60", { ETag: '"v2"' }));
      assert.equal((await scene.expectSecond("MISS")).body, "body 2");
      assert.equal((await scene.ask()).body, "body 2");
      assert.equal(scene.received.length, 2);
    },
  },
  {
    rule: "4.3.4",
    title: "a condition of the client is answered with 304 from the store",
    run: async (scene) => {
      scene.play(control("max-age=60", { ETag: '"v1"' }));
      const { status, body, headers } = await scene.expectSecond(
        "HIT",
        { "If-None-Match": 'W/"v1", "v0"' },
        {},
      );
      assert.deepEqual([status, body, headers.etag, scene.received.length], [304, "", '"v1"', 1]);
    },
  },
  {
    rule: "4.3.5",
    title: "If-None-Match overrides If-Modified-Since",
    run: async (scene) => {
      scene.play(control("max-age=60", { ETag: '"v1"', "Last-Modified": modified }));
      await scene.ask();
      const other = { "If-None-Match": '"v9"', "If-Modified-Since": modified };
      assert.equal((await scene.ask(other)).status, 200);
      assert.equal((await scene.ask({ "If-Modified-Since": modified })).status, 304);
    },
  },
  {
    rule: "4.3.6",
    title:
      "the client's own condition does not reach the upstream when a stored response is revalidated",
    run: async (scene) => {
      scene.play(control("max-age=0", { ETag: '"v1"' }), {
        status: 304,
        headers: { ETag: '"v1"' },
      });
      const { status } = await scene.expectSecond("HIT", { "If-None-Match": '"v0"' }, {});
      assert.equal(status, 200);
      assert.equal(scene.received[1]!.headers["if-none-match"], '"v1"');
    },
  },
  {
    rule: "4.3.7",
    title: "a 304 to a condition of the client passes if nothing is stored",
    run: async (scene) => {
      scene.play({ status: 304, headers: { ETag: '"v1"' } });
      assert.equal((await scene.ask({ "If-None-Match": '"v1"' })).status, 304);
    },
  },
  // Section 4.4: invalidation.
  ...(["POST", "PUT", "DELETE", "PATCH"] as const).map((method, index): Case => ({
    rule: `4.4.${index + 1}`,
    title: `a successful ${method} invalidates the stored responses of its resource`,
    run: async (scene) => {
      scene.play(control("max-age=60"));
      await scene.expectSecond("HIT");
      assert.equal((await scene.ask({}, method, "x")).status, 200);
      assert.equal((await scene.ask()).headers["x-cache"], "MISS");
    },
  })),
  {
    rule: "4.4.5",
    title: "all variants are invalidated",
    run: async (scene) => {
      scene.play(control("max-age=60", { Vary: "X-A" }));
      for (const value of ["1", "2"]) await scene.expectSecond("HIT", { "X-A": value });
      await scene.ask({}, "POST", "x");
      for (const value of ["1", "2"]) {
        assert.equal((await scene.ask({ "X-A": value })).headers["x-cache"], "MISS");
      }
    },
  },
  {
    rule: "4.4.6",
    title: "a refused POST does not invalidate",
    run: async (scene) => {
      scene.play(control("max-age=60"), { status: 403 });
      await scene.ask();
      await scene.ask({}, "POST", "x");
      assert.equal((await scene.ask()).headers["x-cache"], "HIT");
    },
  },
  {
    rule: "4.4.7",
    title: "OPTIONS does not invalidate",
    run: async (scene) => {
      scene.play(control("max-age=60"));
      await scene.ask();
      await scene.ask({}, "OPTIONS");
      assert.equal((await scene.ask()).headers["x-cache"], "HIT");
    },
  },
  // Section 5.2.1: directives of requests.
  ...(
    [
      ["5.2.1.1", "max-age=0 asks for revalidation", "max-age=0", "max-age=60", 5, "MISS"],
      ["5.2.1.2", "max-age allows younger responses", "max-age=30", "max-age=60", 5, "HIT"],
      [
        "5.2.1.3",
        "min-fresh asks for remaining freshness",
        "min-fresh=58",
        "max-age=60",
        5,
        "MISS",
      ],
      ["5.2.1.4", "min-fresh allows fresher responses", "min-fresh=10", "max-age=60", 5, "HIT"],
      ["5.2.1.5", "no-cache asks for revalidation", "no-cache", "max-age=60", 0, "MISS"],
      ["5.2.1.6", "max-stale allows stale responses", "max-stale", "max-age=1", 9, "STALE"],
      [
        "5.2.1.7",
        "max-stale allows them to be this stale",
        "max-stale=20",
        "max-age=1",
        9,
        "STALE",
      ],
      ["5.2.1.8", "but not longer", "max-stale=5", "max-age=1", 9, "MISS"],
      [
        "5.2.1.9",
        "must-revalidate overrides max-stale",
        "max-stale",
        "max-age=1, must-revalidate",
        9,
        "MISS",
      ],
      [
        "5.2.1.10",
        "proxy-revalidate overrides max-stale",
        "max-stale",
        "max-age=1, proxy-revalidate",
        9,
        "MISS",
      ],
    ] as const
  ).map(([rule, title, asked, stored, ageSeconds, expected]): Case => ({
    rule,
    title,
    run: async (scene) => {
      scene.play({ ...control(stored, { ETag: '"e"' }), ageSeconds });
      await scene.expectSecond(expected, { "Cache-Control": asked }, {});
    },
  })),
  {
    rule: "5.2.1.11",
    title: "only-if-cached gets 504 if nothing is stored, and the upstream is not asked",
    run: async (scene) => {
      scene.play(control("max-age=60"));
      const asked = { "Cache-Control": "only-if-cached" };
      assert.equal((await scene.ask(asked)).status, 504);
      assert.equal(scene.received.length, 0);
      await scene.ask();
      assert.equal((await scene.ask(asked)).headers["x-cache"], "HIT");
    },
  },
  {
    rule: "5.4.1",
    title: "Pragma: no-cache asks for revalidation if Cache-Control is absent",
    run: async (scene) => {
      scene.play(control("max-age=60"));
      await scene.expectSecond("MISS", { Pragma: "no-cache" }, {});
      assert.equal(
        (await scene.ask({ Pragma: "no-cache", "Cache-Control": "max-age=60" })).headers["x-cache"],
        "HIT",
      );
    },
  },
  // Section 5.2.2: directives of responses.
  {
    rule: "5.2.2.1",
    title: "no-cache is revalidated before each use",
    run: async (scene) => {
      scene.play(control("no-cache, max-age=60", { ETag: '"a"' }), {
        status: 304,
        headers: { "Cache-Control": "no-cache", ETag: '"a"' },
      });
      for (const count of [1, 2, 3]) {
        assert.equal((await scene.ask()).body, "body 1");
        assert.equal(scene.received.length, count);
      }
    },
  },
  // RFC 5861.
  {
    rule: "5861.1",
    title: "stale-if-error allows a stale response in place of a 503",
    run: async (scene) => {
      scene.play({ ...control("max-age=1, stale-if-error=60"), ageSeconds: 9 }, { status: 503 });
      const { status, body } = await scene.expectSecond("STALE");
      assert.deepEqual([status, body], [200, "body 1"]);
    },
  },
  {
    rule: "5861.2",
    title: "stale-if-error allows it in place of a failed connection",
    run: async (scene) => {
      scene.play({ ...control("max-age=1, stale-if-error=60"), ageSeconds: 9 }, { breaks: true });
      assert.equal((await scene.expectSecond("STALE")).body, "body 1");
    },
  },
  {
    rule: "5861.3",
    title: "beyond stale-if-error the error passes",
    run: async (scene) => {
      scene.play(
        { ...control("max-age=1, stale-if-error=2", { ETag: '"a"' }), ageSeconds: 9 },
        { status: 503 },
      );
      await scene.ask();
      assert.equal((await scene.ask()).status, 503);
    },
  },
  {
    rule: "5861.4",
    title: "must-revalidate overrides stale-if-error",
    run: async (scene) => {
      scene.play(
        {
          ...control("max-age=1, stale-if-error=60, must-revalidate", { ETag: '"a"' }),
          ageSeconds: 9,
        },
        { status: 503 },
      );
      await scene.ask();
      assert.equal((await scene.ask()).status, 503);
    },
  },
  {
    rule: "5861.5",
    title: "stale-while-revalidate: the client gets the stale response, and the next one the new",
    run: async (scene) => {
      scene.play(
        { ...control("max-age=1, stale-while-revalidate=60"), ageSeconds: 9 },
        control("max-age=60"),
      );
      assert.equal((await scene.expectSecond("STALE")).body, "body 1");
      await scene.untilHit("body 2");
      assert.equal(scene.received.length, 2);
    },
  },
  {
    rule: "5861.6",
    title: "stale-while-revalidate: a 304 makes the stored response fresh",
    run: async (scene) => {
      const headers = { ETag: '"a"' };
      scene.play(
        { ...control("max-age=1, stale-while-revalidate=60", headers), ageSeconds: 9 },
        { status: 304, ...control("max-age=60", headers) },
      );
      assert.equal((await scene.expectSecond("STALE")).body, "body 1");
      await scene.untilHit("body 1");
      assert.equal(scene.received[1]?.headers["if-none-match"], '"a"');
      assert.equal(scene.received.length, 2);
    },
  },
  {
    rule: "5861.7",
    title:
      "stale-while-revalidate: an error leaves the stale response, which is not retried at once",
    run: async (scene) => {
      scene.play(
        { ...control("max-age=1, stale-while-revalidate=60"), ageSeconds: 9 },
        { status: 503 },
      );
      await scene.expectSecond("STALE");
      await scene.untilReceived(2);
      for (let times = 0; times < 5; times++) {
        const { status, body } = await scene.ask();
        assert.deepEqual([status, body], [200, "body 1"]);
      }
      assert.equal(scene.received.length, 2);
    },
  },
  ...(
    [
      ["5861.8", "beyond its time", "max-age=1, stale-while-revalidate=2", {}],
      ["5861.9", "must-revalidate", "max-age=1, stale-while-revalidate=60, must-revalidate", {}],
      [
        "5861.10",
        "a client that accepts no such age",
        "max-age=1, stale-while-revalidate=60",
        { "Cache-Control": "max-age=5" },
      ],
      [
        "5861.11",
        "a client that reloads",
        "max-age=1, stale-while-revalidate=60",
        { "Cache-Control": "no-cache" },
      ],
    ] as const
  ).map(([rule, title, value, headers]): Case => ({
    rule,
    title: `stale-while-revalidate does not apply: ${title}`,
    run: async (scene) => {
      scene.play({ ...control(value, { ETag: '"a"' }), ageSeconds: 9 });
      await scene.ask();
      const answer = await scene.ask(headers);
      assert.deepEqual([answer.headers["x-cache"], answer.body], ["MISS", "body 2"]);
    },
  })),
  // RFC 9110 section 14: ranges of stored responses.
  ...(
    [
      ["14.1", "a range", "bytes=2-4", 206, "bytes 2-4/10", "234"],
      ["14.2", "an open range", "bytes=7-", 206, "bytes 7-9/10", "789"],
      ["14.3", "a suffix", "bytes=-3", 206, "bytes 7-9/10", "789"],
      ["14.4", "a range beyond the end", "bytes=8-99", 206, "bytes 8-9/10", "89"],
      ["14.5", "a range that is not satisfiable", "bytes=10-", 416, "bytes */10", ""],
      ["14.6", "ranges that nearly touch: one range", "bytes=0-0,2-2", 206, "bytes 0-2/10", "012"],
      ["14.7", "an unknown unit: the whole response", "lines=0-1", 200, undefined, "0123456789"],
      [
        "14.8",
        "a range that ends before it begins: the whole response",
        "bytes=4-2",
        200,
        undefined,
        "0123456789",
      ],
    ] as const
  ).map(([rule, title, range, status, contentRange, body]): Case => ({
    rule,
    title: `${title} is answered from the store`,
    run: async (scene) => {
      scene.play({ ...control("max-age=60", { ETag: '"a"' }), body: "0123456789" });
      await scene.ask();
      const answer = await scene.ask({ Range: range });
      assert.deepEqual(
        [answer.status, answer.headers["content-range"], answer.body, scene.received.length],
        [status, contentRange, body, 1],
      );
    },
  })),
  {
    rule: "14.10",
    title: "several ranges are the parts of one response from the store, in their order",
    run: async (scene) => {
      const headers = { ETag: '"a"', "Content-Type": "text/plain" };
      const digits = "0123456789".repeat(10_000);
      scene.play({ ...control("max-age=60", headers), body: digits });
      await scene.ask();
      const answer = await scene.ask({ Range: "bytes=90000-,0-2" });
      assert.deepEqual([answer.status, answer.headers["content-range"]], [206, undefined]);
      const type = answer.headers["content-type"] ?? "";
      const boundary = /^multipart\/byteranges; boundary=(\w+)$/.exec(type)?.[1];
      const part = (range: string, text: string): string =>
        `\r\n--${boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes ${range}/100000\r\n\r\n${text}`;
      const wanted = `${part("90000-99999", digits.slice(90_000))}${part("0-2", "012")}`;
      assert.equal(answer.body, `${wanted}\r\n--${boundary}--\r\n`);
      assert.equal(answer.headers["content-length"], String(answer.body.length));
      assert.equal(scene.received.length, 1);
    },
  },
  {
    rule: "14.11",
    title: "more ranges than a response may have get the whole response",
    run: async (scene) => {
      const body = "x".repeat(10_000);
      scene.play({ ...control("max-age=60"), body });
      await scene.ask();
      const ranges = Array.from({ length: 17 }, (_, at) => `${at * 200}-${at * 200}`);
      assert.equal((await scene.ask({ Range: `bytes=${ranges.slice(1).join()}` })).status, 206);
      const answer = await scene.ask({ Range: `bytes=${ranges.join()}` });
      assert.deepEqual([answer.status, answer.body], [200, body]);
    },
  },
  {
    rule: "14.12",
    title: "HEAD has no ranges",
    run: async (scene) => {
      scene.play({ ...control("max-age=60"), body: "0123456789" });
      await scene.ask();
      const { status, headers } = await scene.ask({ Range: "bytes=0-1" }, "HEAD");
      assert.deepEqual([status, headers["content-length"]], [200, "10"]);
    },
  },
  {
    rule: "14.9",
    title: "If-Range gets the part only of the response that it names",
    run: async (scene) => {
      scene.play({
        ...control("max-age=60", { ETag: '"a"', "Last-Modified": modified }),
        body: "0123456789",
      });
      await scene.ask();
      for (const [condition, status] of [
        ['"a"', 206],
        ['"b"', 200],
        ['W/"a"', 200],
        [modified, 206],
        [past, 200],
      ] as const) {
        assert.equal(
          (await scene.ask({ Range: "bytes=0-1", "If-Range": condition })).status,
          status,
        );
      }
    },
  },

  // RFC 9213: CDN-Cache-Control.
  ...(
    [
      ["overrides no-store", "max-age=60", "no-store", "HIT"],
      ["overrides max-age", "max-age=0", "max-age=60", "MISS"],
      ["forbids storing", "no-store", "max-age=60", "MISS"],
      ["private forbids storing", "private, max-age=60", "public", "MISS"],
      ["a directive that is false is not given", "no-store=?0, max-age=60", "no-store", "HIT"],
      ["parameters are ignored", "max-age=60;x=1", "no-store", "HIT"],
      ["an empty one is ignored", "", "max-age=60", "HIT"],
      ["one that is no dictionary is ignored", "max-age=60, &&&", "no-store", "MISS"],
      ["names in upper case are no dictionary", "Max-Age=60", "no-store", "MISS"],
      ["the last of two equal directives counts", "max-age=0, max-age=60", "no-store", "HIT"],
    ] as const
  ).map(([title, targeted, general, expected], index) =>
    second(
      `9213.${index + 1}`,
      `CDN-Cache-Control: ${title}`,
      control(general, { "CDN-Cache-Control": targeted }),
      expected,
    ),
  ),
  second(
    "9213.11",
    "CDN-Cache-Control: overrides Expires",
    { headers: { Expires: past, "CDN-Cache-Control": "max-age=60" } },
    "HIT",
  ),
];
