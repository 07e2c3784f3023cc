// Buckets of remotes: what they are able to do is asked once in a while.
import { S3ClientError } from "@platform/s3";
import type { Clock } from "@platform/kernel/time";
import type { Owner } from "../model/bucket.ts";
import { S3Error } from "../model/s3-error.ts";
import type { Store } from "../object-store.ts";
import type { Remote } from "../remote/remote.ts";
import type { DestinationBucket } from "../s3/context.ts";
import { parseXml } from "../s3/wire/xml.ts";
import { RemoteTarget } from "./remote-target.ts";
import { ReplicationFault, toFault } from "./target.ts";

const KNOWN_MS = 600_000;
const KNOWN_MAX = 1_000;
/** Header with which stores of this kind answer GetBucketVersioning. */
const TAKES_FIELD = "x-store-source-versions";
const INSPECT_MS_MAX = 10_000;

interface Known {
  readonly target: RemoteTarget;
  readonly untilMs: number;
}

/** Options of {@link Destinations}. */
export interface DestinationsOptions {
  readonly store: Store;
  readonly owner: Owner;
  readonly clock: Clock;
}

export class Destinations {
  readonly #options: DestinationsOptions;
  readonly #known = new Map<string, Known>();

  constructor(options: DestinationsOptions) {
    this.#options = options;
  }

  /** A bucket of a remote as a destination. Throws a ReplicationFault if it cannot be one. */
  async open(name: string, bucket: string, signal: AbortSignal): Promise<RemoteTarget> {
    const { store, owner, clock } = this.#options;
    const place = `${name}/${bucket}`;
    const known = this.#known.get(place);
    if (known !== undefined && known.untilMs > clock.monotonicMs()) return known.target;
    const remote = store.remotes.find(name);
    if (remote === undefined)
      throw new ReplicationFault(`the remote ${name} is not registered`, "refused");
    const { versioning, takesVersions } = await ask(remote, bucket, signal);
    if (versioning !== "Enabled")
      throw new ReplicationFault(`the bucket ${bucket} has no versioning there`, "refused");
    const target = new RemoteTarget({
      remote,
      bucket,
      takesVersions,
      objects: store.objects,
      storeId: store.remotes.storeId,
      owner,
      now: () => clock.now(),
    });
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.set(place, { target, untilMs: clock.monotonicMs() + KNOWN_MS });
    return target;
  }

  /** Asks about a bucket when a rule is put. Throws InvalidRequest if the remote does not answer. */
  async inspect(name: string, bucket: string): Promise<DestinationBucket> {
    const remote = this.#options.store.remotes.find(name);
    if (remote === undefined) throw new S3Error("InvalidArgument", `there is no remote ${name}`);
    const signal = AbortSignal.timeout(INSPECT_MS_MAX);
    try {
      const { versioning } = await ask(remote, bucket, signal);
      return { versioning, objectLockEnabled: await hasLock(remote, bucket, signal) };
    } catch (cause) {
      if (!(cause instanceof ReplicationFault)) throw cause;
      const message = `The destination bucket ${bucket} of the remote ${name} cannot be used: ${cause.message}`;
      throw new S3Error("InvalidRequest", { message, cause });
    }
  }
}

async function ask(remote: Remote, bucket: string, signal: AbortSignal) {
  const query = [["versioning", ""]] as const;
  const call = { operation: "describe", method: "GET", query } as const;
  const reply = await remote
    .client(bucket)
    .request(call, { signal, attemptsMax: 1 })
    .catch((error: unknown) => {
      throw toFault(error);
    });
  const status = readStatus(reply.text);
  const versioning: DestinationBucket["versioning"] =
    status === "Enabled" || status === "Suspended" ? status : "Unset";
  return { versioning, takesVersions: reply.headers[TAKES_FIELD] === "accepted" };
}

function readStatus(text: string): string | undefined {
  try {
    return parseXml(Buffer.from(text), "VersioningConfiguration").findText("Status");
  } catch (cause) {
    throw new ReplicationFault("its answer about versioning is not one of S3", "refused", {
      cause,
    });
  }
}

async function hasLock(remote: Remote, bucket: string, signal: AbortSignal): Promise<boolean> {
  const query = [["object-lock", ""]] as const;
  const call = { operation: "describe", method: "GET", query } as const;
  try {
    const { text } = await remote.client(bucket).request(call, { signal, attemptsMax: 1 });
    return text.includes("Enabled");
  } catch (error) {
    // Not found, or a store that does not know locks.
    if (error instanceof S3ClientError && !error.isTransient) return false;
    throw toFault(error);
  }
}
