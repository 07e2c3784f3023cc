// RabbitMQ with its STOMP and MQTT plugins. Quorum queues sync their log before they confirm.
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import { askVersion } from "../../../tests/stage/program.ts";
import { startPinned } from "../../harness/process.ts";
import type { BenchBroker } from "./broker.ts";

const SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server";
const START_TIMEOUT_MS = 180_000;

/** The peer. */
export const rabbitmq: BenchBroker = {
  name: "rabbitmq",
  isOurs: false,
  explainAbsence: () =>
    existsSync(SERVER)
      ? undefined
      : "rabbitmq-server is not installed (tools/install-peers events)",
  readVersion: () => askVersion("dpkg-query", ["-W", "-f", "${Version}", "rabbitmq-server"]),
  start: async ({ cores, folder, workspace }) => {
    const [amqp, stomp, mqtt, dist, epmd] = [
      await findFreePort(),
      await findFreePort(),
      await findFreePort(),
      await findFreePort(),
      await findFreePort(),
    ];
    writeFileSync(join(folder, "plugins"), "[rabbitmq_stomp,rabbitmq_mqtt].\n");
    const lines = [
      `listeners.tcp.default = 127.0.0.1:${amqp}`,
      `stomp.listeners.tcp.1 = 127.0.0.1:${stomp}`,
      `mqtt.listeners.tcp.1 = 127.0.0.1:${mqtt}`,
      "mqtt.allow_anonymous = true",
      "mqtt.prefetch = 1000",
    ];
    writeFileSync(join(folder, "rabbitmq.conf"), `${lines.join("\n")}\n`);
    const env = {
      HOME: folder,
      RABBITMQ_NODENAME: `bench${process.pid}@localhost`,
      RABBITMQ_MNESIA_BASE: join(folder, "mnesia"),
      RABBITMQ_LOG_BASE: join(folder, "log"),
      RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, "plugins"),
      RABBITMQ_CONFIG_FILE: join(folder, "rabbitmq"),
      RABBITMQ_PID_FILE: join(folder, "pid"),
      RABBITMQ_DIST_PORT: String(dist),
      ERL_EPMD_PORT: String(epmd),
      ERL_EPMD_ADDRESS: "127.0.0.1",
    };
    // The port mapper (epmd) is started here and stopped with the case; one started by RabbitMQ would keep running.
    const mapper = { name: "epmd", command: "epmd", args: ["-port", String(epmd)], cores, env };
    workspace.keep(startPinned(mapper));
    const started = workspace.keep(
      startPinned({ name: "rabbitmq", command: SERVER, args: [], cores, env }),
    );
    await awaitPort(started, stomp, START_TIMEOUT_MS);
    await awaitPort(started, mqtt, START_TIMEOUT_MS);
    return { pid: started.pid, ports: { stomp, mqtt } };
  },
};
