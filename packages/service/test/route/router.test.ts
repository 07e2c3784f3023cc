// Matching of paths and methods.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Router } from "../../src/route/router.ts";

function createRouter(
  ...routes: string[]
): Router<{ method: string; path: string; declaredAt: string }> {
  const router = new Router<{ method: string; path: string; declaredAt: string }>();
  for (const text of routes) {
    const [method = "", path = ""] = text.split(" ");
    router.add({ method, path, declaredAt: "main.ts:1:1" });
  }
  return router;
}

test("text wins over a parameter and a parameter over the rest, in any order of declaration", () => {
  const paths = ["GET /*", "GET /notes/:id", "GET /notes/new", "GET /notes/:id/tags", "GET /"];
  for (const order of [paths, paths.toReversed()]) {
    const router = createRouter(...order);
    const cases: [path: string, route: string, params: Record<string, string>][] = [
      ["/", "/", {}],
      ["/notes/new", "/notes/new", {}],
      ["/notes/7", "/notes/:id", { id: "7" }],
      ["/notes/new/tags", "/notes/:id/tags", { id: "new" }],
      ["/notes/7/other", "/*", { "*": "notes/7/other" }],
      ["/notes/", "/*", { "*": "notes/" }],
      ["/a%20b/%C3%A9", "/*", { "*": "a b/é" }],
    ];
    for (const [path, expected, params] of cases) {
      const match = router.find("GET", path);
      assert.equal(match.kind, "found", path);
      assert.equal(match.kind === "found" && match.route.path, expected, path);
      assert.deepEqual({ ...(match.kind === "found" && match.params) }, params, path);
    }
  }
});

test("a more specific path without the method does not hide a parameter with it", () => {
  const router = createRouter("GET /notes/new", "DELETE /notes/:id");
  const match = router.find("DELETE", "/notes/new");
  assert.equal(match.kind === "found" && match.route.path, "/notes/:id");
});

test("other methods of a path are listed, HEAD is served by GET", () => {
  const router = createRouter("GET /a/:b", "PUT /a/:c");
  assert.deepEqual(router.find("POST", "/a/1"), {
    kind: "other-methods",
    allow: "GET, HEAD, OPTIONS, PUT",
  });
  assert.equal(router.find("HEAD", "/a/1").kind, "found");
  assert.equal(router.find("GET", "/b").kind, "none");
  assert.equal(router.find("GET", "/a/%ff").kind, "malformed");
});

test("invalid and duplicate paths are refused with a reason", () => {
  const cases: [routes: string[], message: RegExp][] = [
    [["GET notes"], /must start with \//],
    [["GET /a/*/b"], /\* must be the last segment/],
    [["GET /:1"], /not a parameter/],
    [["GET /:a/:a"], /:a is repeated/],
    [["GET /a/../b"], /clients resolve it/],
    [["GET /a{b}"], /characters/],
    [["GET /a/:id", "GET /a/:key"], /declared twice: it exists at main\.ts:1:1, as \/a\/:id/],
  ];
  for (const [routes, message] of cases) assert.throws(() => createRouter(...routes), message);
});
