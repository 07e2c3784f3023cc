// Every file that `platform up` itself writes × every fault: credentials and state are whole, or the loss is told.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runFaultMatrix } from "@platform/testing/faults";
import { findStarted, parseEnv, run } from "@platform/testing/platform-process";

/** Files of services, which have tests of their own, the log, and what is written again at each start. */
const FOREIGN = /^(?:hello|gate|logs)\//;
const ADDRESSES = ["hello", "runtime"].flatMap((name) => [`--${name}-addr`, "127.0.0.1:0"]);

test("no fault of a file of `platform up` is silent", async (t) => {
  await runFaultMatrix(t, {
    isForeign: (file) => FOREIGN.test(file),
    async start(folder) {
      const up = run(["up", "--json", "--only", "sample", "--data", folder, ...ADDRESSES]);
      const started = await up.waitFor(findStarted).catch(async () => {
        // Its last lines may come after its exit.
        await up.exit;
        const { out, err } = up.output();
        throw new Error(out + err);
      });
      const { notes } = started as typeof started & { notes: string[] };
      return {
        write: async () => {},
        async read() {
          return parseEnv(readFileSync(join(folder, "credentials.env"), "utf8"));
        },
        readReports: async () => notes.join("\n"),
        async stop() {
          up.child.kill("SIGTERM");
          await up.exit;
        },
      };
    },
  });
});
