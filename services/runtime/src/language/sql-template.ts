// Statements in a service file: templates of its databases, found among the nodes of the parser.

/** A template like notes.one`select …`; offsets are those of the source. */
export interface SqlTemplate {
  /** Name of the database. */
  readonly database: string;
  readonly method: "one" | "all" | "run";
  /** Offset where a type argument would begin. */
  readonly typeAt: number;
  /** True if the author has written a type argument. */
  readonly isTyped: boolean;
  /** Offset of the first character of the text. */
  readonly textStart: number;
  readonly textEnd: number;
  /** The text with `?` for each expression. */
  readonly text: string;
  /** The expressions. */
  readonly values: readonly ValueNode[];
}

/** A tagged template, or a call. */
export interface Candidate extends SyntaxNode {
  readonly tag?: SyntaxNode;
  readonly quasi?: SyntaxNode & {
    readonly quasis: readonly { readonly value: { readonly cooked: string | null } }[];
    readonly expressions: readonly ValueNode[];
  };
  readonly typeParameters?: unknown;
  readonly typeArguments?: unknown;
  readonly callee?: SyntaxNode;
  readonly arguments?: readonly SyntaxNode[];
}

/** The parts of nodes that are read. */
export interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly name?: string;
  readonly object?: SyntaxNode;
  readonly property?: SyntaxNode;
  readonly params?: readonly SyntaxNode[];
}

/** An expression in a template; literals have a value. */
interface ValueNode extends SyntaxNode {
  readonly value?: unknown;
}

/** A name of a database inside a range of the source. */
interface Scope {
  readonly name: string;
  readonly database: string;
  readonly start: number;
  readonly end: number;
}

const METHODS = new Set(["one", "all", "run"]);

/** Finds the statements of databases, also on the parameter of their `transaction()`, in the order of the file. */
export function findSqlTemplates(
  databases: readonly { readonly name: string }[],
  candidates: readonly Candidate[],
): SqlTemplate[] {
  const scopes = databases.map(({ name }): Scope => ({
    name,
    database: name,
    start: 0,
    end: Infinity,
  }));
  for (const candidate of candidates) {
    const scope = findTransaction(candidate, scopes);
    if (scope !== undefined) scopes.unshift(scope);
  }
  return candidates
    .flatMap((candidate) => readTemplate(candidate, scopes) ?? [])
    .sort((a, b) => a.textStart - b.textStart);
}

/** The parameter of `notes.transaction(async (tx) => …)`. */
function findTransaction(call: Candidate, scopes: readonly Scope[]): Scope | undefined {
  const { object, property } = call.callee ?? {};
  if (property?.name !== "transaction") return undefined;
  const { database } = scopes.find(({ name }) => name === object?.name) ?? {};
  const [work] = call.arguments ?? [];
  const name = work?.params?.[0]?.name;
  if (database === undefined || work === undefined || name === undefined) return undefined;
  return { name, database, start: work.start, end: work.end };
}

function readTemplate(
  { tag, quasi, typeParameters, typeArguments }: Candidate,
  scopes: readonly Scope[],
): SqlTemplate | undefined {
  const method = tag?.property?.name ?? "";
  if (tag === undefined || quasi === undefined || !METHODS.has(method)) return undefined;
  const isOf = ({ name, start, end }: Scope): boolean =>
    name === tag.object?.name && start <= tag.start && tag.end <= end;
  const scope = scopes.find(isOf);
  const texts = quasi.quasis.map(({ value }) => value.cooked);
  if (scope === undefined || texts.includes(null)) return undefined;
  return {
    database: scope.database,
    method: method as SqlTemplate["method"],
    typeAt: tag.end,
    isTyped: (typeParameters ?? typeArguments) !== undefined,
    textStart: quasi.start + 1,
    textEnd: quasi.end - 1,
    text: texts.join("?"),
    values: quasi.expressions,
  };
}
