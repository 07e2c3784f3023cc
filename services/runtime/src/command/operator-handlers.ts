// The functions of the commands that list what there is, and of those that replace credentials and keys. Their code is loaded
// when one of them runs.

interface Call<Options> {
  options: Options & { data: string };
  positionals: string[];
}

type Named = Call<Record<never, never>>;

/** One function for each of these commands. */
export const OPERATOR_HANDLERS = {
  "user list": async ({ options }: Call<{ json: boolean }>) =>
    (await import("./list.ts")).runUserList(options),
  "bucket list": async ({ options }: Call<{ json: boolean }>) =>
    (await import("./list.ts")).runBucketList(options),
  "module put": async ({
    options: { data },
    positionals: [name = "", file = ""],
  }: Call<Record<never, never>>) =>
    (await import("./storage-jobs.ts")).runModulePut(data, name, file),
  "job list": async ({ options }: Call<{ json: boolean }>) =>
    (await import("./storage-jobs.ts")).runJobList(options),
  "job show": async ({ options: { data }, positionals: [id = ""] }: Call<Record<never, never>>) =>
    (await import("./storage-jobs.ts")).runJobShow(data, id),
  "job cancel": async ({ options: { data }, positionals: [id = ""] }: Call<Record<never, never>>) =>
    (await import("./storage-jobs.ts")).runJobCancel(data, id),
  "remote list": async ({ options }: Call<{ json: boolean }>) =>
    (await import("./storage-places.ts")).runRemoteList(options),
  "remote check": async ({
    options: { data },
    positionals: [name = "", bucket],
  }: Call<Record<never, never>>) =>
    (await import("./storage-places.ts")).runRemoteCheck(data, name, bucket),
  "federation list": async ({ options }: Call<{ json: boolean }>) =>
    (await import("./storage-places.ts")).runFederationList(options),
  "replication show": async ({ options, positionals: [bucket = ""] }: Call<{ json: boolean }>) =>
    (await import("./storage-places.ts")).runReplicationShow({ ...options, bucket }),
  "tier sweep": async ({
    options: { data },
    positionals: [bucket = ""],
  }: Call<Record<never, never>>) =>
    (await import("./storage-places.ts")).runTierSweep(data, bucket),
  "encryption-key list": async ({ options }: Call<{ json: boolean }>) =>
    (await import("./encryption-keys.ts")).runKeyList(options),
  "encryption-key create": async ({
    options: { data, ...key },
    positionals: [name = ""],
  }: Call<{ source: string; description: string }>) =>
    (await import("./encryption-keys.ts")).runKeyCreate(data, name, key),
  "encryption-key rotate": async ({ options: { data }, positionals: [name = ""] }: Named) =>
    (await import("./encryption-keys.ts")).runKeyRotate(data, name),
  "encryption-key enable": async ({ options: { data }, positionals: [name = ""] }: Named) =>
    (await import("./encryption-keys.ts")).runKeyState(data, name, "enable"),
  "encryption-key disable": async ({ options: { data }, positionals: [name = ""] }: Named) =>
    (await import("./encryption-keys.ts")).runKeyState(data, name, "disable"),
  "encryption-key delete": async ({
    options: { data, days },
    positionals: [name = ""],
  }: Call<{ days: number }>) =>
    (await import("./encryption-keys.ts")).runKeyDelete(data, name, days),
  "encryption-key rewrap": async ({ options: { data, heads } }: Call<{ heads: boolean }>) =>
    (await import("./encryption-keys.ts")).runKeyRewrap(data, { heads }),
  "app list": async ({ options }: Call<{ json: boolean }>) =>
    (await import("./list.ts")).runAppList(options),
  "credentials list": async ({ options }: Call<{ json: boolean }>) =>
    (await import("./credentials.ts")).runCredentialsList(options),
  "credentials rotate": async ({
    options: { data, overlap_s: overlapS },
    positionals: [name = ""],
  }: Call<{ overlap_s: number }>) =>
    (await import("./credentials.ts")).runCredentialsRotate({ data, name, overlapS }),
  "keys rotate": async ({ options: { data, now: isNow } }: Call<{ now: boolean }>) =>
    (await import("./keys.ts")).runKeysRotate({ data, isNow }),
};
