// Listeners of messaging without a host: all addresses of IPv6 and IPv4, and all of IPv4 on machines without IPv6.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { startPulseProcess } from "../../services/pulse/test/fixture/pulse-process.ts";
import { isAdmitted, type Probe } from "../stage/local-probe.ts";

const withoutIpv6 = fileURLToPath(new URL("../stage/without-ipv6.py", import.meta.url));
const addresses = {
  PLATFORM_PULSE_HTTP_ADDR: ":0",
  PLATFORM_PULSE_KAFKA_ADDR: ":0",
  PLATFORM_PULSE_MQTT_ADDR: ":0",
  PLATFORM_PULSE_STOMP_ADDR: ":0",
};

test(
  "without a host, every listener serves this machine over IPv4 and IPv6",
  { skip: skipIpv6() },
  async (t) => {
    const pulse = await startPulseProcess(t, addresses);
    for (const address of ["127.0.0.1", "::1"]) {
      const headers = { host: `localhost:${pulse.port}` };
      const probes: Probe[] = [
        { kind: "get", address, port: pulse.port, path: "/api/v1/topics", headers },
        { kind: "mqtt-websocket", address, port: pulse.port, path: "/mqtt", headers },
        { kind: "kafka", address, port: pulse.kafkaPort },
        { kind: "mqtt", address, port: pulse.mqttPort },
        { kind: "stomp", address, port: pulse.stompPort },
      ];
      const admitted = await Promise.all(probes.map(isAdmitted));
      const kinds = probes.map(({ kind }, at) => [kind, admitted[at]]);
      assert.deepEqual(
        kinds,
        probes.map(({ kind }) => [kind, true]),
        address,
      );
    }
  },
);

test(
  "without a host, every listener is on 0.0.0.0 on a machine without IPv6",
  { skip: skipSeccomp() },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "platform-pulse-"));
    const main = fileURLToPath(new URL("../../services/pulse/src/main.ts", import.meta.url));
    const child = spawn("python3", [withoutIpv6, process.execPath, main], {
      env: {
        PATH: process.env["PATH"],
        ...addresses,
        PLATFORM_PULSE_DATA_DIR: folder,
        PLATFORM_PULSE_LOG_FORMAT: "json",
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    t.after(async () => {
      if (child.exitCode === null) {
        child.kill("SIGKILL");
        await once(child, "exit");
      }
      rmSync(folder, { recursive: true, force: true });
    });
    let hosts: Record<string, string> | undefined;
    for await (const line of createInterface({ input: child.stdout })) {
      const { msg, listeners = [] } = JSON.parse(line) as {
        msg: string;
        listeners?: { name: string; host: string }[];
      };
      if (msg !== "ready") continue;
      hosts = Object.fromEntries(listeners.map(({ name, host }) => [name, host]));
      break;
    }
    const any = "0.0.0.0";
    assert.deepEqual(hosts, { http: any, kafka: any, mqtt: any, stomp: any });
  },
);

function skipIpv6(): string | false {
  const all = Object.values(networkInterfaces()).flat();
  return all.some((item) => item?.address === "::1") ? false : "this machine has no IPv6";
}

function skipSeccomp(): string | false {
  try {
    execFileSync("python3", [withoutIpv6, "/bin/true"], { stdio: "pipe" });
    return false;
  } catch {
    return "requires python3, and seccomp of Linux";
  }
}
