// NATS with JetStream on a file store. Debian's 2.9 writes a message to the file before it acknowledges it, and syncs
// the file every two minutes: unlike ours, it may lose acknowledged messages when the power goes.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import { askVersion, findProgram } from "../../../tests/stage/program.ts";
import { startPinned } from "../../harness/process.ts";
import type { BenchBroker } from "./broker.ts";

/** The peer. */
export const nats: BenchBroker = {
  name: "nats-server",
  isOurs: false,
  explainAbsence: () =>
    findProgram("nats-server") === undefined
      ? "nats-server is not installed (tools/install-peers pulse)"
      : undefined,
  readVersion: () => askVersion(findProgram("nats-server")!, ["--version"]),
  start: async ({ cores, folder, workspace }) => {
    const port = await findFreePort();
    const config = join(folder, "nats.conf");
    writeFileSync(
      config,
      `listen: "127.0.0.1:${port}"\njetstream { store_dir: "${folder}", max_file: 20G }\n`,
    );
    const started = workspace.keep(
      startPinned({
        name: "nats-server",
        command: findProgram("nats-server")!,
        args: ["-c", config],
        cores,
        env: { GOMAXPROCS: String(cores.split(",").length) },
      }),
    );
    await awaitPort(started, port);
    return { pid: started.pid, ports: { nats: port } };
  },
};
