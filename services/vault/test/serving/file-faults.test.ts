// Storage's files beside the store × every fault: users, keys, roles, session keys and the master key are whole, or the loss
// is told. crash/fault-matrix.test.ts has the files of the store itself.
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { loadConfig } from "@platform/kernel/config";
import { createEmbeddedLifecycle } from "@platform/kernel/lifecycle";
import { createLogger } from "@platform/kernel/log";
import { runFaultMatrix } from "@platform/testing/faults";
import { vaultDefinition } from "../../src/config.ts";
import { LogOutput } from "../../src/log/log-output.ts";
import { startVault } from "../../src/service.ts";
import { S3TestClient } from "./s3-client.ts";
import { vaultRoot } from "@platform/testing/staged-vault";

const SECRET = "a secret of more than thirty-two bytes";
const ISSUER = "http://identity.test";
const ALL = {
  Version: "2012-10-17",
  Statement: [{ Effect: "Allow", Action: "s3:*", Resource: "*" }],
};
/** Files that fsck and the matrix of the store cover, and the list of abandoned events, which only people read. */
const FOREIGN = /^(?:index|lock|buckets|scrub|drive|segments|files|staging|quarantine|events)/;
const OUTPUT = new LogOutput("json");

interface SessionKey {
  accessKey: string;
  secretKey: string;
  token: string;
}

/** Starts storage in this process. */
async function start(folder: string) {
  const loaded = loadConfig(vaultDefinition, {
    argv: [],
    env: {
      PLATFORM_VAULT_ADDR: "127.0.0.1:0",
      PLATFORM_VAULT_ADMIN_ADDR: "127.0.0.1:0",
      PLATFORM_VAULT_DATA_DIR: folder,
      PLATFORM_VAULT_ENABLE_AUDIT: "false",
      PLATFORM_JWT_SECRET: SECRET,
      PLATFORM_JWT_ISSUER: ISSUER,
      STORE_ACCESS_KEY_ID: vaultRoot.accessKey,
      STORE_SECRET_ACCESS_KEY: vaultRoot.secretKey,
    },
  });
  if (loaded.kind !== "run" || loaded.command !== "") throw new Error("not a service");
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  const log = createLogger({ service: "vault", level: "warn", format: "json", write });
  const lifecycle = createEmbeddedLifecycle(log);
  const stop = () => lifecycle.close();
  try {
    await startVault({ config: loaded.config, log, output: OUTPUT, lifecycle });
  } catch (error) {
    await stop();
    throw error;
  }
  const portOf = (name: string) => lifecycle.listeners.find((one) => one.name === name)!.port;
  return { lines, stop, port: portOf("http"), adminPort: portOf("admin") };
}

function makeToken(round: number): string {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = { iss: ISSUER, sub: `user-${round}`, tenant: "main", roles: ["notes"] };
  const exp = Math.floor(Date.now() / 1_000) + 3_600;
  const body = encode({ ...claims, scope: "vault:read vault:write", exp });
  const text = `${encode({ alg: "HS256", typ: "JWT" })}.${body}`;
  return `${text}.${createHmac("sha256", SECRET).update(text).digest("base64url")}`;
}

test("no fault of a file beside the store is silent", async (t) => {
  const users: { name: string; accessKey: string; secretKey: string }[] = [];
  const sessions: SessionKey[] = [];
  let isRecorded = false;
  await runFaultMatrix(t, {
    isForeign: (file) => FOREIGN.test(file),
    async start(folder) {
      const vault = await start(folder);
      const s3 = new S3TestClient(vault.port, vaultRoot);
      const admin = new S3TestClient(vault.adminPort, vaultRoot);
      const json = { "content-type": "application/json" };
      const send = (method: string, path: string, body: object) =>
        admin.must(method, path, { body: JSON.stringify(body), headers: json });
      const issueSession = async (round: number): Promise<SessionKey> => {
        const fields = {
          Action: "AssumeRoleWithWebIdentity",
          Version: "2011-06-15",
          RoleArn: "arn:aws:iam:::role/notes",
          RoleSessionName: "test",
          WebIdentityToken: makeToken(round),
        };
        const { text } = await s3.must("POST", "/", {
          key: null,
          body: new URLSearchParams(fields).toString(),
          headers: { "content-type": "application/x-www-form-urlencoded" },
        });
        const read = (name: string) => new RegExp(`<${name}>([^<]*)</${name}>`).exec(text)![1]!;
        return {
          accessKey: read("AccessKeyId"),
          secretKey: read("SecretAccessKey"),
          token: read("SessionToken"),
        };
      };
      return {
        async write(round) {
          await s3.must("PUT", `/bucket-${round}`);
          await s3.must("PUT", `/bucket-${round}/sealed`, {
            body: "sealed",
            headers: { "x-amz-server-side-encryption": "AES256" },
          });
          await send("PUT", "/api/v1/roles/notes", { policies: { all: ALL } });
          for (let number = 0; number < 3; number++) {
            const name = `user-${round}-${number}`;
            const key = { accessKey: `key-of-${name}`, secretKey: `secret-of-${name}` };
            await send("PUT", `/api/v1/users/${name}`, { policies: { all: ALL } });
            const { accessKey: access_key, secretKey: secret_key } = key;
            await send("POST", "/api/v1/keys", { user: name, access_key, secret_key });
            const session = await issueSession(round);
            if (isRecorded) continue;
            users.push({ name, ...key });
            sessions.push(session);
          }
        },
        async read() {
          isRecorded = true;
          const found: unknown[] = [];
          for (const key of users)
            found.push((await s3.must("GET", "/bucket-1/sealed", { key })).text);
          for (const { token, ...key } of sessions) {
            const headers = { "x-amz-security-token": token };
            found.push((await s3.must("GET", "/bucket-2/sealed", { key, headers })).text);
          }
          found.push((await admin.must("GET", "/api/v1/users")).text);
          found.push((await admin.must("GET", "/api/v1/keys")).text);
          return found;
        },
        async readReports() {
          const ready = await admin.send("GET", "/readyz", { key: null });
          return [...vault.lines, ...(ready.status === 200 ? [] : [ready.text])].join("\n");
        },
        async stop() {
          s3.close();
          admin.close();
          await vault.stop();
        },
      };
    },
  });
});
