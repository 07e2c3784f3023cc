// Values that are written out in the source, with the offsets of their parts: what can be checked without running the code.
import type { SyntaxNode } from "./sql-template.ts";

/** A part of an expression that only running the code can tell. */
export const DYNAMIC = Symbol("dynamic");

/** A value of the source. */
export interface Literal {
  /** JSON with {@link DYNAMIC} parts. */
  readonly value: unknown;
  readonly start: number;
  /** Offsets of the keys, and literals of the values, of an object or a list. */
  readonly members: ReadonlyMap<string, { readonly keyAt: number; readonly literal: Literal }>;
}

/** The parts of expressions that are read. */
interface ExpressionNode extends SyntaxNode {
  readonly value?: unknown;
  readonly computed?: boolean;
  readonly key?: ExpressionNode;
  readonly properties?: readonly ExpressionNode[];
  readonly elements?: readonly (ExpressionNode | null)[];
  readonly expression?: ExpressionNode;
  readonly expressions?: readonly unknown[];
  readonly quasis?: readonly { readonly value: { readonly cooked: string | null } }[];
  readonly argument?: ExpressionNode;
  readonly operator?: string;
}

const NO_MEMBERS: Literal["members"] = new Map();

/** Reads an expression. */
export function readLiteral(given: SyntaxNode): Literal {
  const node = given as ExpressionNode;
  const { type, start } = node;
  switch (type) {
    case "ObjectExpression":
      return readObject(node);
    case "ArrayExpression":
      return readList(node);
    case "Literal":
      return { value: node.value, start, members: NO_MEMBERS };
    case "TemplateLiteral": {
      const isFixed = node.expressions?.length === 0;
      const value = isFixed ? (node.quasis?.[0]?.value.cooked ?? DYNAMIC) : DYNAMIC;
      return { value, start, members: NO_MEMBERS };
    }
    case "UnaryExpression": {
      const { value } = readLiteral(node.argument!);
      const isNegative = node.operator === "-" && typeof value === "number";
      return { value: isNegative ? -value : DYNAMIC, start, members: NO_MEMBERS };
    }
    case "TSAsExpression":
    case "TSSatisfiesExpression":
    case "ParenthesizedExpression":
      return readLiteral(node.expression!);
    default:
      return { value: DYNAMIC, start, members: NO_MEMBERS };
  }
}

/** The literal of a member of an object; undefined if it is not written there. */
export function findMember({ members }: Literal, name: string): Literal | undefined {
  return members.get(name)?.literal;
}

/** True if a part of a literal is {@link DYNAMIC}. */
export function isDynamic({ value, members }: Literal): boolean {
  return value === DYNAMIC || members.values().some(({ literal }) => isDynamic(literal));
}

/** The offset of a path of keys: that of the last key that is written. */
export function findPlace(literal: Literal, path: readonly (string | number)[]): number {
  let at = literal.start;
  let inner: Literal | undefined = literal;
  for (const key of path) {
    const member: { keyAt: number; literal: Literal } | undefined = inner.members.get(String(key));
    if (member === undefined) return at;
    at = member.keyAt;
    inner = member.literal;
  }
  return at;
}

function readObject({ properties = [], start }: ExpressionNode): Literal {
  const members = new Map<string, { keyAt: number; literal: Literal }>();
  const value = Object.create(null) as Record<string, unknown>;
  for (const property of properties) {
    const { key, computed } = property;
    // Spread properties and computed keys.
    if (key === undefined || computed === true) {
      const literal = { value: DYNAMIC, start: property.start, members: NO_MEMBERS };
      members.set(`…${property.start}`, { keyAt: property.start, literal });
      continue;
    }
    const name = key.name ?? String(key.value);
    const given = property.value;
    const literal =
      typeof given === "object" && given !== null
        ? readLiteral(given as ExpressionNode)
        : { value: DYNAMIC, start: property.start, members: NO_MEMBERS };
    members.set(name, { keyAt: key.start, literal });
    value[name] = literal.value;
  }
  return { value, start, members };
}

function readList({ elements = [], start }: ExpressionNode): Literal {
  const members = new Map<string, { keyAt: number; literal: Literal }>();
  const value = elements.map((element, index): unknown => {
    const literal =
      element === null || element.type === "SpreadElement"
        ? { value: DYNAMIC, start, members: NO_MEMBERS }
        : readLiteral(element);
    members.set(String(index), { keyAt: literal.start, literal });
    return literal.value;
  });
  return { value, start, members };
}
