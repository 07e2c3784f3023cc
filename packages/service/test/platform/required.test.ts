// Settings of the platform's services that are missing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { requireSettings } from "../../src/platform/required.ts";

test("missing settings are named by their variables, with commands that can be typed in this folder", () => {
  assert.throws(
    () => requireSettings("mail", ["mail_url"]),
    /^NotConfiguredError: mail: MAIL_URL is not set; start the service with "\.\/platform up", or with the variables that "\.\/platform app add NAME" prints$/,
  );
});
