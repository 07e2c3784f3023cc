// Repositories of snapshots: what a second one stores, and what damage is found.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import {
  BackupError,
  checkRepository,
  FolderStorage,
  openSnapshotFile,
  pruneRepository,
  Repository,
  requireWholeSnapshot,
  restoreSnapshot,
  type SavedSnapshot,
  type Snapshot,
  type SnapshotFile,
  writeSnapshot,
} from "@platform/kernel/backup";

const root = mkdtempSync(join(tmpdir(), "repository-"));
after(() => rmSync(root, { recursive: true, force: true }));

/** Bytes of each file that are flipped. */
const FLIPS = Number(process.env["REPOSITORY_FLIPS"] ?? 3);
const PAGE_BYTES = 4_096;
const PASSPHRASE = "a passphrase of a test";
const dataFormats = { oldest: 1, newest: 3 };
let folders = 0;

/** A service whose files are in a folder, and its repository. */
class Rig {
  readonly data: string;
  readonly folder: string;
  readonly passphrase: string | undefined;
  nowMs = Date.parse("2026-03-02T12:00:00Z");
  /** Deriving a key takes half a second. */
  #opened: Promise<Repository> | undefined;

  constructor(passphrase?: string) {
    folders += 1;
    this.data = join(root, `data-${folders}`);
    this.folder = join(root, `repository-${folders}`);
    this.passphrase = passphrase;
    mkdirSync(this.data);
  }

  put(name: string, bytes: Buffer): Buffer {
    writeFileSync(join(this.data, name), bytes);
    return bytes;
  }

  open(owner = "store", version = dataFormats): Promise<Repository> {
    return Repository.openOrCreate({
      storage: new FolderStorage(this.folder),
      service: "vault",
      version: "1.0.0",
      dataFormats: version,
      passphrase: this.passphrase,
      owner,
      nowMs: this.nowMs,
    });
  }

  async snapshot(): Promise<Snapshot> {
    const files: SnapshotFile[] = [];
    for (const name of readdirSync(this.data)) {
      const path = join(this.data, name);
      const { ino, mtimeMs, size } = statSync(path);
      const file = await openSnapshotFile(name, path);
      if (name.endsWith(".db")) files.push({ ...file, pageBytes: PAGE_BYTES });
      else files.push({ ...file, stamp: `${ino}-${mtimeMs}-${size}` });
    }
    return { mark: { files: files.length }, bytes: 0, files, release: async () => undefined };
  }

  async back(): Promise<SavedSnapshot> {
    this.nowMs += 60_000;
    const repository = await this.use();
    const options = { service: "vault", version: "1.0.0", dataFormat: 3, nowMs: this.nowMs };
    return writeSnapshot(repository, options, await this.snapshot());
  }

  use(): Promise<Repository> {
    this.#opened ??= this.open();
    return this.#opened;
  }

  async restore({ id }: Pick<SavedSnapshot, "id">): Promise<Map<string, Buffer>> {
    folders += 1;
    const target = join(root, `restored-${folders}`);
    const repository = await this.use();
    await restoreSnapshot(repository, await repository.load(id), { target });
    return new Map(readdirSync(target).map((name) => [name, readFileSync(join(target, name))]));
  }

  /** Paths of all files with contents. */
  list(): string[] {
    return readdirSync(this.folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => statSync(path).size > 0);
  }
}

function readAll(folder: string): Map<string, Buffer> {
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
}

