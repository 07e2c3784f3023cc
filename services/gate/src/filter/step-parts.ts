// Parts that a worker provides to the steps of all its routes.
import type { AiParts } from "../ai/ai-parts.ts";
import type { CacheKeys } from "../cache/cache-key.ts";
import type { ResponseCache } from "../cache/response-cache.ts";
import type { GuestParts } from "../middleware/request-guests.ts";
import type { RecordingLog } from "../recording/recording-log.ts";
import type {
  CacheFlights,
  ConcurrencyRows,
  MetricBlock,
  SharedCache,
  SharedRouteState,
} from "../shared-state/index.ts";
import type { AccessState } from "./identity/access-state.ts";
import type { CompressionBudget } from "./content/compressor.ts";
import type { ControlLink } from "./control-link.ts";
import type { DetachedRequests } from "./copy/detached-requests.ts";
import type { ActiveIdentity, IdentityLines, VerifierSource } from "./identity/identity.ts";
import type { MirrorSender } from "./copy/mirror-sender.ts";
import type { RateLimiter } from "./limit/rate-limiter.ts";

/** Parts of a worker that steps use; one object per worker. */
export interface StepParts {
  verifiers: VerifierSource;
  identity: ActiveIdentity;
  identityLines: IdentityLines;
  access: AccessState;
  control: ControlLink;
  /** Keys of sealed cookies. */
  cookieKeys: readonly Uint8Array[];
  /** Reports that a service that a guard depends on failed. */
  onGuardError: (msg: string, url: string, error: unknown) => void;
  block: MetricBlock;
  compression: CompressionBudget;
  guests: GuestParts;
  ai: AiParts;
  mirrors: MirrorSender;
  recordings: RecordingLog;
  limiter: RateLimiter;
  concurrency: ConcurrencyRows;
  routeState: SharedRouteState;
  cache: {
    readonly store: SharedCache;
    readonly flights: CacheFlights;
    readonly keys: CacheKeys;
    readonly responses: ResponseCache;
    readonly detached: DetachedRequests;
  };
  /** Milliseconds of the clock that all workers share. */
  readNowMs: () => number;
}
