// Kafka clients that are programs: kcat, and two Python libraries behind a small script each.
import { execFile, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Codec, RealKafkaClient } from "./client.ts";

const run = promisify(execFile);
const timeoutMs = 60_000;
const python = "/usr/bin/python3";

function readOutput(command: string, args: readonly string[]): string | undefined {
  const result = spawnSync(command, args, { encoding: "utf8", timeout: timeoutMs });
  return result.status === 0 ? (result.stdout + result.stderr).trim() : undefined;
}

const kcat: RealKafkaClient = {
  name: "kcat",
  debianPackage: "kcat",
  codecs: ["none", "gzip", "snappy", "lz4", "zstd"],
  readVersion: () =>
    /Version ([\d.]+).*librdkafka ([\d.]+)/s
      .exec(readOutput("kcat", ["-V"]) ?? "")
      ?.slice(1)
      .join(" (librdkafka ")
      .concat(")"),
  async produce(servers, topic, codec, count, prefix) {
    const lines = Array.from({ length: count }, (_, number) => `k${number}:${prefix}${number}\n`);
    const args = ["-P", "-b", servers, "-t", topic, "-K", ":", "-z", codec, "-X", "acks=all"];
    const child = run("kcat", args, { timeout: timeoutMs });
    child.child.stdin!.end(lines.join(""));
    await child;
  },
  async consume(servers, topic, group, count) {
    const settings = ["-X", "auto.offset.reset=earliest", "-c", String(count), "-q"];
    const args = ["-b", servers, "-G", group, ...settings, "-f", "%s\\n", topic];
    const { stdout } = await run("kcat", args, { timeout: timeoutMs });
    return stdout.trim().split("\n");
  },
};

function pythonClient(
  name: string,
  debianPackage: string,
  script: string,
  codecs: readonly Codec[],
): RealKafkaClient {
  const path = fileURLToPath(new URL(script, import.meta.url));
  return {
    name,
    debianPackage,
    codecs,
    readVersion: () => readOutput(python, [path, "version", "-"]),
    async produce(servers, ...args) {
      await run(python, [path, "produce", servers, ...args.map(String)], { timeout: timeoutMs });
    },
    async consume(servers, ...args) {
      const texts = args.map(String);
      const { stdout } = await run(python, [path, "consume", servers, ...texts], {
        timeout: timeoutMs,
      });
      return JSON.parse(stdout) as string[];
    },
  };
}

/** The programs. */
export const programs: readonly RealKafkaClient[] = [
  kcat,
  pythonClient("confluent-kafka", "python3-confluent-kafka", "confluent-kafka.py", [
    "none",
    "gzip",
    "snappy",
    "lz4",
    "zstd",
  ]),
  pythonClient("python-kafka", "python3-kafka", "python-kafka.py", ["none", "gzip"]),
];
