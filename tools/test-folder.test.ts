// Places of the temporary folders of test files.
import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { chooseTestRoot, type Machine } from "./test-folder.ts";

const LARGE: Machine = {
  mounts: "/dev/vda / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw,nosuid,size=9g 0 0\n",
  memory: "MemTotal:       33554432 kB\nMemAvailable:   16777216 kB\n",
  freeBytes: 9 * 2 ** 30,
  chosen: undefined,
};
const FILE = "services/gate/test/process/start.test.ts";

test("folders are in memory if it is large and runs programs, and where the user chose", () => {
  assert.equal(chooseTestRoot([FILE], LARGE), "/dev/shm");
  const little: Partial<Machine>[] = [
    { freeBytes: 64 * 2 ** 20 },
    { memory: "MemAvailable:    2097152 kB\n" },
    { memory: "" },
    { mounts: "" },
    { mounts: "shm /dev/shm tmpfs rw,noexec 0 0\n" },
    { mounts: "/dev/vdb /dev/shm ext4 rw 0 0\n" },
  ];
  for (const machine of little)
    assert.equal(chooseTestRoot([FILE], { ...LARGE, ...machine }), tmpdir());
  assert.equal(chooseTestRoot([FILE], { ...LARGE, chosen: "/somewhere" }), "/somewhere");
});

test("suites about data and disks keep a disk, also as members of a group", () => {
  for (const file of [
    "services/pulse/test/crash/kill.test.ts",
    "services/vault/test/upkeep/drives.test.ts",
    "services/notify/test/crash/full-disk.test.ts",
    "tests/platform/backup.test.ts",
  ])
    assert.equal(chooseTestRoot([FILE, file], LARGE), tmpdir(), file);
});
