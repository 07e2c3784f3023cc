// AI routes: their settings, and the figures that workers report.

/** Replacing of personal data. */
export interface PiiSpec {
  /** Answers get the values back. */
  readonly isReversible: boolean;
  readonly kinds: readonly PiiKind[];
  /** Regular expressions of RE2, by the name in placeholders. */
  readonly patterns: readonly (readonly [name: string, pattern: string])[];
}

/** Origins of the texts of a request. */
export const TEXT_ROLES = ["system", "user", "assistant", "tool"] as const;

/** One of {@link TEXT_ROLES}. */
export type TextRole = (typeof TEXT_ROLES)[number];

/** Judging of prompts. */
export interface GuardSpec {
  /** Score from which a request is blocked or reported. */
  readonly threshold: number;
  readonly blocks: boolean;
  readonly roles: readonly TextRole[];
  /** Texts that one of these expressions of RE2 matches are not judged. */
  readonly allow: readonly string[];
  /** Service that judges, too. */
  readonly url?: string;
  /** Requests pass while the service fails. */
  readonly isOpenOnError: boolean;
}

/** Kinds of personal data that the gateway knows. */
export const PII_KINDS = ["email", "card", "iban", "phone", "national_id", "secret"] as const;

/** One of {@link PII_KINDS}. */
export type PiiKind = (typeof PII_KINDS)[number];

/** A model of a route, with the index of its target. */
export interface ModelSpec {
  readonly target: number;
  readonly model: string;
}

/** Models of an AI route, in place of its targets. */
export interface RoutingSpec {
  readonly primary: ModelSpec;
  readonly fallback: ModelSpec;
  /** Response field with a number, and the number below which the fallback gets the request. */
  readonly confidence?: { readonly field: string; readonly min: number };
  /** Statuses of the primary after which the fallback gets the request. */
  readonly statuses: readonly number[];
}

/** Stored answers of an AI route. */
export interface AnswerCacheSpec {
  readonly ttlMs: number;
  /** Cosine of the vectors of two questions above which they may have the same answer. */
  readonly threshold: number;
}

/** A stored question that is alike. */
export interface SimilarQuestion {
  /** Digest under which its answer is stored. */
  readonly digest: string;
  /** Cosine of the vectors. */
  readonly similarity: number;
}

/** Settings of an AI route. */
export interface AiSpec {
  /** Absent: answers are not stored. */
  readonly cache?: AnswerCacheSpec;
  /** Absent: requests go to the targets of the route, with the model that they name. */
  readonly routing?: RoutingSpec;
  /** Tokens of a tenant, or of an address without one, in any 60 s; absent: no limit. */
  readonly tokensPerMinute?: number;
  /** Longest duration of a streamed answer. */
  readonly streamMsMax: number;
  /** Absent: prompts are not judged. */
  readonly guard?: GuardSpec;
  /** Absent: nothing is replaced. */
  readonly pii?: PiiSpec;
  /** Forwards bodies that are no requests to models, also on routes that replace personal data. */
  readonly passesUnknown: boolean;
  /** Recordings contain the bodies of requests and responses. */
  readonly recordsPrompts: boolean;
}

/** Price of a model in USD per million tokens. */
export interface ModelPriceSpec {
  readonly input: number;
  readonly output: number;
  /** Input that the provider has read from its cache; default `input`. */
  readonly cached_input?: number | undefined;
  /** Input that the provider has written to its cache; default `input`. */
  readonly cache_write?: number | undefined;
  /** USD per request; default 0. */
  readonly request?: number | undefined;
  /** Most tokens of an answer if the request sets no bound. */
  readonly max_output?: number | undefined;
}

/** Prices by the name of the model; a name may end in `*`. */
export type ModelPrices = Readonly<Record<string, ModelPriceSpec>>;

/** Sums of one model on one route since the last report of a worker. */
export interface AiFigures {
  /** Label of the route. */
  readonly route: string;
  readonly model: string;
  requests: number;
  inputTokens: number;
  outputTokens: number;
  cachedTokens: number;
  /** Cost in pico-USD. */
  costPico: bigint;
  /** Requests that were answered from stored answers. */
  cacheHits: number;
  /** Requests whose tokens were estimated, because the provider reported none. */
  estimated: number;
  /** Requests to a model without a price. */
  unpriced: number;
  /** Reports of providers with impossible figures. */
  faultyReports: number;
}

/** Longest duration of a streamed answer in seconds. */
export const AI_STREAM_SECONDS_DEFAULT = 600;

/** Limits of a tenant at models, on all routes together. */
export interface AiBudget {
  readonly tenant: string;
  /** Spending of a UTC day in pico-USD; absent: no limit. */
  readonly maxPicoPerDay?: bigint | undefined;
  /** Tokens in any 60 s; absent: no limit. */
  readonly maxTokensPerMinute?: number | undefined;
}
