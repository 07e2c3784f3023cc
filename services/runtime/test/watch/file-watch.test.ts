// Changes that a watch by inode misses: files that do not exist yet, folders and links that are replaced.
import assert from "node:assert/strict";
import {
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { FileWatch } from "../../src/watch/file-watch.ts";
import { startRun, stopRun } from "../fixture/run-process.ts";

const root = realpathSync(mkdtempSync(join(tmpdir(), "file-watch-")));
after(() => rmSync(root, { recursive: true }));
let count = 0;

function createFolder(): string {
  const folder = join(root, String(count++));
  mkdirSync(join(folder, "lib/deep"), { recursive: true });
  writeFileSync(join(folder, "lib/deep/a.ts"), "1");
  return folder;
}

/** Does `change` after the watch has begun; resolves when it was reported. */
async function expectChange(
  watched: (watch: FileWatch) => void,
  ...changes: (() => void)[]
): Promise<void> {
  const reports: number[] = [];
  const watch = new FileWatch(() => reports.push(reports.length));
  try {
    watched(watch);
    await sleep(100);
    for (const [index, change] of changes.entries()) {
      const before = reports.length;
      change();
      for (let ms = 0; ms < 10_000 && reports.length === before; ms += 10) await sleep(10);
      assert.ok(reports.length > before, `change ${index} was not reported`);
      await sleep(100);
    }
  } finally {
    watch.close();
  }
}

test("a file that is missing, in a folder that is missing", async () => {
  const folder = createFolder();
  const file = join(folder, "new/later/b.ts");
  await expectChange(
    (watch) => watch.add("file", file),
    () => {
      mkdirSync(join(folder, "new/later"), { recursive: true });
      writeFileSync(file, "1");
    },
    () => writeFileSync(file, "2"),
    () => rmSync(join(folder, "new"), { recursive: true }),
  );
});

test("a folder that is removed and written again, several times", async () => {
  const folder = createFolder();
  const file = join(folder, "lib/deep/a.ts");
  const replace = (): void => {
    rmSync(join(folder, "lib"), { recursive: true });
    mkdirSync(join(folder, "lib/deep"), { recursive: true });
    writeFileSync(file, "1");
  };
  await expectChange(
    (watch) => watch.add("file", file),
    replace,
    replace,
    () => writeFileSync(file, "3"),
  );
});

test("a folder that is replaced by a rename, and changes in the new one", async () => {
  const folder = createFolder();
  const other = createFolder();
  await expectChange(
    (watch) => watch.add("file", join(folder, "lib/deep/a.ts")),
    () => {
      renameSync(join(folder, "lib"), join(folder, "old"));
      renameSync(join(other, "lib"), join(folder, "lib"));
    },
    () => writeFileSync(join(folder, "lib/deep/a.ts"), "2"),
  );
});

test("a link on the way that is replaced, and its target", async () => {
  const folder = createFolder();
  const other = createFolder();
  const link = join(folder, "current");
  symlinkSync("lib", link);
  await expectChange(
    (watch) => watch.add("file", join(link, "deep/a.ts")),
    () => writeFileSync(join(folder, "lib/deep/a.ts"), "2"),
    () => {
      symlinkSync(join(other, "lib"), join(folder, "next"));
      renameSync(join(folder, "next"), link);
    },
    () => writeFileSync(join(other, "lib/deep/a.ts"), "3"),
  );
});

test("a folder of migrations that is replaced, and a file that is added to it", async () => {
  const folder = createFolder();
  const watched = join(folder, "lib/deep");
  await expectChange(
    (watch) => watch.add("folder", watched),
    () => writeFileSync(join(watched, "b.sql"), "1"),
    () => {
      rmSync(watched, { recursive: true });
      mkdirSync(watched);
      writeFileSync(join(watched, "a.ts"), "1");
    },
    () => writeFileSync(join(watched, "c.sql"), "1"),
  );
});

test("an imported file that is created after the failed load starts the service, and a stop during a load ends at once", async (t) => {
  const folder = createFolder();
  writeFileSync(
    join(folder, "main.service.ts"),
    'import { text } from "./texts/hello.ts";\nexport route GET / { return text }\n',
  );
  const running = startRun(t, folder, "main.service.ts", "--watch");
  await sleep(1_500);
  mkdirSync(join(folder, "texts"));
  writeFileSync(join(folder, "texts/hello.ts"), 'export const text = "created";\n');
  const started = await running;
  assert.equal(await (await fetch(started.url)).text(), "created");
  rmSync(join(folder, "texts"), { recursive: true });
  mkdirSync(join(folder, "texts"));
  writeFileSync(join(folder, "texts/hello.ts"), 'export const text = "again";\n');
  const read = async (): Promise<string> => (await fetch(started.url)).text();
  // The old process answers until the new one has taken over.
  let text = await read();
  for (let ms = 0; ms < 60_000 && text !== "again"; ms += 50) {
    await sleep(50);
    text = await read();
  }
  assert.equal(text, "again");
  writeFileSync(join(folder, "texts/hello.ts"), "for (;;);\n");
  await sleep(1_000);
  const beganMs = performance.now();
  await stopRun(started);
  assert.ok(performance.now() - beganMs < 15_000, "it waited for the load");
});
