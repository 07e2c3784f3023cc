// The search for comments that repeat a name.
import assert from "node:assert/strict";
import { test } from "node:test";
import { listShortComments } from "./doc-comments.ts";

test("comments with as few words as the name are found, above all kinds of declarations", () => {
  const text = `#** Creates the routes. */
export function createUserRoutes() {}
#** The routes that only administrators may call. */
export function createAdminRoutes() {}
#** The limit. */
const BYTES_MAX = 5;
#** In ms. */
const WAIT = 5;
interface Options {
  #** Base64, in JSON. */
  readonly sessionKey: string;
  #** Base64, 32 bytes. */
  readonly sessionKey: string;
}
`.replaceAll("#", "/");
  assert.deepEqual(
    listShortComments(text).map(({ line, name }) => [line, name]),
    [
      [1, "createUserRoutes"],
      [5, "BYTES_MAX"],
    ],
  );
});
