// A small installation without the bundler.
import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import { test } from "node:test";
import { loadBundler, MissingBundlerError } from "../../src/build/bundler.ts";

test("commands that bundle name the missing package and the remedy", async (t) => {
  const hooks = registerHooks({
    resolve: (specifier, context, next) => {
      if (specifier === "rolldown") throw new Error("Cannot find package 'rolldown'");
      return next(specifier, context);
    },
  });
  t.after(() => hooks.deregister());
  await assert.rejects(loadBundler(), (error) => {
    assert.ok(error instanceof MissingBundlerError);
    assert.match(error.message, /^rolldown is not installed.*npm ci/);
    return true;
  });
});
