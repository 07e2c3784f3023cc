// `node tools/write-contract.ts`: writes docs/reference/openapi/ and the console's types of answers, from the documents of
// all services, which it starts.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { parseEnv } from "node:util";
import { CONTRACT_SERVICES, formatContract } from "./contract.ts";
import { fetchDocument, locateApi, type RunningPlatform } from "./service-documents.ts";

const ADDRESSES =
  "gate console hello auth notify vault vault-admin pulse pulse-kafka pulse-mqtt pulse-stomp tunnel runtime";
const anyPort = ADDRESSES.split(" ").flatMap((name) => [`--${name}-addr`, "127.0.0.1:0"]);

const folder = mkdtempSync(join(tmpdir(), "contract-"));
const platform = spawn(
  process.execPath,
  ["bin/platform.js", "up", "--json", "--data", folder, ...anyPort],
  { stdio: ["ignore", "pipe", "inherit"] },
);
try {
  const started = await readBanner();
  const credentials = parseEnv(readFileSync(join(folder, "credentials.env"), "utf8"));
  for (const service of CONTRACT_SERVICES) {
    const api = locateApi(started, service);
    const document = await fetchDocument(api, credentials as Record<string, string>);
    for (const { path, text } of formatContract(service, document)) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
  }
} finally {
  if (platform.exitCode === null) {
    platform.kill("SIGTERM");
    await once(platform, "exit");
  }
  rmSync(folder, { recursive: true, force: true });
}

async function readBanner(): Promise<RunningPlatform> {
  for await (const line of createInterface({ input: platform.stdout })) {
    if (!line.startsWith('{"type":"started"')) continue;
    platform.stdout.resume();
    return JSON.parse(line) as RunningPlatform;
  }
  throw new Error("the platform did not start");
}