for (const [kind, passphrase] of [
  ["a plain", undefined],
  ["an encrypted", PASSPHRASE],
] as const) {
  test(`${kind} repository stores only what is new: grown files, changed pages, new files`, async () => {
    const rig = new Rig(passphrase);
    rig.put("grows.seg", randomBytes(3_000_000));
    rig.put("whole.blob", randomBytes(9_000_000));
    const database = rig.put("index.db", randomBytes(PAGE_BYTES * 700));
    rig.put("small", Buffer.from("small"));
    rig.put("empty", Buffer.alloc(0));
    const first = await rig.back();
    const before = readAll(rig.data);
    assert.ok(first.mark.added > 14_000_000);

    appendFileSync(join(rig.data, "grows.seg"), randomBytes(20_000));
    database.fill(7, PAGE_BYTES * 100, PAGE_BYTES * 103);
    rig.put("index.db", Buffer.concat([database, randomBytes(PAGE_BYTES * 2)]));
    rig.put("new.blob", randomBytes(50_000));
    rmSync(join(rig.data, "small"));
    const second = await rig.back();
    assert.ok(second.mark.added < 140_000, `${second.mark.added} bytes`);
    assert.ok(second.mark.added > 80_000);

    const unchanged = await rig.back();
    assert.ok(unchanged.mark.added < 10_000, `${unchanged.mark.added} bytes`);

    assert.deepEqual(await rig.restore(first), before);
    assert.deepEqual(await rig.restore(second), readAll(rig.data));
  });

  test(`large files go into ${kind} repository by threads: whole, once, and only what is new`, async () => {
    const rig = new Rig(passphrase);
    const grows = rig.put("a-grows.seg", randomBytes(20_000_000));
    rig.put("b-whole.blob", randomBytes(9_000_000));
    // Its pieces are the same, and are stored at the same time.
    rig.put("c-zeros.blob", Buffer.alloc(26_000_000));
    rig.put("d-empty", Buffer.alloc(0));
    const first = await rig.back();
    const [before, stored] = [readAll(rig.data), first.mark.added];
    assert.ok(stored > 37_000_000, `${stored} bytes`);
    if (kind === "a plain") assert.ok(stored < 40_000_000, `${stored} bytes`);

    // The first piece is that of the snapshot before, as is all of the other file, which only has another time.
    rig.put("a-grows.seg", Buffer.concat([grows, randomBytes(50_000)]));
    rig.put("b-whole.blob", before.get("b-whole.blob")!);
    const second = await rig.back();
    assert.ok(second.mark.added < 4_500_000, `${second.mark.added} bytes`);
    assert.ok(second.mark.added > 50_000, `${second.mark.added} bytes`);

    assert.deepEqual(await rig.restore(first), before);
    assert.deepEqual(await rig.restore(second), readAll(rig.data));
    const { problems, unused } = await checkRepository(await rig.use(), {});
    assert.deepEqual([problems, unused], [[], 0]);
    assert.deepEqual(readdirSync(join(rig.folder, "tmp")), []);
  });

  test(`a flipped byte of any file of ${kind} repository is found, and nothing is restored from it`, async () => {
    const rig = new Rig(passphrase);
    rig.put("index.db", randomBytes(PAGE_BYTES * 5 + 100));
    rig.put("file", randomBytes(2_000));
    const first = { ...(await rig.back()), files: readAll(rig.data) };
    rig.put("file", randomBytes(2_000));
    const last = { ...(await rig.back()), files: readAll(rig.data) };
    // Never restores anything else than what was backed up.
    const restore = async (snapshot: typeof first): Promise<boolean> => {
      const restored = await rig.restore(snapshot).catch(refuse);
      if (restored !== undefined) assert.deepEqual(restored, snapshot.files);
      return restored !== undefined;
    };
    const check = async (path = ""): Promise<string[]> => {
      const repository = await (path.endsWith("repository.json") ? rig.open() : rig.use());
      return (await checkRepository(repository, {})).problems;
    };
    assert.deepEqual(await check(), []);
    const encryptedBytes = 24 + 16;
    const sizeOfFile = 2_000 + (passphrase === undefined ? 0 : encryptedBytes);
    for (const path of rig.list()) {
      const bytes = readFileSync(path);
      for (const at of choosePlaces(bytes.length)) {
        const damaged = Buffer.from(bytes);
        damaged[at]! ^= 1;
        writeFileSync(path, damaged);
        const problems = await check(path).catch((error: Error) => [error.message]);
        assert.notEqual(problems.length, 0, `${path} at ${at}`);
        if (path.endsWith("repository.json")) continue;
        const isRestored = [await restore(first), await restore(last)];
        assert.ok(isRestored.includes(false), path);
      }
      writeFileSync(path, bytes);
      writeFileSync(`${path}.cut`, bytes.subarray(0, -1));
      rmSync(path);
      assert.notEqual((await check(path).catch(() => ["refused"])).length, 0, `without ${path}`);
      rmSync(`${path}.cut`);
      writeFileSync(path, bytes);
    }
    // Two objects of the same size change places.
    const [one, other] = rig.list().filter((path) => statSync(path).size === sizeOfFile);
    const swap = (): void => {
      renameSync(one!, `${one}.x`);
      renameSync(other!, one!);
      renameSync(`${one}.x`, other!);
    };
    swap();
    assert.equal((await check()).length, 2);
    assert.deepEqual([await restore(first), await restore(last)], [false, false]);
    swap();
    assert.deepEqual(await check(), []);
  });
}

/** The first byte, one in the middle, one near the end, and others. */
function choosePlaces(length: number): number[] {
  const others = Array.from({ length: FLIPS - 3 }, () => Math.floor(Math.random() * length));
  return [0, Math.floor(length / 2), length - 3, ...others];
}

function refuse(error: unknown): undefined {
  assert.ok(error instanceof BackupError, String(error));
}

test("an encrypted repository shows no plain bytes, and is checked without the passphrase", async () => {
  const rig = new Rig(PASSPHRASE);
  rig.put("file", Buffer.from("a secret line ".repeat(20)));
  await rig.back();
  for (const path of rig.list()) assert.doesNotMatch(readFileSync(path, "latin1"), /secret line/);
  const locked = { storage: new FolderStorage(rig.folder), service: "vault", dataFormats };
  const repository = await Repository.open(locked);
  const { problems, isComplete, objects } = await checkRepository(repository, {});
  assert.deepEqual([problems, isComplete], [[], false]);
  assert.equal(objects, 2);
  await assert.rejects(
    Repository.open({ ...locked, passphrase: "another passphrase" }),
    /the passphrase is wrong/,
  );
  const target = join(root, "locked");
  const snapshot = await repository.load();
  await assert.rejects(restoreSnapshot(repository, snapshot, { target }), /passphrase is required/);
});

