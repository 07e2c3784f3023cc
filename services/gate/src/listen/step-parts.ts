// Creates the parts of a worker that the steps of its routes use.
import { AiParts } from "../ai/ai-parts.ts";
import type { AccessState } from "../filter/identity/access-state.ts";
import { CompressionBudget } from "../filter/content/compressor.ts";
import type { ControlLink } from "../filter/control-link.ts";
import { DetachedRequests } from "../filter/copy/detached-requests.ts";
import { ActiveIdentity, IdentityLines, type VerifierSource } from "../filter/identity/identity.ts";
import { MirrorSender } from "../filter/copy/mirror-sender.ts";
import { RateLimiter, type RateLimiterOptions } from "../filter/limit/rate-limiter.ts";
import type { ResilienceOptions } from "../upstream/resilience.ts";
import type { StepParts } from "../filter/step-parts.ts";
import { CacheKeys } from "../cache/cache-key.ts";
import { ResponseCache } from "../cache/response-cache.ts";
import { SemanticCache } from "../ai/semantic/semantic-cache.ts";
import { SharedAccounts } from "../ai/ledger/shared-accounts.ts";
import { LedgerWriter } from "../ai/ledger/ledger-writer.ts";
import { BodyBudget } from "../middleware/body-budget.ts";
import { GuestRegistry } from "../middleware/guest-registry.ts";
import { RecordingLog } from "../recording/recording-log.ts";
import {
  AiAccounts,
  CacheFlights,
  ConcurrencyRows,
  readMonotonicMs,
  SharedCache,
  SharedLinkState,
  SharedRateTable,
  SharedRouteState,
  TokenWindows,
  type FromWorker,
  type MetricBlock,
  type SharedBuffers,
  type WorkerInit,
} from "../shared-state/index.ts";

/** Memory of the compressors of a worker: about 64 responses with brotli, or 300 with gzip. */
const COMPRESSION_BYTES_MAX = 100_663_296;

/** Options of {@link createStepParts}. */
export interface StepPartsOptions {
  init: WorkerInit;
  verifiers: VerifierSource;
  access: AccessState;
  control: ControlLink;
  onGuardError: StepParts["onGuardError"];
  block: MetricBlock;
  /** A monotonic clock in milliseconds. */
  readNowMs: () => number;
  log: RateLimiterOptions["log"];
  /** Sends a message to the control plane. */
  send: (message: FromWorker) => void;
}

/** Options of the resilience of all routes of a worker. */
export function createResilienceOptions(
  shared: SharedBuffers,
  block: MetricBlock,
  readNowMs: () => number,
): ResilienceOptions {
  const links = new SharedLinkState(shared.links);
  return { links, readNowMs, onOpen: () => block.addCounter("circuitsOpened", 1) };
}

/** Creates the parts of one worker. */
export function createStepParts(options: StepPartsOptions): StepParts {
  const { init, verifiers, access, control, onGuardError, block, log } = options;
  const { shared, workerIndex } = init;
  const offsetMs = readMonotonicMs() - shared.startedMs - options.readNowMs();
  const readNowMs = (): number => options.readNowMs() + offsetMs;
  const cache = {
    store: new SharedCache(shared.cache, workerIndex),
    flights: new CacheFlights(
      shared.flights,
      workerIndex,
      () => 1 + Math.floor(Math.max(0, readNowMs()) / 1_000),
    ),
    keys: new CacheKeys(shared.seed),
  };
  return {
    verifiers,
    identity: new ActiveIdentity(),
    identityLines: new IdentityLines(),
    access,
    control,
    cookieKeys: init.cookieKeys ?? [],
    onGuardError,
    block,
    compression: new CompressionBudget(COMPRESSION_BYTES_MAX),
    guests: { registry: createGuests(options), bodies: new BodyBudget(), onError: onGuardError },
    ai: createAi(options, readNowMs, cache),
    mirrors: new MirrorSender(block),
    recordings: new RecordingLog(),
    limiter: new RateLimiter({
      table: new SharedRateTable(shared.rates, shared.seed),
      block,
      readNowMs,
      log,
    }),
    concurrency: new ConcurrencyRows(shared.concurrency, shared.workers, workerIndex),
    routeState: new SharedRouteState(shared.routes),
    cache: {
      ...cache,
      responses: new ResponseCache({ ...cache, block, readTimeMs: Date.now }),
      detached: new DetachedRequests(block),
    },
    readNowMs,
  };
}

function createAi(
  { init, send, log, control, block }: StepPartsOptions,
  readNowMs: () => number,
  { store, keys }: Pick<StepParts["cache"], "store" | "keys">,
): AiParts {
  const { shared } = init;
  const { gateway, ...ledger } = init.ledger;
  return new AiParts({
    accounts: new AiAccounts(shared.accounts),
    windows: new TokenWindows(shared.tokens),
    shared: new SharedAccounts({
      gateway,
      readNowMs,
      log,
      onLocal: () => block.addCounter("aiAccountsLocal", 1),
    }),
    seed: shared.seed,
    readNowMs,
    readTimeMs: Date.now,
    report: (figures) => send({ type: "ai-figures", figures }),
    semantic: new SemanticCache({ store, keys, similar: control, readTimeMs: Date.now }),
    ledger: new LedgerWriter({
      ...ledger,
      onError: ({ message }) => log("warn", "cannot write the AI ledger", { error: message }),
    }),
  });
}

function createGuests({ readNowMs, send }: StepPartsOptions): GuestRegistry {
  return new GuestRegistry({
    readNowMs,
    log: (level, msg, name) => send({ type: "log", level, msg, fields: { middleware: name } }),
    report: (figures) => send({ type: "guest-figures", figures }),
  });
}
