// Registrations at an editor: only those that it says that it accepts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { selectAccepted } from "../../src/editor/capabilities.ts";

test("an editor gets the registrations that it accepts", () => {
  const wanted = [
    { id: "1", method: "workspace/didChangeConfiguration" },
    { id: "2", method: "workspace/didChangeWatchedFiles", registerOptions: { watchers: [] } },
    { id: "3", method: "textDocument/formatting" },
  ];
  const client = {
    workspace: { didChangeWatchedFiles: { dynamicRegistration: true }, didChangeConfiguration: {} },
    textDocument: { formatting: { dynamicRegistration: false } },
  };
  assert.deepEqual(selectAccepted(wanted, client), [wanted[1]]);
  assert.deepEqual(selectAccepted(wanted, {}), []);
});
