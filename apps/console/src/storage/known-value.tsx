// Values of an object that are edited in a dialog: a change is refused if somebody else has made one since they were read.
import { useState } from "preact/hooks";
import { ApiFailure, type CallOptions, send } from "../api/api.ts";
import { onlyIf, type Versioned } from "../api/versioned.ts";
import { api } from "../session/session.ts";
import { ConflictNotice } from "../view/conflict.tsx";
import { Diff } from "../view/diff.tsx";
import { STAY_OPEN } from "../view/dialog.tsx";
import { attempt } from "../view/toast.tsx";

/** A value that is being edited. */
interface KnownValue<Value> {
  /** The value as it was last read. */
  stored: Value | undefined;
  /** Writes it, for `onSubmit` of a form: after a conflict the form stays open. */
  write: (options: CallOptions, parameters?: string) => Promise<unknown>;
  conflict: "told" | "compared" | undefined;
  /** Reads the value of the others: the next write replaces that one. */
  compare: () => void;
}

/** Reads a value with its version. Unlike a document, a value does not exist only if its object does not. */
export async function readValue<Value>(path: string): Promise<Versioned<Value>> {
  const response = await send(api("vault", path));
  const document = (await response.json()) as Value;
  return { document, etag: response.headers.get("etag") ?? undefined };
}

/** Edits a value that was read from a path of the API of storage. */
export function useKnownValue<Value>(path: string, read: Versioned<Value>): KnownValue<Value> {
  const [known, setKnown] = useState(read);
  const [conflict, setConflict] = useState<KnownValue<Value>["conflict"]>(undefined);
  return {
    stored: known.document,
    write: async (options, parameters = "") => {
      try {
        const headers = onlyIf(known.etag);
        await send(api("vault", `${path}${parameters}`), { ...options, headers });
        return undefined;
      } catch (error) {
        if (!(error instanceof ApiFailure) || error.status !== 412) throw error;
        setConflict("told");
        return STAY_OPEN;
      }
    },
    conflict,
    compare: () => {
      void attempt(async () => {
        setKnown(await readValue<Value>(path));
        setConflict("compared");
      });
    },
  };
}

/** After a conflict: the notice, then both values as text. */
export function KnownValueConflict(props: {
  of: Pick<KnownValue<unknown>, "conflict" | "compare">;
  stored: string;
  edited: string;
}) {
  const { conflict, compare } = props.of;
  if (conflict === undefined) return null;
  if (conflict === "told") return <ConflictNotice onCompare={compare} />;
  return <Diff before={props.stored} after={props.edited} />;
}
