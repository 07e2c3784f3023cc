// Which route takes a request.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { PathScan } from "../../src/exchange/path-scan.ts";
import { RouteTable, type RouteEntry } from "../../src/route/route-table.ts";
import type { InternalRoute } from "../../src/shared-state/index.ts";

function makeTable(
  routes: { prefix: string; host?: string }[],
  own: InternalRoute[] = [],
): Promise<RouteTable<RouteEntry>> {
  return RouteTable.build(routes, own);
}

function find(table: RouteTable<RouteEntry>, target: string, host = ""): RouteEntry | undefined {
  return table.findRoute(read(table, target), host);
}

function read(table: RouteTable<RouteEntry>, target: string): PathScan {
  const scan = new PathScan();
  const bytes = Buffer.from(target, "latin1");
  assert.equal(scan.read(bytes, 0, bytes.length, table.prefixBytesMax), null);
  return scan;
}

test("a prefix matches whole segments, the longest one wins", async () => {
  const table = await makeTable(
    ["/", "/api", "/api/v1", "/files/", "/api/v1/deep/er"].map((prefix) => ({ prefix })),
    [],
  );
  const expected: [string, string][] = [
    ["/api", "/api"],
    ["/api/", "/api"],
    ["/api/x", "/api"],
    ["/api?x", "/api"],
    ["/apix", "/"],
    ["/api/v1", "/api/v1"],
    ["/api/v10", "/api"],
    ["/api/v1/deep", "/api/v1"],
    ["/api/v1/deep/er/x", "/api/v1/deep/er"],
    ["/files", "/"],
    ["/files/", "/files/"],
    ["/files/x/y", "/files/"],
    ["/a/../api/./v1", "/api/v1"],
    ["/%61pi", "/api"],
    ["//api", "/api"],
    ["/api%2Fv1", "/"],
    ["/", "/"],
  ];
  for (const [target, prefix] of expected)
    assert.equal(find(table, target)?.prefix, prefix, target);
});

test("without a route for /, other paths have no route", async () => {
  const table = await makeTable([{ prefix: "/api" }], []);
  for (const target of ["/", "/ap", "/apix", "/x/api"])
    assert.equal(find(table, target), undefined);
  assert.equal(find(await makeTable([], []), "/"), undefined);
});

test("the longer prefix wins, then the host", async () => {
  const table = await makeTable(
    [
      { prefix: "/", host: "A.example" },
      { prefix: "/" },
      { prefix: "/api" },
      { prefix: "/api", host: "b.example" },
    ],
    [],
  );
  assert.equal(find(table, "/x", "a.example")?.host, "A.example");
  assert.equal(find(table, "/x", "b.example")?.host, undefined);
  assert.equal(find(table, "/api", "b.example")?.host, "b.example");
  assert.deepEqual(
    [find(table, "/api/x", "a.example")?.prefix, find(table, "/api/x", "a.example")?.host],
    ["/api", undefined],
  );
});

test("internal routes take precedence and are a closed list", async () => {
  const own: InternalRoute[] = [
    { path: "/healthz", match: "exact", access: "probe" },
    { path: "/api/v1/routes", match: "exact", access: "admin" },
    { path: "/ui/", match: "below", access: "public" },
  ];
  const table = await makeTable([{ prefix: "/" }, { prefix: "/api" }], own);
  const ownOf = (target: string): string | undefined =>
    table.findInternalRoute(read(table, target))?.path;
  assert.equal(ownOf("/healthz"), "/healthz");
  assert.equal(ownOf("/healthz/"), undefined);
  assert.equal(ownOf("/healthz/x"), undefined);
  assert.equal(ownOf("/health%7a"), "/healthz");
  assert.equal(ownOf("/api/v1/routes?x"), "/api/v1/routes");
  assert.equal(ownOf("/api/v1/routesx"), undefined);
  assert.equal(ownOf("/api/v1/routes/x"), undefined);
  assert.equal(ownOf("/ui/a/b"), "/ui/");
  assert.equal(ownOf("/ui"), undefined);
  assert.equal(ownOf("/uix"), undefined);
});

test("lookups agree with a linear search", async () => {
  const segment = fc.constantFrom("a", "b", "ab", "ba");
  const path = fc.array(segment, { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.tuple(path, fc.boolean()), {
        maxLength: 40,
        selector: ([parts, slash]) => `${parts.join("/")}${slash}`,
      }),
      fc.array(path, { maxLength: 20 }),
      async (prefixes, paths) => {
        const routes = prefixes.map(([parts, slash]) => ({
          prefix: `/${parts.join("/")}${slash ? "/" : ""}`,
        }));
        const table = await makeTable(routes, []);
        for (const parts of paths) {
          const target = `/${parts.join("/")}`;
          const matching = routes.filter(({ prefix }) =>
            prefix.endsWith("/")
              ? target.startsWith(prefix)
              : target === prefix || target.startsWith(`${prefix}/`),
          );
          const longest = matching.sort((a, b) => b.prefix.length - a.prefix.length)[0];
          assert.equal(find(table, target)?.prefix, longest?.prefix);
        }
      },
    ),
  );
});

test("duplicate prefixes are refused", async () => {
  await assert.rejects(makeTable([{ prefix: "/a" }, { prefix: "/a" }], []), RangeError);
});
