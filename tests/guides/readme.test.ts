// The README: its banner is the one that a start prints.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { anyPort, makeFolder, run } from "@platform/testing/platform-process";

/** Without what differs between machines: ports, times, the width of columns and the folder of the program. */
function normalise(text: string): string[] {
  return text
    .replaceAll(/localhost:\d+/g, "localhost:PORT")
    .replaceAll(/node \S+\/bin\/platform\.js/g, "./platform")
    .replace(/started in [\d.]+ s/, "started in SECONDS")
    .split("\n")
    .map((line) => line.trim().replaceAll(/ +/g, " "));
}

test("the banner of the README is that of a start", async () => {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const [, shown = ""] = /^```\n(platform .*?)^```$/ms.exec(readme) ?? [];
  const folder = join(makeFolder(), "clone");
  mkdirSync(folder);
  const platform = run(["up", ...anyPort], { XDG_STATE_HOME: folder }, "", folder);
  const end = "ctrl-c stops all services";
  const text = await platform.waitFor((out) => (out.includes(end) ? out : undefined));
  const started = normalise(text.slice(text.indexOf("\nplatform ") + 1));
  platform.child.kill("SIGTERM");
  assert.equal(await platform.exit, 0);
  const wanted = normalise(shown).filter((line) => line !== "" && line !== "…");
  assert.ok(wanted.length > 12);
  for (const line of wanted) assert.ok(started.includes(line), `${line}\n\n${started.join("\n")}`);
});
