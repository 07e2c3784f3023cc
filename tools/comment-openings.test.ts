// The search for comments that open with a question word.
import assert from "node:assert/strict";
import { test } from "node:test";
import { findOpenings } from "./comment-openings.ts";

test("only the first line of a comment counts, in all forms of comments", () => {
  // The slash is inserted later, so that the search does not find this file.
  const text = `#/ The purpose.
#/ Where a second line begins with a question word.
#** What it is. */
#**
 * How it works.
 * What follows.
 */
const address = "http:#/What"; #/ Who needs it
#/ Whatever follows.
`.replaceAll("#", "/");
  assert.deepEqual(
    findOpenings(text).map(({ line }) => line),
    [3, 5, 8],
  );
});
