// Which route takes a request.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Router } from "@platform/service/host";
import fc from "fast-check";
import { PathScan } from "../../src/exchange/path-scan.ts";
import { PathPatterns, rankPattern } from "../../src/exchange/path-patterns.ts";
import { RouteTable, type RouteEntry } from "../../src/route/route-table.ts";
import type { InternalRoute } from "../../src/shared-state/index.ts";

function makeTable(
  routes: RouteEntry[],
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

test("routes of a host alone are found without those of all hosts", async () => {
  const table = await makeTable([
    { prefix: "/" },
    { prefix: "/tools/x" },
    { prefix: "/tools", host: "A.example" },
  ]);
  const findOwn = (target: string, host: string): string | undefined =>
    table.findRouteOfHost(read(table, target), host)?.prefix;
  assert.equal(findOwn("/tools/x", "a.example"), "/tools");
  assert.equal(findOwn("/x", "a.example"), undefined);
  assert.equal(findOwn("/tools", "b.example"), undefined);
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

test("patterns decide which paths below a prefix a route serves", async () => {
  const patterned: [pattern: string, serves: string[], not: string[]][] = [
    ["/notes", ["/notes", "/notes?a=/b", "/x/../notes"], ["/notes/", "/notes/1"]],
    ["/notes/:id", ["/notes/1", "/notes/%7E"], ["/notes", "/notes/", "/notes/1/", "/notes/1/x"]],
    ["/notes/{id}/edit", ["/notes/1/edit"], ["/notes/edit", "/notes/1/edit/x", "/notes/1/Edit"]],
    ["/notes/*/edit/:at", ["/notes/a/edit/b"], ["/notes/a/edit", "/notes/a/b/edit/c"]],
    ["/notes/files/*", ["/notes/files/", "/notes/files/a/b/"], ["/notes/files"]],
    ["/notes/:", ["/notes/:"], ["/notes/1"]],
  ];
  for (const [pattern, serves, not] of patterned) {
    const patterns = new PathPatterns([pattern]);
    const table = await makeTable([{ prefix: "/notes", patterns }, { prefix: "/" }]);
    assert.ok(table.hasVariants);
    for (const target of serves) assert.equal(find(table, target)?.prefix, "/notes", target);
    for (const target of not)
      assert.equal(find(table, target)?.prefix, "/", `${pattern} ${target}`);
  }
});

test("a pattern is found beside others that begin like it", () => {
  const patterns = new PathPatterns(["/a/b/c", "/a/:x/d", "/:y/b/e", "/a/b", "/:y/b/*"]);
  const serves = (path: string): boolean => {
    const bytes = Buffer.from(path);
    return patterns.matches(bytes, 0, bytes.length);
  };
  for (const path of ["/a/b/c", "/a/b/d", "/a/z/d", "/a/b/e", "/a/b", "/q/b/e", "/q/b/x/y"])
    assert.ok(serves(path), path);
  for (const path of ["/", "/a", "/a/", "/a/z", "/a/z/c", "/q/b", "/q/c/d"])
    assert.ok(!serves(path), path);
});

test("methods and hosts count only where a pattern matches", async () => {
  const patterns = (...paths: string[]): PathPatterns => new PathPatterns(paths);
  const table = await makeTable([
    { prefix: "/notes", methods: ["GET"], patterns: patterns("/notes", "/notes/:id") },
    { prefix: "/notes", methods: ["POST"], patterns: patterns("/notes") },
    { prefix: "/notes", host: "a.example", patterns: patterns("/notes/mine") },
    { prefix: "/", methods: ["DELETE"] },
  ]);
  const choose = (target: string, method: string, host = ""): RouteEntry | undefined => {
    const scan = read(table, target);
    const found = table.findRoute(scan, host);
    return found && table.chooseVariant(found, scan, method);
  };
  assert.deepEqual(choose("/notes", "POST")?.methods, ["POST"]);
  assert.deepEqual(choose("/notes/1", "HEAD")?.methods, ["GET"]);
  assert.equal(choose("/notes/1", "POST"), undefined);
  assert.deepEqual(choose("/notes/1/x", "DELETE")?.prefix, "/");
  assert.equal(choose("/notes/mine", "POST", "a.example")?.host, "a.example");
  assert.equal(choose("/notes/1", "GET", "a.example")?.host, undefined);
  const scan = read(table, "/notes/1");
  assert.deepEqual(table.listMethods(table.findRoute(scan, "")!, scan), ["GET", "HEAD"]);
  assert.equal(table.findRouteOfHost(read(table, "/notes/1"), "a.example"), undefined);
});

test("patterns match as their segments say", () => {
  const segment = fc.constantFrom("a", "b", ":x", "{y}", "*");
  const patternLists = fc.array(fc.array(segment, { minLength: 1, maxLength: 4 }), {
    maxLength: 6,
  });
  const paths = fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(patternLists, paths, (lists, path) => {
      const expected = lists.some((list) => {
        const isOpen = list.at(-1) === "*";
        if (isOpen ? path.length < list.length : path.length !== list.length) return false;
        return list.every((each, at) => each === path[at] || !/^[ab]$/.test(each));
      });
      const bytes = Buffer.from(`/${path.join("/")}`);
      const patterns = new PathPatterns(lists.map((list) => `/${list.join("/")}`));
      assert.equal(patterns.matches(bytes, 0, bytes.length), expected);
    }),
  );
});

test("variants are chosen as the router of a service chooses its routes", async () => {
  const segment = fc.constantFrom("a", "b", ":p", ":q");
  const pattern = fc
    .tuple(fc.uniqueArray(segment, { maxLength: 4 }), fc.constantFrom("", "/", "/*"))
    .map(([segments, end]) => `/${segments.join("/")}${segments.length === 0 ? "" : end}`);
  const method = fc.constantFrom("GET", "POST");
  const text = fc.array(fc.constantFrom("a", "b", "c", "", "x;y"), { maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.tuple(method, pattern), {
        maxLength: 8,
        selector: ([name, path]) => `${name} ${path.replaceAll(/:\w/g, ":")}`,
      }),
      fc.constantFrom("GET", "POST", "HEAD", "PUT"),
      text,
      async (declared, sent, segments) => {
        const router = new Router<{ method: string; path: string; declaredAt: string }>();
        const routes: (RouteEntry & { path?: string })[] = [{ prefix: "/" }];
        for (const [name, path] of declared) {
          router.add({ method: name, path, declaredAt: "" });
          const variant = { patterns: new PathPatterns([path]), specificity: rankPattern(path) };
          routes.push({ prefix: "/", methods: [name], path, ...variant });
        }
        const table = await RouteTable.build(routes, []);
        const scan = new PathScan();
        const bytes = Buffer.from(`/${segments.join("/")}`, "latin1");
        assert.equal(scan.read(bytes, 0, bytes.length, table.prefixBytesMax), null);
        const chosen = table.chooseVariant(table.findRoute(scan, "")!, scan, sent);
        const match = router.find(sent, scan.readPath());
        const served = match.kind === "found" ? match.route.path : undefined;
        assert.equal(chosen?.path, served, scan.readPath());
      },
    ),
    { numRuns: 500 },
  );
});
