// The ACME directory pebble with its DNS server, for tests: Debian's packages.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { findFreePort } from "@platform/kernel/testing";
import { makeCertificate } from "./certificates.ts";
import { waitFor } from "./wait.ts";

const hasPebble = spawnSync("pebble", ["-h"]).error === undefined;
const isRequired = process.env["PLATFORM_TEST_PEERS"] === "required";

/** Reason to skip a test that needs pebble; false if it runs. */
export const pebbleSkip: string | false =
  hasPebble || isRequired ? false : "pebble is not installed (Debian: pebble)";

/** Options of {@link startPebble}. */
export interface PebbleOptions {
  /** Folder of its files. */
  folder: string;
  /** Ports at which it validates. */
  tlsPort: number;
  httpPort: number;
  /** Life of certificates in seconds. Default: that of pebble, five years. */
  lifeSeconds?: number;
  /** Accounts have to be bound to one of these keys (base64url) by their IDs. */
  externalKeys?: Readonly<Record<string, string>>;
  /** Percent of good nonces that are refused. Default: 0. */
  nonceRefusals?: number;
  /** Port of a DNS server at 127.0.0.1. Default: one that resolves all names to 127.0.0.1. */
  dnsPort?: number;
}

/** A running directory. */
export interface Pebble {
  directoryUrl: string;
  /** File with the authority of its own listener. */
  caPath: string;
  /** Its log so far. */
  readLog: () => string;
  /** The authority of the certificates that it issues, in PEM. */
  readRoot: () => Promise<string>;
  stop: () => Promise<void>;
}

/** Starts pebble. It has forgotten everything after a stop. */
export async function startPebble(options: PebbleOptions): Promise<Pebble> {
  const { folder, tlsPort, httpPort, lifeSeconds, externalKeys, nonceRefusals = 0 } = options;
  const [port, managementPort] = [await findFreePort(), await findFreePort()];
  const own = makeCertificate(folder, "pebble", { names: "DNS:localhost,IP:127.0.0.1" });
  const config = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${managementPort}`,
    certificate: own.cert,
    privateKey: own.key,
    httpPort,
    tlsPort,
    ...(lifeSeconds === undefined ? {} : { certificateValidityPeriod: lifeSeconds }),
    ...(externalKeys === undefined
      ? {}
      : { externalAccountBindingRequired: true, externalAccountMACKeys: externalKeys }),
  };
  const path = join(folder, `pebble-${port}.json`);
  writeFileSync(path, JSON.stringify({ pebble: config }));
  const dns = options.dnsPort === undefined ? await startDns() : undefined;
  const output = { text: "" };
  const dnsServer = `127.0.0.1:${options.dnsPort ?? dns?.port}`;
  const child = spawn("pebble", ["-config", path, "-dnsserver", dnsServer], {
    env: {
      ...process.env,
      PEBBLE_VA_NOSLEEP: "1",
      PEBBLE_WFE_NONCEREJECT: String(nonceRefusals),
      // A valid authorization would make the next order skip its challenge.
      PEBBLE_AUTHZREUSE: "0",
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (output.text += text));
  }
  await waitFor(
    () => output.text.includes("ACME directory available"),
    () => output.text,
  );
  const ca = readFileSync(own.cert);
  return {
    directoryUrl: `https://localhost:${port}/dir`,
    caPath: own.cert,
    readLog: () => output.text,
    readRoot: () => read(`https://localhost:${managementPort}/roots/0`, ca),
    stop: async () => {
      await end(child);
      if (dns !== undefined) await end(dns.child);
    },
  };
}

async function startDns(): Promise<{ child: ChildProcess; port: number }> {
  const [port, managementPort] = [await findFreePort(), await findFreePort()];
  const listeners = ["-dns01", `127.0.0.1:${port}`, "-management", `127.0.0.1:${managementPort}`];
  const unused = ["-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv6", ""];
  const child = spawn("pebble-challtestsrv", [...listeners, ...unused], { stdio: "ignore" });
  await once(child, "spawn");
  return { child, port };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

async function read(url: string, ca: Buffer): Promise<string> {
  const asked = request(url, { ca }).end();
  const [answer] = (await once(asked, "response")) as [AsyncIterable<Buffer>];
  let text = "";
  for await (const piece of answer) text += piece.toString();
  return text;
}
