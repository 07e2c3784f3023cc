// Trees of topic levels: subscriptions by filter, and values by topic name.

interface FilterNode<T> {
  children: Map<string, FilterNode<T>>;
  /** Filters that end here. */
  values: Set<T> | undefined;
}

/** Values by topic filter, found by topic name. */
export class FilterTree<T> {
  readonly #root: FilterNode<T> = { children: new Map(), values: undefined };

  add(levels: readonly string[], value: T): void {
    let node = this.#root;
    for (const level of levels) {
      let next = node.children.get(level);
      if (next === undefined) {
        next = { children: new Map(), values: undefined };
        node.children.set(level, next);
      }
      node = next;
    }
    (node.values ??= new Set()).add(value);
  }

  remove(levels: readonly string[], value: T): void {
    const path = [this.#root];
    for (const level of levels) {
      const next = path.at(-1)!.children.get(level);
      if (next === undefined) return;
      path.push(next);
    }
    const values = path.at(-1)!.values;
    values?.delete(value);
    for (let depth = levels.length; depth > 0; depth--) {
      const node = path[depth]!;
      if (node.children.size > 0 || (node.values?.size ?? 0) > 0) return;
      path[depth - 1]!.children.delete(levels[depth - 1]!);
    }
  }

  /** The values of all filters that match a topic name. */
  match(levels: readonly string[]): T[] {
    const found: T[] = [];
    let nodes = [this.#root];
    for (const [index, level] of levels.entries()) {
      // Section 4.7.2: filters that begin with a wildcard do not match topics that begin with $.
      const isHidden = index === 0 && level.startsWith("$");
      const next: FilterNode<T>[] = [];
      for (const { children } of nodes) {
        if (!isHidden) collect(found, children.get("#"));
        const exact = children.get(level);
        if (exact !== undefined) next.push(exact);
        const any = isHidden ? undefined : children.get("+");
        if (any !== undefined) next.push(any);
      }
      if (next.length === 0) return found;
      nodes = next;
    }
    for (const node of nodes) {
      collect(found, node);
      collect(found, node.children.get("#"));
    }
    return found;
  }
}

function collect<T>(found: T[], node: FilterNode<T> | undefined): void {
  // One by one: there may be more values than a call may have arguments.
  for (const value of node?.values ?? []) found.push(value);
}

interface NameNode<T> {
  children: Map<string, NameNode<T>> | undefined;
  value: T | undefined;
}

/** Values by topic name, found by topic filter. */
export class NameTree<T> {
  readonly #root: NameNode<T> = { children: undefined, value: undefined };

  get(levels: readonly string[]): T | undefined {
    let node: NameNode<T> | undefined = this.#root;
    for (const level of levels) node = node?.children?.get(level);
    return node?.value;
  }

  set(levels: readonly string[], value: T): void {
    let node = this.#root;
    for (const level of levels) {
      const children = (node.children ??= new Map());
      let next = children.get(level);
      if (next === undefined)
        children.set(level, (next = { children: undefined, value: undefined }));
      node = next;
    }
    node.value = value;
  }

  delete(levels: readonly string[]): void {
    const path = [this.#root];
    for (const level of levels) {
      const next = path.at(-1)!.children?.get(level);
      if (next === undefined) return;
      path.push(next);
    }
    path.at(-1)!.value = undefined;
    for (let depth = levels.length; depth > 0; depth--) {
      const node = path[depth]!;
      if (node.value !== undefined || (node.children?.size ?? 0) > 0) return;
      path[depth - 1]!.children?.delete(levels[depth - 1]!);
    }
  }

  /** The values of all names that match a filter. */
  match(filter: readonly string[]): T[] {
    const found: T[] = [];
    visit(this.#root, filter, 0, found);
    return found;
  }
}

function visit<T>(node: NameNode<T>, filter: readonly string[], depth: number, found: T[]): void {
  const level = filter[depth];
  if (level === undefined) {
    if (node.value !== undefined) found.push(node.value);
    return;
  }
  if (level === "#") {
    if (depth > 0 && node.value !== undefined) found.push(node.value);
    for (const [name, child] of node.children ?? []) {
      if (depth > 0 || !name.startsWith("$")) visit(child, ANY_DEPTH, 1, found);
    }
    return;
  }
  if (level !== "+") {
    const child = node.children?.get(level);
    if (child !== undefined) visit(child, filter, depth + 1, found);
    return;
  }
  for (const [name, child] of node.children ?? []) {
    if (depth > 0 || !name.startsWith("$")) visit(child, filter, depth + 1, found);
  }
}

/** From depth 1 on: `#` below a level that has been matched. */
const ANY_DEPTH: readonly string[] = ["+", "#"];
