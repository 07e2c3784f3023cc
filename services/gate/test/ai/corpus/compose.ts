// Sentences from templates: `{name}` is replaced by each of the words of that name.

/** Words of a template by name. */
export type Words = Readonly<Record<string, readonly string[]>>;

/**
 * Composes sentences: each template with as many choices of its words as `perTemplate` says, spread over all
 * combinations, so that each word occurs.
 */
export function compose(templates: readonly string[], words: Words, perTemplate: number): string[] {
  return templates.flatMap((template, index) => {
    const names = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
    const count = names.reduce((product, name) => product * (words[name]?.length ?? 1), 1);
    return Array.from({ length: Math.min(perTemplate, count) }, (_, choice) => {
      // A step that shares no factor with usual list lengths.
      let rest = (choice * 7_919 + index * 101) % count;
      let text = template;
      for (const name of names) {
        const list = words[name] ?? [""];
        text = text.replace(`{${name}}`, list[rest % list.length]!);
        rest = Math.floor(rest / list.length);
      }
      return text;
    });
  });
}
