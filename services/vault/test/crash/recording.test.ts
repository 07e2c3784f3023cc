// The parser of recorded system calls, with interleaved threads.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRecording } from "./recording.ts";

function hex(text: string): string {
  return [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
}

test("a descriptor that is reused before its close is seen to end belongs to the new file", () => {
  const open = (path: string) =>
    `openat(AT_FDCWD, "${hex(path)}", O_WRONLY|O_CREAT|O_TRUNC, 0600) = 20`;
  const effects = parseRecording(
    [
      `11 ${open("/root/a")}`,
      "11 close(20 <unfinished ...>",
      `12 ${open("/root/b")}`,
      "11 <... close resumed>) = 0",
      `12 pwrite64(20, "${hex("bytes")}", 5, 0) = 5`,
      "12 fdatasync(20) = 0",
    ].join("\n"),
    "/root",
  );
  assert.deepEqual(effects, [
    { type: "create", file: 1, path: "a" },
    { type: "create", file: 2, path: "b" },
    { type: "write", file: 2, position: 0, data: Buffer.from("bytes") },
    { type: "sync", file: 2, since: 3 },
  ]);
});
