// Triggers of buckets: guests that run on new objects.
import type { StoredRequester } from "./requester.ts";
import type { ModulePin } from "./guest.ts";

/** A trigger as it was put; members have the names of the document. */
export interface TriggerDocument {
  readonly id: string;
  /** `ObjectCreated:*` and its kinds, without their prefix. */
  readonly events: readonly string[];
  readonly filter?: { readonly prefix?: string; readonly suffix?: string };
  readonly module: string;
  readonly target: {
    readonly bucket: string;
    readonly key: string;
    readonly content_type?: string;
  };
  readonly timeout_ms?: number;
  readonly enabled: boolean;
}

/** The setting of a bucket. */
export interface TriggerSettings {
  readonly triggers: readonly TriggerDocument[];
  readonly default_modules?: readonly string[];
  /** The versions of modules that triggers have had since they were put, by their ids; none for `@latest`. */
  readonly pins: Readonly<Record<string, ModulePin>>;
  /** The sender of the setting, with whose rights triggers run. */
  readonly requester: StoredRequester;
}
