// Lists of networks in files: changes are noticed, also after a file that could not be used.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { AddressTrie } from "@platform/kernel/network";
import { NetworkLists } from "../../src/resolve/network-lists.ts";
import { makeFolder } from "../fixture/gate-process.ts";

test("after an invalid line the next change of any file is noticed", (context) => {
  const folder = makeFolder(context);
  const [one, two] = [join(folder, "one.txt"), join(folder, "two.txt")];
  const lists = new NetworkLists();
  const build = (): boolean[] => {
    lists.begin();
    const found = [one, two].map((path) => new AddressTrie(lists.read(path).trie).has("10.0.0.1"));
    lists.end();
    return found;
  };
  writeFileSync(one, "10.0.0.0/8\n");
  writeFileSync(two, "192.0.2.0/24\n");
  assert.deepEqual(build(), [true, false]);
  assert.ok(!lists.hasChanged());

  writeFileSync(one, "not a network at all\n");
  assert.ok(lists.hasChanged());
  assert.throws(build, /"not a network at all"/);
  assert.ok(!lists.hasChanged(), "the same content is not read again and again");
  writeFileSync(two, "10.0.0.0/16 # behind the invalid one\n");
  assert.ok(lists.hasChanged(), "a file that the failed build has not reached");
  assert.throws(build, /"not a network at all"/);
  assert.ok(!lists.hasChanged());
  lists.repeatReports();
  assert.ok(lists.hasChanged(), "what was not read is reported again");
  writeFileSync(one, "198.51.100.0/24\n");
  assert.ok(lists.hasChanged(), "the corrected file");
  assert.deepEqual(build(), [false, true]);
  assert.ok(!lists.hasChanged());
});
