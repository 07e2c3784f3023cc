// A case of the http-wasm handler ABI: a script of host calls (`guests/script.c`), and what they must lead to.

/** A request whose script the guest executes. */
export interface Scene {
  readonly method: string;
  /** As in the request line. */
  readonly target: string;
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  /** Of `handle_request` and `handle_response`. */
  readonly script: string;
  readonly late: string;
  /** There is no upstream. */
  readonly isAlone: boolean;
}

/** The result of a scene. */
export interface Passed {
  readonly status: number;
  /** Names in lower case. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  /** The results of the calls: `x-out`. */
  readonly out: string;
  /** The request as the upstream received it; undefined if it was not asked. */
  readonly upstream?: UpstreamRequest;
  /** The guest was ended: a trap, or a result that is not one. */
  readonly isTrapped: boolean;
  /** Lines of `log`, as `level text`. */
  readonly lines: readonly string[];
  /** Address and port of the client. */
  readonly client: string;
}

/** A request as the upstream received it. */
export interface UpstreamRequest {
  readonly method: string;
  readonly target: string;
  /** Names in lower case. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}

/** Expectations; what is not named is not compared. */
export interface Expected {
  readonly out?: string | RegExp | ((passed: Passed) => string);
  readonly status?: number;
  readonly body?: string;
  /** Values of fields of the response, by name. */
  readonly fields?: Readonly<Record<string, readonly string[]>>;
  /** Null: the upstream is not asked. */
  readonly upstream?: null | {
    readonly method?: string;
    readonly target?: string;
    readonly fields?: Readonly<Record<string, readonly string[]>>;
    readonly body?: string;
  };
  readonly traps?: boolean;
  readonly lines?: readonly string[];
}

/** A rule of the page with its case. */
export interface Case {
  /** Heading of the page. */
  readonly section: string;
  readonly rule: string;
  readonly scene: Partial<Scene>;
  readonly expected: Expected;
  /** The page leaves it to the host, and this is what the platform has decided: other hosts may differ. */
  readonly isOwn?: boolean;
}

/** The configuration of the guest in all cases. */
export const CONFIG = "enabled=1\n";

/** The response of the upstream in all cases. */
export const UPSTREAM = {
  status: 201,
  fields: [
    ["Content-Type", "text/plain"],
    ["Set-Cookie", "a=b"],
    ["Set-Cookie", "c=d"],
  ],
  body: "upstream body",
} as const;

/** A whole scene: what a case does not say has these values. */
export function completeScene(scene: Partial<Scene>): Scene {
  return {
    method: "GET",
    target: "/",
    fields: [],
    body: "",
    script: "",
    late: "",
    isAlone: false,
    ...scene,
  };
}

/** Values of a field, whose name is in lower case. */
export function valuesOf(
  fields: readonly (readonly [name: string, value: string])[],
  name: string,
): string[] {
  return fields.flatMap(([key, value]) => (key === name ? [value] : []));
}
