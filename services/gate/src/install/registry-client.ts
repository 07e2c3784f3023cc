// Gets middleware from a registry, and checks its digest before anything is done with it.
import { createHash } from "node:crypto";
import { GUEST_MODULE_BYTES_MAX } from "@platform/wasm/http";
import { type RegistryVersion, registryDocument } from "./registry-index.ts";

const DOCUMENT_BYTES_MAX = 1_048_576;
const TIMEOUT_MS = 30_000;

/** The registry or the gateway refuses; anything else is trouble with the network. */
export class InstallRefused extends Error {
  override readonly name = "InstallRefused";
}

/** A module from a registry. */
export interface RegistryModule {
  readonly version: string;
  readonly sha256: string;
  readonly bytes: Buffer;
}

/** Gets a version, by default the newest. Throws {@link InstallRefused}, or the error of the network. */
export async function fetchFromRegistry(
  registry: string,
  name: string,
  wanted: string | undefined,
): Promise<RegistryModule> {
  const base = `${registry.replace(/\/+$/, "")}/middleware/${name}.json`;
  const text = (await fetchBytes(new URL(base), DOCUMENT_BYTES_MAX)).toString("utf8");
  const { version, sha256, url } = chooseVersion(text, name, wanted);
  const source = new URL(url, base);
  if (source.origin !== new URL(registry).origin && source.protocol !== "https:")
    throw new InstallRefused(
      `the module is at ${source.origin}, which is neither the registry nor https`,
    );
  const bytes = await fetchBytes(source, GUEST_MODULE_BYTES_MAX);
  const digest = createHash("sha256").update(bytes).digest("hex");
  if (digest !== sha256)
    throw new InstallRefused(
      `the module has the SHA-256 ${digest}, not ${sha256} as the registry says`,
    );
  return { version, sha256, bytes };
}

function chooseVersion(text: string, name: string, wanted: string | undefined): RegistryVersion {
  let document;
  try {
    document = registryDocument.parse(JSON.parse(text));
  } catch (cause) {
    throw new InstallRefused("the registry's document is not valid", { cause });
  }
  if (document.name !== name)
    throw new InstallRefused(`the registry's document is that of ${document.name}`);
  if (wanted === undefined || wanted === document.version) return document;
  const found = document.versions?.find(({ version }) => version === wanted);
  if (found === undefined)
    throw new InstallRefused(`the registry has no version ${wanted} of ${name}`);
  return found;
}

async function fetchBytes(url: URL, bytesMax: number): Promise<Buffer> {
  const answer = await fetch(url, { redirect: "manual", signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (answer.status >= 300 && answer.status < 400)
    throw new InstallRefused(`${url.href} redirects, which is not followed`);
  if (!answer.ok) throw new InstallRefused(`${url.href} answers ${answer.status}`);
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of answer.body ?? []) {
    size += piece.length;
    if (size > bytesMax) throw new InstallRefused(`${url.href} has more than ${bytesMax} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
