// Labels that tunnels cannot have.
import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeLabel } from "../../src/name/labels.ts";

test("names of the platform's services and of network conventions are reserved", () => {
  for (const label of ["oidc", "s3", "ui", "isatap", "wpad", "identity", "vault", "www"])
    assert.match(judgeLabel(label) ?? "", /is reserved/, label);
  for (const label of ["shop", "s3-demo", "my-ui"]) assert.equal(judgeLabel(label), undefined);
});
