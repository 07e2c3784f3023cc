// A state: shape, word and colour.
import type { ComponentChildren } from "preact";

/** Kinds of states. */
export type StateKind = "ok" | "warn" | "bad" | "off";

/** The shape of a state; its word stands beside it. */
export function StateMark({ kind }: { kind: StateKind }) {
  return (
    <svg class={`st-${kind}`} width="10" height="10" viewBox="0 0 10 10" aria-hidden="true">
      {kind === "ok" && <circle cx="5" cy="5" r="3.5" fill="currentColor" />}
      {kind === "warn" && <path d="M5 1 9.4 9H.6z" fill="currentColor" />}
      {kind === "bad" && <rect x="1.2" y="1.2" width="7.6" height="7.6" fill="currentColor" />}
      {kind === "off" && (
        <circle cx="5" cy="5" r="3.2" fill="none" stroke="currentColor" stroke-width="1.4" />
      )}
    </svg>
  );
}

/** A state with its word. */
export function State({ kind, children }: { kind: StateKind; children: ComponentChildren }) {
  return (
    <span class="st">
      <StateMark kind={kind} />
      <span>{children}</span>
    </span>
  );
}
