// s3rver, a fake S3 for tests on node:http; it syncs nothing to the disk.
import { join } from "node:path";
import { awaitPort } from "../../../tests/stage/process.ts";
import { askVersion, findProgram } from "../../../tests/stage/program.ts";
import { startPinned } from "../../harness/process.ts";
import type { ObjectStore } from "./store.ts";

/** Started if `s3rver` is on the path (`npm install --global s3rver`). */
export const s3rver: ObjectStore = {
  name: "s3rver",
  isOurs: false,
  credentials: { accessKey: "S3RVER", secretKey: "S3RVER" },
  explainAbsence: () =>
    findProgram("s3rver") === undefined ? "s3rver is not on the path" : undefined,
  readVersion: () => askVersion("s3rver", ["--version"]),
  start: async ({ port, cores, folder, workspace }) => {
    const started = workspace.keep(
      startPinned({
        name: "s3rver",
        command: "s3rver",
        args: ["-d", join(folder, "data"), "-a", "127.0.0.1", "-p", String(port), "--silent"],
        cores,
        env: { NODE_ENV: "production" },
      }),
    );
    await awaitPort(started, port);
    return [started.pid];
  },
};
