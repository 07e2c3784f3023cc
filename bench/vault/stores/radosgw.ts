// Ceph's object gateway with a minimal cluster: one monitor, one BlueStore OSD on a file, one copy.
import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import { askVersion, findProgram } from "../../../tests/stage/program.ts";
import { runPinned, startPinned } from "../../harness/process.ts";
import { CREDENTIALS } from "../presign.ts";
import type { ObjectStore } from "./store.ts";

const PROGRAMS = ["radosgw", "radosgw-admin", "ceph", "ceph-mon", "ceph-osd", "monmaptool"];
const BLOCK_BYTES = 20 * 2 ** 30;
const OSD_UP_ATTEMPTS_MAX = 60;

/** The peer of the goals. */
export const radosgw: ObjectStore = {
  name: "radosgw",
  isOurs: false,
  explainAbsence: () => {
    const missing = PROGRAMS.filter((name) => findProgram(name) === undefined);
    return missing.length === 0 ? undefined : `not installed: ${missing.join(", ")}`;
  },
  readVersion: () => askVersion("radosgw", ["--version"]),
  start: async ({ port, cores, folder, workspace }) => {
    const monitorPort = await findFreePort();
    const clusterId = randomUUID();
    const configPath = join(folder, "ceph.conf");
    for (const part of ["mon", "osd", "rgw"]) mkdirSync(join(folder, part), { recursive: true });
    writeFileSync(configPath, formatConfig({ folder, clusterId, monitorPort, port }));
    const run = (command: string, ...args: string[]) =>
      runPinned({ name: command, command, args: ["-c", configPath, ...args], cores });
    const startDaemon = (command: string, ...args: string[]) =>
      workspace.keep(
        startPinned({ name: command, command, args: ["-c", configPath, "-f", ...args], cores }),
      );

    const monitors = join(folder, "monmap");
    const address = `v1:127.0.0.1:${monitorPort}`;
    await run("monmaptool", "--create", "--addv", "a", address, "--fsid", clusterId, monitors);
    await run("ceph-mon", "--mkfs", "-i", "a", "--monmap", monitors);
    const monitor = startDaemon("ceph-mon", "-i", "a");
    await awaitPort(monitor, monitorPort);

    const diskId = randomUUID();
    await run("ceph", "osd", "new", diskId);
    await run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", diskId);
    const disk = startDaemon("ceph-osd", "-i", "0");
    await run("ceph", "osd", "crush", "add", "0", "1.0", "host=localhost");
    for (let attempt = 0; !/1 up/.test(await run("ceph", "osd", "stat")); attempt++) {
      if (attempt === OSD_UP_ATTEMPTS_MAX) throw new Error(`the OSD did not start`);
      await sleep(500);
    }

    const gateway = startDaemon("radosgw", "-n", "client.rgw");
    await awaitPort(gateway, port, 60_000);
    await run(
      "radosgw-admin",
      "user",
      "create",
      "--uid=bench",
      "--display-name=bench",
      `--access-key=${CREDENTIALS.accessKey}`,
      `--secret-key=${CREDENTIALS.secretKey}`,
    );
    return [monitor.pid, disk.pid, gateway.pid];
  },
};

function formatConfig(setup: {
  folder: string;
  clusterId: string;
  monitorPort: number;
  port: number;
}): string {
  const { folder, clusterId, monitorPort, port } = setup;
  return `[global]
fsid = ${clusterId}
mon host = v1:127.0.0.1:${monitorPort}
mon initial members = a
public addr = 127.0.0.1
ms bind ipv6 = false
ms bind msgr2 = false
auth cluster required = none
auth service required = none
auth client required = none
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pgp num = 8
osd crush chooseleaf type = 0
mon allow pool size one = true
mon max pg per osd = 1000
osd objectstore = bluestore
bluestore block size = ${BLOCK_BYTES}
bluestore block create = true
run dir = ${folder}
admin socket = ${folder}/$name.asok
log file = /dev/null
pid file = ${folder}/$name.pid
[mon.a]
mon data = ${folder}/mon
[osd.0]
osd data = ${folder}/osd
[client.rgw]
rgw data = ${folder}/rgw
rgw frontends = beast endpoint=127.0.0.1:${port}
rgw enable ops log = false
rgw enable usage log = false
`;
}
