// Our broker, started as a user would start it.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import { askVersion } from "../../../tests/stage/program.ts";
import { startPinned } from "../../harness/process.ts";
import { findBin, findRuntime, type Build } from "../../harness/build.ts";
import { partitions, topicName } from "../broker-load.ts";
import type { BenchBroker, RunningBroker } from "./broker.ts";

const START_TIMEOUT_MS = 60_000;

/** Our broker on one runtime, with the topic of the load. */
export function makePlatformPulse(build: Build): BenchBroker {
  return {
    name: `pulse (${build.label})`,
    isOurs: true,
    explainAbsence: () =>
      existsSync(findRuntime(build.runtime)) ? undefined : `${build.runtime} is not installed`,
    readVersion: () => askVersion(findRuntime(build.runtime), ["--version"]),
    start: async ({ cores, folder, workspace, env }): Promise<RunningBroker> => {
      const [http, kafka, mqtt, stomp] = [
        await findFreePort(),
        await findFreePort(),
        await findFreePort(),
        await findFreePort(),
      ];
      const started = workspace.keep(
        startPinned({
          name: `pulse on ${build.label}`,
          command: process.execPath,
          args: [findBin(build, "platform-pulse")],
          cores,
          env: {
            PLATFORM_RUNTIME: build.runtime,
            PLATFORM_PULSE_HTTP_ADDR: `127.0.0.1:${http}`,
            PLATFORM_PULSE_KAFKA_ADDR: `127.0.0.1:${kafka}`,
            PLATFORM_PULSE_MQTT_ADDR: `127.0.0.1:${mqtt}`,
            PLATFORM_PULSE_STOMP_ADDR: `127.0.0.1:${stomp}`,
            PLATFORM_PULSE_DATA_DIR: join(folder, "data"),
            // A single client publishes everything and no subscriber reads it, so neither limit must apply.
            PLATFORM_PULSE_PUBLISH_RATE: "0",
            PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0",
            ...env,
          },
        }),
      );
      await awaitPort(started, kafka, START_TIMEOUT_MS);
      await awaitPort(started, http, START_TIMEOUT_MS);
      const created = await fetch(`http://127.0.0.1:${http}/api/v1/topics`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ name: topicName, partitions }),
      });
      if (!created.ok && created.status !== 409) throw new Error(await created.text());
      return { pid: started.pid, ports: { http, kafka, fetch: kafka, mqtt, stomp } };
    },
  };
}
