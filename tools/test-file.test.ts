// The runner of test files: counts, time limits, and leftover processes.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { isRunning } from "./process-table.ts";
import { runTestFile } from "./test-file.ts";

const folder = mkdtempSync(join(tmpdir(), "platform-runner-"));
after(() => rmSync(folder, { recursive: true }));

function writeTestFile(name: string, body: string): string {
  const file = join(folder, name);
  writeFileSync(file, `import { test } from "node:test";\n${body}`);
  return file;
}

test("tests are counted, skips have their reasons, and a failure fails the file", async () => {
  const file = writeTestFile(
    "mixed.test.mjs",
    `test("good", () => undefined);
     test("bad", () => { throw new Error("the reason"); });
     test("absent", { skip: "needs a peer" }, () => undefined);`,
  );
  const result = await runTestFile({ file, env: {}, timeoutMs: 30_000 });
  assert.deepEqual(result.counts, { passed: 1, failed: 1, skipped: 1 });
  assert.deepEqual(result.skips, ["absent: needs a peer"]);
  assert.equal(result.failure, "1 failed");
  assert.deepEqual(result.failedTests, ["bad"]);
  assert.match(result.output, /the reason/);
});

test("the files of a group run in one process, and a failure in one fails it", async () => {
  const body = `test("pid", (t) => t.diagnostic(\`process \${process.pid}\`));`;
  const members = ["one.test.mjs", "two.test.mjs"].map((name) => writeTestFile(name, body));
  const group = { file: "both", members, env: {}, timeoutMs: 30_000 };
  const passed = await runTestFile(group);
  assert.deepEqual([passed.failure, passed.members], [undefined, members]);
  assert.deepEqual(passed.counts, { passed: 2, failed: 0, skipped: 0 });
  const pids = [...passed.output.matchAll(/process (\d+)/g)].map(([, pid]) => pid);
  assert.deepEqual([pids.length, new Set(pids).size], [2, 1]);
  const bad = writeTestFile("bad.test.mjs", `test("bad", () => { throw new Error(); });`);
  const failed = await runTestFile({ ...group, members: [...members, bad] });
  assert.equal(failed.failure, "1 failed");
});

test("a file fails if it does not load or exits before its tests are done", async () => {
  const broken = writeTestFile("broken.test.mjs", `import "./missing.mjs";`);
  const exited = writeTestFile(
    "exited.test.mjs",
    `test("one", () => { process.exit(0); }); test("two", () => undefined);`,
  );
  const results = await Promise.all(
    [broken, exited].map((file) => runTestFile({ file, env: {}, timeoutMs: 30_000 })),
  );
  for (const { file, failure } of results) assert.notEqual(failure, undefined, file);
});

test("promises are not followed, and errors outside of a test's function fail the test that runs", async () => {
  const file = writeTestFile(
    "detached.test.mjs",
    `import { after } from "node:test";
     import { executionAsyncId } from "node:async_hooks";
     import { setTimeout as sleep } from "node:timers/promises";
     test("promises", async () => {
       await undefined;
       if (executionAsyncId() !== 0) throw new Error("followed");
     });
     test("timer", async () => {
       await undefined;
       setTimeout(() => { throw new Error("thrown by a timer"); });
       await sleep(60_000, undefined, { ref: false });
     });
     test("rejection", async () => {
       await sleep(1);
       void Promise.reject(new Error("rejected by nobody"));
       await sleep(60_000, undefined, { ref: false });
     });
     test("later", async (t) => {
       await sleep(1);
       await t.test("inner", () => undefined);
       after(() => console.log("ended at once"));
     });
     test("last", () => console.log("last"));`,
  );
  const { counts, failure, output } = await runTestFile({ file, env: {}, timeoutMs: 30_000 });
  assert.deepEqual([counts, failure], [{ passed: 4, failed: 2, skipped: 0 }, "2 failed"], output);
  assert.match(output, /ended at once[^]*last/);
  assert.match(output, /✖ timer[^]*thrown by a timer/);
  assert.match(output, /✖ rejection[^]*rejected by nobody/);
});

test(
  "the CPU time of a process that nobody waits for counts",
  { skip: existsSync("/sys/fs/cgroup/cpuacct/cgroup.procs") ? false : "needs cgroup v1" },
  async () => {
    const file = writeTestFile(
      "orphan.test.mjs",
      `import { spawn } from "node:child_process";
       test("starts", (t, done) => {
         const work = "while (process.cpuUsage().user < 300_000);";
         const orphan = \`\${process.execPath} -e '\${work}' >&2 &\`;
         const shell = spawn("sh", ["-c", orphan], { stdio: ["ignore", "ignore", "pipe"] });
         shell.stderr.resume().on("close", done);
       });`,
    );
    const { failure, cost } = await runTestFile({ file, env: {}, timeoutMs: 30_000 });
    assert.equal(failure, undefined);
    assert.ok(cost.cpuS! > 0.3, `${cost.cpuS} s`);
  },
);

test("a file beyond its time limit is killed with all its processes, and the limit is reported", async () => {
  const pidFile = join(folder, "pid");
  const file = writeTestFile(
    "endless.test.mjs",
    `import { spawn } from "node:child_process";
     import { writeFileSync } from "node:fs";
     test("fails first", () => { throw new Error("the first reason"); });
     test("hangs", async () => {
       const child = spawn("sleep", ["600"], { detached: true, stdio: "ignore" });
       writeFileSync(process.env.PID_FILE, String(child.pid));
       await new Promise((resolve) => setTimeout(resolve, 600_000));
     });`,
  );
  const plan = { file, env: { PID_FILE: pidFile }, timeoutMs: 3000 };
  const result = await runTestFile(plan);
  assert.equal(result.failure, "did not end within 3 s and was killed");
  assert.match(result.output, /fails first: Error: the first reason/);
  assert.equal(isRunning(Number(readFileSync(pidFile, "utf8"))), false);
});

test(
  "a process left running fails the file and is killed",
  { skip: existsSync("/proc/self/environ") ? false : "needs /proc" },
  async () => {
    const file = writeTestFile(
      "leaky.test.mjs",
      `import { spawn } from "node:child_process";
       test("leaks", () => { spawn("sleep", ["601"], { detached: true, stdio: "ignore" }).unref(); });`,
    );
    const result = await runTestFile({ file, env: {}, timeoutMs: 30_000 }, 500);
    assert.match(result.failure ?? "", /^left running \(killed now\): \d+ sleep 601$/);
    const [pid] = /\d+/.exec(result.failure!)!;
    assert.equal(isRunning(Number(pid)), false);
  },
);