test("snapshots that are not kept are removed with what only they name", async () => {
  const rig = new Rig();
  const shared = rig.put("shared", randomBytes(40_000));
  const ids: string[] = [];
  for (let day = 0; day < 10; day += 1) {
    rig.put("daily", randomBytes(30_000));
    for (let run = 0; run < 2; run += 1) ids.push((await rig.back()).id);
    rig.nowMs += 86_400_000;
  }
  const repository = await rig.open();
  // Two runs on each of ten days from a Monday on: the last two, three days, two weeks.
  const pruned = await pruneRepository(repository, { last: 2, daily: 3, weekly: 2 });
  const kept = [ids[13], ids[15], ids[17], ids[18], ids[19]];
  assert.deepEqual(await repository.listIds(), kept);
  assert.equal(pruned.snapshots, 15);
  assert.ok(pruned.objects >= 6);
  const { problems, unused } = await checkRepository(repository, {});
  assert.deepEqual([problems, unused], [[], 0]);
  const restored = await rig.restore({ id: ids[13]! });
  assert.deepEqual(restored.get("shared"), shared);
  await pruneRepository(repository, { last: 0 });
  assert.deepEqual(await repository.listIds(), [ids[19]]);
});

test("what an interrupted run left is not a snapshot, and the next run uses or removes it", async () => {
  const rig = new Rig();
  rig.put("one", randomBytes(100_000));
  const first = await rig.back();
  rig.put("two", randomBytes(100_000));
  const repository = await rig.open();
  const broken = await rig.snapshot();
  const failing: SnapshotFile = {
    path: "zzz",
    bytes: 1,
    // oxlint-disable-next-line require-await, require-yield -- it fails at once
    async *read() {
      throw new Error("killed");
    },
  };
  const files = [...(broken.files as SnapshotFile[]), failing];
  const options = { service: "vault", version: "1.0.0", dataFormat: 3, nowMs: rig.nowMs + 1 };
  await assert.rejects(writeSnapshot(repository, options, { ...broken, files }), /killed/);
  assert.deepEqual(await repository.listIds(), [first.id]);
  assert.equal((await checkRepository(repository, {})).unused, 1);
  const second = await rig.back();
  assert.ok(second.mark.added < 2_000, `${second.mark.added} bytes`);

  // A damaged object of an unnamed run is replaced, and lists that cannot be read stop the removal.
  const list = join(rig.folder, "data", second.manifest.files[0]!.sha256.slice(0, 2));
  rmSync(list, { recursive: true });
  await assert.rejects(pruneRepository(await rig.open(), { last: 1 }), /missing/);
  assert.deepEqual(await (await rig.open()).listIds(), [first.id, second.id]);
});

test("a large file that cannot be stored ends the backup with its reason, and leaves no snapshot", async () => {
  const rig = new Rig();
  rig.put("large", randomBytes(20_000_000));
  const repository = await rig.use();
  const options = { service: "vault", version: "1.0.0", dataFormat: 3, nowMs: rig.nowMs };
  const taken = await rig.snapshot();
  const [file] = taken.files as SnapshotFile[];
  // It is shorter than it was when the snapshot began.
  const files = [{ ...file!, bytes: file!.bytes + 1 }];
  await assert.rejects(
    writeSnapshot(repository, options, { ...taken, files }),
    (error) => error instanceof BackupError && /expected at least 20000001/.test(error.message),
  );
  // A place that is no folder.
  rmSync(join(rig.folder, "data"), { recursive: true });
  writeFileSync(join(rig.folder, "data"), "no folder");
  await assert.rejects(
    writeSnapshot(repository, options, taken),
    (error) => error instanceof BackupError && /cannot be written: E/.test(error.message),
  );
  assert.deepEqual(await repository.listIds(), []);
});

test("repositories of another owner, another service or a newer format are refused", async () => {
  const rig = new Rig();
  rig.put("file", randomBytes(100));
  const snapshot = await rig.back();
  await assert.rejects(rig.open("another"), /has the backups of another vault/);
  const storage = new FolderStorage(rig.folder);
  await assert.rejects(
    Repository.open({ storage, service: "pulse", dataFormats }),
    /is of vault, not of pulse/,
  );
  const older = { oldest: 1, newest: 2 };
  await assert.rejects(
    Repository.open({ storage, service: "vault", dataFormats: older }),
    /data format 3; this version reads 1 to 2/,
  );
  await assert.rejects((await rig.open()).load("../../etc/passwd"), /has no snapshot/);
  const empty = new FolderStorage(join(root, "nothing"));
  await assert.rejects(
    Repository.open({ storage: empty, service: "vault", dataFormats }),
    /has no repository\.json: not a repository/,
  );
  await requireWholeSnapshot(await rig.open(), {}, snapshot);
});

test("one writer at a time has a repository", async () => {
  const rig = new Rig();
  const unlock = await new FolderStorage(rig.folder).lock();
  await assert.rejects(new FolderStorage(rig.folder).lock(), /another backup writes to/);
  unlock();
  (await new FolderStorage(rig.folder).lock())();
});
