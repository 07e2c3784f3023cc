// Programs of the operator: bounded output, and an end with all that they have started.
import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { runProgram } from "../../src/source/run-program.ts";

test("a megabyte is cut, and the program ends by itself", async () => {
  const script = "head -c 1000000 /dev/zero | tr '\\0' x; exit 4";
  const end = await runProgram("sh", ["-c", script], { signal: AbortSignal.timeout(60_000) });
  assert.equal(end.code, 4);
  assert.equal(end.stdout.length, 65_536);
});

test("a signal ends a program that hangs, with its children", async () => {
  const stop = new AbortController();
  let output = "";
  const end = runProgram("sh", ["-c", "sleep 600 & echo $!; wait"], {
    signal: stop.signal,
    onOutput: (text) => (output += text),
  });
  const child = Number(await waitFor(() => output.includes("\n") && output.trim(), "the child"));
  stop.abort();
  assert.equal((await end).code, null);
  const isOver = (): boolean => {
    try {
      return !process.kill(child, 0);
    } catch {
      return true;
    }
  };
  await waitFor(isOver, "the end of the child");
});

test("a program without the environment of the gateway; one that is missing is an error", async () => {
  const signal = AbortSignal.timeout(60_000);
  const { stdout } = await runProgram("env", [], { signal, env: { ONE: "1" } });
  assert.match(stdout, /^PATH=.*\nONE=1\n$/);
  await assert.rejects(runProgram("/nonexistent/hook", [], { signal }), /ENOENT/);
});
