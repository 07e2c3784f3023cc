// The remote configuration: its settings come from file, environment and flags, and its document lies between file and
// environment.
import { loadConfig } from "@platform/kernel/config";
import type { Logger } from "@platform/kernel/log";
import { gateDefinition } from "../config/document.ts";
import { checkLoaded, type GateSources, type LoadedGate } from "../config/load.ts";
import { getStateFolder } from "../config/state-folder.ts";
import { RemoteConfig } from "../source/remote-config.ts";
import { readAuthorities } from "../config/authorities.ts";

/** The configuration with the remote document, if there is one. */
export interface LoadedRemote {
  loaded: LoadedGate;
  /** Undefined without `config_store_bucket`. */
  remote: RemoteConfig | undefined;
}

/** Reads the remote document. Throws if neither bucket nor copy is usable, or the document is not valid. */
export async function loadRemote(
  before: LoadedGate,
  sources: GateSources,
  log: Logger,
): Promise<LoadedRemote> {
  const { config, path } = before;
  const { config_store_bucket: place } = config;
  if (place === undefined) return { loaded: before, remote: undefined };
  const [bucket = "", ...rest] = place.replace(/^s3:\/\//, "").split("/");
  const remote = new RemoteConfig({
    endpoint: config.config_store_endpoint,
    region: config.config_store_region,
    bucket,
    key: rest.length === 0 ? "config.json" : rest.join("/"),
    accessKey: config.config_store_access_key ?? "",
    secretKey: config.config_store_secret_key ?? "",
    ca:
      config.config_store_ca === undefined
        ? undefined
        : readAuthorities(config.config_store_ca, "config_store_ca"),
    pollMs: config.config_store_poll_s * 1_000,
    folder: getStateFolder(config.data_dir, path),
    isEphemeral: config.ephemeral,
    log,
  });
  await remote.load();
  const overrides = remote.document;
  const next = loadConfig(gateDefinition, {
    ...sources,
    ...(overrides === undefined ? {} : { overrides }),
  });
  if (next.kind !== "run") throw new Error("the command line does not start the gateway");
  return { loaded: checkLoaded(next), remote };
}
