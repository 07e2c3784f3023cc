// Both listeners over TLS, with a certificate that is renewed while they run.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "node:tls";
import { makeCertificate, opensslSkip as skip } from "@platform/testing/certificates";
import { waitFor } from "@platform/testing/wait";
import { signRequest } from "@platform/s3/signature";
import { serve } from "./serving.ts";
import { vaultRoot } from "@platform/testing/staged-vault";

async function readCommonName(port: number): Promise<unknown> {
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return subject.CN;
}

async function send(port: number, method: string, target: string): Promise<number> {
  const { headers } = signRequest(
    { accessKey: vaultRoot.accessKey, secret: vaultRoot.secretKey, region: "us-east-1" },
    {
      method,
      target,
      headers: { host: `127.0.0.1:${port}` },
      payloadHash: "UNSIGNED-PAYLOAD",
      timeMs: Date.now(),
    },
  );
  const options = { host: "127.0.0.1", port, method, path: target, headers };
  const sent = request({ ...options, rejectUnauthorized: false, agent: false });
  sent.end();
  const [answer] = (await once(sent, "response")) as [{ statusCode: number; resume(): void }];
  answer.resume();
  return answer.statusCode;
}

test(
  "both listeners use TLS, and load a renewed certificate while they run",
  { skip },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "vault-tls-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const issue = (name: string) => makeCertificate(folder, "tls", { subject: `/CN=${name}` });
    const { cert, key } = issue("first");
    const env = { PLATFORM_VAULT_TLS_CERT: cert, PLATFORM_VAULT_TLS_KEY: key };
    await using serving = await serve({ folder, env });
    const { port, adminPort } = serving.vault;
    assert.equal(await send(port, "PUT", "/secure"), 200);
    assert.equal(await send(adminPort, "GET", "/api/v1/users"), 200);
    assert.equal(await readCommonName(port), "first");
    await assert.rejects(serving.s3.send("GET", "/secure"));
    writeFileSync(cert, "half of it");
    await waitFor(() => serving.vault.output.includes("certificate is invalid"), "the warning");
    assert.equal(await readCommonName(port), "first");
    issue("second");
    for (const one of [port, adminPort]) {
      await waitFor(async () => (await readCommonName(one)) === "second", "the new certificate");
    }
    assert.equal(await send(port, "HEAD", "/secure"), 200);
  },
);
