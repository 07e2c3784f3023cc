// The router of OAuth and the pages.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Router, type NodeHandler } from "../../src/web/router.ts";

function createHandler(routes: [path: string, route: string][], idPattern?: RegExp): NodeHandler {
  return {
    routes: new Map(routes),
    ...(idPattern === undefined ? {} : { idPattern }),
    handle: () => assert.fail("not called"),
  };
}

test("a path has the handler of its route, a path with an id the one of the pattern", () => {
  const oauth = createHandler([
    ["/authorize", "/authorize"],
    ["/authorize/{id}", "/authorize/{id}"],
  ]);
  const pages = createHandler(
    [
      ["/account", "/account"],
      ["/interaction/{id}", "/interaction/{id}"],
      ["/assets/style-1.css", "/assets/{id}"],
    ],
    /^[\w-]{1,64}$/,
  );
  const router = new Router([oauth, pages]);
  const cases: [path: string, handler: NodeHandler | undefined, route: string | undefined][] = [
    ["/authorize", oauth, "/authorize"],
    ["/authorize/a.b", oauth, "/authorize/{id}"],
    ["/authorize/a/b", undefined, undefined],
    ["/account", pages, "/account"],
    ["/account/", undefined, undefined],
    ["/interaction/x-1", pages, "/interaction/{id}"],
    ["/interaction/x.1", undefined, undefined],
    ["/interaction", undefined, undefined],
    ["/assets/style-1.css", pages, "/assets/{id}"],
    ["/assets/style-2.css", undefined, undefined],
    ["/", undefined, undefined],
  ];
  for (const [path, handler, route] of cases) {
    const match = router.find(path);
    assert.equal(match?.handler, handler, path);
    assert.equal(match?.route, route, path);
  }
});

test("two handlers of one path are refused", () => {
  const handler = createHandler([["/account", "/account"]]);
  assert.throws(() => new Router([handler, handler]), /two handlers for \/account/);
});
