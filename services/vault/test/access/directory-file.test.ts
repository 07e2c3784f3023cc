// Users and keys on disk: each damage to one of the two copies × each of them loses nothing.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { createManualClock } from "@platform/kernel/time";
import { Directory } from "../../src/access/directory.ts";
import type { DirectoryDamage } from "../../src/access/directory-file.ts";
import { SecretBox } from "../../src/access/secret-box.ts";

const MAIN = "directory.json";
const COPY = "directory-copy.json";
const masterKey = randomBytes(32);

function open(
  folder: string,
  key = masterKey,
): { directory: Directory; damages: DirectoryDamage[] } {
  const damages: DirectoryDamage[] = [];
  const directory = new Directory({
    path: join(folder, MAIN),
    box: new SecretBox(() => [key]),
    clock: createManualClock(5),
    rootKey: "root",
    onDamage: (damage) => damages.push(damage),
  });
  return { directory, damages };
}

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "vault-directory-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A folder with a user, a role and a key, and the state three changes earlier. */
function makeStage(t: TestContext): { folder: string; older: string; secret: string } {
  const [folder, older] = [makeFolder(t), makeFolder(t)];
  const { directory } = open(folder);
  const policies = {
    all: { Version: "2012-10-17", Statement: [{ Effect: "Allow", Action: "s3:*", Resource: "*" }] },
  };
  directory.putUser({ name: "ada", enabled: true, policies, namespaces: ["a"] });
  cpSync(folder, older, { recursive: true });
  directory.putRole({ name: "writer", policies });
  directory.createKey({ user: "ada", accessKey: "revoked", secretKey: "revoked-secret" });
  directory.updateKey("revoked", { enabled: false });
  const { secretKey } = directory.createKey({ user: "ada", accessKey: "current" });
  return { folder, older, secret: secretKey };
}

function requireWhole(directory: Directory, secret: string): void {
  assert.deepEqual(
    [directory.listUsers().map(({ name }) => name), directory.listRoles().map(({ name }) => name)],
    [["ada"], ["writer"]],
  );
  assert.equal(directory.findKey("current")?.secret, secret);
  assert.equal(directory.findKey("revoked"), undefined, "a disabled key stays disabled");
}

function flip(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes[at] = bytes[at]! ^ 1;
  writeFileSync(path, bytes);
}

const FAULTS: Record<string, (path: string, older: string) => void> = {
  truncated: (path) => truncateSync(path, readFileSync(path).length >> 1),
  emptied: (path) => truncateSync(path, 0),
  missing: (path) => rmSync(path),
  older: (path, older) => cpSync(older, path),
};

test("damage to one of the copies loses nothing, is reported, and is undone", (t) => {
  const { folder, older, secret } = makeStage(t);
  const size = readFileSync(join(folder, MAIN)).length;
  const flips = Array.from({ length: 20 }, (_, index) => Math.floor((index * (size - 1)) / 19));
  const faults: [name: string, (path: string, older: string) => void][] = [
    ...Object.entries(FAULTS),
    ...flips.map((at): [string, (path: string) => void] => [`${at}`, (path) => flip(path, at)]),
  ];
  for (const name of [MAIN, COPY]) {
    for (const [fault, damage] of faults) {
      const place = makeFolder(t);
      cpSync(folder, place, { recursive: true });
      const path = join(place, name);
      damage(path, join(older, name));
      const kept = existsSync(path) ? readFileSync(path) : undefined;
      const { directory, damages } = open(place);
      requireWhole(directory, secret);
      // A restored backup has no copy.
      const isReported = name === MAIN || fault !== "missing";
      assert.deepEqual(
        damages.map((one) => one.path),
        isReported ? [path] : [],
        `${name}, ${fault}`,
      );
      if (isReported && kept !== undefined)
        assert.deepEqual(readFileSync(`${path}.damaged`), kept, "the damaged file is kept");
      const again = open(place);
      requireWhole(again.directory, secret);
      assert.deepEqual(again.damages, []);
      assert.deepEqual(readFileSync(join(place, MAIN)), readFileSync(join(place, COPY)));
    }
  }
});

test("if both copies are damaged, nothing is opened or changed, and the error names them and a remedy", (t) => {
  const { folder } = makeStage(t);
  for (const name of [MAIN, COPY]) flip(join(folder, name), 200);
  const read = (): Buffer[] => readdirSync(folder).map((name) => readFileSync(join(folder, name)));
  const before = read();
  assert.throws(() => open(folder), {
    message: /directory\.json: .*directory-copy\.json: .*back from a backup/s,
  });
  assert.deepEqual(read(), before);
});

test("a change that was interrupted between the copies is complete after the next start", (t) => {
  const { folder, secret } = makeStage(t);
  const before = readFileSync(join(folder, MAIN));
  open(folder).directory.updateKey("current", { description: "changed" });
  writeFileSync(join(folder, MAIN), before);
  const { directory, damages } = open(folder);
  requireWhole(directory, secret);
  assert.deepEqual(damages, []);
  assert.equal(
    directory.listKeys().find((key) => key.accessKey === "current")!.description,
    "changed",
  );
  assert.deepEqual(readFileSync(join(folder, MAIN)), readFileSync(join(folder, COPY)));
});

test("files of versions 1 and 2 are read, and get a checksum and a copy with the next change", (t) => {
  const user = { name: "ada", enabled: true, policies: {}, namespaces: [], createdMs: 1 };
  for (const old of [
    { version: 1, users: [user], keys: [] },
    { version: 2, users: [user], roles: [], keys: [] },
  ]) {
    const folder = makeFolder(t);
    writeFileSync(join(folder, MAIN), JSON.stringify(old));
    const { directory, damages } = open(folder);
    assert.deepEqual(damages, []);
    assert.deepEqual(directory.listUsers(), [user]);
    directory.createKey({ user: "ada", accessKey: "current" });
    assert.deepEqual(readFileSync(join(folder, MAIN)), readFileSync(join(folder, COPY)));
    flip(join(folder, MAIN), 50);
    assert.ok(open(folder).directory.findKey("current") !== undefined);
  }
});

test("another master key is an error that names the key and a remedy", (t) => {
  const { folder } = makeStage(t);
  assert.throws(() => open(folder, randomBytes(32)), {
    message: /secret of the key current needs another master key: put access\/master\.key back/,
  });
});
