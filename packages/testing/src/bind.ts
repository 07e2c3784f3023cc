// The DNS server bind9 with zones that can be changed, for tests: Debian's packages.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findFreePort } from "@platform/kernel/testing";
import { waitFor } from "./wait.ts";

const hasBind = spawnSync("named", ["-v"]).error === undefined;
const isRequired = process.env["PLATFORM_TEST_PEERS"] === "required";

/** Reason to skip a test that needs bind9; false if it runs. */
export const bindSkip: string | false =
  hasBind || isRequired
    ? false
    : "bind9 is not installed (Debian: bind9, bind9-dnsutils, bind9-host)";

/** A running server that is the authority of its zones. */
export interface Bind {
  port: number;
  /** Key of its updates in the form `algorithm:name:secret`. */
  tsigKey: string;
  /** Runs commands of nsupdate, such as `add a.example.test 60 A 127.0.0.1`. */
  update: (zone: string, ...commands: string[]) => void;
  /** The data of the records of a name, one a line; "" without a record. */
  dig: (name: string, type: string) => string;
  stop: () => Promise<void>;
}

/** Starts the server at 127.0.0.1 with empty zones. A fixed `port` allows a restart. */
export async function startBind(
  folder: string,
  zones: readonly string[],
  port?: number,
): Promise<Bind> {
  const used = port ?? (await findFreePort());
  const place = join(folder, `bind-${used}`);
  mkdirSync(place, { recursive: true });
  const secret = Buffer.from("a secret of thirty-two bytes....").toString("base64");
  const path = writeConfig(place, used, zones, secret);
  const child = spawn("named", ["-g", "-n", "1", "-c", path], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (log += text));
  const isOver = () => child.exitCode !== null || child.signalCode !== null;
  await waitFor(
    () => {
      if (isOver()) throw new Error(`named ended: ${log}`);
      return log.includes("all zones loaded");
    },
    () => log,
  );
  return {
    port: used,
    tsigKey: `hmac-sha256:test-key:${secret}`,
    update: (zone, ...commands) => {
      const lines = [`server 127.0.0.1 ${used}`, `zone ${zone}`, ...commands, "send", ""];
      const { status, stderr } = spawnSync("nsupdate", ["-y", `hmac-sha256:test-key:${secret}`], {
        input: lines.join("\n"),
        encoding: "utf8",
        timeout: 10_000,
      });
      if (status !== 0) throw new Error(`nsupdate: ${stderr}`);
    },
    dig: (name, type) =>
      spawnSync("dig", ["@127.0.0.1", "-p", String(used), "+short", name, type], {
        encoding: "utf8",
        timeout: 10_000,
      }).stdout.trim(),
    stop: async () => {
      if (isOver()) return;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
  };
}

function writeConfig(
  place: string,
  port: number,
  zones: readonly string[],
  secret: string,
): string {
  const declared = zones.map((zone) => {
    const file = join(place, zone);
    const start = `$TTL 1\n@ SOA ns.${zone}. admin.${zone}. 1 60 60 60 1\n@ NS ns.${zone}.\nns A 127.0.0.1\n`;
    writeFileSync(file, start);
    return `zone "${zone}" { type master; file "${file}"; allow-update { key "test-key"; }; };`;
  });
  const config = [
    `options { directory "${place}"; pid-file none; listen-on port ${port} { 127.0.0.1; };`,
    "listen-on-v6 { none; }; recursion no; max-records-per-type 0; dnssec-validation no; allow-query { any; };",
    `session-keyfile "${join(place, "session.key")}"; };`,
    "controls { };",
    `key "test-key" { algorithm hmac-sha256; secret "${secret}"; };`,
    ...declared,
  ];
  const path = join(place, "named.conf");
  writeFileSync(path, config.join("\n"));
  return path;
}
