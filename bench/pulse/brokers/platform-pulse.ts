// Our broker, started as a user would start it.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import { askVersion } from "../../../tests/stage/program.ts";
import { startPinned } from "../../harness/process.ts";
import { findRuntime, REPOSITORY, type RuntimeName } from "../../gate/runtime.ts";
import { partitions, topicName } from "../broker-load.ts";
import type { BenchBroker, RunningBroker } from "./broker.ts";

const BIN = join(REPOSITORY, "bin/platform-pulse.js");

/** Our broker on one runtime, with the topic of the load. */
export function makePlatformPulse(runtime: RuntimeName): BenchBroker {
  return {
    name: `pulse (${runtime})`,
    isOurs: true,
    explainAbsence: () =>
      existsSync(findRuntime(runtime)) ? undefined : `${runtime} is not installed`,
    readVersion: () => askVersion(findRuntime(runtime), ["--version"]),
    start: async ({ cores, folder, workspace }): Promise<RunningBroker> => {
      const [http, kafka] = [await findFreePort(), await findFreePort()];
      const started = workspace.keep(
        startPinned({
          name: `pulse on ${runtime}`,
          command: process.execPath,
          args: [BIN],
          cores,
          env: {
            PLATFORM_RUNTIME: runtime,
            PLATFORM_PULSE_HTTP_ADDR: `127.0.0.1:${http}`,
            PLATFORM_PULSE_KAFKA_ADDR: `127.0.0.1:${kafka}`,
            PLATFORM_PULSE_DATA_DIR: join(folder, "data"),
            // A single client publishes everything and no subscriber reads it, so neither limit must apply.
            PLATFORM_PULSE_PUBLISH_RATE: "0",
            PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0",
          },
        }),
      );
      await awaitPort(started, kafka);
      await awaitPort(started, http);
      const created = await fetch(`http://127.0.0.1:${http}/api/v1/topics`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ name: topicName, partitions }),
      });
      if (!created.ok && created.status !== 409) throw new Error(await created.text());
      return { pid: started.pid, ports: { http, kafka, fetch: kafka } };
    },
  };
}
