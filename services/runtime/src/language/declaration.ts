// Declarations of the service language as the parser finds them; all positions are offsets in the source.

/** Range of a part of the source. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** Text to insert at an offset of the source. */
export interface Insertion {
  readonly at: number;
  readonly text: string;
}

/** A clause between the parameters of a route and its body, such as `requires "notes:read"`. */
export interface Clause {
  readonly name: ClauseName;
  readonly nameStart: number;
  readonly value: Range;
}

/** Names of clauses: the options of `route()`. */
export const CLAUSE_NAMES = ["requires", "body", "query", "answer", "summary", "gateway"] as const;

/** Name of a clause. */
export type ClauseName = (typeof CLAUSE_NAMES)[number];

interface Common extends Range {
  readonly isExported: boolean;
}

/** `server { port: 3000 }`, `gateway { rate_limit_rpm: 60 }` */
interface OptionsDeclaration extends Common {
  readonly kind: "server" | "gateway";
  readonly options: Range;
}

/** `database notes { migrations: "./migrations" }`, `cache hot { ttl: 60 }` */
export interface StoreDeclaration extends Common {
  readonly kind: "database" | "cache";
  readonly name: string;
  readonly nameRange: Range;
  /** Undefined without a block. */
  readonly options: Range | undefined;
}

/** `migrations "./migrations"` */
interface MigrationsDeclaration extends Common {
  readonly kind: "migrations";
  readonly folder: string;
  readonly folderRange: Range;
}

/** `every 5m { … }`, `every "0 3 * * *" (tick) { … }` */
export interface EveryDeclaration extends Common {
  readonly kind: "every";
  readonly timing: string;
  readonly timingRange: Range;
  /** The parameters with their parentheses; undefined if there are none. */
  readonly parameters: Range | undefined;
  readonly body: Range;
}

/** `export route GET /notes/:id (req) requires "notes:read" { … }` */
export interface RouteDeclaration extends Common {
  readonly kind: "route";
  readonly method: string;
  readonly path: string;
  readonly methodRange: Range;
  readonly pathRange: Range;
  readonly parameters: Range | undefined;
  readonly clauses: readonly Clause[];
  readonly body: Range;
}

/** A declaration. */
export type Declaration =
  | OptionsDeclaration
  | StoreDeclaration
  | MigrationsDeclaration
  | EveryDeclaration
  | RouteDeclaration;

/** The words that begin declarations. */
export const WORDS = [
  "server",
  "gateway",
  "database",
  "migrations",
  "cache",
  "route",
  "every",
] as const;

/** A word that begins a declaration. */
export type Word = (typeof WORDS)[number];
