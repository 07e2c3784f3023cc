// Mosquitto without persistence and without a limit of queued messages: everything stays in memory.
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import { askVersion } from "../../../tests/stage/program.ts";
import { startPinned } from "../../harness/process.ts";
import type { BenchBroker } from "./broker.ts";

const SERVER = "/usr/sbin/mosquitto";

/** The peer. */
export const mosquitto: BenchBroker = {
  name: "mosquitto",
  isOurs: false,
  explainAbsence: () =>
    existsSync(SERVER) ? undefined : "mosquitto is not installed (tools/install-peers clients)",
  readVersion: () => askVersion("dpkg-query", ["-W", "-f", "${Version}", "mosquitto"]),
  start: async ({ cores, folder, workspace }) => {
    const mqtt = await findFreePort();
    const lines = [
      `listener ${mqtt} 127.0.0.1`,
      "allow_anonymous true",
      "persistence false",
      "set_tcp_nodelay true",
      "max_queued_messages 0",
      "max_inflight_messages 1000",
      "log_type none",
      ...(process.getuid?.() === 0 ? ["user root"] : []),
    ];
    const file = join(folder, "mosquitto.conf");
    writeFileSync(file, `${lines.join("\n")}\n`);
    const started = workspace.keep(
      startPinned({ name: "mosquitto", command: SERVER, args: ["-c", file], cores }),
    );
    await awaitPort(started, mqtt);
    return { pid: started.pid, ports: { mqtt } };
  },
};
