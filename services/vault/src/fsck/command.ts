// `platform-vaultd fsck`: checks the store of a configuration and prints the findings.
import { join } from "node:path";
import { loadMasterKey, SecretBox } from "../access/secret-box.ts";
import { toStoreOptions, type VaultConfig } from "../config.ts";
import { checkStore } from "./check-store.ts";

/** Runs the command. Resolves to the exit code: 0 if nothing is damaged or lost. */
export async function runFsck(
  config: VaultConfig,
  { repair: isRepair, remotes }: { repair: boolean; remotes: boolean },
): Promise<number> {
  const { findings, isWhole } = await checkStore({
    dataDir: config.data_dir,
    drives: config.drives,
    isRepair,
    ...(remotes ? { remotes: openRemotes(config) } : {}),
  });
  for (const { state, path, text } of findings) {
    process.stdout.write(`${state.padEnd(9)} ${path}: ${text}\n`);
  }
  const repairable = findings.some(({ state }) => state === "restored");
  if (!isRepair && repairable) {
    process.stdout.write(
      "Nothing was changed. Run the command again with --repair to restore it.\n",
    );
  }
  return isWhole ? 0 : 1;
}

function openRemotes(config: VaultConfig) {
  const masterKey =
    config.master_key === undefined
      ? loadMasterKey(join(config.data_dir, "access", "master.key"), true)
      : Buffer.from(config.master_key, "base64");
  const { remoteNetworks: networks = [] } = toStoreOptions(config);
  return { secrets: new SecretBox(masterKey), networks };
}
