import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readUsersFile } from "../../src/user/users-file.ts";
import { makeFolder } from "../store/fixture.ts";

test("users are read from a file, and errors never contain a password", (t) => {
  const path = join(makeFolder(t), "users.json");
  const read = (text: string) => {
    writeFileSync(path, text);
    return readUsersFile(path);
  };
  assert.deepEqual(read('[{"name":"a","password":"p"},{"name":"b","password":"q","tenant":"t"}]'), [
    { name: "a", password: "p", tenant: "" },
    { name: "b", password: "q", tenant: "t" },
  ]);
  const cases: [string, RegExp][] = [
    ["secret", /is not valid JSON/],
    ['{"name":"a"}', /the list/],
    ['[{"name":"a","password":"secret","tenant":"a:b"}]', /0\.tenant is no tenant/],
    ['[{"name":"a","password":"secret","role":"x"}]', /0 Unrecognized key/],
    ['[{"name":"a","password":"secret"},{"name":"a","password":"other"}]', /duplicate user a/],
  ];
  for (const [text, expected] of cases) {
    assert.throws(
      () => read(text),
      (error: Error) => expected.test(error.message) && !String(error.stack).includes("secret"),
      text,
    );
  }
  assert.throws(() => readUsersFile(`${path}.missing`), /cannot be read \(ENOENT\)/);
});
