// The folder of the gateway's state.

/** The folder of the gateway's state; see the key data_dir. */
export function getStateFolder(dataDir: string | undefined, configPath: string): string {
  return dataDir ?? `${configPath}.state`;
}
